/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"
#include "defer.h"
#include "link/link_recv.h"
#include "live/stats.h"
#include "message/raw.h"
#include "message/user_am.h"
#include "staging.h"
#include "util/log.h"

/* ------------------------------------------------------------- handlers */

/* All active messages come as frames of UCI's, but for those of peers without it, which UCX gives as it always does; such a peer does not wait
 * until this side knows what it is. Where there can be none, what finds its way here had another id when it was sent */
static bool uci_hook_am_is_stray(uci_worker_t *worker)
{
    bool is_stray = false;

    if (worker->msgs.is_raw) {
        return false;
    }
    uci_worker_enter(worker);
    if (uci_list_is_empty(&worker->conn.socks) || uci_sock_is_required()) {
        uci_link_header_damaged(worker, NULL, "an active message of an id that its sender can't have given");
        is_stray = true;
    } else {
        uci_raw_begin(worker);
    }
    uci_worker_leave(worker);
    return is_stray;
}

/* The program may keep the data, and then gives them to UCX or to UCI, whose they are */
static void uci_hook_am_kept(uci_worker_t *worker, void *data)
{
    if (!uci_handles_add(&uci_raw_data, data, worker)) {
        uci_fatal("no memory for data of an active message");
    }
}

/* @return whether they are UCX's */
static bool uci_hook_am_give_back(const uci_worker_t *worker, const void *data)
{
    return worker->msgs.is_raw && (uci_handles_remove(&uci_raw_data, data) != NULL);
}

/* While the handler runs its data are known as UCX's: it may receive them, or release them. @return false: nobody has sent this */
static bool uci_hook_am_before(const uci_user_am_ucx_t *am, void *data, bool may_stay, uci_user_am_handler_t *handler_p)
{
    if (uci_hook_am_is_stray(am->worker)) {
        return false;
    }
    *handler_p = am->worker->msgs.handlers[am->id];
    if (may_stay) {
        uci_hook_am_kept(am->worker, data);
    }
    return true;
}

static void uci_hook_am_after(uci_worker_t *worker, void *data, bool may_stay, ucs_status_t status)
{
    if (may_stay && (status != UCS_INPROGRESS)) {
        (void)uci_hook_am_give_back(worker, data);
    }
}

static ucs_status_t uci_hook_am_arrived(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                        const ucp_am_recv_param_t *param)
{
    const uci_user_am_ucx_t *am = arg;
    bool may_stay               = (param->recv_attr & (UCP_AM_RECV_ATTR_FLAG_DATA | UCP_AM_RECV_ATTR_FLAG_RNDV)) != 0;
    uci_user_am_handler_t handler;
    ucs_status_t status;

    if (!uci_hook_am_before(am, data, may_stay, &handler)) {
        return UCS_OK;
    }
    status = handler.recv(handler.arg, header, header_length, data, length, param);
    uci_hook_am_after(am->worker, data, may_stay, status);
    return status;
}

static ucs_status_t uci_hook_am_arrived_old(void *arg, void *data, size_t length, ucp_ep_h reply_ep, unsigned flags)
{
    const uci_user_am_ucx_t *am = arg;
    bool may_stay               = (flags & UCP_CB_PARAM_FLAG_DATA) != 0;
    uci_user_am_handler_t handler;
    ucs_status_t status;

    if (!uci_hook_am_before(am, data, may_stay, &handler)) {
        return UCS_OK;
    }
    status = handler.old(handler.arg, data, length, reply_ep, flags);
    uci_hook_am_after(am->worker, data, may_stay, status);
    return status;
}

static bool uci_hook_am_is_own(unsigned id)
{
    if ((id == UCI_GREETING_AM_ID) || (id == UCI_AM_ID) || (id == UCI_FRAME_AM_ID) || (id == UCI_SEALED_AM_ID)) {
        uci_error("active message id %u is UCI's own on this worker: use another one, or run with UCI_MODE=off", id);
        return true;
    }
    return false;
}

/* @return what UCX's handler is given; NULL: no memory (logged) */
static uci_user_am_ucx_t *uci_hook_am_arg(uci_worker_t *worker, uint16_t id)
{
    uci_user_am_ucx_t *arg;

    uci_worker_enter(worker);
    arg = uci_user_am_ucx(worker, id);
    uci_worker_leave(worker);
    return arg;
}

static ucs_status_t uci_hook_am_set(uci_worker_t *worker, uint16_t id, const uci_user_am_handler_t *handler)
{
    ucs_status_t status;

    uci_worker_enter(worker);
    status = uci_user_am_set_handler(worker, id, handler);
    uci_worker_leave(worker);
    return status;
}

/* UCX says what it thinks of the arguments, and has a handler that peers without UCI call */
UCI_EXPORT ucs_status_t ucp_worker_set_am_handler(ucp_worker_h worker, uint16_t id, ucp_am_callback_t cb, void *arg,
                                                  uint32_t flags)
{
    uci_user_am_handler_t handler = {.old = cb, .arg = arg, .flags = flags, .is_old = true};
    uci_user_am_ucx_t *ucx;
    uci_worker_t *ours;
    ucs_status_t status;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        return uci_ucp.worker_set_am_handler(worker, id, cb, arg, flags);
    }
    if (uci_hook_am_is_own(id)) {
        return UCS_ERR_BUSY;
    }
    ucx = uci_hook_am_arg(ours, id);
    if (ucx == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = uci_ucp.worker_set_am_handler(worker, id, (cb != NULL) ? uci_hook_am_arrived_old : NULL, ucx, flags);
    return (status == UCS_OK) ? uci_hook_am_set(ours, id, &handler) : status;
}

