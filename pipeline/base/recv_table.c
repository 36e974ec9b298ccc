/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker_state.h"
#include "peer.h"
#include "recv_table.h"

#include <stdlib.h>

uint32_t uci_recv_slot_get(uci_worker_t *worker, uci_recv_op_t *op)
{
    uint32_t i, slot, count = uci_max(2 * worker->recvs.count, 64u);
    uci_recv_op_t **slots;

    if (worker->recvs.free == UINT32_MAX) {
        slots = realloc(worker->recvs.slots, count * sizeof(*slots));
        if (slots == NULL) {
            return UINT32_MAX;
        }
        for (i = worker->recvs.count; i < count; ++i) {
            /* free slots are odd numbers: (next << 1) | 1 */
            slots[i] = (uci_recv_op_t *)(((uintptr_t)((i + 1 < count) ? i + 1 : UINT32_MAX) << 1) | 1);
        }
        worker->recvs.free  = worker->recvs.count;
        worker->recvs.slots = slots;
        worker->recvs.count = count;
    }
    slot                      = worker->recvs.free;
    worker->recvs.free        = (uint32_t)((uintptr_t)worker->recvs.slots[slot] >> 1);
    worker->recvs.slots[slot] = op;
    return slot;
}

void uci_recv_slot_put(uci_worker_t *worker, uint32_t slot)
{
    worker->recvs.slots[slot] = (uci_recv_op_t *)(((uintptr_t)worker->recvs.free << 1) | 1);
    worker->recvs.free        = slot;
}

uci_recv_op_t *uci_recv_op_by_slot(uci_worker_t *worker, uint32_t slot, const uci_peer_t *peer, uint32_t seq)
{
    uci_recv_op_t *op;

    if (slot >= worker->recvs.count) {
        return NULL;
    }
    op = worker->recvs.slots[slot];
    if (((uintptr_t)op & 1) || (op->peer != peer) || ((uint32_t)op->seq != seq)) {
        return NULL;
    }
    return op;
}

uci_recv_op_t *uci_recv_op_by_seq(uci_peer_t *peer, uint64_t seq)
{
    uci_list_for_each(op, &peer->worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if ((op->peer == peer) && (op->seq == seq)) {
            return op;
        }
    }
    return NULL;
}

uci_recv_op_t *uci_recv_op_of(const uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;

    return uci_unlikely((hdr->type == UCI_AM_DATA) && (hdr->flags & UCI_AM_FLAG_HANDOVER))
                   ? uci_recv_op_by_seq(am->peer, am->seq)
                   : uci_recv_op_by_slot(am->peer->worker, hdr->op, am->peer, hdr->seq);
}
