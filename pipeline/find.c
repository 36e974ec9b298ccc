/* SPDX-License-Identifier: BSD-3-Clause */
#include "find.h"

#include <stdlib.h>

#include "control.h"
#include "dump.h"
#include "handover.h"
#include "log.h"
#include "process.h"
#include "recv.h"
#include "repair.h"
#include "report.h"
#include "send.h"
#include "stats.h"
#include "txlog.h"
#include "wire_check.h"

#define UCI_FIND_INTERVAL_NS 100000000ul /* between questions */
#define UCI_FIND_TRIES       100

typedef struct uci_candidate {
    uci_peer_t *peer;
    uci_am_found_t found;
} uci_candidate_t;

typedef struct uci_orphan {
    uci_list_t link; /* in worker->orphans */
    uci_worker_t *worker;
    uci_request_t *req;     /* NULL: nobody waits (truncated, probe) */
    uci_message_t *message; /* a probe wants to know the length */
    uci_frame_t *frame;     /* NULL: truncated */
    ucp_tag_t tag;
    size_t total;
    uint32_t cookie;
    uint32_t waiting;   /* answers still to come */
    uci_peer_t **asked; /* who has not answered the last question */
    size_t asked_count;
    bool asking;         /* inside of uci_find_ask() */
    unsigned tries;      /* questions that all peers have answered, without success */
    unsigned unanswered; /* questions since then: a peer may be busy outside of UCX for long */
    uint64_t asked_time;
    size_t count;
    uci_candidate_t *candidates;
} uci_orphan_t;

static uint32_t uci_find_cookie;

static void uci_find_ask(uci_orphan_t *orphan)
{
    uci_worker_t *worker = orphan->worker;
    size_t room          = uci_max(worker->peers_count, 1ul);
    uci_peer_t **asked   = realloc(orphan->asked, room * sizeof(*asked));
    uci_control_t *msg;

    if (asked == NULL) {
        room = 0; /* asked again later */
    } else {
        orphan->asked = asked;
    }
    orphan->asked_count = 0;
    orphan->cookie      = __atomic_add_fetch(&uci_find_cookie, 1, __ATOMIC_RELAXED);
    orphan->asked_time  = uci_process_time_ns();
    orphan->waiting     = 1; /* so that answers within the calls below do not end it */
    orphan->asking      = true;
    orphan->count       = 0;
    ++orphan->unanswered;
    uci_worker_for_each_peer(peer, worker)
    {
        if (!peer->known || uci_peer_is_gone(peer) || (peer->status != UCS_OK) || (orphan->asked_count == room)) {
            continue; /* one that left has handed over what it had, and need not answer any more */
        }
        msg = uci_control_get_received(peer, UCI_AM_FIND, SIZE_MAX);
        if (msg != NULL) {
            msg->hdr.op    = orphan->cookie;
            msg->hdr.value = orphan->tag;
            ++orphan->waiting;
            orphan->asked[orphan->asked_count++] = peer;
            uci_control_send(msg);
        }
    }
    orphan->asking = false;
    --orphan->waiting;
}

static uci_orphan_t *uci_find_create(uci_worker_t *worker, ucp_tag_t tag, size_t total)
{
    uci_orphan_t *orphan = calloc(1, sizeof(*orphan));

    if (orphan == NULL) {
        uci_fatal("no memory to find out about a damaged frame");
    }
    orphan->worker = worker;
    orphan->tag    = tag;
    orphan->total  = total;
    uci_list_add_tail(&worker->orphans, &orphan->link);
    ++worker->ops_active;
    return orphan;
}

static void uci_find_destroy(uci_orphan_t *orphan)
{
    uci_list_del(&orphan->link);
    --orphan->worker->ops_active;
    ++orphan->worker->removals;
    if (orphan->frame != NULL) {
        uci_frame_put(&orphan->worker->frames, orphan->frame);
    }
    free(orphan->candidates);
    free(orphan->asked);
    free(orphan);
}

/* Was it asked, and has not answered yet? One that answers for others would have its own message taken for theirs. */
static bool uci_find_is_answer(uci_orphan_t *orphan, const uci_peer_t *peer)
{
    size_t i = 0;

    while ((i < orphan->asked_count) && (orphan->asked[i] != peer)) {
        ++i;
    }
    if (i == orphan->asked_count) {
        return false;
    }
    orphan->asked[i] = orphan->asked[--orphan->asked_count];
    return true;
}

