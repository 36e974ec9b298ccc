/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The log of a peer: frames that were sent and not acknowledged yet, so that they can be repaired although the
 * user's send completed long ago. A ring by number. It has a soft limit per worker: beyond it the payloads of the
 * oldest are dropped, and counted; those messages are still verified, but can not be repaired.
 *
 * What has been acknowledged and waits for FIN, a rendezvous or a synchronous send, may be here for long: it is kept beside the
 * ring, which spans no more than what is not acknowledged, and shrinks when little of it is.
 */
#ifndef UCI_TXLOG_H_
#define UCI_TXLOG_H_

#include "base/peer.h"
#include "base/worker_state.h"

/** The general case of uci_txlog_put(): room and limit. */
ucs_status_t uci_txlog_make_room(uci_peer_t *peer, uint64_t seq);
void uci_txlog_enforce_limit(uci_worker_t *worker, uci_peer_t *peer);

/** Keep @a frame, whose seq is the highest so far. */
UCI_INLINE ucs_status_t uci_txlog_put(uci_peer_t *peer, uci_frame_t *frame)
{
    uci_worker_t *worker = peer->worker;
    ucs_status_t status;

    if (uci_unlikely(frame->seq - peer->tx.base >= peer->tx.mask + 1)) {
        status = uci_txlog_make_room(peer, frame->seq);
        if (status != UCS_OK) {
            return status;
        }
    }

    peer->tx.ring[frame->seq & peer->tx.mask] = frame;
    frame->flags |= UCI_FRAME_LOGGED;
    worker->link.log_bytes += frame->total;
    if (uci_unlikely(worker->link.log_bytes > worker->link.log_limit)) {
        uci_txlog_enforce_limit(worker, peer);
    }
    return UCS_OK;
}

/** @return the frame with this number if its copy is still there, else NULL. */
uci_frame_t *uci_txlog_find(const uci_peer_t *peer, uint64_t seq);

/**
 * @return the number of a message that the peer says something about, from its low half: that of one that is kept, however many have
 *         been sent since, or else the nearest to the next one's.
 */
uint64_t uci_txlog_expand(const uci_peer_t *peer, uint32_t low);

/** Has everything been acknowledged, and FIN said where it is waited for? */
bool uci_txlog_is_empty(uci_peer_t *peer);

/** The conversation is over: if nothing is in the log, it takes no memory until something is sent again. */
void uci_txlog_release(uci_peer_t *peer);

/** @return the number of frames in the log. */
size_t uci_txlog_count(const uci_peer_t *peer);

/** Take one out of the log; it is freed once UCX has let go of it. */
void uci_txlog_remove(uci_peer_t *peer, uci_frame_t *frame);

/** The operation of @a frame is over, and its receiver may not have it: it goes when that has acknowledged it, as any other, or now if it has.
 *  What comes behind it is not taken without it. */
void uci_txlog_leave(uci_peer_t *peer, uci_frame_t *frame);

/** Every frame below @a upto has been verified. One that was never sent has not: that is refused. */
void uci_txlog_ack(uci_peer_t *peer, uint64_t upto);

/* It is in the log no more */
UCI_INLINE void uci_txlog_free(uci_worker_t *worker, uci_frame_t *frame)
{
    worker->link.log_bytes -= frame->total;
    frame->flags &= (uint8_t)~UCI_FRAME_LOGGED;
    if (uci_likely(!(frame->flags & UCI_FRAME_IN_FLIGHT))) {
        uci_frame_put(&worker->frames, frame);
    }
}

/* Take out the frame in this place of the ring */
UCI_INLINE void uci_txlog_vacate(uci_worker_t *worker, uci_frame_t **place)
{
    uci_frame_t *frame = *place;

    *place = NULL;
    uci_txlog_free(worker, frame);
}

/** Every message has been verified, if that is one and @a ack, the low half of a number, says so: an answer to the only
 *  message. @return false: nothing has been done, uci_txlog_ack() has to look at it. */
UCI_INLINE bool uci_txlog_ack_last(uci_peer_t *peer, uint32_t ack)
{
    uint64_t last = peer->tx.next - 1;
    uci_frame_t **place;

    if ((ack != (uint32_t)peer->tx.next) || (peer->tx.base != last) || (peer->tx.acked != last)) {
        return false;
    }
    place = &peer->tx.ring[last & peer->tx.mask];
    if (uci_unlikely(*place == NULL) || ((*place)->op != NULL)) {
        return false;
    }
    uci_txlog_vacate(peer->worker, place);
    peer->tx.base  = peer->tx.next;
    peer->tx.acked = peer->tx.next;
    return true;
}

/** Message @a seq has been verified. */
void uci_txlog_ack_one(uci_peer_t *peer, uint64_t seq);

#endif
