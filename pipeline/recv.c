/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv.h"

#include <stdlib.h>

#include "descent.h"
#include "digest_small.h"
#include "direct.h"
#include "log.h"
#include "message_check.h"
#include "peer_link.h"
#include "process.h"
#include "repair.h"
#include "report.h"
#include "request.inl"
#include "stats.h"
#include "unexpected.h"
#include "wire_check.h"

/* Times that a root that does not match is asked for again */
#define UCI_ROOT_ATTEMPTS 4

/* -------------------------------------------------------------- frames */

void uci_recv_count(size_t length)
{
    UCI_STATS_INC(messages_received);
    UCI_STATS_ADD(bytes_received, length);
}

static UCI_NOINLINE void uci_recv_truncated(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                                            uci_frame_kind_t kind, uint64_t length)
{
    if (uci_frame_wants_fin(kind)) {
        uci_control_fin(peer, seq, UCI_AM_FLAG_TRUNCATED);
    }
    uci_recv_count(0);
    uci_request_complete_recv(req, UCS_ERR_MESSAGE_TRUNCATED, tag, length);
}

/* Nothing can be done for this message: never silently */
static UCI_NOINLINE void uci_recv_give_up(uci_request_t *req, ucp_tag_t tag, size_t length, const char *reason)
{
    uci_repair_count_lost();
    uci_report_orphan(req->worker, tag, length, reason);
    uci_request_complete_recv(req, uci_repair_policy(), tag, 0);
}

/* It is for this receive, from now on: of who else could ask for it */
static void uci_recv_take(uci_worker_t *worker, uci_request_t *req)
{
    if (uci_match_recv_is_posted(&req->match)) {
        uci_match_take_recv(&worker->match, &req->match);
    }
}

/* The receive that a frame, the next one of its peer, is for; or NULL */
UCI_INLINE uci_request_t *uci_recv_find(uci_peer_t *peer, ucp_tag_t tag)
{
    uci_match_recv_t *posted;

    if (uci_unlikely(peer->bound != NULL)) {
        return peer->bound;
    }
    posted = uci_match_find_recv(&peer->worker->match, tag);
    return (posted != NULL) ? uci_container_of(posted, uci_request_t, match) : NULL;
}

/* Its payload, damaged, is in the user's buffer: this receive is matched to the message, and to no other that may be shorter */
static UCI_NOINLINE void uci_recv_bind(uci_peer_t *peer, uci_request_t *req)
{
    uci_recv_take(peer->worker, req);
    peer->bound = req;
}

static void uci_recv_frame_over(uci_peer_t *peer, uci_request_t *req, size_t length)
{
    uci_recv_take(peer->worker, req);
    peer->bound = NULL;
    uci_link_delivered(peer, length);
}

/* Into memory in pieces a message goes when it has been verified, from a copy that nobody else can write to */
static bool uci_recv_scattered(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, uci_request_t *req)
{
    uint64_t seq       = peer->rx_next;
    uci_frame_t *frame = uci_frame_get(&peer->worker->frames, hdr->length);

    if (frame == NULL) {
        return false; /* as good as damaged: it is asked for again */
    }
    if (uci_digest_by_id(hdr->digest)->copy(frame->wire, payload, hdr->length) != hdr->value) {
        uci_frame_put(&peer->worker->frames, frame);
        return false;
    }
    uci_recv_frame_over(peer, req, hdr->length);
    UCI_STATS_INC(chunks_verified);
    uci_recv_count(hdr->length);
    uci_buffer_store(&req->buffer, 0, frame->wire, hdr->length);
    uci_frame_put(&peer->worker->frames, frame);
    if (hdr->kind == UCI_FRAME_SYNC) {
        uci_control_fin(peer, seq, 0);
    }
    uci_request_complete_recv(req, req->buffer.status, hdr->tag, hdr->length);
    return true;
}

static bool uci_recv_rndv(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, uci_request_t *req)
{
    const uci_digest_ops_t *digest = uci_digest_by_id(hdr->digest);
    uint64_t seq                   = peer->rx_next;
    uci_rndv_desc_t desc;

    if (digest->copy(&desc, payload, sizeof(desc)) != hdr->value) {
        return false;
    }
    uci_recv_frame_over(peer, req, sizeof(desc));
    uci_recv_descriptor(req, peer, seq, hdr->tag, digest, &desc);
    return true;
}

