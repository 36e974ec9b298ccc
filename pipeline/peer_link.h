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
 *     header damaged, or a gap      ACK with REPAIR after a while (uci_control_delay()), then after twice as long ...: what is
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
 *     ACTIVE MESSAGE --has a box, all frames that went this way are acknowledged--> MAILBOX --full--> waiting for room
 *          ^                                                                           ^                 |     |
 *          |                                                                           +--room ----------+     |
 *          +--------- no room for UCI_LINK_WAIT_TURNS turns; a frame too large for a box ----------------------+
 */
#ifndef UCI_PEER_LINK_H_
#define UCI_PEER_LINK_H_

#include "fault.h"
#include "gap.h"
#include "peer_table.h"
#include "txlog.h"

/* ------------------------------------------------------------- sending */

/** What a frame acknowledges: all that has been delivered, so that no other acknowledgement is due. */
UCI_INLINE uint32_t uci_link_ack(uci_peer_t *peer)
{
    peer->unacked       = 0;
    peer->unacked_bytes = 0;
    return (uint32_t)peer->rx_next;
}

/** Say where we are, in answer to something that is repeated until it is answered. */
void uci_link_confirm(uci_peer_t *peer);

/** Begin to look after a log that is not empty, or after a HELLO that has to be heard. May be called again. */
void uci_link_watch(uci_peer_t *peer);

/** The general case of uci_link_send(), for a frame that has been logged. */
ucs_status_t uci_link_send_other(uci_ep_t *ep, uci_frame_t *frame, uint32_t what, ucp_tag_t tag, uint64_t value);

/** @return where a frame goes in the peer's box, and its mark; NULL: there is no room. When all that went before it has been
 *  delivered, the box has been emptied: a lap may begin. */
UCI_INLINE char *uci_link_box_place(uci_peer_t *peer, const uci_frame_t *frame, uint64_t *mark_p)
{
    if (peer->tx_acked == frame->seq) {
        uci_box_tx_rewind(&peer->box);
    }
    return uci_box_tx_place(&peer->box, frame->total, mark_p);
}

/**
 * Number, seal, log and send a frame whose payload has been written. A message to oneself is received, and answered, within the call.
 * @param what  uci_frame_what().  @param value  digest of the payload.
 * @return UCS_OK: it is on its way, and may be gone; UCS_INPROGRESS: it waits for its carrier, and completes frame->req, if
 *         that is set now, when that has it; or an error: it has not been sent, and is the caller's.
 */
UCI_INLINE ucs_status_t uci_link_send(uci_ep_t *ep, uci_frame_t *frame, uint32_t what, ucp_tag_t tag, uint64_t value)
{
    uci_peer_t *peer = ep->peer;
    uint64_t mark;
    char *place;

    frame->peer  = peer;
    frame->flags = 0;
    frame->seq   = peer->tx_next;
    if (uci_unlikely(uci_txlog_put(peer, frame) != UCS_OK)) {
        return UCS_ERR_NO_MEMORY;
    }
    if (uci_unlikely(!peer->watched)) {
        uci_link_watch(peer);
    }
    if (uci_unlikely(!peer->by_mailbox) || uci_unlikely(uci_fault_enabled) ||
        uci_unlikely(frame->total > UCI_BOX_FRAME_MAX)) {
        return uci_link_send_other(ep, frame, what, tag, value);
    }
    place = uci_link_box_place(peer, frame, &mark);
    if (uci_unlikely(place == NULL)) {
        return uci_link_send_other(ep, frame, what, tag, value);
    }
    uci_frame_write_hdr(frame, what, uci_link_ack(peer), tag, value, mark, mark);
    peer->tx_posted = ++peer->tx_next;
    uci_box_tx_post(&peer->box, place, frame->wire, frame->total, mark);
    uci_doorbell_ring(peer->doorbells, peer->box_number);
    return UCS_OK;
}

/** Frames wait for room in a mailbox: post them, or give up waiting; called from progress. @return how many were posted. */
unsigned uci_link_progress(uci_worker_t *worker);

