/* SPDX-License-Identifier: BSD-3-Clause */
#include "blame.h"

#include "base/ask.h"
#include "base/am_handler.h"
#include "control.h"

/* What is left of the header has to name it by its number, and by its slot or peer; zeros, which damage likes to leave, by all of these */
static bool uci_blame_is_named(const uci_am_hdr_t *hdr, uint64_t seq, uint32_t slot, const uci_peer_t *peer)
{
    bool is_slot = (slot == hdr->op), is_peer = (peer->uid == hdr->uid);

    return ((uint32_t)seq == hdr->seq) && ((hdr->seq == 0) ? (is_slot && is_peer) : (is_slot || is_peer));
}

static bool uci_blame_recv(uci_worker_t *worker, const uci_am_hdr_t *hdr)
{
    uci_recv_op_t *only;

    uci_list_for_each(op, &worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if (uci_blame_is_named(hdr, op->seq, op->slot, op->peer)) {
            uci_ask_spoil(&op->ask);
            return true;
        }
    }
    /* Nobody is named. Where but one operation waits, and nothing at all has arrived intact since it asked, it was its answer */
    if (!uci_list_is_empty(&worker->xfer.recv_ops) && (worker->xfer.recv_ops.next == worker->xfer.recv_ops.prev)) {
        only = uci_container_of(worker->xfer.recv_ops.next, uci_recv_op_t, link);
        if (worker->talk.intact == only->repair.intact_before) {
            uci_ask_spoil(&only->ask);
        }
    }
    return false;
}

static bool uci_blame_send(uci_worker_t *worker, const uci_am_hdr_t *hdr)
{
    uci_list_for_each(op, &worker->xfer.send_ops, uci_send_op_t, all)
    {
        if ((op->peer->uid == hdr->uid) && ((uint32_t)op->frame->seq == hdr->seq)) {
            uci_ask_name(&op->ask);
            return true;
        }
    }
    return false;
}

/* Is it, as it is now, of a kind that is about no operation? */
static bool uci_blame_is_general(const uci_worker_t *worker, const uci_am_hdr_t *hdr)
{
    const uci_am_handler_t *handler = uci_am_handler(worker, hdr->type);

    return (handler != NULL) && (handler->about == UCI_AM_ABOUT_PEER) && (hdr->seq == 0);
}

void uci_blame_anything(uci_worker_t *worker, uci_peer_t *peer)
{
    ++*((peer != NULL) ? &peer->talk.damage : &worker->talk.damage);
}

void uci_blame(uci_worker_t *worker, const uci_am_hdr_t *hdr)
{
    bool is_recv, is_send;

    if (hdr == NULL) {
        uci_blame_anything(worker, NULL);
        return;
    }
    is_recv = uci_blame_recv(worker, hdr);
    is_send = uci_blame_send(worker, hdr); /* numbers of both directions may be the same */
    if (!is_recv && !is_send && !uci_blame_is_general(worker, hdr)) {
        uci_blame_anything(worker, uci_worker_peer_find(worker, hdr->uid));
    }
}
