/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The link: between two workers, in each direction, a stream of frames that are verified when they arrive, put in order by their
 * number, delivered upwards exactly once, and acknowledged. It knows nothing of what they mean.
 *
 *     sender: log (txlog.h)                            receiver
 *     number, seal, log, post by a carrier   ----->    header verified? its number is the next one? payload verified while the
 *                                                      layer above takes it
 *     forget what is acknowledged            <-----    ack in each frame and in the box; ACK
 *
 * A header that does not pass is not there; its number is a gap. A payload that does not match is a gap whose number is known.
 * Stale, exchanged, duplicated and lost frames are the same: numbers that were there already, or gaps. What comes behind a gap is
 * held until it is closed:
 *
 *     payload damaged               REPAIR with FRAME at once: that frame again
 *     header damaged, or a gap      ACK with REPAIR after a while (uci_ask_delay()), then after twice as long ...: what is
 *                                   missing again, and after damage whatever was sent last
 *     nothing arrived               the sender asks: frames below this number have been sent, where are you? (SENT, after 20 ms, then
 *                                   after twice as long ...) The answer is an ACK
 *
 * What is sent again always goes by active message. An acknowledgement says: verified, and in the receiver's hands.
 *
 * Silence is not damage: nothing fails because a peer is quiet. A frame that arrives damaged time after time, or of which there is no
 * intact copy any more, is lost: the layer above is told what it was.
 *
 * Which carrier (carrier of a frame, peer->by_mailbox):
 *
 *     ACTIVE MESSAGE --has a box, all frames that went this way are acknowledged--> MAILBOX --full--> waiting for room, or until all
 *          ^      |                                                                    ^              is acknowledged
 *          |      |                                                                    |                 |  ^  |
 *          |      |                                                                    +-----------------+  |  |
 *          |      +--has a box, UCI_LINK_STREAK frames in a row (SENT asks for what acknowledges them)------+  |
 *          +--------- in vain for UCI_LINK_WAIT_TURNS turns; a frame too large for a box ----------------------+
 */
#ifndef UCI_LINK_SEND_H_
#define UCI_LINK_SEND_H_

#include "control.h"
#include "base/edge.h"
#include "link_recv.h"
#include "base/peer_table.h"
#include "txlog.h"

/** Begin to look after a log that is not empty, or after a HELLO that has to be heard. May be called again. */
void uci_link_watch(uci_peer_t *peer);

/** The general case of uci_link_send(), for a frame that has been logged. */
ucs_status_t uci_link_send_other(uci_ep_t *ep, uci_frame_t *frame, uint32_t what, ucp_tag_t tag, uint64_t value);

/** @return where a frame goes in the peer's box, and its mark; NULL: there is no room. When all that went before it has been
 *  delivered, the box has been emptied: a lap may begin. */
UCI_INLINE char *uci_link_box_place(uci_peer_t *peer, const uci_frame_t *frame, uint64_t *mark_p)
{
    if (peer->tx.acked == frame->seq) {
        uci_box_tx_rewind(&peer->box.tx);
    }
    return uci_box_tx_place(&peer->box.tx, frame->total, mark_p);
}

/** Frames that may lie in a mailbox ahead of a synchronous one; and of these those that may go out until UCX has nothing for us. Each is answered
 *  by an active message. UCX's queue over shared memory takes 128 to 256, and the rest waits for the answering side's progress, of which MPICH
 *  makes none in MPI_Finalize, from 4.2 on. */
#define UCI_LINK_QUESTIONS 64u

/** Frames that may wait behind such a one, and their sends be over: as many as UCX's queue takes. */
#define UCI_LINK_EARLY 256u

UCI_INLINE bool uci_link_is_far_ahead(const uci_peer_t *peer)
{
    return peer->tx.posted >= peer->tx.acked + UCI_LINK_QUESTIONS;
}

UCI_INLINE bool uci_link_is_ahead(const uci_peer_t *peer)
{
    return uci_link_is_far_ahead(peer) || (peer->worker->link.questions >= UCI_LINK_QUESTIONS);
}

/** A synchronous frame is to be sent: it waits if it is one too many. */
UCI_INLINE void uci_link_pace(uci_peer_t *peer)
{
    if (uci_link_is_ahead(peer)) {
        peer->box.used = false; /* so that uci_link_send_other() decides */
    } else {
        ++peer->worker->link.questions;
    }
}

