/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include "conn/close.h"
#include "conn/endpoint.h"
#include "hook_sock.h"
#include "message/user_stream.h"
#include "util/log.h"
#include "params.h"
#include "util/process.h"

/* Who waits for the other side to close has to hear that it has gone */
static uci_ep_t *uci_hook_ep_of(ucp_ep_h ep)
{
    uci_ep_t *ours = uci_plugin_ep(ep);

    return (ours != NULL) ? ours : uci_handles_find(&uci_closing, ep);
}

/* UCX calls this one for an endpoint that has failed, with the user's argument; ours end first, as UCX's own do */
static void uci_hook_on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    uci_ep_t *ours                    = uci_hook_ep_of(ep);
    uci_sock_t *sock                  = (ours == NULL) ? uci_plugin_sock(ep) : NULL;
    ucp_err_handler_cb_t user_handler = NULL;
    uci_worker_t *worker;

    if (sock != NULL) {
        worker = sock->worker;
        uci_worker_enter(worker);
        user_handler = sock->user_handler;
        uci_sock_fail(sock, status);
        uci_worker_leave(worker);
    }
    if (ours != NULL) {
        worker       = ours->peer->worker;
        user_handler = ours->closing ? NULL : ours->user_handler;
        uci_worker_enter(worker);
        uci_ep_fail(ours, status);
        uci_worker_leave(worker);
    }
    if (user_handler != NULL) {
        user_handler(arg, ep, status);
    }
}

/* Hear of failures where UCX looks for them. @return the user's handler or NULL */
static ucp_err_handler_cb_t uci_hook_wrap_handler(ucp_ep_params_t *params)
{
    ucp_err_handler_cb_t user_handler = NULL;

    if (params->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) {
        user_handler = params->err_handler.cb;
    } else {
        params->err_handler.arg = NULL;
    }
    if ((params->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) &&
        (params->err_mode != UCP_ERR_HANDLING_MODE_NONE)) {
        params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params->err_handler.cb = uci_hook_on_error;
    }
    return user_handler;
}

/* In UCX's order: what is named beside it, such as a worker's address, is not looked at */
static bool uci_hook_is_by_socket(const ucp_ep_params_t *params)
{
    if ((params->field_mask & UCP_EP_PARAM_FIELD_FLAGS) && (params->flags & UCP_EP_PARAMS_FLAGS_CLIENT_SERVER)) {
        return true;
    }
    if (params->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST) {
        return true;
    }
    return !(params->field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) || (params->address == NULL);
}

/* This process does not verify: a peer that does would take our messages for damaged ones */
static bool uci_hook_is_refused(const ucp_ep_params_t *params)
{
    if (!uci_hook_is_by_socket(params) && uci_mark_is_present(params->address)) {
        uci_mark_refuse_on((const uci_mark_t *)params->address);
        return true;
    }
    return false;
}

static ucs_status_t uci_hook_ep_open(uci_worker_t *ours, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    ucp_err_handler_cb_t user_handler;
    uci_ep_params_t our_params;
    ucs_status_t status;
    uci_ep_t *ep;

    uci_params_copy_ep(&our_params, params);
    user_handler = uci_hook_wrap_handler(&our_params.ucx);
    status       = uci_ep_open(ours, &our_params.ucx, &ep);
    if (status == UCS_OK) {
        ep->user_handler = user_handler;
        ep->unforced     = uci_params_are_unforced(params);
        if (user_handler != NULL) {
            uci_worker_set_foreign(ours);
        }
        if (!uci_handles_add(&uci_eps, ep->ucp, ep)) {
            return UCS_ERR_NO_MEMORY; /* it stays, with its worker */
        }
        *ep_p = ep->ucp;
    }
    return status;
}

ucs_status_t uci_plugin_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    uci_worker_t *ours = uci_plugin_worker(worker);
    ucs_status_t status;

    if (ours == NULL) {
        return uci_hook_is_refused(params) ? UCS_ERR_UNSUPPORTED : uci_ucp.ep_create(worker, params, ep_p);
    }
    uci_worker_enter(ours);
    status = uci_hook_is_by_socket(params) ? uci_hook_sock_open(ours, params, uci_hook_on_error, ep_p)
                                           : uci_hook_ep_open(ours, params, ep_p);
    uci_worker_leave(ours);
    return status;
}

