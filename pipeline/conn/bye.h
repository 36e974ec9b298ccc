/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * BYE: nothing more comes from this side (close.h).
 */
#ifndef UCI_BYE_H_
#define UCI_BYE_H_

#include "base/peer_table.h"

/** What BYE says of what was sent before it and has not been asked for yet. */
typedef enum {
    UCI_BYE_SERVED,  /**< it still is */
    UCI_BYE_NOTHING, /**< there is none */
    UCI_BYE_FORCED, /**< nobody has it any more: the program has closed by force. Receives of it end with UCS_ERR_CONNECTION_RESET, as in UCX */
    UCI_BYE_LAST
} uci_bye_rest_t;

/** Say it, and what we have finished. The peer's box is for somebody else now. @param forced  the program has closed by force. */
void uci_bye_say(uci_peer_t *peer, bool forced);

/** If both sides have said it: of who may come back its numbers stay, and where it is; a box is offered anew. */
void uci_bye_rest(uci_peer_t *peer);

#endif
