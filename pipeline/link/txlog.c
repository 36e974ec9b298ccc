/* SPDX-License-Identifier: BSD-3-Clause */
#include "txlog.h"

#include <stdlib.h>

#include "util/log.h"
#include "base/peer_table.h"
#include "util/seq.h"
#include "live/stats.h"
#include "base/wire_check.h"

#define UCI_TXLOG_MIN_SIZE 64

/* Numbers of a ring that does not shrink; the bytes of a larger one count as the frames do */
#define UCI_TXLOG_SMALL_SIZE 1024u

/* ------------------------------------------------------------- the ring */

UCI_INLINE bool uci_txlog_is_in_ring(const uci_peer_t *peer, uint64_t seq)
{
    return (peer->tx.ring != NULL) && (seq >= peer->tx.base) && (seq < peer->tx.next) &&
           (seq - peer->tx.base <= peer->tx.mask);
}

static uint64_t uci_txlog_size(const uci_peer_t *peer)
{
    return (peer->tx.ring == NULL) ? 0 : peer->tx.mask + 1;
}

static size_t uci_txlog_ring_bytes(uint64_t size)
{
    return (size > UCI_TXLOG_SMALL_SIZE) ? size * sizeof(uci_frame_t *) : 0;
}

/* Move the lower end of the ring over what has been removed; a whole turn without a frame is an empty log */
static void uci_txlog_advance(uci_peer_t *peer)
{
    uint64_t end = uci_min(peer->tx.next, peer->tx.base + peer->tx.mask + 1);

    while ((peer->tx.base < end) && (peer->tx.ring[peer->tx.base & peer->tx.mask] == NULL)) {
        ++peer->tx.base;
    }
    if (peer->tx.base == end) {
        peer->tx.base = peer->tx.next;
    }
}

