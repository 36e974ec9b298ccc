/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include "base/memtype.h"
#include "defer.h"
#include "off.h"
#include "params.h"
#include "staging.h"
#include "message/recv.h"
#include "message/send.h"
#include "base/signed.h"
#include "live/stats.h"
#include "message/unexpected.h"

/* Of an endpoint that is not a peer's: it was made by socket address, or UCI is off */
static ucs_status_ptr_t uci_hook_send_past(uci_hook_send_func_t *send, ucp_ep_h ep, const void *buffer, size_t count,
                                           ucp_tag_t tag, const ucp_request_param_t *param)
{
    uci_sock_t *sock = uci_plugin_sock(ep);

    if (sock != NULL) {
        return uci_defer(
                sock,
                &(uci_defer_what_t){.kind   = (send == uci_ucp.tag_send_nbx) ? UCI_DEFER_TAG : UCI_DEFER_TAG_SYNC,
                                    .buffer = (void *)buffer,
                                    .count  = count,
                                    .tag    = tag},
                param);
    }
    if (uci_settings.mode == UCI_MODE_OFF) {
        return uci_off_send(send, ep, buffer, count, tag, param);
    }
    uci_plugin_clear_marker(param);
    UCI_STATS_PASSED(UCI_STATS_ADD_OUTSIDE, messages, uci_buffer_known_length(buffer, count, param));
    return send(ep, buffer, count, tag, param);
}

static UCI_NOINLINE ucs_status_ptr_t uci_hook_send_any(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                                       const ucp_request_param_t *param, bool sync)
{
    uci_hook_send_func_t *original   = sync ? uci_ucp.tag_send_sync_nbx : uci_ucp.tag_send_nbx;
    const uci_signature_t *signature = uci_signed_take_send();
    uci_ep_t *ours                   = uci_plugin_ep(ep);
    ucp_request_param_t staged;
    uci_worker_t *worker;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    if (uci_unlikely(ours == NULL)) {
        return uci_hook_send_past(original, ep, buffer, count, tag, param);
    }
    worker = ours->peer->worker;
    uci_worker_enter(worker);
    param = uci_hook_param(worker, buffer, count, param, &staged);
    if (uci_unlikely(param == NULL)) {
        ret = UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    } else if (signature != NULL) {
        ret = uci_send_with(ours, buffer, count, tag, param, sync, signature);
    } else {
        ret = uci_send(ours, buffer, count, tag, param, sync);
    }
    uci_worker_leave(worker);
    return ret;
}

/* Not the short way, but nearly: with a signature (signed.h), and else as usual. Cold, so that the short way keeps its registers */
static UCI_NOINLINE ucs_status_ptr_t uci_hook_send_long(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                                        const ucp_request_param_t *param, bool sync)
{
    const uci_signature_t *signature = uci_signed_next.send;
    uci_ep_t *ours;

    if (uci_likely(signature != NULL)) {
        ours = uci_plugin_ep(ep);
        if (uci_likely(ours != NULL) && uci_likely(uci_memtype_is_host_only_now(ours->peer->worker->context, param)) &&
            uci_likely(uci_worker_enter_fast(ours->peer->worker))) {
            uci_signed_next.send = NULL;
            return uci_send_with(ours, buffer, count, tag, param, sync, signature);
        }
    }
    return uci_hook_send_any(ep, buffer, count, tag, param, sync);
}

/* The usual case ends in a call that returns to our caller: nothing is to be kept meanwhile. Who finds a handle needs no
 * UCI_HOOK(). What is not usual looks it up again: to hand it over would cost the usual case 4 instructions. */
UCI_INLINE ucs_status_ptr_t uci_hook_send(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                          const ucp_request_param_t *param, bool sync)
{
    uci_ep_t *ours = uci_plugin_ep(ep);

    if (uci_likely(ours != NULL) && uci_likely(uci_memtype_is_host_fast(ours->peer->worker->context, param)) &&
        uci_likely(uci_worker_enter_fast(ours->peer->worker))) {
        return uci_send(ours, buffer, count, tag, param, sync);
    }
    return uci_hook_send_long(ep, buffer, count, tag, param, sync);
}

