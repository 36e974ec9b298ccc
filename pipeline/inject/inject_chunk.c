/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_out.h"

#include "base/am_handler.h"
#include "inject_bytes.h"
#include "live/stats.h"
#include "transfer/send_common.h"

/* --------------------------------------------------------------- a chunk */

/* Replace the copy's content by that of another chunk; false if that changes nothing */
static bool uci_inject_other_chunk(uci_send_op_t *op, uci_inject_out_t *out, uint32_t other)
{
    uint32_t length = uci_min(uci_chunk_length(op->length, op->chunk.size, other), (uint32_t)out->length);
    uint64_t before = XXH3_64bits(out->copy, out->length);

    uci_buffer_read_plain(op->buffer, (uint64_t)other * op->chunk.size, out->copy, length, op->chunk.digest);
    return XXH3_64bits(out->copy, out->length) != before;
}

static void uci_inject_chunk_payload(uci_send_op_t *op, uci_inject_out_t *out, const uci_fault_t *fault)
{
    uci_fault_t flip = {.kind = UCI_FAULT_BITFLIP, .random = fault->random};
    uint32_t index   = out->hdr.index;

    /* a generic datatype that is packed in its order has no other chunk at hand */
    if ((fault->kind == UCI_FAULT_SWAP) && (index + 1 < op->chunk.count) && (op->buffer->kind != UCI_BUFFER_GENERIC)) {
        op->inject.swap = index + 1;
        if (!uci_inject_other_chunk(op, out, index + 1)) {
            uci_fault_apply(&flip, out->copy, out->length, NULL);
        }
        return;
    }
    out->length = uci_fault_apply(fault, out->copy, out->length, uci_inject_stale(out->length));
}

/* The second of two chunks that are exchanged: equal ones have been left as they are */
static void uci_inject_swapped(uci_send_op_t *op, uci_inject_out_t *out)
{
    if (!uci_inject_other_chunk(op, out, op->inject.swap - 1)) {
        uci_fault_undo();
        UCI_STATS_ADD(faults_unseen, (--out->faults > 0) ? -1ul : 0);
    }
    op->inject.swap = 0;
}

/* Of the faults of one message one is seen */
static void uci_inject_count_hits(uci_send_op_t *op, uci_inject_out_t *out, unsigned count)
{
    if (count > 0) {
        op->inject.hit |= UCI_INJECTED_WAY;
        out->hit    = true;
        out->faults = count;
        UCI_STATS_ADD(faults_unseen, count - 1);
    }
}

/* Is it the last that will be heard of it? Of what a close hands over there is no more */
static bool uci_inject_is_repair(const uci_send_op_t *op, uint16_t flags)
{
    return (flags & UCI_AM_FLAG_REPAIR) ||
           ((flags & UCI_AM_FLAG_HANDOVER) && uci_conversation_is_closed(&op->peer->conversation));
}

static void uci_inject_chunk(uci_send_op_t *op, uci_inject_out_t *out)
{
    uci_am_hdr_t *hdr = &out->hdr;
    bool repair       = uci_inject_is_repair(op, hdr->flags);
    int rank          = uci_peer_rank(op->peer);
    bool swapped, hit_payload, hit_tree, hit_leaf;
    uci_fault_t payload, tree, leaf;

    if (op->inject.hit & UCI_INJECTED_COPY) {
        return;
    }
    swapped     = !repair && (op->inject.swap != 0) && (op->inject.swap == hdr->index) && uci_fault_once_more();
    hit_payload = !swapped && uci_fault_draw(repair ? UCI_FAULT_REPAIR : UCI_FAULT_PAYLOAD, op->length, rank, &payload);
    hit_tree    = !repair && uci_fault_draw(UCI_FAULT_TREE, op->length, rank, &tree);
    hit_leaf    = !repair && uci_fault_draw(UCI_FAULT_LEAF, op->length, rank, &leaf);
    if ((swapped || hit_payload || hit_leaf) && !uci_inject_out_copy(out)) {
        uci_inject_undo(swapped + hit_payload + hit_leaf);
        swapped = hit_payload = hit_leaf = false;
    }
    uci_inject_count_hits(op, out, swapped + hit_payload + hit_tree + hit_leaf);
    if (!swapped && !hit_payload && !hit_leaf) {
        uci_inject_remember(out->data, out->length);
    }
    /* what is made to fit comes first, or it would undo what others do to the digest */
    if (hit_leaf) {
        uci_inject_bytes(&leaf, out->copy, out->length);
        hdr->value = op->chunk.digest->digest(out->copy, out->length);
    }
    if (hit_tree) {
        uci_inject_bytes(&tree, ((hdr->flags & UCI_AM_FLAG_LAST) && (tree.random & 4)) ? &hdr->extra : &hdr->value,
                         sizeof(hdr->value));
    }
    hdr->check = uci_am_check(&out->hdr, NULL, 0);
    if (swapped) {
        uci_inject_swapped(op, out);
    } else if (hit_payload) {
        uci_inject_chunk_payload(op, out, &payload);
    }
}

/* --------------------------------------------------------- digests and nodes */

/* Digests of chunks, in the header or behind it, and the root */
static void uci_inject_leaves(const uci_send_op_t *op, uci_inject_out_t *out, uint64_t *leaves, uint32_t count)
{
    uci_fault_t fault;
    bool has_root;
    uint32_t i;

    for (i = 0; i < count; ++i) {
        if (uci_fault_draw(UCI_FAULT_TREE, op->length, uci_peer_rank(op->peer), &fault)) {
            has_root = (i + 1 == count) && (out->hdr.flags & UCI_AM_FLAG_LAST);
            uci_inject_bytes(&fault, (has_root && (fault.random & 4)) ? &out->hdr.extra : &leaves[i],
                             sizeof(leaves[i]));
            out->hit = true;
        }
    }
}

