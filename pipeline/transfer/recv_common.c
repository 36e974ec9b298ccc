/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv_common.h"

#include <stdlib.h>

#include "base/ask.h"
#include "base/damage.h"
#include "both_ways.h"
#include "link/control.h"
#include "recv_overlap.h"
#include "base/edge.h"
#include "base/unseen.h"
#include "util/log.h"
#include "base/path.h"
#include "util/process.h"
#include "report/report.h"
#include "base/request.h"
#include "live/stats.h"
#include "util/zalloc.h"

void uci_recv_count(size_t length)
{
    UCI_STATS_INC(messages_received);
    UCI_STATS_ADD(bytes_received, length);
}

/* A chunk that was unpacked may not be right after all. It can't be unpacked alone: all of them come once more. Looked for by whoever
 * collects, since there may have been no memory when it was seen. */
static void uci_recv_op_unpack_again(uci_recv_op_t *op)
{
    uint32_t i, count = (uint32_t)uci_div_up(op->ordered.offset + op->ordered.carry_length, op->chunk.size);

    for (i = 0; (i < count) && (op->chunk.state[i] == UCI_CHUNK_GOOD); ++i) {
    }
    if (i == count) {
        return;
    }
    op->ordered.offset       = 0;
    op->ordered.carry_length = 0;
    for (i = 0; i < count; ++i) {
        if (op->chunk.state[i] == UCI_CHUNK_GOOD) {
            --op->chunk.good;
            uci_recv_op_chunk_bad(op, i, UCI_WAY_UNKNOWN, op->chunk.expected[i], NULL, 0);
        }
    }
}

bool uci_recv_op_collect(uci_recv_op_t *op)
{
    if (op->buffer->kind != UCI_BUFFER_GENERIC) {
        return true;
    }
    op->packed = calloc(1, op->length); /* UCI_ON_ERROR=log delivers what there is: never what was here before */
    if (op->packed == NULL) {
        uci_error("failed to allocate %lu bytes for a packed message", (unsigned long)op->length);
        op->repair.starved = true;
        return false;
    }
    memcpy((char *)op->packed + op->ordered.offset, op->ordered.carry, op->ordered.carry_length);
    uci_buffer_init_recv(&op->own_buffer, op->packed, op->length, ucp_dt_make_contig(1));
    op->buffer = &op->own_buffer;
    uci_recv_op_unpack_again(op);
    return true;
}

const void *uci_recv_op_own(uci_recv_op_t *op, const void *data, size_t length)
{
    uci_worker_t *worker = op->peer->worker;
    void *own;

    if (uci_unlikely(length == 0)) {
        return ""; /* NULL is for no memory */
    }
    if (uci_likely(op->buffer->kind == UCI_BUFFER_CONTIG) || !uci_peer_may_share_memory(op->peer)) {
        return data;
    }
    if (length > worker->xfer.own_size) {
        own = malloc(length);
        if (own == NULL) {
            uci_error("failed to allocate %zu bytes for a chunk", length);
            op->repair.starved = true;
            return NULL;
        }
        free(worker->xfer.own_copy);
        worker->xfer.own_copy = own;
        worker->xfer.own_size = length;
    }
    return memcpy(worker->xfer.own_copy, data, length);
}

bool uci_recv_op_unpack_next(uci_recv_op_t *op, uint32_t first, const void *data, size_t length, uci_cut_t cut)
{
    uint64_t offset = (uint64_t)first * op->chunk.size;

    if (!uci_ordered_is_next(&op->ordered, offset) || ((offset + length == op->length) && (uci_cut_tail(cut) != 0)) ||
        !uci_ordered_unpack(&op->ordered, op->buffer, data, length, cut)) {
        return false;
    }
    op->border = (uci_cut_tail(cut) == 0) ? 0 : UCI_BORDER_UNKNOWN;
    return true;
}

bool uci_recv_op_unpack(uci_recv_op_t *op, uint32_t index, const void *data, size_t length, uint64_t expected,
                        uci_cut_t cut)
{
    return uci_ordered_is_next(&op->ordered, (uint64_t)index * op->chunk.size) &&
           (op->chunk.digest->digest(data, length) == expected) &&
           uci_recv_op_unpack_next(op, index, data, length, cut);
}

