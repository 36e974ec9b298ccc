/* SPDX-License-Identifier: BSD-3-Clause */
#include "get.h"

#include <stdlib.h>

#include "base/ask.h"
#include "base/wire_check.h"
#include "base/am_handler.h"
#include "both_ways.h"
#include "link/control.h"
#include "descent.h"
#include "fetch.h"
#include "grant.h"
#include "util/log.h"
#include "recv_common.h"
#include "base/recv_table.h"
#include "repair.h"
#include "link/sealed.h"
#include "send_common.h"
#include "base/span.h"
#include "live/stats.h"
#include "stream.h"
#include "superpipe.h"
#include "base/worker_lock.h"

/* Bytes of a segment, at least, if there is more than one. Each costs UCX a round trip and a few messages (measured on tcp:
 * 25 us), and when one is complete its chunks should still be in the cache */
#define UCI_GET_SEGMENT (4u << 20)

/* Within a node a segment costs little, and is to be digested while it is in the core's own cache (measured, both ways at once, with 1 MiB and
 * with 4 MiB: 4 MB 675 and 730 us, 16 MB 7,110 and 8,140; with 512 KiB 660 and 6,870, but 2 MB take 3 % longer) */
#define UCI_GET_SEGMENT_NEAR (1u << 20)

/* Chunks digested before UCX gets its turn: meanwhile neither side feeds the network or empties it, whose buffers hold some ten
 * microseconds (10 Gbit/s, 1 MiB at once: 5 % of the bandwidth). Within a node nothing is waiting there (measured, 2 MB both ways at once:
 * 345 us with 64, 385 with 4) */
#define UCI_GET_TURN      4
#define UCI_GET_TURN_NEAR 64

/* Of the same node one of us reads the other's slots */
static bool uci_get_is_near(const uci_peer_t *peer)
{
    return peer->slots.maps_ours || (peer->slots.map.slots != NULL);
}

static uint32_t uci_get_turn(const uci_peer_t *peer)
{
    return uci_get_is_near(peer) ? UCI_GET_TURN_NEAR : UCI_GET_TURN;
}

static uint64_t uci_get_segment(const uci_peer_t *peer)
{
    return uci_get_is_near(peer) ? UCI_GET_SEGMENT_NEAR : UCI_GET_SEGMENT;
}

/* Segments of about the same size: a small last one would cost as much as a large one */
static uint32_t uci_get_segment_chunks(const uci_send_op_t *op)
{
    return (uint32_t)uci_div_up(op->chunk.count, uci_max(op->length / uci_get_segment(op->peer), 1ul));
}

/* Digests of a message of one segment and so many chunks travel in its offer; half a MiB to 1.4 MiB on tcp */
#define UCI_GET_INLINE (UCI_CONTROL_POOLED / sizeof(uint64_t))

/* --------------------------------------------------------------- sender */

typedef struct uci_get_send {
    uint32_t digested; /* chunks */
} uci_get_send_t;

static bool uci_get_is_inline(const uci_send_op_t *op)
{
    return (op->chunk.count <= UCI_GET_INLINE) && (op->length < 2 * uci_get_segment(op->peer));
}

/* The next @a count chunks */
static void uci_get_digest(uci_send_op_t *op, uint32_t count)
{
    uci_get_send_t *get = uci_path_state(op, uci_get_send_t);
    uint32_t length, end = get->digested + uci_min(count, op->chunk.count - get->digested);
    uint64_t offset;

    for (; get->digested < end; ++get->digested) {
        if (uci_merkle_has_leaf(op->chunk.tree, get->digested)) {
            continue; /* a copy, digested when it was made */
        }
        offset = (uint64_t)get->digested * op->chunk.size;
        length = uci_chunk_length(op->length, op->chunk.size, get->digested);
        uci_merkle_set_leaf(op->chunk.tree, get->digested,
                            op->chunk.digest->digest(uci_buffer_direct(op->buffer, offset, length), length));
    }
    if (get->digested == op->chunk.count) {
        uci_both_send_ends(op);
    }
}

/* Begin with its digests */
static void uci_get_start(uci_send_op_t *op)
{
    if (op->buffer->kind == UCI_BUFFER_CONTIG) {
        op->way.ops = &uci_get_path;
        uci_list_add_tail(&op->peer->worker->xfer.offers, &op->way.link);
    }
}

