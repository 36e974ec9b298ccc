/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_memory.h"

#include <stdlib.h>

#include "base/edge.h"
#include "base/path.h"
#include "inject_bytes.h"
#include "inject_out.h"
#include "link/slot.h"
#include "live/stats.h"

_Static_assert(UCI_INJECT_SLOTS == UCI_SLOT_COUNT, "one for each slot");

/* --------------------------------------------------------------- boxes */

/* As it is, not at all, or a damaged image of the same length; or damage in the log. There is no other order in a box */
static void uci_inject_post(uci_frame_t *frame, char *place, uint64_t mark)
{
    uci_peer_t *peer = frame->peer;
    size_t length;
    char *wire;

    if (uci_inject_order(frame, false) == UCI_INJECT_DROP) {
        return;
    }
    wire = uci_inject_frame(frame, true, &length);
    uci_box_tx_post(&peer->box.tx, place, (wire != NULL) ? wire : frame->wire, frame->total, mark);
    if (wire == NULL) {
        uci_inject_log(frame);
    }
    free(wire);
}

/* --------------------------------------------------------------- slots */

/* Of the faults that hit one content of a slot, one is seen if it has been read */
static void uci_inject_slot_settle(uint8_t *hits, bool read)
{
    UCI_STATS_ADD(faults_unseen, *hits - (read && (*hits > 0)));
    *hits = 0;
}

static void uci_inject_slot_begins(uci_worker_t *worker, uci_slot_t *slot, uint64_t mark)
{
    /* whoever comes for the old content from now on finds the new word */
    uint64_t claim = __atomic_exchange_n(&slot->claim, ~mark, __ATOMIC_ACQ_REL);

    uci_inject_slot_settle(&worker->link.bounce.inject.hits[slot - worker->link.bounce.slots], claim == slot->mark);
}

static void uci_inject_slot_hit(uci_worker_t *worker, const uci_slot_t *slot, uint64_t count)
{
    worker->link.bounce.inject.hits[slot - worker->link.bounce.slots] += (uint8_t)count;
}

static void uci_inject_slots_end(uci_worker_t *worker)
{
    unsigned i;

    for (i = 0; (worker->link.bounce.slots != NULL) && (i < UCI_SLOT_COUNT); ++i) {
        uci_inject_slot_begins(worker, &worker->link.bounce.slots[i], 0);
    }
}

