/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin.h"

#include <sched.h>
#include <stdlib.h>

#include "follow.h"
#include "util/log.h"
#include "forensics/mpi_tag.h"
#include "base/peer_table.h"
#include "util/process.h"
#include "message/recv.h"
#include "base/request.h"
#include "settings/settings.h"
#include "twin_answers.h"
#include "twin/twin_batch.h"
#include "twin_hold.h"
#include "twin_link.h"
#include "twin_report.h"
#include "twin/twin_votes.h"
#include "base/worker_lock.h"

#define UCI_TWIN_WORKERS    64 /* that can be attached at a time */
#define UCI_TWIN_IDLE_TURNS 64
#define UCI_TWIN_REST_TURNS 64 /* nobody waits for what is compared: it has its turn now and then */
#define UCI_TWIN_LEADER     0u /* whose wildcards and probes the others follow */

static struct {
    pthread_mutex_t lock;
    bool ended;  /* it has been, and is no more */
    bool forked; /* all that is here is the parent's */
    uci_worker_t *workers[UCI_TWIN_WORKERS];
    unsigned workers_count; /* 0: nothing below is valid */
    uci_worker_t *followed; /* the first one: whose wildcards and probes twins match alike; or NULL */
    bool correct;
    bool pressing; /* the batch has something that twins wait for */
    bool answers;  /* UCI_TWINS_TIME, as long as it works */
    uci_context_t *context;
    uci_twin_link_t *link;
    uci_twin_votes_t *votes;
    uci_twin_batch_t batch;
    uint32_t heard[UCI_TWINS_MAX]; /* batches of each twin */
    uint64_t wait_ns;
    uci_mark_t **senders; /* by rank; NULL: not known */
    uint32_t senders_count;
    uint64_t buffer[UCI_TWIN_SAY_MAX / sizeof(uint64_t)];
} uci_twin = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

static pthread_mutex_t uci_twin_attaching = PTHREAD_MUTEX_INITIALIZER;

/* The frame that is being handed over, by whom: what completes meanwhile is its message */
static __thread struct {
    uci_peer_t *peer;
    uint64_t digest;
    uint32_t form;
} uci_twin_frame;

/* -------------------------------------------------------------- saying */

static void uci_twin_hear_ourselves(size_t length);

/* Our own values are voted on when they are told, which is cheaper than one by one; unless a receive waits for the verdict */
static void uci_twin_flush(void)
{
    size_t length;

    __atomic_store_n(&uci_twin.pressing, false, __ATOMIC_RELAXED);
    if (uci_twin.forked || uci_twin_batch_is_empty(&uci_twin.batch)) {
        return;
    }
    length = uci_twin_batch_seal(&uci_twin.batch);
    uci_twin_link_say(uci_twin.link, uci_twin.buffer, length);
    if (!uci_twin.correct) {
        uci_twin_hear_ourselves(length);
    }
    uci_twin_batch_next(&uci_twin.batch, uci_twin.buffer);
}

