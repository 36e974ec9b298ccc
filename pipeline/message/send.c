/* SPDX-License-Identifier: BSD-3-Clause */
#include "send.h"

#include <stdlib.h>

#include "base/am_handler.h"
#include "base/both_ways.h"
#include "link/bounce.h"
#include "digest/digest_small.h"
#include "transfer/direct.h"
#include "transfer/get.h"
#include "link/link_send.h"
#include "util/log.h"
#include "data/packer.h"
#include "transfer/repair.h"
#include "link/sealed.h"
#include "transfer/send_common.h"
#include "base/signed.h"
#include "live/stats.h"
#include "transfer/stream.h"
#include "transfer/superpipe.h"
#include "link/txlog.h"

/* Messages above this go through a slot where there is one, although they would fit in a frame: measured, 2 cores of one
 * L3, Open MPI and MPICH: 4 KiB take 0.89 us in a frame and 0.94 in a slot, 8 KiB 2.0 (with cma 4.2) and 1.3 */
#define UCI_SEND_SLOT_MIN 4096

/* Bytes that a chunk of a generic datatype has a multiple of, if we choose. UCX's fragments are about 8 KiB. */
#define UCI_SEND_PACK_GRAIN  4096
#define UCI_SEND_PACK_DIRECT (16ul << 10)
#define UCI_SEND_PACK_STREAM (20ul << 10)

/* ------------------------------------------------------------- eager */

UCI_INLINE uci_frame_t *uci_send_frame_get(uci_peer_t *peer, size_t length)
{
    uci_frame_t *frame;

    if (uci_unlikely(!peer->hello_sent)) {
        uci_control_hello(peer);
    }
    frame = uci_likely(length <= UCI_FRAME_SMALL_PAYLOAD)
                    ? uci_frame_get_small(&peer->worker->frames)
                    : uci_frame_get(&peer->worker->frames, sizeof(uci_frame_hdr_t) + length);
    if (uci_likely(frame != NULL)) {
        frame->op    = NULL;
        frame->total = (uint32_t)(sizeof(uci_frame_hdr_t) + length);
    }
    return frame;
}

/* The frame holds the data, and waits for its carrier: pass that back-pressure on */
static UCI_NOINLINE ucs_status_ptr_t uci_send_eager_pending(uci_worker_t *worker, uci_frame_t *frame,
                                                            const ucp_request_param_t *param)
{
    uci_request_t *req;

    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
        return NULL;
    }
    req = uci_request_get(worker, param);
    if (req == NULL) {
        return NULL;
    }
    frame->req = req;
    return uci_request_posted(req, param);
}

UCI_INLINE ucs_status_ptr_t uci_send_eager_end(uci_ep_t *ep, uci_frame_t *frame, size_t length, ucs_status_t status,
                                               const ucp_request_param_t *param)
{
    uci_worker_t *worker = ep->peer->worker;

    UCI_STATS_INC(messages_sent);
    UCI_STATS_INC(eager_messages);
    UCI_STATS_ADD(bytes_sent, length);
    if (uci_likely(status == UCS_OK)) {
        return uci_likely(!(param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL)) ? NULL
                                                                                 : uci_request_immediate(worker, param);
    }
    if (status == UCS_INPROGRESS) {
        return uci_send_eager_pending(worker, frame, param);
    }
    uci_frame_put(&worker->frames, frame);
    return UCS_STATUS_PTR(status);
}

/* The user's bytes, and behind them their signature, which may be NULL. @param value_p  digest of both */
static ucs_status_t uci_send_fill(uci_frame_t *frame, uci_buffer_t *buffer, const uci_digest_ops_t *digest,
                                  const uci_signature_t *signature, uint64_t *value_p)
{
    char *payload = uci_frame_payload(frame);
    ucs_status_t status;

    if (uci_likely(signature == NULL)) {
        return uci_buffer_read(buffer, 0, payload, buffer->length, digest, value_p);
    }
    status = uci_buffer_read(buffer, 0, payload, buffer->length, &uci_digest_table[UCI_DIGEST_NONE], value_p);
    if (status == UCS_OK) {
        uci_signed_append(payload + buffer->length, signature);
        *value_p = digest->digest(payload, frame->total - sizeof(uci_frame_hdr_t));
    }
    return status;
}

