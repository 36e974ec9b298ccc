/* SPDX-License-Identifier: BSD-3-Clause */
#include "user_am.h"

#include <stdlib.h>

#include "base/request.h"
#include "conversation/conversation.h"
#include "live/stats.h"
#include "report/report.h"
#include "transfer/recv_common.h"
#include "transfer/repair.h"
#include "util/log.h"
#include "base/wire_check.h"

/* Active messages of one peer that are handed out in one step */
#define UCI_USER_AM_STEP 256

/* Data may have to be where no message can have them: they are looked for in the list of those that are held */
static bool uci_user_am_is_moved(const uci_worker_t *worker)
{
    return worker->msgs.am_alignment > 16;
}

/* ------------------------------------------------------------- handlers */

static ucs_status_t uci_user_am_grow(uci_worker_t *worker, unsigned count)
{
    uci_user_am_handler_t *handlers = realloc(worker->msgs.handlers, count * sizeof(*handlers));

    if (handlers == NULL) {
        uci_error("failed to allocate handlers of active messages");
        return UCS_ERR_NO_MEMORY;
    }
    memset(handlers + worker->msgs.handler_count, 0, (count - worker->msgs.handler_count) * sizeof(*handlers));
    worker->msgs.handlers      = handlers;
    worker->msgs.handler_count = count;
    return UCS_OK;
}

ucs_status_t uci_user_am_set_handler(uci_worker_t *worker, uint16_t id, const uci_user_am_handler_t *handler)
{
    uci_user_am_ucx_t *ucx;

    if ((id >= worker->msgs.handler_count) && (uci_user_am_grow(worker, id + 1u) != UCS_OK)) {
        return UCS_ERR_NO_MEMORY;
    }
    ucx                           = worker->msgs.handlers[id].ucx;
    worker->msgs.handlers[id]     = *handler;
    worker->msgs.handlers[id].ucx = ucx;
    return UCS_OK;
}

uci_user_am_ucx_t *uci_user_am_ucx(uci_worker_t *worker, uint16_t id)
{
    uci_user_am_handler_t *handler;

    if ((id >= worker->msgs.handler_count) && (uci_user_am_grow(worker, id + 1u) != UCS_OK)) {
        return NULL;
    }
    handler = &worker->msgs.handlers[id];
    if (handler->ucx == NULL) {
        handler->ucx = malloc(sizeof(*handler->ucx));
        if (handler->ucx == NULL) {
            uci_error("failed to allocate a handler of active messages");
            return NULL;
        }
        *handler->ucx = (uci_user_am_ucx_t){.worker = worker, .id = id};
    }
    return handler->ucx;
}

/* @return NULL: the program has none, which is said as UCX says it */
static const uci_user_am_handler_t *uci_user_am_handler(const uci_worker_t *worker, uci_user_am_what_t what)
{
    unsigned id = what.id;

    if (uci_unlikely(what.flags & UCI_USER_AM_OWN)) {
        return (worker->msgs.own[id].recv != NULL) ? &worker->msgs.own[id] : NULL;
    }
    if ((id >= worker->msgs.handler_count) || (worker->msgs.handlers[id].recv == NULL)) {
        uci_warn("active message %u has come, and the program has no handler for it: it is dropped", id);
        return NULL;
    }
    return &worker->msgs.handlers[id];
}

/* ------------------------------------------------------------ arriving */

static void uci_user_am_begin(uci_peer_t *peer)
{
    if ((peer->msgs.am_fetched == NULL) && uci_list_is_empty(&peer->msgs.am_link)) {
        uci_list_add_tail(&peer->worker->msgs.am_ready, &peer->msgs.am_link);
        uci_worker_work_begins(peer->worker);
    }
}

static void uci_user_am_queue(uci_peer_t *peer, uci_message_t *header)
{
    uci_list_add_tail(&peer->msgs.am_queue, &header->link);
    uci_user_am_begin(peer);
}

/* @param status  what the send of a large one ends with */
static void uci_user_am_drop(uci_message_t *header, ucs_status_t status)
{
    if (header->other != NULL) {
        uci_unexpected_refuse(header->other, status);
    }
    uci_unexpected_discard(header);
}