/* Put an entry into the batch, or, if there is no room, into the next one */
#define uci_twin_say(_put, ...) \
    do { \
        if (!_put(&uci_twin.batch, ##__VA_ARGS__)) { \
            uci_twin_flush(); \
            _put(&uci_twin.batch, ##__VA_ARGS__); \
        } \
    } while (0)

/* -------------------------------------------------------------- voting */

/* Who in this twin has sent the message, for those who want to know where it was computed. Not from the peers of a worker: those are of its
 * thread, and of its life. Stays until the end. */
static const uci_mark_t *uci_twin_sender(uint32_t source)
{
    return (source < uci_twin.senders_count) ? uci_twin.senders[source] : NULL;
}

static void uci_twin_note_sender(const uci_peer_t *peer, uint32_t source)
{
    uci_mark_t **senders;

    if (!peer->known || (source >= UCI_TWIN_RANKS_MAX) || (uci_twin_sender(source) != NULL)) {
        return; /* of no rank, perhaps */
    }
    if (source >= uci_twin.senders_count) {
        senders = realloc(uci_twin.senders, (source + 1) * sizeof(*senders));
        if (senders == NULL) {
            return; /* it has no name in what is said, then */
        }
        memset(senders + uci_twin.senders_count, 0, (source + 1 - uci_twin.senders_count) * sizeof(*senders));
        uci_twin.senders       = senders;
        uci_twin.senders_count = source + 1;
    }
    uci_twin.senders[source] = malloc(sizeof(peer->mark));
    if (uci_twin.senders[source] != NULL) {
        *uci_twin.senders[source] = peer->mark;
    }
}

static void uci_twin_forget_senders(void)
{
    while (uci_twin.senders_count > 0) {
        free(uci_twin.senders[--uci_twin.senders_count]);
    }
    free(uci_twin.senders);
    uci_twin.senders = NULL;
}

static void uci_twin_decide(void *arg, const uci_twin_verdict_t *verdict)
{
    const uci_mark_t *sender = NULL;

    if (verdict->outcome != UCI_TWIN_SAME) {
        sender = uci_twin_sender(verdict->source);
        uci_twin_report_verdict(verdict, sender);
    }
    if (verdict->held != NULL) {
        uci_twin_hold_decide(verdict->held, uci_twin.link, verdict, sender);
    }
}

/* It can't be compared with any more: what it says does not fit together */
static void uci_twin_disbelieve(unsigned twin, const char *why)
{
    uci_error("%s does not understand its twin %u, and leaves it out: %s", uci_process_name(), twin, why);
    uci_twin_link_end(uci_twin.link, twin, UCI_TWIN_LOST);
}

static uci_status_t uci_twin_on_define(void *arg, const uci_twin_define_t *define)
{
    return uci_twin_votes_define(uci_twin.votes, *(unsigned *)arg, define->index, define->source, define->tag);
}

static uci_status_t uci_twin_on_values(void *arg, const uci_twin_values_t *values)
{
    uci_twin_value_t like = {.length = values->length, .form = values->form};

    return uci_twin_votes_add_run(uci_twin.votes, *(unsigned *)arg, values->channel, values->number, &like,
                                  values->digests, values->entry.count);
}

/* We follow, and this is the leader */
static bool uci_twin_follows(unsigned twin)
{
    return (uci_twin.followed != NULL) && (twin == UCI_TWIN_LEADER) && (uci_settings.twins.twin != UCI_TWIN_LEADER);
}

static uci_status_t uci_twin_on_choice(void *arg, const uci_twin_choice_t *choice)
{
    return uci_twin_follows(*(unsigned *)arg)
                   ? uci_twin_follow_on_choice(uci_follow_state(uci_twin.followed), choice->tag, choice->mask,
                                               choice->number, &choice->message)
                   : UCI_OK;
}

static uci_status_t uci_twin_on_probe(void *arg, const uci_twin_probe_t *probe)
{
    return uci_twin_follows(*(unsigned *)arg)
                   ? uci_twin_follow_on_probe(uci_follow_state(uci_twin.followed), probe->tag, probe->mask,
                                              probe->number, &probe->message, probe->removed != 0)
                   : UCI_OK;
}

static uci_status_t uci_twin_on_answer(void *arg, const uci_twin_answer_t *answer)
{
    return (*(unsigned *)arg == UCI_TWIN_LEADER) ? uci_twin_answers_add(answer) : UCI_OK;
}

static uci_status_t uci_twin_on_done(void *arg, const uci_twin_done_t *done)
{
    uci_twin_link_end(uci_twin.link, *(unsigned *)arg, UCI_TWIN_DONE);
    return UCI_OK;
}

static const uci_twin_batch_ops_t uci_twin_batch_ops = {.define = uci_twin_on_define,
                                                        .values = uci_twin_on_values,
                                                        .choice = uci_twin_on_choice,
                                                        .probe  = uci_twin_on_probe,
                                                        .answer = uci_twin_on_answer,
                                                        .done   = uci_twin_on_done};

/* A channel that lacks a message would keep all later ones */
static void uci_twin_has_no_room(unsigned twin)
{
    uci_warn(
            "%s leaves twin %u behind: there is no room for what is to be compared (UCI_TWINS_LOG); it is not compared with from now on",
            uci_process_name(), twin);
    uci_twin_link_end(uci_twin.link, twin, UCI_TWIN_BEHIND);
}

static void uci_twin_heard(unsigned twin, const void *data, size_t length)
{
    const char *reason = NULL;
    uci_status_t status;

    status = uci_twin_batch_read(data, length, twin, uci_twin.heard[twin], &uci_twin_batch_ops, &twin, &reason);
    ++uci_twin.heard[twin];
    if (status == UCI_ERR_NO_MEMORY) {
        uci_twin_has_no_room(twin);
    } else if (status != UCI_OK) {
        uci_twin_disbelieve(twin, (reason != NULL) ? reason : "its messages are of no order");
    }
}

static bool uci_twin_lives(unsigned twin)
{
    return (twin != uci_settings.twins.twin) && (uci_twin_link_state(uci_twin.link, twin) <= UCI_TWIN_TALKING);
}

static void uci_twin_leave_all_behind(void)
{
    unsigned twin;

    for (twin = 0; twin < uci_settings.twins.of; ++twin) {
        if (uci_twin_lives(twin)) {
            uci_twin_has_no_room(twin);
        }
    }
}

static uci_status_t uci_twin_on_own_values(void *arg, const uci_twin_values_t *values)
{
    if (uci_twin_on_values(arg, values) != UCI_OK) {
        uci_twin_leave_all_behind();
        uci_twin_report_no_room(values->entry.count);
    }
    return UCI_OK;
}

/* The batch that has just been sealed. Its values count; of the rest we are the source */
static void uci_twin_hear_ourselves(size_t length)
{
    unsigned me = uci_settings.twins.twin;

    (void)uci_twin_batch_visit_values(uci_twin.buffer, length, uci_twin_on_own_values, &me);
}

static void uci_twin_ended(unsigned twin)
{
    uci_twin_votes_lose(uci_twin.votes, twin);
    if (uci_twin_follows(twin)) {
        uci_twin_follow_ended(uci_follow_state(uci_twin.followed));
    }
}

/* ----------------------------------------------------------- receiving */

/* Who a peer is its HELLO tells; one that was damaged may come after the first frames. Those are sent in MPI_COMM_WORLD, where the tag says it */
static uint32_t uci_twin_source_of(const uci_peer_t *peer, ucp_tag_t tag)
{
    int rank = uci_peer_rank(peer);
    uci_mpi_tag_t mpi;

    if (uci_unlikely(rank < 0)) {
        uci_mpi_tag_decode(uci_mpi_here(), tag, &mpi);
        return (mpi.library != NULL) ? mpi.source : (uint32_t)rank;
    }
    return (uint32_t)rank;
}

/* Within the lock: which message it is. @return false: it can't be compared */
static bool uci_twin_number(const uci_peer_t *peer, ucp_tag_t tag, uci_twin_note_t *note)
{
    uint32_t source = uci_twin_source_of(peer, tag);
    bool is_new;

    note->channel = uci_twin_votes_channel(uci_twin.votes, source, tag, &is_new);
    if (note->channel == UCI_TWIN_CHANNEL_NONE) {
        return false;
    }
    note->number = uci_twin_votes_next(uci_twin.votes, note->channel);
    if (is_new) {
        uci_twin_note_sender(peer, source);
        uci_twin_say(uci_twin_batch_put_define, note->channel, source, tag);
    }
    return true;
}

static bool uci_twin_matched(uci_peer_t *peer, ucp_tag_t tag, uci_twin_note_t *note)
{
    bool ok;

    pthread_mutex_lock(&uci_twin.lock);
    ok = uci_twin_number(peer, tag, note);
    pthread_mutex_unlock(&uci_twin.lock);
    return ok;
}

/* The receive waits for the verdict. @return false: it is there already */
static bool uci_twin_hold(uci_request_t *req, ucs_status_t status, const uci_twin_value_t *value)
{
    uci_twin_hold_t *hold = uci_twin_hold_create(req, status);
    uci_status_t voted;

    voted = uci_twin_votes_add(uci_twin.votes, uci_settings.twins.twin, req->twin.channel, req->twin.number, value,
                               hold);
    uci_twin_report_no_room(voted != UCI_OK);
    if (hold == NULL) {
        return false;
    }
    if (voted != UCI_OK) {
        uci_twin_hold_give_up(hold); /* there will be no verdict */
    }
    return !uci_twin_hold_forget(hold);
}

/* @return true: it is kept */
static bool uci_twin_vote(uci_request_t *req, ucs_status_t status)
{
    uci_twin_value_t value = {.digest = req->twin.digest, .length = req->info.length, .form = req->twin.form};

    if (uci_unlikely(status != UCS_OK)) {
        value.digest = (uint64_t)status;
        value.form   = UCI_TWIN_FORM_NONE;
    }
    uci_twin_report_received(&req->twin);
    uci_twin_say(uci_twin_batch_put_value, req->twin.channel, req->twin.number, &value);
    return uci_twin.correct && uci_twin_hold(req, status, &value);
}

/* What twins have agreed to form the digest of this message of */
static uint32_t uci_twin_form_of(const uci_request_t *req)
{
    uint32_t digest = req->twin.form & 0xff;

    return digest | ((req->info.length > uci_settings.chunk_size) ? (uint32_t)uci_settings.chunk_size << 8 : 0);
}

/* Its chunks were of another size (of a sender that closes, say), or it has been damaged since it was verified: then a digest is formed of
 * what is here */
static bool uci_twin_is_odd(const uci_request_t *req, ucs_status_t status)
{
    return (req->flags & UCI_REQUEST_NUMBERED) && (status == UCS_OK) && (req->twin.form != UCI_TWIN_FORM_NONE) &&
           ((req->flags & UCI_REQUEST_ESCAPED) || (req->twin.form != uci_twin_form_of(req)));
}

static bool uci_twin_received(uci_request_t *req, ucs_status_t status)
{
    bool is_kept = false;

    pthread_mutex_lock(&uci_twin.lock);
    if (!(req->flags & UCI_REQUEST_NUMBERED) && (uci_twin_frame.peer != NULL) &&
        uci_twin_number(uci_twin_frame.peer, req->info.sender_tag, &req->twin)) {
        req->flags |= UCI_REQUEST_NUMBERED;
        req->twin.digest = uci_twin_frame.digest;
        req->twin.form   = uci_twin_frame.form;
    }
    if (uci_unlikely(uci_twin_is_odd(req, status))) {
        req->twin.form   = uci_twin_form_of(req);
        req->twin.digest = uci_twin_hold_digest(req, req->twin.form);
    }
    if (req->flags & UCI_REQUEST_NUMBERED) {
        is_kept = uci_twin_vote(req, status);
    } else {
        uci_twin_report_no_room(1);
    }
    pthread_mutex_unlock(&uci_twin.lock);
    return is_kept;
}

static bool uci_twin_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    bool ok;

    uci_twin_frame.peer   = peer;
    uci_twin_frame.digest = hdr->value;
    uci_twin_frame.form   = hdr->digest;
    ok                    = (peer->worker->twins.follow != NULL) ? uci_follow_arrived(peer, hdr, payload)
                                                                 : uci_recv_arrived_way(peer->worker)(peer, hdr, payload);
    uci_twin_frame.peer   = NULL;
    return ok;
}

static void uci_twin_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length)
{
    uci_twin_frame.peer   = peer;
    uci_twin_frame.digest = 0;
    uci_twin_frame.form   = UCI_TWIN_FORM_NONE;
    if (peer->worker->twins.follow != NULL) {
        uci_follow_lost(peer, hdr, payload, length);
    } else {
        uci_recv_lost(peer, hdr, payload, length);
    }
    uci_twin_frame.peer = NULL;
}