/* The kernel and the form of copying that suit this length, of the digest that the sender chose */
static void uci_recv_op_choose(uci_recv_op_t *op)
{
    const uci_choice_t *choice = uci_plan_choose(op->peer->worker->choice.copies, op->length);

    if (choice->digest->id == op->chunk.digest->id) {
        op->chunk.digest = choice->digest;
        op->buffer->form = choice->form;
    }
}

ucs_status_t uci_recv_op_create(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                                const uci_digest_ops_t *digest, uint64_t length, uint32_t chunk_size, unsigned arity,
                                uci_recv_op_t **op_p)
{
    uci_worker_t *worker = peer->worker;
    uint32_t chunks      = (uint32_t)uci_max(uci_div_up(length, chunk_size), 1ul);
    uci_recv_op_t *op;

    op = uci_zalloc(sizeof(*op) + (chunks * (sizeof(*op->chunk.expected) + sizeof(*op->chunk.state))));
    if (op == NULL) {
        uci_error("failed to allocate a receive operation of %u chunks", chunks);
        return UCS_ERR_NO_MEMORY;
    }
    if (uci_merkle_create(chunks, arity, &op->chunk.tree) != UCI_OK) {
        goto err_free;
    }
    op->slot = uci_recv_slot_get(worker, op);
    if (op->slot == UINT32_MAX) {
        goto err_free;
    }

    uci_list_init(&op->way.link);
    op->peer                  = peer;
    op->seq                   = seq;
    op->req                   = req;
    op->buffer                = &req->buffer;
    op->tag                   = tag;
    op->chunk.digest          = digest;
    op->length                = length;
    op->chunk.size            = chunk_size;
    op->chunk.count           = chunks;
    op->chunk.expected        = (uint64_t *)(void *)(op + 1);
    op->chunk.state           = (uint8_t *)(op->chunk.expected + chunks);
    op->repair.dropped_before = worker->talk.dropped;
    uci_ask_init(&op->ask, peer, uci_process_time_ns());
    if (worker->talk.dropped > 0) {
        uci_ask_doubt(&op->ask); /* where something was lost before, CTS may be: its sender is there to answer */
    }
    ++peer->xfer.ops;
    uci_list_add_tail(&worker->xfer.recv_ops, &op->link);
    uci_worker_work_begins(worker);
    uci_both_recv_begins(op);
    uci_recv_op_choose(op);
    if (uci_unlikely((req->flags & (UCI_REQUEST_TWIN | UCI_REQUEST_NUMBERED)) == UCI_REQUEST_TWIN)) {
        req->flags |= worker->twins.events->matched(peer, tag, &req->twin) ? UCI_REQUEST_NUMBERED : 0;
    }
    *op_p = op;
    return UCS_OK;

err_free:
    uci_merkle_destroy(op->chunk.tree);
    free(op);
    return UCS_ERR_NO_MEMORY;
}

static void uci_recv_op_drop_keys(uci_recv_op_t *op)
{
    if (op->repair.rkey != NULL) {
        uci_ucp.rkey_destroy(op->repair.rkey);
        op->repair.rkey = NULL;
    }
    free(op->repair.ahead);
    op->repair.ahead = NULL;
    uci_damages_drop(&op->damages);
    uci_damages_drop(&op->wrong_gets);
}

static void uci_recv_op_destroy(uci_recv_op_t *op)
{
    uci_worker_t *worker = op->peer->worker;

    UCI_STATS_ADD(unrepaired_chunks, op->chunk.bad);
    uci_list_del(&op->link);
    uci_list_del(&op->way.link);
    uci_worker_work_ends(worker);
    uci_both_recv_ends(op);
    uci_recv_slot_put(worker, op->slot);
    uci_merkle_destroy(op->chunk.tree);
    uci_recv_op_drop_keys(op);
    --op->peer->xfer.ops;
    free(op->packed);
    free(op);
}

void uci_recv_shutdown(uci_worker_t *worker)
{
    uci_list_for_each(op, &worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        uci_recv_op_drop_keys(op);
    }
}

void uci_recv_cleanup(uci_worker_t *worker)
{
    uci_list_for_each_safe(op, &worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        uci_recv_op_destroy(op);
    }
}

