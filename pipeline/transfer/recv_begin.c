/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv_begin.h"

#include "both_ways.h"
#include "direct_recv.h"
#include "recv_common.h"

/* Of a peer to whom no endpoint leads yet it is not known */
static bool uci_recv_is_fetched(const uci_recv_op_t *op)
{
    return uci_unlikely(op->large && (op->peer->worker->xfer.large_sends > 0)) && !uci_list_is_empty(&op->peer->eps) &&
           (op->buffer->kind == UCI_BUFFER_CONTIG) && uci_both_is_fetched(op->peer, op->length);
}

void uci_recv_begin(uci_recv_op_t *op, uint32_t slot)
{
    op->way.fetching = uci_recv_is_fetched(op);
    if (op->way.fetching || !uci_direct_take(op, slot)) {
        uci_recv_op_cts(op, 0);
    }
}
