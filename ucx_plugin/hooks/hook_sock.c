/* SPDX-License-Identifier: BSD-3-Clause */
#include "hook_sock.h"

#include <stdlib.h>

#include "defer.h"
#include "message/raw.h"
#include "params.h"
#include "rma/rma.h"
#include "settings/settings.h"
#include "util/log.h"

/* ------------------------------------------------------------- endpoints */

/* Its messages are UCX's to flush, too */
static void uci_hook_sock_is_raw(uci_worker_t *worker)
{
    uci_raw_begin(worker);
    uci_rma_passes(worker);
}

/* What has waited is done before the program's next operation; then what was one of a peer's is found as such */
static void uci_hook_sock_settled(uci_sock_t *sock)
{
    ucp_err_handler_cb_t handler = (sock->state == UCI_SOCK_REFUSED) ? sock->user_handler : NULL;
    bool is_deaf                 = sock->is_deaf;
    void *arg                    = sock->user_arg;
    ucp_ep_h ucp                 = sock->ucp;
    ucs_status_t status          = sock->status;

    if (is_deaf) {
        uci_handles_remove(&uci_socks, ucp);
    }
    if (sock->state == UCI_SOCK_RAW) {
        uci_hook_sock_is_raw(sock->worker);
    }
    if ((sock->state == UCI_SOCK_KNOWN) || (sock->state == UCI_SOCK_RAW)) {
        uci_defer_run(sock);
    } else {
        uci_defer_fail(sock, status);
    }
    if (is_deaf) {
        uci_sock_destroy(sock);
        return;
    }
    if (sock->state == UCI_SOCK_KNOWN) {
        (void)uci_handles_add(&uci_eps, ucp, sock->ep);
    }
    if (handler != NULL) {
        handler(arg, ucp, status);
    }
}

static bool uci_hook_sock_is_client(const ucp_ep_params_t *params)
{
    return (params->field_mask & UCP_EP_PARAM_FIELD_FLAGS) && (params->flags & UCP_EP_PARAMS_FLAGS_CLIENT_SERVER);
}

static bool uci_hook_sock_request_is_marked(ucp_conn_request_h request)
{
    ucp_conn_request_attr_t attr = {.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID};
    uint64_t own;

    return (uci_ucp.conn_request_query(request, &attr) == UCS_OK) && uci_sock_id_is_marked(attr.client_id, &own);
}

static void uci_hook_sock_request_name(ucp_conn_request_h request, char *name, size_t size)
{
    ucp_conn_request_attr_t attr = {.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR};
    bool is_known                = (uci_ucp.conn_request_query(request, &attr) == UCS_OK);

    uci_sock_print(is_known ? (const struct sockaddr *)&attr.client_address : NULL, name, size);
}

/* How its other side is found out, and what that is called */
static void uci_hook_sock_describe(const uci_worker_t *worker, const ucp_ep_params_t *params, char *name, size_t size,
                                   bool *is_marked_p, const char **why_p)
{
    if (!uci_hook_sock_is_client(params)) {
        uci_hook_sock_request_name(params->conn_request, name, size);
        *is_marked_p = uci_hook_sock_request_is_marked(params->conn_request);
        *why_p       = "its client runs without UCI, or with UCI_MODE=off";
        return;
    }
    uci_sock_print((params->field_mask & UCP_EP_PARAM_FIELD_SOCK_ADDR) ? params->sockaddr.addr : NULL, name, size);
    *is_marked_p = worker->conn.is_marked && (uci_settings.connect_wait > 0);
    *why_p       = worker->conn.is_marked ? "UCI_CONNECT_WAIT=0"
                                          : "the program's own client id (UCP_WORKER_PARAM_FIELD_CLIENT_ID) leaves no room "
                                            "for UCI's mark, since it has more than 40 bits";
}

