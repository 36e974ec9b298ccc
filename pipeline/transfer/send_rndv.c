/* SPDX-License-Identifier: BSD-3-Clause */
#include "send_rndv.h"

#include <stdlib.h>

#include "base/am_handler.h"
#include "base/signed.h"
#include "both_ways.h"
#include "conversation/conversation.h"
#include "data/packer.h"
#include "direct.h"
#include "direct_send.h"
#include "get.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/link_send.h"
#include "link/sealed.h"
#include "link/txlog.h"
#include "live/stats.h"
#include "repair.h"
#include "send_common.h"
#include "stream.h"
#include "superpipe.h"
#include "util/log.h"

/* Bytes that a chunk of a generic datatype has a multiple of, if we choose. UCX's fragments are about 8 KiB. */
#define UCI_SEND_PACK_GRAIN  4096
#define UCI_SEND_PACK_DIRECT (16ul << 10)
#define UCI_SEND_PACK_STREAM (20ul << 10)

/* ------------------------------------------------------- until FIN */

/* A send that completes on FIN. On an error the frame is the caller's */
static ucs_status_t uci_send_op_start(uci_send_op_t *op, uci_ep_t *ep, uci_frame_t *frame, uint32_t what, ucp_tag_t tag,
                                      uint64_t value)
{
    ucs_status_t status;

    frame->op = op;
    op->frame = frame;
    op->ep    = ep;
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

ucs_status_ptr_t uci_send_sync(uci_ep_t *ep, uci_request_t *req, ucp_tag_t tag, const ucp_request_param_t *param,
                               const uci_signature_t *signature)
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
    frame = uci_link_frame_get(peer, length);
    if ((op == NULL) || (frame == NULL)) {
        goto err;
    }

    status = uci_signed_fill(frame, &req->buffer, worker->choice.digest, signature, &value);
    if (uci_unlikely(status != UCS_OK)) {
        goto err;
    }
    op->state = UCI_SEND_WAIT_FIN;
    op->req   = req;
    uci_link_pace(peer);
    UCI_STATS_INC(messages_sent);
    UCI_STATS_INC(eager_messages);
    UCI_STATS_ADD(bytes_sent, req->buffer.length);
    status = uci_send_op_start(op, ep, frame,
                               uci_frame_what(kind, (uint8_t)worker->choice.digest->id, (uint32_t)length), tag, value);
    if (status == UCS_OK) {
        return uci_request_posted(req, param);
    }

err:
    return uci_send_give_up(worker, req, op, frame, status);
}

/* An active message that is eager, however large, as its program has said: UCX completes it without the receiver */
static bool uci_send_is_local(const uci_request_t *req, const ucp_request_param_t *param)
{
    return uci_unlikely(req->flags & UCI_REQUEST_USER_AM) && (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) &&
           (param->flags & UCP_AM_SEND_FLAG_EAGER);
}

/* UCX's own choice of what to send eagerly ("auto") is below this where it does not say what it is */
#define UCI_SEND_LATE_MAX (1ul << 20)

/* Bytes that plain UCX would surely send before there is a receiver */
static size_t uci_send_buffered_max(const uci_peer_t *peer, const ucp_request_param_t *param)
{
    const uci_context_t *context = peer->worker->context;
    bool fast                    = (param->op_attr_mask & UCP_OP_ATTR_FLAG_FAST_CMPL) != 0;
    size_t known                 = fast ? context->buffered_fast_max : context->buffered_max;

    return context->rndv_is_set ? known : uci_max(known, fast ? peer->lanes.eager_fast : peer->lanes.eager);
}

/* May this send complete before the receiver has it? It may where plain UCX would have done so. @param local  as uci_send_is_local() */
static bool uci_send_is_buffered(const uci_send_op_t *op, const ucp_request_param_t *param, bool local)
{
    const uci_worker_t *worker = op->peer->worker;

    return !op->sync && (local || (op->length <= uci_send_buffered_max(op->peer, param))) &&
           (worker->xfer.copy_bytes + op->length <= worker->link.log_limit);
}

/* And if it is not received for long, since plain UCX may have done so? It says nothing of active messages. */
static bool uci_send_is_buffered_late(const uci_send_op_t *op, const ucp_request_param_t *param, bool local)
{
    bool is_am = uci_unlikely(op->req->flags & UCI_REQUEST_USER_AM);
    bool known = op->peer->worker->context->rndv_is_set || (!is_am && (op->peer->lanes.eager > 0));
    size_t max = uci_max(uci_send_buffered_max(op->peer, param), known ? 0 : UCI_SEND_LATE_MAX);

    return !op->sync && (local || (op->length <= max));
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
    return direct && (op->buffer->kind == UCI_BUFFER_GENERIC) && (op->length <= UCI_SLOT_SIZE) &&
           !uci_conversation_is_leaving(&op->peer->conversation) && (uci_settings.chunk_size == UCI_SETTING_AUTO) &&
           (uci_packer_way(op->buffer) == UCI_PACKER_WHOLE);
}

