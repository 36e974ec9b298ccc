/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * In line for the way of every message: what request.h declares, under the same names with _inline behind.
 */
#ifndef UCI_REQUEST_INL_
#define UCI_REQUEST_INL_

#include "request.h"
#include "worker_state.h"

UCI_INLINE uci_request_t *uci_request_alloc(uci_worker_t *worker, const ucp_request_param_t *param)
{
    uci_request_t *req;
    void *object;

    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) {
        req        = uci_request_mark(param->request);
        req->user  = param->request;
        req->flags = UCI_REQUEST_USER_MEM | UCI_REQUEST_POSTING;
        return req;
    }

    object = uci_pool_get(&worker->requests.pool);
    if (uci_unlikely(object == NULL)) {
        return NULL;
    }
    req        = uci_request_mark((char *)object + worker->requests.head);
    req->user  = (char *)object + worker->requests.head;
    req->flags = UCI_REQUEST_POSTING;
    return req;
}

UCI_INLINE uci_request_t *uci_request_get_inline(uci_worker_t *worker, const ucp_request_param_t *param)
{
    uci_request_t *req = uci_request_alloc(worker, param);

    if (uci_unlikely(req == NULL)) {
        return NULL;
    }

    req->status = UCS_INPROGRESS;
    req->worker = worker;
    uci_match_recv_init(&req->match);
    req->buffer.kind = UCI_BUFFER_CONTIG;
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
        req->flags |= UCI_REQUEST_CALLBACK;
        req->cb.send   = param->cb.send;
        req->user_data = (param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) ? param->user_data : NULL;
    }
    return req;
}

/* COMPLETED is set before the callback, which may free; the status is what another thread polls */
UCI_INLINE void uci_request_set_status(uci_request_t *req, ucs_status_t status)
{
    req->flags |= UCI_REQUEST_COMPLETED;
    __atomic_store_n(&req->status, status, __ATOMIC_RELEASE);
}

/* With a callback, freed by the user, of interest to twins, or with a signature that nothing was compared with */
void uci_request_complete_slow(uci_request_t *req, ucs_status_t status);

UCI_INLINE void uci_request_complete_inline(uci_request_t *req, ucs_status_t status)
{
    if (req->flags & (UCI_REQUEST_CALLBACK | UCI_REQUEST_RELEASED | UCI_REQUEST_TWIN | UCI_REQUEST_SIGNED)) {
        uci_request_complete_slow(req, status);
        return;
    }
    /* the user may only poll: once it sees the status, the memory is the user's */
    uci_buffer_finish(&req->buffer);
    uci_request_set_status(req, status);
}

UCI_INLINE void uci_request_complete_recv_inline(uci_request_t *req, ucs_status_t status, ucp_tag_t tag, size_t length)
{
    req->info.sender_tag = tag;
    req->info.length     = length;
    uci_request_complete_inline(req, status);
}

/* It is over already */
ucs_status_ptr_t uci_request_posted_slow(uci_request_t *req, const ucp_request_param_t *param);

UCI_INLINE ucs_status_ptr_t uci_request_posted_inline(uci_request_t *req, const ucp_request_param_t *param)
{
    req->flags &= ~(uint32_t)UCI_REQUEST_POSTING;
    return uci_likely(!(req->flags & UCI_REQUEST_COMPLETED)) ? req->user : uci_request_posted_slow(req, param);
}

#endif
