/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include "worker_state.h"

#define UCI_PAIR_BITS 64u

uint64_t uci_pair_open(const uci_peer_t *peer)
{
    uint64_t open = 0;
    uint32_t age;

    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        age = peer->lanes.placed - 1 - ep->place;
        if (!ep->closing && (ep->place != UCI_EP_NO_PLACE) && (age < UCI_PAIR_BITS)) {
            open |= 1ul << age;
        }
    }
    return open;
}

void uci_pair_hear(uci_peer_t *peer, uint32_t placed, uint64_t open)
{
    uint32_t age;

    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        age = placed - 1 - ep->place;
        if ((ep->place < placed) && (peer->uid != peer->worker->uid) &&
            ((age >= UCI_PAIR_BITS) || !(open & (1ul << age)))) {
            ep->unpaired = true;
        }
    }
}

/* Who has no endpoint but UCI's says nothing of errors */
void uci_pair_hear_mode(uci_peer_t *peer, bool handles)
{
    if (handles && (peer->lanes.err_mode == UCP_ERR_HANDLING_MODE_NONE)) {
        peer->lanes.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    }
}
