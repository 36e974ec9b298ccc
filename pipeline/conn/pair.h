/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of UCX's endpoints have lost their other end. Of those made by worker address it makes pairs: the n-th from here to there, and the n-th from
 * there to here (ucp_ep_match_get_sn()), whichever a program takes for a pair; and each of UCI's own moves the program's by one. What comes
 * in several fragments is dropped where this end is closed, in silence and again each time (uci_peer_endpoint_whole()). So each side counts what it
 * makes, and says which of its places it closes: with several endpoints CLOSED, with the last one BYE.
 *
 *     here    a0 --- a1 --- a2            b0 is UCI's own; the program has made a0 and b1, then a1 and b2, and has closed the first of each:
 *             |      |      |             a1 has lost its end, and b0
 *     there   b0     b1     b2
 */
#ifndef UCI_PAIR_H_
#define UCI_PAIR_H_

#include "base/peer.h"

/** @a ep, one of several, is about to be closed by the program. */
void uci_pair_say_closed(const uci_ep_t *ep);

/** The other side has closed those of its endpoints whose places are from @a first up to @a end, without it. */
void uci_pair_hear_closed(uci_peer_t *peer, uint64_t first, uint64_t end);

#endif
