/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: a message of up to eager_max bytes goes in one frame and completes as UCX completes the frame; a
 * larger one goes by rendezvous:
 *
 *     DESCRIBED --CTS--> STREAMING --last chunk--> WAIT_FIN --FIN--> done
 *      |   |   |            |  ^ ^                    | |
 *      |   |   |            |  | +-- REPAIR, TREE ----+ | (answered in any state after CTS)
 *      |   |   |            |  |                        |
 *      |   |   +--CTS--> OFFERED ----all digested-------+ (get.h; a short one: MATCHED --all digested--> WAIT_FIN)
 *      |   |   +--CTS--> BOUNCING ---all offered--------+ (superpipe.h); no span to be had: STREAMING
 *      |   |                   |
 *      |   +--CTS, slots are free now--> DIRECT --all slots acknowledged--> done
 *      |   |                   |       ^   |
 *      |   +--CTS--> QUEUED ---|-------+   | (until another message to this peer gives slots back)
 *      |               |       |           |
 *      |               +-------+ none did  |
 *      |                       +---CTS-----+ (the receiver can't use the slots)
 *      +--FIN (truncated)-------------------------------> done
 *
 * With slots at hand it starts in DIRECT (direct.h). So do messages from 4 KiB that would fit in a frame.
 *
 * A synchronous send of a small message is an eager frame that waits for FIN (state WAIT_FIN from the start).
 *
 * Where UCX would complete a large send without the receiver (UCX_RNDV_THRESH, or MPI_Send through FAST_CMPL up
 * to UCX_RNDV_SEND_NBR_THRESH), the message is copied and the user's send completes at once, or, if it is in slots, when nobody
 * has taken it for about as long as that takes (a slot is no copy, see source.h): programs that rely
 * on buffering go on as they do without UCI. Where UCX chooses the size itself we can't know it: a send of moderate
 * size that nobody receives for a while is copied and completed then.
 */
#ifndef UCI_SEND_H_
#define UCI_SEND_H_

#include "control.h"
#include "peer_table.h"
#include "send_op.h"

/** Send; @return as ucp_tag_send_nbx(). @a sync: as ucp_tag_send_sync_nbx(). */
ucs_status_ptr_t uci_send(uci_ep_t *ep, const void *buffer, size_t count, ucp_tag_t tag,
                          const ucp_request_param_t *param, bool sync);

/** Push chunks of all operations that stream; called from progress. */
void uci_send_progress(uci_worker_t *worker);

/** Send one chunk, with @a flags beside LAST. The operation may be over, and gone unless pinned, afterwards. */
ucs_status_t uci_send_chunk(uci_send_op_t *op, uint32_t index, uint16_t flags);

/** The bytes of the next chunk, with their digest. @param dst  where to; others may be able to write there.
 *  @param cut_p  0 but for a generic datatype. */
uint64_t uci_send_op_load(uci_send_op_t *op, uint32_t index, void *dst, uint32_t length, uci_cut_t *cut_p);

/** Chunks are to be read in any order from now on: a generic datatype is copied. @return false: no memory (logged). */
bool uci_send_op_settle(uci_send_op_t *op);

/** UCX holds a part of the message no longer. */
void uci_send_part_done(uci_send_op_t *op, void *span);

/** So it is with a segment of the bounce path: its span is free. */
void uci_send_span_done(uci_send_op_t *op, void *span);

/** Closing: send all chunks unasked, if the user takes the message for sent. The operation may be over, and gone, afterwards. */
void uci_send_hand_over(uci_send_op_t *op);

/** What has not been sent goes as a stream. */
void uci_send_stream_rest(uci_send_op_t *op);

void uci_send_op_unpin(uci_send_op_t *op);

/** The operation is over: complete the user's request, release everything. */
void uci_send_op_finish(uci_send_op_t *op, ucs_status_t status);

/** The operation has lost patience: complete the user's request from a copy. It may be over, and gone unless pinned, afterwards. */
void uci_send_op_buffer_early(uci_send_op_t *op);

/** @return when an operation that nobody has received is to be completed from a copy, UINT64_MAX: never. */
uint64_t uci_send_op_buffer_time(const uci_send_op_t *op);

/** Nobody has received this yet: complete it from a copy if plain UCX might have done so. */
void uci_send_op_buffer_late(uci_send_op_t *op, uint64_t now);

/** The worker goes: unmap what is mapped for repairs; then, when UCX's part is gone, forget what never ended. */
void uci_send_shutdown(uci_worker_t *worker);
void uci_send_cleanup(uci_worker_t *worker);

/** Has the receiver begun to take it? Not known of what needs no answer. */
bool uci_send_op_is_matched(const uci_send_op_t *op);

/** Ask the receiver where it is with this operation. */
void uci_send_op_query(uci_send_op_t *op);

/* What the receiver says about message seq; called by the dispatcher */
void uci_send_on_cts(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr);
void uci_send_on_repair(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length);
void uci_send_on_fin(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr);

#endif