/* Of one chunk: as of a frame. Chunks are of the size that the sender chose, which twins have to agree on */
static void uci_recv_op_tell_twin(const uci_recv_op_t *op)
{
    uci_twin_note_t *note = &op->req->twin;

    note->digest = (op->chunk.count == 1) ? op->chunk.expected[0]
                                          : op->chunk.digest->digest(op->chunk.expected,
                                                                     op->chunk.count * sizeof(*op->chunk.expected));
    note->form   = op->chunk.digest->id | ((op->chunk.count == 1) ? 0 : (op->chunk.size << 8));
}

static void uci_recv_op_end(uci_recv_op_t *op, ucs_status_t status, bool is_whole)
{
    uci_request_t *req = op->req;
    uci_peer_t *peer   = op->peer;
    uint64_t seq       = op->seq;
    ucp_tag_t tag      = op->tag;
    uint64_t length    = op->length;
    bool wants_fin     = (op->way.ops == NULL) || !op->way.ops->finish(op);

    if (op->packed != NULL) {
        /* UCI_ON_ERROR=log delivers what there is */
        uci_buffer_store(&req->buffer, op->ordered.offset, (char *)op->packed + op->ordered.offset,
                         length - op->ordered.offset);
    }
    if (status == UCS_OK) {
        status = req->buffer.status;
    }
    if (is_whole && uci_unlikely(req->worker->msgs.watches_deliveries)) {
        uci_edge.delivered(req, peer, length);
    }
    uci_recv_count(length);
    if (uci_unlikely(req->flags & UCI_REQUEST_TWIN)) {
        uci_recv_op_tell_twin(op);
    }
    uci_recv_op_destroy(op);
    if (wants_fin) {
        uci_control_fin(peer, seq, 0);
    }
    uci_request_complete_recv(req, status, tag, length);
}

void uci_recv_op_deliver(uci_recv_op_t *op)
{
    uci_recv_op_end(op, UCS_OK, true);
}

void uci_recv_op_abandon(uci_recv_op_t *op, ucs_status_t status)
{
    uci_recv_op_end(op, status, false);
}

void uci_recv_op_cts(uci_recv_op_t *op, uint16_t flags)
{
    uci_control_t *msg = uci_control_get(op->peer, UCI_AM_CTS, op->seq, 0);

    if (msg != NULL) {
        op->way.reminded = op->way.reminded || (flags & UCI_AM_FLAG_REPAIR);
        msg->hdr.op      = op->slot;
        msg->hdr.flags   = (uint16_t)(flags | (op->way.fetching ? UCI_AM_FLAG_GET : 0));
        msg->hdr.index   = op->way.slotless;
        uci_control_send(msg);
    }
}

/* --------------------------------------------------------------- chunks */

void uci_recv_op_chunk_bad(uci_recv_op_t *op, uint32_t index, uci_way_t way, uint64_t expected, const void *data,
                           size_t length)
{
    if (op->chunk.state[index] != UCI_CHUNK_BAD) {
        UCI_STATS_INC(mismatched_chunks);
        op->chunk.landed -= (op->chunk.state[index] == UCI_CHUNK_LANDED);
        op->chunk.state[index] = UCI_CHUNK_BAD;
        ++op->chunk.bad;
        if (op->repair.start_time == 0) {
            op->repair.start_time = uci_process_time_ns();
        }
        if ((way == UCI_WAY_GET) && (op->damages.count == 0)) { /* else it was digested where no receive writes */
            uci_recv_overlap_find(op);
        }
        uci_damages_keep(&op->damages, index, way, data, length);
    } else {
        uci_unseen_count();
    }
    op->chunk.expected[index] = expected;
}

static void uci_recv_op_count_healed(uci_recv_op_t *op, uci_rung_t rung)
{
    ++op->repair.healed;
    UCI_STATS_INC(repaired_chunks);
    switch (rung) {
    case UCI_RUNG_GET:
        UCI_STATS_INC(repaired_by_get);
        break;
    case UCI_RUNG_COPY:
        UCI_STATS_INC(repaired_by_copy);
        break;
    default:
        return; /* the first transfer, which came after all */
    }
    op->repair.healed_by = rung;
}

/* A chunk that is not good yet is right, brought by this rung (NONE: by the first transfer, late): count it as repaired, or, if its sender
 * says that it was changed, as that; or as nothing, if nothing was wrong with it */
