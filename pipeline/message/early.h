/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Chunks that were sent unasked (uci_stream_part()) and are here before the descriptor of their message: which waits for room in a mailbox, was
 * damaged, or comes by another connection. Their sender may be away for long, so that they are kept until a receive takes them; what there is no room
 * for it asks for.
 */
#ifndef UCI_EARLY_H_
#define UCI_EARLY_H_

#include "base/am_handler.h"
#include "base/peer.h"

/** Keep a copy of a chunk. @return false: there is no room, or no memory. */
bool uci_early_keep(const uci_am_t *am);

/** Give its chunks to the receive of a message that has just begun. It may be over, and gone, afterwards. */
void uci_early_take_slow(uci_peer_t *peer, uint64_t seq);

/** A message needs no chunks any more, or no message of the peer's does (@a seq UINT64_MAX). */
void uci_early_drop_slow(uci_peer_t *peer, uint64_t seq);

UCI_INLINE void uci_early_take(uci_peer_t *peer, uint64_t seq)
{
    if (uci_unlikely(!uci_list_is_empty(&peer->msgs.early))) {
        uci_early_take_slow(peer, seq);
    }
}

UCI_INLINE void uci_early_drop(uci_peer_t *peer, uint64_t seq)
{
    if (uci_unlikely(!uci_list_is_empty(&peer->msgs.early))) {
        uci_early_drop_slow(peer, seq);
    }
}

#endif
