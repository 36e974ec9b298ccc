/* SPDX-License-Identifier: BSD-3-Clause */
#include "send.h"

#include <stdlib.h>

#include "base/am_handler.h"
#include "transfer/both_ways.h"
#include "link/bounce.h"
#include "digest/digest_small.h"
#include "transfer/direct.h"
#include "transfer/get.h"
#include "link/link_send.h"
#include "util/log.h"
#include "data/packer.h"
#include "transfer/repair.h"
#include "link/sealed.h"
#include "send_end.h"
#include "transfer/send_rndv.h"
#include "base/signed.h"
#include "live/stats.h"
#include "transfer/stream.h"
#include "transfer/superpipe.h"
#include "link/txlog.h"

/* Messages above this go through a slot where there is one, although they would fit in a frame: measured, 2 cores of one
 * L3, Open MPI and MPICH: 4 KiB take 0.89 us in a frame and 0.94 in a slot, 8 KiB 2.0 (with cma 4.2) and 1.3. Frames while slots are under way
 * (Xeon, model 167) make windows of 8 KiB 1.08 to 1.11 times as fast if their buffers stay in the cache, and 0.94 to 0.95 if they are read and
 * written, as a program's are: so it is slots */
#define UCI_SEND_SLOT_MIN 4096

/* ------------------------------------------------------------- eager */

/* The frame holds the data, and waits for its carrier: pass that back-pressure on */
ucs_status_ptr_t uci_send_eager_pending(uci_worker_t *worker, uci_frame_t *frame, const ucp_request_param_t *param)
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

static __attribute__((noinline)) ucs_status_ptr_t uci_send_eager(uci_ep_t *ep, uci_buffer_t *buffer, ucp_tag_t tag,
                                                                 const ucp_request_param_t *param,
                                                                 const uci_signature_t *signature)
{
    const uci_digest_ops_t *digest = ep->peer->worker->choice.digest;
    unsigned kind                  = uci_signed_kind(UCI_FRAME_EAGER, signature);
    size_t length                  = buffer->length + uci_frame_trailer(kind);
    uci_frame_t *frame             = uci_link_frame_get(ep->peer, length);
    ucs_status_t status;
    uint64_t value;

    if (uci_unlikely(frame == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    status = uci_signed_fill(frame, buffer, digest, signature, &value);
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
    uci_frame_t *frame         = uci_link_frame_get(ep->peer, length);
    ucs_status_t status;
    uint64_t value;
    uint32_t what;

    if (uci_unlikely(frame == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    if (uci_likely(length <= UCI_DIGEST_SMALL_MAX) && uci_likely(worker->choice.small_xxh3)) {
        value = uci_digest_xxh3_small_copy(uci_frame_payload(frame), data, length);
        what  = uci_frame_what(UCI_FRAME_EAGER, UCI_DIGEST_XXH3, (uint32_t)length);
    } else {
        value = worker->choice.digest->copy(uci_frame_payload(frame), data, length);
        what  = uci_frame_what(UCI_FRAME_EAGER, (uint8_t)worker->choice.digest->id, (uint32_t)length);
    }
    status = uci_link_send(ep, frame, what, tag, value);
    return uci_send_eager_end(ep, frame, length, status, param);
}

/* Would fit in a frame, but costs less in a slot: two copies instead of four */
UCI_INLINE bool uci_send_is_better_in_slot(uci_peer_t *peer, const uci_buffer_t *buffer,
                                           const ucp_request_param_t *param)
{
    return uci_unlikely(buffer->length > UCI_SEND_SLOT_MIN) &&
           !(param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) &&
           !uci_conversation_is_leaving(&peer->conversation) && uci_send_may_go_direct(peer, buffer->length) &&
           (buffer->kind != UCI_BUFFER_GENERIC) && (peer->worker->link.bounce.available > UCI_DIRECT_KEEP);
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
    uci_frame_t *frame = uci_link_frame_get(ep->peer, total);
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

    if (uci_likely(uci_buffer_is_contig(datatype)) && !sync && ep->peer->worker->choice.small_xxh3 &&
        (uci_signature_code(signature->word) != UCI_SIGNATURE_MIXED)) {
        length = uci_buffer_contig_length(datatype, count);
        if (uci_likely(length + sizeof(uint64_t) <= uci_min((uint32_t)UCI_DIGEST_SMALL_MAX, ep->peer->eager_max))) {
            return uci_send_small_word(ep, data, length, tag, param, signature->word);
        }
    }
    return uci_send_other(ep, data, count, datatype, tag, param, sync, signature);
}
