/* SPDX-License-Identifier: BSD-3-Clause */
#include "lost.h"

#include <stdlib.h>

#include "base/worker_lock.h"
#include "conversation/conversation.h"
#include "endpoint.h"
#include "link/control.h"
#include "rma/rma.h"
#include "transfer/recv_common.h"
#include "transfer/send_common.h"
#include "util/log.h"
#include "util/process.h"

/* How long it may be silent */
#define UCI_LOST_NS 1000000000ul

typedef struct uci_lost {
    uci_list_t link; /* in worker->conn.lost; it has work in each turn */
    uint64_t uid;
    uint64_t deadline;
    ucs_status_t status;
} uci_lost_t;

static bool uci_lost_has_other(const uci_peer_t *peer)
{
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        if (!ep->half && !ep->closing) {
            return true;
        }
    }
    return false;
}

static bool uci_lost_note(uci_peer_t *peer, ucs_status_t status)
{
    uci_lost_t *lost = malloc(sizeof(*lost));

    if (lost == NULL) {
        return false;
    }
    lost->uid      = peer->uid;
    lost->deadline = uci_process_time_ns() + UCI_LOST_NS;
    lost->status   = status;
    uci_list_add_tail(&peer->worker->conn.lost, &lost->link);
    uci_worker_work_begins(peer->worker);
    return true;
}

static void uci_lost_take(uci_ep_t *ep, ucs_status_t status)
{
    uci_peer_t *peer = ep->peer;

    uci_info("an endpoint of UCI's own to %s failed: %s", uci_peer_name(peer), uci_ucp.status_string(status));
    if (!uci_conversation_is_heard(&peer->conversation)) {
        return;
    }
    uci_ep_lose(ep);
    if (uci_lost_has_other(peer)) {
        return;
    }
    uci_control_unhear(peer);
    if (!uci_lost_note(peer, status)) {
        uci_ep_abandon(peer, status);
    }
}

static uci_ep_t *uci_lost_find(uci_worker_t *worker, ucp_ep_h ucp)
{
    uci_worker_for_each_peer(peer, worker)
    {
        uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
        {
            if ((ep->ucp == ucp) && !ep->user) {
                return ep;
            }
        }
    }
    return NULL;
}

void uci_lost_hear(void *arg, ucp_ep_h ucp, ucs_status_t status)
{
    uci_worker_t *worker = arg;
    uci_ep_t *ep;

    uci_worker_enter(worker);
    ep = uci_lost_find(worker, ucp);
    if (ep != NULL) {
        uci_lost_take(ep, status);
    }
    uci_worker_leave(worker);
}

/* Does anybody wait for it? */
static bool uci_lost_is_missed(const uci_peer_t *peer)
{
    uci_list_for_each(send_op, &peer->worker->xfer.send_ops, uci_send_op_t, all)
    {
        if (send_op->peer == peer) {
            return true;
        }
    }
    uci_list_for_each(recv_op, &peer->worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if (recv_op->peer == peer) {
            return true;
        }
    }
    return !uci_rma_part_is_idle(&peer->rma) || !uci_list_is_empty(&peer->msgs.streams);
}

/* @return whether there is no more to wait for */
static bool uci_lost_is_settled(uci_peer_t *peer, const uci_lost_t *lost)
{
    if (!uci_conversation_is_heard(&peer->conversation)) {
        return true;
    }
    if (peer->talk.heard || uci_lost_has_other(peer)) {
        uci_control_send_pending(peer);
        return true;
    }
    if (uci_process_time_ns() < lost->deadline) {
        return false;
    }
    if (uci_lost_is_missed(peer)) {
        uci_ep_abandon(peer, lost->status);
    }
    return true;
}

static void uci_lost_forget(uci_worker_t *worker, uci_lost_t *lost)
{
    uci_list_del(&lost->link);
    uci_worker_work_ends(worker);
    free(lost);
}

void uci_lost_progress(uci_worker_t *worker)
{
    uci_peer_t *peer;

    uci_list_for_each_safe(lost, &worker->conn.lost, uci_lost_t, link)
    {
        peer = uci_worker_peer_find(worker, lost->uid);
        if ((peer == NULL) || uci_lost_is_settled(peer, lost)) {
            uci_lost_forget(worker, lost);
        }
    }
}

uint64_t uci_lost_due(const uci_worker_t *worker)
{
    uint64_t due = UINT64_MAX;

    uci_list_for_each(lost, &worker->conn.lost, uci_lost_t, link)
    {
        due = uci_min(due, lost->deadline);
    }
    return due;
}

void uci_lost_cleanup(uci_worker_t *worker)
{
    uci_list_for_each_safe(lost, &worker->conn.lost, uci_lost_t, link)
    {
        uci_lost_forget(worker, lost);
    }
}
