/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject.h"

#include <stdlib.h>

#include "link/inject_slot.h"
#include "base/path.h"
#include "live/stats.h"

/* Replace the copy's content by that of another chunk; false if that changes nothing */
static bool uci_inject_other_chunk(uci_send_op_t *op, uci_control_t *msg, uint32_t other)
{
    uint32_t length = uci_min(uci_chunk_length(op->length, op->chunk.size, other), (uint32_t)msg->length);
    uint64_t before = XXH3_64bits(msg->staging, msg->length);

    uci_buffer_read_plain(op->buffer, (uint64_t)other * op->chunk.size, msg->staging, length, op->chunk.digest);
    return XXH3_64bits(msg->staging, msg->length) != before;
}

static void uci_inject_chunk_payload(uci_send_op_t *op, uci_control_t *msg, uint32_t index, const uci_fault_t *fault)
{
    uci_fault_t flip = {.kind = UCI_FAULT_BITFLIP, .random = fault->random};

    /* a generic datatype that is packed in its order has no other chunk at hand */
    if ((fault->kind == UCI_FAULT_SWAP) && (index + 1 < op->chunk.count) && (op->buffer->kind != UCI_BUFFER_GENERIC)) {
        op->swap_with = index;
        if (!uci_inject_other_chunk(op, msg, index + 1)) {
            uci_fault_apply(&flip, msg->staging, msg->length, NULL);
        }
        return;
    }
    msg->length = uci_fault_apply(fault, msg->staging, msg->length, uci_inject_stale(msg->length));
}

/* The second of two chunks that are exchanged: equal ones have been left as they are */
static void uci_inject_swapped(uci_send_op_t *op, uci_control_t *msg, uint32_t other)
{
    if (!uci_inject_other_chunk(op, msg, other)) {
        uci_fault_undo();
        UCI_STATS_ADD(faults_unseen, (--msg->faults > 0) ? -1ul : 0);
    }
}

/* What is damaged in its place must be nobody else's. @return false: no memory */
static bool uci_inject_own_copy(uci_control_t *msg)
{
    void *copy = malloc(uci_max(msg->length, 1ul));

    if (copy == NULL) {
        return false;
    }
    memcpy(copy, msg->data, msg->length);
    free(msg->staging);
    msg->staging = copy;
    msg->data    = copy;
    return true;
}

/* Of the faults of one message one is seen */
static void uci_inject_count_hits(uci_send_op_t *op, uci_control_t *msg, unsigned count)
{
    if (count > 0) {
        op->injected |= UCI_INJECTED_WAY;
        msg->faults = (uint8_t)count;
        UCI_STATS_ADD(faults_unseen, count - 1);
    }
}

void uci_inject_chunk(uci_send_op_t *op, uci_control_t *msg, uint32_t index)
{
    bool repair = (msg->hdr.flags & (UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_HANDOVER)) != 0;
    int rank    = uci_peer_rank(op->peer);
    bool swapped, hit_payload, hit_tree, hit_leaf;
    uci_fault_t payload, tree, leaf;

    if (op->injected & UCI_INJECTED_COPY) {
        return;
    }
    swapped     = !repair && (op->swap_with != UINT32_MAX) && (op->swap_with + 1 == index) && uci_fault_once_more();
    hit_payload = !swapped && uci_fault_draw(repair ? UCI_FAULT_REPAIR : UCI_FAULT_PAYLOAD, op->length, rank, &payload);
    hit_tree    = !repair && uci_fault_draw(UCI_FAULT_TREE, op->length, rank, &tree);
    hit_leaf    = !repair && uci_fault_draw(UCI_FAULT_LEAF, op->length, rank, &leaf);
    if ((swapped || hit_payload || hit_leaf) && !uci_inject_own_copy(msg)) {
        uci_inject_undo(swapped + hit_payload + hit_leaf);
        swapped = hit_payload = hit_leaf = false;
    }
    uci_inject_count_hits(op, msg, swapped + hit_payload + hit_tree + hit_leaf);
    if (!swapped && !hit_payload && !hit_leaf) {
        uci_inject_remember(msg->data, msg->length);
    }
    /* what is made to fit comes first, or it would undo what others do to the digest */
    if (hit_leaf) {
        uci_inject_bytes(&leaf, msg->staging, msg->length);
        msg->hdr.value = op->chunk.digest->digest(msg->staging, msg->length);
    }
    if (hit_tree) {
        uci_inject_bytes(&tree,
                         ((msg->hdr.flags & UCI_AM_FLAG_LAST) && (tree.random & 4)) ? &msg->hdr.extra : &msg->hdr.value,
                         sizeof(msg->hdr.value));
    }
    if (swapped) {
        uci_inject_swapped(op, msg, op->swap_with);
        op->swap_with = UINT32_MAX;
    } else if (hit_payload && op->peer->seals) {
        msg->fault = payload;
        msg->hit   = true;
    } else if (hit_payload) {
        uci_inject_chunk_payload(op, msg, index, &payload);
    }
}

