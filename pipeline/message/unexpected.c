/* SPDX-License-Identifier: BSD-3-Clause */
#include "unexpected.h"

#include <stdlib.h>

#include "link/control.h"
#include "base/edge.h"
#include "link/link_recv.h"
#include "util/log.h"
#include "transfer/recv_common.h"
#include "raw.h"
#include "recv_rndv.h"
#include "base/recv_table.h"
#include "transfer/repair.h"
#include "report/report.h"
#include "base/request.inl"
#include "live/stats.h"
#include "report/types_match.h"
#include "base/wire_check.h"

/* A message lives in a frame's memory, all of it. @param behind  room for so many bytes behind its payload */
static uci_message_t *uci_unexpected_create_for(uci_worker_t *worker, const uci_frame_hdr_t *hdr, size_t length,
                                                size_t behind)
{
    uci_frame_t *frame = uci_frame_get(&worker->frames, sizeof(uci_message_t) - sizeof(*frame) + length + behind);
    uci_message_t *message;
    uint8_t cls;

    if (frame == NULL) {
        return NULL;
    }
    cls                = frame->cls;
    message            = (uci_message_t *)(void *)frame;
    message->cls       = cls;
    message->worker    = worker;
    message->peer      = NULL;
    message->seq       = 0;
    message->length    = length;
    message->hdr       = *hdr;
    message->status    = UCS_OK;
    message->lost      = false;
    message->probed    = false;
    message->discarded = false;
    message->user_am   = false;
    message->is_signed = false;
    message->is_raw    = false;
    message->numbered  = false;
    message->adopted   = NULL;
    message->req       = NULL;
    message->content   = NULL;
    return message;
}

static uci_message_t *uci_unexpected_create(uci_peer_t *peer, const uci_frame_hdr_t *hdr, size_t length, size_t behind)
{
    uci_message_t *message = uci_unexpected_create_for(peer->worker, hdr, length, behind);

    if (uci_likely(message != NULL)) {
        message->peer = peer;
        message->seq  = peer->rx.next;
        ++peer->msgs.kept;
    }
    return message;
}

static void uci_unexpected_free(uci_message_t *message)
{
    uci_worker_t *worker = message->worker;
    uci_frame_t *frame   = (uci_frame_t *)(void *)message;
    uint8_t cls          = message->cls;

    free(message->content);
    if (uci_likely(message->peer != NULL)) {
        --message->peer->msgs.kept;
    }
    frame->cls = cls;
    uci_frame_put(&worker->frames, frame);
}

static uci_rndv_desc_t *uci_unexpected_desc(uci_message_t *message)
{
    return (uci_rndv_desc_t *)(void *)message->payload;
}

static const uci_digest_ops_t *uci_unexpected_digest(const uci_message_t *message)
{
    return uci_digest_by_id(message->hdr.digest);
}

/* @param behind  room for so many bytes behind its payload. @return NULL: damaged, or no memory */
UCI_INLINE uci_message_t *uci_unexpected_copy_in(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                                 size_t behind)
{
    bool rndv                      = (hdr->kind == UCI_FRAME_RNDV);
    const uci_digest_ops_t *digest = uci_digest_by_id(hdr->digest);
    uci_message_t *message         = uci_unexpected_create(peer, hdr, hdr->length, behind);

    if (uci_unlikely(message == NULL)) {
        return NULL; /* as good as damaged: it is asked for again */
    }
    if (uci_unlikely(digest->copy(message->payload, payload, hdr->length) != hdr->value)) {
        uci_unexpected_free(message);
        return NULL;
    }
    if (rndv) {
        /* what can't be true the receive refuses */
        message->length = (uci_wire_check_desc(uci_unexpected_desc(message)) == NULL)
                                  ? uci_unexpected_desc(message)->length
                                  : 0;
    }
    uci_link_delivered(peer, hdr->length);
    return message;
}

UCI_INLINE uci_message_t *uci_unexpected_take_in(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                                 size_t behind)
{
    uci_message_t *message = uci_unexpected_copy_in(peer, hdr, payload, behind);

    if (uci_likely(message != NULL)) {
        uci_match_keep(&peer->worker->match, &message->match, hdr->tag);
    }
    return message;
}

bool uci_unexpected_keep(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    return uci_unexpected_take_in(peer, hdr, payload, 0) != NULL;
}

/* Where the types of a mixed one are */
static char *uci_unexpected_behind(uci_message_t *message)
{
    return message->payload + message->hdr.length;
}

