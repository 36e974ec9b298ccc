/* SPDX-License-Identifier: BSD-3-Clause */
#include "send_common.h"

#include <stdlib.h>

#include "link/slot.h"
#include "base/ask.h"
#include "base/request.h"
#include "both_ways.h"
#include "link/control.h"
#include "grant.h"
#include "base/edge.h"
#include "util/log.h"
#include "data/packer.h"
#include "base/path.h"
#include "util/process.h"
#include "settings/settings.h"
#include "source.h"
#include "live/stats.h"
#include "link/txlog.h"
#include "base/worker_lock.h"
#include "util/zalloc.h"

/* A send that is not received for so long may be what two ranks that send before they receive wait for. The limit of the log does
 * not count here: plain UCX buffers without a limit, at the receiver. */
#define UCI_SEND_LATE_NS 20000000ul

uci_send_op_t *uci_send_op_create(uci_peer_t *peer, uint64_t length)
{
    uci_worker_t *worker = peer->worker;
    uci_send_op_t *op    = uci_zalloc(sizeof(*op));

    if (op == NULL) {
        uci_error("failed to allocate a send operation");
        return NULL;
    }
    uci_list_init(&op->way.link);
    uci_list_init(&op->again.link);
    uci_list_init(&op->way.grants);
    op->peer         = peer;
    op->length       = length;
    op->chunk.digest = worker->choice.digest;
    op->start_time   = uci_process_time_ns();
    uci_ask_init(&op->ask, peer, op->start_time);
    ++peer->xfer.ops;
    uci_list_add_tail(&worker->xfer.send_ops, &op->all);
    uci_worker_work_begins(worker);
    uci_both_send_begins(op);
    return op;
}

/* Nothing is due any more, though UCX may still hold chunks */
static void uci_send_op_retire(uci_send_op_t *op)
{
    uci_list_del(&op->way.link);
    uci_list_del(&op->again.link);
    uci_both_send_ends(op);
    if (!uci_list_is_empty(&op->all)) {
        uci_list_del(&op->all);
        uci_worker_work_ends(op->peer->worker);
    }
}

/* Copies of what fits into a slot come and go with every message: the heap would give their pages back to the kernel again and again */
static bool uci_send_is_copy_pooled(const uci_send_op_t *op)
{
    return op->length <= UCI_SLOT_SIZE;
}

static void uci_send_copy_free(uci_send_op_t *op)
{
    if (uci_send_is_copy_pooled(op)) {
        uci_pool_put(&op->peer->worker->xfer.slot_copies, op->copy);
    } else {
        free(op->copy);
    }
    op->copy = NULL;
}

void uci_send_op_destroy(uci_send_op_t *op)
{
    uci_peer_t *peer     = op->peer;
    uci_worker_t *worker = peer->worker;

    uci_send_op_retire(op);
    uci_grant_revoke(op);
    if ((op->way.ops != NULL) && (op->way.ops->release != NULL)) {
        op->way.ops->release(op);
    }
    if (op->copy != NULL) {
        worker->xfer.copy_bytes -= op->length;
        uci_send_copy_free(op);
    }
    uci_ordered_cleanup(&op->ordered);
    uci_merkle_destroy(op->chunk.tree);
    free(op->chunk.changed);
    free(op->again.chunks);
    free(op->chunk.borders);
    free(op);
    --peer->xfer.ops;
    if (uci_unlikely(!uci_list_is_empty(&peer->xfer.queued))) {
        uci_container_of(peer->xfer.queued.next, uci_send_op_t, way.link)->way.ops->serve(peer);
    }
}

void uci_send_op_finish(uci_send_op_t *op, ucs_status_t status)
{
    uci_request_t *req = op->req, *parted = op->parted;

    if (uci_unlikely(uci_settings.check_sources) && (req != NULL) && (op->frame != NULL) && (status == UCS_OK)) {
        uci_source_check(op);
    }
    if (uci_unlikely(op->chunk.changed != NULL) && (op->frame != NULL)) {
        uci_source_record(op);
    }
    if (op->frame != NULL) {
        op->frame->op = NULL;
        if (status == UCS_OK) {
            uci_txlog_remove(op->peer, op->frame);
        } else {
            uci_txlog_leave(op->peer, op->frame);
        }
        op->frame = NULL;
    }
    op->state  = UCI_SEND_DONE;
    op->status = status;
    op->req    = NULL;
    op->parted = NULL;
    uci_send_op_retire(op);
    if (op->way.in_flight == 0) {
        uci_send_op_destroy(op);
    } else if (req != NULL) {
        /* UCX still reads the user's buffer, for chunks that nobody waits for: complete when it lets go */
        op->req = req;
        return;
    }
    if (req != NULL) {
        uci_request_complete(req, status);
    }
    if (uci_unlikely(parted != NULL)) {
        uci_request_complete(parted, status);
    }
}

void uci_send_op_unpin(uci_send_op_t *op)
{
    --op->way.in_flight;
    if ((op->state == UCI_SEND_DONE) && (op->way.in_flight == 0)) {
        uci_send_op_finish(op, op->status);
    }
}

