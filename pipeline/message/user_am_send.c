/* SPDX-License-Identifier: BSD-3-Clause */
#include "user_am.h"

#include <stdio.h>

#include "base/request.h"
#include "digest/digest_small.h"
#include "link/link_send.h"
#include "live/stats.h"
#include "send_end.h"
#include "transfer/send_rndv.h"
#include "util/log.h"

/* What the program sends */
typedef struct uci_user_am_out {
    uci_ep_t *ep;
    const void *header;
    uci_user_am_what_t what;
    uci_buffer_t data;
    const ucp_request_param_t *param;
    bool is_rndv; /**< the program or its UCX_RNDV_THRESH says so: the send is not over before its handler has chosen */
} uci_user_am_out_t;

static uint32_t uci_user_am_param_flags(const ucp_request_param_t *param)
{
    return (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) ? param->flags : 0;
}

static ucp_tag_t uci_user_am_tag(const uci_user_am_what_t *what)
{
    ucp_tag_t tag;

    memcpy(&tag, what, sizeof(tag));
    return tag;
}

/* @param data  bytes of it that are in this frame, all or none. @return its payload's length; 0 in padding if there is no header */
static size_t uci_user_am_lay_out(uci_user_am_what_t *what, size_t data)
{
    what->pad = (what->header_length > 0) ? (uint8_t)(-data % UCI_USER_AM_ALIGN) : 0;
    return data + what->pad + what->header_length;
}

/* What is in the frame nobody else can write to: data and header are digested there, and what has no header while it is copied */
static ucs_status_t uci_user_am_fill(uci_user_am_out_t *out, char *payload, size_t data, const uci_digest_ops_t *digest,
                                     uint64_t *value_p)
{
    bool is_all         = (out->what.header_length == 0);
    char *header        = payload + data + out->what.pad;
    ucs_status_t status = UCS_OK;

    if ((data > 0) || is_all) {
        status = uci_buffer_read(&out->data, 0, payload, data, is_all ? digest : &uci_digest_table[UCI_DIGEST_NONE],
                                 value_p);
    }
    if (is_all || uci_unlikely(status != UCS_OK)) {
        return status;
    }
    memset(payload + data, 0, out->what.pad);
    memcpy(header, out->header, out->what.header_length);
    *value_p = digest->digest(payload, (size_t)(header - payload) + out->what.header_length);
    return UCS_OK;
}

static const uci_digest_ops_t *uci_user_am_digest(const uci_worker_t *worker, size_t length)
{
    return ((length <= UCI_DIGEST_SMALL_MAX) && worker->choice.small_xxh3) ? &uci_digest_table[UCI_DIGEST_XXH3]
                                                                           : worker->choice.digest;
}

/* A frame of @a data bytes of data, all or none, and the header. @return as uci_link_send(); UCS_ERR_NO_MEMORY, or what packing failed
 * with: there is no frame */
