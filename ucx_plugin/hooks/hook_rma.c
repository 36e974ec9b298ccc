/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations. What is not UCI's passes through: operations by endpoints and keys that are not its own, on memory that is not the
 * host's, and what an adapter does. There are three things to do then.
 *
 * Marker: when the user gives memory for the request, and this memory held a request of ours before, our marker must go,
 * so that the request is known as UCX's.
 *
 * Order of locks: inside of them UCX may call, with its worker locked, the user's callback (UCP_OP_ATTR_FLAG_NO_IMM_CMPL) or
 * ucp_worker_progress() (the flushes that wait), and so a hook that locks our worker. Everybody else locks ours first.
 *
 * Count: what passes is not verified, and it is said how much that is. Where it begins, so that nothing counts twice: not where
 * it is received, nor in older functions, which are the newer ones inside of UCX. What UCI itself does goes past the hooks.
 */
#include "attach/plugin.h"

#include "base/memtype.h"
#include "data/buffer.h"
#include "defer.h"
#include "hook_rma.h"
#include "live/stats.h"
#include "rma/rma.h"
#include "util/log.h"
#include "util/process.h"
#include "seal/seal.h"
#include "settings/settings.h"

/* @param ours  NULL: it is not a peer's, and may be one made by socket address (conn/sock.h). @return NULL: it is UCX's alone */
static uci_worker_t *uci_hook_worker_of(ucp_ep_h ep, const uci_ep_t *ours)
{
    const uci_sock_t *sock = (ours == NULL) ? uci_plugin_sock(ep) : NULL;

    if (ours != NULL) {
        return ours->peer->worker;
    }
    return (sock != NULL) ? sock->worker : NULL;
}

/* What waits for the other side to be known is flushed behind it */
static uci_sock_t *uci_hook_waiting(ucp_ep_h ep)
{
    uci_sock_t *sock = (uci_plugin_ep(ep) == NULL) ? uci_plugin_sock(ep) : NULL;

    return ((sock != NULL) && uci_sock_is_waiting(sock)) ? sock : NULL;
}

/* UCX will call the program from within this worker's progress */
static void uci_hook_see_callback(uci_worker_t *worker, const ucp_request_param_t *param)
{
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
        uci_worker_set_foreign(worker);
    }
}

static UCI_NOINLINE void uci_hook_warn_unsealed(const char *name)
{
    static bool said;

    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        uci_warn(
                "%s uses ucp_%s for memory that UCI has no part in: that is not sealed (UCI_SEAL), and passes in clear",
                uci_process_name(), name);
    }
}

/* The operation goes to UCX. @param worker  NULL: by an endpoint that is not ours */
static void uci_hook_pass(uci_worker_t *worker, const ucp_request_param_t *param, const char *name)
{
    uci_plugin_clear_marker(param);
    if (uci_unlikely(uci_seal_is_on())) {
        uci_hook_warn_unsealed(name);
    }
    if (worker != NULL) {
        uci_hook_see_callback(worker, param);
        uci_rma_passes(worker);
    }
}

/* What UCX 1.13 knows of an operation: who says more means what UCI does not know */
#define UCI_HOOK_KNOWN \
    (UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | \
     UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_REPLY_BUFFER | \
     UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_RECV_INFO | UCP_OP_ATTR_FIELD_MEMH | \
     UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FLAG_FAST_CMPL | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | \
     UCP_OP_ATTR_FLAG_MULTI_SEND)

static bool uci_hook_is_known(const ucp_request_param_t *param)
{
    ucp_datatype_t datatype = uci_buffer_datatype(param);

    return !(param->op_attr_mask & ~(uint32_t)UCI_HOOK_KNOWN) &&
           (uci_buffer_is_contig(datatype) || (datatype == ucp_dt_make_iov()));
}

/* @return NULL: UCX has the operation */
static const uci_rma_key_t *uci_hook_key(uci_ep_t *ep, ucp_rkey_h rkey, const void *buffer, size_t count,
                                         const ucp_request_param_t *param)
{
    uci_rma_key_t *key = uci_handles_find(&uci_rkeys, rkey);

    if ((key != NULL) && uci_unlikely(!key->settled)) {
        uci_rma_key_settle(ep, key, rkey);
    }
    if (!uci_rma_is_own(ep, key) || !uci_hook_is_known(param) ||
        !uci_memtype_is_host(ep->peer->worker->context, buffer, count, param)) {
        return NULL;
    }
    return key;
}

/* A hook around uci_ucp._name, which is uci_rma_FUNCTION where it is UCI's. What passes is counted as a _way (live/stats.h), with the bytes
 * that the buffer has; with UCI_MODE=off nothing is UCI's to count */
#define UCI_HOOK_RMA(_name, _way, _params, _args, _own) \
    UCI_EXPORT ucs_status_ptr_t ucp_##_name _params \
    { \
        return uci_hook_##_name _args; \
    } \
