/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A send that is over when its receiver says FIN: a small one that is synchronous, or one that takes more than a frame. How it begins, and what
 * the receiver says of it: CTS, REPAIR, FIN.
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
 * With slots at hand it starts in DIRECT (direct.h).
 *
 * A synchronous send of a small message is an eager frame that waits for FIN (state WAIT_FIN from the start).
 *
 * Where UCX would complete a large send without the receiver (UCX_RNDV_THRESH, or MPI_Send through FAST_CMPL up
 * to UCX_RNDV_SEND_NBR_THRESH), the message is copied and the user's send completes at once, or, if it is in slots, when nobody
 * has taken it for about as long as that takes (a slot is no copy, see source.h): programs that rely
 * on buffering go on as they do without UCI. Where UCX chooses the size itself we can't know it: a send of moderate
 * size that nobody receives for a while is copied and completed then.
 */
#ifndef UCI_SEND_RNDV_H_
#define UCI_SEND_RNDV_H_

#include "base/peer.h"
#include "base/request.h"
#include "signature/signature.h"

/**
 * A small synchronous send: the payload is in the frame, FIN completes it.
 * @param req  its buffer is what is sent; given back if it can't be started.
 * @return as ucp_tag_send_nbx().
 */
ucs_status_ptr_t uci_send_sync(uci_ep_t *ep, uci_request_t *req, ucp_tag_t tag, const ucp_request_param_t *param,
                               const uci_signature_t *signature);

/** The same for what takes more than a frame: it is described, and goes by the path that suits it. A request with
 *  UCI_REQUEST_USER_AM is of an active message, whose header has been sent. */
ucs_status_ptr_t uci_send_rndv(uci_ep_t *ep, uci_request_t *req, ucp_tag_t tag, const ucp_request_param_t *param,
                               bool sync, const uci_signature_t *signature);

/** Could a message of this length go through slots, by what is known of the peer, and by the plan? */
bool uci_send_may_go_direct(uci_peer_t *peer, uint64_t length);

#endif
