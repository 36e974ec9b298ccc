/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include "base/request.h"
#include "defer.h"
#include "live/stats.h"
#include "message/user_stream.h"
#include "settings/settings.h"
#include "staging.h"

/* Those of an endpoint to oneself by socket address have no number (conn/sock.c) */
static bool uci_hook_stream_is_ours(const uci_ep_t *ep)
{
    return (ep != NULL) && (ep->number != 0);
}

/* By an endpoint that is not a peer's: it was made by socket address, or UCI is off */
static ucs_status_ptr_t uci_hook_stream_send_past(ucp_ep_h ep, const void *buffer, size_t count,
                                                  const ucp_request_param_t *param)
{
    uci_sock_t *sock = uci_plugin_sock(ep);

    if (sock != NULL) {
        return uci_defer(sock, &(uci_defer_what_t){.kind = UCI_DEFER_STREAM, .buffer = (void *)buffer, .count = count},
                         param);
    }
    uci_plugin_clear_marker(param);
    if (uci_settings.mode != UCI_MODE_OFF) {
        UCI_STATS_PASSED(UCI_STATS_ADD_OUTSIDE, stream, uci_buffer_known_length(buffer, count, param));
    }
    return uci_ucp.stream_send_nbx(ep, buffer, count, param);
}

static ucs_status_ptr_t uci_hook_stream_recv_past(ucp_ep_h ep, void *buffer, size_t count, size_t *length,
                                                  const ucp_request_param_t *param)
{
    uci_sock_t *sock = uci_plugin_sock(ep);

    if (sock != NULL) {
        return uci_defer(sock,
                         &(uci_defer_what_t){
                                 .kind = UCI_DEFER_STREAM_RECV, .buffer = buffer, .count = count, .length_p = length},
                         param);
    }
    uci_plugin_clear_marker(param);
    return uci_ucp.stream_recv_nbx(ep, buffer, count, length, param);
}

/* The older functions are the newer ones inside of UCX (1.13 on), by their names: they come here */
UCI_EXPORT ucs_status_ptr_t ucp_stream_send_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                                const ucp_request_param_t *param)
{
    uci_ep_t *ours = uci_plugin_ep(ep);
    ucp_request_param_t staged;
    uci_worker_t *worker;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    if (!uci_hook_stream_is_ours(ours)) {
        return uci_hook_stream_send_past(ep, buffer, count, param);
    }
    worker = ours->peer->worker;
    uci_worker_enter(worker);
    param = uci_hook_param(worker, buffer, count, param, &staged);
    ret   = uci_likely(param != NULL) ? uci_user_stream_send(ours, buffer, count, param)
                                      : UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    uci_worker_leave(worker);
    return ret;
}

UCI_EXPORT ucs_status_ptr_t ucp_stream_recv_nbx(ucp_ep_h ep, void *buffer, size_t count, size_t *length,
                                                const ucp_request_param_t *param)
{
    uci_ep_t *ours = uci_plugin_ep(ep);
    ucp_request_param_t staged;
    uci_worker_t *worker;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    if (!uci_hook_stream_is_ours(ours)) {
        return uci_hook_stream_recv_past(ep, buffer, count, length, param);
    }
    worker = ours->peer->worker;
    uci_worker_enter(worker);
    param = uci_hook_param(worker, buffer, count, param, &staged);
    ret   = uci_likely(param != NULL) ? uci_user_stream_recv(ours, buffer, count, length, param)
                                      : UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    uci_worker_leave(worker);
    return ret;
}

UCI_EXPORT ucs_status_ptr_t ucp_stream_recv_data_nb(ucp_ep_h ep, size_t *length)
{
    uci_ep_t *ours = uci_plugin_ep(ep);
    uci_worker_t *worker;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    if (!uci_hook_stream_is_ours(ours)) {
        return uci_ucp.stream_recv_data_nb(ep, length);
    }
    worker = ours->peer->worker;
    uci_worker_enter(worker);
    ret = uci_user_stream_recv_data(ours, length);
    uci_worker_leave(worker);
    return ret;
}

UCI_EXPORT void ucp_stream_data_release(ucp_ep_h ep, void *data)
{
    uci_ep_t *ours = uci_plugin_ep(ep);
    uci_worker_t *worker;

    UCI_HOOK();
    if (!uci_hook_stream_is_ours(ours)) {
        uci_ucp.stream_data_release(ep, data);
        return;
    }
    worker = ours->peer->worker;
    uci_worker_enter(worker);
    uci_user_stream_release(ours, data);
    uci_worker_leave(worker);
}

UCI_EXPORT ssize_t ucp_stream_worker_poll(ucp_worker_h worker, ucp_stream_poll_ep_t *poll_eps, size_t max_eps,
                                          unsigned flags)
{
    uci_worker_t *ours;
    size_t count = 0;
    ssize_t more;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours != NULL) {
        uci_worker_enter(ours);
        count = uci_user_stream_poll(ours, poll_eps, max_eps);
        uci_worker_leave(ours);
    }
    more = uci_ucp.stream_worker_poll(worker, poll_eps + count, max_eps - count, flags);
    return (more < 0) ? more : (ssize_t)count + more;
}

UCI_EXPORT ucs_status_t ucp_stream_recv_request_test(void *request, size_t *length_p)
{
    uci_request_t *req = uci_request_from_user(request);
    ucs_status_t status;

    if (uci_unlikely(req == NULL)) {
        UCI_HOOK();
        return uci_ucp.stream_recv_request_test(request, length_p);
    }
    status = uci_request_check(req);
    if (status != UCS_INPROGRESS) {
        *length_p = req->info.length;
    }
    return status;
}
