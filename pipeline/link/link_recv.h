/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiving half of the link (link_send.h says what that is): frames are put in order and handed upwards, and acknowledged; gaps are
 * found, and asked for.
 */
#ifndef UCI_LINK_RECV_H_
#define UCI_LINK_RECV_H_

#include "base/gap.h"
#include "base/peer_table.h"
#include "txlog.h"

/** What a frame acknowledges: all that has been delivered, so that no other acknowledgement is due. */
UCI_INLINE uint32_t uci_link_ack(uci_peer_t *peer)
{
    peer->rx.unacked       = 0;
    peer->rx.unacked_bytes = 0;
    return (uint32_t)peer->rx.next;
}

/** Say where we are, in answer to something that is repeated until it is answered. */
void uci_link_confirm(uci_peer_t *peer);

/* An acknowledgement that no frame brings is due after so many frames, or bytes */
#define UCI_LINK_ACK_FRAMES 128
#define UCI_LINK_ACK_BYTES  (512u << 10)

/** Acknowledge all that has been delivered: in the peer's box, or by ACK. */
void uci_link_ack_now(uci_peer_t *peer);

/** Called by the layer above from worker->arrived(), when it has verified the frame's payload and before it tells anybody: the
 *  frame is delivered. @param length  bytes of payload. */
UCI_INLINE void uci_link_delivered(uci_peer_t *peer, size_t length)
{
    ++peer->rx.next;
    peer->rx.unacked_bytes += (uint32_t)length;
    if (uci_unlikely((++peer->rx.unacked >= UCI_LINK_ACK_FRAMES) || (peer->rx.unacked_bytes >= UCI_LINK_ACK_BYTES))) {
        uci_link_ack_now(peer);
    }
}

/** The next frame, whose payload came damaged, or for which somebody has chosen, is for this receive, and no other. @param req  NULL: for none
 *  yet. */
UCI_INLINE void uci_link_bind(uci_peer_t *peer, uci_request_t *req)
{
    peer->rx.bound = req;
}

/** Every frame that is not the next one, and intact. */
void uci_link_take_other(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** The payload of a frame, whose header is right, is not. @param length  bytes that came. */
void uci_link_payload_damaged(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length);

UCI_INLINE void uci_link_take_ack(uci_peer_t *peer, uint32_t ack)
{
    if ((ack != (uint32_t)peer->tx.acked) && !uci_txlog_ack_last(peer, ack)) {
        uci_txlog_ack(peer, uci_seq_expand(ack, peer->tx.acked));
    }
}

/** A frame has come. @param hdr  passed its check, in memory that nobody else can write to.  @param payload  as many bytes as
 *  it says, which others may be able to write to. */
UCI_INLINE void uci_link_take(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    if (uci_unlikely(hdr->seq != (uint32_t)peer->rx.next) || uci_unlikely(peer->rx.special)) {
        uci_link_take_other(peer, hdr, payload);
        return;
    }
    uci_link_take_ack(peer, hdr->ack);
    if (uci_unlikely(!peer->worker->calls.arrived(peer, hdr, payload))) {
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

/** A frame that was in a record, in memory of our own. */
void uci_link_take_opened(uci_worker_t *worker, const char *data, size_t length);

/** Forget what is held of a peer, or waits for it. */
void uci_link_cleanup(uci_peer_t *peer);

/** GONE of a frame. */
void uci_link_on_gone(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr);

#endif
