/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided functions that wait: UCX makes them of newer ones, but looks into the request that it gets from these, which may be UCI's.
 */
#include "attach/plugin.h"

#include "hook_rma.h"

/* @return whose request is waited for; NULL: UCX's */
static uci_worker_t *uci_hook_waiter(ucp_ep_h ep)
{
    uci_ep_t *ours = uci_plugin_ep(ep);

    UCI_HOOK();
    return (ours != NULL) ? ours->peer->worker : NULL;
}

UCI_EXPORT ucs_status_t ucp_put(ucp_ep_h ep, const void *buffer, size_t length, uint64_t address, ucp_rkey_h rkey)
{
    static const ucp_request_param_t none;
    uci_worker_t *worker = uci_hook_waiter(ep);

    if (worker == NULL) {
        return uci_ucp.put(ep, buffer, length, address, rkey);
    }
    return uci_hook_wait(worker, uci_hook_put_nbx(ep, buffer, length, address, rkey, &none));
}

UCI_EXPORT ucs_status_t ucp_get(ucp_ep_h ep, void *buffer, size_t length, uint64_t address, ucp_rkey_h rkey)
{
    static const ucp_request_param_t none;
    uci_worker_t *worker = uci_hook_waiter(ep);

    if (worker == NULL) {
        return uci_ucp.get(ep, buffer, length, address, rkey);
    }
    return uci_hook_wait(worker, uci_hook_get_nbx(ep, buffer, length, address, rkey, &none));
}

static ucs_status_t uci_hook_fetch(uci_worker_t *worker, ucp_ep_h ep, ucp_atomic_op_t op, const void *operand,
                                   size_t size, uint64_t address, ucp_rkey_h rkey, void *result)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                 .datatype     = ucp_dt_make_contig(size),
                                 .reply_buffer = result};

    return uci_hook_wait(worker, uci_hook_atomic_op_nbx(ep, op, operand, 1, address, rkey, &param));
}

#define UCI_HOOK_FETCH(_name, _op, _type) \
    UCI_EXPORT ucs_status_t ucp_atomic_##_name(ucp_ep_h ep, _type operand, uint64_t address, ucp_rkey_h rkey, \
                                               _type *result) \
    { \
        uci_worker_t *worker = uci_hook_waiter(ep); \
\
        return (worker == NULL) ? uci_ucp.atomic_##_name(ep, operand, address, rkey, result) \
                                : uci_hook_fetch(worker, ep, _op, &operand, sizeof(operand), address, rkey, result); \
    }

#define UCI_HOOK_CSWAP(_name, _type) \
    UCI_EXPORT ucs_status_t ucp_atomic_##_name(ucp_ep_h ep, _type compare, _type swap, uint64_t address, \
                                               ucp_rkey_h rkey, _type *result) \
    { \
        uci_worker_t *worker = uci_hook_waiter(ep); \
\
        if (worker == NULL) { \
            return uci_ucp.atomic_##_name(ep, compare, swap, address, rkey, result); \
        } \
        *result = swap; \
        return uci_hook_fetch(worker, ep, UCP_ATOMIC_OP_CSWAP, &compare, sizeof(compare), address, rkey, result); \
    }

UCI_HOOK_FETCH(fadd32, UCP_ATOMIC_OP_ADD, uint32_t)
UCI_HOOK_FETCH(fadd64, UCP_ATOMIC_OP_ADD, uint64_t)
UCI_HOOK_FETCH(swap32, UCP_ATOMIC_OP_SWAP, uint32_t)
UCI_HOOK_FETCH(swap64, UCP_ATOMIC_OP_SWAP, uint64_t)
UCI_HOOK_CSWAP(cswap32, uint32_t)
UCI_HOOK_CSWAP(cswap64, uint64_t)
