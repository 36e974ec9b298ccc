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

/* A copy */
typedef struct uci_part {
    uci_list_t link; /* in handover->parts */
    uint32_t index;
    uci_am_hdr_t hdr;
    size_t length;
    char data[];
} uci_part_t;

/* What was left here of one message */
typedef struct uci_handover {
    uci_list_t link; /* in peer->handovers, by number */
    uint64_t seq;
    uci_part_t *frame; /* NULL: none */
    uci_list_t parts;  /* chunks, by index */
    uint32_t count;    /* of these */
} uci_handover_t;

/* -------------------------------------------------------- closing side */

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

size_t uci_handover_lacking(const uci_peer_t *peer)
{
    const uci_frame_t *frame;
    size_t count = 0;
    uint64_t seq;

    for (seq = peer->tx_base; seq < peer->tx_next; ++seq) {
        frame = uci_txlog_find(peer, seq);
        count += (frame != NULL) && ((frame->op == NULL) || (frame->op->req == NULL));
    }
    return count;
}

/* ------------------------------------------------------ receiving side */

static void uci_handover_free(uci_handover_t *handover)
{
    uci_list_del(&handover->link);
    uci_list_for_each_safe(part, &handover->parts, uci_part_t, link)
    {
        free(part);
    }
    free(handover->frame);
    free(handover);
}

/* From the last: what a peer leaves comes in the order of its numbers. @return the last one not above @a seq, or NULL. */
static uci_handover_t *uci_handover_before(const uci_peer_t *peer, uint64_t seq)
{
    const uci_list_t *link = peer->handovers.prev;
    uci_handover_t *handover;

    for (; link != &peer->handovers; link = link->prev) {
        handover = uci_container_of(link, uci_handover_t, link);
        if (handover->seq <= seq) {
            return handover;
        }
    }
    return NULL;
}

static uci_handover_t *uci_handover_by_seq(const uci_peer_t *peer, uint64_t seq)
{
    uci_handover_t *handover = uci_handover_before(peer, seq);

    return ((handover != NULL) && (handover->seq == seq)) ? handover : NULL;
}

static uci_handover_t *uci_handover_get(uci_peer_t *peer, uint64_t seq)
{
    uci_handover_t *before = uci_handover_before(peer, seq), *handover;

    if ((before != NULL) && (before->seq == seq)) {
        return before;
    }
    handover = calloc(1, sizeof(*handover));
    if (handover != NULL) {
        handover->seq = seq;
        uci_list_init(&handover->parts);
        uci_list_add_head((before != NULL) ? &before->link : &peer->handovers, &handover->link);
    }
    return handover;
}

static uci_part_t *uci_handover_part(const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uci_part_t *part = malloc(sizeof(*part) + length);

    if (part != NULL) {
        uci_list_init(&part->link);
        part->index  = hdr->index;
        part->hdr    = *hdr;
        part->length = length;
        memcpy(part->data, data, length);
    }
    return part;
}

/* @return the chunk that goes before this one, or the head of the list; NULL: it is here already */
static uci_list_t *uci_handover_place(uci_handover_t *handover, uint32_t index)
{
    uci_list_t *link = handover->parts.prev;

    while ((link != &handover->parts) && (uci_container_of(link, uci_part_t, link)->index > index)) {
        link = link->prev;
    }
    return ((link != &handover->parts) && (uci_container_of(link, uci_part_t, link)->index == index)) ? NULL : link;
}

static bool uci_handover_is_intact(const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    const uci_digest_ops_t *digest = uci_digest_by_id(hdr->digest);

    return (digest != NULL) && (length == hdr->length) && (digest->digest(data, length) == hdr->value);
}

void uci_handover_keep(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    bool is_frame = (hdr->flags & UCI_AM_FLAG_FRAME) != 0;
    uci_handover_t *handover;
    uci_list_t *place;
    uci_part_t *part;

    /* delivered and verified: not needed; a descriptor that was taken waits for its chunks by its operation */
    if (uci_seqset_has(&peer->rx, seq)) {
        return;
    }
    if (!uci_handover_is_intact(hdr, data, length)) {
        uci_control_damaged(peer->worker, "copy of a closing peer", NULL);
        return; /* we say that we lack it, when we are asked again */
    }
    handover = uci_handover_get(peer, seq);
    place    = (handover == NULL) ? NULL : is_frame ? &handover->link : uci_handover_place(handover, hdr->index);
    if ((handover != NULL) && ((place == NULL) || (is_frame && (handover->frame != NULL)))) {
        return; /* here already */
    }
    part = (handover != NULL) ? uci_handover_part(hdr, data, length) : NULL;
    if (part == NULL) {
        uci_error("failed to keep %zu bytes handed over by %s", length, uci_peer_name(peer));
    } else if (is_frame) {
        handover->frame = part;
    } else {
        uci_list_add_head(place, &part->link);
        ++handover->count;
    }
}

