/* SPDX-License-Identifier: BSD-3-Clause */
#include "bye.h"

#include "close_report.h"
#include "base/am_handler.h"
#include "base/pair.h"
#include "conversation/conversation.h"
#include "link/control.h"
#include "link/link_send.h"
#include "link/mailbox.h"
#include "link/txlog.h"

/* Ranges in a BYE, so that it fits in one fragment; others tell all */
#define UCI_BYE_RANGES ((UCI_CONTROL_POOLED / sizeof(uint64_t) - 2) / 2)

void uci_bye_rest(uci_peer_t *peer)
{
    if (uci_conversation_is_left(&peer->conversation) && uci_conversation_is_gone(&peer->conversation)) {
        uci_mailbox_unmap(peer);
        uci_txlog_release(peer);
        ++peer->worker->conn.ended;
    } else if ((peer->conversation.status != UCS_OK) || uci_conversation_is_gone(&peer->conversation)) {
        ++peer->worker->conn.ended; /* who has failed says none, nor who has no endpoint */
    }
}

/* Are there sends left but those that are over for the user? */
static uci_bye_rest_t uci_bye_leaves(const uci_peer_t *peer)
{
    uci_list_for_each(op, &peer->worker->xfer.send_ops, uci_send_op_t, all)
    {
        if ((op->peer == peer) && (op->req != NULL)) {
            return UCI_BYE_SERVED;
        }
    }
    return UCI_BYE_NOTHING;
}

void uci_bye_say(uci_peer_t *peer, bool forced)
{
    uci_control_t *msg = uci_close_report_get(peer, UCI_AM_BYE, UCI_BYE_RANGES);

    if (msg != NULL) {
        uci_conversation_say_bye(&peer->conversation);
        uci_mailbox_leave(peer); /* the box is for somebody else now */
        msg->hdr.op    = forced ? UCI_BYE_FORCED : uci_bye_leaves(peer);
        msg->hdr.value = peer->conversation.life;
        msg->hdr.extra = peer->lanes.placed;
        uci_control_send(msg);
    }
}

static void uci_bye_take(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_peer_t *peer        = am->peer;

    uci_pair_hear(peer, (uint32_t)hdr->extra, 0);
    if (uci_conversation_is_void(&peer->conversation, hdr->value)) {
        return; /* it has been back since */
    }
    if (!uci_conversation_is_gone(&peer->conversation)) {
        uci_link_settle_sent(peer);
    }
    uci_conversation_hear_bye(&peer->conversation, hdr->op != UCI_BYE_SERVED, hdr->op == UCI_BYE_FORCED);
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        ep->half = ep->half || ep->unpaired || (ep->place == UCI_EP_NO_PLACE);
    }
    uci_mailbox_catch_up(peer);
    uci_mailbox_free(peer);
    uci_close_report_take(peer, am->data, am->length);
    uci_bye_rest(peer);
}

static const char *uci_bye_check(const uci_am_t *am)
{
    return (am->hdr->op < UCI_BYE_LAST) ? uci_close_report_check(am) : "a rest that there is not";
}

UCI_AM_HANDLER(BYE, 16, "closing side: nothing more comes from here", "report, up to 11 ranges", "none",
               "LEAVE that is repeated to who has said BYE has BYE come again", .min = 2 * sizeof(uint64_t),
               .max = UINT32_MAX, .grain = 2 * sizeof(uint64_t), .check = uci_bye_check, .take = uci_bye_take);
