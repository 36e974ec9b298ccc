/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints of UCI's own that have failed. If the program has arranged that its peer's worker is gone this is no error. Else that one is dead, or
 * its program has closed by force the end of which this was the other one; or it is there all the same, with another endpoint, and may be heard by
 * that:
 *
 *     heard --the last endpoint fails--> lost --anything comes from it--> heard: connected to when something is to be said
 *                                          |
 *                                          +--nothing for a second--> operations with it end with UCX's status
 */
#ifndef UCI_LOST_H_
#define UCI_LOST_H_

#include "base/peer_table.h"

/** UCX says that @a ucp has failed, one that UCI has opened in @a worker, an uci_worker_t. */
void uci_lost_hear(void *worker, ucp_ep_h ucp, ucs_status_t status);

/** In UCI's part of a turn: who has been heard, and whose time is over? */
void uci_lost_progress(uci_worker_t *worker);

/** @return when that is to be asked next, in ns; UINT64_MAX: never. */
uint64_t uci_lost_due(const uci_worker_t *worker);

/** The worker goes. */
void uci_lost_cleanup(uci_worker_t *worker);

#endif
