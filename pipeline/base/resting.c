/* SPDX-License-Identifier: BSD-3-Clause */
#include "resting.h"

#include <stdlib.h>

#include "util/log.h"

#define UCI_RESTING_MIN 16u

/* Of one that has come back the place stays: it may go again */
typedef struct uci_resting {
    uint64_t uid; /* 0: free */
    bool is_awake;
    bool by_socket;
    uint32_t eps_numbered, eps_placed;
    uci_conversation_t conversation;
    uint64_t sent, received; /* frames */
    uint64_t fins_sent;
    uint64_t rma_sent, rma_arrived; /* one-sided operations */
} uci_resting_t;

/* Its place, or where it would be. There is a free one */
static uci_resting_t *uci_resting_place(uci_resting_t *table, size_t mask, uint64_t uid)
{
    size_t i = uci_uid_home(uid, mask);

    while ((table[i].uid != 0) && (table[i].uid != uid)) {
        i = (i + 1) & mask;
    }
    return &table[i];
}

static uci_resting_t *uci_resting_find(const uci_worker_t *worker, uint64_t uid)
{
    uci_resting_t *place;

    if (uci_likely(worker->peers.resting == NULL)) {
        return NULL;
    }
    place = uci_resting_place(worker->peers.resting, worker->peers.resting_mask, uid);
    return ((place->uid == uid) && !place->is_awake) ? place : NULL;
}

static ucs_status_t uci_resting_grow(uci_worker_t *worker)
{
    uci_resting_t *old = worker->peers.resting;
    size_t i, old_size = (old == NULL) ? 0 : worker->peers.resting_mask + 1;
    size_t size          = uci_max(2 * old_size, (size_t)UCI_RESTING_MIN);
    uci_resting_t *table = calloc(size, sizeof(*table));

    if (table == NULL) {
        uci_error("failed to allocate what is kept of %zu peers that have gone", size);
        return UCS_ERR_NO_MEMORY;
    }
    for (i = 0; i < old_size; ++i) {
        if (old[i].uid != 0) {
            *uci_resting_place(table, size - 1, old[i].uid) = old[i];
        }
    }
    free(old);
    worker->peers.resting      = table;
    worker->peers.resting_mask = size - 1;
    return UCS_OK;
}

ucs_status_t uci_resting_keep(uci_worker_t *worker, const uci_peer_t *peer)
{
    uci_resting_t *place;

    if (((worker->peers.resting == NULL) ||
         (4 * (worker->peers.resting_count + 1) > 3 * (worker->peers.resting_mask + 1))) &&
        (uci_resting_grow(worker) != UCS_OK)) {
        return UCS_ERR_NO_MEMORY;
    }
    place = uci_resting_place(worker->peers.resting, worker->peers.resting_mask, peer->uid);
    worker->peers.resting_count += (place->uid == 0);
    *place = (uci_resting_t){.uid          = peer->uid,
                             .by_socket    = peer->lanes.by_socket,
                             .eps_numbered = peer->eps_numbered,
                             .eps_placed   = peer->lanes.placed,
                             .conversation = peer->conversation,
                             .sent         = peer->tx.next,
                             .received     = peer->rx.next,
                             .fins_sent    = peer->talk.fins_sent,
                             .rma_sent     = peer->rma.sent,
                             .rma_arrived  = peer->rma.arrived};
    return UCS_OK;
}

bool uci_resting_has(const uci_worker_t *worker, uint64_t uid)
{
    return uci_resting_find(worker, uid) != NULL;
}

void uci_resting_wake(uci_worker_t *worker, uci_peer_t *peer)
{
    uci_resting_t *resting = uci_resting_find(worker, peer->uid);

    if (uci_likely(resting == NULL)) {
        return;
    }
    resting->is_awake     = true;
    peer->lanes.by_socket = resting->by_socket;
    peer->eps_numbered    = resting->eps_numbered;
    peer->lanes.placed    = resting->eps_placed;
    uci_conversation_resume(&peer->conversation, &resting->conversation);
    uci_link_part_resume(&peer->tx, &peer->log, &peer->rx, resting->sent, resting->received);
    uci_mailbox_part_resume(&peer->box, resting->sent);
    uci_control_part_resume(&peer->talk, resting->fins_sent);
    uci_rma_part_resume(&peer->rma, resting->rma_sent, resting->rma_arrived);
}

void uci_resting_cleanup(uci_worker_t *worker)
{
    free(worker->peers.resting);
}