/* ----------------------------------------------------------- following */

static uint32_t uci_twin_next(uint32_t source, uint64_t tag)
{
    return uci_twin_votes_peek(uci_twin.votes, source, tag);
}

static void uci_twin_say_choice(uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message)
{
    uci_twin_say(uci_twin_batch_put_choice, tag, mask, number, message);
    __atomic_store_n(&uci_twin.pressing, true, __ATOMIC_RELAXED);
}

static void uci_twin_say_probe(uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message,
                               bool removed)
{
    uci_twin_say(uci_twin_batch_put_probe, tag, mask, number, message, removed);
    __atomic_store_n(&uci_twin.pressing, true, __ATOMIC_RELAXED);
}

/* The program's first worker: MPIs have their messages in one */
static void uci_twin_begin_following(uci_worker_t *worker)
{
    static const uci_follow_events_t events = {.source = uci_twin_source_of,
                                               .next   = uci_twin_next,
                                               .choice = uci_twin_say_choice,
                                               .probe  = uci_twin_say_probe};

    if (uci_follow_begin(worker, &uci_twin.lock, &events, uci_settings.twins.twin == UCI_TWIN_LEADER,
                         uci_twin.wait_ns) == UCI_OK) {
        uci_twin.followed = worker;
    }
}

/* ------------------------------------------------------------- waiting */