static void uci_get_offer_segment(uci_send_op_t *op, uint32_t first, uint32_t chunks)
{
    uint64_t offset = (uint64_t)first * op->chunk.size;
    uint64_t length = uci_min((uint64_t)chunks * op->chunk.size, op->length - offset);
    uci_control_t *msg;

    msg = uci_get_is_inline(op) ? uci_descent_get_leaves(op, UCI_AM_SEGMENT, UCI_AM_FLAG_LAST)
                                : uci_control_get(op->peer, UCI_AM_SEGMENT, op->frame->seq, 0);
    if (msg == NULL) {
        return; /* the receiver will ask for what it lacks */
    }
    msg->hdr.digest = (uint8_t)op->chunk.digest->id;
    msg->hdr.op     = op->way.remote_op;
    msg->hdr.index  = first;
    msg->hdr.length = (uint32_t)length;
    msg->more       = msg->length;
    msg->data       = uci_buffer_direct(op->buffer, offset, length);
    msg->length     = length;
    msg->op         = op;
    msg->done       = uci_send_part_done;
    uci_send_op_pin(op);
    uci_control_send(msg);
}

static void uci_get_offer(uci_send_op_t *op)
{
    uci_get_send_t *get = uci_path_state(op, uci_get_send_t);
    uint32_t first, chunks = uci_get_segment_chunks(op);

    op->state      = UCI_SEND_OFFERED;
    op->chunk.next = op->chunk.count;
    UCI_STATS_INC(get_messages);
    UCI_STATS_ADD(get_bytes, op->length);
    uci_grant_ahead(op);
    if (uci_get_is_inline(op)) {
        uci_list_del(&op->way.link);
        op->state = UCI_SEND_WAIT_FIN;
    } else if (get->digested == op->chunk.count) {
        uci_list_add_tail(&op->peer->worker->xfer.offers, &op->way.link); /* to tell the digests in the next turn */
    }
    for (first = 0; first < op->chunk.count; first += chunks) {
        uci_get_offer_segment(op, first, chunks);
    }
}

/* Offer all its segments, once their digests travel with them */
static bool uci_get_matched(uci_send_op_t *op)
{
    uci_get_send_t *get = uci_path_state(op, uci_get_send_t);

    if (uci_conversation_is_leaving(&op->peer->conversation)) {
        return false;
    }
    if (uci_get_is_inline(op) && (get->digested < op->chunk.count)) {
        op->state = UCI_SEND_MATCHED;
    } else {
        uci_get_offer(op);
    }
    return true;
}

/* In the order of sending: what was offered first is fetched first */
static void uci_get_send_progress(uci_worker_t *worker)
{
    uci_send_op_t *op         = uci_container_of(worker->xfer.offers.next, uci_send_op_t, way.link);
    const uci_get_send_t *get = uci_path_state(op, uci_get_send_t);

    uci_get_digest(op, uci_get_turn(op->peer));
    if (get->digested < op->chunk.count) {
        return;
    }
    uci_list_del(&op->way.link);
    if (op->state == UCI_SEND_OFFERED) {
        op->state = UCI_SEND_WAIT_FIN;
        uci_descent_send_leaves(op, UCI_AM_FLAG_LAST);
    } else if ((op->state == UCI_SEND_MATCHED) && uci_conversation_is_leaving(&op->peer->conversation)) {
        op->chunk.next = 0;
        uci_stream_rest(op);
    } else if (op->state == UCI_SEND_MATCHED) {
        uci_get_offer(op);
    }
}

/* ------------------------------------------------------------- receiver */

/* A segment that UCX is fetching */
typedef struct uci_segment {
    uci_recv_op_t *op; /* uci_fetch_t */
    uci_list_t link;   /* in worker->landed */
    uint32_t done;     /* bytes digested */
    uint32_t first;    /* chunk */
    uint32_t length;
    size_t fetched; /* bytes of UCX's: more than `length` if they are sealed */
    char *target;
    void *staging; /* freed when done; NULL: straight into the user's buffer, or a span */
    void *span;    /* given back when done */
    bool bounced;
    uci_cut_t cut;
    uint64_t leaves[]; /* bounced: digests of the chunks */
} uci_segment_t;

_Static_assert(offsetof(uci_segment_t, op) == offsetof(uci_fetch_t, op), "it begins as a fetch");

static void uci_segment_put(uci_segment_t *segment)
{
    uci_span_put(segment->op->peer->worker, segment->span);
    free(segment->staging);
    free(segment);
}

/* Of the bounce path: into a span, or other memory while there is none */
static char *uci_segment_land(uci_segment_t *segment)
{
    segment->span = (segment->fetched <= UCI_SPAN_SIZE) ? uci_span_get(segment->op->peer->worker, 0) : NULL;
    if (segment->span == NULL) {
        segment->staging = malloc(segment->fetched);
    }
    return (segment->span != NULL) ? segment->span : segment->staging;
}

