/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is kept of peers with whom all is over. A worker that serves others for months has any number of these, each of a worker that has gone;
 * but one may also come back, and then both sides go on counting where they were. So the peer goes, and its numbers stay: 136 bytes of 2.4 KiB.
 *
 * Not thread safe: within the worker.
 */
#ifndef UCI_RESTING_H_
#define UCI_RESTING_H_

#include "peer.h"
#include "worker_state.h"

/** Keep its numbers: the peer may be destroyed. @return UCS_OK, UCS_ERR_NO_MEMORY (logged). */
ucs_status_t uci_resting_keep(uci_worker_t *worker, const uci_peer_t *peer);

/** Is anything kept of the peer with this uid? */
bool uci_resting_has(const uci_worker_t *worker, uint64_t uid);

/** If so, @a peer, which is new, goes on from there. */
void uci_resting_wake(uci_worker_t *worker, uci_peer_t *peer);

void uci_resting_cleanup(uci_worker_t *worker);

#endif
