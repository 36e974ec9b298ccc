/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <stdlib.h>

#include "control.h"
#include "dump.h"
#include "handover.h"
#include "log.h"
#include "process.h"
#include "recv.h"
#include "repair.h"
#include "send.h"
#include "txlog.h"

/* How long a close waits for an answer */
#define UCI_CLOSE_TIMEOUT_NS 10000000000ul

/* How long, at the end of a worker, its own endpoints may take to close */
#define UCI_SHUTDOWN_NS 100000000ul

typedef struct uci_close {
    uci_list_t link;
    uci_ep_t *ep; /* NULL: UCX closes it */
    uci_peer_t *peer;
    uci_request_t *req;
    void *ucx; /* UCX's close */
    uint64_t deadline;
    bool last; /* of the user's endpoints to this peer */
    bool said; /* all but BYE has been sent */
} uci_close_t;

static uci_ep_t *uci_ep_create(uci_peer_t *peer, ucp_ep_h ucp, bool user)
{
    uci_ep_t *ep = calloc(1, sizeof(*ep));

    if (ep == NULL) {
        uci_error("failed to allocate an endpoint");
        return NULL;
    }
    ep->ucp  = ucp;
    ep->peer = peer;
    ep->user = user;
    uci_list_add_tail(&peer->eps, &ep->link);
    return ep;
}

static void uci_ep_destroy(uci_ep_t *ep)
{
    uci_list_del(&ep->link);
    free(ep);
}

ucs_status_t uci_ep_open_internal(uci_peer_t *peer)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = peer->address};
    ucs_status_t status;
    ucp_ep_h ucp;

    status = uci_ucp.ep_create(peer->worker->ucp, &params, &ucp);
    if (status != UCS_OK) {
        uci_error("failed to connect back to %s: %s", uci_peer_name(peer), uci_ucp.status_string(status));
        return status;
    }
    return (uci_ep_create(peer, ucp, false) != NULL) ? UCS_OK : UCS_ERR_NO_MEMORY;
}

/* One that UCI opened, or kept, may serve the user if it asks for nothing special */
static uci_ep_t *uci_ep_reuse(uci_peer_t *peer, const ucp_ep_params_t *params)
{
    if (params->field_mask & ~(uint64_t)UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) {
        return NULL;
    }
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        if (!ep->user && !ep->half) {
            ep->user = true;
            return ep;
        }
    }
    return NULL;
}