/* Does the payload that arrived carry the digest of this candidate? */
static bool uci_find_fits(const uci_orphan_t *orphan, const uci_frame_hdr_t *hdr)
{
    const uci_digest_ops_t *digest = uci_digest_by_id(hdr->digest);

    return (orphan->frame != NULL) && (digest != NULL) && uci_frame_is_whole(hdr, orphan->total) && (hdr->length > 0) &&
           (digest->digest(orphan->frame->wire + uci_frame_head(hdr->kind), hdr->length) == hdr->value);
}

static bool uci_find_is_received(uci_peer_t *peer, uint64_t seq)
{
    return uci_seqset_has(&peer->rx, seq) || (uci_recv_op_by_seq(peer, seq) != NULL) ||
           uci_match_has(peer->worker, peer->uid, (uint32_t)seq);
}

/* Is it the oldest of its peer's that is not here? Messages of one sender and tag are matched in their order, and so are their
 * orphans: it can be no other. A younger one may have the digest all the same, of the damaged payload of a small message. */
static bool uci_find_is_next(const uci_orphan_t *orphan, const uci_candidate_t *candidate)
{
    const uci_candidate_t *other;
    size_t i;

    for (i = 0; i < orphan->count; ++i) {
        other = &orphan->candidates[i];
        if ((other->peer == candidate->peer) && (other->found.seq < candidate->found.seq) &&
            !uci_find_is_received(other->peer, other->found.seq)) {
            return false;
        }
    }
    return true;
}

/* The one whose digest the payload has, and that is not here */
static const uci_candidate_t *uci_find_fitting(const uci_orphan_t *orphan)
{
    const uci_candidate_t *candidate;
    size_t i;

    for (i = 0; i < orphan->count; ++i) {
        candidate = &orphan->candidates[i];
        if (uci_find_fits(orphan, &candidate->found.hdr) &&
            !uci_find_is_received(candidate->peer, candidate->found.seq) && uci_find_is_next(orphan, candidate)) {
            return candidate;
        }
    }
    return NULL;
}

/* Another orphan may have been answered with it in the meantime; those of unmatched probes keep their claim */
static const uci_candidate_t *uci_find_choose(const uci_orphan_t *orphan, const char **why_p)
{
    const uci_candidate_t *oldest = NULL, *candidate = uci_find_fitting(orphan);
    bool several_peers = false;
    size_t i;

    if (candidate != NULL) {
        return candidate;
    }
    *why_p = "its header is damaged, and no known peer has an unacknowledged message of this tag";
    for (i = 0; i < orphan->count; ++i) {
        candidate = &orphan->candidates[i];
        if (uci_find_is_received(candidate->peer, candidate->found.seq)) {
            continue;
        }
        several_peers |= (oldest != NULL) && (oldest->peer != candidate->peer);
        if ((oldest == NULL) || ((oldest->peer == candidate->peer) && (candidate->found.seq < oldest->found.seq))) {
            oldest = candidate;
        }
    }
    if (several_peers) {
        *why_p = "its header and payload are damaged, and more than one peer may have sent it";
        return NULL;
    }
    return oldest;
}

static void uci_find_report_length(uci_message_t *message, const uci_candidate_t *candidate)
{
    const uci_frame_hdr_t *hdr = &candidate->found.hdr;

    message->hdr    = *hdr;
    message->found  = true;
    message->known  = true;
    message->uid    = hdr->uid;
    message->seq    = hdr->seq;
    message->length = candidate->found.length;
    UCI_STATS_INC(recovered_headers);
}

static void uci_find_resolve(uci_orphan_t *orphan, const uci_candidate_t *chosen)
{
    uci_request_t *req  = orphan->req;
    uci_frame_t *frame  = orphan->frame;
    uci_peer_t *peer    = chosen->peer;
    uci_frame_hdr_t hdr = chosen->found.hdr;
    uint64_t seq        = chosen->found.seq;
    ucp_tag_t tag       = orphan->tag;
    size_t total        = orphan->total;

    if (orphan->message != NULL) {
        uci_find_report_length(orphan->message, chosen);
        uci_find_destroy(orphan);
        return;
    }
    if (frame == NULL) {
        /* truncated: the user has been told; the sender may let go of it */
        uci_find_destroy(orphan);
        uci_recv_delivered(peer, seq, 0);
        if (uci_frame_wants_fin(hdr.kind)) {
            uci_control_fin(peer, seq, UCI_AM_FLAG_TRUNCATED | UCI_AM_FLAG_REPAIR);
        } else {
            uci_control_ack(peer);
        }
        return;
    }
    orphan->frame = NULL;
    uci_find_destroy(orphan);
    UCI_STATS_INC(recovered_headers);
    uci_recv_frame_hdr(req, frame, tag, total, &hdr);
}