bool uci_send_may_go_direct(uci_peer_t *peer, uint64_t length)
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

    op->chunk.digest = choice->digest;
    op->chunk.size   = uci_conversation_is_leaving(&peer->conversation) ? uci_peer_stream_chunk_size(peer, op->length)
                                                                        : uci_peer_chunk_size(peer, choice->chunk_size);
    if (direct && (op->length <= peer->eager_max) && !uci_conversation_is_leaving(&peer->conversation)) {
        op->chunk.size = UCI_SLOT_SIZE; /* it came here by uci_send_is_better_in_slot() */
    } else if (uci_send_is_packed_whole(op, direct)) {
        op->chunk.size = UCI_SLOT_SIZE;
    } else if ((op->buffer->kind == UCI_BUFFER_GENERIC) && !uci_conversation_is_leaving(&peer->conversation)) {
        op->chunk.size = uci_send_pack_size(op->length, op->chunk.size, direct, buffered);
    }
    op->chunk.count = (uint32_t)uci_div_up(op->length, op->chunk.size);
    return direct && (op->chunk.size <= UCI_SLOT_SIZE);
}

/* This core is needed for the other direction as well, or its receiver's is, as he says */
static bool uci_send_is_fetched(const uci_send_op_t *op, bool told)
{
    return uci_unlikely(told || (op->peer->worker->xfer.large_recvs > 0)) && (op->buffer->kind == UCI_BUFFER_CONTIG) &&
           !uci_conversation_is_leaving(&op->peer->conversation) && uci_both_is_fetched(op->peer, op->length);
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
                   (op->peer->lanes.rdma || (!op->peer->in_clear && (op->buffer->kind == UCI_BUFFER_CONTIG)));

    return (fetched || (path == UCI_PATH_BOUNCE)) && (uci_sealed_segment(op->peer, op->chunk.size, 1) <= UCI_SPAN_SIZE);
}