ucs_status_t uci_ep_open(uci_worker_t *worker, const ucp_ep_params_t *params, uci_ep_t **ep_p)
{
    ucp_ep_params_t ucx_params = *params;
    const uci_mark_t *mark     = (const uci_mark_t *)params->address;
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
    uci_peer_set_mark(peer, mark);
    peer->hello_sent  = peer->hello_sent && !peer->user_closed; /* what comes after a BYE begins anew */
    peer->settled     = peer->settled && peer->hello_sent;
    peer->user_closed = peer->asked = peer->answered = peer->leaving = peer->bye_sent = peer->promised = false;
    peer->status                                                                                       = UCS_OK;

    ep = uci_ep_reuse(peer, params);
    if (ep == NULL) {
        ucx_params.address = (const ucp_address_t *)(mark + 1);
        status             = uci_ucp.ep_create(worker->ucp, &ucx_params, &ucp);
        if (status != UCS_OK) {
            return status;
        }
        ep = uci_ep_create(peer, ucp, true);
        if (ep == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    if (uci_tuner_eager_differs()) {
        uci_peer_plan(peer); /* otherwise when first needed: it takes some microseconds */
    }
    uci_control_send_pending(peer);
    *ep_p = ep;
    return UCS_OK;
}

static bool uci_ep_is_granted(uci_peer_t *peer)
{
    uci_list_for_each(op, &peer->worker->send_ops, uci_send_op_t, all)
    {
        if ((op->peer == peer) && !uci_list_is_empty(&op->grants) && (op->req == NULL)) {
            return true;
        }
    }
    return false;
}

static bool uci_ep_is_last_of_user(const uci_ep_t *ep)
{
    uci_list_for_each(other, &ep->peer->eps, uci_ep_t, link)
    {
        if ((other != ep) && other->user) {
            return false;
        }
    }
    return true;
}

static void uci_close_done(uci_close_t *closing, ucs_status_t status)
{
    uci_request_t *req = closing->req;

    if (closing->last) {
        uci_repair_ask_dropped(closing->peer);
    }
    uci_list_del(&closing->link);
    --req->worker->ops_active;
    free(closing);
    uci_request_complete(req, status);
}

static void uci_close_flushed(void *request, ucs_status_t status, void *user_data)
{
    uci_close_t *closing = user_data;
    uci_worker_t *worker = closing->req->worker;

    uci_ucp.request_free(request);
    uci_worker_enter(worker);
    uci_close_done(closing, status);
    uci_worker_leave(worker);
}

/* The peer has, or will never want, all that we have: let UCX close it. That flushes as far as the transport, as
 * with plain UCX, and not as far as ucp_ep_flush_nbx(): the peer may make no more progress */
static void uci_close_flush(uci_close_t *closing)
{
    ucp_ep_h ucp              = closing->ep->ucp;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = uci_close_flushed,
                                 .user_data    = closing};
    ucs_status_ptr_t request;

    if (closing->last) {
        uci_control_send_bye(closing->peer);
    }
    uci_ep_destroy(closing->ep);
    closing->ep = NULL;
    request     = uci_ucp.ep_close_nbx(ucp, &param);
    if (UCS_PTR_IS_PTR(request)) {
        closing->ucx = request;
    } else {
        uci_close_done(closing, UCS_PTR_STATUS(request));
    }
}

/* Both sides have said BYE: what UCX still waits for is of no use. On tcp it is an answer of the peer (its flush is
 * a ping), which may be in MPI_Finalize, past its last progress: plain MPICH hangs there when ranks finalize at
 * different times (4.0.2, UCX 1.13.1) */
static void uci_close_let_go(uci_close_t *closing)
{
    uci_ucp.request_free(closing->ucx);
    uci_close_done(closing, UCS_OK);
}

/* All that the peer has to have from us, but BYE. Once. */
static void uci_close_say(uci_close_t *closing)
{
    uci_peer_t *peer = closing->peer;

    if (closing->said || !closing->last) {
        return;
    }
    closing->said = true;
    if (peer->answered) {
        uci_handover_send(peer);
    }
    if (!peer->hello_sent) {
        uci_control_hello(peer); /* it may go on sending to us, and needs a new endpoint then */
    }
}

/* What UCX holds may wait for the other end of an endpoint, for which it asks with the first message that needs it. On tcp
 * the other side's UCX, up to 1.13, has to read this question alone: it crashes if it makes that end and anything
 * follows in what it has read, such as the flush of a close (docs/design.md, section 11). So UCX is not told to close
 * before it has let go of what was said */
static void uci_close_progress(uci_close_t *closing)
{
    uci_peer_t *peer = closing->peer;

    if (closing->ep == NULL) {
        if (peer->leaving && peer->bye_sent) {
            uci_close_let_go(closing);
        }
        return;
    }

    if (uci_process_time_ns() > closing->deadline) {
        uci_info("no answer from %s: closing all the same", uci_peer_name(peer));
    } else if (!peer->leaving) {
        if (uci_ep_is_granted(peer) || (peer->asked && !peer->answered)) {
            return;
        }
        uci_close_say(closing);
        if (peer->sending > 0) {
            return;
        }
    } else if (peer->promised) {
        return;
    }
    uci_close_flush(closing);
}

/* One operation with the peer that can be ended now. Callbacks may change the lists: look anew for each. What waits
 * for a get goes on, and ends when the get has failed */
static bool uci_ep_abandon_one(uci_peer_t *peer)
{
    uci_list_for_each(send_op, &peer->worker->send_ops, uci_send_op_t, all)
    {
        if (send_op->peer == peer) {
            uci_send_op_finish(send_op, peer->status);
            return true;
        }
    }
    uci_list_for_each(recv_op, &peer->worker->recv_ops, uci_recv_op_t, link)
    {
        if ((recv_op->peer == peer) && (recv_op->gets == 0)) {
            uci_recv_op_abandon(recv_op, peer->status);
            return true;
        }
    }
    return false;
}

/* Nothing more comes from the peer, and nothing reaches it */
static void uci_ep_abandon(uci_peer_t *peer, ucs_status_t status)
{
    peer->status   = status;
    peer->leaving  = true;
    peer->promised = false;
    while (uci_ep_abandon_one(peer)) {
    }
    uci_control_drop_pending(peer);
}

void uci_ep_fail(uci_ep_t *ep, ucs_status_t status)
{
    uci_info("the endpoint to %s failed: %s", uci_peer_name(ep->peer), uci_ucp.status_string(status));
    uci_ep_abandon(ep->peer, status);
}

/* As in UCX: what is not done is not done any more. The other side is told, if that gets through, so that it does
 * not wait for us when it closes */
static ucs_status_ptr_t uci_ep_close_forced(uci_ep_t *ep, const ucp_request_param_t *param)
{
    bool last        = uci_ep_is_last_of_user(ep);
    uci_peer_t *peer = ep->peer;
    ucp_ep_h ucp     = ep->ucp;
    ucs_status_ptr_t ret;

    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) {
        uci_request_clear_marker(param->request);
    }
    if (last && (peer->status == UCS_OK)) {
        uci_control_send_bye(peer);
    }
    uci_ep_destroy(ep);
    ret = uci_ucp.ep_close_nbx(ucp, param);
    if (last) {
        peer->user_closed = true;
        uci_ep_abandon(peer, (peer->status == UCS_OK) ? UCS_ERR_CANCELED : peer->status);
    }
    return ret;
}

