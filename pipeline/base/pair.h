/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of UCX's endpoints have lost their other end. Of those made by worker address it makes pairs: the n-th from here to there, and the n-th from
 * there to here (ucp_ep_match_get_sn()), whichever a program takes for a pair; and each of UCI's own moves the program's by one. What comes
 * in several fragments is dropped where this end is closed, in silence and again each time (uci_peer_endpoint_whole()). So each side counts the places
 * of those that it makes, and says which are open: with HELLO, with CLOSED when one of several is closed; with BYE none is.
 *
 *     here    a0 --- a1 --- a2            b0 is UCI's own; the program has made a0 and b1, then a1 and b2, and has closed the first of each:
 *             |      |      |             a1 has lost its end, and b0
 *     there   b0     b1     b2
 */
#ifndef UCI_PAIR_H_
#define UCI_PAIR_H_

#include "peer.h"

/** @return a bit set: of our endpoints to @a peer those that are open, the last place (peer->lanes.placed - 1) first. Of those before the last 64 none is
 *  taken for open. */
uint64_t uci_pair_open(const uci_peer_t *peer);

/** The other side has made @a placed, of which those are open. */
void uci_pair_hear(uci_peer_t *peer, uint32_t placed, uint64_t open);

/** Whether its endpoints handle errors: ours do alike, or UCX makes no pairs of them. */
void uci_pair_hear_mode(uci_peer_t *peer, bool handles);

#endif
