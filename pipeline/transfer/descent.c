/* SPDX-License-Identifier: BSD-3-Clause */
#include "descent.h"

#include "base/ask.h"
#include "send_common.h"
#include "link/control.h"
#include "util/process.h"
#include "recv_common.h"
#include "base/recv_table.h"
#include "repair.h"
#include "live/stats.h"
#include "link/txlog.h"

#define UCI_DESCENT_NODES_MAX (UCI_DESCENT_BYTES / ((UCI_MERKLE_ARITY_MIN + 1) * sizeof(uint64_t)))

/* Nodes in one question. Of each the answer has the index and the children. */
static size_t uci_descent_nodes(const uci_merkle_t *tree)
{
    return uci_max(UCI_DESCENT_BYTES / ((uci_merkle_arity(tree) + 1) * sizeof(uint64_t)), 1ul);
}

/* ------------------------------------------------------------- receiver */

void uci_descent_ask(uci_recv_op_t *op)
{
    size_t nodes[UCI_DESCENT_NODES_MAX], i, count;
    unsigned level = 0;
    uci_control_t *msg;
    uint32_t *indexes;

    count = uci_merkle_marked(op->chunk.tree, &level, nodes, uci_descent_nodes(op->chunk.tree));
    msg   = uci_control_get(op->peer, UCI_AM_TREE, op->seq, count * sizeof(*indexes));
    if (msg == NULL) {
        return; /* asked again later */
    }
    indexes = (uint32_t *)(void *)msg->payload;
    for (i = 0; i < count; ++i) {
        indexes[i] = (uint32_t)nodes[i];
    }
    msg->hdr.op    = op->slot;
    msg->hdr.flags = UCI_AM_FLAG_REPAIR;
    msg->hdr.index = level;
    UCI_STATS_ADD(tree_bytes, sizeof(msg->hdr) + msg->length);
    uci_control_send(msg);
}

void uci_descent_start(uci_recv_op_t *op)
{
    uint32_t i;

    /* what is not good yet takes part with the best that is known of it */
    for (i = 0; (op->chunk.good < op->chunk.count) && (i < op->chunk.count); ++i) {
        if (op->chunk.state[i] != UCI_CHUNK_GOOD) {
            uci_merkle_set_leaf(op->chunk.tree, i, op->chunk.expected[i]);
        }
    }
    op->repair.descending = true;
    uci_merkle_descend(op->chunk.tree);
    uci_descent_ask(op);
}

void uci_descent_end(uci_recv_op_t *op)
{
    uint32_t i;

    op->repair.descending = false;
    for (i = 0; (op->chunk.landed > 0) && (i < op->chunk.count); ++i) {
        if (op->chunk.state[i] == UCI_CHUNK_LANDED) {
            uci_recv_op_chunk_good(op, i, op->chunk.expected[i], UCI_RUNG_NONE, false);
        }
    }
}

/* One node and its children. @return words taken, 0: this is not about our tree. */
static size_t uci_descent_node(uci_recv_op_t *op, unsigned level, const uint64_t *words, size_t left, bool *news_p)
{
    size_t first, i, count = uci_merkle_child_count(op->chunk.tree, level, words[0]);

    if ((count == 0) || (count >= left)) {
        return 0;
    }
    if (uci_merkle_compare(op->chunk.tree, level, words[0], words + 1)) {
        *news_p = true;
        first   = words[0] * uci_merkle_arity(op->chunk.tree);
        for (i = 0; (level == 1) && (i < count); ++i) {
            uci_recv_op_leaf(op, (uint32_t)(first + i), words[1 + i]);
        }
    }
    UCI_STATS_ADD(tree_nodes, count);
    return 1 + count;
}

/* @return whether the answer was one to our last question, and not to an earlier one */
static bool uci_descent_compare(uci_recv_op_t *op, unsigned level, const uint64_t *words, size_t count)
{
    bool news = false;
    size_t taken;

    for (; count > 0; words += taken, count -= taken) {
        taken = uci_descent_node(op, level, words, count, &news);
        if (taken == 0) {
            break;
        }
    }
    return news;
}

