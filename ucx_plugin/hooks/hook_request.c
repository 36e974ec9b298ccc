/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include "base/request.h"

UCI_EXPORT ucs_status_t ucp_request_check_status(void *request)
{
    uci_request_t *req = uci_request_from_user(request);

    if (uci_unlikely(req == NULL)) {
        UCI_HOOK();
        return uci_ucp.request_check_status(request);
    }
    return uci_request_check(req);
}

/* @param info  may be NULL of what is no receive of a tag message: of streams and active messages nothing is written there */
static ucs_status_t uci_hook_test(uci_request_t *req, ucp_tag_recv_info_t *info)
{
    ucs_status_t status = uci_request_check(req);

    if ((status != UCS_INPROGRESS) && ((req->flags & (UCI_REQUEST_RECV | UCI_REQUEST_USER_AM)) == UCI_REQUEST_RECV)) {
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

UCI_EXPORT void ucp_request_free(void *request)
{
    uci_request_t *req = uci_request_from_user(request);

    if (req == NULL) {
        UCI_HOOK();
        uci_ucp.request_free(request);
        return;
    }
    uci_request_free(req);
}

UCI_EXPORT void ucp_request_release(void *request)
{
    uci_request_t *req = uci_request_from_user(request);

    if (req == NULL) {
        UCI_HOOK();
        uci_ucp.request_release(request);
        return;
    }
    uci_request_release(req);
}

static void uci_hook_describe(uci_request_t *req, ucp_request_attr_t *attr)
{
    if (attr->debug_string_size > 0) {
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
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING) {
        if (!(attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE)) {
            return UCS_ERR_INVALID_PARAM; /* as UCX says */
        }
        uci_hook_describe(req, attr);
    }
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_STATUS) {
        attr->status = uci_request_check(req);
    }
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_MEM_TYPE) {
        attr->mem_type = UCS_MEMORY_TYPE_HOST;
    }
    return UCS_OK;
}