bool uci_unexpected_keep_signed(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                const uci_sent_types_t *types)
{
    bool is_mixed          = (uci_signature_code(types->word) == UCI_SIGNATURE_MIXED);
    uci_message_t *message = uci_unexpected_take_in(peer, hdr, payload, is_mixed ? sizeof(types->mixed) : 0);

    if (message == NULL) {
        return false;
    }
    message->is_signed = true;
    message->word      = types->word;
    if (is_mixed) {
        memcpy(uci_unexpected_behind(message), &types->mixed, sizeof(types->mixed));
    }
    return true;
}

uci_message_t *uci_unexpected_take_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                        size_t length, ucs_status_t status)
{
    uci_message_t *message = uci_unexpected_create(peer, hdr, length, 0);

    if (message == NULL) {
        uci_fatal("no memory to say that a message is lost");
    }
    memcpy(message->payload, payload, length);
    message->seq    = peer->rx.next - 1; /* the link has counted it */
    message->status = status;
    message->lost   = true;
    return message;
}

void uci_unexpected_keep_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length,
                              ucs_status_t status)
{
    uci_message_t *message = uci_unexpected_take_lost(peer, hdr, payload, length, status);

    uci_match_keep(&peer->worker->match, &message->match, hdr->tag);
}

uci_message_t *uci_unexpected_take(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    return uci_unexpected_copy_in(peer, hdr, payload, 0);
}

uci_message_t *uci_unexpected_create_empty(const uci_message_t *like, size_t length)
{
    uci_message_t *message = uci_unexpected_create(like->peer, &like->hdr, length, 0);

    if (message != NULL) {
        message->seq = like->seq;
    }
    return message;
}

void uci_unexpected_hold(uci_message_t *message)
{
    uci_list_add_tail(&message->worker->msgs.probed, &message->link);
    message->probed = true;
}

static bool uci_unexpected_is_arriving(const uci_message_t *message)
{
    return (message->adopted != NULL) && (message->status == UCS_INPROGRESS);
}

bool uci_unexpected_is_here(const uci_message_t *message)
{
    if ((message == NULL) || message->is_raw) {
        return false;
    }
    return message->lost ||
           ((message->adopted != NULL) ? !uci_unexpected_is_arriving(message) : (message->hdr.kind != UCI_FRAME_RNDV));
}

ucs_status_t uci_unexpected_refused(const uci_peer_t *peer, uint64_t seq)
{
    unsigned i;

    for (i = 0; i < UCI_USER_AM_REFUSALS; ++i) {
        const uci_user_am_refusal_t *refusal = &peer->worker->msgs.refusals[i];

        if ((refusal->uid == peer->uid) && (refusal->seq == seq)) {
            return refusal->status;
        }
    }
    return UCS_OK;
}

static void uci_unexpected_say_refused(const uci_message_t *message, ucs_status_t status)
{
    uci_message_worker_t *msgs = &message->worker->msgs;

    if (status != UCS_OK) {
        msgs->refusals[msgs->refusal_count++ % UCI_USER_AM_REFUSALS] = (uci_user_am_refusal_t){
                .uid = message->peer->uid, .seq = message->seq, .status = status};
    }
    uci_recv_decline(message->peer, message->seq, 0, status);
}

void uci_unexpected_refuse(uci_message_t *message, ucs_status_t status)
{
    if (message->probed) {
        uci_list_del(&message->link);
    }
    if (uci_unlikely(uci_unexpected_is_arriving(message))) {
        uci_unexpected_hold(message); /* until then */
        message->discarded = true;
        return;
    }
    if ((message->hdr.kind == UCI_FRAME_RNDV) && (message->adopted == NULL) && !message->lost) {
        uci_unexpected_say_refused(message, status);
    }
    uci_unexpected_free(message);
}

void uci_unexpected_discard(uci_message_t *message)
{
    uci_unexpected_refuse(message, UCS_OK);
}

/* ------------------------------------------------------------- delivery */

static void uci_unexpected_finish(uci_message_t *message, uci_request_t *req, ucs_status_t status)
{
    ucp_tag_t tag = message->hdr.tag;
    size_t length = message->length;

    uci_unexpected_free(message);
    uci_request_complete_recv(req, status, tag, length);
}

/* It was intact when it came, and acknowledged: nobody else has it */
static ucs_status_t uci_unexpected_damaged(const uci_message_t *message)
{
    uci_repair_count_lost();
    uci_report_message_lost(message->peer, message->seq, message->hdr.tag, message->user_am, message->length,
                            UCI_REASON_WAITED, uci_reason_texts[UCI_REASON_WAITED]);
    return uci_repair_policy();
}

