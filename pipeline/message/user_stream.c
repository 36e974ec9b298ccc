/* SPDX-License-Identifier: BSD-3-Clause */
#include "user_stream.h"

#include <stdlib.h>

#include "base/request.h"
#include "base/wire_check.h"
#include "live/stats.h"
#include "transfer/repair.h"
#include "user_am.h"
#include "util/log.h"

/* What one send has brought, or the rest of it */
typedef struct uci_user_stream_piece {
    uci_list_t link;                /* in pieces or given of its stream */
    struct uci_user_stream *stream; /* NULL: that is gone */
    char *data;            /* memory of an active message; of a large one its own, or a buffer that is received into */
    size_t offset, length; /* of what nobody has had yet, behind it */
    bool large, arriving;
    uci_request_t *into; /* whose buffer that is; or NULL */
} uci_user_stream_piece_t;

/* One end of a stream */
typedef struct uci_user_stream {
    uci_list_t link; /* in streams of its peer */
    uci_peer_t *peer;
    uint32_t number;
    uci_list_t ready;                  /* in streams_ready of the worker, or alone */
    uci_list_t pieces, given;          /* uci_user_stream_piece_t */
    uci_request_t *recvs, **recvs_end; /* in order, by next_completed */
    uint32_t sent, arrived;            /* pieces */
    bool has_ended;                    /* a receive has, of which the program may not have been told */
    ucs_status_t status;               /* an error: bytes are missing behind the last piece */
} uci_user_stream_t;

/* -------------------------------------------------------------- streams */

static uci_ep_t *uci_user_stream_ep(const uci_user_stream_t *stream)
{
    uci_list_for_each(ep, &stream->peer->eps, uci_ep_t, link)
    {
        if ((ep->number == stream->number) && !ep->lent && !ep->closing) {
            return ep;
        }
    }
    return NULL;
}

static uci_user_stream_t *uci_user_stream_create(uci_peer_t *peer, uint32_t number)
{
    uci_user_stream_t *stream = calloc(1, sizeof(*stream));

    if (stream == NULL) {
        uci_error("no memory for a stream from %s", uci_peer_name(peer));
        return NULL;
    }
    stream->peer      = peer;
    stream->number    = number;
    stream->status    = peer->conversation.status;
    stream->recvs_end = &stream->recvs;
    uci_list_init(&stream->ready);
    uci_list_init(&stream->pieces);
    uci_list_init(&stream->given);
    uci_list_add_tail(&peer->msgs.streams, &stream->link);
    return stream;
}

static uci_user_stream_t *uci_user_stream_find(uci_peer_t *peer, uint32_t number)
{
    uci_list_for_each(stream, &peer->msgs.streams, uci_user_stream_t, link)
    {
        if (stream->number == number) {
            return stream;
        }
    }
    return NULL;
}

static uci_user_stream_t *uci_user_stream_of(const uci_ep_t *ep)
{
    uci_user_stream_t *stream = uci_user_stream_find(ep->peer, ep->number);

    return uci_likely(stream != NULL) ? stream : uci_user_stream_create(ep->peer, ep->number);
}

/* Will there be an endpoint of that number? */
static bool uci_user_stream_may_come(const uci_peer_t *peer, uint32_t number)
{
    const uci_worker_t *worker = peer->worker;

    if (!(number & UCI_EP_SOCK)) {
        return number > peer->eps_numbered;
    }
    uci_list_for_each(coming, &worker->conn.coming, uci_conn_coming_t, link)
    {
        if (uci_ep_accepted(coming->count, worker->uid, peer->uid) == number) {
            return true;
        }
    }
    return false;
}

/* @return NULL: its endpoint has been closed, or there is no memory */
static uci_user_stream_t *uci_user_stream_to(uci_peer_t *peer, uint32_t number)
{
    uci_user_stream_t wanted  = {.peer = peer, .number = number};
    uci_user_stream_t *stream = uci_user_stream_find(peer, number);

    if (uci_likely(stream != NULL)) {
        return stream;
    }
    return ((uci_user_stream_ep(&wanted) != NULL) || uci_user_stream_may_come(peer, number))
                   ? uci_user_stream_create(peer, number)
                   : NULL;
}

