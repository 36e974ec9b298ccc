/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of UCI's side of one UCX worker, and its turn of progress.
 */
#ifndef UCI_WORKER_H_
#define UCI_WORKER_H_

#include "base/peer_table.h"
#include "base/worker_lock.h"
#include "base/worker_state.h"

/** @param params  what the user gave to ucp_worker_create(); @param thread_mode  what UCX made of it. */
ucs_status_t uci_worker_create(ucp_worker_h ucp, uci_context_t *context, const ucp_worker_params_t *params,
                               ucs_thread_mode_t thread_mode, uci_worker_t **worker_p);

/** Before UCX destroys the worker: let go of what needs it. */
void uci_worker_shutdown(uci_worker_t *worker);

/** After UCX has destroyed the worker. */
void uci_worker_destroy(uci_worker_t *worker);

/** UCX's progress, then ours. @return how much has been done, as UCX's. */
unsigned uci_worker_turn(uci_worker_t *worker);

/**
 * A turn, and now and then a look after the process's other workers.
 *
 * @param ucp  worker->ucp, from who has it: then the processor runs UCX's progress while it still looks up ours.
 */
unsigned uci_worker_progress(uci_worker_t *worker, ucp_worker_h ucp);

#endif
