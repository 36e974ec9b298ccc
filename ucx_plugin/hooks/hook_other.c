/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations that UCI does not cover pass through. They are hooked for three reasons.
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

#include "data/buffer.h"
#include "defer.h"
#include "live/stats.h"
#include "util/log.h"
#include "util/process.h"
#include "seal/seal.h"
#include "settings/settings.h"

UCI_INLINE uci_worker_t *uci_hook_other_worker(ucp_worker_h worker)
{
    return uci_plugin_worker(worker);
}

UCI_INLINE uci_worker_t *uci_hook_other_ep(ucp_ep_h ep)
{
    uci_ep_t *ours   = uci_plugin_ep(ep);
    uci_sock_t *sock = (ours == NULL) ? uci_plugin_sock(ep) : NULL;

    if (ours != NULL) {
        return ours->peer->worker;
    }
    return (sock != NULL) ? sock->worker : NULL;
}

/* A hook around uci_ucp._name; _kind and _handle tell whose lock. _prepare comes before all else, then _inside with the lock, or
 * _outside, where the handle is none of ours */
#define UCI_HOOK_PASS(_type, _name, _kind, _handle, _prepare, _inside, _outside, _params, _args) \
    UCI_EXPORT _type ucp_##_name _params \
    { \
        uci_worker_t *ours; \
        _type ret; \
\
        UCI_HOOK(); \
        _prepare; \
        ours = uci_hook_other_##_kind(_handle); \
        if (ours == NULL) { \
            _outside; \
            return uci_ucp._name _args; \
        } \
        uci_worker_enter(ours); \
        _inside; \
        ret = uci_ucp._name _args; \
        uci_worker_leave(ours); \
        return ret; \
    }

/* UCX will call the program from within this worker's progress */
static void uci_hook_see_callback(uci_worker_t *worker, const ucp_request_param_t *param)
{
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
        uci_worker_set_foreign(worker);
    }
}

#define UCI_HOOK_COUNT(_add, _way) UCI_STATS_PASSED(_add, _way, uci_buffer_known_length(buffer, count, param))

/* With UCI_MODE=off nothing is UCI's to count */
#define UCI_HOOK_COUNT_OUTSIDE(_way) \
    do { \
        if (uci_settings.mode != UCI_MODE_OFF) { \
            UCI_HOOK_COUNT(UCI_STATS_ADD_OUTSIDE, _way); \
        } \
    } while (0)

/* The same of those that send or fetch what is in no message of UCI's, counted as a _way (live/stats.h), with the bytes that
 * the buffer has */
#define UCI_HOOK_PAST(_name, _way, _params, _args) \
    UCI_HOOK_PASS(ucs_status_ptr_t, _name, ep, ep, uci_hook_past(param, #_name), \
                  (uci_hook_see_callback(ours, param), UCI_HOOK_COUNT(UCI_STATS_ADD, _way)), \
                  UCI_HOOK_COUNT_OUTSIDE(_way), _params, _args)

static UCI_NOINLINE void uci_hook_warn_unsealed(const char *name)
{
    static bool said;

    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        uci_warn("%s uses ucp_%s: one-sided operations are not sealed (UCI_SEAL), and pass in clear",
                 uci_process_name(), name);
    }
}

UCI_INLINE void uci_hook_past(const ucp_request_param_t *param, const char *name)
{
    uci_plugin_clear_marker(param);
    if (uci_unlikely(uci_seal_is_on())) {
        uci_hook_warn_unsealed(name);
    }
}

UCI_HOOK_PAST(put_nbx, put,
              (ucp_ep_h ep, const void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
               const ucp_request_param_t *param),
              (ep, buffer, count, address, rkey, param))
UCI_HOOK_PAST(get_nbx, get,
              (ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
               const ucp_request_param_t *param),
              (ep, buffer, count, address, rkey, param))
UCI_HOOK_PAST(atomic_op_nbx, atomic,
              (ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
               const ucp_request_param_t *param),
              (ep, opcode, buffer, count, address, rkey, param))
UCI_EXPORT ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param)
{
    uci_worker_t *ours;
    ucs_status_ptr_t ret;

    UCI_HOOK();
    uci_plugin_clear_marker(param);
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        return uci_ucp.worker_flush_nbx(worker, param);
    }
    uci_worker_enter(ours);
    if (uci_unlikely(uci_defer_is_any(ours))) {
        ret = uci_defer_worker_flush(ours, param);
    } else {
        uci_hook_see_callback(ours, param);
        ret = uci_ucp.worker_flush_nbx(worker, param);
    }
    uci_worker_leave(ours);
    return ret;
}

static ucs_status_ptr_t uci_hook_ep_flush(ucp_ep_h ep, const ucp_request_param_t *param)
{
    uci_worker_t *ours = uci_hook_other_ep(ep);
    ucs_status_ptr_t ret;

    uci_plugin_clear_marker(param);
    if (ours == NULL) {
        return uci_ucp.ep_flush_nbx(ep, param);
    }
    uci_worker_enter(ours);
    uci_hook_see_callback(ours, param);
    ret = uci_ucp.ep_flush_nbx(ep, param);
    uci_worker_leave(ours);
    return ret;
}

/* What waits for the other side to be known is flushed behind it */
static uci_sock_t *uci_hook_waiting(ucp_ep_h ep)
{
    uci_sock_t *sock = (uci_plugin_ep(ep) == NULL) ? uci_plugin_sock(ep) : NULL;

    return ((sock != NULL) && uci_sock_is_waiting(sock)) ? sock : NULL;
}

UCI_EXPORT ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    uci_sock_t *sock;

    UCI_HOOK();
    sock = uci_hook_waiting(ep);
    return (sock != NULL) ? uci_defer(sock, &(uci_defer_what_t){.kind = UCI_DEFER_FLUSH}, param)
                          : uci_hook_ep_flush(ep, param);
}

static void uci_hook_await(uci_sock_t *sock)
{
    uci_worker_t *worker = sock->worker;

    while (uci_sock_is_waiting(sock) && !sock->is_deaf) {
        uci_worker_enter(worker);
        uci_worker_progress(worker, worker->ucp);
        uci_worker_leave(worker);
    }
}

UCI_EXPORT ucs_status_t ucp_ep_flush(ucp_ep_h ep)
{
    uci_worker_t *ours;
    uci_sock_t *sock;
    ucs_status_t status;

    UCI_HOOK();
    sock = uci_hook_waiting(ep);
    if (sock != NULL) {
        uci_hook_await(sock);
    }
    ours = uci_hook_other_ep(ep);
    if (ours == NULL) {
        return uci_ucp.ep_flush(ep);
    }
    uci_worker_enter(ours);
    status = uci_ucp.ep_flush(ep);
    uci_worker_leave(ours);
    return status;
}

UCI_EXPORT ucs_status_t ucp_worker_flush(ucp_worker_h worker)
{
    uci_worker_t *ours;
    ucs_status_t status;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        return uci_ucp.worker_flush(worker);
    }
    uci_worker_enter(ours);
    while (uci_unlikely(uci_defer_is_any(ours))) {
        uci_worker_progress(ours, worker);
    }
    status = uci_ucp.worker_flush(worker);
    uci_worker_leave(ours);
    return status;
}
