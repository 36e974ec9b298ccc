/* SPDX-License-Identifier: BSD-3-Clause */
#include "request.inl"

#include <string.h>

#include "util/log.h"
#include "util/process.h"
#include "signed.h"
#include "worker_lock.h"

size_t uci_request_ucx_size;
__thread const uci_request_t *uci_request_ending;

void uci_request_set_ucx_size(size_t ucx_size)
{
    /* contexts of several threads may say the same at the same time */
    if (__atomic_load_n(&uci_request_ucx_size, __ATOMIC_RELAXED) < ucx_size) {
        __atomic_store_n(&uci_request_ucx_size, ucx_size, __ATOMIC_RELAXED);
    }
}

size_t uci_request_user_size(void)
{
    return uci_align_up(sizeof(uci_request_t) + sizeof(uint64_t) + uci_request_ucx_size, 16);
}

size_t uci_request_head(void)
{
    return uci_align_up(uci_request_user_size(), UCI_CACHE_LINE);
}

uci_request_t *uci_request_get(uci_worker_t *worker, const ucp_request_param_t *param)
{
    return uci_request_get_inline(worker, param);
}

void uci_request_put(uci_request_t *req)
{
    if (!(req->flags & UCI_REQUEST_USER_MEM)) {
        uci_pool_put(&req->worker->requests.pool, (char *)req->user - req->worker->requests.head);
    }
}

static void uci_request_call(uci_request_t *req, ucs_status_t status)
{
    if (!(req->flags & UCI_REQUEST_CALLBACK)) {
        return;
    }
    if (req->flags & UCI_REQUEST_RECV) {
        if (uci_unlikely(req->flags & UCI_REQUEST_USER_AM)) {
            req->cb.recv_am(req->user, status, req->info.length, req->user_data);
        } else {
            req->cb.recv(req->user, status, &req->info, req->user_data);
        }
    } else {
        req->cb.send(req->user, status, req->user_data);
    }
}

static void uci_request_queue(uci_request_t *req, ucs_status_t status)
{
    uci_worker_t *worker = req->worker;

    req->completed_status = status;
    req->next_completed   = NULL;
    if (worker->requests.completed == NULL) {
        worker->requests.end = &worker->requests.completed;
    }
    *worker->requests.end = req;
    worker->requests.end  = &req->next_completed;
}

/* A callback that asks about its request is told that it is over, as in UCX; another thread is not told before the callback has run.
 * A callback that frees its request only marks it: it is put after the callback. The user's memory it may free, or give to the
 * next operation, so that nothing is touched there afterwards. */
static void uci_request_end(uci_request_t *req, ucs_status_t status)
{
    const uci_request_t *outer = uci_request_ending;

    if (req->flags & UCI_REQUEST_USER_MEM) {
        uci_request_set_status(req, status);
        uci_request_call(req, status);
        return;
    }

    if (req->worker->access.is_mt) {
        req->completed_status = status;
        uci_request_ending    = req;
    } else {
        req->status = status;
    }
    uci_request_call(req, status);
    uci_request_ending = outer;
    uci_request_set_status(req, status);
    if (req->flags & UCI_REQUEST_RELEASED) {
        uci_request_put(req);
    }
}

unsigned uci_request_deliver(uci_worker_t *worker)
{
    uci_request_t *req, *next = worker->requests.completed;
    unsigned count = 0;

    worker->requests.completed = NULL; /* what callbacks complete is for the next turn */
    while ((req = next) != NULL) {
        next = req->next_completed;
        uci_request_end(req, req->completed_status);
        uci_stats_here = worker->stats.counters; /* it may have been in another worker */
        ++count;
    }
    return count;
}

static void uci_request_complete_other(uci_request_t *req, ucs_status_t status)
{
    if (req->flags & UCI_REQUEST_SIGNED) {
        uci_signed_end(req, status);
        uci_request_complete(req, status);
        return;
    }
    if (req->flags & UCI_REQUEST_TWIN) {
        req->flags &= ~(uint32_t)UCI_REQUEST_TWIN;
        if (!req->worker->twins.events->received(req, status)) {
            uci_request_complete(req, status);
        } /* else when the twins have voted */
        return;
    }
    uci_buffer_finish(&req->buffer);
    if (req->flags & UCI_REQUEST_POSTING) {
        uci_request_set_status(req, status);
    } else {
        uci_request_end(req, status);
    }
}

