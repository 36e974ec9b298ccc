/* SPDX-License-Identifier: BSD-3-Clause */
#include "txlog.h"

#include <stdlib.h>

#include "log.h"
#include "peer_table.h"
#include "stats.h"
#include "wire_check.h"

#define UCI_TXLOG_MIN_SIZE 64

/* Move the lower end of the ring over what has been removed; a whole turn without a frame is an empty log */
static void uci_txlog_advance(uci_peer_t *peer)
{
    uint64_t end = uci_min(peer->tx_next, peer->tx_base + peer->tx_mask + 1);

    while ((peer->tx_base < end) && (peer->tx_ring[peer->tx_base & peer->tx_mask] == NULL)) {
        ++peer->tx_base;
    }
    if (peer->tx_base == end) {
        peer->tx_base = peer->tx_next;
    }
}

ucs_status_t uci_txlog_make_room(uci_peer_t *peer, uint64_t seq)
{
    uint64_t old_size = (peer->tx_ring == NULL) ? 0 : peer->tx_mask + 1;
    uint64_t i, size = uci_max((uint64_t)UCI_TXLOG_MIN_SIZE, old_size);
    uci_frame_t **ring;

    if (peer->tx_ring == NULL) {
        peer->tx_base = seq;
    } else {
        uci_txlog_advance(peer);
        peer->tx_base = uci_min(peer->tx_base, seq); /* seq has been counted already */
    }
    while (seq - peer->tx_base >= size) {
        size *= 2;
    }
    if (size == old_size) {
        return UCS_OK;
    }

    ring = calloc(size, sizeof(*ring));
    if (ring == NULL) {
        uci_error("failed to allocate a log of %lu messages", (unsigned long)size);
        return UCS_ERR_NO_MEMORY;
    }
    for (i = peer->tx_base; i < uci_min(seq, peer->tx_base + old_size); ++i) {
        ring[i & (size - 1)] = peer->tx_ring[i & peer->tx_mask];
    }
    free(peer->tx_ring);
    peer->tx_ring = ring;
    peer->tx_mask = size - 1;
    return UCS_OK;
}

bool uci_txlog_is_empty(uci_peer_t *peer)
{
    if (peer->tx_ring != NULL) {
        uci_txlog_advance(peer);
    }
    return (peer->tx_ring == NULL) || (peer->tx_base == peer->tx_next);
}

void uci_txlog_remove(uci_peer_t *peer, uci_frame_t *frame)
{
    uint64_t seq = frame->seq;

    uci_txlog_vacate(peer->worker, &peer->tx_ring[seq & peer->tx_mask]);
    if (seq == peer->tx_base) {
        uci_txlog_advance(peer);
    }
}

void uci_txlog_ack_one(uci_peer_t *peer, uint64_t seq)
{
    uci_frame_t *frame = uci_txlog_find(peer, seq);

    /* what waits for FIN goes with its operation */
    if ((frame != NULL) && (frame->op == NULL)) {
        uci_txlog_remove(peer, frame);
    }
}

void uci_txlog_ack(uci_peer_t *peer, uint64_t upto)
{
    uint64_t first = uci_max(peer->tx_base, peer->tx_acked), seq = first, end;
    uci_frame_t **place;
    bool held = (first > peer->tx_base); /* something older is there that waits for FIN */

    if (upto <= peer->tx_acked) {
        return;
    }
    if (uci_unlikely(upto > peer->tx_next)) {
        uci_wire_refuse(peer, "an acknowledgement", "that it has received what was never sent");
        return;
    }
    peer->tx_acked = upto;
    end            = uci_min(upto, peer->tx_base + peer->tx_mask + 1);
    for (; seq < end; ++seq) {
        place = &peer->tx_ring[seq & peer->tx_mask];
        if (uci_likely(*place != NULL)) {
            if (uci_likely((*place)->op == NULL)) {
                uci_txlog_vacate(peer->worker, place);
            } else {
                held = true; /* it goes with its operation */
            }
        }
    }
    if (uci_unlikely(held)) {
        uci_txlog_advance(peer);
    } else {
        peer->tx_base = upto;
    }
}

/* Keep what tells its receiver what is lost, if it is asked for */
static void uci_txlog_make_stub(uci_peer_t *peer, uci_frame_t *frame)
{
    uci_worker_t *worker = peer->worker;
    uci_frame_t *stub    = uci_frame_get(&worker->frames, sizeof(uci_frame_hdr_t));

    if (stub == NULL) {
        return;
    }
    stub->peer  = peer;
    stub->req   = NULL;
    stub->op    = NULL;
    stub->seq   = frame->seq;
    stub->total = sizeof(uci_frame_hdr_t);
    stub->flags = UCI_FRAME_STUB | UCI_FRAME_LOGGED;
    memcpy(stub->wire, frame->wire, stub->total);
    uci_txlog_vacate(worker, &peer->tx_ring[frame->seq & peer->tx_mask]);
    peer->tx_ring[stub->seq & peer->tx_mask] = stub;
    worker->log_bytes += stub->total;
    UCI_STATS_INC(log_dropped);
}

/* Drop payloads of one peer, oldest first, until the worker is below its limit. What is smaller than a stub is not worth it. Each frame
 * is looked at once: a peer that takes nothing may have any number of stubs here */
static void uci_txlog_drop_oldest(uci_worker_t *worker, uci_peer_t *peer)
{
    uci_frame_t *frame;
    uint64_t seq;

    peer->tx_dropped = uci_max(peer->tx_dropped, peer->tx_base);
    while ((peer->tx_dropped < peer->tx_posted) && (worker->log_bytes > worker->log_limit)) {
        seq   = peer->tx_dropped++;
        frame = uci_txlog_find(peer, seq);
        if ((frame != NULL) && (frame->op == NULL) && !(frame->flags & UCI_FRAME_STUB) &&
            (frame->total > UCI_CACHE_LINE)) {
            uci_txlog_make_stub(peer, frame);
        }
    }
}

void uci_txlog_enforce_limit(uci_worker_t *worker, uci_peer_t *peer)
{
    uci_txlog_drop_oldest(worker, peer);
    if (worker->log_bytes <= worker->log_limit) {
        return;
    }

    uci_worker_for_each_peer(other, worker)
    {
        uci_txlog_drop_oldest(worker, other);
    }
}
