/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: a message of up to eager_max bytes goes in one frame and completes when a carrier has the frame (link_send.h); a
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

#include "link/control.h"
#include "base/peer_table.h"
#include "base/send_op.h"
#include "uci_signature.h"

/** Send; @return as ucp_tag_send_nbx(). @a sync: as ucp_tag_send_sync_nbx(). */
ucs_status_ptr_t uci_send(uci_ep_t *ep, const void *buffer, size_t count, ucp_tag_t tag,
                          const ucp_request_param_t *param, bool sync);

/** The same with a signature (signed.h). */
ucs_status_ptr_t uci_send_with(uci_ep_t *ep, const void *buffer, size_t count, ucp_tag_t tag,
                               const ucp_request_param_t *param, bool sync, const uci_signature_t *signature);

#endif