/* Begin with what can be done before CTS. Messages to one that leaves go as messages of one fragment, see above. */
static void uci_send_start_path(uci_send_op_t *op)
{
    uci_path_t path = uci_plan_choose(uci_peer_plan(op->peer), op->length)->path;

    if ((op->state != UCI_SEND_DESCRIBED) || uci_conversation_is_leaving(&op->peer->conversation)) {
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
    desc->chunk_size = op->chunk.size;
    desc->arity      = (uint16_t)uci_settings.merkle_arity;
    desc->slot       = (op->state == UCI_SEND_DIRECT) ? uci_direct_first_slot(op) : UCI_SLOT_NONE;
    if (uci_unlikely(signature != NULL)) {
        uci_signed_append((char *)(desc + 1), signature);
    }
    return op->chunk.digest->digest(desc, frame->total - sizeof(uci_frame_hdr_t));
}

UCI_INLINE unsigned uci_send_rndv_kind(const uci_request_t *req, const uci_signature_t *signature)
{
    return uci_unlikely(req->flags & UCI_REQUEST_USER_AM) ? uci_frame_user_am_kind(UCI_FRAME_RNDV)
                                                          : uci_signed_kind(UCI_FRAME_RNDV, signature);
}

ucs_status_ptr_t uci_send_rndv(uci_ep_t *ep, uci_request_t *req, ucp_tag_t tag, const ucp_request_param_t *param,
                               bool sync, const uci_signature_t *signature)
{
    unsigned kind        = uci_send_rndv_kind(req, signature);
    uint32_t length      = (uint32_t)sizeof(uci_rndv_desc_t) + uci_frame_trailer(kind);
    uci_worker_t *worker = ep->peer->worker;
    ucs_status_t status  = UCS_ERR_NO_MEMORY;
    bool local           = uci_send_is_local(req, param);
    bool buffered, direct, done = false; /* the user is done with the buffer */
    uint32_t what;
    uci_frame_t *frame;
    uci_send_op_t *op;

    op    = uci_send_op_create(ep->peer, req->buffer.length);
    frame = uci_link_frame_get(ep->peer, length);
    if ((op == NULL) || (frame == NULL)) {
        goto err;
    }
    op->req              = req;
    op->sync             = sync;
    op->buffer           = &req->buffer;
    buffered             = uci_send_is_buffered(op, param, local);
    direct               = uci_send_choose(op, buffered) && !local;
    op->is_buffered_late = uci_send_is_buffered_late(op, param, local);
    if (uci_merkle_create(op->chunk.count, uci_settings.merkle_arity, &op->chunk.tree) != UCI_OK) {
        goto err;
    }
    if (op->buffer->kind == UCI_BUFFER_GENERIC) {
        op->chunk.borders = calloc(
                op->chunk.count,
                sizeof(*op->chunk.borders)); /* an unpacker may leave out parts of elements, and say nothing */
        if (op->chunk.borders == NULL) {
            goto err;
        }
    }

    if (direct) {
        uci_send_start_direct(op, buffered);
    }
    if (!sync && (buffered || (op->chunk.count == 1)) && (op->state == UCI_SEND_DIRECT)) {
        uci_direct_be_patient(op);
    }
    UCI_STATS_INC(messages_sent);
    UCI_STATS_INC(rendezvous_messages);
    UCI_STATS_ADD(rendezvous_bytes, op->length);
    UCI_STATS_ADD(bytes_sent, op->length);
    what   = uci_frame_what(kind, (uint8_t)op->chunk.digest->id, length);
    status = uci_send_op_start(op, ep, frame, what, tag, uci_send_describe(op, frame, signature));
    if (status != UCS_OK) {
        goto err;
    }
    if (op->state == UCI_SEND_DIRECT) {
        uci_direct_fill_first(op);
    } else if (buffered) {
        done = uci_send_buffer(op); /* while the descriptor travels, and what answers it */
    }
    if (done) {
        uci_stream_part(op, req); /* its user may leave now: no path that needs this core again is begun */
    }
    uci_send_start_path(op);
    if (uci_unlikely(op->status != UCS_OK)) {
        uci_send_op_fail(op, op->status);
    }
    return uci_request_posted(req, param);

err:
    return uci_send_give_up(worker, req, op, frame, status);
}

/* -------------------------------------------- what the receiver says */

/* It has not begun on any path. @return false: it streams. */
static bool uci_send_matched(uci_send_op_t *op, bool told)
{
    if ((op->way.ops == NULL) && uci_send_is_fetched(op, told)) {
        uci_get_path.start(op);
    } else if ((op->way.ops == NULL) && uci_send_may_go_direct(op->peer, op->length) &&
               (op->chunk.size <= UCI_SLOT_SIZE)) {
        op->way.ops = &uci_direct_path;
    }
    return (op->way.ops != NULL) && op->way.ops->matched(op);
}

/* It is in slots. @return false: it streams. */
static bool uci_send_matched_direct(uci_send_op_t *op, const uci_am_hdr_t *hdr)
{
    bool told = (hdr->flags & UCI_AM_FLAG_GET) && (hdr->index == 0) && !op->way.taken;

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

/* If it is over, who asks will hear nothing of this: nobody waits for it any more */
static void uci_send_say_given_up(const uci_am_t *am)
{
    uci_control_send_simple(am->peer, UCI_AM_GONE, am->seq, am->hdr->op, UCI_AM_FLAG_GIVEN_UP);
}

static void uci_send_on_cts(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_send_op_t *op       = uci_send_op_find(am->peer, am->seq);

    if (op == NULL) {
        uci_send_say_given_up(am);
        return;
    }
    if (op->chunk.tree == NULL) {
        return;
    }
    if (uci_unlikely(op->status != UCS_OK)) {
        uci_send_op_gone(op, hdr->op);
        return;
    }
    op->way.remote_op = hdr->op;
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
        if (op->pushed && (hdr->flags & UCI_AM_FLAG_REPAIR) && (op->way.held == 0)) {
            uci_stream_all_again(op); /* none has come */
        }
        return; /* repeated */
    }
    op->chunk.next = 0;
    uci_stream_rest(op);
}

UCI_AM_HANDLER(CTS, 3,
               "R, when a RNDV frame is matched, or adopted (*Closing*); `op` = slot; with GET, though chunk 0 has a "
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
    for (i = 0; (op != NULL) && (op->chunk.tree != NULL) && (i < count); ++i) {
        if ((indexes[i] >= op->chunk.count) || ((i > 0) && (indexes[i] <= indexes[i - 1]))) {
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
    op = (frame != NULL) ? frame->op : NULL;
    if (op == NULL) {
        uci_send_say_given_up(am);
        return;
    }
    if ((op->chunk.tree == NULL) || (count == 0)) {
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

static const char *uci_send_check_fin(const uci_am_t *am)
{
    return (am->hdr->value <= (uint64_t)(0 - UCS_ERR_LAST)) ? NULL : "an end that no send has";
}

static void uci_send_on_fin(uci_am_t *am)
{
    uci_send_op_t *op = uci_send_op_find(am->peer, am->seq);

    if (op != NULL) {
        uci_send_op_finish(op, (ucs_status_t)(0 - (int64_t)am->hdr->value));
    }
}

UCI_AM_HANDLER(
        FIN, 5,
        "R: verified, or truncated, or given up; `value`: 0, or the status, negated, of an active message that was not taken",
        "", "none", "S sends QUERY, R repeats FIN", .flags = UCI_AM_FLAG_TRUNCATED | UCI_AM_FLAG_REPAIR, .grain = 1,
        .about = UCI_AM_ABOUT_SEND, .hit = UCI_AM_HIT(ACK), .special = UCI_AM_FLAG_REPAIR, .check = uci_send_check_fin,
        .take = uci_send_on_fin);