static uci_segment_t *uci_segment_get(uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *leaves,
                                      size_t leaves_length)
{
    bool bounced           = (hdr->flags & UCI_AM_FLAG_BOUNCE) != 0;
    uci_segment_t *segment = (bounced || uci_recv_op_collect(op)) ? calloc(1, sizeof(*segment) + leaves_length) : NULL;

    if (segment == NULL) {
        return NULL;
    }
    uci_list_init(&segment->link);
    segment->op      = op;
    segment->first   = hdr->index;
    segment->length  = hdr->length;
    segment->fetched = uci_sealed_segment(op->peer, hdr->length, uci_div_up(hdr->length, op->chunk.size));
    segment->bounced = bounced;
    segment->cut     = (uci_cut_t)hdr->value;
    if (bounced) {
        memcpy(segment->leaves, leaves, leaves_length);
        segment->target = uci_segment_land(segment);
    } else {
        segment->target = uci_buffer_target(op->buffer, (uint64_t)hdr->index * op->chunk.size, hdr->length,
                                            &segment->staging);
    }
    if (segment->target == NULL) {
        free(segment);
        return NULL;
    }
    return segment;
}

/* The next chunks. @return true if that was all. */
static bool uci_segment_digest(uci_segment_t *segment)
{
    uci_recv_op_t *op = segment->op;
    uint32_t index, length;
    uint32_t turn = uci_get_turn(op->peer);
    uint64_t value;

    for (; (turn > 0) && (segment->done < segment->length); --turn, segment->done += length) {
        index  = segment->first + (segment->done / op->chunk.size);
        length = uci_chunk_length(op->length, op->chunk.size, index);
        value  = op->chunk.digest->digest(segment->target + segment->done, length);
        if (segment->staging != NULL) {
            uci_buffer_store(op->buffer, (uint64_t)index * op->chunk.size, segment->target + segment->done, length);
        }
        uci_recv_op_chunk_landed(op, index, value);
    }
    return segment->done == segment->length;
}

/* It has failed, and may have written over what something else had brought before */
static void uci_segment_look(const uci_segment_t *segment)
{
    uci_recv_op_t *op = segment->op;
    uint32_t index, length, done;

    for (done = 0; !segment->bounced && (segment->staging == NULL) && (done < segment->length); done += length) {
        index  = segment->first + (done / op->chunk.size);
        length = uci_chunk_length(op->length, op->chunk.size, index);
        uci_recv_op_chunk_torn(op, index, segment->target + done, length);
    }
}

/* All that there was to do with it is done */
static void uci_segment_finish(uci_segment_t *segment)
{
    uci_recv_op_t *op = segment->op;

    uci_segment_put(segment);
    uci_repair_get_unpin(op);
    uci_recv_op_advance(op);
}

static void uci_get_recv_progress(uci_worker_t *worker)
{
    uci_segment_t *segment = uci_container_of(worker->xfer.landed.next, uci_segment_t, link);

    if (uci_segment_digest(segment)) {
        uci_list_del(&segment->link);
        uci_segment_finish(segment);
    }
}

static void uci_get_cleanup(uci_worker_t *worker)
{
    uci_list_for_each_safe(segment, &worker->xfer.landed, uci_segment_t, link)
    {
        uci_list_del(&segment->link);
        uci_segment_put(segment);
    }
}

static void uci_segment_done(uci_segment_t *segment, ucs_status_t status)
{
    uci_recv_op_t *op = segment->op;

    if (status != UCS_OK) {
        uci_info("fetching %u bytes from %s failed: %s", segment->length, uci_peer_name(op->peer),
                 uci_ucp.status_string(status));
        uci_segment_look(segment);
        uci_ask_name(&op->ask);
        uci_control_ask_soon(op->peer->worker);
        uci_segment_finish(segment);
        return;
    }
    if (segment->bounced && !op->peer->in_clear) {
        uci_superpipe_open(op, segment->first, segment->target, segment->length, segment->leaves, segment->cut);
    } else if (segment->bounced) {
        uci_superpipe_take(op, segment->first, segment->target, segment->length, segment->leaves, segment->cut);
    } else if (!uci_segment_digest(segment)) {
        uci_list_add_tail(&op->peer->worker->xfer.landed, &segment->link);
        return;
    }
    uci_segment_finish(segment);
}

void uci_fetch_segment_done(void *request, ucs_status_t status, size_t length, void *user_data)
{
    uci_segment_t *segment = user_data;
    uci_worker_t *worker   = segment->op->peer->worker;

    uci_ucp.request_free(request);
    uci_worker_enter(worker);
    uci_segment_done(segment, status);
    uci_worker_leave(worker);
}