static const char *uci_descent_check_nodes(const uci_recv_op_t *op, const uci_am_t *am)
{
    return ((am->hdr->index > 0) && (am->hdr->index < uci_merkle_levels(op->chunk.tree)))
                   ? NULL
                   : "a level that the tree does not have";
}

static void uci_descent_on_nodes(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_recv_op_t *op       = uci_recv_op_of(am);
    unsigned level;
    size_t node;

    if ((op == NULL) || !op->repair.descending ||
        (op->chunk.good + op->chunk.landed + op->chunk.bad < op->chunk.count)) {
        return;
    }
    UCI_STATS_ADD(tree_bytes, sizeof(*hdr) + am->length);
    op->chunk.root      = hdr->extra;
    op->chunk.have_root = true;
    if (uci_merkle_root(op->chunk.tree, (uint32_t)op->seq, op->length, op->chunk.size) == op->chunk.root) {
        uci_merkle_unmark(op->chunk.tree);
    } else if (!uci_descent_compare(op, hdr->index, am->data, am->length / sizeof(uint64_t))) {
        return;
    }
    op->repair.asked = 0;
    uci_ask_heard(&op->ask, uci_process_time_ns());
    if (uci_merkle_marked(op->chunk.tree, &level, &node, 1) > 0) {
        uci_descent_ask(op);
        return;
    }
    uci_descent_end(op);
    uci_recv_op_advance(op);
}

UCI_AM_HANDLER(NODES, 21, "S, answer to TREE: children of those nodes, root in `extra`", "nodes",
               "R asks for the next level, or repairs the chunks that differ", "R asks again", .max = UCI_DESCENT_BYTES,
               .grain = sizeof(uint64_t), .about = UCI_AM_ABOUT_RECV, .hit = UCI_AM_HIT(REPAIR),
               .check_recv = uci_descent_check_nodes, .take = uci_descent_on_nodes);

static const char *uci_descent_check_leaves(const uci_recv_op_t *op, const uci_am_t *am)
{
    return (am->length == op->chunk.count * sizeof(uint64_t)) ? NULL
                                                              : "another number of digests than the message has chunks";
}

void uci_descent_on_leaves(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    const uint64_t *leaves  = am->data;
    uci_recv_op_t *op       = uci_recv_op_of(am);
    uint32_t i;

    if ((op == NULL) ||
        (!(hdr->flags & UCI_AM_FLAG_LAST) && (op->chunk.good + op->chunk.landed + op->chunk.bad < op->chunk.count))) {
        return;
    }
    if (!(hdr->flags & UCI_AM_FLAG_LAST)) {
        UCI_STATS_ADD(tree_nodes, op->chunk.count);
        UCI_STATS_ADD(tree_bytes, sizeof(*hdr) + am->length);
    }
    op->chunk.root        = hdr->extra;
    op->chunk.have_root   = true;
    op->chunk.have_leaves = true;
    for (i = 0; i < op->chunk.count; ++i) {
        uci_recv_op_leaf(op, i, leaves[i]);
    }
    uci_descent_end(op);
    uci_recv_op_advance(op);
}

UCI_AM_HANDLER(LEAVES, 11, "S: all leaf digests, answer to TREE, root in `extra`; with LAST unasked, on the get path",
               "digests", "R repairs the chunks that differ", "R asks again", .flags = UCI_AM_FLAG_LAST,
               .min = sizeof(uint64_t), .max = UINT32_MAX, .grain = sizeof(uint64_t), .about = UCI_AM_ABOUT_RECV,
               .hit = UCI_AM_HIT(REPAIR), .special = UCI_AM_FLAG_LAST, .hit_special = UCI_AM_HIT(HEADER),
               .check_recv = uci_descent_check_leaves, .take = uci_descent_on_leaves);

/* --------------------------------------------------------------- sender */

