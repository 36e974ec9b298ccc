/* SPDX-License-Identifier: BSD-3-Clause */
#include "message_check.h"

#include "base/mailbox_state.h"
#include "base/mark.h"
#include "base/recv_table.h"
#include "base/send_op.h"
#include "util/seq.h"
#include "base/slot.h"
#include "link/txlog.h"
#include "base/wire_check.h"

/* What can be said of a message by its type alone */
typedef struct uci_wire_rule {
    const char *name;
    uint16_t flags;    /* that it may have */
    uint16_t grain;    /* its payload is a multiple of, a power of two */
    uint32_t min, max; /* bytes of payload */
} uci_wire_rule_t;

static const uci_wire_rule_t uci_wire_rules[UCI_AM_LAST] = {
        [UCI_AM_HELLO] = {"HELLO", 0, 1, sizeof(uci_mark_t) + 1, sizeof(uci_mark_t) + UCI_WIRE_ADDRESS_MAX},
        [UCI_AM_ACK]   = {"ACK", UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_LAST, 2 * sizeof(uint64_t), 2 * sizeof(uint64_t),
                          UINT32_MAX},
        [UCI_AM_CTS]   = {"CTS", UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_GET, 1, 0, 0},
        [UCI_AM_DATA]  = {"DATA", UCI_AM_FLAG_LAST | UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_HANDOVER | UCI_AM_FLAG_CHANGED, 1,
                          0, UCI_CHUNK_SIZE_MAX},
        [UCI_AM_FIN]   = {"FIN", UCI_AM_FLAG_TRUNCATED | UCI_AM_FLAG_REPAIR, 1, 0, 0},
        [UCI_AM_REPAIR]  = {"REPAIR", UCI_AM_FLAG_GET | UCI_AM_FLAG_FRAME, sizeof(uint32_t), 0,
                            UCI_REPAIR_BATCH * sizeof(uint32_t)},
        [UCI_AM_GRANT]   = {"GRANT", UCI_AM_FLAG_AHEAD, 1, sizeof(uci_am_grant_t),
                            sizeof(uci_am_grant_t) + (UCI_REPAIR_BATCH * sizeof(uci_am_grant_entry_t)) +
                                    UCI_WIRE_KEY_MAX},
        [UCI_AM_GONE]    = {"GONE", UCI_AM_FLAG_DAMAGED | UCI_AM_FLAG_FRAME, 1, 0, 0},
        [UCI_AM_QUERY]   = {"QUERY", UCI_AM_FLAG_LAST, 1, 0, 0},
        [UCI_AM_TREE]    = {"TREE", UCI_AM_FLAG_REPAIR, sizeof(uint32_t), 0, UCI_DESCENT_BYTES},
        [UCI_AM_LEAVES]  = {"LEAVES", UCI_AM_FLAG_LAST, sizeof(uint64_t), sizeof(uint64_t), UINT32_MAX},
        [UCI_AM_SENT]    = {"SENT", UCI_AM_FLAG_REPAIR, 1, 0, 0},
        [UCI_AM_BOX]     = {"BOX", 0, 1, sizeof(uci_am_box_t) + 1, sizeof(uci_am_box_t) + UCI_WIRE_KEY_MAX},
        [UCI_AM_LEAVE]   = {"LEAVE", UCI_AM_FLAG_REPAIR, 2 * sizeof(uint64_t), 2 * sizeof(uint64_t), UINT32_MAX},
        [UCI_AM_MISSING] = {"MISSING", UCI_AM_FLAG_REPAIR, 2 * sizeof(uint64_t), 2 * sizeof(uint64_t), UINT32_MAX},
        [UCI_AM_BYE]     = {"BYE", 0, 2 * sizeof(uint64_t), 2 * sizeof(uint64_t), UINT32_MAX},
        [UCI_AM_POOL]    = {"POOL", 0, 1, sizeof(uci_am_pool_t) + 1, sizeof(uci_am_pool_t) + UCI_WIRE_KEY_MAX},
        [UCI_AM_MAPPED]  = {"MAPPED", 0, 1, 0, 0},
        [UCI_AM_SLOT]    = {"SLOT", 0, 1, 0, 0},
        [UCI_AM_SEGMENT] = {"SEGMENT", UCI_AM_FLAG_LAST | UCI_AM_FLAG_BOUNCE, sizeof(uint64_t), 0, UINT32_MAX},
        [UCI_AM_NODES]   = {"NODES", 0, sizeof(uint64_t), 0, UCI_DESCENT_BYTES},
};

