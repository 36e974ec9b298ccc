/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv.h"

#include <stdlib.h>

#include "base/ask.h"
#include "base/am_handler.h"
#include "base/edge.h"
#include "digest/digest_small.h"
#include "base/unseen.h"
#include "early.h"
#include "link/link_recv.h"
#include "util/log.h"
#include "util/process.h"
#include "transfer/recv_common.h"
#include "recv_rndv.h"
#include "transfer/repair.h"
#include "transfer/stream_recv.h"
#include "base/request.inl"
#include "base/signed.h"
#include "live/stats.h"
#include "report/types_match.h"
#include "unexpected.h"
#include "user_am.h"
#include "base/wire_check.h"

/* -------------------------------------------------------------- frames */

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

    if (uci_unlikely(peer->rx.bound != NULL)) {
        return peer->rx.bound;
    }
    posted = uci_match_find_recv(&peer->worker->match, tag);
    return (posted != NULL) ? uci_container_of(posted, uci_request_t, match) : NULL;
}

/* Its payload, damaged, is in the user's buffer: this receive is matched to the message, and to no other that may be shorter */
static UCI_NOINLINE void uci_recv_bind(uci_peer_t *peer, uci_request_t *req)
{
    uci_recv_take(peer->worker, req);
    uci_link_bind(peer, req);
}

static void uci_recv_frame_over(uci_peer_t *peer, uci_request_t *req, size_t length)
{
    uci_recv_take(peer->worker, req);
    uci_link_bind(peer, NULL);
    uci_link_delivered(peer, length);
}

/* Into memory in pieces a message goes when it has been verified, from a copy that nobody else can write to */
static bool uci_recv_scattered(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, uci_request_t *req)
{
    uint64_t seq       = peer->rx.next;
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
    if (uci_unlikely(req->worker->msgs.watches_deliveries)) {
        uci_edge.delivered(req, peer, hdr->length);
    }
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
    uint64_t seq                   = peer->rx.next;
    uci_rndv_desc_t desc;

    if (digest->copy(&desc, payload, sizeof(desc)) != hdr->value) {
        return false;
    }
    uci_recv_frame_over(peer, req, sizeof(desc));
    uci_recv_descriptor(req, peer, seq, hdr->tag, digest, &desc);
    return true;
}

static uint64_t uci_recv_user_length(const uci_signed_frame_t *opened)
{
    uci_rndv_desc_t desc;

    if (opened->hdr.kind != UCI_FRAME_RNDV) {
        return opened->hdr.length;
    }
    memcpy(&desc, opened->payload, sizeof(desc));
    return desc.length;
}

/* The same of the smallest, whose digest is in line, for a receive that takes it: it is verified before it gets there */
UCI_INLINE bool uci_recv_small_word(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                    uci_request_t *req)
{
    size_t length = hdr->length - sizeof(uint64_t);
    char copy[UCI_DIGEST_SMALL_MAX];
    uci_sent_types_t types;

    if (uci_unlikely(uci_digest_xxh3_small_copy(copy, payload, hdr->length) != hdr->value)) {
        return false;
    }
    memcpy(&types.word, copy + length, sizeof(types.word));
    if (uci_likely(uci_signed_is_plain_match(req, types.word))) {
        UCI_STATS_INC(signatures_compared);
        req->flags &= ~(uint32_t)UCI_REQUEST_SIGNED;
    } else {
        uci_signed_read_untold(&types);
        uci_types_compare(req, peer, peer->rx.next, hdr->tag, length, &types);
    }
    uci_signed_copy(req->buffer.data, copy, length);
    uci_recv_take(peer->worker, req);
    uci_link_bind(peer, NULL);
    uci_link_delivered(peer, length);
    UCI_STATS_INC(chunks_verified);
    uci_recv_count(length);
    if (uci_unlikely(req->worker->msgs.watches_deliveries)) {
        uci_edge.delivered(req, peer, length);
    }
    uci_request_complete_recv_inline(req, UCS_OK, hdr->tag, length);
    return true;
}

