/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct_send.h"

#include <stdlib.h>

#include "both_ways.h"
#include "direct.h"
#include "fill.h"
#include "base/edge.h"
#include "link/bounce.h"
#include "link/control.h"
#include "live/stats.h"
#include "send_common.h"
#include "source.h"
#include "stream.h"

/* Of a message that its receiver may rather fetch: slots filled until he takes the first (he lets go of it when he knows the second), and
 * turns for him to say so, if he seems to send as well */
#define UCI_DIRECT_CAREFUL       2
#define UCI_DIRECT_CAREFUL_TURNS 64

/* A message in slots that plain UCX would have buffered, or of one slot, is completed from a copy when nobody has taken it after so many
 * turns of progress, and one for so many bytes: about as long as its receiver takes it, and as the copy takes */
#define UCI_DIRECT_PATIENCE       24
#define UCI_DIRECT_PATIENCE_BYTES 1024

typedef struct uci_direct_send {
    uint32_t filled;                   /* chunks in slots */
    uint32_t acked;                    /* of these, chunks that have been taken */
    uint32_t patience;                 /* of worker->turns, when it is completed from a copy; 0: not for now */
    uint32_t begun;                    /* worker->turns, if it is careful */
    uint16_t slots[UCI_DIRECT_WINDOW]; /* of chunk i at i mod UCI_DIRECT_WINDOW, acked <= i < filled */
    uint8_t window;                    /* slots reserved */
    bool careful;                      /* it may be fetched instead, until it is taken */
    bool draining;                     /* its receiver is taking it; counted in peer->draining */
    bool fresh;                        /* one slot, and no turn since it was filled */
    bool reminded;                     /* the receiver has asked once */
} uci_direct_send_t;

/* The slot that holds chunk @a index */
static uci_slot_t *uci_direct_slot(const uci_send_op_t *op, uint32_t index)
{
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    return &op->peer->worker->link.bounce.slots[direct->slots[index % UCI_DIRECT_WINDOW]];
}

void *uci_direct_data(const uci_send_op_t *op, uint32_t index)
{
    return uci_direct_slot(op, index)->data;
}

uint16_t uci_direct_first_slot(const uci_send_op_t *op)
{
    return uci_path_state(op, uci_direct_send_t)->slots[0];
}

/* No later than the receiver would have needed to take it, had it been there: the copy costs as much again */
void uci_direct_be_patient(uci_send_op_t *op)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    uint32_t turns            = UCI_DIRECT_PATIENCE + (uint32_t)(op->length / UCI_DIRECT_PATIENCE_BYTES);

    direct->patience = (op->peer->worker->turn.count + (2 * turns)) |
                       1; /* a turn counts twice; 0 says that there is none */
    direct->fresh = (op->chunk.count == 1) && (op->buffer->kind == UCI_BUFFER_CONTIG);
}

bool uci_direct_is_reminded(uci_send_op_t *op)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    bool first                = !direct->reminded;

    direct->reminded = true;
    return first && (op->queries == 0); /* nor if we have asked: it sees nothing where all is filled */
}

static ucs_status_t uci_direct_load(uci_send_op_t *op, uint32_t index, uci_slot_t *slot, uint32_t length,
                                    uci_cut_t *cut_p, uint64_t *value_p)
{
    if (uci_likely(op->buffer->kind == UCI_BUFFER_CONTIG) && (length >= UCI_FILL_MIN)) {
        *value_p = uci_fill_copy(&op->peer->xfer.fill, op->chunk.digest, slot->data,
                                 (const char *)op->buffer->data + ((uint64_t)index * op->chunk.size), length);
        return UCS_OK;
    }
    return uci_send_op_load(op, index, slot->data, length, cut_p, value_p);
}

