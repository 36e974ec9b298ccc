/* SPDX-License-Identifier: BSD-3-Clause */
#include "defer.h"

#include <stdlib.h>

#include "attach/plugin.h"
#include "base/request.h"
#include "conn/close.h"
#include "live/stats.h"
#include "message/send.h"
#include "message/user_am.h"
#include "message/user_stream.h"
#include "rma/rma.h"
#include "staging.h"
#include "util/log.h"

/* What an operation that waits keeps of the program's parameters */
#define UCI_DEFER_FIELDS \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_MEMH | \
     UCP_OP_ATTR_FLAG_FAST_CMPL)

typedef struct uci_deferred {
    uci_list_t link; /* in sock->deferred */
    uci_request_t *req;
    uci_defer_what_t what;
    ucp_request_param_t param;
    size_t length; /* STREAM_RECV */
    char header[];
} uci_deferred_t;

/* A flush of a worker, behind all that waits: one operation of kind BARRIER in each endpoint in which something does, with this for a buffer */
typedef struct uci_defer_barrier {
    uci_worker_t *worker;
    uci_deferred_t *flush;
    unsigned count;
} uci_defer_barrier_t;

/* ----------------------------------------------------------------- doing */

static ucs_status_ptr_t uci_defer_send_own(uci_sock_t *sock, const uci_defer_what_t *what,
                                           const ucp_request_param_t *param)
{
    ucp_request_param_t staged;

    param = uci_hook_param(sock->worker, what->buffer, what->count, param, &staged);
    if (param == NULL) {
        return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    }
    switch (what->kind) {
    case UCI_DEFER_AM:
        return uci_user_am_send(sock->ep, (unsigned)what->tag, what->header, what->header_length, what->buffer,
                                what->count, param);
    case UCI_DEFER_STREAM:
        return uci_user_stream_send(sock->ep, what->buffer, what->count, param);
    case UCI_DEFER_STREAM_RECV:
        return uci_user_stream_recv(sock->ep, what->buffer, what->count, what->length_p, param);
    default:
        return uci_send(sock->ep, what->buffer, what->count, what->tag, param, what->kind == UCI_DEFER_TAG_SYNC);
    }
}

static void uci_defer_count(const uci_defer_what_t *what, const ucp_request_param_t *param)
{
    size_t length = what->header_length + uci_buffer_known_length(what->buffer, what->count, param);

    switch (what->kind) {
    case UCI_DEFER_AM:
        UCI_STATS_PASSED(UCI_STATS_ADD, am, length);
        break;
    case UCI_DEFER_STREAM:
        UCI_STATS_PASSED(UCI_STATS_ADD, stream, length);
        break;
    case UCI_DEFER_STREAM_RECV:
        break;
    default:
        UCI_STATS_PASSED(UCI_STATS_ADD, messages, length);
        break;
    }
}

static ucs_status_ptr_t uci_defer_send_past(uci_sock_t *sock, const uci_defer_what_t *what,
                                            const ucp_request_param_t *param)
{
    uci_plugin_clear_marker(param);
    if (sock->state == UCI_SOCK_RAW) {
        uci_defer_count(what, param);
    }
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
        uci_worker_set_foreign(sock->worker);
    }
    switch (what->kind) {
    case UCI_DEFER_AM:
        return uci_ucp.am_send_nbx(sock->ucp, (unsigned)what->tag, what->header, what->header_length, what->buffer,
                                   what->count, param);
    case UCI_DEFER_STREAM:
        return uci_ucp.stream_send_nbx(sock->ucp, what->buffer, what->count, param);
    case UCI_DEFER_STREAM_RECV:
        return uci_ucp.stream_recv_nbx(sock->ucp, what->buffer, what->count, what->length_p, param);
    case UCI_DEFER_TAG_SYNC:
        return uci_ucp.tag_send_sync_nbx(sock->ucp, what->buffer, what->count, what->tag, param);
    default:
        return uci_ucp.tag_send_nbx(sock->ucp, what->buffer, what->count, what->tag, param);
    }
}

/* Both ends of an endpoint to oneself are one peer's, whose streams have no numbers (conn/sock.c) */
static bool uci_defer_is_own(const uci_sock_t *sock, uci_defer_kind_t kind)
{
    bool is_stream = (kind == UCI_DEFER_STREAM) || (kind == UCI_DEFER_STREAM_RECV);

    return (sock->state == UCI_SOCK_KNOWN) && !(is_stream && (sock->ep->number == 0));
}

/* UCX's own part of it, and of a flush what is one-sided */
static ucs_status_ptr_t uci_defer_end_ucx(uci_sock_t *sock, const uci_defer_what_t *what,
                                          const ucp_request_param_t *param)
{
    if ((what->kind == UCI_DEFER_FLUSH) && (sock->state == UCI_SOCK_KNOWN) && uci_rma_flushes(sock->worker)) {
        return uci_rma_flush(sock->worker, sock->ep, param);
    }
    uci_plugin_clear_marker(param);
    return (what->kind == UCI_DEFER_FLUSH) ? uci_ucp.ep_flush_nbx(sock->ucp, param)
                                           : uci_ucp.ep_close_nbx(sock->ucp, param);
}