UCI_INLINE bool uci_recv_is_small_word(const uci_frame_hdr_t *hdr, const uci_request_t *req)
{
    return (hdr->kind == UCI_SIGNED_EAGER) && (hdr->digest == UCI_DIGEST_XXH3) &&
           (hdr->length <= UCI_DIGEST_SMALL_MAX) && (hdr->length <= req->buffer.length + sizeof(uint64_t)) &&
           (req->buffer.kind == UCI_BUFFER_CONTIG);
}

/* What is left without its signature goes the usual way, from memory that nobody else can write to */
static bool uci_recv_signed(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, uci_request_t *req)
{
    uci_signed_frame_t opened;
    bool taken;

    if (!uci_signed_open(peer->worker, hdr, payload, &opened)) {
        return false;
    }
    if (req == NULL) {
        taken = uci_unexpected_keep_signed(peer, &opened.hdr, opened.payload, &opened.types);
    } else {
        uci_recv_bind(peer, req);
        uci_types_compare(req, peer, peer->rx.next, hdr->tag, uci_recv_user_length(&opened), &opened.types);
        taken = uci_recv_arrived_way(peer->worker)(peer, &opened.hdr, opened.payload);
    }
    uci_signed_close(peer->worker, &opened);
    return taken;
}

bool uci_recv_keep(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    if (uci_unlikely(uci_frame_is_signed(hdr->kind))) {
        return uci_recv_signed(peer, hdr, payload, NULL);
    }
    return uci_unexpected_keep(peer, hdr, payload);
}

static bool uci_recv_arrived_other(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                   uci_request_t *req)
{
    uint64_t seq = peer->rx.next;

    if (uci_recv_is_small_word(hdr, req)) {
        return uci_recv_small_word(peer, hdr, payload, req);
    }
    if (uci_frame_is_signed(hdr->kind)) {
        return uci_recv_signed(peer, hdr, payload, req);
    }
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

/* All but eager messages without a signature */
static bool uci_recv_arrived_kind(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    uci_request_t *req;

    if (uci_frame_is_user_am(hdr->kind)) {
        return uci_user_am_arrived(peer, hdr, payload);
    }
    req = uci_recv_find(peer, hdr->tag);
    return (req != NULL) ? uci_recv_arrived_other(peer, hdr, payload, req) : uci_recv_keep(peer, hdr, payload);
}

/* Move the payload into the user's buffer, with its digest; in line for the smallest */
UCI_INLINE uint64_t uci_recv_store(void *dst, const char *payload, const uci_frame_hdr_t *hdr)
{
    if (uci_likely(hdr->length <= UCI_DIGEST_SMALL_MAX) && uci_likely(hdr->digest == UCI_DIGEST_XXH3)) {
        return uci_digest_xxh3_small_copy(dst, payload, hdr->length);
    }
    return uci_digest_by_id(hdr->digest)->copy(dst, payload, hdr->length);
}

UCI_INLINE bool uci_recv_frame(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, bool is_watched)
{
    size_t length = hdr->length;
    uci_request_t *req;

    if (uci_unlikely(hdr->kind != UCI_FRAME_EAGER)) {
        return uci_recv_arrived_kind(peer, hdr, payload);
    }
    req = uci_recv_find(peer, hdr->tag);
    if (req == NULL) {
        return uci_unexpected_keep(peer, hdr, payload);
    }
    if (uci_unlikely(length > req->buffer.length) || uci_unlikely(req->buffer.kind != UCI_BUFFER_CONTIG)) {
        return uci_recv_arrived_other(peer, hdr, payload, req);
    }
    if (uci_unlikely(uci_recv_store(req->buffer.data, payload, hdr) != hdr->value)) {
        uci_recv_bind(peer, req);
        return false;
    }
    if (uci_likely(uci_match_recv_is_posted(&req->match))) {
        uci_match_take_recv(&peer->worker->match, &req->match);
    } else {
        uci_link_bind(peer, NULL);
    }
    uci_link_delivered(peer, length);
    UCI_STATS_INC(chunks_verified);
    UCI_STATS_INC(messages_received);
    UCI_STATS_ADD(bytes_received, length);
    if (is_watched) {
        uci_edge.delivered(req, peer, length);
    }
    uci_request_complete_recv_inline(req, UCS_OK, hdr->tag, length);
    return true;
}

bool uci_recv_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    return uci_recv_frame(peer, hdr, payload, false);
}