static __attribute__((noinline)) ucs_status_ptr_t uci_send_eager(uci_ep_t *ep, uci_buffer_t *buffer, ucp_tag_t tag,
                                                                 const ucp_request_param_t *param,
                                                                 const uci_signature_t *signature)
{
    const uci_digest_ops_t *digest = ep->peer->worker->digest;
    unsigned kind                  = uci_signed_kind(UCI_FRAME_EAGER, signature);
    size_t length                  = buffer->length + uci_frame_trailer(kind);
    uci_frame_t *frame             = uci_send_frame_get(ep->peer, length);
    ucs_status_t status;
    uint64_t value;

    if (uci_unlikely(frame == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    status = uci_send_fill(frame, buffer, digest, signature, &value);
    if (uci_unlikely(status != UCS_OK)) {
        uci_frame_put(&ep->peer->worker->frames, frame);
        return UCS_STATUS_PTR(status);
    }
    status = uci_link_send(ep, frame, uci_frame_what(kind, (uint8_t)digest->id, (uint32_t)length), tag, value);
    return uci_send_eager_end(ep, frame, buffer->length, status, param);
}

/* The same of contiguous bytes, with a digest that is in line for the smallest */
UCI_INLINE ucs_status_ptr_t uci_send_eager_contig(uci_ep_t *ep, const void *data, size_t length, ucp_tag_t tag,
                                                  const ucp_request_param_t *param)
{
    const uci_worker_t *worker = ep->peer->worker;
    uci_frame_t *frame         = uci_send_frame_get(ep->peer, length);
    ucs_status_t status;
    uint64_t value;
    uint32_t what;

    if (uci_unlikely(frame == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    if (uci_likely(length <= UCI_DIGEST_SMALL_MAX) && uci_likely(worker->small_xxh3)) {
        value = uci_digest_xxh3_small_copy(uci_frame_payload(frame), data, length);
        what  = uci_frame_what(UCI_FRAME_EAGER, UCI_DIGEST_XXH3, (uint32_t)length);
    } else {
        value = worker->digest->copy(uci_frame_payload(frame), data, length);
        what  = uci_frame_what(UCI_FRAME_EAGER, (uint8_t)worker->digest->id, (uint32_t)length);
    }
    status = uci_link_send(ep, frame, what, tag, value);
    return uci_send_eager_end(ep, frame, length, status, param);
}

/* ---------------------------------------------- operations until FIN */

/* A send that completes on FIN. On an error the frame is the caller's */
static ucs_status_t uci_send_op_start(uci_send_op_t *op, uci_ep_t *ep, uci_frame_t *frame, uint32_t what, ucp_tag_t tag,
                                      uint64_t value)
{
    ucs_status_t status;

    frame->op = op;
    op->frame = frame;
    status    = uci_link_send(ep, frame, what, tag, value);
    if (UCS_STATUS_IS_ERR(status)) {
        op->frame = NULL;
        return status;
    }
    return UCS_OK;
}

/* A send that could not be started; @a op and @a frame may be NULL */
static ucs_status_ptr_t uci_send_give_up(uci_worker_t *worker, uci_request_t *req, uci_send_op_t *op,
                                         uci_frame_t *frame, ucs_status_t status)
{
    if (frame != NULL) {
        uci_frame_put(&worker->frames, frame);
    }
    if (op != NULL) {
        uci_send_op_destroy(op);
    }
    uci_buffer_finish(&req->buffer);
    uci_request_put(req);
    return UCS_STATUS_PTR(status);
}

/* Small synchronous send: the payload is in the frame, FIN completes it */
static UCI_NOINLINE ucs_status_ptr_t uci_send_sync(uci_ep_t *ep, uci_request_t *req, ucp_tag_t tag,
                                                   const ucp_request_param_t *param, const uci_signature_t *signature)
{
    uci_peer_t *peer     = ep->peer;
    uci_worker_t *worker = peer->worker;
    ucs_status_t status  = UCS_ERR_NO_MEMORY;
    unsigned kind        = uci_signed_kind(UCI_FRAME_SYNC, signature);
    size_t length        = req->buffer.length + uci_frame_trailer(kind);
    uci_frame_t *frame;
    uci_send_op_t *op;
    uint64_t value;

    op    = uci_send_op_create(peer, req->buffer.length);
    frame = uci_send_frame_get(peer, length);
    if ((op == NULL) || (frame == NULL)) {
        goto err;
    }

    status = uci_send_fill(frame, &req->buffer, worker->digest, signature, &value);
    if (uci_unlikely(status != UCS_OK)) {
        goto err;
    }
    op->state = UCI_SEND_WAIT_FIN;
    op->req   = req;
    UCI_STATS_INC(messages_sent);
    UCI_STATS_INC(eager_messages);
    UCI_STATS_ADD(bytes_sent, req->buffer.length);
    status = uci_send_op_start(op, ep, frame, uci_frame_what(kind, (uint8_t)worker->digest->id, (uint32_t)length), tag,
                               value);
    if (status == UCS_OK) {
        return uci_request_posted(req, param);
    }

err:
    return uci_send_give_up(worker, req, op, frame, status);
}

/* May this send complete before the receiver has it? It may where plain UCX would have done so. */
static bool uci_send_is_buffered(uci_worker_t *worker, uint64_t length, const ucp_request_param_t *param, bool sync)
{
    size_t max = (param->op_attr_mask & UCP_OP_ATTR_FLAG_FAST_CMPL) ? worker->context->buffered_fast_max
                                                                    : worker->context->buffered_max;

    return !sync && (length <= max) && (worker->copy_bytes + length <= worker->log_limit);
}

/* Packing takes longer than moving: the receiver shall unpack the first part soon. All slots of a message at once if they are enough.
 * A chunk of a stream is a message, and should not be too small; what is copied before it streams is not packed chunk by chunk. */
static uint32_t uci_send_pack_size(uint64_t length, uint32_t chunk_size, bool direct, bool buffered)
{
    uint64_t part = uci_div_up(length, (uint64_t)UCI_DIRECT_WINDOW * UCI_SEND_PACK_GRAIN) * UCI_SEND_PACK_GRAIN;

    if (uci_settings.chunk_size != UCI_SETTING_AUTO) {
        return chunk_size;
    }
    if (direct) {
        part = uci_min(part, UCI_SEND_PACK_DIRECT);
    } else if (buffered) {
        part = UCI_SEND_PACK_STREAM;
    }
    return (uint32_t)uci_min(part, (uint64_t)chunk_size);
}

/* Both sides would work at the same time if it were packed chunk by chunk, but each for much longer */
static bool uci_send_is_packed_whole(const uci_send_op_t *op, bool direct)
{
    return direct && (op->buffer->kind == UCI_BUFFER_GENERIC) && (op->length <= UCI_SLOT_SIZE) && !op->peer->leaving &&
           (uci_settings.chunk_size == UCI_SETTING_AUTO) && (uci_packer_way(op->buffer) == UCI_PACKER_WHOLE);
}

/* By what is known of the peer, and by the plan */
static bool uci_send_may_go_direct(uci_peer_t *peer, uint64_t length)
{
    return uci_peer_is_reached(peer) && (uci_plan_choose(uci_peer_plan(peer), length)->path == UCI_PATH_DIRECT);
}

/* UCX drops active messages of several fragments that are for an endpoint the receiver has closed (it collects them
 * there): to one that leaves, chunks are such as can be sent again in one fragment. @return true: through slots. */
static bool uci_send_choose(uci_send_op_t *op, bool buffered)
{
    uci_peer_t *peer           = op->peer;
    bool direct                = uci_send_may_go_direct(peer, op->length);
    const uci_choice_t *choice = uci_plan_choose(uci_peer_plan(peer), op->length);

    op->digest     = choice->digest;
    op->chunk_size = peer->leaving ? uci_peer_stream_chunk_size(peer, op->length)
                                   : uci_peer_chunk_size(peer, choice->chunk_size);
    if (direct && (op->length <= peer->eager_max) && !peer->leaving) {
        op->chunk_size = UCI_SLOT_SIZE; /* it came here by uci_send_is_better_in_slot() */
    } else if (uci_send_is_packed_whole(op, direct)) {
        op->chunk_size = UCI_SLOT_SIZE;
    } else if ((op->buffer->kind == UCI_BUFFER_GENERIC) && !peer->leaving) {
        op->chunk_size = uci_send_pack_size(op->length, op->chunk_size, direct, buffered);
    }
    op->chunks = (uint32_t)uci_div_up(op->length, op->chunk_size);
    return direct && (op->chunk_size <= UCI_SLOT_SIZE);
}

/* This core is needed for the other direction as well, or its receiver's is, as he says */
static bool uci_send_is_fetched(const uci_send_op_t *op, bool told)
{
    return uci_unlikely(told || (op->peer->worker->large_recvs > 0)) && (op->buffer->kind == UCI_BUFFER_CONTIG) &&
           !op->peer->leaving && uci_both_is_fetched(op->peer, op->length);
}

/* Before it is described. One that its user need not wait for goes into as many slots as it can */
static void uci_send_start_direct(uci_send_op_t *op, bool buffered)
{
    if (uci_send_is_fetched(op, false) || !uci_direct_start(op, UCI_DIRECT_KEEP)) {
        return;
    }
    if (!buffered && uci_send_is_fetched(op, true)) {
        uci_direct_be_careful(op);
    }
}

/* Without RDMA a rendezvous of UCX's takes longer (measured on tcp: 40 us for each segment) than packing can spare. What would be fetched
 * were it not sealed is, from a span */
static bool uci_send_is_bounced(const uci_send_op_t *op, uci_path_t path)
{
    bool fetched = (path == UCI_PATH_GET) &&
                   (op->peer->rdma || (!op->peer->in_clear && (op->buffer->kind == UCI_BUFFER_CONTIG)));

    return (fetched || (path == UCI_PATH_BOUNCE)) && (uci_sealed_segment(op->peer, op->chunk_size, 1) <= UCI_SPAN_SIZE);
}

/* Begin with what can be done before CTS. Messages to one that leaves go as messages of one fragment, see above. */
static void uci_send_start_path(uci_send_op_t *op)
{
    uci_path_t path = uci_plan_choose(uci_peer_plan(op->peer), op->length)->path;

    if ((op->state != UCI_SEND_DESCRIBED) || op->peer->leaving) {
        return;
    }
    path = uci_send_is_fetched(op, false) ? UCI_PATH_GET : path;
    if ((path == UCI_PATH_GET) && op->peer->in_clear && (op->buffer->kind == UCI_BUFFER_CONTIG)) {
        uci_get_path.start(op);
    } else if (uci_send_is_bounced(op, path)) {
        uci_superpipe_path.start(op);
    }
}

/* @return digest of the descriptor, and of the signature behind it */
static uint64_t uci_send_describe(const uci_send_op_t *op, uci_frame_t *frame, const uci_signature_t *signature)
{
    uci_rndv_desc_t *desc = (uci_rndv_desc_t *)(void *)uci_frame_payload(frame);

    desc->length     = op->length;
    desc->chunk_size = op->chunk_size;
    desc->arity      = (uint16_t)uci_settings.merkle_arity;
    desc->slot       = (op->state == UCI_SEND_DIRECT) ? uci_direct_first_slot(op) : UCI_SLOT_NONE;
    if (uci_unlikely(signature != NULL)) {
        uci_signed_append((char *)(desc + 1), signature);
    }
    return op->digest->digest(desc, frame->total - sizeof(uci_frame_hdr_t));
}

static __attribute__((noinline)) ucs_status_ptr_t uci_send_rndv(uci_ep_t *ep, uci_request_t *req, ucp_tag_t tag,
                                                                const ucp_request_param_t *param, bool sync,
                                                                const uci_signature_t *signature)
{
    unsigned kind        = uci_signed_kind(UCI_FRAME_RNDV, signature);
    uint32_t length      = (uint32_t)sizeof(uci_rndv_desc_t) + uci_frame_trailer(kind);
    uci_worker_t *worker = ep->peer->worker;
    ucs_status_t status  = UCS_ERR_NO_MEMORY;
    bool buffered, direct, done = false; /* the user is done with the buffer */
    uint32_t what;
    uci_frame_t *frame;
    uci_send_op_t *op;

    op    = uci_send_op_create(ep->peer, req->buffer.length);
    frame = uci_send_frame_get(ep->peer, length);
    if ((op == NULL) || (frame == NULL)) {
        goto err;
    }
    op->req    = req;
    op->sync   = sync;
    op->buffer = &req->buffer;
    buffered   = uci_send_is_buffered(worker, op->length, param, sync);
    direct     = uci_send_choose(op, buffered);
    if (uci_merkle_create(op->chunks, uci_settings.merkle_arity, &op->tree) != UCI_OK) {
        goto err;
    }
    if (op->buffer->kind == UCI_BUFFER_GENERIC) {
        op->borders = calloc(op->chunks,
                             sizeof(*op->borders)); /* an unpacker may leave out parts of elements, and say nothing */
        if (op->borders == NULL) {
            goto err;
        }
    }

    if (direct) {
        uci_send_start_direct(op, buffered);
    }
    if (!sync && (buffered || (op->chunks == 1)) && (op->state == UCI_SEND_DIRECT)) {
        uci_direct_be_patient(op);
    }
    UCI_STATS_INC(messages_sent);
    UCI_STATS_INC(rendezvous_messages);
    UCI_STATS_ADD(bytes_sent, op->length);
    what   = uci_frame_what(kind, (uint8_t)op->digest->id, length);
    status = uci_send_op_start(op, ep, frame, what, tag, uci_send_describe(op, frame, signature));
    if (status != UCS_OK) {
        goto err;
    }
    if (op->state == UCI_SEND_DIRECT) {
        uci_direct_fill_first(op);
    } else if (buffered) {
        done = uci_send_buffer(op); /* while the descriptor travels, and what answers it */
    }
    uci_send_start_path(op);
    if (uci_unlikely(op->status != UCS_OK)) {
        uci_send_op_fail(op, op->status);
    } else if (done) {
        uci_request_complete(req, UCS_OK);
    }
    return uci_request_posted(req, param);

err:
    return uci_send_give_up(worker, req, op, frame, status);
}

/* Would fit in a frame, but costs less in a slot: two copies instead of four */
UCI_INLINE bool uci_send_is_better_in_slot(uci_peer_t *peer, const uci_buffer_t *buffer,
                                           const ucp_request_param_t *param)
{
    return uci_unlikely(buffer->length > UCI_SEND_SLOT_MIN) &&
           !(param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) && !peer->leaving &&
           uci_send_may_go_direct(peer, buffer->length) && (buffer->kind != UCI_BUFFER_GENERIC) &&
           (peer->worker->bounce.available > UCI_DIRECT_KEEP);
}

/* All but small contiguous messages without a signature */
static __attribute__((noinline)) ucs_status_ptr_t uci_send_other(uci_ep_t *ep, const void *data, size_t count,
                                                                 ucp_datatype_t datatype, ucp_tag_t tag,
                                                                 const ucp_request_param_t *param, bool sync,
                                                                 const uci_signature_t *signature)
{
    uint32_t trailer     = uci_frame_trailer(uci_signed_kind(UCI_FRAME_EAGER, signature));
    uci_worker_t *worker = ep->peer->worker;
    uci_buffer_t buffer;
    ucs_status_ptr_t ret;
    ucs_status_t status;
    uci_request_t *req;

    status = uci_buffer_init_send(&buffer, data, count, datatype);
    if (uci_unlikely(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }

    if (uci_likely((buffer.length + trailer <= ep->peer->eager_max) && !sync) &&
        uci_likely(!uci_send_is_better_in_slot(ep->peer, &buffer, param))) {
        ret = uci_send_eager(ep, &buffer, tag, param, signature);
        uci_buffer_finish(&buffer);
        return ret;
    }

    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
        uci_buffer_finish(&buffer);
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }

    req = uci_request_get(worker, param);
    if (req == NULL) {
        uci_buffer_finish(&buffer);
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    req->buffer = buffer;
    return (sync && (buffer.length + trailer <= ep->peer->eager_max))
                   ? uci_send_sync(ep, req, tag, param, signature)
                   : uci_send_rndv(ep, req, tag, param, sync, signature);
}

ucs_status_ptr_t uci_send(uci_ep_t *ep, const void *data, size_t count, ucp_tag_t tag, const ucp_request_param_t *param,
                          bool sync)
{
    ucp_datatype_t datatype = uci_buffer_datatype(param);
    size_t length;

    if (uci_likely(uci_buffer_is_contig(datatype)) && uci_likely(!sync)) {
        length = uci_buffer_contig_length(datatype, count);
        if (uci_likely(length <= UCI_SEND_SLOT_MIN) && uci_likely(length <= ep->peer->eager_max)) {
            return uci_send_eager_contig(ep, data, length, tag, param);
        }
    }
    return uci_send_other(ep, data, count, datatype, tag, param, sync, NULL);
}

/* Of the smallest the digest is in line, as in uci_send_eager_contig() */
UCI_INLINE ucs_status_ptr_t uci_send_small_word(uci_ep_t *ep, const void *data, size_t length, ucp_tag_t tag,
                                                const ucp_request_param_t *param, uint64_t word)
{
    size_t total       = length + sizeof(word);
    uci_frame_t *frame = uci_send_frame_get(ep->peer, total);
    uint32_t what      = uci_frame_what(UCI_SIGNED_EAGER, UCI_DIGEST_XXH3, (uint32_t)total);
    ucs_status_t status;
    char *payload;

    if (uci_unlikely(frame == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    payload = uci_frame_payload(frame);
    uci_signed_copy(payload, data, length);
    memcpy(payload + length, &word, sizeof(word));
    status = uci_link_send(ep, frame, what, tag, uci_digest_xxh3_small(payload, total));
    return uci_send_eager_end(ep, frame, length, status, param);
}

ucs_status_ptr_t uci_send_with(uci_ep_t *ep, const void *data, size_t count, ucp_tag_t tag,
                               const ucp_request_param_t *param, bool sync, const uci_signature_t *signature)
{
    ucp_datatype_t datatype = uci_buffer_datatype(param);
    size_t length;

    if (uci_likely(uci_buffer_is_contig(datatype)) && !sync && ep->peer->worker->small_xxh3 &&
        (uci_signature_code(signature->word) != UCI_SIGNATURE_MIXED)) {
        length = uci_buffer_contig_length(datatype, count);
        if (uci_likely(length + sizeof(uint64_t) <= uci_min((uint32_t)UCI_DIGEST_SMALL_MAX, ep->peer->eager_max))) {
            return uci_send_small_word(ep, data, length, tag, param, signature->word);
        }
    }
    return uci_send_other(ep, data, count, datatype, tag, param, sync, signature);
}

/* -------------------------------------------- what the receiver says */

/* It has not begun on any path. @return false: it streams. */
static bool uci_send_matched(uci_send_op_t *op, bool told)
{
    if ((op->path == NULL) && uci_send_is_fetched(op, told)) {
        uci_get_path.start(op);
    } else if ((op->path == NULL) && uci_send_may_go_direct(op->peer, op->length) &&
               (op->chunk_size <= UCI_SLOT_SIZE)) {
        op->path = &uci_direct_path;
    }
    return (op->path != NULL) && op->path->matched(op);
}

/* It is in slots. @return false: it streams. */
static bool uci_send_matched_direct(uci_send_op_t *op, const uci_am_hdr_t *hdr)
{
    bool told = (hdr->flags & UCI_AM_FLAG_GET) && (hdr->index == 0) && !op->taken;

    if (told && uci_send_is_fetched(op, true)) {
        uci_direct_withdraw(op);
        return uci_send_matched(op, true);
    }
    if (told && !(hdr->flags & UCI_AM_FLAG_REPAIR)) {
        uci_direct_insist(op);
        return true;
    }
    if ((hdr->flags & UCI_AM_FLAG_REPAIR) && (hdr->index == 0) && uci_direct_is_reminded(op)) {
        return true; /* we may just have been slow */
    }
    uci_direct_leave(op); /* it can't make use of the slots */
    return false;
}

static void uci_send_on_cts(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_send_op_t *op       = uci_send_op_find(am->peer, am->seq);

    if ((op == NULL) || (op->tree == NULL)) {
        return;
    }
    if (uci_unlikely(op->status != UCS_OK)) {
        uci_send_op_gone(op, hdr->op);
        return;
    }
    op->remote_op = hdr->op;
    switch (op->state) {
    case UCI_SEND_DESCRIBED:
        if (uci_send_matched(op, (hdr->flags & UCI_AM_FLAG_GET) != 0)) {
            return;
        }
        break;
    case UCI_SEND_DIRECT:
        if (uci_send_matched_direct(op, hdr)) {
            return;
        }
        break;
    case UCI_SEND_QUEUED:
        if (!(hdr->flags & UCI_AM_FLAG_REPAIR)) {
            return;
        }
        break; /* it has waited for long, or something was lost */
    default:
        return; /* repeated */
    }
    op->next = 0;
    uci_stream_rest(op);
}

UCI_AM_HANDLER(CTS, 3,
               "R, when a RNDV frame is matched, or adopted (section 11); `op` = slot; with GET, though chunk 0 has a "
               "slot",
               "", "DATA, SLOT or SEGMENT", "R and S ask: R sends CTS again, S sends QUERY",
               .flags = UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_GET, .grain = 1, .about = UCI_AM_ABOUT_SEND,
               .hit = UCI_AM_HIT(ACK), .special = UCI_AM_FLAG_REPAIR, .take = uci_send_on_cts);

static const char *uci_send_check_repair(const uci_am_t *am)
{
    const uint32_t *indexes = am->data;
    uci_send_op_t *op       = uci_send_op_find(am->peer, am->seq);
    size_t i, count = am->length / sizeof(*indexes);

    if (am->hdr->flags & UCI_AM_FLAG_FRAME) {
        return (count > 0) ? "chunks that a frame does not have" : NULL;
    }
    for (i = 0; (op != NULL) && (op->tree != NULL) && (i < count); ++i) {
        if ((indexes[i] >= op->chunks) || ((i > 0) && (indexes[i] <= indexes[i - 1]))) {
            return "chunks that the message does not have, or one of them twice";
        }
    }
    return NULL;
}

static void uci_send_on_repair(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_frame_t *frame      = uci_txlog_find(am->peer, am->seq);
    uint32_t count          = (uint32_t)(am->length / sizeof(uint32_t));
    uci_send_op_t *op;

    if (hdr->flags & UCI_AM_FLAG_FRAME) {
        uci_link_on_repair(am->peer, am->seq);
        return;
    }
    if (frame == NULL) {
        uci_control_send_simple(am->peer, UCI_AM_GONE, am->seq, hdr->op, 0);
        return;
    }
    op = frame->op;
    if ((op == NULL) || (op->tree == NULL) || (count == 0)) {
        return;
    }
    if ((op->state == UCI_SEND_DESCRIBED) || uci_unlikely(op->status != UCS_OK)) {
        uci_send_on_cts(am); /* that CTS was lost; or it has failed */
        return;
    }
    uci_repair_answer(op, hdr, am->data, count);
}

UCI_AM_HANDLER(REPAIR, 6, "R: these chunks again; with FRAME: that frame", "chunk numbers; none",
               "GRANT (flag GET) or DATA; the frame; GONE", "R asks again, for a frame by ACK",
               .flags = UCI_AM_FLAG_GET | UCI_AM_FLAG_FRAME, .max = UCI_REPAIR_BATCH * sizeof(uint32_t),
               .grain = sizeof(uint32_t), .about = UCI_AM_ABOUT_SEND, .check = uci_send_check_repair,
               .take = uci_send_on_repair);

static void uci_send_on_fin(uci_am_t *am)
{
    uci_send_op_t *op = uci_send_op_find(am->peer, am->seq);

    if (op != NULL) {
        uci_send_op_finish(op, UCS_OK);
    }
}

UCI_AM_HANDLER(FIN, 5, "R: verified, or truncated, or given up", "", "none", "S sends QUERY, R repeats FIN",
               .flags = UCI_AM_FLAG_TRUNCATED | UCI_AM_FLAG_REPAIR, .grain = 1, .about = UCI_AM_ABOUT_SEND,
               .hit = UCI_AM_HIT(ACK), .special = UCI_AM_FLAG_REPAIR, .take = uci_send_on_fin);