/** The peer has failed, or is not to be waited for: sends and receives that wait for the link end with @a status. */
void uci_link_abandon(uci_peer_t *peer, ucs_status_t status);

/** Closing: nobody can be asked, so send once more all that has not been acknowledged, to lie in the peer's queues. */
void uci_link_send_again(uci_peer_t *peer);

/** Look after what has not been acknowledged for long. Called now and then. */
void uci_link_look(uci_worker_t *worker);

/* ----------------------------------------------------------- receiving */

/* An acknowledgement that no frame brings is due after so many frames, or bytes */
#define UCI_LINK_ACK_FRAMES 128
#define UCI_LINK_ACK_BYTES  (512u << 10)

/** Acknowledge all that has been delivered: in the peer's box, or by ACK. */
void uci_link_ack_now(uci_peer_t *peer);

/** Called by the layer above from worker->arrived(), when it has verified the frame's payload and before it tells anybody: the
 *  frame is delivered. @param length  bytes of payload. */
UCI_INLINE void uci_link_delivered(uci_peer_t *peer, size_t length)
{
    ++peer->rx_next;
    peer->unacked_bytes += (uint32_t)length;
    if (uci_unlikely((++peer->unacked >= UCI_LINK_ACK_FRAMES) || (peer->unacked_bytes >= UCI_LINK_ACK_BYTES))) {
        uci_link_ack_now(peer);
    }
}

/** Every frame that is not the next one, and intact. */
void uci_link_take_other(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** The payload of a frame, whose header is right, is not. @param length  bytes that came. */
void uci_link_payload_damaged(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length);

UCI_INLINE void uci_link_take_ack(uci_peer_t *peer, uint32_t ack)
{
    if ((ack != (uint32_t)peer->tx_acked) && !uci_txlog_ack_last(peer, ack)) {
        uci_txlog_ack(peer, uci_seq_expand(ack, peer->tx_acked));
    }
}

/** A frame has come. @param hdr  passed its check, in memory that nobody else can write to.  @param payload  as many bytes as
 *  it says, which others may be able to write to. */
UCI_INLINE void uci_link_take(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    if (uci_unlikely(hdr->seq != (uint32_t)peer->rx_next) || uci_unlikely(peer->rx_special)) {
        uci_link_take_other(peer, hdr, payload);
        return;
    }
    uci_link_take_ack(peer, hdr->ack);
    if (uci_unlikely(!peer->worker->arrived(peer, hdr, payload))) {
        uci_link_payload_damaged(peer, hdr, payload, hdr->length);
    }
}

/** A frame's header did not pass. @param peer  who sent it, if that is known. */
void uci_link_header_damaged(uci_worker_t *worker, uci_peer_t *peer, const char *what);

/** Ask for what is missing, if it is time. */
void uci_link_ask(uci_worker_t *worker, uint64_t now);

/** @return when that is, if nothing arrives; UINT64_MAX: never. A log that is not acknowledged wakes nobody who sleeps: active messages, which
 *  are what contexts with UCP_FEATURE_WAKEUP send, are not lost on their way, and what is damaged its receiver asks for. */
uint64_t uci_link_due(const uci_worker_t *worker);

/** The handler of frames that come by active message, UCI_FRAME_AM_ID: a ucp_am_recv_callback_t. @param arg  the worker. */
ucs_status_t uci_link_recv(void *arg, const void *header, size_t header_length, void *data, size_t length,
                           const ucp_am_recv_param_t *param);

/** Forget what is held of a peer, or waits for it. */
void uci_link_cleanup(uci_peer_t *peer);

/* Called by the dispatcher */
void uci_link_on_ack(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data, size_t length);
void uci_link_on_sent(uci_peer_t *peer, const uci_am_hdr_t *hdr);
void uci_link_on_repair(uci_peer_t *peer, uint64_t seq);
void uci_link_on_gone(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr);

#endif