static bool uci_recv_arrived_watched(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    return uci_recv_frame(peer, hdr, payload, true);
}

uci_recv_arrived_t uci_recv_arrived_way(const uci_worker_t *worker)
{
    return worker->msgs.watches_deliveries ? uci_recv_arrived_watched : uci_recv_arrived;
}

void uci_recv_attach(uci_worker_t *worker)
{
    worker->msgs.watches_deliveries = (uci_edge.delivered != NULL);
    uci_worker_take_by(worker, uci_recv_arrived_way(worker), worker->calls.lost, worker->calls.recv_flags);
}

void uci_recv_lose(uci_peer_t *peer, uci_request_t *req, const uci_frame_hdr_t *hdr, const char *payload, size_t length)
{
    uci_frame_hdr_t plain = uci_signed_hdr(hdr);
    ucs_status_t status   = uci_repair_policy();
    uint64_t seq          = peer->rx.next - 1;
    size_t max            = uci_frame_is_signed(hdr->kind) ? plain.length : length;
    bool is_user_am       = uci_frame_is_user_am(hdr->kind);

    hdr    = &plain;
    length = (hdr->kind == UCI_FRAME_RNDV) ? 0 : uci_min(length, max); /* of its descriptor nobody has any use */
    if (uci_frame_wants_fin(hdr->kind)) {
        uci_recv_decline(peer, seq, 0, UCS_OK);
    }
    if (is_user_am) {
        uci_user_am_lost(peer, hdr, payload, length, status);
        return;
    }
    if (req == NULL) {
        uci_unexpected_keep_lost(peer, hdr, payload, length, status);
        return;
    }
    uci_recv_take(peer->worker, req);
    uci_link_bind(peer, NULL);
    uci_recv_deliver_lost(req, payload, length, hdr->tag, status);
}

void uci_recv_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length)
{
    uci_recv_lose(peer, uci_frame_is_user_am(hdr->kind) ? NULL : uci_recv_find(peer, hdr->tag), hdr, payload, length);
}

/* ------------------------------------------------------------- posting */

/* @return UCS_OK, or an error: the request is given back */
UCI_INLINE ucs_status_t uci_recv_init(uci_worker_t *worker, uci_request_t *req, void *data, size_t count,
                                      ucp_datatype_t datatype)
{
    ucs_status_t status;

    req->flags |= worker->calls.recv_flags;

    status = uci_buffer_init_recv(&req->buffer, data, count, datatype);
    if (uci_unlikely(status != UCS_OK)) {
        uci_request_put(req);
    }
    return status;
}

