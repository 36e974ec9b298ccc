/* SPDX-License-Identifier: BSD-3-Clause */
#include "superpipe.h"

#include "control.h"
#include "inject.h"
#include "recv_common.h"
#include "send_common.h"
#include "source.h"
#include "span.h"
#include "stats.h"
#include "stream.h"
#include "worker_lock.h"

/* Segments of one message that UCX may be moving at a time: one on the wire, one filled, one being filled */
#define UCI_SUPERPIPE_DEPTH 3

/* Spans that messages which nobody may have matched yet leave for those that are */
#define UCI_SUPERPIPE_KEEP (UCI_SPAN_COUNT / 2)

/* Chunks of a segment at most: their digests travel in its offer */
#define UCI_SUPERPIPE_CHUNKS (UCI_CONTROL_POOLED / sizeof(uint64_t))

/* --------------------------------------------------------------- sender */

/* A segment that is filled and not offered yet, or the one before */
typedef struct uci_bounce_segment {
    void *span;     /* NULL: none is filled */
    uint32_t first; /* chunk */
    uint32_t chunks;
    uint32_t length;
    uci_cut_t cut;
} uci_bounce_segment_t;

typedef struct uci_bounce_send {
    uci_bounce_segment_t segment;
    uint8_t spans; /* that UCX is sending from */
} uci_bounce_send_t;

/* Chunks of the next segment. Packing a generic datatype takes longer than moving it: then segments that grow would only leave more
 * to be unpacked when all is packed. */
static uint32_t uci_superpipe_next(const uci_send_op_t *op)
{
    const uci_bounce_send_t *bounce = uci_path_state(op, uci_bounce_send_t);

    return (bounce->segment.chunks == 0) || (op->buffer->kind == UCI_BUFFER_GENERIC) ? 1 : 2 * bounce->segment.chunks;
}

/* The next segment, into a span. @return false: there is none. */
static bool uci_superpipe_fill(uci_send_op_t *op, unsigned keep)
{
    uci_bounce_send_t *bounce = uci_path_state(op, uci_bounce_send_t);
    uint32_t i, length, bytes = 0, first = op->next;
    uint32_t count = uci_min(uci_superpipe_next(op), UCI_SPAN_SIZE / op->chunk_size);
    char *span     = uci_span_get(op->peer->worker, keep);
    uci_cut_t cut  = 0;

    if (span == NULL) {
        return false;
    }
    count               = uci_min(uci_min(count, (uint32_t)UCI_SUPERPIPE_CHUNKS), op->chunks - first);
    bounce->segment.cut = 0;
    for (i = 0; i < count; ++i, bytes += length) {
        length = uci_chunk_length(op->length, op->chunk_size, first + i);
        (void)uci_source_note(op, first + i, uci_send_op_load(op, first + i, span + bytes, length, &cut));
        if (i == 0) {
            bounce->segment.cut = (uci_cut_t)uci_cut_head(cut);
        }
    }
    bounce->segment.cut |= (uci_cut_t)(uci_cut_tail(cut) << 8);
    bounce->segment.span   = span;
    bounce->segment.first  = first;
    bounce->segment.chunks = count;
    bounce->segment.length = bytes;
    if (uci_unlikely(uci_fault_enabled)) {
        uci_inject_memory(op, span, bytes);
    }
    op->next = first + count;
    return true;
}

static uci_control_t *uci_superpipe_describe(const uci_send_op_t *op)
{
    const uci_bounce_send_t *bounce     = uci_path_state(op, uci_bounce_send_t);
    const uci_bounce_segment_t *segment = &bounce->segment;
    uci_control_t *msg = uci_control_get(op->peer, UCI_AM_SEGMENT, op->frame->seq, segment->chunks * sizeof(uint64_t));
    uint32_t i;

    if (msg == NULL) {
        return NULL;
    }
    for (i = 0; i < segment->chunks; ++i) {
        ((uint64_t *)(void *)msg->payload)[i] = uci_merkle_leaf(op->tree, segment->first + i);
    }
    msg->hdr.flags  = UCI_AM_FLAG_BOUNCE;
    msg->hdr.digest = (uint8_t)op->digest->id;
    msg->hdr.op     = op->remote_op;
    msg->hdr.index  = segment->first;
    msg->hdr.length = segment->length;
    msg->hdr.value  = segment->cut;
    if (op->next == op->chunks) {
        msg->hdr.flags |= UCI_AM_FLAG_LAST;
        msg->hdr.extra = uci_merkle_root(op->tree, (uint32_t)op->frame->seq, op->length, op->chunk_size);
    }
    if (uci_unlikely(uci_fault_enabled)) {
        uci_inject_leaves(op, msg, segment->chunks);
    }
    return msg;
}

static void uci_superpipe_span_done(uci_send_op_t *op, void *span)
{
    uci_bounce_send_t *bounce = uci_path_state(op, uci_bounce_send_t);
    uci_worker_t *worker      = op->peer->worker;

    uci_worker_enter(worker);
    uci_span_put(worker, span);
    --bounce->spans;
    uci_send_part_done(op, NULL);
    uci_worker_leave(worker);
}

