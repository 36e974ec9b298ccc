/* SPDX-License-Identifier: BSD-3-Clause */
#include "request.h"

#include <string.h>

#include "log.h"
#include "process.h"
#include "worker.h"

uci_range_t uci_request_range;

static size_t uci_request_ucx_size;

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

uint64_t *uci_request_marker(void *user)
{
    return (uint64_t *)(void *)((char *)user - uci_request_ucx_size - sizeof(uint64_t));
}

uint64_t uci_request_marker_value(const void *user)
{
    /* depends on the address, so that a copy elsewhere is not one */
    return (uint64_t)(uintptr_t)user ^ 0x9e3779b97f4a7c15ul;
}

static uci_request_t *uci_request_of_user_memory(void *user)
{
    return (uci_request_t *)(void *)((char *)uci_request_marker(user) - sizeof(uci_request_t));
}

void uci_request_clear_marker(void *user)
{
    *uci_request_marker(user) = 0;
}

uci_request_t *uci_request_from_user_slow(void *user)
{
    /* UCX's own requests come from its pools, where the word in front of one is the pool's */
    return (*uci_request_marker(user) == uci_request_marker_value(user)) ? uci_request_of_user_memory(user) : NULL;
}

static uci_request_t *uci_request_alloc(uci_worker_t *worker, const ucp_request_param_t *param)
{
    uci_request_t *req;

    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) {
        *uci_request_marker(param->request) = uci_request_marker_value(param->request);
        req                                 = uci_request_of_user_memory(param->request);
        req->user                           = param->request;
        req->flags                          = UCI_REQUEST_USER_MEM | UCI_REQUEST_POSTING;
        return req;
    }

    req = uci_pool_get(&worker->requests);
    if (uci_likely(req != NULL)) {
        req->user  = (char *)req + UCI_REQUEST_HEAD;
        req->flags = UCI_REQUEST_POSTING;
    }
    return req;
}

uci_request_t *uci_request_get(uci_worker_t *worker, const ucp_request_param_t *param)
{
    uci_request_t *req = uci_request_alloc(worker, param);

    if (uci_unlikely(req == NULL)) {
        return NULL;
    }

    req->status      = UCS_INPROGRESS;
    req->worker      = worker;
    req->frame       = NULL;
    req->ucx         = NULL;
    req->buffer.kind = UCI_BUFFER_CONTIG;
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
        req->flags |= UCI_REQUEST_CALLBACK;
        req->cb.send   = param->cb.send;
        req->user_data = (param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) ? param->user_data : NULL;
    }
    return req;
}

void uci_request_put(uci_request_t *req)
{
    if (!(req->flags & UCI_REQUEST_USER_MEM)) {
        uci_pool_put(&req->worker->requests, req);
    }
}

static void uci_request_call(uci_request_t *req, ucs_status_t status)
{
    if (!(req->flags & UCI_REQUEST_CALLBACK)) {
        return;
    }
    if (req->flags & UCI_REQUEST_RECV) {
        req->cb.recv(req->user, status, &req->info, req->user_data);
    } else {
        req->cb.send(req->user, status, req->user_data);
    }
}

/* COMPLETED is set before the callback, which may free; the status is what another thread polls */
static void uci_request_set_status(uci_request_t *req, ucs_status_t status)
{
    req->flags |= UCI_REQUEST_COMPLETED;
    __atomic_store_n(&req->status, status, __ATOMIC_RELEASE);
}

/* The user's callback runs in progress of the request's own worker, and in order */
static void uci_request_defer(uci_request_t *req, ucs_status_t status)
{
    uci_worker_t *worker = req->worker;

    req->deferred_status = status;
    req->next_deferred   = NULL;
    if (worker->deferred == NULL) {
        worker->deferred_end = &worker->deferred;
        ++worker->ops_active;
    }
    *worker->deferred_end = req;
    worker->deferred_end  = &req->next_deferred;
}

/* As in UCX, who polls sees the end after the callback, and a callback that frees its request only marks it: it is put
 * after the callback */
static void uci_request_end(uci_request_t *req, ucs_status_t status)
{
    uci_request_call(req, status);
    uci_request_set_status(req, status);
    if (req->flags & UCI_REQUEST_RELEASED) {
        uci_request_put(req);
    }
}

unsigned uci_request_deliver(uci_worker_t *worker)
{
    uci_request_t *req, *next = worker->deferred;
    unsigned count = 0;

    worker->deferred  = NULL;
    worker->deferring = false;
    --worker->ops_active;
    while ((req = next) != NULL) {
        next = req->next_deferred;
        uci_request_end(req, req->deferred_status);
        ++count;
    }
    return count;
}

void uci_request_complete(uci_request_t *req, ucs_status_t status)
{
    uci_buffer_finish(&req->buffer);
    if (req->flags & UCI_REQUEST_POSTING) {
        uci_request_set_status(req, status);
        return;
    }

    if (!(req->flags & (UCI_REQUEST_CALLBACK | UCI_REQUEST_RELEASED))) {
        /* the user may only poll: once it sees the status, the memory is the user's */
        uci_request_set_status(req, status);
        return;
    }

    if (uci_unlikely(req->worker->deferring)) {
        uci_request_defer(req, status);
    } else {
        uci_request_end(req, status);
    }
}

void uci_request_complete_recv(uci_request_t *req, ucs_status_t status, ucp_tag_t tag, size_t length)
{
    req->info.sender_tag = tag;
    req->info.length     = length;
    uci_request_complete(req, status);
}

ucs_status_ptr_t uci_request_posted(uci_request_t *req, const ucp_request_param_t *param)
{
    ucs_status_t status;

    req->flags &= ~(uint32_t)UCI_REQUEST_POSTING;
    if (!(req->flags & UCI_REQUEST_COMPLETED)) {
        return req->user;
    }

    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
        uci_request_call(req, req->status);
        return req->user;
    }

    /* a request in the user's memory stays readable: Open MPI polls it without looking at what we return */
    status = req->status;
    if ((req->flags & UCI_REQUEST_RECV) && (param->op_attr_mask & UCP_OP_ATTR_FIELD_RECV_INFO)) {
        *param->recv_info.tag_info = req->info;
    }
    uci_request_put(req);
    return UCS_STATUS_PTR(status);
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

ucs_status_t uci_request_check(uci_request_t *req)
{
    return __atomic_load_n(&req->status, __ATOMIC_ACQUIRE);
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

void uci_request_cancel(uci_request_t *req)
{
    /* UCX cancels receives that are not matched; so do we, by cancelling what waits underneath */
    if ((req->flags & UCI_REQUEST_RECV) && (req->ucx != NULL) && !(req->flags & UCI_REQUEST_COMPLETED)) {
        uci_ucp.request_cancel(req->worker->ucp, req->ucx);
    }
}