/* --------------------------------------------------------------- pieces */

static uci_user_stream_piece_t *uci_user_stream_add(uci_user_stream_t *stream, void *data, size_t offset, size_t length)
{
    uci_user_stream_piece_t *piece = calloc(1, sizeof(*piece));

    if (piece == NULL) {
        return NULL;
    }
    piece->stream = stream;
    piece->data   = data;
    piece->offset = offset;
    piece->length = length;
    uci_list_add_tail(&stream->pieces, &piece->link);
    return piece;
}

static void uci_user_stream_free(uci_worker_t *worker, uci_user_stream_piece_t *piece)
{
    uci_list_del(&piece->link);
    if (!piece->large) {
        uci_user_am_release(worker, piece->data);
    } else if (piece->into == NULL) {
        free(piece->data);
    }
    free(piece);
}

/* What is being fetched ends when it is here */
static void uci_user_stream_drop(uci_worker_t *worker, uci_user_stream_piece_t *piece)
{
    if (piece->arriving) {
        uci_list_del(&piece->link);
        piece->stream = NULL;
    } else {
        uci_user_stream_free(worker, piece);
    }
}

/* The first that nobody has to wait for; or NULL */
static uci_user_stream_piece_t *uci_user_stream_first(const uci_user_stream_t *stream)
{
    uci_user_stream_piece_t *piece;

    if (uci_list_is_empty(&stream->pieces)) {
        return NULL;
    }
    piece = uci_container_of(stream->pieces.next, uci_user_stream_piece_t, link);
    /* what has been freed is in no list: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    return piece->arriving ? NULL : piece;
}

/* UCX tells of an endpoint once, when bytes come that nobody waits for, and not if they have been taken before it is asked */
static void uci_user_stream_tell(uci_user_stream_t *stream)
{
    bool is_told = uci_list_is_empty(&stream->ready);

    if ((uci_user_stream_first(stream) != NULL) && is_told) {
        uci_list_add_tail(&stream->peer->worker->msgs.streams_ready, &stream->ready);
    }
}

static void uci_user_stream_took(uci_user_stream_t *stream)
{
    if (uci_user_stream_first(stream) == NULL) {
        uci_list_del(&stream->ready);
    }
}

/* ------------------------------------------------------------- receives */

static size_t uci_user_stream_room(const uci_request_t *req)
{
    return req->buffer.length - req->info.length;
}

/* @return bytes that it has taken */
static size_t uci_user_stream_fill(uci_request_t *req, const char *data, size_t length)
{
    size_t taken = uci_min(length, uci_user_stream_room(req));

    uci_buffer_store(&req->buffer, req->info.length, data, taken);
    req->info.length += taken;
    return taken;
}

static bool uci_user_stream_is_over(const uci_request_t *req)
{
    return (uci_user_stream_room(req) == 0) || ((req->info.length > 0) && (req->info.length % req->grain == 0));
}

static void uci_user_stream_end(uci_user_stream_t *stream, ucs_status_t status)
{
    uci_request_t *req = stream->recvs;

    stream->recvs = req->next_completed;
    if (stream->recvs == NULL) {
        stream->recvs_end = &stream->recvs;
    }
    stream->has_ended = true;
    uci_request_complete(req, (status == UCS_OK) ? req->buffer.status : status);
}

static void uci_user_stream_fail_recvs(uci_user_stream_t *stream, ucs_status_t status)
{
    while ((stream->recvs != NULL) && uci_list_is_empty(&stream->pieces)) {
        uci_user_stream_end(stream, status);
    }
}

/* Bytes are lost for want of memory: it ends behind those that are here */
static void uci_user_stream_lack(uci_user_stream_t *stream, size_t length)
{
    uci_error("no memory for %zu bytes of a stream from %s", length, uci_peer_name(stream->peer));
    stream->status = UCS_ERR_NO_MEMORY;
    uci_user_stream_fail_recvs(stream, stream->status);
    uci_user_stream_tell(stream);
}

/* @return bytes that the receives that wait have taken */
static size_t uci_user_stream_serve(uci_user_stream_t *stream, const char *data, size_t length)
{
    size_t taken = 0;

    while ((stream->recvs != NULL) && (taken < length)) {
        taken += uci_user_stream_fill(stream->recvs, data + taken, length - taken);
        if (uci_user_stream_is_over(stream->recvs)) {
            uci_user_stream_end(stream, UCS_OK);
        }
    }
    return taken;
}

/* Something has become the first piece, or nothing has */
static void uci_user_stream_go_on(uci_user_stream_t *stream)
{
    uci_user_stream_piece_t *piece;
    size_t taken;

    while ((stream->recvs != NULL) && ((piece = uci_user_stream_first(stream)) != NULL)) {
        taken = uci_user_stream_serve(stream, piece->data + piece->offset, piece->length);
        piece->offset += taken;
        piece->length -= taken;
        if (piece->length == 0) {
            uci_user_stream_free(stream->peer->worker, piece);
        }
    }
    if (UCS_STATUS_IS_ERR(stream->status)) {
        uci_user_stream_fail_recvs(stream, stream->status);
    }
    uci_user_stream_tell(stream);
}

/* ------------------------------------------------------------- arriving */

/* A piece can't be had: what is behind it is of no use */
static void uci_user_stream_cut(uci_user_stream_t *stream, uci_user_stream_piece_t *piece, ucs_status_t status)
{
    uci_user_stream_piece_t *last;

    stream->status = status;
    do {
        last = uci_container_of(stream->pieces.prev, uci_user_stream_piece_t, link);
        /* what has been freed is in no list: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        uci_user_stream_drop(stream->peer->worker, last);
    } while (last != piece);
}

/* The receive whose buffer was filled */
static void uci_user_stream_filled(uci_user_stream_t *stream, uci_user_stream_piece_t *piece, size_t length)
{
    piece->into->info.length += length;
    uci_list_del(&piece->link);
    free(piece);
    if (uci_user_stream_is_over(stream->recvs)) {
        uci_user_stream_end(stream, UCS_OK);
    }
}

static void uci_user_stream_fetched(void *request, ucs_status_t status, size_t length, void *arg)
{
    uci_user_stream_piece_t *piece = arg;
    uci_user_stream_t *stream      = piece->stream;

    uci_request_release(uci_request_from_user(request));
    piece->arriving = false;
    if (stream == NULL) {
        if (piece->into != NULL) {
            uci_request_complete(piece->into, UCS_ERR_CANCELED);
        }
        uci_user_stream_free(NULL, piece);
        return;
    }
    if (UCS_STATUS_IS_ERR(status)) {
        uci_user_stream_cut(stream, piece, status);
    } else if (piece->into != NULL) {
        uci_user_stream_filled(stream, piece, length);
    }
    uci_user_stream_go_on(stream);
}

/* Where a large one goes: into the buffer of who waits for it, if it has room for all */
static bool uci_user_stream_make_room(uci_user_stream_t *stream, uci_user_stream_piece_t *piece)
{
    uci_request_t *req = stream->recvs;

    piece->large    = true;
    piece->arriving = true;
    if ((req != NULL) && (stream->pieces.next == &piece->link) && (uci_user_stream_room(req) >= piece->length)) {
        piece->data = uci_buffer_direct(&req->buffer, req->info.length, piece->length);
        piece->into = (piece->data != NULL) ? req : NULL;
    }
    if (piece->into == NULL) {
        piece->data = malloc(piece->length);
        if (piece->data != NULL) {
            uci_repair_blank(piece->data, piece->length);
        }
    }
    return piece->data != NULL;
}

static ucs_status_t uci_user_stream_fetch(uci_user_stream_t *stream, void *desc, size_t length)
{
    uci_worker_t *worker           = stream->peer->worker;
    uci_user_stream_piece_t *piece = uci_user_stream_add(stream, NULL, 0, length);
    ucp_request_param_t param      = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                      UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                      .cb.recv_am = uci_user_stream_fetched,
                                      .user_data  = piece};

    if (piece == NULL) {
        goto err;
    }
    if (!uci_user_stream_make_room(stream, piece) ||
        UCS_PTR_IS_ERR(uci_user_am_recv_data(worker, desc, piece->data, length, &param))) {
        uci_user_stream_free(worker, piece);
        goto err;
    }
    return UCS_OK;

err:
    uci_user_stream_lack(stream, length);
    return UCS_ERR_NO_MEMORY;
}

/* One that is lost the policy has reported, and nobody gets what is behind it. @param is_lost  of a large one the descriptor */
static bool uci_user_stream_is_next(uci_user_stream_t *stream, uint32_t piece, bool is_lost)
{
    if (UCS_STATUS_IS_ERR(stream->status)) {
        return false;
    }
    if ((piece != stream->arrived) || is_lost) {
        stream->status = UCS_ERR_IO_ERROR;
        uci_user_stream_fail_recvs(stream, stream->status);
        return false;
    }
    ++stream->arrived;
    return true;
}

ucs_status_t uci_user_stream_arrived(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                     const ucp_am_recv_param_t *param)
{
    uci_peer_t *peer = arg;
    uci_user_stream_t *stream;
    uci_user_stream_header_t what;
    bool is_large = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    size_t taken  = 0;

    what.number = 0;
    if (header_length == sizeof(what)) {
        memcpy(&what, header, sizeof(what));
    }
    if (what.number == 0) {
        uci_wire_refuse(peer, "a piece of a stream", "a header that none has");
        return UCS_OK;
    }
    stream = uci_user_stream_to(peer, what.number);
    if (uci_unlikely(stream == NULL) || !uci_user_stream_is_next(stream, what.piece, is_large && (length == 0)) ||
        (length == 0)) {
        return UCS_OK; /* as UCX drops it */
    }
    if (is_large) {
        return uci_user_stream_fetch(stream, data, length);
    }
    if (uci_list_is_empty(&stream->pieces)) {
        taken = uci_user_stream_serve(stream, data, length);
    }
    if (taken == length) {
        return UCS_OK;
    }
    if (uci_user_stream_add(stream, data, taken, length - taken) == NULL) {
        uci_user_stream_lack(stream, length - taken);
        return UCS_OK;
    }
    uci_user_stream_tell(stream);
    return UCS_INPROGRESS;
}

/* ---------------------------------------------------------- the program */

ucs_status_ptr_t uci_user_stream_send(uci_ep_t *ep, const void *buffer, size_t count, const ucp_request_param_t *param)
{
    uci_user_stream_t *stream = uci_user_stream_of(ep);
    uci_user_stream_header_t what;
    ucs_status_ptr_t ret;

    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) && (param->flags != 0)) {
        return UCS_STATUS_PTR(UCS_ERR_NOT_IMPLEMENTED); /* as UCX says */
    }
    if (stream == NULL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    what = (uci_user_stream_header_t){.number = uci_ep_number_there(ep), .piece = stream->sent};
    ret  = uci_user_am_send_own(ep, UCI_OWN_AM_STREAM, 0, &what, sizeof(what), buffer, count, param);
    if (!UCS_PTR_IS_ERR(ret)) {
        ++stream->sent;
        UCI_STATS_INC(stream_sent);
    }
    return ret;
}

static size_t uci_user_stream_grain(ucp_datatype_t datatype, const ucp_request_param_t *param)
{
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) && (param->flags & UCP_STREAM_RECV_FLAG_WAITALL)) {
        return SIZE_MAX;
    }
    return uci_buffer_is_contig(datatype) ? uci_max(uci_buffer_contig_length(datatype, 1), 1ul) : 1;
}

