/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct_recv.h"

#include <stdlib.h>

#include "base/am_handler.h"
#include "base/ask.h"
#include "base/edge.h"
#include "base/unseen.h"
#include "base/recv_table.h"
#include "base/wire_check.h"
#include "direct.h"
#include "link/bounce.h"
#include "link/control.h"
#include "live/stats.h"
#include "recv_common.h"
#include "repair.h"

/* Nothing more comes from slots */
static void uci_direct_stop(uci_recv_op_t *op)
{
    uci_list_del(&op->way.link);
}

/* A slot's own fields can't be believed: all that is missing has to come another way */
static void uci_direct_give_up(uci_recv_op_t *op)
{
    UCI_STATS_INC(mismatched_headers);
    uci_direct_stop(op);
    op->way.ops      = NULL;
    op->way.slotless = true;
    uci_recv_op_cts(op, 0);
    uci_ask_doubt(&op->ask);
    uci_control_ask_soon(op->peer->worker);
}

/* A chunk whose words have been checked */
static void uci_direct_take_chunk(uci_recv_op_t *op, const uci_slot_t *slot, const uci_slot_words_t *words)
{
    uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);
    uint32_t index            = direct->taken++;
    const void *data;
    uint64_t value;

    direct->held = true;
    ++op->way.arrived;
    if (direct->taken == op->chunk.count) {
        op->chunk.root      = words->root;
        op->chunk.have_root = true;
    }
    if (uci_unlikely(op->chunk.state[index] == UCI_CHUNK_GOOD)) {
        uci_unseen_pass(op->chunk.digest, slot->data, words->length, words->value);
        return;
    }
    data = uci_recv_op_own(op, slot->data, words->length);
    if (uci_unlikely(data == NULL)) {
        uci_recv_op_chunk_bad(op, index, UCI_WAY_DIRECT, words->value, NULL, 0);
        return;
    }
    if (uci_unlikely(op->buffer->kind == UCI_BUFFER_GENERIC)) {
        if (uci_recv_op_unpack(op, index, data, words->length, words->value, (uci_cut_t)words->cut)) {
            uci_recv_op_chunk_good(op, index, words->value, UCI_RUNG_NONE, false);
            return;
        }
        if (!uci_recv_op_collect(op)) {
            uci_recv_op_chunk_bad(op, index, UCI_WAY_DIRECT, words->value, NULL, 0);
            return;
        }
    }
    value = uci_buffer_write(op->buffer, (uint64_t)index * op->chunk.size, data, words->length, op->chunk.digest,
                             words->value);
    if (uci_likely(value == words->value)) {
        uci_recv_op_chunk_good(op, index, value, UCI_RUNG_NONE, false);
    } else {
        uci_recv_op_chunk_bad(op, index, UCI_WAY_DIRECT, words->value, data, words->length);
    }
}

static uci_slot_t *uci_direct_slot_now(const uci_recv_op_t *op)
{
    const uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);

    return uci_bounce_slot_of(op->peer, direct->slot_now);
}

/* Let go of the slot that was taken, if it is known where the next chunk is. @return true if it is. */
static bool uci_direct_follow(uci_recv_op_t *op)
{
    uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);
    uci_slot_t *slot          = uci_direct_slot_now(op);
    uint64_t mark;
    uint32_t next;

    if (!direct->held) {
        return true;
    }
    next = __atomic_load_n(&slot->next, __ATOMIC_ACQUIRE);
    if (next == 0) {
        return false;
    }
    mark = uci_slot_mark(op->peer->worker->uid, op->seq, direct->taken - 1);
    uci_slot_ack(slot, mark);
    direct->held     = false;
    direct->slot_now = uci_slot_next(mark, next);
    return true;
}

/* What a slot says of the next chunk, read once. @return false: that can't be believed. */
static bool uci_direct_read(const uci_recv_op_t *op, const uci_slot_t *slot, uint64_t mark, uci_slot_words_t *words_p)
{
    const uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);
    uci_slot_read(slot, words_p);
    if (uci_unlikely(__atomic_load_n(&slot->check, __ATOMIC_RELAXED) != uci_slot_words_check(words_p, mark))) {
        return false;
    }
    if (uci_unlikely(words_p->length != uci_chunk_length(op->length, op->chunk.size, direct->taken))) {
        uci_wire_refuse(op->peer, "a slot", "a length that its chunk does not have");
        return false;
    }
    return true;
}