static void uci_recv_op_chunk_healed(uci_recv_op_t *op, uint32_t index, uci_rung_t rung, bool changed)
{
    if (rung != UCI_RUNG_NONE) {
        UCI_STATS_ADD(retransmitted_bytes, uci_chunk_length(op->length, op->chunk.size, index));
    }
    if (op->chunk.state[index] != UCI_CHUNK_BAD) {
        if (!changed && (op->peer->worker->talk.dropped == op->repair.dropped_before)) {
            return; /* asked for again because it was late, not because anything was damaged */
        }
        /* its header was damaged, so that nobody knew whose it was; or it is not what it was when it was sent first */
        UCI_STATS_INC(mismatched_chunks);
        if (op->repair.start_time == 0) {
            op->repair.start_time = uci_process_time_ns();
        }
    }
    uci_report_chunk_healed(op, index);
    if (changed) {
        ++op->repair.changed;
        UCI_STATS_INC(source_changed);
    } else {
        uci_recv_op_count_healed(op, rung);
    }
}

void uci_recv_op_chunk_good(uci_recv_op_t *op, uint32_t index, uint64_t value, uci_rung_t rung, bool changed)
{
    UCI_STATS_INC(chunks_verified);
    if (uci_unlikely((rung != UCI_RUNG_NONE) || changed || (op->chunk.state[index] == UCI_CHUNK_BAD))) {
        uci_recv_op_chunk_healed(op, index, rung, changed);
    }
    if (op->chunk.state[index] == UCI_CHUNK_BAD) {
        --op->chunk.bad;
    } else if (op->chunk.state[index] == UCI_CHUNK_LANDED) {
        --op->chunk.landed;
    }
    op->chunk.state[index]    = UCI_CHUNK_GOOD;
    op->chunk.expected[index] = value;
    ++op->chunk.good;
    uci_merkle_set_leaf(op->chunk.tree, index, value);
}

/* The user's buffer holds bytes of digest @a value for a chunk that should have @a expected */
void uci_recv_op_compare(uci_recv_op_t *op, uint32_t index, uint64_t value, uint64_t expected)
{
    uint32_t length = uci_chunk_length(op->length, op->chunk.size, index);
    const void *data;

    if (value == expected) {
        uci_recv_op_chunk_good(op, index, value, UCI_RUNG_NONE, false);
        return;
    }
    data = uci_buffer_direct(op->buffer, (uint64_t)index * op->chunk.size, length);
    uci_recv_op_chunk_bad(op, index, UCI_WAY_GET, expected, data, (data != NULL) ? length : 0);
}

void uci_recv_op_chunk_landed(uci_recv_op_t *op, uint32_t index, uint64_t value)
{
    ++op->way.arrived;
    switch (op->chunk.state[index]) {
    case UCI_CHUNK_GOOD:
        if (value != op->chunk.expected[index]) {
            /* repaired while this was on its way, and overwritten by it */
            --op->chunk.good;
            uci_recv_op_compare(op, index, value, op->chunk.expected[index]);
        }
        return;
    case UCI_CHUNK_MISSING:
        if (!op->chunk.have_leaves) {
            op->chunk.state[index]    = UCI_CHUNK_LANDED;
            op->chunk.expected[index] = value;
            ++op->chunk.landed;
            return;
        }
        break;
    case UCI_CHUNK_LANDED:
        op->chunk.expected[index] = value;
        return;
    default:
        break;
    }
    uci_recv_op_compare(op, index, value, op->chunk.expected[index]);
}

void uci_recv_op_chunk_torn(uci_recv_op_t *op, uint32_t index, const void *target, size_t length)
{
    uint8_t state = op->chunk.state[index];

    if ((state == UCI_CHUNK_GOOD) || (state == UCI_CHUNK_LANDED)) {
        uci_recv_op_chunk_landed(op, index, op->chunk.digest->digest(target, length));
    }
}

void uci_recv_op_leaf(uci_recv_op_t *op, uint32_t index, uint64_t leaf)
{
    switch (op->chunk.state[index]) {
    case UCI_CHUNK_LANDED:
        uci_recv_op_compare(op, index, op->chunk.expected[index], leaf);
        break;
    case UCI_CHUNK_GOOD:
        if (leaf != op->chunk.expected[index]) {
            --op->chunk.good;
            uci_recv_op_chunk_bad(op, index, UCI_WAY_UNKNOWN, leaf, NULL, 0);
            if (uci_recv_op_collect(op)) {
                uci_recv_op_unpack_again(op);
            }
        }
        break;
    default:
        op->chunk.expected[index] = leaf;
        break;
    }
}
