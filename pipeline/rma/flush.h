/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Flushes that wait for targets.
 */
#ifndef UCI_RMA_FLUSH_H_
#define UCI_RMA_FLUSH_H_

#include "rma.h"

/** More of the operations on a peer's memory may be over: flushes that wait for no more end. */
void uci_rma_flush_go_on(uci_peer_t *peer);

/** All that wait for this peer end with @a status. */
void uci_rma_flush_fail(uci_peer_t *peer, ucs_status_t status);

/** The peer goes: they are forgotten. */
void uci_rma_flush_cleanup(uci_peer_t *peer);

#endif