/* @param end  behind what is in the ring */
static ucs_status_t uci_txlog_resize(uci_peer_t *peer, uint64_t size, uint64_t end)
{
    uint64_t i, old_size = uci_txlog_size(peer);
    uci_frame_t **ring = calloc(size, sizeof(*ring));

    if (ring == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    for (i = peer->tx.base; i < uci_min(end, peer->tx.base + old_size); ++i) {
        ring[i & (size - 1)] = peer->tx.ring[i & peer->tx.mask];
    }
    free(peer->tx.ring);
    peer->tx.ring = ring;
    peer->tx.mask = size - 1;
    peer->worker->link.log_bytes += uci_txlog_ring_bytes(size);
    peer->worker->link.log_bytes -= uci_txlog_ring_bytes(old_size);
    return UCS_OK;
}

ucs_status_t uci_txlog_make_room(uci_peer_t *peer, uint64_t seq)
{
    uint64_t old_size = uci_txlog_size(peer), size = uci_max((uint64_t)UCI_TXLOG_MIN_SIZE, old_size);

    if (peer->tx.ring == NULL) {
        peer->tx.base = seq;
    } else {
        uci_txlog_advance(peer);
        peer->tx.base = uci_min(peer->tx.base, seq); /* seq has been counted already */
    }
    while (seq - peer->tx.base >= size) {
        size *= 2;
    }
    if (size == old_size) {
        return UCS_OK;
    }
    if (uci_txlog_resize(peer, size, seq) != UCS_OK) {
        uci_error("failed to allocate a log of %lu messages", (unsigned long)size);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

/* An eighth of it is used: what it takes to grow again is little beside what has to be sent for that */
static void uci_txlog_shrink(uci_peer_t *peer)
{
    uint64_t size = uci_txlog_size(peer);

    while ((size > UCI_TXLOG_SMALL_SIZE) && (peer->tx.next - peer->tx.base < size / 8)) {
        size /= 4;
    }
    size = uci_max(size, (uint64_t)UCI_TXLOG_SMALL_SIZE);
    if (size < uci_txlog_size(peer)) {
        (void)uci_txlog_resize(peer, size, peer->tx.next);
    }
}

/* ---------------------------------------------------- what waits for FIN */

static uci_frame_t **uci_txlog_chain(uci_peer_t *peer, uint64_t seq)
{
    return (peer->log.kept == NULL) ? &peer->log.kept_one : &peer->log.kept[seq & peer->log.kept_mask];
}

static void uci_txlog_chain_put(uci_peer_t *peer, uci_frame_t *frame)
{
    uci_frame_t **chain = uci_txlog_chain(peer, frame->seq);

    frame->next = *chain;
    *chain      = frame;
}

/* @param size  chains, a power of 2; without memory they only get longer */
static void uci_txlog_rechain(uci_peer_t *peer, uint32_t size)
{
    uint32_t i, old_size = (peer->log.kept == NULL) ? 1 : peer->log.kept_mask + 1;
    uci_frame_t **old = peer->log.kept, *one = peer->log.kept_one, *frame, *next;
    uci_frame_t **chains = calloc(size, sizeof(*chains));

    if (chains == NULL) {
        return;
    }
    peer->log.kept      = chains;
    peer->log.kept_mask = size - 1;
    peer->log.kept_one  = NULL;
    for (i = 0; i < old_size; ++i) {
        for (frame = (old == NULL) ? one : old[i]; frame != NULL; frame = next) {
            next = frame->next;
            uci_txlog_chain_put(peer, frame);
        }
    }
    free(old);
}

/* From the ring to its chain */
static void uci_txlog_keep(uci_peer_t *peer, uci_frame_t **place)
{
    uci_txlog_chain_put(peer, *place);
    *place = NULL;
    if (++peer->log.kept_count > 4 * (uint64_t)(peer->log.kept_mask + 1)) {
        uci_txlog_rechain(peer, 4 * (peer->log.kept_mask + 1));
    }
}

static void uci_txlog_remove_kept(uci_peer_t *peer, uci_frame_t *frame)
{
    uci_frame_t **place = uci_txlog_chain(peer, frame->seq);

    while (*place != frame) {
        place = &(*place)->next;
    }
    *place = frame->next;
    uci_txlog_free(peer->worker, frame);
    if (--peer->log.kept_count < peer->log.kept_mask / 4) {
        uci_txlog_rechain(peer, (peer->log.kept_mask + 1) / 4);
    }
}

static uci_frame_t *uci_txlog_find_kept(const uci_peer_t *peer, uint64_t seq, uint64_t mask)
{
    uci_frame_t *frame;

    if (peer->log.kept_count == 0) {
        return NULL;
    }
    frame = (peer->log.kept == NULL) ? peer->log.kept_one : peer->log.kept[seq & peer->log.kept_mask];
    while ((frame != NULL) && (((frame->seq ^ seq) & mask) != 0)) {
        frame = frame->next;
    }
    return frame;
}

/* ---------------------------------------------------------------- both */

uci_frame_t *uci_txlog_find(const uci_peer_t *peer, uint64_t seq)
{
    uci_frame_t *frame = uci_txlog_is_in_ring(peer, seq) ? peer->tx.ring[seq & peer->tx.mask] : NULL;

    return (frame != NULL) ? frame : uci_txlog_find_kept(peer, seq, UINT64_MAX);
}

uint64_t uci_txlog_expand(const uci_peer_t *peer, uint32_t low)
{
    const uci_frame_t *kept = uci_txlog_find_kept(peer, low, UINT32_MAX);

    return (kept != NULL) ? kept->seq : uci_seq_expand(low, peer->tx.next);
}

bool uci_txlog_is_empty(uci_peer_t *peer)
{
    if (peer->tx.ring != NULL) {
        uci_txlog_advance(peer);
    }
    return ((peer->tx.ring == NULL) || (peer->tx.base == peer->tx.next)) && (peer->log.kept_count == 0);
}

void uci_txlog_release(uci_peer_t *peer)
{
    if (!uci_txlog_is_empty(peer)) {
        return;
    }
    peer->worker->link.log_bytes -= uci_txlog_ring_bytes(uci_txlog_size(peer));
    free(peer->tx.ring);
    free(peer->log.kept);
    peer->tx.ring       = NULL;
    peer->tx.mask       = UINT64_MAX;
    peer->log.kept      = NULL;
    peer->log.kept_mask = 0;
}

size_t uci_txlog_count(const uci_peer_t *peer)
{
    size_t count = peer->log.kept_count;
    uint64_t i;

    for (i = 0; i < uci_txlog_size(peer); ++i) {
        count += (peer->tx.ring[i] != NULL);
    }
    return count;
}

/* Has it been acknowledged, and waits for FIN? */
static bool uci_txlog_is_kept(const uci_peer_t *peer, const uci_frame_t *frame)
{
    return !uci_txlog_is_in_ring(peer, frame->seq) || (peer->tx.ring[frame->seq & peer->tx.mask] != frame);
}

void uci_txlog_remove(uci_peer_t *peer, uci_frame_t *frame)
{
    uint64_t seq = frame->seq;

    if (uci_txlog_is_kept(peer, frame)) {
        uci_txlog_remove_kept(peer, frame);
        return;
    }
    uci_txlog_vacate(peer->worker, &peer->tx.ring[seq & peer->tx.mask]);
    if (seq == peer->tx.base) {
        uci_txlog_advance(peer);
    }
}

void uci_txlog_leave(uci_peer_t *peer, uci_frame_t *frame)
{
    if (uci_txlog_is_kept(peer, frame)) {
        uci_txlog_remove_kept(peer, frame);
    }
}

/* A frame has been acknowledged. What waits for FIN goes with its operation */
UCI_INLINE void uci_txlog_ack_place(uci_peer_t *peer, uci_frame_t **place)
{
    if (uci_likely((*place)->op == NULL)) {
        uci_txlog_vacate(peer->worker, place);
    } else {
        uci_txlog_keep(peer, place);
    }
}

void uci_txlog_ack_one(uci_peer_t *peer, uint64_t seq)
{
    if (uci_txlog_is_in_ring(peer, seq) && (peer->tx.ring[seq & peer->tx.mask] != NULL)) {
        uci_txlog_ack_place(peer, &peer->tx.ring[seq & peer->tx.mask]);
        if (seq == peer->tx.base) {
            uci_txlog_advance(peer);
        }
    }
}

void uci_txlog_ack(uci_peer_t *peer, uint64_t upto)
{
    uint64_t seq = peer->tx.base, end;
    uci_frame_t **place;

    if (upto <= peer->tx.acked) {
        return;
    }
    if (uci_unlikely(upto > peer->tx.next)) {
        uci_wire_refuse(peer, "an acknowledgement", "that it has received what was never sent");
        return;
    }
    peer->tx.acked = upto;
    end            = uci_min(upto, peer->tx.base + peer->tx.mask + 1);
    for (; seq < end; ++seq) {
        place = &peer->tx.ring[seq & peer->tx.mask];
        if (uci_likely(*place != NULL)) {
            uci_txlog_ack_place(peer, place);
        }
    }
    peer->tx.base = uci_max(peer->tx.base, upto);
    if (uci_unlikely(peer->tx.mask >= UCI_TXLOG_SMALL_SIZE)) {
        uci_txlog_shrink(peer);
    }
}

/* ------------------------------------------------------------ the limit */

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
    uci_txlog_vacate(worker, &peer->tx.ring[frame->seq & peer->tx.mask]);
    peer->tx.ring[stub->seq & peer->tx.mask] = stub;
    worker->link.log_bytes += stub->total;
    UCI_STATS_INC(log_dropped);
}

/* Drop payloads of one peer, oldest first, until the worker is below its limit. What is smaller than a stub is not worth it. Each frame
 * is looked at once: a peer that takes nothing may have any number of stubs here */
static void uci_txlog_drop_oldest(uci_worker_t *worker, uci_peer_t *peer)
{
    uci_frame_t *frame;
    uint64_t seq;

    peer->tx.dropped = uci_max(peer->tx.dropped, peer->tx.base);
    while ((peer->tx.dropped < peer->tx.posted) && (worker->link.log_bytes > worker->link.log_limit)) {
        seq   = peer->tx.dropped++;
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
    if (worker->link.log_bytes <= worker->link.log_limit) {
        return;
    }

    uci_worker_for_each_peer(other, worker)
    {
        uci_txlog_drop_oldest(worker, other);
    }
}