/* What is not offered since there is no memory for it, the receiver will ask for */
static void uci_superpipe_offer(uci_send_op_t *op)
{
    uci_bounce_send_t *bounce = uci_path_state(op, uci_bounce_send_t);
    uci_control_t *msg        = uci_superpipe_describe(op);

    if (msg != NULL) {
        msg->more   = msg->length;
        msg->data   = bounce->segment.span;
        msg->length = bounce->segment.length;
        msg->op     = op;
        msg->done   = uci_superpipe_span_done;
        msg->span   = bounce->segment.span;
        ++bounce->spans;
        uci_send_op_pin(op);
    } else {
        uci_span_put(op->peer->worker, bounce->segment.span);
    }
    bounce->segment.span = NULL;
    if (op->next == op->chunks) {
        uci_list_del(&op->link);
        op->state = UCI_SEND_WAIT_FIN;
    }
    if (msg != NULL) {
        uci_control_send(msg);
    }
}

/* The next segment, if there is a span for it */
static void uci_superpipe_step(uci_send_op_t *op)
{
    uci_bounce_send_t *bounce = uci_path_state(op, uci_bounce_send_t);

    if ((bounce->segment.span == NULL) && ((bounce->spans == UCI_SUPERPIPE_DEPTH) || !uci_superpipe_fill(op, 0))) {
        uci_list_del(&op->link); /* uci_send_part_done() puts it back */
        if (bounce->spans == 0) {
            uci_stream_rest(op);
        }
        return;
    }
    uci_superpipe_offer(op);
}

/* Fill its first segment */
static void uci_superpipe_start(uci_send_op_t *op)
{
    op->path = &uci_superpipe_path;
    (void)uci_superpipe_fill(op, UCI_SUPERPIPE_KEEP);
}

/* Offer what is filled, go on with the rest */
static bool uci_superpipe_matched(uci_send_op_t *op)
{
    if (op->peer->leaving) {
        return false;
    }
    op->state = UCI_SEND_BOUNCING;
    UCI_STATS_INC(bounce_messages);
    /* no uci_grant_ahead(): that would register the user's buffer, which this path spares */
    uci_list_add_tail(&op->peer->worker->bounces, &op->link);
    uci_superpipe_step(op);
    return true;
}

static unsigned uci_superpipe_progress(uci_worker_t *worker)
{
    uci_list_for_each_safe(op, &worker->bounces, uci_send_op_t, link)
    {
        uci_superpipe_step(op);
    }
    return 1;
}

/* ------------------------------------------------------------- receiver */

static bool uci_superpipe_is_right(const uci_recv_op_t *op, const char *data, uint32_t length, const uint64_t *leaves)
{
    uint32_t part;

    for (; length > 0; length -= part, data += part, ++leaves) {
        part = uci_min(length, op->chunk_size);
        if (op->digest->digest(data, part) != *leaves) {
            return false;
        }
    }
    return true;
}

/* A segment of a generic datatype, verified as a whole and then unpacked. @return false: that is not possible. */
static bool uci_superpipe_unpack(uci_recv_op_t *op, uint32_t first, const char *data, uint32_t length,
                                 const uint64_t *leaves, uci_cut_t cut)
{
    uint32_t i, count = (uint32_t)uci_div_up(length, op->chunk_size);

    if (!uci_ordered_is_next(&op->ordered, (uint64_t)first * op->chunk_size) ||
        !uci_superpipe_is_right(op, data, length, leaves) ||
        !uci_ordered_unpack(&op->ordered, op->buffer, data, length, cut)) {
        return false;
    }
    op->arrived += count;
    for (i = 0; i < count; ++i) {
        uci_recv_op_chunk_good(op, first + i, leaves[i], UCI_RUNG_NONE, false);
    }
    return true;
}

void uci_superpipe_take(uci_recv_op_t *op, uint32_t first, const char *data, uint32_t length, const uint64_t *leaves,
                        uci_cut_t cut)
{
    uint32_t index, part;
    uint64_t value;

    data = uci_recv_op_own(op, data, length);
    if (data == NULL) {
        return; /* all of it is missing, and asked for */
    }
    if ((op->buffer->kind == UCI_BUFFER_GENERIC) &&
        (uci_superpipe_unpack(op, first, data, length, leaves, cut) || !uci_recv_op_collect(op))) {
        return; /* without memory: the same */
    }
    for (index = first; length > 0; ++index, ++leaves, data += part, length -= part) {
        part = uci_min(length, op->chunk_size);
        ++op->arrived;
        if (op->state[index] == UCI_CHUNK_GOOD) {
            continue;
        }
        value = uci_buffer_write(op->buffer, (uint64_t)index * op->chunk_size, data, part, op->digest, *leaves);
        if (uci_likely(value == *leaves)) {
            uci_recv_op_chunk_good(op, index, value, UCI_RUNG_NONE, false);
        } else {
            uci_recv_op_chunk_bad(op, index, UCI_WAY_BOUNCE, *leaves, data, part);
        }
    }
}

static void uci_superpipe_release(uci_send_op_t *op)
{
    uci_bounce_send_t *bounce = uci_path_state(op, uci_bounce_send_t);

    uci_span_put(op->peer->worker, bounce->segment.span);
}

static void uci_superpipe_describe_send(const uci_send_op_t *op, char *text, size_t size)
{
    snprintf(text, size, "; bounced, spans with UCX %u", uci_path_state(op, uci_bounce_send_t)->spans);
}

const uci_path_ops_t uci_superpipe_path = {.way           = UCI_WAY_BOUNCE,
                                           .progress      = uci_superpipe_progress,
                                           .start         = uci_superpipe_start,
                                           .matched       = uci_superpipe_matched,
                                           .release       = uci_superpipe_release,
                                           .describe_send = uci_superpipe_describe_send};