static ucs_status_ptr_t uci_defer_do(uci_sock_t *sock, const uci_defer_what_t *what, const ucp_request_param_t *param)
{
    if ((what->kind == UCI_DEFER_CLOSE) && (sock->state == UCI_SOCK_KNOWN)) {
        sock->ep->shown = uci_handles_add(&uci_closing, sock->ucp, sock->ep); /* until it goes */
        uci_user_stream_close(sock->ep);
        return uci_ep_close(sock->ep, param);
    }
    if ((what->kind == UCI_DEFER_FLUSH) || (what->kind == UCI_DEFER_CLOSE)) {
        return uci_defer_end_ucx(sock, what, param);
    }
    if (sock->state == UCI_SOCK_REFUSED) {
        return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    }
    return uci_defer_is_own(sock, what->kind) ? uci_defer_send_own(sock, what, param)
                                              : uci_defer_send_past(sock, what, param);
}

/* --------------------------------------------------------------- waiting */

static void uci_defer_end(uci_deferred_t *op, ucs_status_t status)
{
    uci_request_t *req = op->req;

    free(op);
    uci_request_complete(req, status);
}

static void uci_defer_free(void *request)
{
    uci_request_t *req = uci_request_from_user(request);

    if (req != NULL) {
        uci_request_free(req);
    } else {
        uci_ucp.request_free(request);
    }
}

static void uci_defer_done(void *request, ucs_status_t status, void *user_data)
{
    uci_deferred_t *op   = user_data;
    uci_worker_t *worker = op->req->worker;

    uci_defer_free(request);
    uci_worker_enter(worker);
    uci_defer_end(op, status);
    uci_worker_leave(worker);
}

static void uci_defer_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    uci_deferred_t *op = user_data;

    op->req->info.length = length;
    uci_defer_done(request, status, user_data);
}

static void uci_defer_keep_param(uci_deferred_t *op, const ucp_request_param_t *param)
{
    uint32_t fields = param->op_attr_mask & UCI_DEFER_FIELDS;

    op->param.op_attr_mask = fields | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    op->param.user_data    = op;
    op->param.cb.send      = uci_defer_done;
    if (op->what.kind == UCI_DEFER_STREAM_RECV) {
        op->param.cb.recv_stream = uci_defer_received;
    }
    op->param.flags       = (fields & UCP_OP_ATTR_FIELD_FLAGS) ? param->flags : 0;
    op->param.datatype    = (fields & UCP_OP_ATTR_FIELD_DATATYPE) ? param->datatype : 0;
    op->param.memory_type = (fields & UCP_OP_ATTR_FIELD_MEMORY_TYPE) ? param->memory_type : UCS_MEMORY_TYPE_UNKNOWN;
    op->param.memh        = (fields & UCP_OP_ATTR_FIELD_MEMH) ? param->memh : NULL;
}

/* @return NULL: no memory (logged) */
static uci_deferred_t *uci_defer_create(uci_worker_t *worker, const uci_defer_what_t *what,
                                        const ucp_request_param_t *param)
{
    uci_deferred_t *op = calloc(1, sizeof(*op) + what->header_length);
    uci_request_t *req = (op != NULL) ? uci_request_get(worker, param) : NULL;

    if (req == NULL) {
        uci_error("failed to allocate what an operation needs to wait for the other side");
        free(op);
        return NULL;
    }
    op->req  = req;
    op->what = *what;
    uci_defer_keep_param(op, param);
    if (what->header_length > 0) {
        memcpy(op->header, what->header, what->header_length);
        op->what.header = op->header;
    }
    req->info = (ucp_tag_recv_info_t){0};
    return op;
}