static void uci_user_am_take_header(uci_peer_t *peer, uci_message_t *header)
{
    uci_user_am_what_t what = uci_user_am_what(header->hdr.tag);

    header->other  = NULL;
    header->length = header->hdr.length - (size_t)what.header_length - what.pad;
    if (!(what.flags & UCI_USER_AM_RNDV)) {
        uci_user_am_queue(peer, header);
        return;
    }
    if (peer->msgs.am_header != NULL) { /* its descriptor could not be sent */
        uci_unexpected_discard(peer->msgs.am_header);
    }
    peer->msgs.am_header = header;
    peer->msgs.am_lost   = false;
}

static void uci_user_am_take_descriptor(uci_peer_t *peer, uci_message_t *desc)
{
    uci_message_t *header = peer->msgs.am_header;

    if (header == NULL) {
        if (!peer->msgs.am_lost) {
            uci_wire_refuse(peer, "an active message", "that it has a header, and brings none");
        }
        uci_unexpected_discard(desc);
        return;
    }
    peer->msgs.am_header = NULL;
    header->other        = desc;
    desc->other          = NULL;
    desc->length         = (uci_user_am_what(header->hdr.tag).flags & UCI_USER_AM_EMPTY) ? 0 : desc->length;
    uci_unexpected_hold(desc);
    uci_user_am_queue(peer, header);
}

static void uci_user_am_take(uci_peer_t *peer, uci_message_t *message)
{
    message->user_am = true;
    if (message->hdr.kind == UCI_FRAME_RNDV) {
        uci_user_am_take_descriptor(peer, message);
    } else {
        uci_user_am_take_header(peer, message);
    }
}

bool uci_user_am_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    uci_frame_hdr_t plain = *hdr;
    uci_message_t *message;

    plain.kind = (uint8_t)uci_frame_kind(hdr->kind);
    message    = uci_unexpected_take(peer, &plain, payload);
    if (uci_unlikely(message == NULL)) {
        return false;
    }
    uci_user_am_take(peer, message);
    return true;
}

/* What is said of a frame that has been lost need not be true */
static bool uci_user_am_can_be(const uci_frame_hdr_t *hdr)
{
    uci_frame_hdr_t sent = *hdr;

    sent.kind = (uint8_t)uci_frame_user_am_kind(hdr->kind);
    return uci_wire_check_frame(&sent) == NULL;
}

/* An operation on memory whose number or place is damaged does more harm than one that is not there */
static bool uci_user_am_is_rma(const uci_frame_hdr_t *hdr)
{
    uci_user_am_what_t what = uci_user_am_what(hdr->tag);

    return (what.flags & UCI_USER_AM_OWN) && (what.id != UCI_OWN_AM_STREAM);
}

/* A handler can't be told of an error, so that what is lost is not there, unless the policy is to go on with what has come, and it is the
 * program's. Data that the program asks for itself end with the error */
void uci_user_am_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length,
                      ucs_status_t status)
{
    bool is_descriptor = (hdr->kind == UCI_FRAME_RNDV);

    if (is_descriptor ||
        ((status == UCS_OK) && (length == hdr->length) && uci_user_am_can_be(hdr) && !uci_user_am_is_rma(hdr))) {
        uci_user_am_take(peer, uci_unexpected_take_lost(peer, hdr, payload, length, status));
        return;
    }
    if (peer->msgs.am_header != NULL) {
        uci_unexpected_discard(peer->msgs.am_header);
        peer->msgs.am_header = NULL;
    }
    peer->msgs.am_lost = true;
}

/* ------------------------------------------------------------- fetching */

/* Its data are here, or lost, which has been reported */
static void uci_user_am_fetched(void *request, ucs_status_t status, size_t length, void *arg)
{
    uci_message_t *header = arg;
    uci_peer_t *peer      = header->peer;

    uci_request_release(uci_request_from_user(request));
    peer->msgs.am_fetched = NULL;
    if (status == UCS_OK) {
        uci_list_add_head(&peer->msgs.am_queue, &header->link);
    } else {
        uci_user_am_drop(header, status);
    }
    if (!uci_list_is_empty(&peer->msgs.am_queue)) {
        uci_user_am_begin(peer);
    }
}

