/* SPDX-License-Identifier: BSD-3-Clause */
#include "handover.h"

#include <stdlib.h>

#include "log.h"
#include "recv.h"
#include "repair.h"
#include "send.h"
#include "stats.h"
#include "txlog.h"
#include "wire_check.h"

typedef struct uci_handover {
    uci_list_t link;
    uint64_t seq;
    uci_am_hdr_t hdr;
    size_t length;
    char data[];
} uci_handover_t;

static void uci_handover_send_op(uci_send_op_t *op)
{
    uint32_t i;

    /* only what the user was told is sent: a send still pending is the user's to wait for */
    if ((op->req != NULL) || (op->tree == NULL)) {
        return;
    }
    uci_send_op_pin(op);
    uci_list_del(&op->link); /* its slots stay as they are: they may be read later */
    for (i = 0; (i < op->chunks) && (op->state != UCI_SEND_DONE); ++i) {
        uci_send_chunk(op, i, UCI_AM_FLAG_HANDOVER);
    }
    if (op->state != UCI_SEND_DONE) {
        op->next  = op->chunks;
        op->state = UCI_SEND_WAIT_FIN;
    }
    uci_send_op_unpin(op);
}

void uci_handover_send(uci_peer_t *peer)
{
    uci_frame_t *frame;
    uint64_t seq;

    for (seq = peer->tx_base; seq < peer->tx_next; ++seq) {
        frame = uci_txlog_find(peer, seq);
        if (frame == NULL) {
            continue;
        }
        UCI_STATS_INC(log_handed_over);
        uci_repair_hand_over_frame(peer, frame);
        /* what comes back within the call may have taken it out of the log */
        frame = uci_txlog_find(peer, seq);
        if ((frame != NULL) && (frame->op != NULL)) {
            uci_handover_send_op(frame->op);
        }
    }
}

void uci_handover_keep(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uci_handover_t *handover;

    /* delivered and verified: not needed; a descriptor that was taken waits for its chunks by its operation */
    if (uci_seqset_has(&peer->rx, seq)) {
        return;
    }
    handover = malloc(sizeof(*handover) + length);
    if (handover == NULL) {
        uci_error("failed to keep %zu bytes handed over by %s", length, uci_peer_name(peer));
        return;
    }
    handover->seq    = seq;
    handover->hdr    = *hdr;
    handover->length = length;
    memcpy(handover->data, data, length);
    uci_list_add_tail(&peer->handovers, &handover->link);
}

/* What was kept came before there was an operation to compare it with */
static void uci_handover_feed(uci_peer_t *peer, const uci_handover_t *handover)
{
    const uci_recv_op_t *op = uci_recv_op_by_seq(peer, handover->seq);
    const char *wrong = (op != NULL) ? uci_wire_check_for(op, &handover->hdr, handover->data, handover->length) : NULL;

    if (wrong != NULL) {
        uci_wire_refuse(peer, "a copy handed over", wrong);
    } else if ((op != NULL) || (handover->hdr.flags & UCI_AM_FLAG_FRAME)) {
        uci_recv_on_data(peer, handover->seq, &handover->hdr, handover->data, handover->length);
    }
}

bool uci_handover_take(uci_peer_t *peer, uint64_t seq)
{
    bool taken = false;
    uci_list_t mine;

    uci_list_init(&mine);
    uci_list_for_each_safe(handover, &peer->handovers, uci_handover_t, link)
    {
        if (handover->seq == seq) {
            uci_list_del(&handover->link);
            uci_list_add_tail(&mine, &handover->link);
        }
    }

    uci_list_for_each_safe(mine_one, &mine, uci_handover_t, link)
    {
        uci_list_del(&mine_one->link);
        taken = true;
        uci_handover_feed(peer, mine_one);
        free(mine_one);
    }
    return taken;
}

static void uci_handover_describe(const uci_peer_t *peer, const uci_handover_t *handover, uci_am_found_t *found)
{
    memset(found, 0, sizeof(*found));
    found->seq        = handover->seq;
    found->length     = uci_frame_user_length((uci_frame_kind_t)handover->hdr.op, handover->data, handover->length);
    found->hdr.kind   = (uint8_t)handover->hdr.op;
    found->hdr.digest = handover->hdr.digest;
    found->hdr.length = (uint16_t)handover->length;
    found->hdr.seq    = (uint32_t)handover->seq;
    found->hdr.ack    = (uint32_t)peer->tx_acked;
    found->hdr.uid    = peer->uid;
    found->hdr.value  = handover->hdr.value;
}

size_t uci_handover_find(const uci_peer_t *peer, ucp_tag_t tag, uci_am_found_t *found, size_t max)
{
    size_t count = 0;

    uci_list_for_each(handover, &peer->handovers, uci_handover_t, link)
    {
        if ((handover->hdr.flags & UCI_AM_FLAG_FRAME) && (handover->hdr.extra == tag) && (count < max)) {
            uci_handover_describe(peer, handover, &found[count++]);
        }
    }
    return count;
}

void uci_handover_drop_frame(uci_peer_t *peer, uint64_t seq)
{
    uci_list_for_each_safe(handover, &peer->handovers, uci_handover_t, link)
    {
        if ((handover->seq == seq) && (handover->hdr.flags & UCI_AM_FLAG_FRAME)) {
            uci_list_del(&handover->link);
            free(handover);
        }
    }
}

void uci_handover_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(handover, &peer->handovers, uci_handover_t, link)
    {
        uci_list_del(&handover->link);
        free(handover);
    }
}