/* Nobody waits for ever: a twin that does not come, or that others wait for too long, is left behind */
static void uci_twin_leave_behind(unsigned twin)
{
    bool is_absent = (uci_twin_link_state(uci_twin.link, twin) == UCI_TWIN_SEEKING);

    uci_warn("%s has waited %u seconds (UCI_TWINS_WAIT) for twin %u, which %s: it is not compared with from now on",
             uci_process_name(), uci_settings.twins_wait, twin, is_absent ? "never came" : "says nothing");
    uci_twin_link_end(uci_twin.link, twin, is_absent ? UCI_TWIN_ABSENT : UCI_TWIN_BEHIND);
}

static void uci_twin_look_at_holds(uint64_t now)
{
    uint64_t oldest = uci_twin_hold_oldest();
    unsigned twin;
    int giver;

    if ((oldest == UINT64_MAX) || (now < oldest + uci_twin.wait_ns)) {
        return;
    }
    giver = uci_twin_hold_takes_from(now - uci_twin.wait_ns);
    if (giver >= 0) {
        if (uci_twin_lives((unsigned)giver)) {
            uci_twin_leave_behind((unsigned)giver);
        }
        uci_twin_link_take_no_more(uci_twin.link, (unsigned)giver);
        return;
    }
    for (twin = 0; twin < uci_settings.twins.of; ++twin) {
        if (uci_twin_lives(twin) && (uci_twin_votes_waiting(uci_twin.votes, twin) > 0)) {
            uci_twin_leave_behind(twin);
            return; /* perhaps the others need wait no more */
        }
    }
}

