/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv_table.h"

#include <stdlib.h>

uint32_t uci_recv_slot_get(uci_worker_t *worker, uci_recv_op_t *op)
{
    uint32_t i, slot, count = uci_max(2 * worker->slots_count, 64u);
    uci_recv_op_t **slots;

    if (worker->slots_free == UINT32_MAX) {
        slots = realloc(worker->slots, count * sizeof(*slots));
        if (slots == NULL) {
            return UINT32_MAX;
        }
        for (i = worker->slots_count; i < count; ++i) {
            /* free slots are odd numbers: (next << 1) | 1 */
            slots[i] = (uci_recv_op_t *)(((uintptr_t)((i + 1 < count) ? i + 1 : UINT32_MAX) << 1) | 1);
        }
        worker->slots_free  = worker->slots_count;
        worker->slots       = slots;
        worker->slots_count = count;
    }
    slot                = worker->slots_free;
    worker->slots_free  = (uint32_t)((uintptr_t)worker->slots[slot] >> 1);
    worker->slots[slot] = op;
    return slot;
}

void uci_recv_slot_put(uci_worker_t *worker, uint32_t slot)
{
    worker->slots[slot] = (uci_recv_op_t *)(((uintptr_t)worker->slots_free << 1) | 1);
    worker->slots_free  = slot;
}

uci_recv_op_t *uci_recv_op_by_slot(uci_worker_t *worker, uint32_t slot, const uci_peer_t *peer, uint32_t seq)
{
    uci_recv_op_t *op;

    if (slot >= worker->slots_count) {
        return NULL;
    }
    op = worker->slots[slot];
    if (((uintptr_t)op & 1) || (op->peer != peer) || ((uint32_t)op->seq != seq)) {
        return NULL;
    }
    return op;
}

uci_recv_op_t *uci_recv_op_by_seq(uci_peer_t *peer, uint64_t seq)
{
    uci_list_for_each(op, &peer->worker->recv_ops, uci_recv_op_t, link)
    {
        if ((op->peer == peer) && (op->seq == seq)) {
            return op;
        }
    }
    return NULL;
}

/* What is left of the header has to name it by its number, and by its slot or peer; zeros, which damage likes to leave, by all of these */
static bool uci_recv_is_named(const uci_recv_op_t *op, const uci_am_hdr_t *hdr)
{
    bool slot = (op->slot == hdr->op), peer = (op->peer->uid == hdr->uid);

    return ((uint32_t)op->seq == hdr->seq) && ((hdr->seq == 0) ? (slot && peer) : (slot || peer));
}

void uci_recv_blame(uci_worker_t *worker, const uci_am_hdr_t *hdr)
{
    uci_recv_op_t *only;

    uci_list_for_each(op, &worker->recv_ops, uci_recv_op_t, link)
    {
        if (uci_recv_is_named(op, hdr)) {
            op->answer_damaged = true;
            return;
        }
    }
    /* Nobody is named. Where but one operation waits, and nothing at all has arrived intact since it asked, it was its answer */
    if (!uci_list_is_empty(&worker->recv_ops) && (worker->recv_ops.next == worker->recv_ops.prev)) {
        only = uci_container_of(worker->recv_ops.next, uci_recv_op_t, link);
        only->answer_damaged |= (worker->intact == only->intact_before);
    }
}