const char *uci_wire_name(const uci_am_hdr_t *hdr)
{
    return ((hdr->type > 0) && (hdr->type < UCI_AM_LAST)) ? uci_wire_rules[hdr->type].name : "a message";
}

/* -------------------------------------------- messages, by themselves */

/* What has been received: first missing, upto, then ranges that are missing, ascending and apart */
static const char *uci_wire_check_received(const uci_peer_t *peer, const uint64_t *words, size_t count)
{
    uint64_t next = words[0];
    size_t i;

    if ((words[0] > words[1]) || (words[1] > peer->tx_next)) {
        return "that it has received what was never sent";
    }
    for (i = 2; i < count; i += 2) {
        if ((words[i] < next) || (words[i + 1] < words[i]) || (words[i + 1] >= words[1])) {
            return "ranges of messages that are none";
        }
        next = words[i + 1] + 1;
    }
    return NULL;
}

/* Of LEAVE, MISSING and BYE: what is finished, in hdr->index ranges */
static const char *uci_wire_check_report(const uci_peer_t *peer, const uci_am_hdr_t *hdr, const uint64_t *words,
                                         size_t count)
{
    return (count == 2 + (2 * (size_t)hdr->index)) ? uci_wire_check_received(peer, words, count)
                                                   : "another number of ranges than it has";
}

static const char *uci_wire_check_data(const uci_am_hdr_t *hdr)
{
    return (uci_digest_by_id(hdr->digest) == NULL) ? "a digest that there is not" : NULL;
}

/* What is left of a frame that is lost */
static const char *uci_wire_check_query(const uci_am_hdr_t *hdr)
{
    return ((uint32_t)hdr->value == hdr->seq) ? NULL : "two numbers of one message";
}

static const char *uci_wire_check_gone(const uci_am_hdr_t *hdr)
{
    uci_frame_hdr_t frame = {
            .kind = (uint8_t)hdr->extra, .digest = (uint8_t)(hdr->extra >> 8), .length = (uint16_t)(hdr->extra >> 16)};

    return (hdr->flags & UCI_AM_FLAG_FRAME) ? uci_wire_check_frame(&frame) : NULL;
}

/* Frames that have been sent: no fewer than have come, and no more than a link can number */
static const char *uci_wire_check_sent(const uci_peer_t *peer, const uci_am_hdr_t *hdr)
{
    return ((hdr->value >= peer->rx_next) && (hdr->value - peer->rx_next < (1ul << 31))) ||
                           (hdr->value < peer->rx_next) /* it was late */
                   ? NULL
                   : "that it has sent more than it can number";
}

static const char *uci_wire_check_box(const uci_am_box_t *box)
{
    uint32_t granules = box->granules;

    return ((box->bell < UCI_MAILBOX_BOXES) && (granules >= UCI_BOX_GRANULES_MIN) && (granules <= UCI_BOX_GRANULES) &&
            ((granules & (granules - 1)) == 0) && (box->offset >= UCI_MAILBOX_BELLS) &&
            (box->offset % UCI_CACHE_LINE == 0) && (box->size >= uci_box_size(granules)) &&
            (box->offset <= box->size - uci_box_size(granules)))
                   ? NULL
                   : "a mailbox of another form";
}

static const char *uci_wire_check_grant(const uci_am_hdr_t *hdr, const uci_am_grant_t *grant, size_t length)
{
    if (length != sizeof(*grant) + (grant->count * sizeof(uci_am_grant_entry_t)) + grant->rkey_length) {
        return "another number of entries than it has";
    }
    return ((hdr->flags & UCI_AM_FLAG_AHEAD) && ((grant->count != 1) || (grant->rkey_length == 0)))
                   ? "where it is with no, or more than one, place"
                   : NULL;
}

static const char *uci_wire_check_pool(const uci_am_pool_t *pool)
{
    return ((pool->slot_size == UCI_SLOT_SIZE) && (pool->slot_count == UCI_SLOT_COUNT)) ? NULL
                                                                                        : "slots of another form";
}

/* ------------------------------------------ to the sender of a message */

static const char *uci_wire_check_request(const uci_send_op_t *op, const uint32_t *indexes, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if ((indexes[i] >= op->chunks) || ((i > 0) && (indexes[i] <= indexes[i - 1]))) {
            return "chunks that the message does not have, or one of them twice";
        }
    }
    return NULL;
}

static const char *uci_wire_check_question(const uci_send_op_t *op, const uci_am_hdr_t *hdr, const uint32_t *indexes,
                                           size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if (uci_merkle_child_count(op->tree, hdr->index, indexes[i]) == 0) {
            return "nodes that the tree does not have";
        }
    }
    return NULL;
}

