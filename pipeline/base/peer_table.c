/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer_table.h"

#include <stdlib.h>

#include "resting.h"
#include "util/log.h"

#define UCI_PEER_TABLE_MIN 16

ucs_status_t uci_peer_table_init(uci_worker_t *worker)
{
    worker->peers.mask  = UCI_PEER_TABLE_MIN - 1;
    worker->peers.table = calloc(UCI_PEER_TABLE_MIN, sizeof(*worker->peers.table));
    return (worker->peers.table != NULL) ? UCS_OK : UCS_ERR_NO_MEMORY;
}

void uci_peer_table_cleanup(uci_worker_t *worker)
{
    uci_worker_for_each_peer(peer, worker)
    {
        uci_peer_destroy(peer);
    }
    free(worker->peers.table);
    uci_resting_cleanup(worker);
}

static uci_peer_t *uci_worker_peer_here(const uci_worker_t *worker, uint64_t uid)
{
    size_t i;

    for (i = uci_uid_home(uid, worker->peers.mask);; ++i) {
        uci_peer_t *peer = worker->peers.table[i & worker->peers.mask];

        if ((peer == NULL) || (peer->uid == uid)) {
            return peer;
        }
    }
}

uci_peer_t *uci_worker_peer_find(uci_worker_t *worker, uint64_t uid)
{
    uci_peer_t *peer = uci_worker_peer_here(worker, uid);

    return ((peer == NULL) && uci_resting_has(worker, uid)) ? uci_worker_peer_slow(worker, uid) : peer;
}

static void uci_worker_peer_insert(uci_peer_t **peers, size_t mask, uci_peer_t *peer)
{
    size_t i = uci_uid_home(peer->uid, mask);

    while (peers[i & mask] != NULL) {
        ++i;
    }
    peers[i & mask] = peer;
}

static ucs_status_t uci_worker_grow_peers(uci_worker_t *worker)
{
    size_t i, size = 2 * (worker->peers.mask + 1);
    uci_peer_t **peers = calloc(size, sizeof(*peers));

    if (peers == NULL) {
        uci_error("failed to allocate a table of %zu peers", size);
        return UCS_ERR_NO_MEMORY;
    }
    for (i = 0; i <= worker->peers.mask; ++i) {
        if (worker->peers.table[i] != NULL) {
            uci_worker_peer_insert(peers, size - 1, worker->peers.table[i]);
        }
    }
    free(worker->peers.table);
    worker->peers.table = peers;
    worker->peers.mask  = size - 1;
    return UCS_OK;
}

uci_peer_t *uci_worker_peer_slow(uci_worker_t *worker, uint64_t uid)
{
    uci_peer_t *peer = uci_worker_peer_here(worker, uid);

    if (peer == NULL) {
        if (((2 * (worker->peers.count + 1) > worker->peers.mask + 1) && (uci_worker_grow_peers(worker) != UCS_OK)) ||
            (uci_peer_create(worker, uid, &peer) != UCS_OK)) {
            return NULL;
        }
        uci_resting_wake(worker, peer);
        uci_worker_peer_insert(worker->peers.table, worker->peers.mask, peer);
        ++worker->peers.count;
    }
    worker->peers.last = peer;
    return peer;
}

void uci_worker_peers_weed(uci_worker_t *worker, bool (*goes)(uci_peer_t *peer))
{
    uci_peer_t **peers = calloc(worker->peers.mask + 1, sizeof(*peers));

    if (peers == NULL) {
        return; /* they stay */
    }
    uci_worker_for_each_peer(peer, worker)
    {
        if (goes(peer)) {
            --worker->peers.count;
        } else {
            uci_worker_peer_insert(peers, worker->peers.mask, peer);
        }
    }
    free(worker->peers.table);
    worker->peers.table = peers;
    worker->peers.last  = NULL;
}