static ucs_status_t uci_direct_fill(uci_send_op_t *op, uint32_t index)
{
    uci_slot_t *slot = uci_direct_slot(op, index);
    uint64_t mark    = uci_slot_mark(op->peer->uid, op->frame->seq, index);
    uci_cut_t cut    = 0;
    uci_slot_words_t words; /* the reader can write to the slot */
    ucs_status_t status;
    uint64_t value;

    if (uci_unlikely(uci_edge.slot_begins != NULL)) {
        uci_edge.slot_begins(op->peer->worker, slot, mark);
    }
    slot->next   = 0;
    words.length = uci_chunk_length(op->length, op->chunk.size, index);
    status       = uci_direct_load(op, index, slot, words.length, &cut, &value);
    if (uci_unlikely(status != UCS_OK)) {
        return status;
    }
    (void)uci_source_note(op, index, value);
    words.value  = uci_merkle_leaf(op->chunk.tree, index);
    words.cut    = cut;
    words.root   = (index + 1 < op->chunk.count)
                           ? 0
                           : uci_merkle_root(op->chunk.tree, (uint32_t)op->frame->seq, op->length, op->chunk.size);
    slot->value  = words.value;
    slot->root   = words.root;
    slot->length = words.length;
    slot->cut    = words.cut;
    slot->check  = uci_slot_words_check(&words, mark);
    if (uci_unlikely(uci_edge.slot_filled != NULL)) {
        uci_edge.slot_filled(op, slot, mark, index);
    }
    __atomic_store_n(&slot->mark, mark, __ATOMIC_RELEASE);
    if (uci_unlikely(uci_edge.slot_marked != NULL)) {
        uci_edge.slot_marked(op, slot, mark, index);
    }
    return UCS_OK;
}

/* The reader keeps a slot until it knows the next one. @return false: it can't be filled, as op->status says */
static bool uci_direct_fill_next(uci_send_op_t *op)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    uint16_t slot             = UCI_SLOT_NONE;

    if (direct->filled > 0) {
        slot = direct->slots[direct->filled % UCI_DIRECT_WINDOW] = uci_bounce_get(op->peer->worker);
    }
    op->status = uci_direct_fill(op, direct->filled);
    if (uci_unlikely(op->status != UCS_OK)) {
        if (direct->filled > 0) {
            uci_bounce_put(op->peer->worker, slot); /* the first one is taken from the start */
        }
        return false;
    }
    if (direct->filled > 0) {
        __atomic_store_n(&uci_direct_slot(op, direct->filled - 1)->next,
                         uci_slot_next_word(uci_slot_mark(op->peer->uid, op->frame->seq, direct->filled - 1), slot),
                         __ATOMIC_RELEASE);
    }
    op->chunk.next = ++direct->filled;
    if (direct->filled == op->chunk.count) {
        uci_both_send_ends(op);
    }
    return true;
}

static void uci_direct_set_draining(uci_send_op_t *op, bool draining)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    if (direct->draining != draining) {
        direct->draining = draining;
        op->peer->xfer.draining += draining ? 1u : -1u;
    }
}

static bool uci_direct_next_is_taken(const uci_send_op_t *op)
{
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    return (direct->acked < direct->filled) &&
           uci_slot_is_taken(uci_direct_slot(op, direct->acked),
                             uci_slot_mark(op->peer->uid, op->frame->seq, direct->acked));
}

/* Chunks to be filled in this turn. While this core receives something large, that is probably an exchange. */
static unsigned uci_direct_turn(const uci_send_op_t *op)
{
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    const uci_worker_t *worker      = op->peer->worker;

    if (uci_likely(!direct->careful) || op->way.taken) {
        return UCI_DIRECT_TURN;
    }
    if ((worker->xfer.large_recvs > 0) && (worker->turn.count - direct->begun < 2 * UCI_DIRECT_CAREFUL_TURNS)) {
        return 0; /* a turn counts twice */
    }
    if (direct->filled < UCI_DIRECT_CAREFUL) {
        return UCI_DIRECT_CAREFUL - direct->filled;
    }
    return (worker->xfer.large_recvs == 0) ? 1 : 0;
}

/* Is there a slot to fill? */
static bool uci_direct_may_fill(const uci_send_op_t *op)
{
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    return (direct->filled < op->chunk.count) && (direct->filled - direct->acked < direct->window) &&
           (uci_direct_turn(op) > 0);
}