static void uci_inject_slot_payload(uci_send_op_t *op, uci_slot_t *slot, uint32_t index, const uci_fault_t *fault)
{
    uint64_t before = XXH3_64bits(slot->data, slot->length);
    uint32_t other  = (index + 1 < op->chunk.count) ? index + 1 : 0;
    size_t left     = slot->length;

    if ((fault->kind == UCI_FAULT_SWAP) && (op->buffer->kind != UCI_BUFFER_GENERIC)) {
        uci_buffer_read_plain(op->buffer, (uint64_t)other * op->chunk.size, slot->data,
                              uci_min(slot->length, uci_chunk_length(op->length, op->chunk.size, other)),
                              op->chunk.digest);
    } else {
        left = uci_fault_apply(fault, slot->data, slot->length, uci_inject_stale(slot->length));
    }
    memset(slot->data + left, 0, slot->length - left);
    if (XXH3_64bits(slot->data, slot->length) == before) {
        uci_inject_bytes(fault, slot->data, slot->length);
    }
}

void uci_inject_slot(uci_send_op_t *op, uci_slot_t *slot, uint64_t mark, uint32_t index)
{
    int rank        = uci_peer_rank(op->peer);
    uint64_t before = uci_fault_count();
    uci_fault_t fault;

    if (op->injected & UCI_INJECTED_COPY) {
        return;
    }
    if (uci_fault_draw(UCI_FAULT_LEAF, op->length, rank, &fault)) { /* first: it makes the digest fit */
        uci_inject_bytes(&fault, slot->data, slot->length);
        slot->value = op->chunk.digest->digest(slot->data, slot->length);
        slot->check = uci_slot_check(slot, mark);
    }
    if (uci_fault_draw(UCI_FAULT_TREE, op->length, rank, &fault)) {
        uci_inject_bytes(&fault, ((index + 1 == op->chunk.count) && (fault.random & 4)) ? &slot->root : &slot->value,
                         sizeof(slot->value));
        slot->check = uci_slot_check(slot, mark);
    }
    if (uci_fault_draw(UCI_FAULT_PAYLOAD, op->length, rank, &fault)) {
        uci_inject_slot_payload(op, slot, index, &fault);
    } else {
        uci_inject_remember(slot->data, slot->length);
    }
    if (uci_fault_draw(UCI_FAULT_HEADER, op->length, rank, &fault)) {
        uci_inject_bytes(&fault, &slot->value, offsetof(uci_slot_t, next) - offsetof(uci_slot_t, value));
    }
    uci_inject_slot_hit(&op->peer->worker->link.bounce, slot, uci_fault_count() - before);
    op->injected |= (uci_fault_count() != before) ? UCI_INJECTED_WAY : 0;
}

void uci_inject_memory(uci_send_op_t *op, void *data, size_t length)
{
    uci_fault_t fault;
    size_t first;

    if (!(op->injected & UCI_INJECTED_COPY) &&
        uci_fault_draw(UCI_FAULT_MEMORY, op->length, uci_peer_rank(op->peer), &fault)) {
        first = (fault.random % uci_div_up(length, (size_t)op->chunk.size)) * op->chunk.size; /* one chunk of a span */
        uci_inject_bytes(&fault, (char *)data + first, uci_min(length - first, (size_t)op->chunk.size));
        op->injected |= UCI_INJECTED_WAY;
    }
}

void uci_inject_slot_memory(uci_send_op_t *op, uci_slot_t *slot, uint64_t mark, size_t length)
{
    uint64_t before = uci_fault_count();

    if (__atomic_load_n(&slot->claim, __ATOMIC_ACQUIRE) == ~mark) { /* else it is too late */
        uci_inject_memory(op, slot->data, length);
        uci_inject_slot_hit(&op->peer->worker->link.bounce, slot, uci_fault_count() - before);
    }
}

void uci_inject_copy(uci_send_op_t *op)
{
    uci_fault_t fault;
    uint32_t index;
    void *data;

    /* else the copy is what the rest is sent from */
    if ((op->state != UCI_SEND_DIRECT) || (op->way.ops->unread(op, 0, &data) == UINT32_MAX)) {
        return;
    }
    if (!uci_fault_draw(UCI_FAULT_MEMORY, op->length, uci_peer_rank(op->peer), &fault)) {
        return;
    }
    if ((fault.random & 1) || (op->injected & UCI_INJECTED_WAY)) {
        index = op->way.ops->unread(op, fault.random >> 1, &data);
        uci_inject_bytes(&fault, data, uci_chunk_length(op->length, op->chunk.size, index));
        op->injected |= UCI_INJECTED_WAY;
    } else {
        uci_inject_bytes(&fault, op->copy, op->length);
        op->injected |= UCI_INJECTED_COPY;
    }
}

void uci_inject_leaves(const uci_send_op_t *op, uci_control_t *msg, uint32_t count)
{
    uint64_t *leaves = (uint64_t *)(void *)msg->payload;
    uci_fault_t fault;
    bool has_root;
    uint32_t i;

    for (i = 0; i < count; ++i) {
        if (uci_fault_draw(UCI_FAULT_TREE, op->length, uci_peer_rank(op->peer), &fault)) {
            has_root = (i + 1 == count) && (msg->hdr.flags & UCI_AM_FLAG_LAST);
            uci_inject_bytes(&fault, (has_root && (fault.random & 4)) ? &msg->hdr.extra : &leaves[i],
                             sizeof(leaves[i]));
        }
    }
}