static ucs_status_t uci_user_am_post(uci_user_am_out_t *out, size_t data, uci_frame_t **frame_p)
{
    uci_worker_t *worker           = out->ep->peer->worker;
    size_t length                  = uci_user_am_lay_out(&out->what, data);
    const uci_digest_ops_t *digest = uci_user_am_digest(worker, length);
    uci_frame_t *frame             = uci_link_frame_get(out->ep->peer, length);
    ucs_status_t status;
    uint64_t value;

    *frame_p = NULL;
    if (frame == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = uci_user_am_fill(out, uci_frame_payload(frame), data, digest, &value);
    if (uci_unlikely(status != UCS_OK)) {
        uci_frame_put(&worker->frames, frame);
        return status;
    }
    *frame_p = frame;
    return uci_link_send(out->ep, frame,
                         uci_frame_what(uci_frame_user_am_kind(UCI_FRAME_EAGER), (uint8_t)digest->id, (uint32_t)length),
                         uci_user_am_tag(&out->what), value);
}

static ucs_status_ptr_t uci_user_am_send_eager(uci_user_am_out_t *out)
{
    uci_frame_t *frame;
    ucs_status_t status = uci_user_am_post(out, out->data.length, &frame);

    if (uci_unlikely(frame == NULL)) {
        return UCS_STATUS_PTR(status);
    }
    return uci_send_eager_end(out->ep, frame, out->data.length, status, out->param);
}

/* The header first. If the descriptor can't follow it, the next header takes its place */
static ucs_status_ptr_t uci_user_am_send_rndv(uci_user_am_out_t *out)
{
    uci_worker_t *worker = out->ep->peer->worker;
    uci_request_t *req;
    uci_frame_t *frame;
    ucs_status_t status;

    if (out->param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    req = uci_request_get(worker, out->param);
    if (req == NULL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    out->what.flags |= UCI_USER_AM_RNDV;
    status = uci_user_am_post(out, 0, &frame);
    if (UCS_STATUS_IS_ERR(status)) {
        if (frame != NULL) {
            uci_frame_put(&worker->frames, frame);
        }
        uci_request_put(req);
        return UCS_STATUS_PTR(status);
    }
    req->flags |= UCI_REQUEST_USER_AM;
    req->buffer    = out->data;
    out->data.kind = UCI_BUFFER_CONTIG; /* the request's now */
    return uci_send_rndv(out->ep, req, uci_user_am_tag(&out->what), out->param, out->is_rndv, NULL);
}

/* The data of what is said to be a rendezvous, and has none */
static char uci_user_am_nothing;

/* UCX would have it whole before its handler hears of it, and completes the send without that */
static bool uci_user_am_is_whole(const uci_user_am_out_t *out, uint32_t flags)
{
    if ((out->what.flags & UCI_USER_AM_OWN) || out->is_rndv) {
        return false;
    }
    return (flags & UCP_AM_SEND_FLAG_EAGER) || (out->data.length <= out->ep->peer->worker->context->buffered_max);
}

static ucs_status_ptr_t uci_user_am_send_large(uci_user_am_out_t *out, uint32_t flags)
{
    if (flags & UCP_AM_SEND_FLAG_RNDV) {
        out->what.flags |= UCI_USER_AM_ASKED;
    } else if (uci_user_am_is_whole(out, flags)) {
        out->what.flags |= UCI_USER_AM_EAGER;
    }
    if (out->data.length == 0) {
        out->what.flags |= UCI_USER_AM_EMPTY;
        uci_buffer_finish(&out->data);
        uci_buffer_init_contig(&out->data, &uci_user_am_nothing, sizeof(uci_user_am_nothing));
    }
    return uci_user_am_send_rndv(out);
}

size_t uci_user_am_max_header(size_t max)
{
    return uci_min(max, (size_t)UCI_BOX_FRAME_MAX - sizeof(uci_frame_hdr_t) - UCI_SEALED_ROOM);
}

/* UCX counts the header, and an active message of nothing at all if its threshold is 0 */
static bool uci_user_am_is_rndv(const uci_user_am_out_t *out, uint32_t flags)
{
    const uci_context_t *context = out->ep->peer->worker->context;

    if ((flags & UCP_AM_SEND_FLAG_RNDV) || uci_likely(!context->rndv_is_set)) {
        return (flags & UCP_AM_SEND_FLAG_RNDV) != 0;
    }
    return !(flags & UCP_AM_SEND_FLAG_EAGER) && !(out->what.flags & UCI_USER_AM_OWN) &&
           (out->what.header_length + out->data.length >= context->buffered_max);
}

static bool uci_user_am_is_one_frame(uci_user_am_out_t *out, uint32_t flags)
{
    if ((out->data.length == 0) || ((flags & UCP_AM_SEND_FLAG_EAGER) && (out->what.flags & UCI_USER_AM_OWN))) {
        return true;
    }
    return uci_user_am_lay_out(&out->what, out->data.length) <= out->ep->peer->eager_max;
}

/* UCX cuts an id to 16 bits, and refuses what is more from 1.18 on */
static bool uci_user_am_is_strict(void)
{
    unsigned major = 0, minor = 0;

    (void)sscanf(uci_ucp.get_version_string(), "%u.%u", &major, &minor);
    return (major > 1) || (minor >= 18);
}

static ucs_status_ptr_t uci_user_am_send_out(uci_user_am_out_t *out, uint32_t flags, const void *buffer, size_t count)
{
    ucs_status_t status = uci_buffer_init_send(&out->data, buffer, count, uci_buffer_datatype(out->param));
    ucs_status_ptr_t ret;

    if (uci_unlikely(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    if (flags & UCP_AM_SEND_FLAG_REPLY) {
        out->what.flags |= UCI_USER_AM_REPLY;
        out->what.name = uci_ep_name(uci_ep_number_there(out->ep));
    }
    out->is_rndv = uci_user_am_is_rndv(out, flags);
    if (!out->is_rndv && uci_user_am_is_one_frame(out, flags)) {
        ret = uci_user_am_send_eager(out);
    } else {
        ret = uci_user_am_send_large(out, flags);
    }
    uci_buffer_finish(&out->data);
    return ret;
}

ucs_status_ptr_t uci_user_am_send(uci_ep_t *ep, unsigned id, const void *header, size_t header_length,
                                  const void *buffer, size_t count, const ucp_request_param_t *param)
{
    uci_user_am_out_t out = {.ep     = ep,
                             .header = header,
                             .what   = {.id = (uint16_t)id, .header_length = (uint16_t)header_length},
                             .param  = param};

    if (uci_unlikely(((id > UINT16_MAX) && uci_user_am_is_strict()) ||
                     (header_length > ep->peer->worker->msgs.am_max_header))) {
        uci_error("an active message of id %u with a header of %zu bytes can't be sent: see "
                  "UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER",
                  id, header_length);
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    UCI_STATS_INC(user_am_sent);
    return uci_user_am_send_out(&out, uci_user_am_param_flags(param), buffer, count);
}

ucs_status_ptr_t uci_user_am_send_own(uci_ep_t *ep, uci_own_am_t id, uint32_t flags, const void *header,
                                      size_t header_length, const void *buffer, size_t count,
                                      const ucp_request_param_t *param)
{
    uci_user_am_out_t out = {
            .ep     = ep,
            .header = header,
            .what   = {.id = (uint16_t)id, .header_length = (uint16_t)header_length, .flags = UCI_USER_AM_OWN},
            .param  = param};

    return uci_user_am_send_out(&out, flags, buffer, count);
}