/* Nobody offers memory in clear where all is sealed, but for spans, which hold records */
static const char *uci_get_check_segment(const uci_am_t *am)
{
    return (am->peer->in_clear || (am->hdr->flags & UCI_AM_FLAG_BOUNCE)) ? uci_wire_check_digest(am->hdr)
                                                                         : UCI_WIRE_IN_CLEAR;
}

/* Is it one of a whole number of chunks, or the end? All segments are offered once, so that together they are no more than the message. */
static const char *uci_get_check_place(const uci_recv_op_t *op, const uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uint64_t end            = ((uint64_t)hdr->index * op->chunk.size) + hdr->length;
    uint64_t leaves         = (hdr->flags & UCI_AM_FLAG_BOUNCE) ? uci_div_up((uint64_t)hdr->length, op->chunk.size)
                              : (hdr->flags & UCI_AM_FLAG_LAST) ? op->chunk.count
                                                                : 0;
    uint64_t words          = leaves + !op->peer->in_clear; /* and the counter of its records */

    if ((hdr->index >= op->chunk.count) || (hdr->length == 0) || (end > op->length) ||
        ((end < op->length) && (hdr->length % op->chunk.size != 0))) {
        return "a segment that the message does not have";
    }
    if (op->way.offered + hdr->length > op->length) {
        return "one more segment than the message has";
    }
    return (am->length == words * sizeof(uint64_t)) ? NULL : "another number of digests than it has chunks";
}

static void uci_get_on_segment(uci_am_t *am)
{
    const uci_am_hdr_t *hdr   = am->hdr;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv_am   = uci_fetch_segment_done};
    uci_worker_t *worker      = am->peer->worker;
    uci_recv_op_t *op         = uci_recv_op_of(am);
    uci_segment_t *segment;
    ucs_status_ptr_t request;

    if ((op == NULL) || (am->peer->conversation.status != UCS_OK)) {
        return; /* no longer needed */
    }
    segment = uci_segment_get(op, hdr, am->data, am->length);
    if (segment == NULL) {
        uci_error("failed to allocate what a segment of %u bytes needs", hdr->length);
        return;
    }

    uci_control_heard(op);
    ++op->way.gets;
    op->way.offered += hdr->length;
    if (segment->bounced) {
        uci_recv_op_learn_root(op, hdr);
    } else if (hdr->flags & UCI_AM_FLAG_LAST) {
        uci_descent_on_leaves(am);
    }
    if (segment->span != NULL) {
        uci_span_set_memh(worker, &param);
    }
    param.user_data = segment;
    request         = uci_ucp.am_recv_data_nbx(worker->ucp, am->desc, segment->target, segment->fetched, &param);
    am->kept        = !UCS_PTR_IS_ERR(request);
    if (!UCS_PTR_IS_PTR(request)) {
        uci_segment_done(segment, UCS_PTR_STATUS(request));
    }
}

UCI_AM_HANDLER(SEGMENT, 20, "S, answer to CTS: `length` bytes from chunk `index` on are offered",
               "by UCX's rendezvous; leaves in its header", "R fetches them", "R asks for the chunks with REPAIR",
               .flags = UCI_AM_FLAG_LAST | UCI_AM_FLAG_BOUNCE, .max = UINT32_MAX, .grain = sizeof(uint64_t),
               .about = UCI_AM_ABOUT_RECV, .carries = UCI_AM_CARRIES_OFFER, .hit = UCI_AM_HIT(HEADER),
               .check = uci_get_check_segment, .check_recv = uci_get_check_place, .take = uci_get_on_segment);

static unsigned uci_get_progress(uci_worker_t *worker)
{
    unsigned count = 0;

    if (!uci_list_is_empty(&worker->xfer.offers)) {
        uci_get_send_progress(worker);
        ++count;
    }
    if (!uci_list_is_empty(&worker->xfer.landed)) {
        uci_get_recv_progress(worker);
        ++count;
    }
    return count;
}

static void uci_get_describe_send(const uci_send_op_t *op, char *text, size_t size)
{
    snprintf(text, size, "; fetched, digested %u", uci_path_state(op, uci_get_send_t)->digested);
}

const uci_path_ops_t uci_get_path = {.way           = UCI_WAY_GET,
                                     .progress      = uci_get_progress,
                                     .cleanup       = uci_get_cleanup,
                                     .start         = uci_get_start,
                                     .matched       = uci_get_matched,
                                     .describe_send = uci_get_describe_send};
