/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The beginning of a rendezvous, at its receiver.
 */
#ifndef UCI_RECV_RNDV_H_
#define UCI_RECV_RNDV_H_

#include "base/peer.h"
#include "base/request.h"
#include "transfer/recv_op_part.h"

/** The descriptor of a rendezvous has been verified. */
void uci_recv_descriptor(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                         const uci_digest_ops_t *digest, const uci_rndv_desc_t *desc);

/** To a receive that a lost message is for: @a status, and, for UCI_ON_ERROR=log, what there is of it, which may be too long. */
void uci_recv_deliver_lost(uci_request_t *req, const char *payload, size_t length, ucp_tag_t tag, ucs_status_t status);

/** A message of @a length bytes, more than @a req has room for. */
void uci_recv_truncated(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag, uci_frame_kind_t kind,
                        uint64_t length);

/** Nothing is wanted of a message any more, whose sender waits to hear that: FIN. @param status  what its send ends with. */
void uci_recv_decline(uci_peer_t *peer, uint64_t seq, uint16_t flags, ucs_status_t status);

#endif