static ucs_status_ptr_t uci_defer_wait(uci_sock_t *sock, const uci_defer_what_t *what, const ucp_request_param_t *param)
{
    uci_deferred_t *op = uci_defer_create(sock->worker, what, param);

    if (op == NULL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    if (what->kind == UCI_DEFER_STREAM_RECV) {
        op->what.length_p = &op->length;
        op->req->flags |= UCI_REQUEST_RECV | UCI_REQUEST_USER_AM; /* whose callback is of the same form */
    }
    uci_list_add_tail(&sock->deferred, &op->link);
    uci_sock_hurry(sock);
    return uci_request_posted(op->req, param);
}

/* The last one has the worker flushed */
static void uci_defer_pass(uci_deferred_t *op)
{
    uci_defer_barrier_t *barrier = op->what.buffer;
    uci_deferred_t *flush        = barrier->flush;
    ucs_status_ptr_t ret;

    free(op);
    if (--barrier->count > 0) {
        return;
    }
    ret = uci_rma_flushes(barrier->worker) ? uci_rma_flush(barrier->worker, NULL, &flush->param)
                                           : uci_ucp.worker_flush_nbx(barrier->worker->ucp, &flush->param);
    free(barrier);
    if (!UCS_PTR_IS_PTR(ret)) {
        uci_defer_end(flush, UCS_PTR_STATUS(ret));
    }
}

static void uci_defer_begin(uci_sock_t *sock, uci_deferred_t *op)
{
    ucs_status_ptr_t ret;

    if (op->what.kind == UCI_DEFER_BARRIER) {
        uci_defer_pass(op);
        return;
    }
    ret = uci_defer_do(sock, &op->what, &op->param);
    if (!UCS_PTR_IS_PTR(ret)) {
        op->req->info.length = op->length;
        uci_defer_end(op, UCS_PTR_STATUS(ret));
    }
}

void uci_defer_run(uci_sock_t *sock)
{
    uci_deferred_t *op;

    while (!uci_list_is_empty(&sock->deferred)) {
        op = uci_container_of(sock->deferred.next, uci_deferred_t, link);
        uci_list_del(&op->link);
        uci_defer_begin(sock, op);
    }
}

static void uci_defer_close_by_force(const uci_sock_t *sock)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags        = sock->unforced ? 0 : UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t request  = uci_ucp.ep_close_nbx(sock->ucp, &param);

    if (UCS_PTR_IS_PTR(request)) {
        uci_ucp.request_free(request);
    }
}

void uci_defer_fail(uci_sock_t *sock, ucs_status_t status)
{
    uci_deferred_t *op;

    while (!uci_list_is_empty(&sock->deferred)) {
        op = uci_container_of(sock->deferred.next, uci_deferred_t, link);
        uci_list_del(&op->link);
        if (op->what.kind == UCI_DEFER_BARRIER) {
            uci_defer_pass(op);
            continue;
        }
        if (op->what.kind == UCI_DEFER_CLOSE) {
            uci_defer_close_by_force(sock); /* the program has no handle of it any more */
        }
        uci_defer_end(op, status);
    }
}

static void uci_defer_forget(uci_deferred_t *op)
{
    uci_defer_barrier_t *barrier = op->what.buffer;

    if ((op->what.kind == UCI_DEFER_BARRIER) && (--barrier->count == 0)) {
        free(barrier->flush);
        free(barrier);
    }
    free(op);
}

void uci_defer_drop(uci_sock_t *sock)
{
    if (sock->flush != NULL) {
        uci_defer_close_by_force(sock);
    }
    uci_list_for_each_safe(op, &sock->deferred, uci_deferred_t, link)
    {
        uci_list_del(&op->link);
        uci_defer_forget(op);
    }
}

ucs_status_ptr_t uci_defer(uci_sock_t *sock, const uci_defer_what_t *what, const ucp_request_param_t *param)
{
    uci_worker_t *worker = sock->worker;
    ucs_status_ptr_t ret;

    uci_worker_enter(worker);
    if (!uci_sock_is_waiting(sock)) {
        ret = uci_defer_do(sock, what, param);
    } else if (param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
        ret = UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    } else {
        ret = uci_defer_wait(sock, what, param);
    }
    uci_worker_leave(worker);
    return ret;
}

/* ----------------------------------------------------- flushes of a worker */

bool uci_defer_is_any(const uci_worker_t *worker)
{
    uci_list_for_each(sock, &worker->conn.socks, uci_sock_t, link)
    {
        if (!uci_list_is_empty(&sock->deferred)) {
            return true;
        }
    }
    return false;
}

static void uci_defer_put_barrier(uci_sock_t *sock, uci_defer_barrier_t *barrier)
{
    uci_deferred_t *op = uci_list_is_empty(&sock->deferred) ? NULL : calloc(1, sizeof(*op));

    if (op != NULL) {
        op->what = (uci_defer_what_t){.kind = UCI_DEFER_BARRIER, .buffer = barrier};
        ++barrier->count;
        uci_list_add_tail(&sock->deferred, &op->link);
    }
}

ucs_status_ptr_t uci_defer_worker_flush(uci_worker_t *worker, const ucp_request_param_t *param)
{
    const uci_defer_what_t what  = {.kind = UCI_DEFER_FLUSH};
    uci_defer_barrier_t *barrier = calloc(1, sizeof(*barrier));
    uci_deferred_t *flush        = (barrier != NULL) ? uci_defer_create(worker, &what, param) : NULL;

    if (flush == NULL) {
        free(barrier);
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    *barrier = (uci_defer_barrier_t){.worker = worker, .flush = flush};
    uci_list_for_each(sock, &worker->conn.socks, uci_sock_t, link)
    {
        uci_defer_put_barrier(sock, barrier);
    }
    if (barrier->count == 0) {
        uci_request_put(flush->req);
        free(flush);
        free(barrier);
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    return uci_request_posted(flush->req, param);
}