void uci_inject_nodes(const uci_send_op_t *op, uci_control_t *msg)
{
    uint64_t *words = (uint64_t *)(void *)msg->payload;
    uci_fault_t fault;

    if (uci_fault_targets(UCI_FAULT_REPAIR) &&
        uci_fault_draw(UCI_FAULT_REPAIR, op->length, uci_peer_rank(op->peer), &fault)) {
        uci_inject_bytes(&fault,
                         (fault.random & 8) ? &msg->hdr.extra : &words[fault.random % (msg->length / sizeof(*words))],
                         sizeof(*words));
    }
}

/* @a length bytes of the chunk at @a data become those of another one, where there is one of other content */
static bool uci_inject_swap_chunks(char *data, uint32_t length, const char *other)
{
    if ((other == NULL) || (memcmp(data, other, length) == 0)) {
        return false;
    }
    memcpy(data, other, length);
    return true;
}

/* Drawn where it arrives: the rank that it is for is this one */
static int uci_inject_own_rank(const uci_recv_op_t *op)
{
    return op->peer->worker->self.mark.rank;
}

void uci_inject_repair_get(const uci_recv_op_t *op, void *data, size_t length)
{
    uci_fault_t fault;

    if (uci_fault_targets(UCI_FAULT_REPAIR) &&
        uci_fault_draw(UCI_FAULT_REPAIR, op->length, uci_inject_own_rank(op), &fault)) {
        uci_inject_bytes(&fault, data, length);
    }
}

void uci_inject_segment(const uci_recv_op_t *op, char *data, uint32_t length)
{
    int rank = uci_inject_own_rank(op);
    uint32_t offset, chunk;
    uci_fault_t fault;
    char *other;

    for (offset = 0; offset < length; offset += chunk) {
        chunk = uci_min(op->chunk.size, length - offset);
        if (!uci_fault_draw(UCI_FAULT_PAYLOAD, op->length, rank, &fault)) {
            uci_inject_remember(data + offset, chunk);
            continue;
        }
        other = (offset + chunk + chunk <= length) ? data + offset + chunk : NULL;
        if ((fault.kind == UCI_FAULT_SWAP) && uci_inject_swap_chunks(data + offset, chunk, other)) {
            continue;
        }
        if ((fault.kind == UCI_FAULT_STALE) && uci_inject_swap_chunks(data + offset, chunk, uci_inject_stale(chunk))) {
            continue;
        }
        uci_inject_bytes(&fault, data + offset, chunk);
    }
}

bool uci_inject_region_draw(const uci_send_op_t *op)
{
    uci_fault_t fault;

    return uci_fault_targets(UCI_FAULT_REGION) &&
           uci_fault_draw(UCI_FAULT_REGION, op->length, uci_peer_rank(op->peer), &fault);
}

void uci_inject_region(void *memory, size_t length)
{
    unsigned char *bytes = memory;
    size_t i;

    for (i = 0; i < length; ++i) {
        bytes[i] ^= 0xff;
    }
}

static bool uci_inject_can_read_back(const uci_buffer_t *buffer)
{
    return (buffer->kind != UCI_BUFFER_GENERIC) ||
           ((buffer->generic->ops.start_pack != NULL) && (buffer->generic->ops.pack != NULL));
}

bool uci_inject_escape(uci_buffer_t *buffer, size_t length, int peer_rank)
{
    ucs_status_t status = buffer->status;
    uci_fault_t fault;
    void *packed;
    bool is_done;

    if ((length == 0) || !uci_inject_can_read_back(buffer) ||
        !uci_fault_draw(UCI_FAULT_ESCAPE, length, peer_rank, &fault)) {
        return false;
    }
    packed = malloc(length);
    if (packed == NULL) {
        uci_fault_undo();
        return false;
    }
    is_done = (uci_buffer_read_back(buffer, packed, length) == UCS_OK);
    uci_buffer_renew(buffer);
    if (is_done) {
        uci_inject_bytes(&fault, packed, length);
        uci_buffer_store(buffer, 0, packed, length);
    } else {
        uci_fault_undo();
    }
    buffer->status = status;
    free(packed);
    return is_done;
}

void *uci_inject_user_data(uci_buffer_t *buffer, int peer_rank, size_t *length_p)
{
    uci_fault_t fault;
    uint64_t value;
    void *copy;

    if ((buffer->length == 0) || !uci_fault_draw(UCI_FAULT_PAYLOAD, buffer->length, peer_rank, &fault)) {
        return NULL;
    }
    copy = malloc(buffer->length);
    if ((copy == NULL) ||
        (uci_buffer_read(buffer, 0, copy, buffer->length, &uci_digest_table[UCI_DIGEST_NONE], &value) != UCS_OK)) {
        free(copy);
        uci_fault_undo();
        return NULL;
    }
    *length_p = uci_fault_apply(&fault, copy, buffer->length, uci_inject_stale(buffer->length));
    return copy;
}