UCI_EXPORT ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    UCI_HOOK();
    return uci_plugin_ep_create(worker, params, ep_p);
}

/* What is open has been looked for before it is closed, and gone */
static uci_worker_t *uci_hook_worker_of(ucp_ep_h ep)
{
    const uci_ep_t *ours   = uci_plugin_ep(ep);
    const uci_sock_t *sock = uci_plugin_sock(ep);

    if (ours != NULL) {
        return ours->peer->worker;
    }
    return (sock != NULL) ? sock->worker : NULL;
}

/* Who is told of its failure, and with what */
static void uci_hook_set_handler(ucp_ep_h ep, const ucp_ep_params_t *params)
{
    uci_ep_t *ours   = uci_plugin_ep(ep);
    uci_sock_t *sock = uci_plugin_sock(ep);

    if (sock != NULL) {
        sock->user_handler = params->err_handler.cb;
        sock->user_arg     = uci_params_error_arg(params);
    }
    if (ours != NULL) {
        ours->user_handler = params->err_handler.cb;
    }
}

UCI_EXPORT ucs_status_ptr_t ucp_ep_modify_nb(ucp_ep_h ep, const ucp_ep_params_t *params)
{
    uci_ep_params_t our_params;
    uci_worker_t *worker;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    worker = (params->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) ? uci_hook_worker_of(ep) : NULL;
    if (worker == NULL) {
        return uci_ucp.ep_modify_nb(ep, params);
    }
    uci_params_copy_ep(&our_params, params);
    our_params.ucx.err_handler.cb = uci_hook_on_error;
    uci_worker_enter(worker);
    ret = uci_ucp.ep_modify_nb(ep, &our_params.ucx);
    if (!UCS_PTR_IS_ERR(ret)) {
        uci_worker_set_foreign(worker);
        uci_hook_set_handler(ep, params);
    }
    uci_worker_leave(worker);
    return ret;
}

static ucs_status_ptr_t uci_hook_ep_close(ucp_ep_h ep, const ucp_request_param_t *param)
{
    uci_ep_t *ours = uci_plugin_ep(ep);
    uci_worker_t *worker;
    uci_sock_t *sock;
    ucs_status_ptr_t ret;

    if (ours == NULL) {
        sock = uci_plugin_sock(ep);
        if (sock != NULL) {
            return uci_hook_sock_close(sock, param);
        }
        uci_plugin_clear_marker(param);
        return uci_ucp.ep_close_nbx(ep, param);
    }
    if (ours->unforced && uci_params_force(param)) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    worker = ours->peer->worker;
    uci_worker_enter(worker);
    uci_handles_remove(&uci_eps, ep);
    uci_hook_sock_forget(ep);
    ours->shown = uci_handles_add(&uci_closing, ep, ours); /* until it goes */
    uci_user_stream_close(ours);
    ret = uci_ep_close(ours, param);
    uci_worker_leave(worker);
    return ret;
}

UCI_EXPORT ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    UCI_HOOK();
    return uci_hook_ep_close(ep, param);
}

UCI_EXPORT ucs_status_ptr_t ucp_ep_close_nb(ucp_ep_h ep, unsigned mode)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS};

    UCI_HOOK();
    param.flags = (mode == UCP_EP_CLOSE_MODE_FORCE) ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    return uci_hook_ep_close(ep, &param);
}

UCI_EXPORT ucs_status_ptr_t ucp_disconnect_nb(ucp_ep_h ep)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    UCI_HOOK();
    return uci_hook_ep_close(ep, &param);
}

UCI_EXPORT void ucp_ep_destroy(ucp_ep_h ep)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;
    uci_worker_t *worker;

    UCI_HOOK();
    worker = uci_hook_worker_of(ep);
    if (worker == NULL) {
        uci_ucp.ep_destroy(ep);
        return;
    }
    request = uci_hook_ep_close(ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        uci_worker_enter(worker);
        uci_worker_progress(worker, worker->ucp);
        uci_worker_leave(worker);
    }
    ucp_request_free(request);
}
