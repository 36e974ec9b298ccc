/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <stdlib.h>

#include "base/request.h"
#include "link/control.h"
#include "grant.h"
#include "send_common.h"
#include "source.h"
#include "base/worker_lock.h"

/* Chunks to one peer that UCX may hold at a time (what was digested should still be in the cache when the kernel copies it), and
 * those sent in one turn of progress */
#define UCI_STREAM_WINDOW 16
#define UCI_STREAM_TURN   64

/* A chunk that is asked for again */
typedef enum {
    UCI_AGAIN_NOT,
    UCI_AGAIN_WANTED,
    UCI_AGAIN_SENT, /* since then nothing but this has come to an end: UCX may hold it, or another one that was sent with it */
    UCI_AGAIN_TWICE, /* and asked for once more */
} uci_again_t;

size_t uci_stream_part_max = 1ul << 20; /* UCX gets them all at once */

static bool uci_stream_is_idle(const uci_peer_t *peer)
{
    return uci_list_is_empty(&peer->xfer.streams) && uci_list_is_empty(&peer->xfer.agains);
}

/* Have chunks sent to it, if there are any and UCX takes more */
static void uci_stream_wake(uci_peer_t *peer)
{
    if (!uci_stream_is_idle(peer) && uci_list_is_empty(&peer->xfer.stream_link) &&
        (peer->xfer.chunks_held < UCI_STREAM_WINDOW)) {
        uci_list_add_tail(&peer->worker->xfer.streams, &peer->xfer.stream_link);
    }
}

static void uci_stream_want(uci_send_op_t *op, uint32_t index)
{
    op->again.chunks[index] = UCI_AGAIN_WANTED;
    op->again.next          = uci_min(op->again.next, index);
    ++op->again.wanted;
    if (uci_list_is_empty(&op->again.link)) {
        uci_list_add_tail(&op->peer->xfer.agains, &op->again.link);
        uci_stream_wake(op->peer);
    }
}

/* All that was asked for has been sent, and UCX has let go of it: what is asked for from now on is another question */
static void uci_stream_end_round(uci_send_op_t *op)
{
    uint32_t i;

    for (i = 0; i < op->chunk.count; ++i) {
        if (op->again.chunks[i] == UCI_AGAIN_TWICE) {
            uci_stream_want(op, i);
        } else {
            op->again.chunks[i] = UCI_AGAIN_NOT;
        }
    }
}

static void uci_stream_again_done(uci_send_op_t *op)
{
    --op->again.held;
    if ((op->again.held == 0) && (op->again.wanted == 0) && (op->state != UCI_SEND_DONE)) {
        uci_stream_end_round(op);
    }
}

/* The user's send is over when nothing of it is left to be handed to a carrier, its descriptor included */
static void uci_stream_parted(uci_send_op_t *op)
{
    uci_request_t *req = op->parted;

    if (op->way.held > 0) {
        return;
    }
    op->parted = NULL;
    if (op->frame->flags & UCI_FRAME_IN_FLIGHT) {
        op->frame->req = req;
    } else {
        uci_request_complete(req, UCS_OK);
    }
}

static void uci_stream_chunk_done(uci_send_op_t *op, void *span)
{
    uci_worker_t *worker = op->peer->worker;

    uci_worker_enter(worker);
    --op->peer->xfer.chunks_held;
    --op->way.held;
    uci_stream_wake(op->peer);
    if (uci_unlikely(op->parted != NULL)) {
        uci_stream_parted(op);
    }
    uci_send_part_done(op, NULL);
    uci_worker_leave(worker);
}

static void uci_stream_repair_done(uci_send_op_t *op, void *span)
{
    uci_stream_again_done(op);
    uci_stream_chunk_done(op, span);
}

/* The bytes of a chunk: the user's where they are contiguous, else packed into msg->staging; with their digest, made anew if they are
 * sent @a again. Then they go from a copy, too: a program that writes there all the time would make each of them wrong. */
