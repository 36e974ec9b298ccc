/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings.h"

#include <string.h>

#include "peer.h"
#include "util/process.h"

#define UCI_SIBLING_ALONE_NS 1000000ul /* without a turn for so long: its program waits elsewhere */
#define UCI_SIBLING_SERVED   16        /* turns at a time, as long as each finds something to do */
#define UCI_SIBLINGS_LOOKS   4         /* workers looked after at a time, in turn: a process may have hundreds */

static pthread_mutex_t uci_siblings_lock = PTHREAD_MUTEX_INITIALIZER;
static uci_list_t uci_siblings           = {.prev = &uci_siblings, .next = &uci_siblings};
static size_t uci_siblings_count;

/* The same ones, under a lock that nobody holds while he serves them */
static pthread_mutex_t uci_siblings_living_lock = PTHREAD_MUTEX_INITIALIZER;
static uci_list_t uci_siblings_living           = {.prev = &uci_siblings_living, .next = &uci_siblings_living};

static void uci_siblings_add_count(size_t change)
{
    __atomic_store_n(&uci_siblings_count, uci_siblings_count + change, __ATOMIC_RELAXED);
}

/* Links are read in one direction only: another thread may have been at work when this one forked */
static void uci_siblings_forget(uci_list_t *head)
{
    uci_list_t *link = head->next, *next;

    for (; link != head; link = next) {
        next = link->next;
        uci_list_init(link);
    }
    uci_list_init(head);
}

/* In a child that was forked off: its parent's workers are its parent's. A turn in one would take messages out of memory that both share, and
 * acknowledge them */
static void uci_siblings_forked(void)
{
    pthread_mutex_init(&uci_siblings_lock, NULL);
    pthread_mutex_init(&uci_siblings_living_lock, NULL);
    uci_siblings_forget(&uci_siblings);
    uci_siblings_forget(&uci_siblings_living);
    uci_siblings_count = 0;
}

static void uci_siblings_watch_forks(void)
{
    pthread_atfork(NULL, NULL, uci_siblings_forked);
}

void uci_siblings_join(uci_worker_t *worker)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_siblings_watch_forks);
    worker->sibling.seen_time = uci_process_time_ns();
    pthread_mutex_lock(&uci_siblings_lock);
    uci_list_add_tail(&uci_siblings, &worker->sibling.link);
    uci_siblings_add_count(1);
    pthread_mutex_unlock(&uci_siblings_lock);
    pthread_mutex_lock(&uci_siblings_living_lock);
    uci_list_add_tail(&uci_siblings_living, &worker->sibling.living);
    pthread_mutex_unlock(&uci_siblings_living_lock);
}

void uci_siblings_stop(uci_worker_t *worker)
{
    pthread_mutex_lock(&uci_siblings_lock);
    if (!uci_list_is_empty(&worker->sibling.link)) {
        uci_list_del(&worker->sibling.link);
        uci_siblings_add_count(-(size_t)1);
    }
    pthread_mutex_unlock(&uci_siblings_lock);
}

void uci_siblings_leave(uci_worker_t *worker)
{
    pthread_mutex_lock(&uci_siblings_living_lock);
    uci_list_del(&worker->sibling.living);
    pthread_mutex_unlock(&uci_siblings_living_lock);
    uci_siblings_stop(worker);
}