ucs_status_t uci_recv_prepare(uci_worker_t *worker, void *data, size_t count, const ucp_request_param_t *param,
                              uci_request_t **req_p)
{
    uci_request_t *req = uci_request_get(worker, param);
    ucs_status_t status;

    if (req == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = uci_recv_init(worker, req, data, count, uci_buffer_datatype(param));
    if (status == UCS_OK) {
        *req_p = req;
    }
    return status;
}

ucs_status_ptr_t uci_recv(uci_worker_t *worker, void *data, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                          const ucp_request_param_t *param)
{
    ucp_datatype_t datatype = uci_buffer_datatype(param);
    uci_message_t *message;
    ucs_status_t status;
    uci_request_t *req;

    message = uci_unexpected_find(worker, tag, tag_mask);
    if (uci_unlikely(param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) && !uci_unexpected_is_here(message)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    req = uci_request_get_inline(worker, param);
    if (uci_unlikely(req == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    status = uci_recv_init(worker, req, data, count, datatype);
    if (uci_unlikely(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }

    if (message != NULL) {
        uci_unexpected_deliver(message, req);
    } else {
        uci_match_post(&worker->match, &req->match, tag, tag_mask);
    }
    return uci_request_posted_inline(req, param);
}

ucs_status_ptr_t uci_recv_with(uci_worker_t *worker, void *data, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                               const ucp_request_param_t *param, const uci_signature_t *signature)
{
    uci_message_t *message = uci_unexpected_find(worker, tag, tag_mask);
    ucs_status_t status;
    uci_request_t *req;

    if ((param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) && !uci_unexpected_is_here(message)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    req = uci_request_get_inline(worker, param);
    if (uci_unlikely(req == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    status = uci_recv_init(worker, req, data, count, uci_buffer_datatype(param));
    if (uci_unlikely(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    uci_signed_set(req, signature);
    if (message != NULL) {
        uci_unexpected_deliver(message, req);
    } else {
        uci_match_post(&worker->match, &req->match, tag, tag_mask);
    }
    return uci_request_posted_inline(req, param);
}

/* --------------------------------------------------------------- chunks */

/* Unasked, the receive is not found by its slot, but by its number, and that comes as a whole: any number of messages may have come since */
static uint64_t uci_recv_data_seq(const uci_am_t *am)
{
    return uci_unlikely(am->hdr->flags & UCI_AM_FLAG_HANDOVER) ? ((uint64_t)am->hdr->op << 32) | am->hdr->seq
                                                               : uci_seq_expand(am->hdr->seq, am->peer->rx.next);
}

static const char *uci_recv_check_data(const uci_am_t *am)
{
    return uci_wire_check_digest(am->hdr);
}

static void uci_recv_on_data(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_recv_op_t *op       = uci_recv_op_of(am);

    if (uci_unlikely(op == NULL) && (hdr->flags & UCI_AM_FLAG_HANDOVER)) {
        if ((am->seq >= am->peer->rx.next) && uci_early_keep(am)) {
            return;
        }
        op = uci_unexpected_adopt(am->peer, am->seq);
        op = ((op != NULL) && (uci_stream_check_chunk(op, am) == NULL)) ? op : NULL;
    }
    if (uci_unlikely(op == NULL)) {
        uci_unseen_pass(uci_digest_by_id(hdr->digest), am->data, am->length, hdr->value);
        return; /* repeated, and no longer needed */
    }

    uci_stream_take(op, hdr, am->data, am->length);
}

UCI_AM_HANDLER(DATA, 4, "S, chunk `index`", "bytes", "none, or REPAIR", "R sends CTS and REPAIR for what is missing",
               .flags = UCI_AM_FLAG_LAST | UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_HANDOVER | UCI_AM_FLAG_CHANGED,
               .max = UCI_CHUNK_SIZE_MAX, .grain = 1, .about = UCI_AM_ABOUT_RECV, .carries = UCI_AM_CARRIES_BYTES,
               .hit = UCI_AM_HIT(HEADER), .special = UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_HANDOVER,
               .hit_special = UCI_AM_HIT(REPAIR), .seq = uci_recv_data_seq, .check = uci_recv_check_data,
               .check_recv = uci_stream_check_chunk, .take = uci_recv_on_data);

void uci_recv_on_query(uci_peer_t *peer, uint64_t seq, uint32_t slot)
{
    uci_recv_op_t *op = uci_recv_op_by_slot(peer->worker, slot, peer, (uint32_t)seq);

    if (op == NULL) {
        op = uci_recv_op_by_seq(peer, seq); /* it began when the sender did not know yet */
    }
    if (op != NULL) {
        uci_repair_hear_query(op);
    } else if ((seq < peer->rx.next) && !uci_unexpected_has(peer, seq)) {
        uci_control_fin_status(peer, seq, UCI_AM_FLAG_REPAIR, uci_unexpected_refused(peer, seq));
    }
    /* else it has not been matched yet */
}