/* What is left of a large one if its descriptor is damaged: its sender may forget it */
static ucs_status_t uci_unexpected_lose(uci_message_t *message)
{
    ucs_status_t status = uci_unexpected_damaged(message);

    message->length = 0;
    uci_recv_decline(message->peer, message->seq, 0, UCS_OK);
    return status;
}

static bool uci_unexpected_is_intact(uci_message_t *message)
{
    return uci_unexpected_digest(message)->digest(uci_unexpected_desc(message), sizeof(uci_rndv_desc_t)) ==
           message->hdr.value;
}

static void uci_unexpected_copy_out(uci_message_t *message, uci_request_t *req, const char *content)
{
    uint64_t value      = uci_buffer_write(&req->buffer, 0, content, message->length, uci_unexpected_digest(message),
                                           message->hdr.value);
    ucs_status_t status = req->buffer.status;

    if (uci_unlikely(value != message->hdr.value)) {
        status = uci_unexpected_damaged(message);
    } else if (uci_unlikely(message->worker->msgs.watches_deliveries)) {
        uci_edge.delivered(req, message->peer, message->length);
    }
    uci_unexpected_finish(message, req, status);
}

static void uci_unexpected_truncated(uci_message_t *message, uci_request_t *req)
{
    if ((message->hdr.kind == UCI_FRAME_SYNC) ||
        ((message->hdr.kind == UCI_FRAME_RNDV) && (message->adopted == NULL))) {
        uci_recv_decline(message->peer, message->seq, UCI_AM_FLAG_TRUNCATED, UCS_OK);
    }
    if (message->adopted == NULL) {
        uci_recv_count(0);
    }
    uci_unexpected_finish(message, req, UCS_ERR_MESSAGE_TRUNCATED);
}

static void uci_unexpected_deliver_lost(uci_message_t *message, uci_request_t *req)
{
    bool is_empty       = (message->status == UCS_OK) && (message->hdr.kind == UCI_FRAME_RNDV);
    ucs_status_t status = is_empty ? uci_repair_policy_missing(req) : message->status;

    uci_recv_deliver_lost(req, message->payload, message->length, message->hdr.tag, status);
    uci_unexpected_free(message);
}

static void uci_unexpected_deliver_rndv(uci_message_t *message, uci_request_t *req)
{
    const uci_digest_ops_t *digest = uci_unexpected_digest(message);
    uci_peer_t *peer               = message->peer;
    uint64_t seq                   = message->seq;
    ucp_tag_t tag                  = message->hdr.tag;
    uci_rndv_desc_t desc           = *uci_unexpected_desc(message);

    if (uci_unlikely(!uci_unexpected_is_intact(message))) {
        (void)uci_unexpected_lose(message);
        uci_unexpected_finish(message, req, uci_repair_policy_missing(req));
        return;
    }
    uci_unexpected_free(message);
    uci_recv_descriptor(req, peer, seq, tag, digest, &desc);
}

/* Nobody but the receive has it */
static void uci_unexpected_hand_out(uci_message_t *message, uci_request_t *req)
{
    if (uci_unlikely(message->lost)) {
        uci_unexpected_deliver_lost(message, req);
    } else if (uci_unlikely(message->is_raw)) {
        uci_raw_receive(message, req);
    } else if (uci_unlikely(message->length > req->buffer.length)) {
        uci_unexpected_truncated(message, req);
    } else if (uci_unlikely(message->adopted != NULL)) {
        uci_unexpected_copy_out(message, req, message->content); /* counted when it had been fetched */
    } else if (message->hdr.kind == UCI_FRAME_RNDV) {
        uci_unexpected_deliver_rndv(message, req);
    } else {
        if (message->hdr.kind == UCI_FRAME_SYNC) {
            uci_control_fin(message->peer, message->seq, 0);
        }
        UCI_STATS_INC(chunks_verified);
        uci_recv_count(message->length);
        uci_unexpected_copy_out(message, req, message->payload);
    }
}

static void uci_unexpected_number(uci_message_t *message)
{
    if (!message->numbered) {
        message->numbered = message->worker->twins.events->matched(message->peer, message->hdr.tag, &message->twin);
    }
}

