/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw.h"

#include <stdlib.h>

#include "base/worker_lock.h"
#include "link/control.h"
#include "util/log.h"

/* A message that UCX moves */
typedef struct uci_raw_move {
    uci_request_t *req;
    void *staging; /* whose bytes go to the receive's buffer, which is in pieces; or NULL */
} uci_raw_move_t;

void uci_raw_begin(uci_worker_t *worker)
{
    if (!worker->msgs.is_raw) {
        worker->msgs.is_raw = true;
        uci_worker_work_begins(worker); /* for good: what it has sent may come at any time */
        uci_worker_set_foreign(worker);
    }
}

/* ------------------------------------------------------------ receiving */

static void uci_raw_end(uci_raw_move_t *move, ucs_status_t status, const ucp_tag_recv_info_t *info)
{
    uci_request_t *req = move->req;

    if ((status == UCS_OK) && (move->staging != NULL)) {
        uci_buffer_store(&req->buffer, 0, move->staging, info->length);
        status = req->buffer.status;
    }
    free(move->staging);
    free(move);
    uci_request_complete_recv(req, status, info->sender_tag, info->length);
}

static void uci_raw_moved(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    uci_raw_move_t *move = user_data;
    uci_worker_t *worker = move->req->worker;

    uci_worker_enter(worker);
    uci_raw_end(move, status, info);
    uci_worker_leave(worker);
    uci_ucp.request_free(request);
}

static uci_raw_move_t *uci_raw_move_create(uci_request_t *req, size_t length)
{
    uci_raw_move_t *move = calloc(1, sizeof(*move));

    if (move == NULL) {
        return NULL;
    }
    move->req = req;
    if (req->buffer.kind != UCI_BUFFER_CONTIG) {
        move->staging = malloc(length + 1);
        if (move->staging == NULL) {
            free(move);
            return NULL;
        }
    }
    return move;
}

void uci_raw_receive(uci_message_t *message, uci_request_t *req)
{
    ucp_tag_recv_info_t info  = {.sender_tag = message->hdr.tag, .length = message->length};
    size_t length             = uci_min(message->length, req->buffer.length);
    uci_raw_move_t *move      = uci_raw_move_create(req, length);
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv   = uci_raw_moved,
                                 .user_data = move};
    uci_worker_t *worker      = message->worker;
    ucp_tag_message_h handle  = message->raw;
    ucs_status_ptr_t request;

    uci_unexpected_forget(message);
    if (move == NULL) {
        uci_fatal("no memory to receive a message of %lu bytes", (unsigned long)info.length);
    }
    request = uci_ucp.tag_msg_recv_nbx(worker->ucp, (move->staging != NULL) ? move->staging : req->buffer.data, length,
                                       handle, &param);
    if (UCS_PTR_IS_ERR(request)) {
        uci_raw_end(move, UCS_PTR_STATUS(request), &info);
    }
}

/* -------------------------------------------------------------- arriving */

static bool uci_raw_take(uci_worker_t *worker)
{
    ucp_tag_recv_info_t info;
    ucp_tag_message_h handle = uci_ucp.tag_probe_nb(worker->ucp, 0, 0, 1, &info);
    uci_match_recv_t *posted;
    uci_message_t *message;

    if (handle == NULL) {
        return false;
    }
    message = uci_unexpected_create_raw(worker, handle, &info);
    if (message == NULL) {
        uci_fatal("no memory for a message of %zu bytes", info.length);
    }
    uci_match_keep(&worker->match, &message->match, info.sender_tag);
    posted = uci_match_find_recv(&worker->match, info.sender_tag);
    if (posted != NULL) {
        uci_match_take_recv(&worker->match, posted);
        uci_unexpected_deliver(message, uci_container_of(posted, uci_request_t, match));
    }
    return true;
}

unsigned uci_raw_progress(uci_worker_t *worker)
{
    unsigned count = 0;

    while (uci_raw_take(worker)) {
        ++count;
    }
    return count;
}

static void uci_raw_dropped(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    uci_ucp.request_free(request);
}

void uci_raw_shutdown(uci_worker_t *worker)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = uci_raw_dropped};
    uci_message_t *message;

    while ((message = uci_unexpected_next_raw(worker)) != NULL) {
        (void)uci_ucp.tag_msg_recv_nbx(worker->ucp, NULL, 0, message->raw, &param);
        uci_unexpected_forget(message);
    }
}
