/* SPDX-License-Identifier: BSD-3-Clause */
#include "superpipe.h"

#include "base/ask.h"
#include "link/control.h"
#include "base/edge.h"
#include "base/unseen.h"
#include "recv_common.h"
#include "link/sealed.h"
#include "send_common.h"
#include "source.h"
#include "base/span.h"
#include "live/stats.h"
#include "stream.h"
#include "base/worker_lock.h"

/* Segments of one message that UCX may be moving at a time: one on the wire, one filled, one being filled */
#define UCI_SUPERPIPE_DEPTH 3

/* Spans that messages which nobody may have matched yet leave for those that are */
#define UCI_SUPERPIPE_KEEP (UCI_SPAN_COUNT / 2)

/* Chunks of a segment at most: their digests travel in its offer, and a counter if they are sealed */
#define UCI_SUPERPIPE_CHUNKS (UCI_CONTROL_POOLED / sizeof(uint64_t) - 1)

/* --------------------------------------------------------------- sender */

/* A segment that is filled and not offered yet, or the one before */
typedef struct uci_bounce_segment {
    void *span;     /* NULL: none is filled */
    uint32_t first; /* chunk */
    uint32_t chunks;
    uint32_t length;
    uci_cut_t cut;
    uint64_t counter; /* sealed: of the first chunk's record */
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

/* Chunk @a i of a segment, into its span at @a place; between workers that seal, as a record, while it is in the cache.
 * @return where the next one goes; NULL: it can't be packed, as op->status says */
static char *uci_superpipe_load(uci_send_op_t *op, uint32_t i, char *place, uci_cut_t *cut_p)
{
    uci_bounce_segment_t *segment = &uci_path_state(op, uci_bounce_send_t)->segment;
    uint32_t index                = segment->first + i;
    uint32_t length               = uci_chunk_length(op->length, op->chunk.size, index);
    bool seals                    = !op->peer->in_clear;
    char *data                    = place + (seals ? UCI_SEALED_FRONT : 0);
    uint64_t value;

    op->status = uci_send_op_load(op, index, data, length, cut_p, &value);
    if (uci_unlikely(op->status != UCS_OK)) {
        return NULL;
    }
    (void)uci_source_note(op, index, value);
    segment->length += length;
    if (seals && !uci_sealed_close_chunk(op->peer, segment->counter + i, place, length)) {
        memset(place, 0, length + UCI_SEALED_OVERHEAD); /* logged: it is rejected there, and asked for */
    }
    return place + uci_sealed_segment(op->peer, length, 1);
}

/* The next segment, into a span. @return false: there is none, or nothing to fill it with, as op->status says. */
static bool uci_superpipe_fill(uci_send_op_t *op, unsigned keep)
{
    uci_bounce_segment_t *segment = &uci_path_state(op, uci_bounce_send_t)->segment;
    uint32_t i, fits = (uint32_t)(UCI_SPAN_SIZE / uci_sealed_segment(op->peer, op->chunk.size, 1));
    uint32_t count = uci_min(uci_superpipe_next(op), fits);
    char *span     = uci_span_get(op->peer->worker, keep);
    char *place    = span;
    uci_cut_t cut  = 0;

    if (span == NULL) {
        return false;
    }
    count            = uci_min(uci_min(count, (uint32_t)UCI_SUPERPIPE_CHUNKS), op->chunk.count - op->chunk.next);
    segment->span    = span;
    segment->first   = op->chunk.next;
    segment->chunks  = count;
    segment->length  = 0;
    segment->cut     = 0;
    segment->counter = op->peer->in_clear ? 0 : uci_sealed_take(op->peer, count);
    for (i = 0; i < count; ++i) {
        place = uci_superpipe_load(op, i, place, &cut);
        if (uci_unlikely(place == NULL)) {
            uci_span_put(op->peer->worker, span);
            segment->span = NULL;
            return false;
        }
        if (i == 0) {
            segment->cut = (uci_cut_t)uci_cut_head(cut);
        }
    }
    segment->cut |= (uci_cut_t)(uci_cut_tail(cut) << 8);
    if (uci_unlikely(uci_edge.span_filled != NULL)) {
        uci_edge.span_filled(op, span, (size_t)(place - span));
    }
    op->chunk.next += count;
    return true;
}

static uci_control_t *uci_superpipe_describe(const uci_send_op_t *op)
{
    const uci_bounce_send_t *bounce     = uci_path_state(op, uci_bounce_send_t);
    const uci_bounce_segment_t *segment = &bounce->segment;
    uint32_t i, words = segment->chunks + !op->peer->in_clear;
    uci_control_t *msg = uci_control_get(op->peer, UCI_AM_SEGMENT, op->frame->seq, words * sizeof(uint64_t));
    uint64_t *payload;

    if (msg == NULL) {
        return NULL;
    }
    payload = (uint64_t *)(void *)msg->payload;
    for (i = 0; i < segment->chunks; ++i) {
        payload[i] = uci_merkle_leaf(op->chunk.tree, segment->first + i);
    }
    if (!op->peer->in_clear) {
        payload[segment->chunks] = segment->counter;
    }
    msg->hdr.flags  = UCI_AM_FLAG_BOUNCE;
    msg->hdr.digest = (uint8_t)op->chunk.digest->id;
    msg->hdr.op     = op->way.remote_op;
    msg->hdr.index  = segment->first;
    msg->hdr.length = segment->length;
    msg->hdr.value  = segment->cut;
    if (op->chunk.next == op->chunk.count) {
        msg->hdr.flags |= UCI_AM_FLAG_LAST;
        msg->hdr.extra = uci_merkle_root(op->chunk.tree, (uint32_t)op->frame->seq, op->length, op->chunk.size);
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
        msg->length = uci_sealed_segment(op->peer, bounce->segment.length, bounce->segment.chunks);
        msg->op     = op;
        msg->done   = uci_superpipe_span_done;
        msg->span   = bounce->segment.span;
        ++bounce->spans;
        uci_send_op_pin(op);
    } else {
        uci_span_put(op->peer->worker, bounce->segment.span);
    }
    bounce->segment.span = NULL;
    if (op->chunk.next == op->chunk.count) {
        uci_list_del(&op->way.link);
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
        if (uci_unlikely(op->status != UCS_OK)) {
            uci_send_op_fail(op, op->status);
            return;
        }
        uci_list_del(&op->way.link); /* uci_send_part_done() puts it back */
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
    op->way.ops = &uci_superpipe_path;
    (void)uci_superpipe_fill(op, UCI_SUPERPIPE_KEEP);
}

/* Offer what is filled, go on with the rest */
static bool uci_superpipe_matched(uci_send_op_t *op)
{
    if (uci_conversation_is_leaving(&op->peer->conversation)) {
        return false;
    }
    op->state = UCI_SEND_BOUNCING;
    UCI_STATS_INC(bounce_messages);
    UCI_STATS_ADD(bounce_bytes, op->length);
    /* no uci_grant_ahead(): that would register the user's buffer, which this path spares */
    uci_list_add_tail(&op->peer->worker->xfer.bounces, &op->way.link);
    uci_superpipe_step(op);
    return true;
}

static unsigned uci_superpipe_progress(uci_worker_t *worker)
{
    uci_list_for_each_safe(op, &worker->xfer.bounces, uci_send_op_t, way.link)
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
        part = uci_min(length, op->chunk.size);
        if (op->chunk.digest->digest(data, part) != *leaves) {
            return false;
        }
    }
    return true;
}

/* A segment of a generic datatype, verified as a whole and then unpacked. @return false: that is not possible. */
static bool uci_superpipe_unpack(uci_recv_op_t *op, uint32_t first, const char *data, uint32_t length,
                                 const uint64_t *leaves, uci_cut_t cut)
{
    uint32_t i, count = (uint32_t)uci_div_up(length, op->chunk.size);

    if (!uci_ordered_is_next(&op->ordered, (uint64_t)first * op->chunk.size) ||
        !uci_superpipe_is_right(op, data, length, leaves) || !uci_recv_op_unpack_next(op, first, data, length, cut)) {
        return false;
    }
    op->way.arrived += count;
    for (i = 0; i < count; ++i) {
        uci_recv_op_chunk_good(op, first + i, leaves[i], UCI_RUNG_NONE, false);
    }
    return true;
}

/* What was rejected is missing, and asked for */
static void uci_superpipe_reject(uci_recv_op_t *op)
{
    uci_worker_t *worker = op->peer->worker;

    uci_ask_name(&op->ask);
    uci_control_count_dropped(worker);
}

void uci_superpipe_open(uci_recv_op_t *op, uint32_t first, char *data, uint32_t length, const uint64_t *leaves,
                        uci_cut_t cut)
{
    bool whole = (op->buffer->kind == UCI_BUFFER_GENERIC); /* it is unpacked as it was packed, in one piece */
    uint32_t i, part = 0, left = length, count = (uint32_t)uci_div_up(length, op->chunk.size);
    char *record = data, *place = data;

    for (i = 0; i < count; ++i, left -= part, record += part + UCI_SEALED_OVERHEAD) {
        part = uci_min(left, op->chunk.size);
        if (!uci_sealed_open_chunk(op->peer, leaves[count] + i, record, part)) {
            uci_superpipe_reject(op);
            if (whole) {
                return;
            }
        } else if (whole) {
            place = (char *)memmove(place, record + UCI_SEALED_FRONT, part) + part;
        } else {
            uci_superpipe_take(op, first + i, record + UCI_SEALED_FRONT, part, &leaves[i], 0);
        }
    }
    if (whole) {
        uci_superpipe_take(op, first, data, length, leaves, cut);
    }
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
        part = uci_min(length, op->chunk.size);
        ++op->way.arrived;
        if (op->chunk.state[index] == UCI_CHUNK_GOOD) {
            uci_unseen_pass(op->chunk.digest, data, part, *leaves);
            continue;
        }
        value = uci_buffer_write(op->buffer, (uint64_t)index * op->chunk.size, data, part, op->chunk.digest, *leaves);
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