/* @return bytes of the answer */
static size_t uci_descent_size(const uci_merkle_t *tree, unsigned level, const uint32_t *indexes, size_t count)
{
    size_t i, words = 0;

    for (i = 0; i < count; ++i) {
        words += 1 + uci_merkle_child_count(tree, level, indexes[i]);
    }
    return words * sizeof(uint64_t);
}

static void uci_descent_answer(uci_send_op_t *op, unsigned level, const uint32_t *indexes, size_t count)
{
    size_t i, length = uci_descent_size(op->chunk.tree, level, indexes, count);
    uci_control_t *msg;
    uint64_t *words;

    msg = (length > 0) ? uci_control_get(op->peer, UCI_AM_NODES, op->frame->seq, length) : NULL;
    if (msg == NULL) {
        return;
    }
    words = (uint64_t *)(void *)msg->payload;
    for (i = 0; i < count; ++i) {
        *words++ = indexes[i];
        words += uci_merkle_children(op->chunk.tree, level, indexes[i], words);
    }
    msg->hdr.op    = op->way.remote_op;
    msg->hdr.index = level;
    msg->hdr.extra = uci_merkle_root(op->chunk.tree, (uint32_t)op->frame->seq, op->length, op->chunk.size);
    uci_control_send(msg);
}

uci_control_t *uci_descent_get_leaves(uci_send_op_t *op, uci_am_type_t type, uint16_t flags)
{
    uci_control_t *msg = uci_control_get(op->peer, type, op->frame->seq, op->chunk.count * sizeof(uint64_t));
    uint64_t *leaves;
    uint32_t i;

    if (msg == NULL) {
        return NULL;
    }
    leaves = (uint64_t *)(void *)msg->payload;
    for (i = 0; i < op->chunk.count; ++i) {
        leaves[i] = uci_merkle_leaf(op->chunk.tree, i);
    }
    msg->hdr.op    = op->way.remote_op;
    msg->hdr.flags = flags;
    msg->hdr.extra = uci_merkle_root(op->chunk.tree, (uint32_t)op->frame->seq, op->length, op->chunk.size);
    return msg;
}

void uci_descent_send_leaves(uci_send_op_t *op, uint16_t flags)
{
    uci_control_t *msg = uci_descent_get_leaves(op, UCI_AM_LEAVES, flags);

    if (msg != NULL) {
        uci_control_send(msg);
    }
}

static const char *uci_descent_check_tree(const uci_am_t *am)
{
    const uint32_t *indexes = am->data;
    uci_send_op_t *op       = uci_send_op_find(am->peer, am->seq);
    size_t i, count = am->length / sizeof(*indexes);

    for (i = 0; (op != NULL) && (op->chunk.tree != NULL) && (i < count); ++i) {
        if (uci_merkle_child_count(op->chunk.tree, am->hdr->index, indexes[i]) == 0) {
            return "nodes that the tree does not have";
        }
    }
    return NULL;
}

static void uci_descent_on_tree(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_send_op_t *op       = uci_send_op_find(am->peer, am->seq);

    if ((op == NULL) || (op->chunk.tree == NULL) || (uci_merkle_leaves_set(op->chunk.tree) < op->chunk.count)) {
        return; /* asked again */
    }
    op->way.remote_op = hdr->op;
    if (op->chunk.count * sizeof(uint64_t) <= UCI_DESCENT_BYTES) {
        uci_descent_send_leaves(op, 0);
    } else {
        uci_descent_answer(op, hdr->index, am->data,
                           uci_min(am->length / sizeof(uint32_t), uci_descent_nodes(op->chunk.tree)));
    }
}

UCI_AM_HANDLER(TREE, 10, "R: all chunks match and the root does not, or has not come: children of these nodes?",
               "node numbers", "NODES; LEAVES if these are few", "R asks again, 4 descents in all",
               .flags = UCI_AM_FLAG_REPAIR, .max = UCI_DESCENT_BYTES, .grain = sizeof(uint32_t),
               .about = UCI_AM_ABOUT_SEND, .check = uci_descent_check_tree, .take = uci_descent_on_tree);