/* @return true if the whole message has been taken, or, as op->status says, can't be */
static bool uci_direct_advance(uci_send_op_t *op)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    unsigned turn;

    while (uci_direct_next_is_taken(op)) {
        uci_bounce_put(op->peer->worker, direct->slots[direct->acked % UCI_DIRECT_WINDOW]);
        ++direct->acked;
        direct->patience = 0; /* it is being taken */
        op->way.taken    = true;
        uci_direct_set_draining(op, true);
    }
    for (turn = uci_direct_turn(op); (turn > 0) && uci_direct_may_fill(op) && uci_direct_fill_next(op); --turn) {
    }
    return (direct->acked == op->chunk.count) || uci_unlikely(op->status != UCS_OK);
}

bool uci_direct_start(uci_send_op_t *op, unsigned keep)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    uci_worker_t *worker      = op->peer->worker;
    unsigned want             = uci_min(op->chunk.count, (uint32_t)UCI_DIRECT_WINDOW);
    unsigned got              = uci_bounce_reserve(worker, want, keep);

    /* with one slot for several chunks the reader would wait for the next, and we for this one */
    if ((got < want) && (got < 2)) {
        uci_bounce_unreserve(worker, got);
        return false;
    }
    direct->window   = (uint8_t)got;
    direct->slots[0] = uci_bounce_get(worker);
    op->state        = UCI_SEND_DIRECT;
    op->way.ops      = &uci_direct_path;
    op->chunk.next   = 0;
    uci_list_add_tail(&worker->xfer.direct_sends, &op->way.link);
    UCI_STATS_INC(direct_messages);
    UCI_STATS_ADD(direct_bytes, op->length);
    return true;
}

static void uci_direct_tell_slot(uci_send_op_t *op)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    uci_control_t *msg        = uci_control_get(op->peer, UCI_AM_SLOT, op->frame->seq, 0);

    if (msg != NULL) {
        msg->hdr.op    = op->way.remote_op;
        msg->hdr.index = direct->slots[0];
        uci_control_send(msg);
    }
}

void uci_direct_insist(uci_send_op_t *op)
{
    uci_direct_set_draining(op, true);
    uci_direct_tell_slot(op);
}

static bool uci_direct_start_told(uci_send_op_t *op)
{
    if (!uci_direct_start(op, 0)) {
        return false;
    }
    uci_direct_insist(op);
    return true;
}

/* Tell its receiver where it is, if there are slots, or wait for those that it gives back next */
bool uci_direct_matched(uci_send_op_t *op)
{
    uci_peer_t *peer = op->peer;

    if (uci_list_is_empty(&peer->xfer.queued) && uci_direct_start_told(op)) {
        return true;
    }
    if (peer->xfer.draining == 0) {
        return false;
    }
    op->state   = UCI_SEND_QUEUED;
    op->way.ops = &uci_direct_path;
    uci_list_add_tail(&peer->xfer.queued, &op->way.link);
    return true;
}

/* An operation with this peer is gone: its slots are for the next message */
void uci_direct_serve(uci_peer_t *peer)
{
    uci_send_op_t *op;

    while (!uci_list_is_empty(&peer->xfer.queued)) {
        op = uci_container_of(peer->xfer.queued.next, uci_send_op_t, way.link);
        uci_list_del(&op->way.link);
        if (uci_direct_start_told(op)) {
            continue;
        }
        if (peer->xfer.draining > 0) {
            uci_list_add_head(&peer->xfer.queued, &op->way.link);
            return;
        }
        uci_stream_rest(op);
    }
}

/* The youngest message, if its user waits for it and not for the one before: then he is probably inside of a blocking send; of a window of
 * messages the others would wait as well. NULL: none. */
static const uci_send_op_t *uci_direct_alone(const uci_worker_t *worker)
{
    const uci_list_t *link          = worker->xfer.direct_sends.prev;
    const uci_send_op_t *op         = uci_container_of(link, uci_send_op_t, way.link);
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    if (!direct->fresh || (direct->patience == 0)) {
        return NULL;
    }
    return ((link->prev == &worker->xfer.direct_sends) ||
            (uci_container_of(link->prev, uci_send_op_t, way.link)->req == NULL))
                   ? op
                   : NULL;
}

/* Nobody has taken it for so long that its user is better served with a copy */
static bool uci_direct_is_impatient(const uci_send_op_t *op)
{
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    return (direct->patience != 0) && ((int)(op->peer->worker->turn.count - direct->patience) >= 0);
}