/* Twins may share the cores, and while a receive waits for a vote its program has nothing to do but to ask again */
static void uci_twin_yield(unsigned count)
{
    static __thread unsigned idle;

    idle = (count == 0) && (uci_twin_hold_oldest() != UINT64_MAX) ? idle + 1 : 0;
    if (idle >= UCI_TWIN_IDLE_TURNS) {
        idle = 0;
        sched_yield();
    }
}

static bool uci_twin_is_pressing(const uci_worker_t *worker)
{
    return uci_twin.correct || __atomic_load_n(&uci_twin.pressing, __ATOMIC_RELAXED) ||
           ((worker->twins.follow != NULL) && uci_follow_is_awake(worker));
}

static unsigned uci_twin_progress(uci_worker_t *worker)
{
    unsigned count;

    if (!uci_twin_is_pressing(worker) && !uci_worker_is_turn(worker, UCI_TWIN_REST_TURNS)) {
        return 0;
    }
    if (pthread_mutex_trylock(&uci_twin.lock) != 0) {
        if (uci_twin.correct) { /* it may want this core, and nothing completes without it */
            sched_yield();
        }
        return 0; /* another thread does it */
    }
    uci_twin_flush();
    count          = uci_twin_link_progress(uci_twin.link);
    uci_stats_here = worker->stats.counters;
    uci_twin_report_agreed(uci_twin_votes_agreed(uci_twin.votes));
    if (worker->twins.follow != NULL) {
        uci_follow_progress(worker);
    }
    if (uci_twin.correct) {
        uci_twin_look_at_holds(uci_process_time_ns());
        count += uci_twin_hold_complete(worker, false);
        uci_twin_yield(count);
    }
    pthread_mutex_unlock(&uci_twin.lock);
    return count;
}

static bool uci_twin_is_waiting(const uci_worker_t *worker)
{
    bool is_waiting;

    pthread_mutex_lock(&uci_twin.lock);
    is_waiting = uci_twin_hold_has(worker) ||
                 ((worker->twins.follow != NULL) && uci_twin_follow_is_waiting(uci_follow_state(worker)));
    pthread_mutex_unlock(&uci_twin.lock);
    return is_waiting;
}

static uci_twin_events_t uci_twin_events = {.matched    = uci_twin_matched,
                                            .received   = uci_twin_received,
                                            .progress   = uci_twin_progress,
                                            .is_waiting = uci_twin_is_waiting};

/* ------------------------------------------------------ a forked child */

static bool uci_twin_child_matched(uci_peer_t *peer, ucp_tag_t tag, uci_twin_note_t *note)
{
    return false;
}

static bool uci_twin_child_received(uci_request_t *req, ucs_status_t status)
{
    return false;
}

static unsigned uci_twin_child_progress(uci_worker_t *worker)
{
    return 0;
}

static bool uci_twin_child_is_waiting(const uci_worker_t *worker)
{
    return false;
}

/* In a child that was forked off: its parent is the twin, and has the card, the links and the numbers of what is said. A turn in the parent's
 * worker would take messages out of memory that both share. */
