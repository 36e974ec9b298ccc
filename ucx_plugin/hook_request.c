/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "request.h"

UCI_EXPORT void *ucp_request_alloc(ucp_worker_h worker);
UCI_EXPORT ucs_status_t ucp_request_check_status(void *request);
UCI_EXPORT ucs_status_t ucp_request_test(void *request, ucp_tag_recv_info_t *info);
UCI_EXPORT ucs_status_t ucp_tag_recv_request_test(void *request, ucp_tag_recv_info_t *info);
UCI_EXPORT int ucp_request_is_completed(void *request);
UCI_EXPORT void ucp_request_cancel(ucp_worker_h worker, void *request);
UCI_EXPORT void ucp_request_free(void *request);
UCI_EXPORT void ucp_request_release(void *request);
UCI_EXPORT ucs_status_t ucp_request_query(void *request, ucp_request_attr_t *attr);

static uci_handles_t uci_allocated; /* what ucp_request_alloc() returned -> the memory it lies in */

/* Memory from UCX's pool has no room for us. This has, as the user's own of the size that ucp_context_query() reports */
static void *uci_hook_request_alloc(const uci_context_t *context)
{
    size_t head  = uci_request_user_size();
    char *memory = calloc(1, head + context->request_size), *user = memory + head;

    if ((memory == NULL) || !uci_handles_add(&uci_allocated, user, memory)) {
        uci_error("failed to allocate memory for a request");
        free(memory);
        return NULL;
    }
    *uci_request_marker(user) = ~uci_request_marker_value(user); /* nobody has used it */
    if (context->request_init != NULL) {
        context->request_init(user);
    }
    return user;
}

UCI_EXPORT void *ucp_request_alloc(ucp_worker_h worker)
{
    uci_worker_t *ours;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    return (ours == NULL) ? uci_ucp.request_alloc(worker) : uci_hook_request_alloc(ours->context);
}

/* Of memory from ucp_request_alloc(). @return false if it is not. Where an operation still runs the memory stays */
static bool uci_hook_free_allocated(void *user)
{
    uci_request_t *req = uci_request_from_user(user);
    bool over          = true;
    void *memory;

    if ((uci_allocated.slots == NULL) || (uci_handles_find(&uci_allocated, user) == NULL)) {
        return false;
    }
    memory = uci_handles_remove(&uci_allocated, user);
    if (req != NULL) {
        over = (uci_request_check(req) != UCS_INPROGRESS);
        uci_request_free(req);
    } else if (*uci_request_marker(user) == 0) {
        over = (uci_ucp.request_check_status(user) != UCS_INPROGRESS);
    }
    if (over) {
        free(memory);
    }
    return true;
}

UCI_EXPORT ucs_status_t ucp_request_check_status(void *request)
{
    uci_request_t *req = uci_request_from_user(request);

    if (uci_unlikely(req == NULL)) {
        UCI_HOOK();
        return uci_ucp.request_check_status(request);
    }
    return uci_request_check(req);
}

static ucs_status_t uci_hook_test(uci_request_t *req, ucp_tag_recv_info_t *info)
{
    ucs_status_t status = uci_request_check(req);

    if ((status != UCS_INPROGRESS) && (req->flags & UCI_REQUEST_RECV)) {
        *info = req->info;
    }
    return status;
}

UCI_EXPORT ucs_status_t ucp_request_test(void *request, ucp_tag_recv_info_t *info)
{
    uci_request_t *req = uci_request_from_user(request);

    if (uci_unlikely(req == NULL)) {
        UCI_HOOK();
        return uci_ucp.request_test(request, info);
    }
    return uci_hook_test(req, info);
}

UCI_EXPORT ucs_status_t ucp_tag_recv_request_test(void *request, ucp_tag_recv_info_t *info)
{
    uci_request_t *req = uci_request_from_user(request);

    if (uci_unlikely(req == NULL)) {
        UCI_HOOK();
        return uci_ucp.tag_recv_request_test(request, info);
    }
    return uci_hook_test(req, info);
}

UCI_EXPORT int ucp_request_is_completed(void *request)
{
    uci_request_t *req = uci_request_from_user(request);

    if (uci_unlikely(req == NULL)) {
        UCI_HOOK();
        return uci_ucp.request_is_completed(request);
    }
    return uci_request_check(req) != UCS_INPROGRESS;
}

UCI_EXPORT void ucp_request_cancel(ucp_worker_h worker, void *request)
{
    uci_request_t *req = uci_request_from_user(request);

    if (req == NULL) {
        UCI_HOOK();
        uci_ucp.request_cancel(worker, request);
        return;
    }
    uci_worker_enter(req->worker);
    uci_request_cancel(req);
    uci_worker_leave(req->worker);
}

/* One that does not lie in a pool of ours: UCX's, or in the user's memory */
static void uci_hook_free_slow(void *request)
{
    uci_request_t *req;

    UCI_HOOK();
    if (uci_hook_free_allocated(request)) {
        return;
    }
    req = uci_request_from_user(request);
    if (req == NULL) {
        uci_ucp.request_free(request);
    } else {
        uci_request_free(req);
    }
}

static void uci_hook_release_slow(void *request)
{
    uci_request_t *req;

    UCI_HOOK();
    if (uci_hook_free_allocated(request)) {
        return;
    }
    req = uci_request_from_user(request);
    if (req == NULL) {
        uci_ucp.request_release(request);
    } else {
        uci_request_release(req);
    }
}

UCI_EXPORT void ucp_request_free(void *request)
{
    if (uci_likely(uci_range_has(&uci_request_range, request))) {
        uci_request_free(uci_request_from_user(request));
    } else {
        uci_hook_free_slow(request);
    }
}

UCI_EXPORT void ucp_request_release(void *request)
{
    if (uci_likely(uci_range_has(&uci_request_range, request))) {
        uci_request_release(uci_request_from_user(request));
    } else {
        uci_hook_release_slow(request);
    }
}

static void uci_hook_describe(uci_request_t *req, ucp_request_attr_t *attr)
{
    if ((attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING) && (attr->debug_string_size > 0)) {
        snprintf(attr->debug_string, attr->debug_string_size, "uci %s, %zu bytes",
                 (req->flags & UCI_REQUEST_RECV) ? "receive" : "send", req->buffer.length);
    }
}

UCI_EXPORT ucs_status_t ucp_request_query(void *request, ucp_request_attr_t *attr)
{
    uci_request_t *req = uci_request_from_user(request);

    if (req == NULL) {
        UCI_HOOK();
        return uci_ucp.request_query(request, attr);
    }
    uci_hook_describe(req, attr);
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_STATUS) {
        attr->status = uci_request_check(req);
    }
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_MEM_TYPE) {
        attr->mem_type = UCS_MEMORY_TYPE_HOST;
    }
    return UCS_OK;
}