static bool uci_direct_send_is_due(const uci_send_op_t *op)
{
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    return (direct->acked == op->chunk.count) || uci_direct_next_is_taken(op) || uci_direct_may_fill(op) ||
           direct->fresh || uci_direct_is_impatient(op);
}

/* Most turns find nothing: whoever polls while he waits should not pay for more than looking */
bool uci_direct_sends_are_due(const uci_worker_t *worker)
{
    uci_list_for_each(op, &worker->xfer.direct_sends, uci_send_op_t, way.link)
    {
        if (uci_direct_send_is_due(op)) {
            return true;
        }
    }
    return false;
}

static void uci_direct_end(uci_send_op_t *op)
{
    if (uci_unlikely(op->status != UCS_OK)) {
        uci_send_op_fail(op, op->status);
    } else {
        uci_send_op_finish(op, UCS_OK);
    }
}

/* Fill what has been taken, complete what is through. @return 0 if there was nothing to do: MPIs give the core away then, if there are
 * more processes than cores. */
__attribute__((noinline)) unsigned uci_direct_send_progress(uci_worker_t *worker)
{
    unsigned count = 0;
    uci_list_t todo;
    uci_send_op_t *op;
    uci_direct_send_t *direct;
    const uci_send_op_t *alone;
    uci_request_t *req;
    uint32_t before;

    /* what ends makes room for those that are queued */
    alone = uci_direct_alone(worker);
    uci_list_move(&worker->xfer.direct_sends, &todo);
    while (!uci_list_is_empty(&todo)) {
        op     = uci_container_of(uci_list_requeue(&todo, &worker->xfer.direct_sends), uci_send_op_t, way.link);
        direct = uci_path_state(op, uci_direct_send_t);
        before = direct->filled + direct->acked;
        if (uci_direct_advance(op)) {
            uci_direct_end(op);
            ++count;
            continue;
        }
        count += direct->filled + direct->acked - before;
        direct->fresh = false;
        if (uci_unlikely((op == alone) || uci_direct_is_impatient(op))) {
            direct->patience = 0;
            req              = uci_send_op_buffer_early(op);
            if (req != NULL) {
                uci_stream_part(op, req);
            }
            ++count;
        }
    }
    return count;
}

void uci_direct_fill_first(uci_send_op_t *op)
{
    if (!uci_path_state(op, uci_direct_send_t)->careful) {
        uci_direct_advance(op);
    }
}

void uci_direct_leave(uci_send_op_t *op)
{
    uci_list_del(&op->way.link);
}

void uci_direct_be_careful(uci_send_op_t *op)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    direct->careful = true;
    direct->begun   = op->peer->worker->turn.count;
}

void uci_direct_release(uci_send_op_t *op)
{
    uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    uci_worker_t *worker      = op->peer->worker;

    if (direct->window == 0) {
        return;
    }
    /* the first one is taken from the start */
    for (; direct->acked < uci_max(direct->filled, 1u); ++direct->acked) {
        uci_bounce_put(worker, direct->slots[direct->acked % UCI_DIRECT_WINDOW]);
    }
    uci_bounce_unreserve(worker, direct->window);
    uci_direct_set_draining(op, false);
    direct->window = 0;
}

void uci_direct_withdraw(uci_send_op_t *op)
{
    uci_direct_leave(op);
    uci_direct_release(op);
    *uci_path_state(op, uci_direct_send_t) = (uci_direct_send_t){0};
    op->way.ops                            = NULL;
    op->state                              = UCI_SEND_DESCRIBED;
}

uint32_t uci_direct_unread(const uci_send_op_t *op, uint64_t random, void **data_p)
{
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);
    uint32_t index;

    if ((direct->filled < op->chunk.count) || (direct->acked == direct->filled)) {
        return UINT32_MAX;
    }
    index   = direct->acked + (uint32_t)(random % (direct->filled - direct->acked));
    *data_p = uci_direct_data(op, index);
    return index;
}

void uci_direct_describe_send(const uci_send_op_t *op, char *text, size_t size)
{
    const uci_direct_send_t *direct = uci_path_state(op, uci_direct_send_t);

    snprintf(text, size, "; slots: filled %u, acknowledged %u%s", direct->filled, direct->acked,
             direct->draining ? ", draining" : "");
}
