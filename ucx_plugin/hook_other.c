/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations that UCI does not cover pass through. They are hooked for one reason: when the user gives memory for
 * the request, and this memory held a request of ours before, our marker must go, so that the request is known as
 * UCX's.
 */
#include "plugin.h"

#include "request.h"

#define UCI_HOOK_PASS(_name, _params, _args) \
    UCI_EXPORT ucs_status_ptr_t ucp_##_name _params; \
    UCI_EXPORT ucs_status_ptr_t ucp_##_name _params \
    { \
        UCI_HOOK(); \
        if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) && (uci_contexts.slots != NULL)) { \
            uci_request_clear_marker(param->request); \
        } \
        return uci_ucp._name _args; \
    }

UCI_HOOK_PASS(am_send_nbx,
              (ucp_ep_h ep, unsigned id, const void *header, size_t header_length, const void *buffer, size_t count,
               const ucp_request_param_t *param),
              (ep, id, header, header_length, buffer, count, param))
UCI_HOOK_PASS(am_recv_data_nbx,
              (ucp_worker_h worker, void *desc, void *buffer, size_t count, const ucp_request_param_t *param),
              (worker, desc, buffer, count, param))
UCI_HOOK_PASS(put_nbx,
              (ucp_ep_h ep, const void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
               const ucp_request_param_t *param),
              (ep, buffer, count, address, rkey, param))
UCI_HOOK_PASS(get_nbx,
              (ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
               const ucp_request_param_t *param),
              (ep, buffer, count, address, rkey, param))
UCI_HOOK_PASS(atomic_op_nbx,
              (ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
               const ucp_request_param_t *param),
              (ep, opcode, buffer, count, address, rkey, param))
UCI_HOOK_PASS(stream_send_nbx, (ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param),
              (ep, buffer, count, param))
UCI_HOOK_PASS(stream_recv_nbx,
              (ucp_ep_h ep, void *buffer, size_t count, size_t *length, const ucp_request_param_t *param),
              (ep, buffer, count, length, param))
UCI_HOOK_PASS(ep_flush_nbx, (ucp_ep_h ep, const ucp_request_param_t *param), (ep, param))
UCI_HOOK_PASS(worker_flush_nbx, (ucp_worker_h worker, const ucp_request_param_t *param), (worker, param))
