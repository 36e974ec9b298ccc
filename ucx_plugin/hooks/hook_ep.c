/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include "conn/close.h"
#include "conn/endpoint.h"
#include "message/user_stream.h"
#include "util/log.h"
#include "params.h"
#include "util/process.h"
#include "seal/seal.h"

/* UCX calls this one for an endpoint that has failed, with the user's argument; ours end first, as UCX's own do */
static void uci_hook_on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    uci_ep_t *ours                    = uci_plugin_ep(ep);
    ucp_err_handler_cb_t user_handler = NULL;
    uci_worker_t *worker;

    if (ours != NULL) {
        worker       = ours->peer->worker;
        user_handler = ours->user_handler;
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

/* Who listens will be called by socket address. If it is too late to step aside, only those calls are refused */
UCI_EXPORT ucs_status_t ucp_listener_create(ucp_worker_h worker, const ucp_listener_params_t *params,
                                            ucp_listener_h *listener_p)
{
    UCI_HOOK();
    uci_plugin_step_aside(worker);
    return uci_ucp.listener_create(worker, params, listener_p);
}

/* This process does not verify: a peer that does would take our messages for damaged ones */
static bool uci_hook_is_refused(const ucp_ep_params_t *params)
{
    if (!uci_hook_is_by_socket(params) && uci_mark_is_present(params->address)) {
        uci_error("%s refuses a peer: it runs with UCI on, this process with UCI_MODE=off, or its worker connects by "
                  "socket address; set the same mode for all ranks of the job",
                  uci_process_name());
        return true;
    }
    return false;
}

UCI_EXPORT ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    ucp_err_handler_cb_t user_handler;
    uci_ep_params_t our_params;
    uci_worker_t *ours;
    ucs_status_t status;
    uci_ep_t *ep;

    UCI_HOOK();
    if (uci_hook_is_by_socket(params) && !uci_plugin_step_aside(worker)) {
        uci_error("an endpoint by socket address or connection request, for a worker that %s, is not covered: run this "
                  "program with %s",
                  uci_seal_is_on() ? "seals" : "has messages or an address of UCI's already",
                  uci_seal_is_on() ? "UCI_SEAL=off" : "UCI_MODE=off");
        return UCS_ERR_UNSUPPORTED;
    }
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        return uci_hook_is_refused(params) ? UCS_ERR_UNSUPPORTED : uci_ucp.ep_create(worker, params, ep_p);
    }
    uci_params_copy_ep(&our_params, params);
    user_handler = uci_hook_wrap_handler(&our_params.ucx);
    uci_worker_enter(ours);
    status = uci_ep_open(ours, &our_params.ucx, &ep);
    if (status == UCS_OK) {
        *ep_p            = ep->ucp;
        ep->user_handler = user_handler;
        if (user_handler != NULL) {
            uci_worker_set_foreign(ours);
        }
        if (!uci_handles_add(&uci_eps, ep->ucp, ep)) {
            status = UCS_ERR_NO_MEMORY;
        }
    }
    uci_worker_leave(ours);
    return status;
}

UCI_EXPORT ucs_status_ptr_t ucp_ep_modify_nb(ucp_ep_h ep, const ucp_ep_params_t *params)
{
    uci_ep_params_t our_params;
    uci_ep_t *ours;

    UCI_HOOK();
    ours = uci_plugin_ep(ep);
    if ((ours == NULL) || !(params->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER)) {
        return uci_ucp.ep_modify_nb(ep, params);
    }
    uci_params_copy_ep(&our_params, params);
    ours->user_handler            = params->err_handler.cb;
    our_params.ucx.err_handler.cb = uci_hook_on_error;
    uci_plugin_set_foreign(ours->peer->worker);
    return uci_ucp.ep_modify_nb(ep, &our_params.ucx);
}

static ucs_status_ptr_t uci_hook_ep_close(ucp_ep_h ep, const ucp_request_param_t *param)
{
    uci_ep_t *ours = uci_handles_remove(&uci_eps, ep);
    uci_worker_t *worker;
    ucs_status_ptr_t ret;

    if (ours == NULL) {
        uci_plugin_clear_marker(param);
        return uci_ucp.ep_close_nbx(ep, param);
    }
    worker = ours->peer->worker;
    uci_worker_enter(worker);
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
    uci_worker_t *worker;
    ucs_status_ptr_t request;
    uci_ep_t *ours;

    UCI_HOOK();
    ours = uci_plugin_ep(ep);
    if (ours == NULL) {
        uci_ucp.ep_destroy(ep);
        return;
    }

    worker  = ours->peer->worker;
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