ucs_status_ptr_t uci_ep_close(uci_ep_t *ep, const ucp_request_param_t *param)
{
    uint32_t flags       = (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) ? param->flags : 0;
    uci_peer_t *peer     = ep->peer;
    uci_worker_t *worker = peer->worker;
    uci_close_t *closing;
    uci_request_t *req;

    if (flags & UCP_EP_CLOSE_FLAG_FORCE) {
        return uci_ep_close_forced(ep, param);
    }

    closing = calloc(1, sizeof(*closing));
    req     = uci_request_get(worker, param);
    if ((closing == NULL) || (req == NULL)) {
        uci_error("failed to allocate what a close needs");
        free(closing);
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    closing->ep       = ep;
    closing->peer     = peer;
    closing->req      = req;
    closing->deadline = uci_process_time_ns() + UCI_CLOSE_TIMEOUT_NS;
    closing->last     = uci_ep_is_last_of_user(ep);
    uci_list_add_tail(&worker->closing, &closing->link);
    ++worker->ops_active;

    if (closing->last) {
        peer->user_closed = true;
        if (!peer->leaving && !uci_txlog_is_empty(peer)) {
            peer->asked = true;
            uci_control_send_simple(peer, UCI_AM_LEAVE, 0, 0, 0);
        }
    }
    uci_close_progress(closing);
    return uci_request_posted(req, param);
}

void uci_ep_on_leave(uci_peer_t *peer)
{
    peer->leaving = true;
    if (!peer->user_closed) {
        peer->promised = true;
        uci_control_send_missing(peer);
    }
}

void uci_ep_on_missing(uci_peer_t *peer)
{
    peer->answered = true;
}

void uci_ep_on_bye(uci_peer_t *peer)
{
    peer->leaving  = true;
    peer->promised = false;
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        ep->half = true;
    }
}

void uci_ep_progress(uci_worker_t *worker)
{
    uci_list_for_each_safe(closing, &worker->closing, uci_close_t, link)
    {
        uci_close_progress(closing);
    }
}

uint64_t uci_ep_due(const uci_worker_t *worker)
{
    uint64_t due = UINT64_MAX;

    uci_list_for_each(closing, &worker->closing, uci_close_t, link)
    {
        if (closing->ep != NULL) {
            due = uci_min(due, closing->deadline);
        }
    }
    return due;
}

/* UCX does not like to lose an endpoint that is still connecting with its worker. Those of UCI's own have been closed
 * by nobody: give them a moment */
void uci_ep_shutdown(uci_worker_t *worker)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    uint64_t deadline         = uci_process_time_ns() + UCI_SHUTDOWN_NS;
    ucs_status_ptr_t request;

    uci_worker_for_each_peer(peer, worker)
    {
        uci_list_for_each_safe(ep, &peer->eps, uci_ep_t, link)
        {
            if (ep->user) {
                continue;
            }
            request = uci_ucp.ep_close_nbx(ep->ucp, &param);
            uci_ep_destroy(ep);
            while (UCS_PTR_IS_PTR(request) && (uci_ucp.request_check_status(request) == UCS_INPROGRESS) &&
                   (uci_process_time_ns() < deadline)) {
                uci_ucp.worker_progress(worker->ucp);
            }
            if (UCS_PTR_IS_PTR(request)) {
                uci_ucp.request_free(request);
            }
        }
    }
}

void uci_ep_dump(const uci_worker_t *worker, int fd)
{
    unsigned shown = 0;

    uci_list_for_each(closing, &worker->closing, uci_close_t, link)
    {
        if ((closing->link.next == NULL) || (++shown > UCI_DUMP_MAX)) {
            return;
        }
        uci_dump_line(fd, "  close of %s: %s%s%s", uci_peer_name(closing->peer),
                      (closing->ep == NULL) ? "UCX closes it" : "waits for the other side",
                      closing->last ? " last" : "", closing->said ? " said" : "");
    }
}
