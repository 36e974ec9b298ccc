/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv_overlap.h"

#include "base/peer.h"
#include "base/request.h"
#include "base/worker_state.h"

static bool uci_recv_overlaps(const uci_recv_op_t *one, const uci_recv_op_t *other)
{
    const char *first = one->buffer->data, *second = other->buffer->data;

    return (other->buffer->kind == UCI_BUFFER_CONTIG) && (first < second + other->length) &&
           (second < first + one->length);
}

void uci_recv_overlap_find(uci_recv_op_t *op)
{
    if (op->buffer->kind != UCI_BUFFER_CONTIG) {
        return;
    }
    uci_list_for_each(other, &op->peer->worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if ((other != op) && uci_recv_overlaps(op, other)) {
            op->overlap = (uci_recv_overlap_t){
                    .found = true, .user_am = (other->req->flags & UCI_REQUEST_USER_AM) != 0, .tag = other->tag};
            return;
        }
    }
}