void uci_request_complete_slow(uci_request_t *req, ucs_status_t status)
{
    const uint32_t special = UCI_REQUEST_TWIN | UCI_REQUEST_SIGNED | UCI_REQUEST_POSTING | UCI_REQUEST_CALLBACK;

    if (uci_unlikely((req->flags & special) != UCI_REQUEST_CALLBACK)) {
        uci_request_complete_other(req, status);
        return;
    }
    uci_buffer_finish(&req->buffer);
    uci_request_queue(req, status);
}

void uci_request_complete(uci_request_t *req, ucs_status_t status)
{
    uci_request_complete_inline(req, status);
}

void uci_request_complete_recv(uci_request_t *req, ucs_status_t status, ucp_tag_t tag, size_t length)
{
    uci_request_complete_recv_inline(req, status, tag, length);
}

static void uci_request_tell(const uci_request_t *req, const ucp_request_param_t *param)
{
    if (req->flags & UCI_REQUEST_USER_AM) {
        *param->recv_info.length = req->info.length;
    } else {
        *param->recv_info.tag_info = req->info;
    }
}

ucs_status_ptr_t uci_request_posted_slow(uci_request_t *req, const ucp_request_param_t *param)
{
    ucs_status_t status;

    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
        uci_request_call(req, req->status);
        return req->user;
    }

    /* a request in the user's memory stays readable: Open MPI polls it without looking at what we return */
    status = req->status;
    if ((req->flags & UCI_REQUEST_RECV) && (param->op_attr_mask & UCP_OP_ATTR_FIELD_RECV_INFO)) {
        uci_request_tell(req, param);
    }
    uci_request_put(req);
    return UCS_STATUS_PTR(status);
}

ucs_status_ptr_t uci_request_posted(uci_request_t *req, const ucp_request_param_t *param)
{
    return uci_request_posted_inline(req, param);
}

ucs_status_ptr_t uci_request_immediate(uci_worker_t *worker, const ucp_request_param_t *param)
{
    uci_request_t *req;

    /* the user's memory for a request stays as it is, as in UCX */
    if (uci_likely(!(param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL))) {
        return NULL;
    }

    req = uci_request_get(worker, param);
    if (req == NULL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    uci_request_set_status(req, UCS_OK);
    return uci_request_posted(req, param);
}

static void uci_request_give_back(uci_request_t *req, uint32_t dropped_flags)
{
    uci_worker_t *worker = req->worker;

    uci_worker_enter(worker);
    if (req->flags & UCI_REQUEST_COMPLETED) {
        uci_request_put(req);
    } else {
        req->flags = (req->flags | UCI_REQUEST_RELEASED) & ~dropped_flags;
    }
    uci_worker_leave(worker);
}

void uci_request_free(uci_request_t *req)
{
    uci_request_give_back(req, UCI_REQUEST_CALLBACK);
}

void uci_request_release(uci_request_t *req)
{
    uci_request_give_back(req, 0);
}

bool uci_request_withdraw(uci_request_t *req)
{
    uci_match_take_recv(&req->worker->match, &req->match);
    return true;
}

void uci_request_cancelled(uci_request_t *req)
{
    req->info = (ucp_tag_recv_info_t){0};
    req->flags &= ~(uint32_t)UCI_REQUEST_TWIN; /* there is no message to compare */
    uci_request_complete(req, UCS_ERR_CANCELED);
}

void uci_request_cancel(uci_request_t *req)
{
    uci_worker_t *worker = req->worker;

    /* as in UCX: receives that are not matched */
    uci_worker_enter(worker);
    if ((req->flags & UCI_REQUEST_RECV) && !(req->flags & UCI_REQUEST_COMPLETED) &&
        uci_match_recv_is_posted(&req->match) && worker->calls.withdraw(req)) {
        uci_buffer_finish(&req->buffer);
        uci_signed_end(req, UCS_ERR_CANCELED);
        req->info = (ucp_tag_recv_info_t){0};
        uci_request_end(req, UCS_ERR_CANCELED); /* within the call, as in UCX: nothing else is going on */
    }
    uci_worker_leave(worker);
}
