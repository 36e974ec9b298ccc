/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * CLOSED: one of several endpoints of this side is (base/pair.h).
 */
#ifndef UCI_CLOSED_H_
#define UCI_CLOSED_H_

#include "base/peer.h"

/** One to @a peer is about to be closed by the program, which has others. */
void uci_closed_say(uci_peer_t *peer);

#endif