static bool uci_recv_arrived_other(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                   uci_request_t *req)
{
    uint64_t seq = peer->rx_next;

    if (hdr->kind == UCI_FRAME_RNDV) {
        return uci_recv_rndv(peer, hdr, payload, req);
    }
    if (hdr->length > req->buffer.length) {
        uci_recv_frame_over(peer, req, hdr->length);
        uci_recv_truncated(req, peer, seq, hdr->tag, (uci_frame_kind_t)hdr->kind, hdr->length);
        return true;
    }
    return uci_recv_scattered(peer, hdr, payload, req);
}

/* Move the payload into the user's buffer, with its digest; in line for the smallest */
UCI_INLINE uint64_t uci_recv_store(void *dst, const char *payload, const uci_frame_hdr_t *hdr)
{
    if (uci_likely(hdr->length <= UCI_DIGEST_SMALL_MAX) && uci_likely(hdr->digest == UCI_DIGEST_XXH3)) {
        return uci_digest_xxh3_small_copy(dst, payload, hdr->length);
    }
    return uci_digest_by_id(hdr->digest)->copy(dst, payload, hdr->length);
}

bool uci_recv_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    uci_request_t *req = uci_recv_find(peer, hdr->tag);
    size_t length      = hdr->length;

    if (req == NULL) {
        return uci_unexpected_keep(peer, hdr, payload);
    }
    if (uci_unlikely(hdr->kind != UCI_FRAME_EAGER) || uci_unlikely(length > req->buffer.length) ||
        uci_unlikely(req->buffer.kind != UCI_BUFFER_CONTIG)) {
        return uci_recv_arrived_other(peer, hdr, payload, req);
    }
    if (uci_unlikely(uci_recv_store(req->buffer.data, payload, hdr) != hdr->value)) {
        uci_recv_bind(peer, req);
        return false;
    }
    if (uci_likely(uci_match_recv_is_posted(&req->match))) {
        uci_match_take_recv(&peer->worker->match, &req->match);
    } else {
        peer->bound = NULL;
    }
    uci_link_delivered(peer, length);
    UCI_STATS_INC(chunks_verified);
    UCI_STATS_INC(messages_received);
    UCI_STATS_ADD(bytes_received, length);
    uci_request_complete_recv_inline(req, UCS_OK, hdr->tag, length);
    return true;
}

void uci_recv_deliver_lost(uci_request_t *req, const char *payload, size_t length, ucp_tag_t tag, ucs_status_t status)
{
    if ((status == UCS_OK) && (length > req->buffer.length)) {
        status = UCS_ERR_MESSAGE_TRUNCATED;
    }
    uci_buffer_store(&req->buffer, 0, payload, uci_min(length, req->buffer.length));
    uci_request_complete_recv(req, status, tag, length);
}

void uci_recv_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length)
{
    uci_request_t *req  = uci_recv_find(peer, hdr->tag);
    ucs_status_t status = uci_repair_policy();
    uint64_t seq        = peer->rx_next - 1;

    length = (hdr->kind == UCI_FRAME_RNDV) ? 0 : length; /* of its descriptor nobody has any use */
    if (uci_frame_wants_fin(hdr->kind)) {
        uci_control_fin(peer, seq, 0);
    }
    if (req == NULL) {
        uci_unexpected_keep_lost(peer, hdr, payload, length, status);
        return;
    }
    uci_recv_take(peer->worker, req);
    peer->bound = NULL;
    uci_recv_deliver_lost(req, payload, length, hdr->tag, status);
}

/* ------------------------------------------------------------- posting */