/* What the content is known by. That of a message that was adopted is digested as a whole */
static void uci_unexpected_tell_twin(uci_message_t *message, uci_request_t *req)
{
    uci_unexpected_number(message);
    req->flags |= message->numbered ? UCI_REQUEST_NUMBERED : 0;
    req->twin        = message->twin;
    req->twin.digest = message->hdr.value;
    req->twin.form   = message->hdr.digest;
}

static void uci_unexpected_compare_types(uci_message_t *message, uci_request_t *req)
{
    uci_sent_types_t types;

    if (!message->is_signed || message->lost) {
        return;
    }
    types.word = message->word;
    if (uci_signature_code(types.word) == UCI_SIGNATURE_MIXED) {
        memcpy(&types.mixed, uci_unexpected_behind(message), sizeof(types.mixed));
    }
    uci_types_compare(req, message->peer, message->seq, message->hdr.tag, message->length, &types);
}

void uci_unexpected_deliver(uci_message_t *message, uci_request_t *req)
{
    if (uci_unlikely(req->flags & (UCI_REQUEST_TWIN | UCI_REQUEST_SIGNED))) {
        if (req->flags & UCI_REQUEST_TWIN) {
            uci_unexpected_tell_twin(message, req);
        }
        uci_unexpected_compare_types(message, req);
    }
    if (message->probed) {
        uci_list_del(&message->link);
    } else {
        uci_match_take_msg(&message->worker->match, &message->match);
    }
    if (uci_unlikely(uci_unexpected_is_arriving(message))) {
        message->req = req;
        uci_list_add_tail(&message->worker->msgs.probed, &message->link); /* to be found when the worker goes */
        message->probed = true;
    } else {
        uci_unexpected_hand_out(message, req);
    }
}

/* -------------------------------------------------------------- probing */

uci_message_t *uci_unexpected_oldest(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask, bool remove)
{
    return uci_unexpected_find(worker, tag, tag_mask);
}

ucp_tag_message_h uci_unexpected_probe(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask, int remove,
                                       ucp_tag_recv_info_t *info)
{
    uci_message_t *message = worker->calls.find(worker, tag, tag_mask, remove != 0);

    if (message == NULL) {
        return NULL;
    }
    info->sender_tag = message->hdr.tag;
    info->length     = message->length;
    if (remove) {
        uci_match_take_msg(&worker->match, &message->match);
        uci_list_add_tail(&worker->msgs.probed, &message->link);
        message->probed = true;
        if (uci_unlikely(worker->twins.events != NULL)) {
            uci_unexpected_number(message);
        }
    }
    return (ucp_tag_message_h)message;
}

