/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatch.h"

#include "link/blame.h"
#include "link/bounce.h"
#include "conn/close.h"
#include "link/control.h"
#include "transfer/descent.h"
#include "transfer/direct.h"
#include "transfer/get.h"
#include "link/link_recv.h"
#include "link/link_send.h"
#include "link/mailbox.h"
#include "message/message_check.h"
#include "base/peer_table.h"
#include "message/recv.h"
#include "transfer/repair.h"
#include "message/send.h"
#include "link/txlog.h"
#include "base/wire_check.h"

/* As good as damaged: whoever waits for what it should have said asks again, and gives up at last */
static UCI_NOINLINE void uci_dispatch_refuse(uci_peer_t *peer, const uci_am_hdr_t *hdr, const char *wrong)
{
    uci_wire_refuse(peer, uci_wire_name(hdr), wrong);
    uci_blame(peer->worker, hdr);
    ++peer->worker->dropped;
    uci_control_ask_soon(peer->worker);
}

/* All but SEGMENT */
static void uci_dispatch_message(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uint64_t tx_seq = uci_txlog_expand(peer, hdr->seq);
    uint64_t rx_seq = uci_wire_seq(peer, hdr);

    switch (hdr->type) {
    case UCI_AM_DATA:
        uci_recv_on_data(peer, rx_seq, hdr, data, length);
        break;
    case UCI_AM_CTS:
        uci_send_on_cts(peer, tx_seq, hdr);
        break;
    case UCI_AM_FIN:
        uci_send_on_fin(peer, tx_seq, hdr);
        break;
    case UCI_AM_ACK:
        uci_link_on_ack(peer, hdr, data, length);
        break;
    case UCI_AM_HELLO:
        if (uci_control_on_hello(peer, hdr, data, length) && (hdr->value > 0)) {
            uci_link_confirm(peer); /* that it is back */
            if (peer->tx_acked != peer->tx_next) {
                uci_link_watch(peer); /* since BYE nobody has looked after what it may lack */
            }
        }
        break;
    case UCI_AM_REPAIR:
        if (hdr->flags & UCI_AM_FLAG_FRAME) {
            uci_link_on_repair(peer, tx_seq);
        } else {
            uci_send_on_repair(peer, tx_seq, hdr, data, length);
        }
        break;
    case UCI_AM_GRANT:
        uci_repair_on_grant(peer, rx_seq, hdr, data, length);
        break;
    case UCI_AM_GONE:
        if (hdr->flags & UCI_AM_FLAG_FRAME) {
            uci_link_on_gone(peer, rx_seq, hdr);
        } else {
            uci_repair_on_gone(peer, rx_seq, hdr);
        }
        break;
    case UCI_AM_QUERY:
        if (hdr->flags & UCI_AM_FLAG_LAST) {
            uci_close_on_query(peer);
        } else {
            uci_recv_on_query(peer, rx_seq, hdr);
        }
        break;
    case UCI_AM_TREE:
        uci_descent_on_tree(peer, tx_seq, hdr, data, length);
        break;
    case UCI_AM_LEAVES:
        uci_descent_on_leaves(peer, rx_seq, hdr, data, length);
        break;
    case UCI_AM_NODES:
        uci_descent_on_nodes(peer, rx_seq, hdr, data, length);
        break;
    case UCI_AM_SENT:
        uci_link_on_sent(peer, hdr);
        break;
    case UCI_AM_BOX:
        uci_mailbox_on_box(peer, data, length);
        break;
    case UCI_AM_LEAVE:
        uci_close_on_leave(peer, hdr, data, length);
        break;
    case UCI_AM_MISSING:
        uci_close_on_missing(peer, hdr, data, length);
        break;
    case UCI_AM_BYE:
        uci_close_on_bye(peer, hdr, data, length);
        break;
    case UCI_AM_POOL:
        uci_bounce_on_pool(peer, data, length);
        break;
    case UCI_AM_MAPPED:
        uci_bounce_on_mapped(peer);
        break;
    case UCI_AM_SLOT:
        uci_direct_on_slot(peer, hdr);
        break;
    default:
        break;
    }
}

ucs_status_t uci_dispatch(uci_worker_t *worker, const uci_am_hdr_t *hdr, const void *data, size_t length, void *desc)
{
    uci_peer_t *peer = uci_worker_peer(worker, hdr->uid);
    const char *wrong;

    if (peer == NULL) {
        return UCS_OK;
    }
    wrong = uci_wire_check_message(peer, hdr, data, length);
    if (uci_unlikely(wrong != NULL)) {
        uci_dispatch_refuse(peer, hdr, wrong);
        return UCS_OK;
    }
    if (desc != NULL) {
        return uci_get_on_segment(peer, hdr, data, length, desc);
    }
    ++worker->intact;
    peer->heard = true;
    uci_dispatch_message(peer, hdr, data, length);
    return UCS_OK;
}