UCI_EXPORT ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                             const ucp_request_param_t *param)
{
    return uci_hook_send(ep, buffer, count, tag, param, false);
}

UCI_EXPORT ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                                  const ucp_request_param_t *param)
{
    return uci_hook_send(ep, buffer, count, tag, param, true);
}

/* The older calls are these, as in UCX */
static void uci_hook_send_param(ucp_request_param_t *param, ucp_datatype_t datatype, ucp_send_callback_t cb)
{
    param->op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK;
    param->datatype     = datatype;
    param->cb.send      = (ucp_send_nbx_callback_t)(void *)cb;
}

UCI_EXPORT ucs_status_ptr_t ucp_tag_send_nb(ucp_ep_h ep, const void *buffer, size_t count, ucp_datatype_t datatype,
                                            ucp_tag_t tag, ucp_send_callback_t cb)
{
    ucp_request_param_t param;

    uci_hook_send_param(&param, datatype, cb);
    return uci_hook_send(ep, buffer, count, tag, &param, false);
}

UCI_EXPORT ucs_status_ptr_t ucp_tag_send_sync_nb(ucp_ep_h ep, const void *buffer, size_t count, ucp_datatype_t datatype,
                                                 ucp_tag_t tag, ucp_send_callback_t cb)
{
    ucp_request_param_t param;

    uci_hook_send_param(&param, datatype, cb);
    return uci_hook_send(ep, buffer, count, tag, &param, true);
}

static ucs_status_t uci_hook_ptr_to_status(ucs_status_ptr_t ptr)
{
    return UCS_PTR_IS_PTR(ptr) ? UCS_INPROGRESS : UCS_PTR_STATUS(ptr);
}

UCI_EXPORT ucs_status_t ucp_tag_send_nbr(ucp_ep_h ep, const void *buffer, size_t count, ucp_datatype_t datatype,
                                         ucp_tag_t tag, void *request)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REQUEST |
                                                 UCP_OP_ATTR_FLAG_FAST_CMPL,
                                 .datatype = datatype,
                                 .request  = request};

    return uci_hook_ptr_to_status(uci_hook_send(ep, buffer, count, tag, &param, false));
}

static UCI_NOINLINE ucs_status_ptr_t uci_hook_recv_any(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                                       ucp_tag_t tag_mask, const ucp_request_param_t *param)
{
    const uci_signature_t *signature = uci_signed_take_recv();
    uci_worker_t *ours               = uci_plugin_worker(worker);
    ucp_request_param_t staged;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    if (uci_unlikely(ours == NULL)) {
        uci_plugin_clear_marker(param);
        return uci_ucp.tag_recv_nbx(worker, buffer, count, tag, tag_mask, param);
    }
    uci_worker_enter(ours);
    param = uci_hook_param(ours, buffer, count, param, &staged);
    if (uci_unlikely(param == NULL)) {
        ret = UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    } else if ((signature != NULL) && (ours->calls.recv == uci_recv)) {
        ret = uci_recv_with(ours, buffer, count, tag, tag_mask, param, signature);
    } else {
        ret = ours->calls.recv(ours, buffer, count, tag, tag_mask, param);
    }
    uci_worker_leave(ours);
    return ret;
}

/* As uci_hook_send_long() */
static UCI_NOINLINE ucs_status_ptr_t uci_hook_recv_long(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                                        ucp_tag_t tag_mask, const ucp_request_param_t *param)
{
    const uci_signature_t *signature = uci_signed_next.recv;
    uci_worker_t *ours;

    if (uci_likely(signature != NULL)) {
        ours = uci_plugin_worker(worker);
        if (uci_likely(ours != NULL) && uci_likely(ours->calls.recv == uci_recv) &&
            uci_likely(uci_memtype_is_host_only_now(ours->context, param)) && uci_likely(uci_worker_enter_fast(ours))) {
            uci_signed_next.recv = NULL;
            return uci_recv_with(ours, buffer, count, tag, tag_mask, param, signature);
        }
    }
    return uci_hook_recv_any(worker, buffer, count, tag, tag_mask, param);
}

