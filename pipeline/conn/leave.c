/* SPDX-License-Identifier: BSD-3-Clause */
#include "bye.h"
#include "close_report.h"
#include "base/am_handler.h"
#include "conversation/conversation.h"
#include "link/control.h"
#include "link/mailbox.h"
#include "message/unexpected.h"
#include "util/process.h"

static void uci_leave_answer(uci_peer_t *peer, const uci_am_hdr_t *leave)
{
    uci_control_t *msg = uci_close_report_get(peer, UCI_AM_MISSING, SIZE_MAX);

    if (msg != NULL) {
        msg->hdr.op = leave->op;
        msg->hdr.flags |= leave->flags & UCI_AM_FLAG_REPAIR;
        uci_control_send(msg);
    }
}

static void uci_leave_take(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_peer_t *peer        = am->peer;
    uci_conversation_action_t action;
    bool again;

    if (uci_conversation_is_void(&peer->conversation, hdr->value)) {
        return;
    }
    uci_mailbox_catch_up(peer); /* what it has sent before this lies there, and is not lacking */
    again = (hdr->flags & UCI_AM_FLAG_REPAIR) &&
            (uci_process_time_ns() >= peer->conversation.bye_time + UCI_PEER_CROSSING_NS);
    action = uci_conversation_hear_leave(&peer->conversation, again);
    if (action == UCI_CONVERSATION_IGNORE) {
        return;
    }
    uci_close_report_take(peer, am->data, am->length);
    uci_unexpected_adopt_all(peer);
    if (action == UCI_CONVERSATION_ANSWER) {
        uci_leave_answer(peer, hdr);
    } else if (action == UCI_CONVERSATION_REPEAT) {
        /* FINs may be lost too, for which the other side may wait for ever: an endpoint is made for it */
        uci_bye_say(peer, false);
    }
}

UCI_AM_HANDLER(LEAVE, 14, "closing side: this I have finished; what have you not?", "report", "MISSING",
               "asked again after 0.25 s, 0.5, 1, then every 2 s", .flags = UCI_AM_FLAG_REPAIR,
               .min = 2 * sizeof(uint64_t), .max = UINT32_MAX, .grain = 2 * sizeof(uint64_t), .hit = UCI_AM_HIT(ACK),
               .special = UCI_AM_FLAG_REPAIR, .check = uci_close_report_check, .take = uci_leave_take);
