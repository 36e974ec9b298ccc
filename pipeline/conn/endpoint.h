/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints of a peer: those that the user opens, and those that UCI opens for itself. How they end: close.h.
 */
#ifndef UCI_ENDPOINT_H_
#define UCI_ENDPOINT_H_

#include "base/peer_table.h"

/**
 * Open an endpoint for the user. UCX is given @a params themselves, which may be longer than our headers say: their address
 * becomes UCX's own.
 * @return UCS_OK; UCS_ERR_UNSUPPORTED (logged) if the peer does not run UCI, or an unlike one; UCX's errors.
 */
ucs_status_t uci_ep_open(uci_worker_t *worker, ucp_ep_params_t *params, uci_ep_t **ep_p);

/** Take over what a mark, which has been checked, and the address behind it say. @return UCS_OK, or an error (logged). */
ucs_status_t uci_ep_introduce(uci_peer_t *peer, const uci_mark_t *mark);

/** The user has an endpoint, noted and numbered: the conversation goes on, or begins. */
void uci_ep_begin(uci_ep_t *ep);

/** UCX says that an endpoint has failed: operations with that peer end with @a status. */
void uci_ep_fail(uci_ep_t *ep, ucs_status_t status);

/**
 * The user gives up an endpoint, or it has failed, and has another one to the peer: what was sent by @a ep and that nobody has begun to receive
 * ends with @a status, as in UCX.
 */
void uci_ep_cancel(const uci_ep_t *ep, ucs_status_t status);

/** Nothing more comes from the peer, and nothing reaches it: operations with it end with @a status. */
void uci_ep_abandon(uci_peer_t *peer, ucs_status_t status);

/** The worker goes: close what UCI opened for itself. */
void uci_ep_shutdown(uci_worker_t *worker);

#endif
