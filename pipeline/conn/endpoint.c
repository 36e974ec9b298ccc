/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <stdlib.h>

#include "base/siblings.h"
#include "conversation/conversation.h"
#include "close.h"
#include "link/control.h"
#include "link/link_send.h"
#include "message/early.h"
#include "message/user_stream.h"
#include "rma/rma.h"
#include "util/log.h"
#include "util/process.h"
#include "transfer/recv_common.h"
#include "transfer/send_common.h"

/* How long, at the end of a worker, its own endpoints may take to close */
#define UCI_SHUTDOWN_NS 100000000ul

/* One that UCI opened, or kept, may serve the user if it asks for nothing special, unless another one has its number */
static uci_ep_t *uci_ep_reuse(uci_peer_t *peer, const ucp_ep_params_t *params)
{
    if (params->field_mask & ~(uint64_t)UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) {
        return NULL;
    }
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        if (!ep->user && !ep->half && !ep->unpaired && !ep->lent) {
            ep->user = true;
            return ep;
        }
    }
    return NULL;
}

ucs_status_t uci_ep_introduce(uci_peer_t *peer, const uci_mark_t *mark)
{
    ucs_status_t status = uci_peer_set_mark(peer, mark);

    return (status == UCS_OK)
                   ? uci_peer_set_address(peer, mark + 1, uci_min(mark->address_length, UCI_WIRE_ADDRESS_MAX))
                   : status;
}

void uci_ep_begin(uci_ep_t *ep)
{
    uci_close_revoke(ep->peer);
    if (uci_tuner_eager_differs()) {
        uci_peer_plan(ep->peer); /* otherwise when first needed: it takes some microseconds */
    }
    uci_control_send_pending(ep->peer);
}

/* The address is kept: when the user has closed its endpoint a question of the peer's may want an answer, and HELLO, which brings the address
 * too, was never sent, or is lost */
ucs_status_t uci_ep_open(uci_worker_t *worker, ucp_ep_params_t *params, uci_ep_t **ep_p)
{
    const uci_mark_t *mark = (const uci_mark_t *)params->address;
    uci_peer_t *peer;
    ucs_status_t status;
    uci_ep_t *ep;
    ucp_ep_h ucp;

    status = uci_mark_check(mark);
    if (status != UCS_OK) {
        return status;
    }
    peer = uci_worker_peer(worker, uci_mark_uid(mark));
    if (peer == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = uci_ep_introduce(peer, mark);
    if (status != UCS_OK) {
        return status;
    }

    uci_peer_set_way(peer, false);
    uci_peer_set_err_mode(peer, params);
    ep = uci_ep_reuse(peer, params);
    if (ep == NULL) {
        params->address = (const ucp_address_t *)(mark + 1);
        status          = uci_ucp.ep_create(worker->ucp, params, &ucp);
        if (status != UCS_OK) {
            return status;
        }
        ep = uci_ep_create(peer, ucp, true);
        if (ep == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        uci_ep_place(ep);
    }
    if (ep->number == 0) {
        uci_ep_number_again(ep);
    }
    ep->crossed = (peer->uid == worker->uid) && (params->field_mask & UCP_EP_PARAM_FIELD_FLAGS) &&
                  (params->flags & UCP_EP_PARAMS_FLAGS_NO_LOOPBACK);
    ep->user_data = (params->field_mask & UCP_EP_PARAM_FIELD_USER_DATA) ? params->user_data : NULL;
    uci_ep_begin(ep);
    *ep_p = ep;
    return UCS_OK;
}

/* All operations with the peer. What waits for a get goes on, and ends when the get has failed */
static void uci_ep_abandon_ops(uci_peer_t *peer)
{
    uci_list_for_each_safe(send_op, &peer->worker->xfer.send_ops, uci_send_op_t, all)
    {
        if (send_op->peer == peer) {
            uci_send_op_finish(send_op, peer->conversation.status);
        }
    }
    uci_list_for_each_safe(recv_op, &peer->worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if ((recv_op->peer == peer) && (recv_op->way.gets == 0)) {
            uci_recv_op_abandon(recv_op, peer->conversation.status);
        }
    }
}

void uci_ep_abandon(uci_peer_t *peer, ucs_status_t status)
{
    uci_conversation_fail(&peer->conversation, status);
    uci_ep_abandon_ops(peer);
    uci_link_abandon(peer, status);
    uci_user_stream_fail(peer, status);
    uci_rma_fail(peer, status);
    uci_control_drop_pending(peer);
    uci_early_drop(peer, UINT64_MAX);
}

/* Memory of an endpoint that is gone may be that of the next one: a send of the former is older */
static bool uci_ep_has_sent(const uci_ep_t *ep, const uci_send_op_t *op)
{
    return (op->ep == ep) && (op->start_time >= ep->made_time);
}

void uci_ep_cancel(const uci_ep_t *ep, ucs_status_t status)
{
    uci_list_for_each_safe(op, &ep->peer->worker->xfer.send_ops, uci_send_op_t, all)
    {
        if (uci_ep_has_sent(ep, op)) {
            uci_send_op_cancel(op, status);
        }
    }
}

/* Messages are the peer's, by whichever of its endpoints they go: as long as the user has another one they are not given up, but for what this one
 * alone has begun */
void uci_ep_fail(uci_ep_t *ep, ucs_status_t status)
{
    uci_peer_t *peer = ep->peer;

    uci_info("the endpoint to %s failed: %s", uci_peer_name(peer), uci_ucp.status_string(status));
    uci_ep_break(ep);
    uci_list_for_each(other, &peer->eps, uci_ep_t, link)
    {
        if (other->user && !other->half && !other->closing) {
            uci_user_stream_fail_one(ep, status);
            uci_ep_cancel(ep, status);
            return;
        }
    }
    uci_ep_abandon(peer, status);
}

/* Any that is not the program's: UCX's progress may take away others (uci_ep_lose()) */
static uci_ep_t *uci_ep_own(uci_peer_t *peer)
{
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        if (!ep->user) {
            return ep;
        }
    }
    return NULL;
}

/* UCX does not like to lose an endpoint that is still connecting with its worker. Those of UCI's own have been closed
 * by nobody: give them a moment. Not to one that has said BYE, if UCX has let go of what was said to it: nothing is connecting then, its
 * worker may be gone, and UCX calls that an error, which no program of plain UCX sees */
void uci_ep_shutdown(uci_worker_t *worker)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    uint64_t deadline         = uci_process_time_ns() + UCI_SHUTDOWN_NS;
    ucs_status_ptr_t request;
    uci_ep_t *ep;

    uci_worker_for_each_peer(peer, worker)
    {
        while (((ep = uci_ep_own(peer)) != NULL) &&
               (!uci_conversation_is_gone(&peer->conversation) || (peer->talk.sending > 0))) {
            request = uci_ucp.ep_close_nbx(ep->ucp, &param);
            uci_ep_destroy(ep);
            while (UCS_PTR_IS_PTR(request) && (uci_ucp.request_check_status(request) == UCS_INPROGRESS) &&
                   (uci_process_time_ns() < deadline)) {
                uci_ucp.worker_progress(worker->ucp);
                uci_siblings_help(NULL); /* it may connect to one of them, of which the worker is none any more */
            }
            if (UCS_PTR_IS_PTR(request)) {
                uci_ucp.request_free(request);
            }
        }
    }
}