/* An offer of the bounce path has those of its chunks, one of a whole message all, others none */
static void uci_inject_offer(const uci_send_op_t *op, uci_inject_out_t *out)
{
    uint64_t *leaves = (uint64_t *)(void *)(&out->hdr + 1);
    uint32_t count   = (out->hdr.flags & UCI_AM_FLAG_BOUNCE) ? uci_div_up(out->hdr.length, op->chunk.size)
                       : (out->hdr.flags & UCI_AM_FLAG_LAST) ? op->chunk.count
                                                             : 0;

    uci_inject_leaves(op, out, leaves, count);
    out->hdr.check = uci_am_check(&out->hdr, leaves, out->header_length - sizeof(out->hdr));
}

/* Those that nobody asked for: an answer repairs */
static void uci_inject_told_leaves(const uci_send_op_t *op, uci_inject_out_t *out)
{
    if ((out->hdr.flags & UCI_AM_FLAG_LAST) && uci_fault_targets(UCI_FAULT_TREE) && uci_inject_out_copy(out)) {
        uci_inject_leaves(op, out, (uint64_t *)(void *)out->copy, op->chunk.count);
        out->hdr.check = uci_am_check(&out->hdr, out->copy, out->length);
    }
}

/* One of the words lies, or the root */
static void uci_inject_nodes(const uci_send_op_t *op, uci_inject_out_t *out)
{
    uci_fault_t fault;
    uint64_t *words;

    if (!uci_fault_targets(UCI_FAULT_REPAIR) || !uci_inject_out_copy(out) ||
        !uci_fault_draw(UCI_FAULT_REPAIR, op->length, uci_peer_rank(op->peer), &fault)) {
        return;
    }
    words = (uint64_t *)(void *)out->copy;
    uci_inject_bytes(&fault,
                     (fault.random & 8) ? &out->hdr.extra : &words[fault.random % (out->length / sizeof(*words))],
                     sizeof(*words));
    out->hit       = true;
    out->hdr.check = uci_am_check(&out->hdr, words, out->length);
}

/* -------------------------------------------------------------- any message */

static uci_send_op_t *uci_inject_op_of(const uci_control_t *msg)
{
    uci_peer_t *peer = msg->peer;

    return (msg->op != NULL) ? msg->op : uci_send_op_find(peer, uci_seq_expand(msg->hdr.seq, peer->tx.next));
}

void uci_inject_content(const uci_control_t *msg, uci_inject_out_t *out)
{
    uci_send_op_t *op = uci_inject_op_of(msg);

    if (op == NULL) {
        return;
    }
    switch (msg->hdr.type) {
    case UCI_AM_DATA:
        uci_inject_chunk(op, out);
        break;
    case UCI_AM_SEGMENT:
        uci_inject_offer(op, out);
        break;
    case UCI_AM_LEAVES:
        uci_inject_told_leaves(op, out);
        break;
    case UCI_AM_NODES:
        uci_inject_nodes(op, out);
        break;
    default:
        break;
    }
}

/* Which part of the fault specification a message belongs to, and whether that is drawn */
static bool uci_inject_draw_message(const uci_control_t *msg, uci_fault_t *fault_p)
{
    const uci_am_handler_t *handler = uci_am_handler(msg->peer->worker, msg->hdr.type);
    unsigned targets                = (msg->hdr.flags & handler->special) ? handler->hit_special : handler->hit;
    uint64_t length                 = (msg->op != NULL) ? msg->op->length : msg->length;

    return (targets != 0) &&
           uci_fault_draw((uci_fault_target_t)__builtin_ctz(targets), length, uci_peer_rank(msg->peer), fault_p);
}

void uci_inject_header(const uci_control_t *msg, uci_inject_out_t *out)
{
    uci_fault_t fault;

    if (uci_inject_draw_message(msg, &fault)) {
        uci_inject_bytes(&fault, &out->hdr, sizeof(out->hdr));
        UCI_STATS_ADD(faults_unseen, out->faults > 0); /* it is dropped, and what else is wrong with it not looked at */
        out->hit = true;
    }
}

bool uci_inject_is_record_hit(const uci_control_t *msg, uci_fault_t *fault_p)
{
    static const uci_fault_target_t targets[] = {UCI_FAULT_PAYLOAD, UCI_FAULT_TREE, UCI_FAULT_LEAF};
    uci_send_op_t *op                         = (msg->hdr.type == UCI_AM_DATA) ? msg->op : NULL;
    bool repair                               = (op != NULL) && uci_inject_is_repair(op, msg->hdr.flags);
    unsigned i, count = 0;

    if ((op != NULL) && !(op->inject.hit & UCI_INJECTED_COPY)) {
        for (i = 0; i < (repair ? 1 : uci_array_size(targets)); ++i) {
            count += uci_fault_draw(repair ? UCI_FAULT_REPAIR : targets[i], op->length, uci_peer_rank(op->peer),
                                    fault_p);
        }
        op->inject.hit |= (count > 0) ? UCI_INJECTED_WAY : 0;
    }
    count += uci_inject_draw_message(msg, fault_p);
    UCI_STATS_ADD(faults_unseen, (count > 0) ? count - 1 : 0);
    return count > 0;
}
