/* SPDX-License-Identifier: BSD-3-Clause */
#include "hook_am.h"

#include "attach/plugin.h"
#include "link/link_recv.h"
#include "live/stats.h"
#include "message/user_am.h"
#include "staging.h"
#include "util/log.h"

/* ------------------------------------------------------------- handlers */

/* All active messages come as frames of UCI's: what finds its way here had another id when it was sent */
static void uci_hook_am_count_stray(uci_worker_t *worker)
{
    uci_worker_enter(worker);
    uci_link_header_damaged(worker, NULL, "an active message of an id that its sender can't have given");
    uci_worker_leave(worker);
}

static ucs_status_t uci_hook_am_stray(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                      const ucp_am_recv_param_t *param)
{
    uci_hook_am_count_stray(arg);
    return UCS_OK;
}

static ucs_status_t uci_hook_am_stray_old(void *arg, void *data, size_t length, ucp_ep_h reply_ep, unsigned flags)
{
    uci_hook_am_count_stray(arg);
    return UCS_OK;
}

static bool uci_hook_am_is_own(unsigned id)
{
    if ((id == UCI_AM_ID) || (id == UCI_FRAME_AM_ID) || (id == UCI_SEALED_AM_ID)) {
        uci_error("active message id %u is UCI's own on this worker: use another one, or run with UCI_MODE=off", id);
        return true;
    }
    return false;
}

static ucs_status_t uci_hook_am_set(uci_worker_t *worker, uint16_t id, const uci_user_am_handler_t *handler)
{
    ucs_status_t status;

    uci_worker_enter(worker);
    status = uci_user_am_set_handler(worker, id, handler);
    uci_worker_leave(worker);
    return status;
}

/* UCX says what it thinks of the arguments, and has a handler that nobody calls */
UCI_EXPORT ucs_status_t ucp_worker_set_am_handler(ucp_worker_h worker, uint16_t id, ucp_am_callback_t cb, void *arg,
                                                  uint32_t flags)
{
    uci_user_am_handler_t handler = {.old = cb, .arg = arg, .flags = flags, .is_old = true};
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
    status = uci_ucp.worker_set_am_handler(worker, id, (cb != NULL) ? uci_hook_am_stray_old : NULL, ours, flags);
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
    ucx.cb         = (handler.recv != NULL) ? uci_hook_am_stray : NULL;
    ucx.arg        = ours;
    status         = uci_ucp.worker_set_am_recv_handler(worker, &ucx);
    return (status == UCS_OK) ? uci_hook_am_set(ours, (uint16_t)param->id, &handler) : status;
}

static void uci_hook_am_give_back_one(ucp_worker_h worker, unsigned id, const uci_user_am_handler_t *handler)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                                                  UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                    .id    = id,
                                    .flags = handler->flags,
                                    .arg   = handler->arg};

    if (handler->is_old) {
        (void)uci_ucp.worker_set_am_handler(worker, (uint16_t)id, handler->old, handler->arg, handler->flags);
    } else {
        param.cb = handler->recv;
        (void)uci_ucp.worker_set_am_recv_handler(worker, &param);
    }
}

void uci_hook_am_give_back(uci_worker_t *worker)
{
    unsigned id;

    for (id = 0; id < worker->msgs.handler_count; ++id) {
        if (worker->msgs.handlers[id].recv != NULL) {
            uci_hook_am_give_back_one(worker->ucp, id, &worker->msgs.handlers[id]);
        }
    }
}

/* ------------------------------------------------------ send and receive */

/* By an endpoint that is not ours: UCI is off, or has stepped aside */
static ucs_status_ptr_t uci_hook_am_send_past(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                              const void *buffer, size_t count, const ucp_request_param_t *param)
{
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
    uci_user_am_release(ours, data);
    uci_worker_leave(ours);
}