/* Take what is there. The operation may be over afterwards. @return how many chunks that was. */
static unsigned uci_direct_advance_recv(uci_recv_op_t *op)
{
    uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);
    uci_slot_words_t words;
    unsigned turn;
    uci_slot_t *slot;
    uint64_t mark;

    for (turn = 0; (turn < UCI_DIRECT_TURN) && uci_direct_follow(op); ++turn) {
        slot = uci_direct_slot_now(op);
        mark = uci_slot_mark(op->peer->worker->uid, op->seq, direct->taken);
        if (uci_likely(slot != NULL) && (__atomic_load_n(&slot->mark, __ATOMIC_ACQUIRE) != mark)) {
            return turn;
        }
        if (uci_unlikely(uci_edge.slot_taken != NULL) && (slot != NULL)) {
            uci_edge.slot_taken(slot, mark);
        }
        if (uci_unlikely((slot == NULL) || !uci_direct_read(op, slot, mark, &words))) {
            uci_direct_give_up(op);
            return turn;
        }
        uci_direct_take_chunk(op, slot, &words);
        if (direct->taken == op->chunk.count) {
            uci_direct_stop(op);
            uci_recv_op_advance(op);
            return turn + 1;
        }
    }
    return turn;
}

bool uci_direct_take(uci_recv_op_t *op, uint16_t slot)
{
    uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);

    if (uci_bounce_slot_of(op->peer, slot) == NULL) {
        return false;
    }
    op->way.ops      = &uci_direct_path;
    direct->slot_now = slot;
    uci_list_add_tail(&op->peer->worker->xfer.direct_recvs, &op->way.link);
    uci_direct_advance_recv(op);
    return true;
}

/* What damage has made of a slot is for uci_direct_advance_recv() to say */
static bool uci_direct_recv_is_due(const uci_recv_op_t *op)
{
    const uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);
    const uci_slot_t *slot          = uci_direct_slot_now(op);

    if (direct->held) {
        return __atomic_load_n(&slot->next, __ATOMIC_ACQUIRE) != 0;
    }
    return (slot == NULL) || (__atomic_load_n(&slot->mark, __ATOMIC_ACQUIRE) ==
                              uci_slot_mark(op->peer->worker->uid, op->seq, direct->taken));
}

bool uci_direct_recvs_are_due(const uci_worker_t *worker)
{
    uci_list_for_each(op, &worker->xfer.direct_recvs, uci_recv_op_t, way.link)
    {
        if (uci_direct_recv_is_due(op)) {
            return true;
        }
    }
    return false;
}

/* Take what has been filled. @return as above. */
__attribute__((noinline)) unsigned uci_direct_recv_progress(uci_worker_t *worker)
{
    unsigned count = 0;
    uci_list_t todo;

    uci_list_move(&worker->xfer.direct_recvs, &todo);
    while (!uci_list_is_empty(&todo)) {
        count += uci_direct_advance_recv(
                uci_container_of(uci_list_requeue(&todo, &worker->xfer.direct_recvs), uci_recv_op_t, way.link));
    }
    return count;
}

/* The last slot is acknowledged when the message is verified whole */
bool uci_direct_finish(uci_recv_op_t *op)
{
    uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);

    if (direct->taken < op->chunk.count) {
        return false;
    }
    uci_slot_ack(uci_direct_slot_now(op), uci_slot_mark(op->peer->worker->uid, op->seq, op->chunk.count - 1));
    return !op->way.reminded; /* a sender who was may have left its slots, and looks at no acknowledgement */
}

static const char *uci_direct_check_slot(const uci_am_t *am)
{
    return (am->hdr->index < UCI_SLOT_COUNT) ? NULL : "a slot that there is not";
}

static const char *uci_direct_check_fits(const uci_recv_op_t *op, const uci_am_t *am)
{
    return (op->chunk.size <= UCI_SLOT_SIZE) ? NULL : "a slot that can't hold its chunks";
}

static void uci_direct_on_slot(uci_am_t *am)
{
    uci_recv_op_t *op = uci_recv_op_of(am);

    if ((op != NULL) && (op->chunk.tree != NULL) && (op->way.ops != &uci_direct_path) &&
        !uci_direct_take(op, (uint16_t)am->hdr->index) && !op->way.slotless) {
        op->way.slotless = true; /* its sender thinks that we see its slots, and would wait */
        uci_recv_op_cts(op, 0);
    }
}

UCI_AM_HANDLER(SLOT, 19, "S, answer to CTS, or later when slots are free: chunk 0 comes in slot `index`", "", "none",
               "R sends CTS again, S streams", .grain = 1, .about = UCI_AM_ABOUT_RECV, .in_clear = true,
               .check = uci_direct_check_slot, .check_recv = uci_direct_check_fits, .take = uci_direct_on_slot);

void uci_direct_describe_recv(const uci_recv_op_t *op, char *text, size_t size)
{
    const uci_direct_recv_t *direct = uci_path_state(op, uci_direct_recv_t);

    snprintf(text, size, "; slots: now %u, taken %u%s", direct->slot_now, direct->taken, direct->held ? ", held" : "");
}
