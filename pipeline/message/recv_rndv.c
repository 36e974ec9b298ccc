/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv_rndv.h"

#include "early.h"
#include "link/control.h"
#include "transfer/recv_begin.h"
#include "transfer/recv_common.h"
#include "transfer/repair.h"
#include "report/report.h"
#include "base/request.h"
#include "base/wire_check.h"

void uci_recv_decline(uci_peer_t *peer, uint64_t seq, uint16_t flags, ucs_status_t status)
{
    uci_early_drop(peer, seq);
    uci_control_fin_status(peer, seq, flags, status);
}

void uci_recv_truncated(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag, uci_frame_kind_t kind,
                        uint64_t length)
{
    if (uci_frame_wants_fin(kind)) {
        uci_recv_decline(peer, seq, UCI_AM_FLAG_TRUNCATED, UCS_OK);
    }
    uci_recv_count(0);
    uci_request_complete_recv(req, UCS_ERR_MESSAGE_TRUNCATED, tag, length);
}

void uci_recv_deliver_lost(uci_request_t *req, const char *payload, size_t length, ucp_tag_t tag, ucs_status_t status)
{
    if ((status == UCS_OK) && (length > req->buffer.length)) {
        status = UCS_ERR_MESSAGE_TRUNCATED;
    }
    uci_buffer_store(&req->buffer, 0, payload, uci_min(length, req->buffer.length));
    uci_request_complete_recv(req, status, tag, length);
}

/* Nothing can be done for this message: never silently */
static void uci_recv_give_up(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag, size_t length,
                             uci_reason_t reason, const char *text)
{
    uci_repair_count_lost();
    uci_report_message_lost(peer, seq, tag, (req->flags & UCI_REQUEST_USER_AM) != 0, length, reason, text);
    uci_request_complete_recv(req, uci_repair_policy_missing(req), tag, 0);
}

void uci_recv_descriptor(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                         const uci_digest_ops_t *digest, const uci_rndv_desc_t *desc)
{
    const char *wrong = uci_wire_check_desc(desc);
    uci_recv_op_t *op;
    ucs_status_t status;

    if (uci_unlikely(wrong != NULL)) {
        uci_recv_decline(peer, seq, 0, UCS_OK);
        uci_wire_refuse(peer, "a message", wrong);
        uci_recv_give_up(req, peer, seq, tag, sizeof(*desc), UCI_REASON_REFUSED, wrong);
        return;
    }
    if (desc->length > req->buffer.length) {
        uci_recv_truncated(req, peer, seq, tag, UCI_FRAME_RNDV, desc->length);
        return;
    }

    status = uci_recv_op_create(req, peer, seq, tag, digest, desc->length, desc->chunk_size, desc->arity, &op);
    if (status != UCS_OK) {
        uci_recv_decline(peer, seq, 0, UCS_OK);
        uci_recv_give_up(req, peer, seq, tag, desc->length, UCI_REASON_NO_MEMORY,
                         uci_reason_texts[UCI_REASON_NO_MEMORY]);
        return;
    }
    uci_recv_begin(op, desc->slot);
    uci_early_take(peer, seq);
}
