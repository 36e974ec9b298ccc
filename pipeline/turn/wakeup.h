/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sleeping until there is something to do (UCP_FEATURE_WAKEUP). UCX wakes a program for what arrives. Two things UCX
 * knows nothing of: work that UCI could do at once, so the worker is busy and must not be armed; and what UCI does
 * after a time (asking again, copying a late send), for which a timer joins the worker's set of events:
 *
 *     arm: UCI can go on now ------> UCS_ERR_BUSY, as if something had arrived
 *          something is due later -> timer set, UCX armed
 *          nothing --------------->  timer off, UCX armed
 *
 * The set is an epoll descriptor: UCX's own (ucp_worker_get_efd) or the program's (UCP_WORKER_PARAM_FIELD_EVENT_FD).
 */
#ifndef UCI_WAKEUP_H_
#define UCI_WAKEUP_H_

#include "base/worker_state.h"

/** @param params  what the program gave to ucp_worker_create(); @param enabled  the context has UCP_FEATURE_WAKEUP. */
void uci_wakeup_init(uci_worker_t *worker, const ucp_worker_params_t *params, bool enabled);

void uci_wakeup_cleanup(uci_worker_t *worker);

/** @return when UCI has something to do without anything arriving, as uci_process_time_ns(): 0 now, UINT64_MAX never. */
uint64_t uci_worker_due(const uci_worker_t *worker);

/** As ucp_worker_arm(), ucp_worker_wait(). The second one must be called without the worker's lock. */
ucs_status_t uci_wakeup_arm(uci_worker_t *worker);
ucs_status_t uci_wakeup_wait(uci_worker_t *worker);

#endif