void uci_send_part_done(uci_send_op_t *op, void *span)
{
    uci_worker_t *worker = op->peer->worker;

    uci_worker_enter(worker);
    if ((op->state == UCI_SEND_BOUNCING) && uci_list_is_empty(&op->way.link)) {
        uci_list_add_tail(&worker->xfer.bounces, &op->way.link);
    }
    uci_send_op_unpin(op);
    uci_worker_leave(worker);
}

static void uci_send_op_set_border(uci_send_op_t *op, uint32_t index, uci_border_t border)
{
    if (op->chunk.borders != NULL) {
        op->chunk.borders[index] = border;
    }
}

/* @return 0 if it is not known */
uci_border_t uci_send_op_border(const uci_send_op_t *op, uint32_t index)
{
    return (op->chunk.borders != NULL) ? op->chunk.borders[index] : 0;
}

static uci_cut_t uci_send_op_cut(const uci_send_op_t *op, uint32_t index)
{
    return uci_cut_between((index > 0) ? uci_send_op_border(op, index - 1) : 0, uci_send_op_border(op, index));
}

/* One chunk of the copy, with its digest. A generic datatype is packed in pieces, as UCX does it. */
static ucs_status_t uci_send_copy_chunk(uci_send_op_t *op, uint32_t index, uci_buffer_t *buffer, uci_ordered_t *ordered,
                                        uint64_t *value_p)
{
    uint32_t length = uci_chunk_length(op->length, op->chunk.size, index);
    uint64_t offset = (uint64_t)index * op->chunk.size;
    char *dst       = (char *)op->copy + offset;
    uci_border_t border;
    ucs_status_t status;

    if (buffer->kind != UCI_BUFFER_GENERIC) {
        *value_p = uci_buffer_read_plain(buffer, offset, dst, length, op->chunk.digest);
        return UCS_OK;
    }
    status = uci_packer_pack_pieces(ordered, buffer, dst, length, &border);
    if (status == UCS_OK) {
        uci_send_op_set_border(op, index, border);
        *value_p = op->chunk.digest->digest(dst, length);
    }
    return status;
}

/* Copy the message: so that the user's buffer is free, or since a generic datatype can't be packed in any order. Of the latter some
 * may have been packed before: from its start again */
static ucs_status_t uci_send_buffer_copy(uci_send_op_t *op, uci_request_t *req)
{
    uci_ordered_t ordered = {0};
    ucs_status_t status   = UCS_OK;
    uint64_t value;
    uint32_t i;

    op->copy = uci_send_is_copy_pooled(op) ? uci_pool_get(&op->peer->worker->xfer.slot_copies) : malloc(op->length);
    if (op->copy == NULL) {
        uci_error("failed to allocate %lu bytes for a packed message", (unsigned long)op->length);
        return UCS_ERR_NO_MEMORY;
    }
    if (uci_unlikely(op->ordered.offset > 0)) {
        uci_buffer_rewind(&req->buffer);
    }
    for (i = 0; (i < op->chunk.count) && (status == UCS_OK); ++i) {
        status = uci_send_copy_chunk(op, i, &req->buffer, &ordered, &value);
        if (status == UCS_OK) {
            uci_source_note_copy(op, i, value);
        }
    }
    uci_ordered_cleanup(&ordered);
    if (status != UCS_OK) {
        uci_send_copy_free(op);
        return status;
    }
    uci_buffer_init_send(&op->copy_buffer, op->copy, op->length, ucp_dt_make_contig(1));
    op->buffer = &op->copy_buffer;
    op->peer->worker->xfer.copy_bytes += op->length;
    if (uci_unlikely(uci_edge.copied != NULL)) {
        uci_edge.copied(op);
    }
    return UCS_OK;
}

/* Is the user's memory being read? By the receiver, who has been told where, or by UCX, which holds a chunk */
static bool uci_send_is_read(const uci_send_op_t *op)
{
    return (op->copy == NULL) && (!uci_list_is_empty(&op->way.grants) || (op->way.held > 0));
}

/* @return true if the user's buffer is free now; else its request completes with the message */
bool uci_send_buffer(uci_send_op_t *op)
{
    if ((op->req == NULL) || uci_send_is_read(op) ||
        ((op->copy == NULL) && (uci_send_buffer_copy(op, op->req) != UCS_OK))) {
        return false; /* it is through by now, or its receiver reads it, or it can't be copied: it fails when it is sent */
    }
    UCI_STATS_INC(buffered_messages);
    op->req = NULL;
    return true;
}

ucs_status_t uci_send_op_settle(uci_send_op_t *op)
{
    return (op->buffer->kind != UCI_BUFFER_GENERIC) ? UCS_OK : uci_send_buffer_copy(op, op->req);
}