/* Is there all that this message takes? */
static bool uci_handover_is_whole(const uci_handover_t *handover)
{
    const uci_part_t *frame = handover->frame;
    uci_rndv_desc_t desc;

    if ((frame == NULL) || (frame->hdr.op != UCI_FRAME_RNDV)) {
        return frame != NULL;
    }
    if (frame->length != sizeof(desc)) {
        return false;
    }
    memcpy(&desc, frame->data, sizeof(desc));
    return (desc.chunk_size > 0) && (handover->count == uci_div_up(desc.length, desc.chunk_size));
}

size_t uci_handover_list_held(const uci_peer_t *peer, uci_seq_range_t *ranges)
{
    size_t count = 0;

    uci_list_for_each(handover, &peer->handovers, uci_handover_t, link)
    {
        if (uci_handover_is_whole(handover)) {
            if (ranges != NULL) {
                ranges[count] = (uci_seq_range_t){.first = handover->seq, .last = handover->seq};
            }
            ++count;
        }
    }
    return count;
}

/* What was kept came before there was an operation to compare it with */
static void uci_handover_feed(uci_peer_t *peer, uint64_t seq, const uci_part_t *part)
{
    const uci_recv_op_t *op = uci_recv_op_by_seq(peer, seq);
    const char *wrong       = (op != NULL) ? uci_wire_check_for(op, &part->hdr, part->data, part->length) : NULL;

    if (wrong != NULL) {
        uci_wire_refuse(peer, "a copy handed over", wrong);
    } else if ((op != NULL) || (part->hdr.flags & UCI_AM_FLAG_FRAME)) {
        uci_recv_on_data(peer, seq, &part->hdr, part->data, part->length);
    }
}

bool uci_handover_take(uci_peer_t *peer, uint64_t seq)
{
    uci_handover_t *handover = uci_handover_by_seq(peer, seq);
    bool taken;

    if (handover == NULL) {
        return false;
    }
    uci_list_del(&handover->link);
    taken = (handover->frame != NULL) || (handover->count > 0);
    if (handover->frame != NULL) {
        uci_handover_feed(peer, seq, handover->frame);
    }
    uci_list_for_each(part, &handover->parts, uci_part_t, link)
    {
        uci_handover_feed(peer, seq, part);
    }
    uci_handover_free(handover);
    return taken;
}

static void uci_handover_describe(const uci_peer_t *peer, const uci_handover_t *handover, uci_am_found_t *found)
{
    const uci_part_t *frame = handover->frame;

    memset(found, 0, sizeof(*found));
    found->seq        = handover->seq;
    found->length     = uci_frame_user_length((uci_frame_kind_t)frame->hdr.op, frame->data, frame->length);
    found->hdr.kind   = (uint8_t)frame->hdr.op;
    found->hdr.digest = frame->hdr.digest;
    found->hdr.length = (uint16_t)frame->length;
    found->hdr.seq    = (uint32_t)handover->seq;
    found->hdr.ack    = (uint32_t)peer->tx_acked;
    found->hdr.uid    = peer->uid;
    found->hdr.value  = frame->hdr.value;
}

size_t uci_handover_find(const uci_peer_t *peer, ucp_tag_t tag, uci_am_found_t *found, size_t max)
{
    size_t count = 0;

    uci_list_for_each(handover, &peer->handovers, uci_handover_t, link)
    {
        if ((handover->frame != NULL) && (handover->frame->hdr.extra == tag) && (count < max)) {
            uci_handover_describe(peer, handover, &found[count++]);
        }
    }
    return count;
}

void uci_handover_drop_frame(uci_peer_t *peer, uint64_t seq)
{
    uci_handover_t *handover = uci_handover_by_seq(peer, seq);

    if (handover == NULL) {
        return;
    }
    free(handover->frame);
    handover->frame = NULL;
    if (handover->count == 0) {
        uci_handover_free(handover);
    }
}

void uci_handover_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(handover, &peer->handovers, uci_handover_t, link)
    {
        uci_handover_free(handover);
    }
}
