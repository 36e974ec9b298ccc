/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints: opening and closing.
 *
 * What the other side has not acknowledged could not be repaired any more once we are gone. So a close first asks
 * what the other side lacks, and hands over copies of that; it does not wait for messages to be matched:
 *
 *     open --close--> LEAVING --MISSING--> hand over --> BYE, FLUSHING --flushed, or BYE from there--> closed
 *                        |                                   ^
 *                        +-- nothing unacknowledged ---------+
 *                        +-- the other side leaves as well --+  (then it will not receive them)
 *                        +-- no answer for a long time ------+  (these can be detected, but not repaired now)
 *
 * A side that has said what it lacks stays until the other one has said BYE.
 *
 * What the other side still sends after that has to be received all the same: then UCI opens an endpoint of its own, here to
 * answer and there because its endpoint has lost its other end (uci_peer_endpoint_whole()).
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

/** UCX says that an endpoint has failed: operations with that peer end with @a status. */
void uci_ep_fail(uci_ep_t *ep, ucs_status_t status);

/** Open one for UCI itself. */
ucs_status_t uci_ep_open_internal(uci_peer_t *peer);

/** Go on with closing. */
void uci_ep_progress(uci_worker_t *worker);

/** @return when a close ends that is not answered, UINT64_MAX: none waits. */
uint64_t uci_ep_due(const uci_worker_t *worker);

/** The worker goes: close what UCI opened for itself. */
void uci_ep_shutdown(uci_worker_t *worker);

/* Called by the dispatcher */
void uci_ep_on_leave(uci_peer_t *peer);
void uci_ep_on_missing(uci_peer_t *peer);
void uci_ep_on_bye(uci_peer_t *peer);

#endif