ucs_status_ptr_t uci_recv(uci_worker_t *worker, void *data, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                          const ucp_request_param_t *param)
{
    ucp_datatype_t datatype = (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) ? param->datatype
                                                                                 : ucp_dt_make_contig(1);
    uci_message_t *message;
    ucs_status_t status;
    uci_request_t *req;

    message = uci_unexpected_find(worker, tag, tag_mask);
    if ((message == NULL) && uci_unlikely(param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    req = uci_request_get_inline(worker, param);
    if (uci_unlikely(req == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    req->flags |= UCI_REQUEST_RECV;

    status = uci_buffer_init_recv(&req->buffer, data, count, datatype);
    if (uci_unlikely(status != UCS_OK)) {
        uci_request_put(req);
        return UCS_STATUS_PTR(status);
    }

    if (message != NULL) {
        uci_unexpected_deliver(message, req);
    } else {
        uci_match_post(&worker->match, &req->match, tag, tag_mask);
    }
    return uci_request_posted_inline(req, param);
}

/* ---------------------------------------------------------- operations */

bool uci_recv_op_collect(uci_recv_op_t *op)
{
    if (op->buffer->kind != UCI_BUFFER_GENERIC) {
        return true;
    }
    op->packed = calloc(1, op->length); /* UCI_ON_ERROR=log delivers what there is: never what was here before */
    if (op->packed == NULL) {
        uci_error("failed to allocate %lu bytes for a packed message", (unsigned long)op->length);
        return false;
    }
    memcpy((char *)op->packed + op->ordered.offset, op->ordered.carry, op->ordered.carry_length);
    uci_buffer_init_recv(&op->own_buffer, op->packed, op->length, ucp_dt_make_contig(1));
    op->buffer = &op->own_buffer;
    return true;
}

/* Of another host there is no memory to share */
static bool uci_recv_is_shared(const uci_peer_t *peer)
{
    return !peer->known || (strcmp(peer->mark.host, peer->worker->mark.host) == 0);
}

const void *uci_recv_op_own(uci_recv_op_t *op, const void *data, size_t length)
{
    uci_worker_t *worker = op->peer->worker;
    void *own;

    if (uci_unlikely(length == 0)) {
        return ""; /* NULL is for no memory */
    }
    if (uci_likely(op->buffer->kind == UCI_BUFFER_CONTIG) || !uci_recv_is_shared(op->peer)) {
        return data;
    }
    if (length > worker->own_size) {
        own = malloc(length);
        if (own == NULL) {
            uci_error("failed to allocate %zu bytes for a chunk", length);
            return NULL;
        }
        free(worker->own_copy);
        worker->own_copy = own;
        worker->own_size = length;
    }
    return memcpy(worker->own_copy, data, length);
}

bool uci_recv_op_unpack(uci_recv_op_t *op, uint32_t index, const void *data, size_t length, uint64_t expected,
                        uci_cut_t cut)
{
    return uci_ordered_is_next(&op->ordered, (uint64_t)index * op->chunk_size) &&
           (op->digest->digest(data, length) == expected) &&
           uci_ordered_unpack(&op->ordered, op->buffer, data, length, cut);
}

/* The kernel and the form of copying that suit this length, of the digest that the sender chose */
static void uci_recv_op_choose(uci_recv_op_t *op)
{
    const uci_choice_t *choice = uci_plan_choose(op->peer->worker->copies, op->length);

    if (choice->digest->id == op->digest->id) {
        op->digest       = choice->digest;
        op->buffer->form = choice->form;
    }
}

static ucs_status_t uci_recv_op_create(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                                       const uci_digest_ops_t *digest, uint64_t length, uint32_t chunk_size,
                                       unsigned arity, uci_recv_op_t **op_p)
{
    uci_worker_t *worker = peer->worker;
    uint32_t chunks      = (uint32_t)uci_max(uci_div_up(length, chunk_size), 1ul);
    uci_recv_op_t *op;

    op = calloc(1, sizeof(*op) + (chunks * (sizeof(*op->expected) + sizeof(*op->state))));
    if (op == NULL) {
        uci_error("failed to allocate a receive operation of %u chunks", chunks);
        return UCS_ERR_NO_MEMORY;
    }
    if (uci_merkle_create(chunks, arity, &op->tree) != UCI_OK) {
        goto err_free;
    }
    op->slot = uci_recv_slot_get(worker, op);
    if (op->slot == UINT32_MAX) {
        goto err_free;
    }

    uci_list_init(&op->direct_link);
    op->peer           = peer;
    op->seq            = seq;
    op->req            = req;
    op->buffer         = &req->buffer;
    op->tag            = tag;
    op->digest         = digest;
    op->length         = length;
    op->chunk_size     = chunk_size;
    op->chunks         = chunks;
    op->expected       = (uint64_t *)(void *)(op + 1);
    op->state          = (uint8_t *)(op->expected + chunks);
    op->active_time    = uci_process_time_ns();
    op->dropped_before = worker->dropped;
    op->walk           = worker->walk;
    uci_list_add_tail(&worker->recv_ops, &op->link);
    ++worker->ops_active;
    uci_recv_op_choose(op);
    *op_p = op;
    return UCS_OK;

err_free:
    uci_merkle_destroy(op->tree);
    free(op);
    return UCS_ERR_NO_MEMORY;
}

static void uci_recv_op_destroy(uci_recv_op_t *op)
{
    uci_worker_t *worker = op->peer->worker;

    UCI_STATS_ADD(unrepaired_chunks, op->bad);
    uci_list_del(&op->link);
    uci_direct_stop(op);
    --worker->ops_active;
    ++worker->removals;
    uci_recv_slot_put(worker, op->slot);
    uci_merkle_destroy(op->tree);
    uci_repair_cleanup(op);
    free(op->packed);
    free(op);
}

void uci_recv_shutdown(uci_worker_t *worker)
{
    uci_list_for_each(op, &worker->recv_ops, uci_recv_op_t, link)
    {
        uci_repair_cleanup(op);
    }
}

void uci_recv_cleanup(uci_worker_t *worker)
{
    uci_list_for_each_safe(op, &worker->recv_ops, uci_recv_op_t, link)
    {
        uci_recv_op_destroy(op);
    }
}

void uci_recv_op_abandon(uci_recv_op_t *op, ucs_status_t status)
{
    uci_request_t *req = op->req;
    uci_peer_t *peer   = op->peer;
    uint64_t seq       = op->seq;
    ucp_tag_t tag      = op->tag;
    uint64_t length    = op->length;
    bool wants_fin     = !uci_direct_finish(op);

    if (op->packed != NULL) {
        /* UCI_ON_ERROR=log delivers what there is */
        uci_buffer_store(&req->buffer, op->ordered.offset, (char *)op->packed + op->ordered.offset,
                         length - op->ordered.offset);
    }
    if (status == UCS_OK) {
        status = req->buffer.status;
    }
    uci_recv_count(length);
    uci_recv_op_destroy(op); /* first: what FIN to oneself brings within the call must not find it */
    if (wants_fin) {
        uci_control_fin(peer, seq, 0);
    }
    uci_request_complete_recv(req, status, tag, length);
}

void uci_recv_op_cts(uci_recv_op_t *op, uint16_t flags)
{
    uci_control_t *msg = uci_control_get(op->peer, UCI_AM_CTS, op->seq, 0);

    if (msg != NULL) {
        msg->hdr.op    = op->slot;
        msg->hdr.flags = flags;
        msg->hdr.index = op->slotless;
        uci_control_send(msg);
    }
}

void uci_recv_op_finish(uci_recv_op_t *op)
{
    uci_recv_op_abandon(op, UCS_OK);
}

void uci_recv_descriptor(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                         const uci_digest_ops_t *digest, const uci_rndv_desc_t *desc)
{
    const char *wrong = uci_wire_check_desc(desc);
    uci_recv_op_t *op;
    ucs_status_t status;

    if (uci_unlikely(wrong != NULL)) {
        uci_control_fin(peer, seq, 0);
        uci_wire_refuse(peer, "a message", wrong);
        uci_recv_give_up(req, tag, sizeof(*desc), wrong);
        return;
    }
    if (desc->length > req->buffer.length) {
        uci_recv_truncated(req, peer, seq, tag, UCI_FRAME_RNDV, desc->length);
        return;
    }

    status = uci_recv_op_create(req, peer, seq, tag, digest, desc->length, desc->chunk_size, desc->arity, &op);
    if (status != UCS_OK) {
        uci_control_fin(peer, seq, 0);
        uci_recv_give_up(req, tag, desc->length, "there is no memory to receive it");
        return;
    }
    if (!uci_direct_take(op, desc->slot)) {
        uci_recv_op_cts(op, 0);
    }
}

/* --------------------------------------------------------------- chunks */

void uci_recv_op_chunk_good(uci_recv_op_t *op, uint32_t index, uint64_t value, uci_rung_t rung, bool changed)
{
    UCI_STATS_INC(chunks_verified);
    if (uci_unlikely((rung != UCI_RUNG_NONE) || changed || (op->state[index] == UCI_CHUNK_BAD))) {
        uci_repair_chunk_healed(op, index, rung, changed);
    }
    if (op->state[index] == UCI_CHUNK_BAD) {
        --op->bad;
    } else if (op->state[index] == UCI_CHUNK_LANDED) {
        --op->landed;
    }
    op->state[index]    = UCI_CHUNK_GOOD;
    op->expected[index] = value;
    ++op->good;
    uci_merkle_set_leaf(op->tree, index, value);
}

/* The user's buffer holds bytes of digest @a value for a chunk that should have @a expected */
static void uci_recv_op_compare(uci_recv_op_t *op, uint32_t index, uint64_t value, uint64_t expected)
{
    uint32_t length = uci_chunk_length(op->length, op->chunk_size, index);
    const void *data;

    if (value == expected) {
        uci_recv_op_chunk_good(op, index, value, UCI_RUNG_NONE, false);
        return;
    }
    data = uci_buffer_direct(op->buffer, (uint64_t)index * op->chunk_size, length);
    uci_repair_chunk_bad(op, index, expected, data, (data != NULL) ? length : 0);
}

void uci_recv_op_chunk_landed(uci_recv_op_t *op, uint32_t index, uint64_t value)
{
    ++op->arrived;
    switch (op->state[index]) {
    case UCI_CHUNK_GOOD:
        if (value != op->expected[index]) {
            /* repaired while this was on its way, and overwritten by it */
            --op->good;
            uci_recv_op_compare(op, index, value, op->expected[index]);
        }
        return;
    case UCI_CHUNK_MISSING:
        if (!op->have_leaves) {
            op->state[index]    = UCI_CHUNK_LANDED;
            op->expected[index] = value;
            ++op->landed;
            return;
        }
        break;
    case UCI_CHUNK_LANDED:
        op->expected[index] = value;
        return;
    default:
        break;
    }
    uci_recv_op_compare(op, index, value, op->expected[index]);
}

static void uci_recv_op_ask_root(uci_recv_op_t *op)
{
    op->have_root = false;
    if (++op->roots > UCI_ROOT_ATTEMPTS) {
        uci_repair_failed(op, "the root of its tree does not match");
        return;
    }
    uci_descent_start(op);
}

void uci_recv_op_advance(uci_recv_op_t *op)
{
    if ((op->gets > 0) || op->descending) {
        return;
    }
    if ((op->good < op->chunks) && (op->awaiting > 0)) {
        return;
    }
    if (op->good < op->chunks) {
        if ((op->bad > 0) && (op->good + op->bad == op->chunks)) {
            uci_repair_advance(op);
        }
        return;
    }

    if (op->tree != NULL) {
        if (!op->have_root) {
            uci_recv_op_ask_root(op);
            return;
        }
        if (uci_merkle_root(op->tree, (uint32_t)op->seq, op->length, op->chunk_size) != op->root) {
            UCI_STATS_INC(mismatched_roots);
            uci_recv_op_ask_root(op);
            return;
        }
    }
    uci_repair_healed(op);
    uci_recv_op_finish(op);
}

/* The next chunk of a generic datatype, if this is it. Behind the last one that comes there is no border, or it has no room to say. */
static bool uci_recv_op_unpack_data(uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uci_border_t behind = (hdr->flags & (UCI_AM_FLAG_LAST | UCI_AM_FLAG_FRAME)) ? 0 : (uci_border_t)hdr->extra;

    if (!uci_recv_op_unpack(op, hdr->index, data, length, hdr->value, uci_cut_between(op->border, behind))) {
        return false;
    }
    op->border = behind;
    return true;
}

/* Verify a chunk while it moves to where it belongs. @param value_p  its digest, not hdr->value if it is not whole.
 * @return false: no memory to collect it in. */
static bool uci_recv_op_store(uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *data, size_t length,
                              uint64_t *value_p)
{
    bool is_whole = (length == hdr->length);

    *value_p = uci_likely(is_whole) ? hdr->value : ~hdr->value;
    if (uci_unlikely(op->buffer->kind == UCI_BUFFER_GENERIC)) {
        if (is_whole && uci_recv_op_unpack_data(op, hdr, data, length)) {
            return true;
        }
        if (!uci_recv_op_collect(op)) {
            return false;
        }
    }
    if (uci_likely(is_whole)) {
        *value_p = uci_buffer_write(op->buffer, (uint64_t)hdr->index * op->chunk_size, data, length, op->digest,
                                    hdr->value);
    }
    return true;
}

void uci_recv_on_data(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    bool again = (hdr->flags & (UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_HANDOVER)) != 0;
    uint64_t value;
    uci_recv_op_t *op;

    op = (hdr->flags & UCI_AM_FLAG_HANDOVER) ? uci_recv_op_by_seq(peer, seq)
                                             : uci_recv_op_by_slot(peer->worker, hdr->op, peer, hdr->seq);
    if (uci_unlikely(op == NULL) && (hdr->flags & UCI_AM_FLAG_HANDOVER)) {
        op = uci_unexpected_adopt(peer, seq);
        op = ((op != NULL) && (uci_wire_check_for(op, hdr, data, length) == NULL)) ? op : NULL;
    }
    if (uci_unlikely(op == NULL)) {
        return; /* repeated, and no longer needed */
    }

    if ((hdr->flags & UCI_AM_FLAG_REPAIR) && (op->awaiting > 0)) {
        --op->awaiting;
    }
    if (op->state[hdr->index] == UCI_CHUNK_GOOD) {
        return;
    }

    uci_control_heard(op);
    ++op->arrived;
    uci_recv_op_learn_root(op, hdr);
    if (uci_unlikely(op->state[hdr->index] == UCI_CHUNK_LANDED)) {
        /* this copy tells whether it is needed */
        uci_recv_op_compare(op, hdr->index, op->expected[hdr->index], hdr->value);
        if (op->state[hdr->index] == UCI_CHUNK_GOOD) {
            uci_recv_op_advance(op);
            return;
        }
    }
    data = uci_recv_op_own(op, data, length);
    if ((data == NULL) || !uci_recv_op_store(op, hdr, data, length, &value)) {
        return; /* it is asked for again, and given up at last */
    }
    if (uci_likely(value == hdr->value)) {
        uci_recv_op_chunk_good(op, hdr->index, value, again ? UCI_RUNG_COPY : UCI_RUNG_NONE,
                               (hdr->flags & UCI_AM_FLAG_CHANGED) != 0);
    } else {
        uci_repair_chunk_bad(op, hdr->index, hdr->value, data, length);
    }
    uci_recv_op_advance(op);
}

/* While chunks come in, or have had no time to, it is slow: asked for now, those on their way would come twice. UCX loses nothing,
 * so that what is missing was dropped by us, or never sent for lack of memory. */
static bool uci_recv_op_is_stuck(const uci_recv_op_t *op)
{
    const uci_worker_t *worker = op->peer->worker;

    return (op->arrived == op->arrived_seen) &&
           (uci_process_time_ns() >= op->active_time + uci_control_delay(worker)) &&
           ((worker->dropped != op->dropped_before) || (op->asked >= UCI_RECV_PATIENCE));
}

void uci_recv_on_query(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr)
{
    uci_recv_op_t *op = uci_recv_op_by_seq(peer, seq);
    if (op != NULL) {
        uci_repair_ask_again(op, uci_recv_op_is_stuck(op));
    } else if ((seq < peer->rx_next) && !uci_unexpected_has(peer, seq)) {
        uci_control_fin(peer, seq, UCI_AM_FLAG_REPAIR);
    }
    /* else it has not been matched yet */
}

/* A chunk that was unpacked is not right after all. It can't be unpacked alone: all of them come once more. */
static void uci_recv_op_unpack_again(uci_recv_op_t *op)
{
    uint64_t end = op->ordered.offset + op->ordered.carry_length;
    uint32_t i;

    if ((end == 0) || !uci_recv_op_collect(op)) {
        return;
    }
    op->ordered.offset       = 0;
    op->ordered.carry_length = 0;
    for (i = 0; (uint64_t)i * op->chunk_size < end; ++i) {
        if (op->state[i] == UCI_CHUNK_GOOD) {
            --op->good;
            uci_repair_chunk_bad(op, i, op->expected[i], NULL, 0);
        }
    }
}

void uci_recv_op_leaf(uci_recv_op_t *op, uint32_t index, uint64_t leaf)
{
    switch (op->state[index]) {
    case UCI_CHUNK_LANDED:
        uci_recv_op_compare(op, index, op->expected[index], leaf);
        break;
    case UCI_CHUNK_GOOD:
        if (leaf != op->expected[index]) {
            --op->good;
            uci_repair_chunk_bad(op, index, leaf, NULL, 0);
            uci_recv_op_unpack_again(op);
        }
        break;
    default:
        op->expected[index] = leaf;
        break;
    }
}

void uci_recv_on_leaves(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uci_recv_op_t *op      = uci_recv_op_by_slot(peer->worker, hdr->op, peer, hdr->seq);
    const uint64_t *leaves = data;
    uint32_t i;

    if ((op == NULL) || (!(hdr->flags & UCI_AM_FLAG_LAST) && (op->good + op->landed + op->bad < op->chunks))) {
        return;
    }
    if (!(hdr->flags & UCI_AM_FLAG_LAST)) {
        UCI_STATS_ADD(tree_nodes, op->chunks);
        UCI_STATS_ADD(tree_bytes, sizeof(*hdr) + length);
    }
    op->root        = hdr->extra;
    op->have_root   = true;
    op->have_leaves = true;
    for (i = 0; i < op->chunks; ++i) {
        uci_recv_op_leaf(op, i, leaves[i]);
    }
    uci_descent_end(op);
    uci_recv_op_advance(op);
}
