/* SPDX-License-Identifier: BSD-3-Clause */
#include "match.h"

#include <stdlib.h>

#include "find.h"
#include "log.h"
#include "recv.h"
#include "wire_check.h"

static void uci_match_free(uci_message_t *message)
{
    uci_find_forget(message);
    uci_list_del(&message->link);
    free(message);
}

/* The length the user sent is in the header or, for a rendezvous, in the descriptor */
static void uci_match_learn_length(uci_message_t *message)
{
    uci_frame_hdr_t hdr;
    uci_rndv_desc_t desc;

    message->length = message->total - uci_min(message->total, UCI_FRAME_OVERHEAD);
    message->known  = uci_recv_read_hdr(message->worker, message->frame, message->tag, message->total, &hdr);
    if (!message->known) {
        return;
    }
    message->uid    = hdr.uid;
    message->seq    = hdr.seq;
    message->length = hdr.length;
    if ((hdr.kind == UCI_FRAME_RNDV) && (uci_wire_check_frame(&hdr) == NULL)) {
        memcpy(&desc, message->frame->wire + sizeof(hdr), sizeof(desc));
        message->known = uci_frame_is_whole(&hdr, message->total) && (uci_digest_by_id(hdr.digest) != NULL) &&
                         (uci_digest_by_id(hdr.digest)->digest(&desc, sizeof(desc)) == hdr.value);
        /* what can't be true the receive refuses */
        message->length = (uci_wire_check_desc(&desc) == NULL) ? desc.length : 0;
    }
}

static void uci_match_hand_out(uci_message_t *message, uci_request_t *req)
{
    uci_frame_t *frame  = message->frame;
    ucp_tag_t tag       = message->tag;
    size_t total        = message->total;
    ucs_status_t status = message->status;
    bool found          = message->found;
    uci_frame_hdr_t hdr = message->hdr;

    uci_match_free(message);
    if ((status == UCS_OK) && found) {
        uci_recv_frame_hdr(req, frame, tag, total, &hdr);
    } else if (status == UCS_OK) {
        uci_recv_frame(req, frame, tag, total);
    } else {
        uci_frame_put(&req->worker->frames, frame);
        uci_request_complete_recv(req, status, tag, 0);
    }
}

static void uci_match_arrived(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    uci_message_t *message = user_data;
    uci_worker_t *worker   = message->worker;
    size_t total           = info->length;

    uci_ucp.request_free(request);
    uci_worker_enter(worker);
    message->arriving = false;
    message->status   = status;
    message->total    = total;
    if (status == UCS_OK) {
        uci_match_learn_length(message);
    }
    if (message->req != NULL) {
        uci_match_hand_out(message, message->req);
    }
    uci_worker_leave(worker);
}

/* Take the oldest message out of UCX. @return false if there is none. */
static bool uci_match_pull(uci_worker_t *worker)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv = uci_match_arrived};
    ucp_tag_message_h handle;
    ucp_tag_recv_info_t info;
    uci_message_t *message;
    ucs_status_ptr_t request;

    handle = uci_ucp.tag_probe_nb(worker->ucp, 0, 0, 1, &info);
    if (handle == NULL) {
        return false;
    }

    message = calloc(1, sizeof(*message));
    if (message != NULL) {
        message->frame = uci_frame_get(&worker->frames, info.length);
    }
    if ((message == NULL) || (message->frame == NULL)) {
        uci_fatal("no memory for a message of %zu bytes that was taken out of UCX", info.length);
    }
    message->worker   = worker;
    message->tag      = info.sender_tag;
    message->total    = info.length;
    message->arriving = true;
    uci_list_add_tail(&worker->unexpected, &message->link);

    param.user_data = message;
    request         = uci_ucp.tag_msg_recv_nbx(worker->ucp, message->frame->wire, info.length, handle, &param);
    if (UCS_PTR_IS_ERR(request)) {
        message->arriving = false;
        message->status   = UCS_PTR_STATUS(request);
    }
    return true;
}

uci_message_t *uci_match_find(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask)
{
    uci_list_for_each(message, &worker->unexpected, uci_message_t, link)
    {
        if (((message->tag ^ tag) & tag_mask) == 0 && (message->req == NULL)) {
            return message;
        }
    }
    return NULL;
}

void uci_match_deliver(uci_message_t *message, uci_request_t *req)
{
    uci_list_del(&message->link);
    if (message->arriving) {
        message->req = req;
    } else {
        uci_match_hand_out(message, req);
    }
}

ucp_tag_message_h uci_match_probe(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask, int remove,
                                  ucp_tag_recv_info_t *info)
{
    uci_message_t *message;

    while (uci_match_pull(worker)) {
    }

    message = uci_match_find(worker, tag, tag_mask);
    if ((message == NULL) || message->arriving) {
        return NULL;
    }
    if (!message->known && (message->status == UCS_OK)) {
        /* the length is not known for certain: find out first, report when found */
        if (!uci_find_length(message)) {
            return NULL;
        }
    }

    info->sender_tag = message->tag;
    info->length     = message->length;
    if (remove) {
        uci_list_del(&message->link);
        uci_list_add_tail(&worker->probed, &message->link);
    }
    return (ucp_tag_message_h)message;
}

ucs_status_ptr_t uci_match_recv(uci_worker_t *worker, void *data, size_t count, ucp_tag_message_h handle,
                                const ucp_request_param_t *param)
{
    ucp_datatype_t datatype = (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) ? param->datatype
                                                                                 : ucp_dt_make_contig(1);
    uci_message_t *message  = (uci_message_t *)handle;
    ucs_status_t status;
    uci_request_t *req;

    req = uci_request_get(worker, param);
    if (req == NULL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    req->flags |= UCI_REQUEST_RECV;
    status = uci_buffer_init_recv(&req->buffer, data, count, datatype);
    if (status != UCS_OK) {
        uci_request_put(req);
        return UCS_STATUS_PTR(status);
    }
    uci_match_deliver(message, req);
    return uci_request_posted(req, param);
}

static bool uci_match_list_has(uci_list_t *list, uint64_t uid, uint32_t seq)
{
    uci_list_for_each(message, list, uci_message_t, link)
    {
        if (message->known && (message->uid == uid) && (message->seq == seq)) {
            return true;
        }
    }
    return false;
}

bool uci_match_has(uci_worker_t *worker, uint64_t uid, uint32_t seq)
{
    return uci_match_list_has(&worker->unexpected, uid, seq) || uci_match_list_has(&worker->probed, uid, seq);
}

static void uci_match_cleanup_list(uci_worker_t *worker, uci_list_t *list)
{
    uci_list_for_each_safe(message, list, uci_message_t, link)
    {
        if (!message->arriving) {
            uci_frame_put(&worker->frames, message->frame);
            uci_match_free(message);
        }
    }
}

void uci_match_cleanup(uci_worker_t *worker)
{
    uci_match_cleanup_list(worker, &worker->unexpected);
    uci_match_cleanup_list(worker, &worker->probed);
}
