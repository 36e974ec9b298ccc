/* SPDX-License-Identifier: BSD-3-Clause */
#include "threads.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comms.h"
#include "handles.h"
#include "pending.h"

#define UCI_MPI_POLLING_PLACES 16

/* What this thread tests again and again */
typedef struct uci_mpi_polling {
    int places[UCI_MPI_POLLING_PLACES]; /* where from */
    int count;
    uint64_t last;    /* which requests were tested last, and where; 0: none */
    bool is_pending;  /* was any of these? */
    uint64_t left_ns; /* when the last test was over */
} uci_mpi_polling_t;

/* This thread's entry in the file; NULL: not taken yet, or there was none left */
static __thread uci_calls_thread_t *uci_mpi_thread;
static __thread bool uci_mpi_thread_is_known;
static __thread uci_mpi_polling_t uci_mpi_polling;
static pthread_key_t uci_mpi_thread_key;

/* Nobody need think any more that it may do something, outside of MPI, that others wait for */
static void uci_mpi_thread_on_end(void *arg)
{
    uci_calls_thread_t *thread = arg;

    __atomic_store_n(&thread->state, UCI_CALLS_OUTSIDE, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->tid, 0, __ATOMIC_RELEASE);
}

void uci_mpi_threads_init(void)
{
    pthread_key_create(&uci_mpi_thread_key, uci_mpi_thread_on_end);
}

/* An entry that is nobody's: a thread's that has ended, or a new one. @return NULL: there is none */
static uci_calls_thread_t *uci_mpi_thread_take(uint32_t tid)
{
    uint32_t i, used, nobody;

    do {
        used = __atomic_load_n(&uci_calls->head.threads, __ATOMIC_RELAXED);
        for (i = 0; i < used; ++i) {
            nobody = 0;
            if (__atomic_compare_exchange_n(&uci_calls->threads[i].tid, &nobody, tid, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED)) {
                return &uci_calls->threads[i];
            }
        }
    } while (uci_calls_take(&uci_calls->head.threads, UCI_CALLS_THREADS) != UCI_CALLS_NONE);
    return NULL;
}

static uci_calls_thread_t *uci_mpi_thread_get(void)
{
    if (uci_unlikely(!uci_mpi_thread_is_known)) {
        uci_mpi_thread_is_known = true;
        uci_mpi_thread          = uci_mpi_thread_take((uint32_t)syscall(SYS_gettid));
        if (uci_mpi_thread != NULL) {
            pthread_setspecific(uci_mpi_thread_key, uci_mpi_thread);
        }
    }
    return uci_mpi_thread;
}

/* Whoever reads while it changes may see parts of both; what is told is what has not changed for long */
static void uci_mpi_thread_outside(uci_calls_thread_t *thread)
{
    __atomic_store_n(&thread->state, UCI_CALLS_OUTSIDE, __ATOMIC_RELEASE);
}

static void uci_mpi_thread_inside(uci_calls_thread_t *thread, uci_calls_state_t state, const uci_mpi_call_t *call)
{
    thread->place    = call->place;
    thread->since_ns = call->begun_ns;
    __atomic_store_n(&thread->state, (uint32_t)state, __ATOMIC_RELEASE);
}

static void uci_mpi_thread_waits_for(uci_calls_thread_t *thread, const uci_calls_wait_t *wait)
{
    if (thread->count < UCI_CALLS_WAITS) {
        thread->waits[thread->count] = *wait;
    }
    ++thread->count;
}

/* -------------------------------------------------------------- polling */

/* @return whether no test was there before; where there is no room to know that, it is so each time: then nothing is told of this thread */
static bool uci_mpi_polling_from(int place)
{
    uci_mpi_polling_t *polling = &uci_mpi_polling;
    int i;

    for (i = 0; i < polling->count; ++i) {
        if (polling->places[i] == place) {
            return false;
        }
    }
    if (polling->count < UCI_MPI_POLLING_PLACES) {
        polling->places[polling->count++] = place;
    }
    return true;
}

/* @return whether that is one more; those there is no room for are counted as one */
static bool uci_mpi_polling_for(uci_calls_thread_t *thread, const uci_calls_wait_t *wait)
{
    uint32_t i;

    for (i = 0; i < uci_min(thread->count, UCI_CALLS_WAITS); ++i) {
        if (memcmp(&thread->waits[i], wait, sizeof(*wait)) == 0) {
            return false;
        }
    }
    if (thread->count > UCI_CALLS_WAITS) {
        return false;
    }
    uci_mpi_thread_waits_for(thread, wait);
    return true;
}

static void uci_mpi_polling_begin(uci_calls_thread_t *thread, const uci_mpi_call_t *call)
{
    uci_mpi_polling_t *polling = &uci_mpi_polling;

    if (thread->state == UCI_CALLS_POLLS) {
        thread->outside_ns += call->entered_ns - uci_min(polling->left_ns, call->entered_ns);
    } else {
        uci_mpi_thread_outside(thread);
        thread->count  = 0;
        polling->count = 0;
        polling->last  = 0;
    }
    thread->tested_ns = call->begun_ns;
}