/* CTS, FIN, REPAIR and TREE: about a message of ours, whose receive has the number hdr->op there */
static const char *uci_wire_check_answer(const uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data,
                                         size_t length)
{
    uint64_t seq       = uci_txlog_expand(peer, hdr->seq);
    uci_frame_t *frame = uci_txlog_find(peer, seq);
    uci_send_op_t *op  = (frame != NULL) ? frame->op : NULL;

    if (seq >= peer->tx_next) {
        return "something about a message that was never sent";
    }
    if ((hdr->type == UCI_AM_REPAIR) && (hdr->flags & UCI_AM_FLAG_FRAME)) {
        return (length > 0) ? "chunks that a frame does not have" : NULL;
    }
    if ((op == NULL) || (op->tree == NULL)) {
        return NULL;
    }
    if (hdr->type == UCI_AM_REPAIR) {
        return uci_wire_check_request(op, data, length / sizeof(uint32_t));
    }
    return (hdr->type == UCI_AM_TREE) ? uci_wire_check_question(op, hdr, data, length / sizeof(uint32_t)) : NULL;
}

/* ---------------------------------------- to the receiver of a message */

static const char *uci_wire_check_chunk(const uci_recv_op_t *op, const uci_am_hdr_t *hdr)
{
    if ((hdr->index >= op->chunks) || (hdr->length != uci_chunk_length(op->length, op->chunk_size, hdr->index))) {
        return "a chunk that the message does not have";
    }
    return (hdr->digest == (uint8_t)op->digest->id) ? NULL : "another digest than the message has";
}

/* Is it one of a whole number of chunks, or the end? All segments are offered once, so that together they are no more than the message. */
static const char *uci_wire_check_segment(const uci_recv_op_t *op, const uci_am_hdr_t *hdr, size_t leaves_length)
{
    uint64_t end    = ((uint64_t)hdr->index * op->chunk_size) + hdr->length;
    uint64_t leaves = (hdr->flags & UCI_AM_FLAG_BOUNCE) ? uci_div_up((uint64_t)hdr->length, op->chunk_size)
                      : (hdr->flags & UCI_AM_FLAG_LAST) ? op->chunks
                                                        : 0;
    uint64_t words  = leaves + !op->peer->in_clear; /* and the counter of its records */

    if ((hdr->index >= op->chunks) || (hdr->length == 0) || (end > op->length) ||
        ((end < op->length) && (hdr->length % op->chunk_size != 0))) {
        return "a segment that the message does not have";
    }
    if (op->offered + hdr->length > op->length) {
        return "one more segment than the message has";
    }
    return (leaves_length == words * sizeof(uint64_t)) ? NULL : "another number of digests than it has chunks";
}

static const char *uci_wire_check_entries(const uci_recv_op_t *op, const uci_am_grant_t *grant)
{
    const uci_am_grant_entry_t *entries = (const uci_am_grant_entry_t *)(const void *)(grant + 1);
    uint32_t i;

    for (i = 0; i < grant->count; ++i) {
        if ((entries[i].index >= op->chunks) || ((i > 0) && (entries[i].index <= entries[i - 1].index))) {
            return "where chunks are that the message does not have, or one of them twice";
        }
    }
    return NULL;
}

const char *uci_wire_check_for(const uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    switch (hdr->type) {
    case UCI_AM_DATA:
        return uci_wire_check_chunk(op, hdr);
    case UCI_AM_SEGMENT:
        return uci_wire_check_segment(op, hdr, length);
    case UCI_AM_GRANT:
        return (hdr->flags & UCI_AM_FLAG_AHEAD) ? NULL : uci_wire_check_entries(op, data);
    case UCI_AM_LEAVES:
        return (length == op->chunks * sizeof(uint64_t)) ? NULL
                                                         : "another number of digests than the message has chunks";
    case UCI_AM_NODES:
        return ((hdr->index > 0) && (hdr->index < uci_merkle_levels(op->tree))) ? NULL
                                                                                : "a level that the tree does not have";
    case UCI_AM_SLOT:
        return (op->chunk_size <= UCI_SLOT_SIZE) ? NULL : "a slot that can't hold its chunks";
    default:
        return NULL;
    }
}

