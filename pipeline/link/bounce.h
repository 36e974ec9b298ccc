/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounce slots in shared memory: one bounded pool per worker, whatever the number of its peers, in memory that UCX
 * allocates and peers on the same node map through ucp_rkey_ptr(). The owner fills a slot and marks it with what it
 * holds; the reader, when it has verified the content, writes the same mark as its acknowledgement:
 *
 *     free --uci_bounce_get--> taken --filled, mark--> full --ack == mark--> (the owner sees it) --> free
 *
 * A peer that speaks to us learns of the pool by POOL, once, when there is something to send through it, and answers
 * MAPPED if it can. Until then, and where there is no shared memory, messages take the other paths.
 */
#ifndef UCI_BOUNCE_H_
#define UCI_BOUNCE_H_

#include "base/peer.h"
#include "slot.h"
#include "base/worker_state.h"

/** For uci_peer_is_reached(), once for each peer: offer it our slots. @return true if it has them already (ourselves). */
bool uci_bounce_reaches_slow(uci_peer_t *peer);

/** May messages to it go through our bounce slots? */
UCI_INLINE bool uci_peer_is_reached(uci_peer_t *peer)
{
    return uci_likely(peer->slots.maps_ours) || (!peer->slots.offered && uci_bounce_reaches_slow(peer));
}

/** Reserve up to @a want slots, as long as @a keep others remain. @return how many. */
unsigned uci_bounce_reserve(uci_worker_t *worker, unsigned want, unsigned keep);
void uci_bounce_unreserve(uci_worker_t *worker, unsigned count);

/** Take one of those reserved, or give it back. */
uint16_t uci_bounce_get(uci_worker_t *worker);
void uci_bounce_put(uci_worker_t *worker, uint16_t slot);

/** The slot of a peer's pool that a frame or descriptor names; NULL if there is none such. */
uci_slot_t *uci_bounce_slot_of(const uci_peer_t *peer, uint16_t slot);

void uci_bounce_unmap(uci_peer_t *peer);
void uci_bounce_cleanup(uci_worker_t *worker);

#endif