/* As uci_hook_send() */
UCI_INLINE ucs_status_ptr_t uci_hook_recv(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                          ucp_tag_t tag_mask, const ucp_request_param_t *param)
{
    uci_worker_t *ours = uci_plugin_worker(worker);

    if (uci_likely(ours != NULL) && uci_likely(uci_memtype_is_host_fast(ours->context, param)) &&
        uci_likely(uci_worker_enter_fast(ours))) {
        return uci_recv(ours, buffer, count, tag, tag_mask, param);
    }
    return uci_hook_recv_long(worker, buffer, count, tag, tag_mask, param);
}

UCI_EXPORT ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                             ucp_tag_t tag_mask, const ucp_request_param_t *param)
{
    return uci_hook_recv(worker, buffer, count, tag, tag_mask, param);
}

UCI_EXPORT ucs_status_ptr_t ucp_tag_recv_nb(ucp_worker_h worker, void *buffer, size_t count, ucp_datatype_t datatype,
                                            ucp_tag_t tag, ucp_tag_t tag_mask, ucp_tag_recv_callback_t cb)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .datatype = datatype,
                                 .cb.recv  = (ucp_tag_recv_nbx_callback_t)(void *)cb};

    return uci_hook_recv(worker, buffer, count, tag, tag_mask, &param);
}

/* As in UCX the request has what becomes of a receive that was posted, truncation too, and this one says only whether it was */
static ucs_status_t uci_hook_posted_status(ucs_status_ptr_t ptr, void *user)
{
    const uci_request_t *req;

    if (uci_likely(!UCS_PTR_IS_ERR(ptr))) {
        return UCS_OK;
    }
    req = uci_request_from_user(user);
    return ((req != NULL) && (req->status == UCS_PTR_STATUS(ptr))) ? UCS_OK : UCS_PTR_STATUS(ptr);
}

UCI_EXPORT ucs_status_t ucp_tag_recv_nbr(ucp_worker_h worker, void *buffer, size_t count, ucp_datatype_t datatype,
                                         ucp_tag_t tag, ucp_tag_t tag_mask, void *req)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REQUEST,
                                 .datatype     = datatype,
                                 .request      = req};

    return uci_hook_posted_status(uci_hook_recv(worker, buffer, count, tag, tag_mask, &param), req);
}

UCI_EXPORT ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag, ucp_tag_t tag_mask, int remove,
                                              ucp_tag_recv_info_t *info)
{
    uci_worker_t *ours;
    ucp_tag_message_h message;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        return uci_ucp.tag_probe_nb(worker, tag, tag_mask, remove, info);
    }
    uci_worker_enter(ours);
    message = uci_unexpected_probe(ours, tag, tag_mask, remove, info);
    uci_worker_leave(ours);
    return message;
}

UCI_INLINE ucs_status_ptr_t uci_hook_msg_recv(ucp_worker_h worker, void *buffer, size_t count,
                                              ucp_tag_message_h message, const ucp_request_param_t *param)
{
    uci_worker_t *ours = uci_plugin_worker(worker);
    ucp_request_param_t staged;
    ucs_status_ptr_t ret;

    if (ours == NULL) {
        uci_plugin_clear_marker(param);
        return uci_ucp.tag_msg_recv_nbx(worker, buffer, count, message, param);
    }
    uci_worker_enter(ours);
    param = uci_hook_param(ours, buffer, count, param, &staged);
    ret   = uci_likely(param != NULL) ? uci_unexpected_recv(ours, buffer, count, message, param)
                                      : UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    uci_worker_leave(ours);
    return ret;
}

UCI_EXPORT ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h worker, void *buffer, size_t count,
                                                 ucp_tag_message_h message, const ucp_request_param_t *param)
{
    UCI_HOOK();
    return uci_hook_msg_recv(worker, buffer, count, message, param);
}

UCI_EXPORT ucs_status_ptr_t ucp_tag_msg_recv_nb(ucp_worker_h worker, void *buffer, size_t count,
                                                ucp_datatype_t datatype, ucp_tag_message_h message,
                                                ucp_tag_recv_callback_t cb)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .datatype = datatype,
                                 .cb.recv  = (ucp_tag_recv_nbx_callback_t)(void *)cb};

    UCI_HOOK();
    return uci_hook_msg_recv(worker, buffer, count, message, &param);
}