ucs_status_t uci_send_op_load(uci_send_op_t *op, uint32_t index, void *dst, uint32_t length, uci_cut_t *cut_p,
                              uint64_t *value_p)
{
    ucs_status_t status;

    if (uci_likely(op->buffer->kind != UCI_BUFFER_GENERIC)) {
        *cut_p   = uci_send_op_cut(op, index);
        *value_p = uci_buffer_read_plain(op->buffer, (uint64_t)index * op->chunk.size, dst, length, op->chunk.digest);
        return UCS_OK;
    }
    status = uci_ordered_pack_shared(&op->ordered, op->buffer, dst, length, op->chunk.digest, cut_p, value_p);
    if (status == UCS_OK) {
        uci_send_op_set_border(op, index, uci_ordered_border(&op->ordered, *cut_p));
    }
    return status;
}

/* Its receiver may not know the message yet: so the operation lives on, without its buffer, until it is asked for what there is not */
void uci_send_op_fail(uci_send_op_t *op, ucs_status_t status)
{
    uci_request_t *req = (op->req != NULL) ? op->req : op->parted;

    uci_list_del(&op->way.link);
    uci_both_send_ends(op);
    if ((op->way.ops != NULL) && (op->way.ops->release != NULL)) {
        op->way.ops->release(op);
    }
    op->way.ops = NULL;
    op->state   = UCI_SEND_WAIT_FIN;
    op->status  = status;
    op->req     = NULL;
    op->parted  = NULL;
    uci_send_op_query(op); /* it may know the message: then it asks at once */
    if (req != NULL) {
        uci_request_complete(req, status);
    }
}

void uci_send_op_gone(uci_send_op_t *op, uint32_t remote_op)
{
    uci_control_send_simple(op->peer, UCI_AM_GONE, op->frame->seq, remote_op, 0);
    uci_send_op_finish(op, op->status);
}

bool uci_send_op_is_matched(const uci_send_op_t *op)
{
    return (op->state != UCI_SEND_DESCRIBED) && ((op->state != UCI_SEND_DIRECT) || op->way.taken);
}

uint64_t uci_send_op_buffer_time(const uci_send_op_t *op)
{
    return (!op->is_buffered_late || uci_send_op_is_matched(op) || (op->req == NULL))
                   ? UINT64_MAX
                   : op->start_time + UCI_SEND_LATE_NS;
}

uci_request_t *uci_send_op_buffer_late(uci_send_op_t *op, uint64_t now)
{
    uci_request_t *req = op->req;

    return ((now >= uci_send_op_buffer_time(op)) && uci_send_buffer(op)) ? req : NULL;
}

static bool uci_send_may_copy(const uci_send_op_t *op)
{
    const uci_worker_t *worker = op->peer->worker;

    return worker->xfer.copy_bytes + op->length <= worker->link.log_limit;
}

uci_request_t *uci_send_op_buffer_early(uci_send_op_t *op)
{
    uci_request_t *req = op->req;

    return (uci_send_may_copy(op) && uci_send_buffer(op)) ? req : NULL;
}

void uci_send_op_cancel(uci_send_op_t *op, ucs_status_t status)
{
    uci_request_t *req = op->req;

    if (req == NULL) {
        return;
    }
    if (op->buffer == NULL) { /* of one frame, which is in the log */
        op->req = NULL;
    } else if (uci_send_op_is_matched(op) || !uci_send_buffer(op)) {
        return;
    }
    uci_request_complete(req, status);
}

static void uci_send_op_ask(uci_send_op_t *op, uint16_t flags)
{
    uci_peer_t *peer = op->peer;
    uci_control_t *msg;

    uci_ask_done(&op->ask, peer, uci_process_time_ns());
    if (++op->queries > 1) {
        uci_control_hello(peer); /* the first one may have been lost: then nobody can answer */
    }
    msg = uci_control_get(peer, UCI_AM_QUERY, op->frame->seq, 0);
    if (msg != NULL) {
        msg->hdr.flags = flags;
        msg->hdr.op    = op->way.remote_op;
        msg->hdr.value = op->frame->seq;
        uci_control_send(msg);
    }
}

void uci_send_op_query(uci_send_op_t *op)
{
    uci_send_op_ask(op, 0);
}

void uci_send_op_query_all(uci_send_op_t *op)
{
    uci_send_op_ask(op, UCI_AM_FLAG_LAST);
}

uci_send_op_t *uci_send_op_find(uci_peer_t *peer, uint64_t seq)
{
    uci_frame_t *frame = uci_txlog_find(peer, seq);

    return (frame != NULL) ? frame->op : NULL;
}

void uci_send_shutdown(uci_worker_t *worker)
{
    uci_list_for_each(op, &worker->xfer.send_ops, uci_send_op_t, all)
    {
        uci_list_del(&op->way.link); /* what still ends serves none that is queued */
        uci_list_del(&op->again.link);
        uci_grant_revoke(op);
    }
}

void uci_send_cleanup(uci_worker_t *worker)
{
    uci_list_for_each_safe(op, &worker->xfer.send_ops, uci_send_op_t, all)
    {
        uci_send_op_destroy(op);
    }
}