static void uci_user_stream_post(uci_user_stream_t *stream, uci_request_t *req)
{
    req->next_completed = NULL;
    *stream->recvs_end  = req;
    stream->recvs_end   = &req->next_completed;
}

/* @return a request, which is not posted; NULL: no memory */
static uci_request_t *uci_user_stream_request(uci_worker_t *worker, void *buffer, size_t count,
                                              const ucp_request_param_t *param, ucs_status_t *status_p)
{
    ucp_datatype_t datatype = uci_buffer_datatype(param);
    uci_request_t *req      = uci_request_get(worker, param);

    *status_p = UCS_ERR_NO_MEMORY;
    if (req == NULL) {
        return NULL;
    }
    *status_p = uci_buffer_init_recv(&req->buffer, buffer, count, datatype);
    if (*status_p != UCS_OK) {
        uci_request_put(req);
        return NULL;
    }
    req->flags |= UCI_REQUEST_RECV | UCI_REQUEST_USER_AM; /* whose callback is of the same form */
    req->info  = (ucp_tag_recv_info_t){0};
    req->grain = uci_user_stream_grain(datatype, param);
    return req;
}

/* Into a buffer what is here. @return whether the receive is over */
static bool uci_user_stream_take(uci_user_stream_t *stream, uci_request_t *req)
{
    uci_user_stream_piece_t *piece;
    size_t taken;

    while ((stream->recvs == NULL) && (uci_user_stream_room(req) > 0) &&
           ((piece = uci_user_stream_first(stream)) != NULL)) {
        taken = uci_user_stream_fill(req, piece->data + piece->offset, piece->length);
        piece->offset += taken;
        piece->length -= taken;
        if (piece->length == 0) {
            uci_user_stream_free(stream->peer->worker, piece);
        }
        if ((req->buffer.kind == UCI_BUFFER_GENERIC) && (req->grain == 1)) {
            break; /* as UCX */
        }
    }
    uci_user_stream_took(stream);
    return (stream->recvs == NULL) && uci_user_stream_is_over(req);
}

