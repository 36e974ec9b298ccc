/* SPDX-License-Identifier: BSD-3-Clause */
#include "early.h"

#include <stdlib.h>
#include <string.h>

#include "base/recv_table.h"
#include "base/unseen.h"
#include "transfer/stream_recv.h"

/* Bytes of one peer's, with what describes them */
#define UCI_EARLY_MAX (4ul << 20)

typedef struct uci_early {
    uci_list_t link; /* in the peer's */
    uint64_t seq;
    size_t length;
    uci_am_hdr_t hdr;
    char data[];
} uci_early_t;

/* In the order of their messages, which is that in which they come, but for several connections */
static void uci_early_insert(uci_list_t *list, uci_early_t *early)
{
    uci_list_for_each_back(before, list, uci_early_t, link)
    {
        if (before->seq <= early->seq) {
            uci_list_add_head(&before->link, &early->link);
            return;
        }
    }
    uci_list_add_head(list, &early->link);
}

static size_t uci_early_size(size_t length)
{
    return sizeof(uci_early_t) + length;
}

bool uci_early_keep(const uci_am_t *am)
{
    uci_message_peer_t *msgs = &am->peer->msgs;
    size_t size              = uci_early_size(am->length);
    uci_early_t *early;

    if (msgs->early_bytes + size > UCI_EARLY_MAX) {
        return false;
    }
    early = malloc(size);
    if (early == NULL) {
        return false;
    }
    early->seq    = am->seq;
    early->length = am->length;
    early->hdr    = *am->hdr;
    memcpy(early->data, am->data, am->length);
    uci_early_insert(&msgs->early, early);
    msgs->early_bytes += size;
    return true;
}

/* To the receive that there is, if it needs it */
static bool uci_early_give(uci_peer_t *peer, const uci_early_t *early)
{
    const uci_am_t am = {
            .peer = peer, .hdr = &early->hdr, .data = early->data, .length = early->length, .seq = early->seq};
    uci_recv_op_t *op = uci_recv_op_by_seq(peer, early->seq); /* the one before may have been the last that it needed */

    if ((op == NULL) || (uci_stream_check_chunk(op, &am) != NULL)) {
        return false;
    }
    uci_stream_take(op, &early->hdr, early->data, early->length);
    return true;
}

/* @param give  to a receive */
static void uci_early_remove(uci_peer_t *peer, uint64_t seq, bool give)
{
    uci_list_t own; /* what is given away may end the receive, whose callback may do anything */

    uci_list_init(&own);
    uci_list_for_each_safe(early, &peer->msgs.early, uci_early_t, link)
    {
        if (early->seq > seq) {
            break;
        }
        if ((seq == early->seq) || (seq == UINT64_MAX)) {
            uci_list_del(&early->link);
            uci_list_add_tail(&own, &early->link);
            peer->msgs.early_bytes -= uci_early_size(early->length);
        }
    }
    uci_list_for_each_safe(early, &own, uci_early_t, link)
    {
        uci_list_del(&early->link);
        if (!give || !uci_early_give(peer, early)) {
            uci_unseen_pass(uci_digest_by_id(early->hdr.digest), early->data, early->length, early->hdr.value);
        }
        free(early);
    }
}

void uci_early_take_slow(uci_peer_t *peer, uint64_t seq)
{
    uci_early_remove(peer, seq, true);
}

void uci_early_drop_slow(uci_peer_t *peer, uint64_t seq)
{
    uci_early_remove(peer, seq, false);
}
