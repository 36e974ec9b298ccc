/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Do the types of a message match those of its receive? See signed.h.
 */
#ifndef UCI_TYPES_MATCH_H_
#define UCI_TYPES_MATCH_H_

#include "base/peer.h"
#include "base/signed.h"

/** A message is matched to a receive: if both tell types, compare, and report what does not match. */
void uci_types_compare(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag, uint64_t length,
                       const uci_sent_types_t *sent);

#endif
