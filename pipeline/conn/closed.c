/* SPDX-License-Identifier: BSD-3-Clause */
#include "closed.h"

#include "base/am_handler.h"
#include "base/pair.h"
#include "conversation/conversation.h"
#include "link/control.h"

void uci_closed_say(uci_peer_t *peer)
{
    uci_control_t *msg = uci_conversation_is_heard(&peer->conversation) ? uci_control_get(peer, UCI_AM_CLOSED, 0, 0)
                                                                        : NULL;

    if (msg != NULL) {
        msg->hdr.index = peer->lanes.placed;
        msg->hdr.extra = uci_pair_open(peer);
        uci_control_send(msg);
    }
}

static void uci_closed_take(uci_am_t *am)
{
    uci_pair_hear(am->peer, am->hdr->index, am->hdr->extra);
}

UCI_AM_HANDLER(CLOSED, 22, "who closes one of several endpoints: which are open, as with HELLO", "", "none",
               "what needs the other end of it comes late, by a path that does not", .grain = 1,
               .take = uci_closed_take);