static void uci_find_give_up(uci_orphan_t *orphan, const char *reason)
{
    uci_request_t *req = orphan->req;
    ucp_tag_t tag      = orphan->tag;
    ucs_status_t status;

    if ((req == NULL) && (orphan->message == NULL)) {
        uci_find_destroy(orphan); /* truncated: the user has been told */
        return;
    }
    uci_repair_count_lost();
    uci_report_orphan(orphan->worker, tag, orphan->total, reason);
    status = uci_repair_policy();
    if (orphan->message != NULL) {
        /* let the probe see it: the receive that follows gets the status */
        orphan->message->known  = true;
        orphan->message->status = status;
    }
    uci_find_destroy(orphan);
    if (req != NULL) {
        uci_request_complete_recv(req, status, tag, 0);
    }
}

static void uci_find_add(uci_orphan_t *orphan, uci_peer_t *peer, const uci_am_found_t *found, size_t count)
{
    uci_candidate_t *candidates = realloc(orphan->candidates, (orphan->count + count) * sizeof(*candidates));
    size_t i;

    if (candidates == NULL) {
        return; /* asked again later */
    }
    orphan->candidates = candidates;
    for (i = 0; i < count; ++i) {
        candidates[orphan->count].peer = peer;
        memcpy(&candidates[orphan->count].found, &found[i], sizeof(found[i]));
        ++orphan->count;
    }
}

/* What closing peers have left with us is no longer in their logs */
static void uci_find_among_handovers(uci_orphan_t *orphan)
{
    uci_am_found_t found[UCI_FOUND_MAX];
    size_t count;

    uci_worker_for_each_peer(peer, orphan->worker)
    {
        count = uci_handover_find(peer, orphan->tag, found, UCI_FOUND_MAX);
        if (count > 0) {
            uci_find_add(orphan, peer, found, count);
        }
    }
}

static void uci_find_conclude(uci_orphan_t *orphan)
{
    const uci_candidate_t *chosen;
    const char *why;

    uci_find_among_handovers(orphan);
    chosen = uci_find_choose(orphan, &why);
    if (chosen != NULL) {
        uci_find_resolve(orphan, chosen);
    } else if (++orphan->tries >= UCI_FIND_TRIES) {
        uci_find_give_up(orphan, why);
    } else {
        orphan->unanswered = 0;
        orphan->waiting    = UINT32_MAX; /* asked again: the sender may not have introduced itself yet */
    }
}

/* The first orphan whose answers are in and that no older one of the same tag is before */
static uci_orphan_t *uci_find_ready(uci_worker_t *worker)
{
    uci_list_for_each(orphan, &worker->orphans, uci_orphan_t, link)
    {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): an orphan leaves the list before it is freed */
        bool blocked = (orphan->waiting > 0);

        uci_list_for_each(older, &worker->orphans, uci_orphan_t, link)
        {
            if (older == orphan) {
                break;
            }
            blocked |= (older->tag == orphan->tag);
        }
        if (!blocked) {
            return orphan;
        }
    }
    return NULL;
}

static void uci_find_conclude_ready(uci_worker_t *worker)
{
    uci_orphan_t *orphan;

    while ((orphan = uci_find_ready(worker)) != NULL) {
        uci_find_conclude(orphan);
    }
}

void uci_find_start(uci_request_t *req, uci_frame_t *frame, ucp_tag_t tag, size_t total)
{
    uci_orphan_t *orphan = uci_find_create(req->worker, tag, total);

    orphan->req   = req;
    orphan->frame = frame;
    uci_find_ask(orphan);
}

void uci_find_truncated(uci_worker_t *worker, ucp_tag_t tag, size_t total)
{
    uci_find_ask(uci_find_create(worker, tag, total));
}

bool uci_find_length(uci_message_t *message)
{
    uci_orphan_t *orphan;

    uci_list_for_each(other, &message->worker->orphans, uci_orphan_t, link)
    {
        if (other->message == message) {
            return false;
        }
    }
    orphan          = uci_find_create(message->worker, message->tag, message->total);
    orphan->message = message;
    uci_find_ask(orphan);
    return message->known;
}

void uci_find_forget(uci_message_t *message)
{
    uci_list_for_each_safe(orphan, &message->worker->orphans, uci_orphan_t, link)
    {
        if (orphan->message == message) {
            uci_find_destroy(orphan);
        }
    }
}