/* @param is_new  it tests what was not tested before */
static void uci_mpi_polling_end(uci_calls_thread_t *thread, const uci_mpi_call_t *call, bool is_new)
{
    if (uci_mpi_polling_from(call->place) || is_new) {
        thread->outside_ns = 0;
        uci_mpi_thread_inside(thread, UCI_CALLS_POLLS, call);
    }
}

static void uci_mpi_polling_probe(uci_calls_thread_t *thread, const uci_mpi_call_t *call)
{
    const uci_calls_wait_t wait = uci_mpi_call_wait(call, &call->recv);

    uci_mpi_polling_begin(thread, call);
    uci_mpi_polling_end(thread, call, uci_mpi_polling_for(thread, &wait));
}

static uint64_t uci_mpi_polling_hash(const uci_mpi_waiting_t *waiting)
{
    const uint64_t mix = 0x9e3779b97f4a7c15ul;
    uint64_t hash      = (uint64_t)waiting->call.place * mix;
    int i;

    for (i = 0; i < waiting->count; ++i) {
        hash = (hash ^ (hash >> 32) ^ UCI_MPI_HANDLE(waiting->requests[i])) * mix;
    }
    return hash | 1;
}

/* @return whether it tests anything that is pending, or is the first one */
static bool uci_mpi_polling_test(uci_calls_thread_t *thread, const uci_mpi_waiting_t *waiting)
{
    uci_mpi_polling_t *polling = &uci_mpi_polling;
    const uint64_t hash        = uci_mpi_polling_hash(waiting);
    bool is_new                = false;
    uci_calls_wait_t wait;
    int i;

    uci_mpi_polling_begin(thread, &waiting->call);
    if (hash != polling->last) { /* else it is the same test again */
        polling->last       = hash;
        polling->is_pending = false;
        for (i = 0; i < waiting->count; ++i) {
            if (uci_mpi_pending_find(waiting->requests[i], &wait)) {
                polling->is_pending = true;
                is_new              = uci_mpi_polling_for(thread, &wait) || is_new;
            }
        }
    }
    uci_mpi_polling_end(thread, &waiting->call, is_new);
    return polling->is_pending || (thread->count == 0);
}

/* ---------------------------------------------------------------- calls */

uci_calls_wait_t uci_mpi_call_wait(const uci_mpi_call_t *call, const uci_mpi_half_t *half)
{
    uci_calls_wait_t wait = {
            .peer = UCI_CALLS_NONE, .tag = UCI_CALLS_NONE, .comm = call->comm_index, .place = call->place};

    if (call->collective) {
        wait.collective = (uint32_t)call->number;
        return wait;
    }
    wait.peer     = uci_mpi_comms_peer(call->comm, half->peer);
    wait.tag      = (half->tag == MPI_ANY_TAG) ? UCI_CALLS_NONE : half->tag;
    wait.receives = (half == &call->recv);
    return wait;
}

static void uci_mpi_thread_waits_for_half(uci_calls_thread_t *thread, const uci_mpi_call_t *call,
                                          const uci_mpi_half_t *half)
{
    uci_calls_wait_t wait;

    if (call->collective || (half->is_there && (half->peer != MPI_PROC_NULL))) {
        wait = uci_mpi_call_wait(call, half);
        uci_mpi_thread_waits_for(thread, &wait);
    }
}

void uci_mpi_thread_enter(const uci_mpi_call_t *call)
{
    uci_calls_thread_t *thread = uci_mpi_thread_get();

    if (thread == NULL) {
        return;
    }
    if (call->manner == UCI_MPI_PROBES) {
        uci_mpi_polling_probe(thread, call);
        return;
    }
    uci_mpi_thread_outside(thread);
    thread->count = 0;
    uci_mpi_thread_waits_for_half(thread, call, &call->send);
    if (!call->collective) {
        uci_mpi_thread_waits_for_half(thread, call, &call->recv);
    }
    uci_mpi_thread_inside(thread, UCI_CALLS_ALL, call);
}

bool uci_mpi_thread_waits(const uci_mpi_waiting_t *waiting, bool any)
{
    uci_calls_thread_t *thread = uci_mpi_thread_get();
    uci_calls_wait_t wait;
    int i;

    if (thread == NULL) {
        return true;
    }
    if (waiting->polls) {
        return uci_mpi_polling_test(thread, waiting);
    }
    uci_mpi_thread_outside(thread);
    thread->count = 0;
    for (i = 0; i < waiting->count; ++i) {
        if (uci_mpi_pending_find(waiting->requests[i], &wait)) {
            uci_mpi_thread_waits_for(thread, &wait);
        }
    }
    uci_mpi_thread_inside(thread, any ? UCI_CALLS_ANY : UCI_CALLS_ALL, &waiting->call);
    return true;
}

void uci_mpi_thread_leave(uint64_t now_ns, bool goes_on)
{
    if (uci_mpi_thread == NULL) {
        return;
    }
    uci_mpi_polling.left_ns = now_ns;
    if (goes_on) {
        uci_mpi_thread_outside(uci_mpi_thread);
    }
}