static ucs_status_t uci_stream_load(uci_send_op_t *op, uci_control_t *msg, uint32_t index, uint32_t length, bool again,
                                    uint64_t *value_p)
{
    uint64_t offset    = (uint64_t)index * op->chunk.size;
    bool own           = uci_source_is_own(op);
    const void *direct = (again && !own) ? NULL : uci_buffer_direct(op->buffer, offset, length);
    ucs_status_t status;
    uci_cut_t cut;

    if (direct != NULL) {
        *value_p  = (!again && own) ? uci_merkle_leaf(op->chunk.tree, index) : op->chunk.digest->digest(direct, length);
        msg->data = direct;
    } else {
        msg->staging = malloc(length);
        if (msg->staging == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        status = uci_send_op_load(op, index, msg->staging, length, &cut, value_p);
        if (status != UCS_OK) {
            return status;
        }
        msg->data = msg->staging;
    }
    msg->length     = length;
    msg->hdr.length = length;
    return UCS_OK;
}

/* A generic datatype gives its chunks in their order; for any other all of it has to be copied */
static ucs_status_t uci_stream_have_at_hand(uci_send_op_t *op, uint32_t index)
{
    return ((op->buffer->kind == UCI_BUFFER_GENERIC) &&
            uci_ordered_is_next_out(&op->ordered, (uint64_t)index * op->chunk.size))
                   ? UCS_OK
                   : uci_send_op_settle(op);
}

/* Send one chunk, with @a flags beside LAST */
static ucs_status_t uci_stream_chunk(uci_send_op_t *op, uint32_t index, uint16_t flags)
{
    uint32_t length = uci_chunk_length(op->length, op->chunk.size, index);
    bool again      = (flags & (UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_HANDOVER)) != 0;
    uci_control_t *msg;
    uci_source_t source;
    ucs_status_t status;
    uint64_t value;

    status = uci_stream_have_at_hand(op, index);
    if (status != UCS_OK) {
        return status;
    }
    msg = uci_control_get(op->peer, UCI_AM_DATA, op->frame->seq, 0);
    if (msg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = uci_stream_load(op, msg, index, length, again, &value);
    if (status != UCS_OK) {
        uci_control_put(msg);
        return status;
    }

    source = uci_source_note(op, index, value);
    if (uci_unlikely(source == UCI_SOURCE_DAMAGED) && (flags & UCI_AM_FLAG_REPAIR)) {
        uci_control_put(msg);
        uci_control_send_simple(op->peer, UCI_AM_GONE, op->frame->seq, op->way.remote_op, UCI_AM_FLAG_DAMAGED);
        return UCS_OK;
    }
    if (uci_unlikely(source == UCI_SOURCE_CHANGED)) {
        flags |= UCI_AM_FLAG_CHANGED;
    }
    msg->hdr.digest = (uint8_t)op->chunk.digest->id;
    msg->hdr.flags  = flags;
    msg->hdr.op     = (flags & UCI_AM_FLAG_HANDOVER) ? (uint32_t)(op->frame->seq >> 32) : op->way.remote_op;
    msg->hdr.index  = index;
    msg->hdr.value  = uci_merkle_leaf(op->chunk.tree, index);
    if ((uci_merkle_leaves_set(op->chunk.tree) == op->chunk.count) && (again || (index + 1 == op->chunk.count))) {
        msg->hdr.flags |= UCI_AM_FLAG_LAST;
        msg->hdr.extra = uci_merkle_root(op->chunk.tree, (uint32_t)op->frame->seq, op->length, op->chunk.size);
    } else {
        msg->hdr.extra = uci_send_op_border(op, index);
    }

    msg->op   = op;
    msg->done = (flags & UCI_AM_FLAG_REPAIR) ? uci_stream_repair_done : uci_stream_chunk_done;
    op->again.held += (flags & UCI_AM_FLAG_REPAIR) != 0;
    uci_send_op_pin(op);
    ++op->peer->xfer.chunks_held;
    ++op->way.held;
    uci_control_send(msg);
    return UCS_OK;
}

/* The next chunk of the first message */
static void uci_stream_next(uci_peer_t *peer)
{
    uci_send_op_t *op = uci_container_of(peer->xfer.streams.next, uci_send_op_t, way.link);
    ucs_status_t status;

    if (op->chunk.next + 1 == op->chunk.count) {
        uci_list_del(&op->way.link);
        op->state = UCI_SEND_WAIT_FIN;
    }
    status = uci_stream_chunk(op, op->chunk.next++, 0);
    if (uci_unlikely(status == UCS_ERR_NO_MEMORY)) {
        uci_send_op_query(op); /* the receiver will ask for what it lacks */
    } else if (uci_unlikely(status != UCS_OK)) {
        uci_send_op_fail(op, status);
    }
}

void uci_stream_again(uci_send_op_t *op, uint32_t index)
{
    if (op->again.chunks == NULL) {
        op->again.chunks = calloc(op->chunk.count, sizeof(*op->again.chunks));
        if (op->again.chunks == NULL) {
            return; /* asked for again */
        }
    }
    if (op->again.chunks[index] == UCI_AGAIN_NOT) {
        uci_stream_want(op, index);
    } else if (op->again.chunks[index] == UCI_AGAIN_SENT) {
        op->again.chunks[index] = UCI_AGAIN_TWICE;
    }
}

/* The next one of the first message that is asked for again */
static void uci_stream_next_again(uci_peer_t *peer)
{
    uci_send_op_t *op = uci_container_of(peer->xfer.agains.next, uci_send_op_t, again.link);
    uint32_t index;

    while (op->again.chunks[op->again.next] != UCI_AGAIN_WANTED) {
        ++op->again.next;
    }
    index                   = op->again.next;
    op->again.chunks[index] = UCI_AGAIN_SENT;
    if (--op->again.wanted == 0) {
        uci_list_del(&op->again.link);
        op->again.next = 0;
    }
    ++op->again.held; /* it stays while UCX lets go of it at once */
    (void)uci_stream_chunk(op, index, UCI_AM_FLAG_REPAIR);
    uci_stream_again_done(op);
}

/* Send while UCX takes chunks at once, up to a turn; go on when one is done or in the next turn. One message after the other, so
 * that UCX holds a window for the peer and not for each of its messages. (Meant for large messages over tcp at 25 Gbit/s, where a gain
 * was not measured.) */
static void uci_stream_peer(uci_peer_t *peer)
{
    unsigned turn;

    for (turn = 0; (turn < UCI_STREAM_TURN) && !uci_stream_is_idle(peer); ++turn) {
        if (peer->xfer.chunks_held >= UCI_STREAM_WINDOW) {
            uci_list_del(&peer->xfer.stream_link); /* uci_stream_chunk_done() puts it back */
            return;
        }
        if (!uci_list_is_empty(&peer->xfer.agains)) {
            uci_stream_next_again(peer);
        } else {
            uci_stream_next(peer);
        }
    }
    if (uci_stream_is_idle(peer)) {
        uci_list_del(&peer->xfer.stream_link);
    }
}

void uci_stream_rest(uci_send_op_t *op)
{
    uci_list_del(&op->way.link);
    op->state = UCI_SEND_STREAMING;
    uci_grant_ahead(op);
    uci_list_add_tail(&op->peer->xfer.streams, &op->way.link);
    uci_stream_wake(op->peer);
}

void uci_stream_all_again(uci_send_op_t *op)
{
    uint32_t i;

    for (i = 0; i < op->chunk.count; ++i) {
        uci_stream_again(op, i);
    }
}

void uci_stream_hand_over(uci_send_op_t *op)
{
    uint32_t i;

    if ((op->req != NULL) || (op->chunk.tree == NULL)) {
        return; /* a send still pending is the user's to wait for */
    }
    if (uci_unlikely(op->status != UCS_OK)) {
        uci_send_op_finish(op, op->status); /* there is nothing: who asks for it finds that we are gone */
        return;
    }
    uci_list_del(&op->way.link); /* its slots stay as they are: they may be read later */
    for (i = 0; i < op->chunk.count; ++i) {
        uci_stream_chunk(op, i, UCI_AM_FLAG_HANDOVER);
    }
    op->chunk.next = op->chunk.count;
    op->pushed     = true;
    op->state      = UCI_SEND_WAIT_FIN;
}

/* Chunks that are all in slots need nobody to come back */
static bool uci_stream_may_push(const uci_send_op_t *op)
{
    if ((op->length > uci_stream_part_max) || (op->chunk.tree == NULL) || (op->status != UCS_OK) ||
        (op->peer->uid == op->peer->worker->uid) || uci_conversation_is_leaving(&op->peer->conversation)) {
        return false;
    }
    return (op->state == UCI_SEND_DESCRIBED) ||
           ((op->state == UCI_SEND_DIRECT) && !op->way.taken && (op->chunk.next < op->chunk.count));
}

void uci_stream_part(uci_send_op_t *op, uci_request_t *req)
{
    if (uci_stream_may_push(op)) {
        uci_stream_hand_over(op);
    }
    op->parted = req;
    uci_stream_parted(op);
}

static unsigned uci_stream_progress(uci_worker_t *worker)
{
    uci_list_for_each_safe(peer, &worker->xfer.streams, uci_peer_t, xfer.stream_link)
    {
        uci_stream_peer(peer);
    }
    return 1;
}

const uci_path_ops_t uci_stream_path = {.way = UCI_WAY_STREAM, .progress = uci_stream_progress};