/* All of the data, before the handler hears of it: from the descriptor into a message that is EAGER */
static void uci_user_am_fetch(uci_message_t *header)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv_am   = uci_user_am_fetched,
                                 .user_data    = header};
    uci_message_t *desc       = header->other;
    uci_message_t *data       = uci_unexpected_create_empty(header, desc->length);
    uci_request_t *req        = (data != NULL) ? uci_request_get(header->worker, &param) : NULL;

    if (req == NULL) {
        uci_error("an active message of %lu bytes from %s is not received: there is no memory for it",
                  (unsigned long)desc->length, uci_peer_name(header->peer));
        if (data != NULL) {
            uci_unexpected_discard(data);
        }
        uci_user_am_drop(header, UCS_ERR_NO_MEMORY);
        return;
    }
    header->peer->msgs.am_fetched = header;
    header->other                 = data;
    data->other                   = NULL;
    data->user_am                 = true;
    req->flags = (req->flags | UCI_REQUEST_RECV | UCI_REQUEST_USER_AM) & ~(uint32_t)UCI_REQUEST_POSTING;
    uci_repair_blank(data->payload, data->length);
    uci_buffer_init_contig(&req->buffer, data->payload, data->length);
    uci_unexpected_deliver(desc, req);
}

/* ----------------------------------------------------------- handing out */

/* Where the handler finds data: at a multiple of 16, or of what the program has asked for. Of a descriptor it is a handle */
static void *uci_user_am_place(uci_message_t *data)
{
    size_t alignment = data->worker->msgs.am_alignment;
    void *place      = NULL;

    if (uci_likely((uintptr_t)data->payload % alignment == 0) || (data->hdr.kind == UCI_FRAME_RNDV)) {
        return data->payload;
    }
    if (posix_memalign(&place, alignment, uci_max(data->length, 1ul)) != 0) {
        uci_fatal("no memory for an active message of %lu bytes", (unsigned long)data->length);
    }
    memcpy(place, data->payload, data->length);
    data->content = place;
    return place;
}

/* What a handler was given */
static uci_message_t *uci_user_am_of_place(uci_worker_t *worker, void *place)
{
    if (uci_likely(!uci_user_am_is_moved(worker))) {
        return uci_container_of(place, uci_message_t, payload);
    }
    uci_list_for_each(message, &worker->msgs.probed, uci_message_t, link)
    {
        if (message->user_am && ((message->payload == place) || (message->content == place))) {
            return message;
        }
    }
    uci_fatal("%p is no data of an active message", place);
}

static ucs_status_t uci_user_am_call_old(const uci_user_am_handler_t *handler, uci_message_t *header,
                                         uci_message_t *data, ucp_ep_h reply_ep)
{
    if (uci_user_am_what(header->hdr.tag).header_length != 0) {
        uci_warn("an active message with a header has come for a handler that was set by ucp_worker_set_am_handler(), "
                 "which knows none: it is dropped");
        return UCS_OK;
    }
    return handler->old(handler->arg, uci_user_am_place(data), data->length, reply_ep, UCP_CB_PARAM_FLAG_DATA);
}

static ucs_status_t uci_user_am_call(const uci_user_am_handler_t *handler, uci_message_t *header, uci_message_t *data)
{
    uci_user_am_what_t what   = uci_user_am_what(header->hdr.tag);
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA};
    const char *begin         = header->payload + (header->hdr.length - what.header_length);
    bool is_own               = (what.flags & UCI_USER_AM_OWN) != 0;

    if ((what.flags & UCI_USER_AM_REPLY) && !is_own) {
        param.reply_ep = uci_peer_endpoint_shown(header->peer, what.name);
        param.recv_attr |= (param.reply_ep != NULL) ? UCP_AM_RECV_ATTR_FIELD_REPLY_EP : 0;
    }
    if (handler->is_old) {
        return uci_user_am_call_old(handler, header, data, param.reply_ep);
    }
    if (data->hdr.kind == UCI_FRAME_RNDV) {
        param.recv_attr ^= UCP_AM_RECV_ATTR_FLAG_DATA | UCP_AM_RECV_ATTR_FLAG_RNDV;
    }
    return handler->recv(is_own ? header->peer : handler->arg, (what.header_length > 0) ? begin : NULL,
                         what.header_length, uci_user_am_place(data), data->length, &param);
}