static void uci_twin_forked(void)
{
    static const pthread_mutex_t unlocked        = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static const uci_twin_events_t of_the_parent = {.matched    = uci_twin_child_matched,
                                                    .received   = uci_twin_child_received,
                                                    .progress   = uci_twin_child_progress,
                                                    .is_waiting = uci_twin_child_is_waiting};

    uci_twin.lock = unlocked; /* whoever had it is not here */
    pthread_mutex_init(&uci_twin_attaching, NULL);
    uci_twin.forked  = true;
    uci_twin.answers = false;
    uci_twin_events  = of_the_parent;
}

/* --------------------------------------------- what the system answers */

static void uci_twin_say_answer(unsigned kind, const uint64_t words[2])
{
    uint32_t number = uci_twin_answers_next(kind);

    uci_twin_say(uci_twin_batch_put_answer, kind, number, words);
    uci_twin_flush(); /* somebody may be waiting for it */
    uci_twin_link_progress(uci_twin.link);
}

/* It never comes: each twin has its own time from now on */
static void uci_twin_stop_answering(const char *why)
{
    uci_twin.answers = false;
    uci_warn("%s asks the system itself from now on, not twin %u (UCI_TWINS_TIME): %s", uci_process_name(),
             UCI_TWIN_LEADER, why);
}

static bool uci_twin_wait_for_answer(unsigned kind, uint64_t words[2])
{
    uint64_t deadline = uci_process_time_ns() + uci_twin.wait_ns;

    while (!uci_twin_answers_take(kind, words)) {
        if (!uci_twin_lives(UCI_TWIN_LEADER)) {
            uci_twin_stop_answering("twin 0 has ended");
            return false;
        }
        if (uci_process_time_ns() > deadline) {
            uci_twin_stop_answering("it does not ask what this twin asks");
            return false;
        }
        if (uci_twin_link_progress(uci_twin.link) == 0) {
            sched_yield();
        }
    }
    return true;
}

bool uci_twin_answer(unsigned kind, uint64_t words[2])
{
    uci_stats_t *here = uci_stats_here;
    bool is_others    = false;

    if (!__atomic_load_n(&uci_twin.answers, __ATOMIC_RELAXED) || (kind >= UCI_TWIN_ANSWER_KINDS)) {
        return false;
    }
    pthread_mutex_lock(&uci_twin.lock);
    if (uci_twin.answers && !uci_twin_link_is_inside(uci_twin.link)) {
        if (uci_settings.twins.twin == UCI_TWIN_LEADER) {
            uci_twin_say_answer(kind, words);
        } else {
            is_others = uci_twin_wait_for_answer(kind, words);
        }
    }
    pthread_mutex_unlock(&uci_twin.lock);
    uci_stats_here = here;
    return is_others;
}

/* ------------------------------------------------------ begin and end */

static void uci_twin_begin(uci_worker_t *worker, uci_twin_open_context_t open_context)
{
    static const uci_twin_link_events_t events = {.heard = uci_twin_heard, .ended = uci_twin_ended};

    pthread_atfork(NULL, NULL, uci_twin_forked);
    uci_twin.correct = (uci_settings.twins_mode == UCI_TWINS_CORRECT);
    uci_twin.wait_ns = uci_settings.twins_wait * 1000000000ul;
    uci_twin.context = open_context();
    uci_twin_batch_init(&uci_twin.batch, uci_twin.buffer, sizeof(uci_twin.buffer), uci_settings.twins.twin);
    if ((uci_twin.context == NULL) ||
        (uci_twin_votes_create(uci_settings.twins.of, uci_settings.twins.twin, uci_settings.twins_log, uci_twin_decide,
                               NULL, &uci_twin.votes) != UCI_OK) ||
        (uci_twin_link_create(uci_twin.context, worker->access.is_mt, &events, &uci_twin.link) != UCS_OK)) {
        uci_fatal("%s can't take part in a comparison of twins (UCI_TWINS)", uci_process_name());
    }
    uci_twin_report_begin(uci_twin.votes);
    uci_twin.answers = uci_settings.twins_time;
}

static bool uci_twin_is_first(void)
{
    bool is_first;

    pthread_mutex_lock(&uci_twin.lock);
    is_first = !uci_twin.ended && (uci_twin.workers_count == 0);
    pthread_mutex_unlock(&uci_twin.lock);
    return is_first;
}

