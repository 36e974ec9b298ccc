/* SPDX-License-Identifier: BSD-3-Clause */
#include "close_report.h"
#include "base/am_handler.h"
#include "link/control.h"
#include "message/recv.h"

/* With all messages. FINs of this side may have been lost, any of them: this says the same. It answers no LEAVE */
static void uci_query_answer(uci_peer_t *peer)
{
    uci_control_t *msg = uci_close_report_get(peer, UCI_AM_MISSING, SIZE_MAX);

    if (msg != NULL) {
        msg->hdr.op    = UINT32_MAX;
        msg->hdr.flags = UCI_AM_FLAG_REPAIR;
        uci_control_send(msg);
    }
}

static uint64_t uci_query_seq(const uci_am_t *am)
{
    return am->hdr->value;
}

static const char *uci_query_check(const uci_am_t *am)
{
    return ((uint32_t)am->hdr->value == am->hdr->seq) ? NULL : "two numbers of one message";
}

static void uci_query_take(uci_am_t *am)
{
    if (am->hdr->flags & UCI_AM_FLAG_LAST) {
        uci_query_answer(am->peer);
    } else {
        uci_recv_on_query(am->peer, am->seq, am->hdr->op);
    }
}

UCI_AM_HANDLER(
        QUERY, 9,
        "S: where are you with this message? `value`: its whole number; with LAST: with all messages? Answered by "
        "MISSING (`op` all ones)",
        "",
        "CTS, REPAIR (of what has not come only if R has dropped something, or asked twice), TREE or FIN; none if "
        "R has not matched it",
        "S asks again", .flags = UCI_AM_FLAG_LAST, .grain = 1, .about = UCI_AM_ABOUT_RECV, .seq = uci_query_seq,
        .check = uci_query_check, .take = uci_query_take);