/* While a handler runs, its data lead to the header, or to themselves if there is one frame only: so it is seen that they have been
 * received or released. @return whether the message is of no use any more. */
static bool uci_user_am_take_data(uci_message_t *data)
{
    uci_message_t *header = data->other;

    if (header == NULL) {
        return true;
    }
    header->other = NULL;
    return header != data;
}

static void uci_user_am_after(uci_message_t *header, uci_message_t *data, ucs_status_t status)
{
    bool is_taken = (header->other == NULL);
    bool is_kept  = !is_taken && (status == UCS_INPROGRESS);

    header->other = NULL;
    if (!is_taken) {
        data->other = NULL;
    }
    if (is_kept && !data->probed) {
        uci_unexpected_hold(data);
    }
    if (data == header) {
        if (!is_kept) {
            uci_unexpected_discard(header);
        }
        return;
    }
    if (!is_kept && !is_taken) {
        uci_unexpected_refuse(data, UCS_STATUS_IS_ERR(status) ? status : UCS_OK);
    }
    uci_unexpected_discard(header);
}

static void uci_user_am_hand_out(const uci_user_am_handler_t *handler, uci_message_t *header)
{
    uci_message_t *data = (header->other != NULL) ? header->other : header;
    ucs_status_t status;

    UCI_STATS_ADD(user_am_received, (uci_user_am_what(header->hdr.tag).flags & UCI_USER_AM_OWN) ? 0 : 1);
    if (data == header) { /* else its data are counted where they are received */
        UCI_STATS_INC(chunks_verified);
        uci_recv_count(data->length);
    }
    if (uci_unlikely(uci_user_am_is_moved(header->worker)) && !data->probed) {
        uci_unexpected_hold(data);
    }
    header->other  = data;
    data->other    = header;
    status         = uci_user_am_call(handler, header, data);
    uci_stats_here = header->worker->stats.counters; /* it may have been in another worker */
    uci_user_am_after(header, data, status);
}

/* A handler of the old sort gets what its sender has not called a rendezvous, which UCX does not let it have */
static bool uci_user_am_is_taken(const uci_user_am_handler_t *handler, const uci_message_t *header)
{
    uci_user_am_what_t what = uci_user_am_what(header->hdr.tag);

    if ((handler != NULL) && handler->is_old && (what.flags & UCI_USER_AM_ASKED)) {
        uci_error("active message %u was sent as a rendezvous, and its handler was set by ucp_worker_set_am_handler(), "
                  "which knows none: it is dropped",
                  what.id);
        return false;
    }
    return handler != NULL;
}

/* As in UCX: where the program has closed its endpoints, what is to be answered, or to be fetched, comes too late */
static bool uci_user_am_is_late(const uci_message_t *header)
{
    uci_user_am_what_t what = uci_user_am_what(header->hdr.tag);

    return !(what.flags & UCI_USER_AM_OWN) && uci_conversation_is_closed(&header->peer->conversation) &&
           ((what.flags & UCI_USER_AM_REPLY) || ((what.flags & UCI_USER_AM_RNDV) && !(what.flags & UCI_USER_AM_EAGER)));
}

static void uci_user_am_next(uci_message_t *header)
{
    uci_user_am_what_t what              = uci_user_am_what(header->hdr.tag);
    const uci_user_am_handler_t *handler = uci_user_am_handler(header->worker, what);
    bool is_large                        = (header->other != NULL) && (header->other->hdr.kind == UCI_FRAME_RNDV);

    if (uci_unlikely(uci_user_am_is_late(header))) {
        uci_user_am_drop(header, UCS_ERR_CANCELED);
    } else if (!uci_user_am_is_taken(handler, header)) {
        uci_user_am_drop(header, (what.flags & UCI_USER_AM_EAGER) ? UCS_OK : UCS_ERR_INVALID_PARAM);
    } else if (!is_large || !((what.flags & UCI_USER_AM_EAGER) || handler->is_old)) {
        uci_user_am_hand_out(handler, header);
    } else if (header->other->lost) {
        uci_user_am_drop(header, UCS_OK);
    } else {
        uci_user_am_fetch(header);
    }
}