/* It begins outside of the lock: it makes a worker, and who serves siblings has their lock when a message of theirs takes this one */
void uci_twin_attach(uci_worker_t *worker, uci_twin_open_context_t open_context)
{
    if (uci_settings.twins.folder == NULL) {
        return;
    }
    if (uci_twin.forked) {
        uci_debug("%s: a worker is not compared with those of twins: the process was forked off one that is",
                  uci_process_name());
        return;
    }
    pthread_mutex_lock(&uci_twin_attaching);
    if (uci_twin_is_first()) {
        uci_twin_begin(worker, open_context);
        uci_twin_begin_following(worker);
    }
    pthread_mutex_lock(&uci_twin.lock);
    if (uci_twin.ended || (uci_twin.workers_count == UCI_TWIN_WORKERS)) {
        uci_warn("%s: a worker is not compared with those of twins: %s", uci_process_name(),
                 uci_twin.ended ? "the comparison has ended with the last worker before it" : "there are too many");
        goto out;
    }
    uci_twin.workers[uci_twin.workers_count++] = worker;
    worker->twins.events                       = &uci_twin_events;
    uci_worker_take_by(worker, uci_twin_arrived, uci_twin_lost, UCI_REQUEST_RECV | UCI_REQUEST_TWIN);
out:
    pthread_mutex_unlock(&uci_twin.lock);
    pthread_mutex_unlock(&uci_twin_attaching);
}

/* @return whether a twin has still something to say */
static bool uci_twin_is_waited_for(uint64_t begin, uint64_t now)
{
    bool waits = false;
    uint64_t since;
    unsigned twin;

    for (twin = 0; twin < uci_settings.twins.of; ++twin) {
        if (!uci_twin_lives(twin)) {
            continue;
        }
        since = uci_max(begin, uci_twin_link_heard_time(uci_twin.link, twin));
        if (now >= since + uci_twin.wait_ns) {
            uci_twin_leave_behind(twin);
        } else {
            waits = true;
        }
    }
    return waits;
}

/* All that was received is compared, and all that was said is heard */
static void uci_twin_finish(void)
{
    uint64_t begin = uci_process_time_ns();
    uci_twin_follow_counts_t followed;

    uci_twin_say(uci_twin_batch_put_done);
    uci_twin_flush();
    while (uci_twin_is_waited_for(begin, uci_process_time_ns()) ||
           (uci_twin_link_is_busy(uci_twin.link) && (uci_process_time_ns() < begin + uci_twin.wait_ns))) {
        if (uci_twin_link_progress(uci_twin.link) == 0) {
            sched_yield(); /* twins may share the cores */
        }
    }
    uci_twin_votes_lose(uci_twin.votes, uci_settings.twins.twin);
    uci_twin_report_agreed(uci_twin_votes_agreed(uci_twin.votes));
    if (uci_twin.followed != NULL) {
        followed = uci_twin_follow_counts(uci_follow_state(uci_twin.followed));
        uci_twin_report_followed(followed.followed, followed.given_up);
    }
    uci_twin_report_end(uci_twin.link, uci_twin.votes);
}

static void uci_twin_forget_worker(uci_worker_t *worker)
{
    unsigned i;

    for (i = 0; uci_twin.workers[i] != worker; ++i) {
    }
    uci_twin.workers[i] = uci_twin.workers[--uci_twin.workers_count];
}

void uci_twin_detach(uci_worker_t *worker, uci_twin_close_context_t close_context)
{
    if ((worker->twins.events == NULL) || uci_twin.forked) {
        return;
    }
    pthread_mutex_lock(&uci_twin.lock);
    if (uci_twin.workers_count == 1) {
        uci_twin.answers = false;
        uci_twin_finish();
    }
    uci_twin_hold_complete(worker, true);
    if (uci_twin.followed == worker) {
        uci_follow_end(worker);
        uci_twin.followed = NULL;
    }
    worker->twins.events = NULL;
    uci_worker_take_by(worker, uci_recv_arrived_way(worker), uci_recv_lost, UCI_REQUEST_RECV);
    uci_twin_forget_worker(worker);
    if (uci_twin.workers_count == 0) {
        uci_twin_link_destroy(uci_twin.link);
        uci_twin_votes_destroy(uci_twin.votes);
        close_context(uci_twin.context);
        uci_twin_forget_senders();
        uci_twin.ended = true;
    }
    pthread_mutex_unlock(&uci_twin.lock);
}
