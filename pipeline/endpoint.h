/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints: opening and closing.
 *
 * A user's endpoint stays open underneath after the user has closed it (flushed), until the other side has closed
 * too: what it still sends has to be acknowledged, and perhaps repaired. UCX takes it down with the worker at
 * the latest.
 */
#ifndef UCI_ENDPOINT_H_
#define UCI_ENDPOINT_H_

#include "worker.h"

/**
 * Open an endpoint for the user.
 * @return UCS_OK; UCS_ERR_UNSUPPORTED (logged) if the peer does not run UCI, or an unlike one; UCX's errors.
 */
ucs_status_t uci_ep_open(uci_worker_t *worker, const ucp_ep_params_t *params, uci_ep_t **ep_p);

/** As ucp_ep_close_nbx(); @a ep is gone for the user. */
ucs_status_ptr_t uci_ep_close(uci_ep_t *ep, const ucp_request_param_t *param);

/** Open one for UCI itself. */
ucs_status_t uci_ep_open_internal(uci_peer_t *peer);

/** Take down what both sides have closed. */
void uci_ep_reap(uci_worker_t *worker);

#endif