/** UCX had nothing for us: what has been answered has been read. */
UCI_INLINE void uci_link_has_read(uci_worker_t *worker)
{
    worker->link.questions = 0;
}

/**
 * Number, seal, log and send a frame whose payload has been written. A message to oneself is received, and answered, within the call.
 * @param what  uci_frame_what().  @param value  digest of the payload.
 * @return UCS_OK: it is on its way, and may be gone, or the log has it, for later; UCS_INPROGRESS: it waits for its carrier, and completes frame->req, if
 *         that is set now, when that has it; or an error: it has not been sent, and is the caller's.
 */
UCI_INLINE ucs_status_t uci_link_send(uci_ep_t *ep, uci_frame_t *frame, uint32_t what, ucp_tag_t tag, uint64_t value)
{
    uci_peer_t *peer = ep->peer;
    uint64_t mark;
    char *place;

    frame->peer  = peer;
    frame->flags = 0;
    frame->seq   = peer->tx.next;
    if (uci_unlikely(uci_txlog_put(peer, frame) != UCS_OK)) {
        return UCS_ERR_NO_MEMORY;
    }
    if (uci_unlikely(!peer->tx.watched)) {
        uci_link_watch(peer);
    }
    if (uci_unlikely(!peer->box.used) || uci_unlikely(uci_edge.post != NULL) ||
        uci_unlikely(frame->total > UCI_BOX_FRAME_MAX)) {
        return uci_link_send_other(ep, frame, what, tag, value);
    }
    place = uci_link_box_place(peer, frame, &mark);
    if (uci_unlikely(place == NULL)) {
        return uci_link_send_other(ep, frame, what, tag, value);
    }
    uci_frame_write_hdr(frame, what, uci_link_ack(peer), tag, value, mark, mark);
    peer->tx.posted = ++peer->tx.next;
    uci_box_tx_post(&peer->box.tx, place, frame->wire, frame->total, mark);
    uci_doorbell_ring(peer->box.doorbells, peer->box.number);
    return UCS_OK;
}

/** Frames wait for room in a mailbox: post them, or give up waiting; called from progress. @return how many were posted. */
unsigned uci_link_progress(uci_worker_t *worker);

/**
 * The peer has failed, or is not to be waited for: sends and receives that wait for the link end with @a status. That is no promise that what
 * was to be sent does not arrive, as it is none of UCX's: its number is given away and the log has it, so that if both talk again it is asked
 * for, and delivered in its place, intact and once. What nobody asks for is not sent.
 */
void uci_link_abandon(uci_peer_t *peer, ucs_status_t status);

/** Closing: nobody can be asked, so send once more all that has not been acknowledged, to lie in the peer's queues. */
void uci_link_send_again(uci_peer_t *peer);

/** The peer has closed, and has, or never wants, what has been sent to it until now. */
void uci_link_settle_sent(uci_peer_t *peer);

/** Look after what has not been acknowledged for long. Called now and then. */
void uci_link_look(uci_worker_t *worker);

/** What a peer says it has received: first missing, upto, then ranges that are missing, ascending and apart. @return what is wrong, or NULL. */
const char *uci_link_check_received(const uci_peer_t *peer, const uint64_t *words, size_t count);

/** REPAIR of a frame. */
void uci_link_on_repair(uci_peer_t *peer, uint64_t seq);

/** A frame for @a length bytes of payload to @a peer, who hears HELLO before the first one. @return NULL: no memory. */
UCI_INLINE uci_frame_t *uci_link_frame_get(uci_peer_t *peer, size_t length)
{
    uci_frame_t *frame;

    if (uci_unlikely(!peer->talk.hello_sent)) {
        uci_control_hello(peer);
    }
    frame = uci_likely(length <= UCI_FRAME_SMALL_PAYLOAD)
                    ? uci_frame_get_small(&peer->worker->frames)
                    : uci_frame_get(&peer->worker->frames, sizeof(uci_frame_hdr_t) + length);
    if (uci_likely(frame != NULL)) {
        frame->op    = NULL;
        frame->total = (uint32_t)(sizeof(uci_frame_hdr_t) + length);
    }
    return frame;
}

#endif