\
    ucs_status_ptr_t uci_hook_##_name _params \
    { \
        uci_ep_t *ours = uci_plugin_ep(ep); \
        const uci_rma_key_t *key; \
        uci_worker_t *worker; \
        ucs_status_ptr_t ret; \
\
        UCI_HOOK(); \
        worker = uci_hook_worker_of(ep, ours); \
        if (worker == NULL) { \
            uci_hook_pass(NULL, param, #_name); \
            if (uci_settings.mode != UCI_MODE_OFF) { \
                UCI_STATS_PASSED(UCI_STATS_ADD_OUTSIDE, _way, uci_buffer_known_length(buffer, count, param)); \
            } \
            return uci_ucp._name _args; \
        } \
        uci_worker_enter(worker); \
        key = (ours != NULL) ? uci_hook_key(ours, rkey, buffer, count, param) : NULL; \
        if (uci_likely(key != NULL)) { \
            ret = _own; \
        } else { \
            uci_hook_pass(worker, param, #_name); \
            UCI_STATS_PASSED(UCI_STATS_ADD, _way, uci_buffer_known_length(buffer, count, param)); \
            ret = uci_ucp._name _args; \
        } \
        uci_worker_leave(worker); \
        return ret; \
    }

UCI_HOOK_RMA(put_nbx, put,
             (ucp_ep_h ep, const void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
              const ucp_request_param_t *param),
             (ep, buffer, count, address, rkey, param), uci_rma_put(ours, buffer, count, address, key, param))
UCI_HOOK_RMA(get_nbx, get,
             (ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
              const ucp_request_param_t *param),
             (ep, buffer, count, address, rkey, param), uci_rma_get(ours, buffer, count, address, key, param))
UCI_HOOK_RMA(atomic_op_nbx, atomic,
             (ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
              const ucp_request_param_t *param),
             (ep, opcode, buffer, count, address, rkey, param),
             uci_rma_atomic(ours, opcode, buffer, count, address, key, param))

/* --------------------------------------------------------------- flushes */

static ucs_status_ptr_t uci_hook_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    uci_ep_t *ours = uci_plugin_ep(ep);
    uci_worker_t *worker;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    worker = uci_hook_worker_of(ep, ours);
    if (worker == NULL) {
        uci_plugin_clear_marker(param);
        return uci_ucp.ep_flush_nbx(ep, param);
    }
    uci_worker_enter(worker);
    if (uci_hook_waiting(ep) != NULL) {
        ret = uci_defer(uci_hook_waiting(ep), &(uci_defer_what_t){.kind = UCI_DEFER_FLUSH}, param);
    } else if ((ours != NULL) && uci_rma_flushes(worker)) {
        ret = uci_rma_flush(worker, ours, param);
    } else {
        uci_plugin_clear_marker(param);
        uci_hook_see_callback(worker, param);
        ret = uci_ucp.ep_flush_nbx(ep, param);
    }
    uci_worker_leave(worker);
    return ret;
}

UCI_EXPORT ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    return uci_hook_ep_flush_nbx(ep, param);
}

static ucs_status_ptr_t uci_hook_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param)
{
    uci_worker_t *ours;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        uci_plugin_clear_marker(param);
        return uci_ucp.worker_flush_nbx(worker, param);
    }
    uci_worker_enter(ours);
    if (uci_unlikely(uci_defer_is_any(ours))) {
        ret = uci_defer_worker_flush(ours, param);
    } else if (uci_rma_flushes(ours)) {
        ret = uci_rma_flush(ours, NULL, param);
    } else {
        uci_plugin_clear_marker(param);
        uci_hook_see_callback(ours, param);
        ret = uci_ucp.worker_flush_nbx(worker, param);
    }
    uci_worker_leave(ours);
    return ret;
}

UCI_EXPORT ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param)
{
    return uci_hook_worker_flush_nbx(worker, param);
}

/* Also for UCX's own: in turns, which its blocking functions know nothing of, and in which alone it is seen where UCI may connect
 * (uci_control_is_too_early()) */
ucs_status_t uci_hook_wait(uci_worker_t *worker, ucs_status_ptr_t request)
{
    uci_request_t *req;
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    req = uci_request_from_user(request);
    do {
        uci_worker_enter(worker);
        uci_worker_progress(worker, worker->ucp);
        uci_worker_leave(worker);
        status = (req != NULL) ? uci_request_check(req) : uci_ucp.request_check_status(request);
    } while (status == UCS_INPROGRESS);
    if (req != NULL) {
        uci_request_free(req);
    } else {
        uci_ucp.request_free(request);
    }
    return status;
}

UCI_EXPORT ucs_status_t ucp_ep_flush(ucp_ep_h ep)
{
    static const ucp_request_param_t none;
    uci_ep_t *ours = uci_plugin_ep(ep);
    uci_worker_t *worker;

    UCI_HOOK();
    worker = uci_hook_worker_of(ep, ours);
    return (worker == NULL) ? uci_ucp.ep_flush(ep) : uci_hook_wait(worker, uci_hook_ep_flush_nbx(ep, &none));
}

UCI_EXPORT ucs_status_t ucp_worker_flush(ucp_worker_h worker)
{
    static const ucp_request_param_t none;
    uci_worker_t *ours;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    return (ours == NULL) ? uci_ucp.worker_flush(worker)
                          : uci_hook_wait(ours, uci_hook_worker_flush_nbx(worker, &none));
}

UCI_EXPORT ucs_status_t ucp_worker_fence(ucp_worker_h worker)
{
    uci_worker_t *ours;
    ucs_status_t status;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        return uci_ucp.worker_fence(worker);
    }
    uci_worker_enter(ours);
    uci_rma_fence(ours);
    status = uci_ucp.worker_fence(worker);
    uci_worker_leave(ours);
    return status;
}