static void uci_inject_slot_taken(uci_slot_t *slot, uint64_t mark)
{
    uint64_t unread = ~mark;

    (void)__atomic_compare_exchange_n(&slot->claim, &unread, mark, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void uci_inject_slot_payload(uci_send_op_t *op, uci_slot_t *slot, uint32_t index, const uci_fault_t *fault)
{
    uint64_t before = XXH3_64bits(slot->data, slot->length);
    uint32_t other  = (index + 1 < op->chunk.count) ? index + 1 : 0;

    if ((fault->kind == UCI_FAULT_SWAP) && (op->buffer->kind != UCI_BUFFER_GENERIC)) {
        uci_buffer_read_plain(op->buffer, (uint64_t)other * op->chunk.size, slot->data,
                              uci_min(slot->length, uci_chunk_length(op->length, op->chunk.size, other)),
                              op->chunk.digest);
        if (XXH3_64bits(slot->data, slot->length) != before) {
            return;
        }
    }
    uci_inject_in_place(fault, slot->data, slot->length, uci_inject_stale(slot->length));
}

static void uci_inject_slot_filled(uci_send_op_t *op, uci_slot_t *slot, uint64_t mark, uint32_t index)
{
    int rank        = uci_peer_rank(op->peer);
    uint64_t before = uci_fault_count();
    uci_fault_t fault;

    if (op->inject.hit & UCI_INJECTED_COPY) {
        return;
    }
    if (uci_fault_draw(UCI_FAULT_LEAF, op->length, rank, &fault)) { /* first: it makes the digest fit */
        uci_inject_bytes(&fault, slot->data, slot->length);
        slot->value = op->chunk.digest->digest(slot->data, slot->length);
        slot->check = uci_slot_check(slot, mark);
    }
    if (uci_fault_draw(UCI_FAULT_TREE, op->length, rank, &fault)) {
        uci_inject_bytes(&fault, ((index + 1 == op->chunk.count) && (fault.random & 4)) ? &slot->root : &slot->value,
                         sizeof(slot->value));
        slot->check = uci_slot_check(slot, mark);
    }
    if (uci_fault_draw(UCI_FAULT_PAYLOAD, op->length, rank, &fault)) {
        uci_inject_slot_payload(op, slot, index, &fault);
    } else {
        uci_inject_remember(slot->data, slot->length);
    }
    if (uci_fault_draw(UCI_FAULT_HEADER, op->length, rank, &fault)) {
        uci_inject_bytes(&fault, &slot->value, offsetof(uci_slot_t, next) - offsetof(uci_slot_t, value));
    }
    uci_inject_slot_hit(op->peer->worker, slot, uci_fault_count() - before);
    op->inject.hit |= (uci_fault_count() != before) ? UCI_INJECTED_WAY : 0;
}

/* ------------------------------------------------------- spans and copies */

/* @a length bytes of a message, sealed, that lie in a span or slot */
static void uci_inject_span_filled(uci_send_op_t *op, void *data, size_t length)
{
    uci_fault_t fault;
    size_t first;

    if (!(op->inject.hit & UCI_INJECTED_COPY) &&
        uci_fault_draw(UCI_FAULT_MEMORY, op->length, uci_peer_rank(op->peer), &fault)) {
        first = (fault.random % uci_div_up(length, (size_t)op->chunk.size)) * op->chunk.size; /* one chunk of a span */
        uci_inject_bytes(&fault, (char *)data + first, uci_min(length - first, (size_t)op->chunk.size));
        op->inject.hit |= UCI_INJECTED_WAY;
    }
}

static void uci_inject_slot_marked(uci_send_op_t *op, uci_slot_t *slot, uint64_t mark, uint32_t index)
{
    uint64_t before = uci_fault_count();

    if (__atomic_load_n(&slot->claim, __ATOMIC_ACQUIRE) == ~mark) { /* else it is too late */
        uci_inject_span_filled(op, slot->data, uci_chunk_length(op->length, op->chunk.size, index));
        uci_inject_slot_hit(op->peer->worker, slot, uci_fault_count() - before);
    }
}

static void uci_inject_copied(uci_send_op_t *op)
{
    uci_fault_t fault;
    uint32_t index;
    void *data;

    /* else the copy is what the rest is sent from */
    if ((op->state != UCI_SEND_DIRECT) || (op->way.ops->unread(op, 0, &data) == UINT32_MAX)) {
        return;
    }
    if (!uci_fault_draw(UCI_FAULT_MEMORY, op->length, uci_peer_rank(op->peer), &fault)) {
        return;
    }
    if ((fault.random & 1) || (op->inject.hit & UCI_INJECTED_WAY)) {
        index = op->way.ops->unread(op, fault.random >> 1, &data);
        uci_inject_bytes(&fault, data, uci_chunk_length(op->length, op->chunk.size, index));
        op->inject.hit |= UCI_INJECTED_WAY;
    } else {
        uci_inject_bytes(&fault, op->copy, op->length);
        op->inject.hit |= UCI_INJECTED_COPY;
    }
}

void uci_inject_memory_install(bool here, bool somewhere)
{
    uci_edge.slot_taken  = somewhere ? uci_inject_slot_taken : NULL;
    uci_edge.post        = here ? uci_inject_post : NULL;
    uci_edge.slot_begins = here ? uci_inject_slot_begins : NULL;
    uci_edge.slot_filled = here ? uci_inject_slot_filled : NULL;
    uci_edge.slot_marked = here ? uci_inject_slot_marked : NULL;
    uci_edge.slots_end   = here ? uci_inject_slots_end : NULL;
    uci_edge.span_filled = here ? uci_inject_span_filled : NULL;
    uci_edge.copied      = here ? uci_inject_copied : NULL;
}
