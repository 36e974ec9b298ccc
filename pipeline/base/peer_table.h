/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The peers of a worker, by uid: open addressing.
 */
#ifndef UCI_PEER_TABLE_H_
#define UCI_PEER_TABLE_H_

#include "peer.h"
#include "worker_state.h"

ucs_status_t uci_peer_table_init(uci_worker_t *worker);

/** Destroys the peers as well. */
void uci_peer_table_cleanup(uci_worker_t *worker);

/** @return the peer with this uid, made if there was none; NULL if there is no memory. */
uci_peer_t *uci_worker_peer_slow(uci_worker_t *worker, uint64_t uid);

UCI_INLINE uci_peer_t *uci_worker_peer(uci_worker_t *worker, uint64_t uid)
{
    if (uci_likely((worker->peers.last != NULL) && (worker->peers.last->uid == uid))) {
        return worker->peers.last;
    }
    return uci_worker_peer_slow(worker, uid);
}

/** @return the peer with this uid or NULL: there has never been one. */
uci_peer_t *uci_worker_peer_find(uci_worker_t *worker, uint64_t uid);

/** Ask @a goes of each: those of which it says true it has destroyed, and they are no peers any more. */
void uci_worker_peers_weed(uci_worker_t *worker, bool (*goes)(uci_peer_t *peer));

#define uci_worker_for_each_peer(_peer, _worker) \
    for (size_t _i_##_peer = 0; _i_##_peer <= (_worker)->peers.mask; ++_i_##_peer) \
        for (uci_peer_t *_peer = (_worker)->peers.table[_i_##_peer]; _peer != NULL; _peer = NULL)

/** It will be looked for again. */
UCI_INLINE void uci_worker_peer_found(uci_worker_t *worker, uci_peer_t *peer)
{
    worker->peers.last = peer;
}

#endif
