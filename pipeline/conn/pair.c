/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include "base/am_handler.h"
#include "conversation/conversation.h"
#include "link/control.h"

void uci_pair_say_closed(const uci_ep_t *ep)
{
    uci_peer_t *peer = ep->peer;
    uci_control_t *msg;

    if ((ep->place == UCI_EP_NO_PLACE) || (peer->uid == peer->worker->uid) ||
        !uci_conversation_is_heard(&peer->conversation)) {
        return;
    }
    msg = uci_control_get(peer, UCI_AM_CLOSED, 0, 0);
    if (msg != NULL) {
        msg->hdr.index = ep->place;
        uci_control_send(msg);
    }
}

void uci_pair_hear_closed(uci_peer_t *peer, uint64_t first, uint64_t end)
{
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        ep->unpaired = ep->unpaired || ((ep->place >= first) && (ep->place < end) && (ep->place != UCI_EP_NO_PLACE));
    }
}

static void uci_pair_take_closed(uci_am_t *am)
{
    uci_pair_hear_closed(am->peer, am->hdr->index, (uint64_t)am->hdr->index + 1);
}

UCI_AM_HANDLER(CLOSED, 22, "who closes one of several endpoints: `index` is its place", "", "none",
               "what needs the other end of it comes late, by a path that does not", .grain = 1,
               .take = uci_pair_take_closed);
