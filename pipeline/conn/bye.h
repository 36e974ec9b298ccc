/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * BYE: nothing more comes from this side (close.h).
 */
#ifndef UCI_BYE_H_
#define UCI_BYE_H_

#include "base/peer_table.h"

/** Say it, and what we have finished. The peer's box is for somebody else now. */
void uci_bye_say(uci_peer_t *peer);

/** If both sides have said it: of who may come back its numbers stay, and where it is; a box is offered anew. */
void uci_bye_rest(uci_peer_t *peer);

#endif