void uci_siblings_take_over(uci_worker_t *worker)
{
    uci_sibling_t *sibling = &worker->sibling;

    if (__atomic_load_n(&sibling->shared, __ATOMIC_RELAXED)) {
        return;
    }
    pthread_mutex_lock(&uci_siblings_lock);
    if (sibling->handed_over) {
        __atomic_store_n(&sibling->shared, true, __ATOMIC_RELAXED);
    } else {
        sibling->handed_over = true;
        __atomic_store_n(&worker->access.owner, uci_thread_self(), __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&uci_siblings_lock);
}

/* Whoever sleeps on the worker's events may have been to find what has just been taken in */
static void uci_sibling_wake(uci_worker_t *worker)
{
    if (worker->turn.wakeup.set >= 0) {
        uci_ucp.worker_signal(worker->ucp);
    }
}

static void uci_sibling_serve(uci_worker_t *worker)
{
    unsigned turns = 0;

    worker->sibling.helped = true;
    while ((turns < UCI_SIBLING_SERVED) && (worker->calls.turn(worker) > 0)) {
        ++turns;
    }
    worker->sibling.helped     = false;
    worker->sibling.turns_seen = worker->turn.count;
    if (turns > 0) {
        uci_sibling_wake(worker);
    }
}

static void uci_sibling_look(uci_worker_t *worker, uint64_t now)
{
    uci_sibling_t *sibling = &worker->sibling;

    if (worker->turn.count != sibling->turns_seen) {
        sibling->turns_seen = worker->turn.count;
        sibling->seen_time  = now;
        return;
    }
    if ((now - sibling->seen_time >= UCI_SIBLING_ALONE_NS) && !sibling->foreign && !uci_worker_is_inside(worker) &&
        (worker->peers.count > 0)) {
        uci_sibling_serve(worker);
    }
}

/* @return true if no other thread is in it, or can come until uci_sibling_release() */
static bool uci_sibling_hold(uci_worker_t *worker)
{
    if (worker->access.is_mt) {
        return pthread_mutex_trylock(&worker->access.lock) == 0;
    }
    return !worker->sibling.shared && (worker->access.owner == uci_thread_self());
}

static void uci_sibling_release(uci_worker_t *worker)
{
    if (worker->access.is_mt) {
        pthread_mutex_unlock(&worker->access.lock);
    }
}

/* Locks are tried and not waited for: UCX may hold its own lock of the worker in which we make progress (ucp_ep_flush()) */
void uci_siblings_help(const uci_worker_t *self)
{
    size_t count = __atomic_load_n(&uci_siblings_count, __ATOMIC_RELAXED);
    uci_stats_t *stats_here;
    uci_worker_t *worker;
    unsigned looks;
    uint64_t now;

    if ((count <= (self != NULL)) || (pthread_mutex_trylock(&uci_siblings_lock) != 0)) {
        return;
    }
    stats_here = uci_stats_here;
    count      = uci_siblings_count; /* some may have left */
    now        = uci_process_time_ns();
    for (looks = 0; looks < uci_min(count, (size_t)UCI_SIBLINGS_LOOKS); ++looks) {
        worker = uci_container_of(uci_list_requeue(&uci_siblings, &uci_siblings), uci_worker_t, sibling.link);
        if ((worker != self) && uci_sibling_hold(worker)) {
            uci_stats_here = worker->stats.counters;
            uci_sibling_look(worker, now);
            uci_sibling_release(worker);
        }
    }
    uci_stats_here = stats_here;
    pthread_mutex_unlock(&uci_siblings_lock);
}

bool uci_siblings_lack(const uci_peer_t *peer)
{
    const uci_mark_t *own = &peer->worker->self.mark;
    bool lack             = true;

    if (!peer->known || (peer->mark.pid != own->pid) || (strcmp(peer->mark.host, own->host) != 0)) {
        return false;
    }
    pthread_mutex_lock(&uci_siblings_living_lock);
    uci_list_for_each(worker, &uci_siblings_living, uci_worker_t, sibling.living)
    {
        lack = lack && (worker->uid != peer->uid);
    }
    pthread_mutex_unlock(&uci_siblings_living_lock);
    return lack;
}

size_t uci_siblings_visit(void (*func)(uci_worker_t *worker, void *arg), void *arg)
{
    size_t count     = uci_siblings_count, i;
    uci_list_t *link = uci_siblings.next;

    for (i = 0; (i < count) && (link != &uci_siblings); ++i, link = link->next) {
        func(uci_container_of(link, uci_worker_t, sibling.link), arg);
    }
    return i;
}