static ucs_status_t uci_hook_sock_add(uci_worker_t *worker, const uci_ep_params_t *ours, ucp_ep_h ucp, const char *name,
                                      bool is_marked, ucp_err_handler_cb_t user_handler)
{
    bool is_server   = !uci_hook_sock_is_client(&ours->ucx);
    uci_sock_t *sock = uci_sock_create(worker, ucp, is_server, is_marked, name, uci_hook_sock_settled);

    if (sock == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    sock->unforced     = uci_params_are_unforced(&ours->ucx);
    sock->user_handler = user_handler;
    sock->user_arg     = uci_params_error_arg(&ours->ucx);
    sock->user_data    = (ours->ucx.field_mask & UCP_EP_PARAM_FIELD_USER_DATA) ? ours->ucx.user_data : NULL;
    return uci_handles_add(&uci_socks, ucp, sock) ? UCS_OK : UCS_ERR_NO_MEMORY;
}

static ucs_status_t uci_hook_sock_make(uci_worker_t *worker, uci_ep_params_t *ours, const char *name, bool is_marked,
                                       ucp_err_handler_cb_t on_error, ucp_ep_h *ep_p)
{
    ucp_err_handler_cb_t user_handler = NULL;
    ucs_status_t status;

    if (ours->ucx.field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) {
        user_handler = ours->ucx.err_handler.cb;
    } else {
        ours->ucx.err_handler.arg = NULL;
    }
    ours->ucx.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
    ours->ucx.err_handler.cb = on_error;
    if (is_marked && uci_hook_sock_is_client(&ours->ucx)) {
        ours->ucx.flags |= UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
    }
    if (user_handler != NULL) {
        uci_worker_set_foreign(worker);
    }
    status = uci_ucp.ep_create(worker->ucp, &ours->ucx, ep_p);
    return (status == UCS_OK) ? uci_hook_sock_add(worker, ours, *ep_p, name, is_marked, user_handler) : status;
}

ucs_status_t uci_hook_sock_open(uci_worker_t *worker, const ucp_ep_params_t *params, ucp_err_handler_cb_t on_error,
                                ucp_ep_h *ep_p)
{
    char name[UCI_SOCK_NAME_MAX];
    uci_ep_params_t ours;
    const char *why;
    ucs_status_t status;
    bool is_marked;

    if (!uci_hook_sock_is_client(params) && !(params->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST)) {
        return uci_ucp.ep_create(worker->ucp, params, ep_p); /* which says what is missing */
    }
    uci_hook_sock_describe(worker, params, name, sizeof(name), &is_marked, &why);
    if (!is_marked && uci_sock_is_required()) {
        uci_sock_say_refused(name, why);
        return UCS_ERR_UNSUPPORTED;
    }
    uci_params_copy_ep(&ours, params);
    status = uci_hook_sock_make(worker, &ours, name, is_marked, on_error, ep_p);
    if ((status == UCS_OK) && !is_marked) {
        uci_sock_say_raw(name, why);
        uci_hook_sock_is_raw(worker);
    }
    return status;
}

ucs_status_ptr_t uci_hook_sock_close(uci_sock_t *sock, const ucp_request_param_t *param)
{
    const uci_defer_what_t what = {.kind = UCI_DEFER_CLOSE};
    uci_worker_t *worker        = sock->worker;
    ucs_status_ptr_t ret;

    if (sock->unforced && uci_params_force(param)) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    uci_worker_enter(worker);
    if (uci_sock_is_waiting(sock) && !uci_params_force(param)) {
        sock->is_deaf      = true;
        sock->user_handler = NULL;
        ret                = uci_defer(sock, &what, param);
    } else {
        uci_handles_remove(&uci_socks, sock->ucp);
        uci_defer_fail(sock, (sock->status != UCS_OK) ? sock->status : UCS_ERR_CANCELED);
        uci_plugin_clear_marker(param);
        ret = uci_ucp.ep_close_nbx(sock->ucp, param);
        uci_sock_destroy(sock);
    }
    uci_worker_leave(worker);
    return ret;
}

void uci_hook_sock_forget(ucp_ep_h ep)
{
    uci_sock_t *sock = uci_handles_remove(&uci_socks, ep);

    if (sock != NULL) {
        uci_sock_destroy(sock);
    }
}

static void uci_hook_sock_end_one(uci_sock_t *sock)
{
    uci_handles_remove(&uci_socks, sock->ucp);
    uci_handles_remove(&uci_eps, sock->ucp);
    uci_defer_drop(sock);
}

void uci_hook_sock_end(uci_worker_t *worker)
{
    uci_sock_visit(worker, uci_hook_sock_end_one);
}

/* ------------------------------------------------------------- listeners */

typedef struct uci_listener {
    ucp_worker_h worker;
    ucp_listener_h ucp;
    ucp_listener_conn_handler_t conn;
    ucp_listener_accept_handler_t accept; /* its callback is NULL: the other one is the program's */
} uci_listener_t;

/* As UCX does for a program that wants an endpoint at once; by the hook, so that it is greeted */
static void uci_hook_listener_accept(const uci_listener_t *listener, ucp_conn_request_h request)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST, .conn_request = request};
    ucp_ep_h ep;

    if (uci_plugin_ep_create(listener->worker, &params, &ep) == UCS_OK) {
        listener->accept.cb(ep, listener->accept.arg);
    }
}