/* The receive it is about; one that is over is none */
static const uci_recv_op_t *uci_wire_receive_of(uci_peer_t *peer, const uci_am_hdr_t *hdr)
{
    return uci_unlikely((hdr->type == UCI_AM_DATA) && (hdr->flags & UCI_AM_FLAG_HANDOVER))
                   ? uci_recv_op_by_seq(peer, uci_wire_seq(peer, hdr))
                   : uci_recv_op_by_slot(peer->worker, hdr->op, peer, hdr->seq);
}

static const char *uci_wire_check_for_receive(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data,
                                              size_t length)
{
    const char *wrong = uci_wire_check_seq(uci_wire_seq(peer, hdr));
    const uci_recv_op_t *op;

    if (uci_unlikely(wrong != NULL)) {
        return wrong;
    }
    op = uci_wire_receive_of(peer, hdr);
    return uci_likely(op != NULL) ? uci_wire_check_for(op, hdr, data, length) : NULL;
}

/* ------------------------------------------------------------ messages */

static const char *uci_wire_check_content(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    switch (hdr->type) {
    case UCI_AM_DATA:
    case UCI_AM_SEGMENT:
        return uci_wire_check_data(hdr);
    case UCI_AM_ACK:
        return uci_wire_check_received(peer, data, length / sizeof(uint64_t));
    case UCI_AM_LEAVE:
    case UCI_AM_MISSING:
    case UCI_AM_BYE:
        return uci_wire_check_report(peer, hdr, data, length / sizeof(uint64_t));
    case UCI_AM_CTS:
    case UCI_AM_FIN:
    case UCI_AM_REPAIR:
    case UCI_AM_TREE:
        return uci_wire_check_answer(peer, hdr, data, length);
    case UCI_AM_GRANT:
        return uci_wire_check_grant(hdr, data, length);
    case UCI_AM_GONE:
        return uci_wire_check_gone(hdr);
    case UCI_AM_QUERY:
        return uci_wire_check_query(hdr);
    case UCI_AM_SENT:
        return uci_wire_check_sent(peer, hdr);
    case UCI_AM_BOX:
        return uci_wire_check_box(data);
    case UCI_AM_HELLO:
        return (uci_mark_uid(data) == peer->uid) ? NULL : "that it is another one";
    case UCI_AM_POOL:
        return uci_wire_check_pool(data);
    case UCI_AM_SLOT:
        return (hdr->index < UCI_SLOT_COUNT) ? NULL : "a slot that there is not";
    default:
        return NULL;
    }
}

/* Where all is sealed nobody offers memory, nor what lies in it */
static const char *uci_wire_check_sealed(const uci_am_hdr_t *hdr)
{
    bool in_clear = ((1u << hdr->type) & ((1u << UCI_AM_GRANT) | (1u << UCI_AM_BOX) | (1u << UCI_AM_POOL) |
                                          (1u << UCI_AM_MAPPED) | (1u << UCI_AM_SLOT))) != 0;

    return (in_clear || ((hdr->type == UCI_AM_SEGMENT) && !(hdr->flags & UCI_AM_FLAG_BOUNCE)))
                   ? "that it uses memory in clear, and all between us is sealed"
                   : NULL;
}

/* About a message of the peer's, that this side receives */
static bool uci_wire_is_for_receive(const uci_am_hdr_t *hdr)
{
    return ((1u << hdr->type) &
            ((1u << UCI_AM_DATA) | (1u << UCI_AM_SEGMENT) | (1u << UCI_AM_GRANT) | (1u << UCI_AM_GONE) |
             (1u << UCI_AM_LEAVES) | (1u << UCI_AM_NODES) | (1u << UCI_AM_QUERY) | (1u << UCI_AM_SLOT))) != 0;
}

const char *uci_wire_check_message(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    const uci_wire_rule_t *rule;
    const char *wrong;

    if (uci_unlikely((hdr->type == 0) || (hdr->type >= UCI_AM_LAST))) {
        return "a type that does not exist";
    }
    rule = &uci_wire_rules[hdr->type];
    if (uci_unlikely((hdr->flags & ~rule->flags) != 0)) {
        return "flags that it does not have";
    }
    if (uci_unlikely((length < rule->min) || (length > rule->max) || ((length & (rule->grain - 1u)) != 0))) {
        return "more, or less, than it has to";
    }
    wrong = peer->in_clear ? NULL : uci_wire_check_sealed(hdr);
    if (uci_unlikely(wrong != NULL)) {
        return wrong;
    }
    wrong = uci_wire_check_content(peer, hdr, data, length);
    return uci_likely((wrong == NULL) && uci_wire_is_for_receive(hdr))
                   ? uci_wire_check_for_receive(peer, hdr, data, length)
                   : wrong;
}