/* @return UCS_OK, and a request that receives into this buffer */
static ucs_status_t uci_unexpected_prepare(uci_worker_t *worker, void *data, size_t count,
                                           const ucp_request_param_t *param, uint32_t flags, uci_request_t **req_p)
{
    uci_request_t *req = uci_request_get(worker, param);
    ucs_status_t status;

    if (req == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    req->flags |= flags;
    status = uci_buffer_init_recv(&req->buffer, data, count, uci_buffer_datatype(param));
    if (status != UCS_OK) {
        uci_request_put(req);
        return status;
    }
    *req_p = req;
    return UCS_OK;
}

ucs_status_ptr_t uci_unexpected_recv(uci_worker_t *worker, void *data, size_t count, ucp_tag_message_h handle,
                                     const ucp_request_param_t *param)
{
    const uci_signature_t *signature = uci_signed_take_recv();
    ucs_status_t status;
    uci_request_t *req;

    if ((param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) && !uci_unexpected_is_here((uci_message_t *)handle)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    status = uci_unexpected_prepare(worker, data, count, param, worker->calls.recv_flags, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    if (signature != NULL) {
        uci_signed_set(req, signature);
    }
    uci_unexpected_deliver((uci_message_t *)handle, req);
    return uci_request_posted(req, param);
}

/* What is here has been verified, and the program could read it where it is. Of a large one nothing is wanted, or nothing is there */
static void uci_unexpected_copy_user_am(const uci_message_t *message, uci_request_t *req)
{
    size_t length       = (message->hdr.kind == UCI_FRAME_RNDV) ? 0 : message->length;
    ucs_status_t status = UCS_ERR_MESSAGE_TRUNCATED;

    if (length <= req->buffer.length) {
        uci_buffer_store(&req->buffer, 0, message->payload, length);
        status = req->buffer.status;
    }
    uci_request_complete_recv(req, status, message->hdr.tag, length);
}

ucs_status_ptr_t uci_unexpected_recv_user_am(uci_message_t *message, void *data, size_t count,
                                             const ucp_request_param_t *param, bool is_over)
{
    ucs_status_t status;
    uci_request_t *req;

    status = uci_unexpected_prepare(message->worker, data, count, param, UCI_REQUEST_RECV | UCI_REQUEST_USER_AM, &req);
    if ((status == UCS_OK) && (message->hdr.kind == UCI_FRAME_RNDV) &&
        (message->lost || (uci_min(message->length, req->buffer.length) > 0))) {
        uci_unexpected_deliver(message, req);
        return uci_request_posted(req, param);
    }
    if (status == UCS_OK) {
        uci_unexpected_copy_user_am(message, req);
    }
    if (is_over) {
        uci_unexpected_discard(message);
    }
    return (status == UCS_OK) ? uci_request_posted(req, param) : UCS_STATUS_PTR(status);
}

/* ------------------------------------------------------------- adopting */

/* @return the first message, of those that have arrived and those that are held by a handle, that @a is_wanted; or NULL */
static uci_message_t *uci_unexpected_search(uci_worker_t *worker, bool (*is_wanted)(const uci_message_t *, void *),
                                            void *arg)
{
    uci_list_for_each(msg, &worker->match.all_msgs, uci_match_msg_t, all)
    {
        uci_message_t *message = uci_container_of(msg, uci_message_t, match);

        if (is_wanted(message, arg)) {
            return message;
        }
    }
    uci_list_for_each(message, &worker->msgs.probed, uci_message_t, link)
    {
        if (is_wanted(message, arg)) {
            return message;
        }
    }
    return NULL;
}

/* The same from the last one back: one that has just come is near */
static uci_message_t *uci_unexpected_search_back(uci_worker_t *worker, bool (*is_wanted)(const uci_message_t *, void *),
                                                 void *arg)
{
    uci_list_for_each_back(message, &worker->msgs.probed, uci_message_t, link)
    {
        if (is_wanted(message, arg)) {
            return message;
        }
    }
    uci_list_for_each_back(msg, &worker->match.all_msgs, uci_match_msg_t, all)
    {
        uci_message_t *message = uci_container_of(msg, uci_message_t, match);

        if (is_wanted(message, arg)) {
            return message;
        }
    }
    return NULL;
}

/* One that is being fetched is among the receive operations */
static bool uci_unexpected_is_unfinished(const uci_message_t *message, const uci_peer_t *peer)
{
    return (message->peer == peer) && !message->lost && (message->hdr.kind != UCI_FRAME_EAGER) &&
           (message->adopted == NULL);
}

typedef struct uci_unexpected_list {
    const uci_peer_t *peer;
    uci_seq_range_t *ranges; /* or NULL: they are only counted */
    size_t count;
} uci_unexpected_list_t;

static bool uci_unexpected_list_unfinished(const uci_message_t *message, void *arg)
{
    uci_unexpected_list_t *list = arg;

    if (uci_unexpected_is_unfinished(message, list->peer)) {
        if (list->ranges != NULL) {
            list->ranges[list->count] = (uci_seq_range_t){.first = message->seq, .last = message->seq};
        }
        ++list->count;
    }
    return false;
}

size_t uci_unexpected_unfinished(const uci_peer_t *peer, uci_seq_range_t *ranges)
{
    uci_unexpected_list_t list = {.peer = peer, .ranges = ranges};

    (void)uci_unexpected_search(peer->worker, uci_unexpected_list_unfinished, &list);
    return list.count;
}

/* A message that is looked for */
typedef struct uci_unexpected_key {
    const uci_peer_t *peer;
    uint64_t seq;
    bool any; /* of its messages, whatever their number */
} uci_unexpected_key_t;

static bool uci_unexpected_waits(const uci_message_t *message, void *arg)
{
    const uci_unexpected_key_t *key = arg;

    return (message->peer == key->peer) && (message->seq == key->seq) && (message->adopted == NULL) && !message->lost;
}

bool uci_unexpected_has(const uci_peer_t *peer, uint64_t seq)
{
    uci_unexpected_key_t key = {.peer = peer, .seq = seq};

    return uci_unexpected_search_back(peer->worker, uci_unexpected_waits, &key) != NULL;
}

/* Its own digest from now on: the tree that it was verified by is gone */
static void uci_unexpected_adopted(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
    uci_message_t *message = arg;
    uci_request_t *req     = message->req;

    message->status = status;
    message->lost   = (status != UCS_OK);
    if (message->lost) {
        message->length = 0;
    } else {
        message->hdr.value = uci_unexpected_digest(message)->digest(message->content, message->length);
    }
    uci_request_release(message->adopted);
    if (uci_unlikely(message->discarded)) {
        uci_list_del(&message->link);
        uci_unexpected_free(message);
    } else if (req != NULL) {
        uci_list_del(&message->link);
        uci_unexpected_hand_out(message, req);
    }
}

static bool uci_unexpected_fetch(uci_message_t *message)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv      = uci_unexpected_adopted,
                                 .user_data    = message};
    uci_request_t *req;

    if (uci_unlikely(!uci_unexpected_is_intact(message))) {
        message->lost   = true;
        message->status = uci_unexpected_lose(message);
        return true;
    }
    message->content = malloc(message->length);
    req              = (message->content != NULL) ? uci_request_get(message->worker, &param) : NULL;
    if (req == NULL) {
        uci_error("failed to allocate %lu bytes for a message whose sender closes", (unsigned long)message->length);
        free(message->content);
        message->content = NULL;
        return false;
    }
    req->flags = (req->flags | UCI_REQUEST_RECV | UCI_REQUEST_OWN) & ~(uint32_t)UCI_REQUEST_POSTING;
    uci_repair_blank(message->content, message->length);
    uci_buffer_init_contig(&req->buffer, message->content, message->length);
    message->adopted = req;
    message->status  = UCS_INPROGRESS;
    uci_recv_descriptor(req, message->peer, message->seq, message->hdr.tag, uci_unexpected_digest(message),
                        uci_unexpected_desc(message));
    return true;
}

static bool uci_unexpected_is_adoptable(const uci_message_t *message, void *arg)
{
    const uci_unexpected_key_t *key = arg;

    return uci_unexpected_is_unfinished(message, key->peer) && (message->hdr.kind == UCI_FRAME_RNDV) &&
           (message->length > 0) && (key->any || (message->seq == key->seq));
}

void uci_unexpected_adopt_all(uci_peer_t *peer)
{
    uci_unexpected_key_t any = {.peer = peer, .any = true};
    uci_message_t *message;

    do {
        message = uci_unexpected_search(peer->worker, uci_unexpected_is_adoptable, &any);
    } while ((message != NULL) && uci_unexpected_fetch(message));
}

uci_recv_op_t *uci_unexpected_adopt(uci_peer_t *peer, uint64_t seq)
{
    uci_unexpected_key_t key = {.peer = peer, .seq = seq};
    uci_message_t *message   = uci_unexpected_search_back(peer->worker, uci_unexpected_is_adoptable, &key);

    return ((message != NULL) && uci_unexpected_fetch(message)) ? uci_recv_op_by_seq(peer, seq) : NULL;
}

/* ------------------------------------------------------------------ raw */

uci_message_t *uci_unexpected_create_raw(uci_worker_t *worker, ucp_tag_message_h handle,
                                         const ucp_tag_recv_info_t *info)
{
    const uci_frame_hdr_t hdr = {.kind = UCI_FRAME_EAGER, .tag = info->sender_tag};
    uci_message_t *message    = uci_unexpected_create_for(worker, &hdr, 0, 0);

    if (message != NULL) {
        message->is_raw = true;
        message->raw    = handle;
        message->length = info->length;
    }
    return message;
}

void uci_unexpected_forget(uci_message_t *message)
{
    uci_unexpected_free(message);
}

static bool uci_unexpected_is_raw(const uci_message_t *message, void *arg)
{
    return message->is_raw;
}

uci_message_t *uci_unexpected_next_raw(uci_worker_t *worker)
{
    uci_message_t *message = uci_unexpected_search(worker, uci_unexpected_is_raw, NULL);

    if (message == NULL) {
        return NULL;
    }
    if (message->probed) {
        uci_list_del(&message->link);
    } else {
        uci_match_take_msg(&worker->match, &message->match);
    }
    return message;
}

void uci_unexpected_cleanup(uci_worker_t *worker)
{
    uci_match_for_each_msg(msg, &worker->match)
    {
        uci_match_take_msg(&worker->match, msg);
        uci_unexpected_free(uci_container_of(msg, uci_message_t, match));
    }
    uci_list_for_each_safe(message, &worker->msgs.probed, uci_message_t, link)
    {
        uci_list_del(&message->link);
        uci_unexpected_free(message);
    }
    uci_match_cleanup(&worker->match);
}
