/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The beginning and the end of a worker, as far as it is of this room: turn/worker.c adds the parts of others.
 */
#ifndef UCI_WORKER_ALLOC_H_
#define UCI_WORKER_ALLOC_H_

#include "worker_state.h"

struct uci_stage_dt;

/** A worker without the parts of other rooms. @param calls  copied. @return NULL: no memory. */
uci_worker_t *uci_worker_alloc(ucp_worker_h ucp, uci_context_t *context, const uci_worker_calls_t *calls);
void uci_worker_free(uci_worker_t *worker);

/** Ask UCX for its address, which stays UCX's, and make its mark. @return UCS_OK, or an error (logged). */
ucs_status_t uci_worker_learn_address(uci_worker_t *worker);

/** Have worker->stage. @param dt  how UCX's datatypes are made and ended. @return UCS_OK, or an error (logged). */
ucs_status_t uci_worker_make_stage(uci_worker_t *worker, const struct uci_stage_dt *dt);

#endif
