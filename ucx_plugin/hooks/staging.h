/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Buffers that are not in the host's memory: UCX moves their content, and UCI sees a generic datatype.
 */
#ifndef UCI_STAGING_H_
#define UCI_STAGING_H_

#include "base/memtype.h"
#include "base/worker_state.h"

/** The case of uci_hook_param() that is not the host's memory. */
const ucp_request_param_t *uci_hook_stage(uci_worker_t *worker, const void *buffer, size_t count,
                                          const ucp_request_param_t *param, ucp_request_param_t *ours_p);

/** What to do an operation with: @a param for the host's memory. Within the worker's lock, just before the operation.
 *  @return NULL: it can't be done. */
UCI_INLINE const ucp_request_param_t *uci_hook_param(uci_worker_t *worker, const void *buffer, size_t count,
                                                     const ucp_request_param_t *param, ucp_request_param_t *ours_p)
{
    return uci_likely(uci_memtype_is_host(worker->context, buffer, count, param))
                   ? param
                   : uci_hook_stage(worker, buffer, count, param, ours_p);
}

#endif
