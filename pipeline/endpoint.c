/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <stdlib.h>

#include "control.h"
#include "handover.h"
#include "log.h"
#include "process.h"
#include "recv.h"
#include "send.h"

/* How long a close waits for a receiver that is reading our memory */
#define UCI_CLOSE_GRANTED_NS  2000000000ul

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
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = peer->address
    };
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
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link) {
        if (!ep->user) {
            ep->user = true;
            return ep;
        }
    }
    return NULL;
}

static bool uci_ep_has_err_handling(const ucp_ep_params_t *params)
{
    return (params->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) &&
           (params->err_mode != UCP_ERR_HANDLING_MODE_NONE);
}

ucs_status_t uci_ep_open(uci_worker_t *worker, const ucp_ep_params_t *params, uci_ep_t **ep_p)
{
    ucp_ep_params_t ucx_params = *params;
    const uci_mark_t *mark     = (const uci_mark_t*)params->address;
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
    peer->user_closed = false;

    ep = uci_ep_reuse(peer, params);
    if (ep == NULL) {
        ucx_params.address = (const ucp_address_t*)(mark + 1);
        status             = uci_ucp.ep_create(worker->ucp, &ucx_params, &ucp);
        if (status != UCS_OK) {
            return status;
        }
        ep = uci_ep_create(peer, ucp, true);
        if (ep == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    ep->err_handling = uci_ep_has_err_handling(params);
    uci_control_send_pending(peer);
    *ep_p = ep;
    return UCS_OK;
}

static bool uci_ep_is_granted(uci_peer_t *peer)
{
    uci_list_for_each(op, &peer->worker->send_ops, uci_send_op_t, all) {
        if ((op->peer == peer) && op->granted && (op->req == NULL)) {
            return true;
        }
    }
    return false;
}

/* The receiver repairs from memory of ours: it is in the middle of it, and quick */
static void uci_ep_wait_granted(uci_peer_t *peer)
{
    uint64_t deadline = uci_process_time_ns() + UCI_CLOSE_GRANTED_NS;

    while (!peer->worker->in_progress && uci_ep_is_granted(peer) && (uci_process_time_ns() < deadline)) {
        uci_worker_progress(peer->worker);
    }
}

static bool uci_ep_is_last_of_user(const uci_ep_t *ep)
{
    uci_list_for_each(other, &ep->peer->eps, uci_ep_t, link) {
        if ((other != ep) && other->user) {
            return false;
        }
    }
    return true;
}

ucs_status_ptr_t uci_ep_close(uci_ep_t *ep, const ucp_request_param_t *param)
{
    uint32_t flags   = (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) ? param->flags : 0;
    bool force       = (flags & UCP_EP_CLOSE_FLAG_FORCE) != 0;
    uci_peer_t *peer = ep->peer;
    ucp_ep_h ucp     = ep->ucp;
    ucp_request_param_t flush_param;

    if (!force && uci_ep_is_last_of_user(ep)) {
        peer->user_closed = true;
        uci_ep_wait_granted(peer);
        uci_handover_send(peer);
        uci_control_send_simple(peer, UCI_AM_BYE, 0, 0, 0);
    }
    if (force || ep->err_handling) {
        uci_ep_destroy(ep);
        return uci_ucp.ep_close_nbx(ucp, param);
    }

    ep->user                  = false;
    flush_param               = *param;
    flush_param.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_FLAGS;
    peer->worker->reap        = true;
    return uci_ucp.ep_flush_nbx(ucp, &flush_param);
}

static void uci_ep_closed(void *request, ucs_status_t status, void *user_data)
{
    uci_ucp.request_free(request);
}

static void uci_ep_reap_peer(uci_peer_t *peer)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
        .cb.send      = uci_ep_closed
    };
    ucp_ep_h ucp;

    uci_list_for_each_safe(ep, &peer->eps, uci_ep_t, link) {
        ucp = ep->ucp;
        uci_ep_destroy(ep);
        uci_ucp.ep_close_nbx(ucp, &param);
    }
}

static bool uci_ep_is_used(uci_peer_t *peer)
{
    uci_list_for_each(recv_op, &peer->worker->recv_ops, uci_recv_op_t, link) {
        if (recv_op->peer == peer) {
            return true;
        }
    }
    uci_list_for_each(send_op, &peer->worker->send_ops, uci_send_op_t, all) {
        if (send_op->peer == peer) {
            return true;
        }
    }
    return false;
}

void uci_ep_reap(uci_worker_t *worker)
{
    worker->reap = false;
    uci_worker_for_each_peer(peer, worker) {
        if (!peer->bye || !peer->user_closed || uci_list_is_empty(&peer->eps)) {
            continue;
        }
        if (uci_ep_is_used(peer)) {
            worker->reap = true;
        } else {
            uci_ep_reap_peer(peer);
        }
    }
}