/* A peer that does not answer may compute for minutes: it is asked less and less often */
static uint64_t uci_find_ask_time(const uci_orphan_t *orphan)
{
    return orphan->asked_time + (UCI_FIND_INTERVAL_NS << uci_min(orphan->unanswered, 6u));
}

uint64_t uci_find_due(const uci_worker_t *worker)
{
    uint64_t due = UINT64_MAX;

    uci_list_for_each(orphan, &worker->orphans, uci_orphan_t, link)
    {
        due = uci_min(due, uci_find_ask_time(orphan));
    }
    return due;
}

/* @return false: none that is left is due. One that was asked about is not due before some time; the question to oneself is answered
 * within the call, and may end another one */
static bool uci_find_ask_due(uci_worker_t *worker, uint64_t now)
{
    uint64_t removals = worker->removals;

    uci_list_for_each(orphan, &worker->orphans, uci_orphan_t, link)
    {
        if (now >= uci_find_ask_time(orphan)) {
            uci_find_ask(orphan);
            if (worker->removals != removals) {
                return true;
            }
        }
    }
    return false;
}

void uci_find_progress(uci_worker_t *worker, uint64_t now)
{
    while (uci_find_ask_due(worker, now)) {
    }
    uci_find_conclude_ready(worker);
}

void uci_find_cleanup(uci_worker_t *worker)
{
    uci_list_for_each_safe(orphan, &worker->orphans, uci_orphan_t, link)
    {
        uci_find_destroy(orphan);
    }
}

/* ------------------------------------------------------------ messages */

/* The receiver has answered to its descriptor */
static bool uci_find_is_matched(const uci_frame_t *frame)
{
    return (frame->op != NULL) && (frame->op->tree != NULL) && uci_send_op_is_matched(frame->op);
}

void uci_find_on_find(uci_peer_t *peer, const uci_am_hdr_t *hdr)
{
    uci_control_t *msg;
    uci_am_found_t *found;
    const uci_frame_hdr_t *frame_hdr;
    uci_frame_t *frame;
    size_t count = 0;
    uint64_t seq;

    msg = uci_control_get(peer, UCI_AM_FOUND, 0, UCI_FOUND_MAX * sizeof(*found));
    if (msg == NULL) {
        return;
    }
    found = (uci_am_found_t *)(void *)msg->payload;
    for (seq = peer->tx_base; (seq < peer->tx_next) && (count < UCI_FOUND_MAX); ++seq) {
        frame = uci_txlog_find(peer, seq);
        if ((frame != NULL) && (frame->tag == hdr->value) && !uci_find_is_matched(frame)) {
            frame_hdr           = uci_frame_hdr(frame);
            found[count].seq    = seq;
            found[count].length = uci_frame_user_length((uci_frame_kind_t)frame_hdr->kind, uci_frame_payload(frame),
                                                        frame_hdr->length);
            uci_frame_describe(frame, (uint32_t)uci_seqset_first_missing(&peer->rx), peer->worker->uid,
                               &found[count].hdr);
            ++count;
        }
    }
    msg->length     = count * sizeof(*found);
    msg->hdr.length = (uint32_t)msg->length;
    msg->hdr.op     = hdr->op;
    uci_control_send(msg);
}

void uci_find_on_found(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uci_list_for_each(orphan, &peer->worker->orphans, uci_orphan_t, link)
    {
        if (orphan->cookie != hdr->op) {
            continue;
        }
        if (!uci_find_is_answer(orphan, peer)) {
            uci_wire_refuse(peer, "FOUND", "what it was not asked, or has answered");
            break;
        }
        if (length > 0) {
            uci_find_add(orphan, peer, data, length / sizeof(uci_am_found_t));
        }
        --orphan->waiting;
        if (!orphan->asking && (uci_find_fitting(orphan) != NULL)) {
            orphan->waiting = 0; /* the others, who may be busy outside of UCX, need not be waited for */
        }
        break;
    }
    uci_find_conclude_ready(peer->worker);
}

void uci_find_dump(const uci_worker_t *worker, int fd)
{
    unsigned shown = 0;

    uci_list_for_each(orphan, &worker->orphans, uci_orphan_t, link)
    {
        if ((orphan->link.next == NULL) || (++shown > UCI_DUMP_MAX)) {
            return;
        }
        uci_dump_line(
                fd,
                "  lost header, tag 0x%lx, %zu bytes on the wire: waits for %u answers, %u tries, %u unanswered, %zu "
                "candidates%s",
                (unsigned long)orphan->tag, orphan->total, orphan->waiting, orphan->tries, orphan->unanswered,
                orphan->count, (orphan->req != NULL) ? ", user waits" : "");
    }
}
