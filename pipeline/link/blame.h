/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Whom a message was about that came damaged, and was dropped: as far as what is left of its header tells. One field of it is damaged, most
 * often, and the others are right.
 */
#ifndef UCI_BLAME_H_
#define UCI_BLAME_H_

#include "base/wire.h"
#include "base/worker_state.h"

/** The operations that it may have been about are asked about soon (ask.h). @param hdr  what is left of its header, or NULL */
void uci_blame(uci_worker_t *worker, const uci_am_hdr_t *hdr);

/** The same of something of @a peer's of which nothing is left. @param peer  NULL: nobody's that is known */
void uci_blame_anything(uci_worker_t *worker, uci_peer_t *peer);

#endif