/* Where nothing may pass, the program does not hear of a client without UCI, and that one is told */
static void uci_hook_listener_on_request(ucp_conn_request_h request, void *arg)
{
    const uci_listener_t *listener = arg;
    char name[UCI_SOCK_NAME_MAX];

    if (uci_sock_is_required() && !uci_hook_sock_request_is_marked(request)) {
        uci_hook_sock_request_name(request, name, sizeof(name));
        uci_sock_say_refused(name, "its client runs without UCI, or with UCI_MODE=off");
        (void)uci_ucp.listener_reject(listener->ucp, request);
    } else if (listener->accept.cb != NULL) {
        uci_hook_listener_accept(listener, request);
    } else {
        listener->conn.cb(request, listener->conn.arg);
    }
}

static void uci_hook_listener_wrap(uci_listener_t *listener, ucp_listener_params_t *params)
{
    if (params->field_mask & UCP_LISTENER_PARAM_FIELD_CONN_HANDLER) {
        listener->conn = params->conn_handler;
    } else {
        listener->accept = params->accept_handler;
    }
    params->field_mask &= ~(uint64_t)UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER;
    params->field_mask |= UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params->conn_handler.cb  = uci_hook_listener_on_request;
    params->conn_handler.arg = listener;
}

/* One of both handlers, as UCX wants it; else it says what is wrong */
static bool uci_hook_listener_is_ours(ucp_worker_h worker, const ucp_listener_params_t *params)
{
    bool accepts = (params->field_mask & UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER) != 0;
    bool asks    = (params->field_mask & UCP_LISTENER_PARAM_FIELD_CONN_HANDLER) != 0;

    return (uci_plugin_worker(worker) != NULL) && (accepts != asks) &&
           (accepts ? (params->accept_handler.cb != NULL) : (params->conn_handler.cb != NULL));
}

UCI_EXPORT ucs_status_t ucp_listener_create(ucp_worker_h worker, const ucp_listener_params_t *params,
                                            ucp_listener_h *listener_p)
{
    uci_listener_params_t ours;
    uci_listener_t *listener;
    ucs_status_t status;

    UCI_HOOK();
    if (!uci_hook_listener_is_ours(worker, params)) {
        return uci_ucp.listener_create(worker, params, listener_p);
    }
    listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    uci_params_copy_listener(&ours, params);
    listener->worker = worker;
    uci_hook_listener_wrap(listener, &ours.ucx);
    uci_plugin_set_foreign(uci_plugin_worker(worker));
    status = uci_ucp.listener_create(worker, &ours.ucx, &listener->ucp);
    if (status != UCS_OK) {
        free(listener);
        return status;
    }
    *listener_p = listener->ucp;
    return uci_handles_add(&uci_listeners, listener->ucp, listener) ? UCS_OK : UCS_ERR_NO_MEMORY;
}

UCI_EXPORT void ucp_listener_destroy(ucp_listener_h listener)
{
    uci_listener_t *ours;

    UCI_HOOK();
    ours = uci_handles_remove(&uci_listeners, listener);
    uci_ucp.listener_destroy(listener);
    free(ours);
}

/* The program is told its own id, whoever's the worker is */
UCI_EXPORT ucs_status_t ucp_conn_request_query(ucp_conn_request_h request, ucp_conn_request_attr_t *attr)
{
    ucs_status_t status;

    UCI_HOOK();
    status = uci_ucp.conn_request_query(request, attr);
    if ((status == UCS_OK) && (uci_settings.mode != UCI_MODE_OFF) &&
        (attr->field_mask & UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID)) {
        (void)uci_sock_id_is_marked(attr->client_id, &attr->client_id);
    }
    return status;
}
