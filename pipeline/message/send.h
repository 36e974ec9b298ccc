/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: a message of up to eager_max bytes goes in one frame and completes when a carrier has the frame (link_send.h); a
 * larger one goes by rendezvous (send_rndv.h), and so do messages from 4 KiB that would fit in a frame if slots are at hand.
 */
#ifndef UCI_SEND_H_
#define UCI_SEND_H_

#include "base/peer_table.h"
#include "uci_signature.h"

/** Send; @return as ucp_tag_send_nbx(). @a sync: as ucp_tag_send_sync_nbx(). */
ucs_status_ptr_t uci_send(uci_ep_t *ep, const void *buffer, size_t count, ucp_tag_t tag,
                          const ucp_request_param_t *param, bool sync);

/** The same with a signature (signed.h). */
ucs_status_ptr_t uci_send_with(uci_ep_t *ep, const void *buffer, size_t count, ucp_tag_t tag,
                               const ucp_request_param_t *param, bool sync, const uci_signature_t *signature);

#endif