static uci_user_am_handler_t uci_hook_am_handler(const ucp_am_handler_param_t *param)
{
    uint64_t mask = param->field_mask;

    return (uci_user_am_handler_t){.recv  = (mask & UCP_AM_HANDLER_PARAM_FIELD_CB) ? param->cb : NULL,
                                   .arg   = (mask & UCP_AM_HANDLER_PARAM_FIELD_ARG) ? param->arg : NULL,
                                   .flags = (mask & UCP_AM_HANDLER_PARAM_FIELD_FLAGS) ? param->flags : 0};
}

UCI_EXPORT ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker, const ucp_am_handler_param_t *param)
{
    uci_user_am_handler_t handler;
    ucp_am_handler_param_t ucx;
    uci_worker_t *ours;
    ucs_status_t status;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if ((ours == NULL) || !(param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ID)) {
        return uci_ucp.worker_set_am_recv_handler(worker, param);
    }
    if (uci_hook_am_is_own(param->id)) {
        return UCS_ERR_BUSY;
    }
    handler        = uci_hook_am_handler(param);
    ucx.field_mask = param->field_mask | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    ucx.id         = param->id;
    ucx.flags      = handler.flags;
    ucx.cb         = (handler.recv != NULL) ? uci_hook_am_arrived : NULL;
    ucx.arg        = uci_hook_am_arg(ours, (uint16_t)param->id);
    if (ucx.arg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = uci_ucp.worker_set_am_recv_handler(worker, &ucx);
    return (status == UCS_OK) ? uci_hook_am_set(ours, (uint16_t)param->id, &handler) : status;
}

/* ------------------------------------------------------ send and receive */

/* By an endpoint that is not a peer's: it was made by socket address, or UCI is off */
static ucs_status_ptr_t uci_hook_am_send_past(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                              const void *buffer, size_t count, const ucp_request_param_t *param)
{
    uci_sock_t *sock = uci_plugin_sock(ep);

    if (sock != NULL) {
        return uci_defer(sock,
                         &(uci_defer_what_t){.kind          = UCI_DEFER_AM,
                                             .buffer        = (void *)buffer,
                                             .count         = count,
                                             .tag           = id,
                                             .header        = header,
                                             .header_length = header_length},
                         param);
    }
    uci_plugin_clear_marker(param);
    if (uci_settings.mode != UCI_MODE_OFF) {
        UCI_STATS_PASSED(UCI_STATS_ADD_OUTSIDE, am, header_length + uci_buffer_known_length(buffer, count, param));
    }
    return uci_ucp.am_send_nbx(ep, id, header, header_length, buffer, count, param);
}

UCI_EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                            const void *buffer, size_t count, const ucp_request_param_t *param)
{
    uci_ep_t *ours = uci_plugin_ep(ep);
    ucp_request_param_t staged;
    uci_worker_t *worker;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    if (ours == NULL) {
        return uci_hook_am_send_past(ep, id, header, header_length, buffer, count, param);
    }
    worker = ours->peer->worker;
    uci_worker_enter(worker);
    param = uci_hook_param(worker, buffer, count, param, &staged);
    ret   = uci_likely(param != NULL) ? uci_user_am_send(ours, id, header, header_length, buffer, count, param)
                                      : UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    uci_worker_leave(worker);
    return ret;
}

UCI_EXPORT ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *desc, void *buffer, size_t count,
                                                 const ucp_request_param_t *param)
{
    uci_worker_t *ours = uci_plugin_worker(worker);
    ucp_request_param_t staged;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    if (ours == NULL) {
        uci_plugin_clear_marker(param);
        return uci_ucp.am_recv_data_nbx(worker, desc, buffer, count, param);
    }
    uci_worker_enter(ours);
    if (uci_unlikely(uci_hook_am_give_back(ours, desc))) {
        uci_plugin_clear_marker(param);
        ret = uci_ucp.am_recv_data_nbx(worker, desc, buffer, count, param);
        uci_worker_leave(ours);
        return ret;
    }
    param = uci_hook_param(ours, buffer, count, param, &staged);
    ret   = uci_likely(param != NULL) ? uci_user_am_recv_data(ours, desc, buffer, count, param)
                                      : UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    uci_worker_leave(ours);
    return ret;
}

UCI_EXPORT void ucp_am_data_release(ucp_worker_h worker, void *data)
{
    uci_worker_t *ours;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        uci_ucp.am_data_release(worker, data);
        return;
    }
    uci_worker_enter(ours);
    if (uci_unlikely(uci_hook_am_give_back(ours, data))) {
        uci_ucp.am_data_release(worker, data);
    } else {
        uci_user_am_release(ours, data);
    }
    uci_worker_leave(ours);
}
