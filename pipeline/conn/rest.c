/* SPDX-License-Identifier: BSD-3-Clause */
#include "rest.h"

#include "base/resting.h"
#include "close.h"
#include "link/bounce.h"
#include "link/link_recv.h"
#include "link/mailbox.h"
#include "link/txlog.h"

/* Fewer are not worth looking */
#define UCI_REST_MIN 16u

static bool uci_rest_is_idle(const uci_peer_t *peer)
{
    return uci_link_part_is_idle(&peer->tx, &peer->log, &peer->rx) && uci_mailbox_part_is_idle(&peer->box) &&
           uci_control_part_is_idle(&peer->talk) && uci_transfer_part_is_idle(&peer->xfer) &&
           uci_message_part_is_idle(&peer->msgs) && uci_rma_part_is_idle(&peer->rma);
}

/* Has the program no endpoint to it, nor been told of one? */
static bool uci_rest_is_alone(const uci_peer_t *peer)
{
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        if (ep->user || ep->shown) {
            return false;
        }
    }
    return uci_list_is_empty(&peer->lanes.lost) && !uci_close_is_going_on(peer);
}

/* Of our side it is over too if its program has never had an endpoint, and so none to close */
static bool uci_rest_is_over(const uci_peer_t *peer)
{
    const uci_conversation_t *conversation = &peer->conversation;
    bool is_gone = uci_conversation_is_gone(conversation) && !uci_conversation_is_back(conversation);

    return (uci_conversation_is_ended(conversation) || is_gone) && (peer->uid != peer->worker->uid) &&
           (peer->uid != 0) && uci_rest_is_alone(peer);
}

/* UCI's own. UCX's go with the worker, as those do that UCX makes for who connects to it: to close one whose other side is gone is an error to it */
static void uci_rest_forget_eps(uci_peer_t *peer)
{
    uci_list_for_each_safe(ep, &peer->eps, uci_ep_t, link)
    {
        uci_ep_destroy(ep);
    }
}

static bool uci_rest_lay(uci_peer_t *peer)
{
    if (!uci_rest_is_over(peer)) {
        return false;
    }
    uci_mailbox_unmap(peer);
    uci_txlog_release(peer);
    if (!uci_rest_is_idle(peer) || (uci_resting_keep(peer->worker, peer) != UCS_OK)) {
        return false;
    }
    uci_rest_forget_eps(peer);
    uci_bounce_unmap(peer);
    uci_link_cleanup(peer);
    uci_peer_destroy(peer);
    return true;
}

void uci_rest_progress(uci_worker_t *worker)
{
    if (uci_likely(worker->conn.ended < uci_max(worker->peers.count / 2, (size_t)UCI_REST_MIN))) {
        return;
    }
    worker->conn.ended = 0;
    if (!worker->self.seals && (worker->twins.events == NULL)) {
        uci_worker_peers_weed(worker, uci_rest_lay);
    }
}