/* What it is to be answered by is not known before HELLO has come, which is said again if it has been lost */
static bool uci_user_am_waits(const uci_message_t *header)
{
    uci_user_am_what_t what = uci_user_am_what(header->hdr.tag);
    uci_peer_t *peer        = header->peer;

    if (!(what.flags & UCI_USER_AM_REPLY) || uci_user_am_is_late(header) || uci_peer_is_gone(peer) ||
        (peer->conversation.status != UCS_OK)) {
        return false;
    }
    return (what.flags & UCI_USER_AM_OWN) ? (uci_peer_ep_staying(peer) == NULL)
                                          : (uci_peer_endpoint_shown(peer, what.name) == NULL);
}

/* No more than so many of a peer in one step: a handler that answers itself would never let the program go on */
static unsigned uci_user_am_of_peer(uci_peer_t *peer)
{
    uci_message_t *header;
    unsigned count = 0;

    while (!uci_list_is_empty(&peer->msgs.am_queue) && (peer->msgs.am_fetched == NULL) && (count < UCI_USER_AM_STEP)) {
        header = uci_container_of(peer->msgs.am_queue.next, uci_message_t, link);
        if (uci_unlikely(uci_user_am_waits(header))) {
            break;
        }
        uci_list_del(&header->link);
        uci_user_am_next(header);
        ++count;
    }
    if (!uci_list_is_empty(&peer->msgs.am_queue)) {
        uci_user_am_begin(peer);
    }
    return count;
}

unsigned uci_user_am_progress(uci_worker_t *worker)
{
    unsigned count = 0;
    uci_list_t todo;
    uci_peer_t *peer;

    if (worker->sibling.helped) {
        return 0; /* the turn is not its program's */
    }
    uci_list_move(&worker->msgs.am_ready, &todo);
    while (!uci_list_is_empty(&todo)) {
        peer = uci_container_of(todo.next, uci_peer_t, msgs.am_link);
        uci_list_del(&peer->msgs.am_link);
        uci_worker_work_ends(worker);
        count += uci_user_am_of_peer(peer);
    }
    return count;
}

/* ----------------------------------------------------------- the program */

ucs_status_ptr_t uci_user_am_recv_data(uci_worker_t *worker, void *desc, void *buffer, size_t count,
                                       const ucp_request_param_t *param)
{
    uci_message_t *message = uci_user_am_of_place(worker, desc);
    bool is_over           = uci_user_am_take_data(message);

    return uci_unexpected_recv_user_am(message, buffer, count, param, is_over);
}

void uci_user_am_release(uci_worker_t *worker, void *data)
{
    uci_message_t *message = uci_user_am_of_place(worker, data);

    if (uci_user_am_take_data(message)) {
        uci_unexpected_discard(message);
    }
}

/* ------------------------------------------------------------------- end */

/* A descriptor is among those that are held */
static void uci_user_am_forget(uci_message_t *header)
{
    if (header == NULL) {
        return;
    }
    if ((header->other != NULL) && !header->other->probed) {
        uci_unexpected_discard(header->other);
    }
    uci_unexpected_discard(header);
}

void uci_user_am_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(header, &peer->msgs.am_queue, uci_message_t, link)
    {
        uci_list_del(&header->link);
        uci_user_am_forget(header);
    }
    uci_list_del(&peer->msgs.am_link);
    uci_user_am_forget(peer->msgs.am_header);
    uci_user_am_forget(peer->msgs.am_fetched);
}

void uci_user_am_worker_cleanup(uci_worker_t *worker)
{
    unsigned id;

    for (id = 0; id < worker->msgs.handler_count; ++id) {
        free(worker->msgs.handlers[id].ucx);
    }
    free(worker->msgs.handlers);
}
