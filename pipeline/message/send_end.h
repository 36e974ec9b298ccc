/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How a send ends whose content is in a frame: of messages (send.c), and of active messages (user_am_send.c).
 */
#ifndef UCI_SEND_END_H_
#define UCI_SEND_END_H_

#include "base/peer_table.h"
#include "base/request.h"
#include "live/stats.h"

/** Its frame waits for its carrier: that back-pressure is passed on. @return what to return to the user. */
ucs_status_ptr_t uci_send_eager_pending(uci_worker_t *worker, uci_frame_t *frame, const ucp_request_param_t *param);

/** @param length  bytes of the user's.  @param status  as uci_link_send() has returned it. @return what to return to the user. */
UCI_INLINE ucs_status_ptr_t uci_send_eager_end(uci_ep_t *ep, uci_frame_t *frame, size_t length, ucs_status_t status,
                                               const ucp_request_param_t *param)
{
    uci_worker_t *worker = ep->peer->worker;

    UCI_STATS_INC(messages_sent);
    UCI_STATS_INC(eager_messages);
    UCI_STATS_ADD(bytes_sent, length);
    if (uci_likely(status == UCS_OK)) {
        return uci_likely(!(param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL)) ? NULL
                                                                                 : uci_request_immediate(worker, param);
    }
    if (status == UCS_INPROGRESS) {
        return uci_send_eager_pending(worker, frame, param);
    }
    uci_frame_put(&worker->frames, frame);
    return UCS_STATUS_PTR(status);
}

#endif
