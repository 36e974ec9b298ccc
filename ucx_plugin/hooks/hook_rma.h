/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided hooks, for those that are made of them.
 */
#ifndef UCI_HOOK_RMA_H_
#define UCI_HOOK_RMA_H_

#include "base/worker_state.h"

/** Make progress until an operation of the worker's is over, and free its request. @return its status. */
ucs_status_t uci_hook_wait(uci_worker_t *worker, ucs_status_ptr_t request);

/** What the hooks of these names do. Not called by name: as a UCX module we would get UCX's own. */
ucs_status_ptr_t uci_hook_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
                                  const ucp_request_param_t *param);
ucs_status_ptr_t uci_hook_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
                                  const ucp_request_param_t *param);
ucs_status_ptr_t uci_hook_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, size_t count,
                                        uint64_t address, ucp_rkey_h rkey, const ucp_request_param_t *param);

#endif