/* UCX makes no request for what is here as a whole, and else needs one: with FORCE_IMM_CMPL it refuses to */
static bool uci_user_stream_needs_request(const uci_user_stream_t *stream, const void *buffer, size_t count,
                                          const ucp_request_param_t *param)
{
    const uci_user_stream_piece_t *piece = uci_user_stream_first(stream);

    return (piece == NULL) || (stream->recvs != NULL) || (param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) ||
           (piece->length < uci_buffer_known_length(buffer, count, param)) ||
           ((uci_buffer_datatype(param) & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC);
}

/* In UCX a callback is called where bytes arrive, so that no later receive has had its end before. Ours are called at the end of a turn: what is
 * received between, or by one of these callbacks, is told behind them */
static bool uci_user_stream_ends_later(uci_user_stream_t *stream, const ucp_request_param_t *param)
{
    const uci_worker_t *worker = stream->peer->worker;

    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
        return true;
    }
    stream->has_ended = stream->has_ended && ((worker->requests.completed != NULL) || worker->turn.own);
    return stream->has_ended && (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK);
}

ucs_status_ptr_t uci_user_stream_recv(uci_ep_t *ep, void *buffer, size_t count, size_t *length_p,
                                      const ucp_request_param_t *param)
{
    uci_user_stream_t *stream = uci_user_stream_of(ep);
    ucs_status_ptr_t ret;
    ucs_status_t status;
    uci_request_t *req;

    if (stream == NULL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    if (UCS_STATUS_IS_ERR(stream->status) && uci_list_is_empty(&stream->pieces)) {
        return UCS_STATUS_PTR(stream->status);
    }
    if (uci_unlikely(param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) &&
        uci_user_stream_needs_request(stream, buffer, count, param)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    req = uci_user_stream_request(ep->peer->worker, buffer, count, param, &status);
    if (req == NULL) {
        return UCS_STATUS_PTR(status);
    }
    if (!uci_user_stream_take(stream, req)) {
        uci_user_stream_post(stream, req);
        ret = uci_request_posted(req, param);
        if (uci_unlikely(UCS_STATUS_IS_ERR(stream->status))) {
            uci_user_stream_fail_recvs(stream, stream->status);
        }
        return ret;
    }
    if (uci_unlikely(uci_user_stream_ends_later(stream, param))) {
        ret = uci_request_posted(req, param);
        uci_request_complete(req, req->buffer.status);
        return ret;
    }
    *length_p = req->info.length;
    uci_buffer_finish(&req->buffer);
    status = req->buffer.status;
    uci_request_put(req);
    return UCS_STATUS_PTR(status);
}

ucs_status_ptr_t uci_user_stream_recv_data(uci_ep_t *ep, size_t *length_p)
{
    uci_user_stream_t *stream = uci_user_stream_of(ep);
    uci_user_stream_piece_t *piece;

    if (stream == NULL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    piece = uci_user_stream_first(stream);
    if (piece == NULL) {
        return UCS_STATUS_PTR(uci_list_is_empty(&stream->pieces) ? stream->status : UCS_OK);
    }
    uci_list_del(&piece->link);
    uci_list_add_head(&stream->given, &piece->link);
    uci_user_stream_took(stream);
    *length_p = piece->length;
    return piece->data + piece->offset;
}

void uci_user_stream_release(uci_ep_t *ep, void *data)
{
    uci_user_stream_t *stream = uci_user_stream_of(ep);

    if (stream == NULL) {
        return;
    }
    uci_list_for_each_safe(piece, &stream->given, uci_user_stream_piece_t, link)
    {
        if (piece->data + piece->offset == data) {
            uci_user_stream_free(ep->peer->worker, piece);
            return;
        }
    }
    uci_error("ucp_stream_data_release: %p is no data of a stream from %s", data, uci_peer_name(ep->peer));
}

size_t uci_user_stream_poll(uci_worker_t *worker, ucp_stream_poll_ep_t *eps, size_t max)
{
    size_t count = 0;

    uci_list_for_each_safe(stream, &worker->msgs.streams_ready, uci_user_stream_t, ready)
    {
        uci_ep_t *ep = (count < max) ? uci_user_stream_ep(stream) : NULL;

        if (ep != NULL) { /* else the program has not made it yet */
            uci_list_del(&stream->ready);
            eps[count++] = (ucp_stream_poll_ep_t){.ep = ep->ucp, .user_data = ep->user_data};
        }
    }
    return count;
}

/* ------------------------------------------------------------------- end */

static void uci_user_stream_drop_all(uci_worker_t *worker, uci_list_t *pieces)
{
    uci_list_for_each_safe(piece, pieces, uci_user_stream_piece_t, link)
    {
        uci_user_stream_drop(worker, piece);
    }
}

static void uci_user_stream_destroy(uci_user_stream_t *stream)
{
    uci_worker_t *worker = stream->peer->worker;

    uci_user_stream_drop_all(worker, &stream->pieces);
    uci_user_stream_drop_all(worker, &stream->given);
    uci_list_del(&stream->ready);
    uci_list_del(&stream->link);
    free(stream);
}

void uci_user_stream_close(const uci_ep_t *ep)
{
    uci_user_stream_t *stream = uci_user_stream_find(ep->peer, ep->number);

    if (stream == NULL) {
        return;
    }
    if ((stream->recvs != NULL) && !uci_list_is_empty(&stream->pieces) &&
        (uci_container_of(stream->pieces.next, uci_user_stream_piece_t, link)->into == stream->recvs)) {
        stream->recvs = stream->recvs->next_completed; /* it is over when nobody writes to its buffer any more */
    }
    while (stream->recvs != NULL) {
        uci_user_stream_end(stream, UCS_ERR_CANCELED);
    }
    uci_user_stream_destroy(stream);
}

static void uci_user_stream_stop(uci_user_stream_t *stream, ucs_status_t status)
{
    stream->status = (stream->status == UCS_OK) ? status : stream->status;
    uci_user_stream_fail_recvs(stream, status);
}

void uci_user_stream_fail(uci_peer_t *peer, ucs_status_t status)
{
    uci_list_for_each(stream, &peer->msgs.streams, uci_user_stream_t, link)
    {
        uci_user_stream_stop(stream, status);
    }
}

void uci_user_stream_fail_one(const uci_ep_t *ep, ucs_status_t status)
{
    uci_user_stream_t *stream = uci_user_stream_find(ep->peer, ep->number);

    if (stream != NULL) {
        uci_user_stream_stop(stream, status);
    }
}

void uci_user_stream_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(stream, &peer->msgs.streams, uci_user_stream_t, link)
    {
        uci_user_stream_destroy(stream);
    }
}
