/* SPDX-License-Identifier: BSD-3-Clause */
#include "control.h"

#include <stdlib.h>

#include "base/pair.h"
#include "base/ask.h"
#include "base/am_handler.h"
#include "blame.h"
#include "base/frame.h"
#include "util/log.h"
#include "util/process.h"
#include "base/recv_table.h"
#include "sealed.h"
#include "base/span.h"
#include "live/stats.h"

_Static_assert(offsetof(uci_control_t, payload) == offsetof(uci_control_t, hdr) + sizeof(uci_am_hdr_t), "no gap");

uint32_t uci_am_check(const uci_am_hdr_t *hdr, const void *payload, size_t length)
{
    uint64_t check = XXH3_64bits((const char *)hdr + sizeof(hdr->check), sizeof(*hdr) - sizeof(hdr->check));

    if (payload != NULL) {
        check ^= XXH3_64bits_withSeed(payload, length, check);
    }
    return (uint32_t)check;
}

/* What says that it is of no type we know is damaged, and its check, which tells, is that of words */
static uci_am_carries_t uci_control_carries(const uci_worker_t *worker, const uci_am_hdr_t *hdr)
{
    const uci_am_handler_t *handler = uci_am_handler(worker, hdr->type);

    return uci_likely(handler != NULL) ? handler->carries : UCI_AM_CARRIES_WORDS;
}

uci_control_t *uci_control_get(uci_peer_t *peer, uci_am_type_t type, uint64_t seq, size_t length)
{
    bool pooled = (length <= UCI_CONTROL_POOLED);
    uci_control_t *msg;

    msg = pooled ? uci_pool_get(&peer->worker->talk.messages) : malloc(sizeof(*msg) + length);
    if (msg == NULL) {
        uci_error("failed to allocate a message of %zu bytes to %s", length, uci_peer_name(peer));
        return NULL;
    }

    ++peer->talk.held;
    uci_list_init(&msg->link);
    msg->peer    = peer;
    msg->pooled  = pooled;
    msg->awaited = false;
    msg->bye     = false;
    msg->done    = NULL;
    msg->op      = NULL;
    msg->staging = NULL;
    msg->span    = NULL;
    msg->data    = msg->payload;
    msg->length  = length;
    msg->more    = 0;
    memset(&msg->hdr, 0, sizeof(msg->hdr));
    msg->hdr.type   = (uint8_t)type;
    msg->hdr.uid    = peer->worker->uid;
    msg->hdr.seq    = (uint32_t)seq;
    msg->hdr.length = (uint32_t)length;
    return msg;
}

void uci_control_put(uci_control_t *msg)
{
    free(msg->staging);
    --msg->peer->talk.held;
    if (msg->pooled) {
        uci_pool_put(&msg->peer->worker->talk.messages, msg);
    } else {
        free(msg);
    }
}

static void uci_control_done(uci_control_t *msg)
{
    uci_send_op_t *op                     = msg->op;
    void *span                            = msg->span;
    void (*done)(uci_send_op_t *, void *) = msg->done;

    msg->peer->talk.sending -= msg->awaited;
    msg->peer->talk.byes -= msg->bye;
    uci_control_put(msg);
    if (done != NULL) {
        done(op, span);
    }
}

static void uci_control_sent(void *request, ucs_status_t status, void *user_data)
{
    uci_control_t *msg = user_data;

    if (uci_unlikely(status != UCS_OK) && (status != UCS_ERR_CANCELED)) {
        uci_debug("message of type %u to %s failed: %s", msg->hdr.type, uci_peer_name(msg->peer),
                  uci_ucp.status_string(status));
    }
    uci_ucp.request_free(request);
    uci_control_done(msg);
}

/* What belongs to an operation may outlast a close, and so does not hold it up (but see uci_close_is_read()); the copies that a
 * close hands over do */
static bool uci_control_is_awaited(const uci_am_hdr_t *hdr, uci_am_carries_t carries)
{
    return (carries < UCI_AM_CARRIES_BYTES) || (hdr->flags & UCI_AM_FLAG_HANDOVER);
}

/* To ourselves UCX delivers within the call: said at this one place of a turn, nothing is heard, and answered, or ended by the answer,
 * while somebody is in the middle of it. UCX 1.13 must not be made to connect to a peer over tcp while it hands over what it has read
 * from it: the new end takes the buffer along that UCX is in (uct_tcp_ep_progress_am_rx(), see uci_close_progress()) */
bool uci_control_is_too_early(uci_peer_t *peer)
{
    uci_worker_t *worker = peer->worker;

    if (uci_unlikely(peer->uid == worker->uid)
                ? worker->talk.sends_unsent
                : (!uci_list_is_empty(&peer->eps) || !uci_worker_is_inside_ucx(worker))) {
        return false;
    }
    if (uci_list_is_empty(&peer->talk.unsent_link)) {
        uci_list_add_tail(&worker->talk.unsent, &peer->talk.unsent_link);
        uci_worker_work_begins(worker);
    }
    return true;
}

static ucp_ep_h uci_control_endpoint(uci_control_t *msg)
{
    bool small = (msg->length + msg->more <= UCI_CONTROL_FRAGMENT);

    if (uci_control_is_too_early(msg->peer)) {
        return NULL;
    }
    return small ? uci_peer_endpoint(msg->peer) : uci_peer_endpoint_whole(msg->peer);
}

static ucs_status_ptr_t uci_control_post_sealed(ucp_ep_h ep, const uci_control_t *msg, uci_am_carries_t carries,
                                                const ucp_request_param_t *param)
{
    uci_sealed_out_t out = {.peer = msg->peer};

    switch (carries) {
    case UCI_AM_CARRIES_CLEAR:
        out.kind         = UCI_SEALED_HELLO;
        out.body         = &msg->hdr;
        out.body_length  = sizeof(msg->hdr);
        out.clear        = msg->data;
        out.clear_length = msg->length;
        break;
    case UCI_AM_CARRIES_OFFER:
        out.kind        = UCI_SEALED_OFFER;
        out.body        = &msg->hdr;
        out.body_length = sizeof(msg->hdr) + msg->more;
        out.data        = msg->data;
        out.data_length = msg->length;
        break;
    default:
        out.kind        = UCI_SEALED_MESSAGE;
        out.head        = &msg->hdr;
        out.head_length = sizeof(msg->hdr);
        out.body        = msg->data;
        out.body_length = msg->length;
        break;
    }
    return uci_sealed_send(ep, &out, param);
}

void uci_control_begin_unsent(uci_worker_t *worker, uci_list_t *todo)
{
    uci_list_move(&worker->talk.unsent, todo);
    worker->talk.sends_unsent = true;
}

void uci_control_end_unsent(uci_worker_t *worker)
{
    worker->talk.sends_unsent = false;
}

uci_peer_t *uci_control_next_unsent(uci_worker_t *worker, uci_list_t *todo)
{
    uci_peer_t *peer = uci_container_of(todo->next, uci_peer_t, talk.unsent_link);

    uci_list_del(&peer->talk.unsent_link);
    uci_worker_work_ends(worker);
    return peer;
}

static ucs_status_ptr_t uci_control_post_plain(ucp_ep_h ep, const uci_control_t *msg, const ucp_request_param_t *param)
{
    return uci_ucp.am_send_nbx(ep, UCI_AM_ID, &msg->hdr, sizeof(msg->hdr) + msg->more, msg->data, msg->length, param);
}

/* Hand it to UCX. What ourselves answer to it waits for its turn */
static ucs_status_ptr_t uci_control_post(ucp_ep_h ep, uci_control_t *msg, uci_am_carries_t carries,
                                         const ucp_request_param_t *param)
{
    uci_worker_t *worker = msg->peer->worker;
    bool sends_unsent    = worker->talk.sends_unsent;
    ucs_status_ptr_t request;

    UCI_STATS_INC(control_sent);
    worker->talk.sends_unsent = false;
    request                   = uci_unlikely(msg->peer->seals) ? uci_control_post_sealed(ep, msg, carries, param)
                                                               : uci_control_post_plain(ep, msg, param);
    worker->talk.sends_unsent = sends_unsent;
    return request;
}

static uint32_t uci_control_check(const uci_control_t *msg, uci_am_carries_t carries)
{
    switch (carries) {
    case UCI_AM_CARRIES_BYTES:
        return uci_am_check(&msg->hdr, NULL, 0);
    case UCI_AM_CARRIES_OFFER:
        return uci_am_check(&msg->hdr, msg->payload, msg->more);
    default:
        return uci_am_check(&msg->hdr, msg->data, msg->length);
    }
}

void uci_control_send(uci_control_t *msg)
{
    uci_am_carries_t carries  = uci_control_carries(msg->peer->worker, &msg->hdr);
    ucp_request_param_t param = {
            .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
            .cb.send      = uci_control_sent,
            .user_data    = msg,
            .flags        = (carries == UCI_AM_CARRIES_OFFER) ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER};
    ucp_ep_h ep = uci_control_endpoint(msg);
    ucs_status_ptr_t request;

    if (uci_unlikely(ep == NULL)) {
        uci_list_add_tail(&msg->peer->talk.pending, &msg->link);
        return;
    }

    msg->awaited = uci_control_is_awaited(&msg->hdr, carries);
    msg->peer->talk.sending += msg->awaited;
    msg->bye = (msg->hdr.type == UCI_AM_BYE);
    msg->peer->talk.byes += msg->bye;
    if (carries == UCI_AM_CARRIES_OFFER) {
        uci_send_op_offer(msg->op, ep);
    }
    msg->hdr.check = uci_control_check(msg, carries);
    if (msg->span != NULL) {
        uci_span_set_memh(msg->peer->worker, &param);
    }
    request = uci_control_post(ep, msg, carries, &param);
    if (UCS_PTR_IS_PTR(request)) {
        return;
    }
    if (uci_unlikely(UCS_PTR_IS_ERR(request))) {
        uci_debug("failed to send a message of type %u to %s: %s", msg->hdr.type, uci_peer_name(msg->peer),
                  uci_ucp.status_string(UCS_PTR_STATUS(request)));
    }
    uci_control_done(msg);
}

void uci_control_send_simple(uci_peer_t *peer, uci_am_type_t type, uint64_t seq, uint32_t op, uint16_t flags)
{
    uci_control_t *msg = uci_control_get(peer, type, seq, 0);

    if (msg != NULL) {
        msg->hdr.op    = op;
        msg->hdr.flags = flags;
        uci_control_send(msg);
    }
}

void uci_control_fin(uci_peer_t *peer, uint64_t seq, uint16_t flags)
{
    uci_control_fin_status(peer, seq, flags, UCS_OK);
}

void uci_control_fin_status(uci_peer_t *peer, uint64_t seq, uint16_t flags, ucs_status_t status)
{
    uci_control_t *msg = uci_control_get(peer, UCI_AM_FIN, seq, 0);

    ++peer->talk.fins_sent;
    if (msg != NULL) {
        msg->hdr.flags = flags;
        msg->hdr.value = (uint64_t)(0 - (int64_t)status);
        uci_control_send(msg);
    }
}

void uci_control_send_pending(uci_peer_t *peer)
{
    uci_list_t todo;

    /* what can't be sent after all goes back to the list */
    uci_list_move(&peer->talk.pending, &todo);
    uci_list_for_each_safe(msg, &todo, uci_control_t, link)
    {
        uci_list_del(&msg->link);
        uci_control_send(msg);
    }
}

void uci_control_drop_pending(uci_peer_t *peer)
{
    uci_list_t todo;

    uci_list_move(&peer->talk.pending, &todo);
    uci_list_for_each_safe(msg, &todo, uci_control_t, link)
    {
        uci_list_del(&msg->link);
        uci_control_done(msg);
    }
}

void uci_control_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(msg, &peer->talk.pending, uci_control_t, link)
    {
        uci_list_del(&msg->link);
        uci_control_put(msg);
    }
}

void uci_control_hello(uci_peer_t *peer)
{
    uci_worker_t *worker = peer->worker;
    uci_control_t *msg;

    peer->talk.hello_sent = true;
    msg                   = uci_control_get(peer, UCI_AM_HELLO, 0, sizeof(worker->self.mark) + worker->self.length);
    if (msg != NULL) {
        uci_mark_put(msg->payload, &worker->self.mark, worker->self.address, worker->self.length);
        msg->hdr.value = peer->conversation.life;
        msg->hdr.op    = (peer->lanes.err_mode != UCP_ERR_HANDLING_MODE_NONE);
        msg->hdr.index = peer->lanes.placed;
        msg->hdr.extra = uci_pair_open(peer);
        uci_control_send(msg);
    }
}

ucs_status_t uci_control_take_segment(uci_worker_t *worker, const uci_am_hdr_t *hdr, size_t header_length,
                                      size_t length, void *desc)
{
    if ((header_length >= sizeof(*hdr)) && (uci_control_carries(worker, hdr) == UCI_AM_CARRIES_OFFER) &&
        (hdr->length == length) && (hdr->check == uci_am_check(hdr, hdr + 1, header_length - sizeof(*hdr)))) {
        return worker->calls.message(worker, hdr, hdr + 1, header_length - sizeof(*hdr), desc);
    }
    uci_control_damaged(worker, "offer of a segment", (header_length >= sizeof(*hdr)) ? hdr : NULL);
    return UCS_OK;
}

/* A segment is not here yet, and nothing else comes this way. What follows its header in there may be at any alignment. */
static ucs_status_t uci_control_recv_segment(uci_worker_t *worker, const void *header, size_t header_length,
                                             size_t length, void *desc)
{
    uci_am_hdr_t *copy = malloc(uci_max(header_length, sizeof(*copy)));
    ucs_status_t status;

    if (copy == NULL) {
        uci_control_damaged(worker, "offer of a segment (no memory)", NULL);
        return UCS_OK;
    }
    memcpy(copy, header, header_length);
    status = uci_control_take_segment(worker, copy, header_length, length, desc);
    free(copy);
    return status;
}

/* What is not bytes has to be aligned to be read; and where UCX hands over what lies in memory that the sender can write to, it has to
 * be what was checked */
static const void *uci_control_own(const void *data, size_t length, void *small, size_t small_size)
{
    void *copy = (length <= small_size) ? small : malloc(length);

    if (copy != NULL) {
        memcpy(copy, data, length);
    }
    return copy;
}

static void uci_control_recv_words(uci_worker_t *worker, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uint64_t small[UCI_CONTROL_POOLED / sizeof(uint64_t)];
    const void *own = uci_control_own(data, length, small, sizeof(small));

    if (own == NULL) {
        uci_control_damaged(worker, "active message (no memory)", NULL);
        return;
    }
    if (uci_likely((hdr->check == uci_am_check(hdr, own, length)) && (hdr->length == length) &&
                   (uci_control_carries(worker, hdr) != UCI_AM_CARRIES_OFFER))) {
        worker->calls.message(worker, hdr, own, length, NULL);
    } else {
        uci_control_damaged(worker, "active message", hdr);
    }
    if (own != small) {
        free((void *)own);
    }
}

void uci_control_take(uci_worker_t *worker, const void *header, size_t header_length, const void *data, size_t length)
{
    uci_am_hdr_t hdr;

    if (uci_unlikely(header_length != sizeof(hdr))) {
        uci_control_damaged(worker, "active message", NULL);
        return;
    }
    /* UCX puts the header behind the data, at any alignment */
    memcpy(&hdr, header, sizeof(hdr));
    if (uci_control_carries(worker, &hdr) != UCI_AM_CARRIES_BYTES) {
        uci_control_recv_words(worker, &hdr, data, length);
    } else if (uci_likely(hdr.check == uci_am_check(&hdr, NULL, 0))) {
        worker->calls.message(worker, &hdr, data, length, NULL);
    } else {
        uci_control_damaged(worker, "active message", &hdr);
    }
}

ucs_status_t uci_control_recv(void *arg, const void *header, size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    uci_worker_t *worker = arg;
    ucs_status_t status  = UCS_OK;

    uci_worker_enter(worker);
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        status = uci_control_recv_segment(worker, header, header_length, length, data);
    } else {
        uci_control_take(worker, header, header_length, data, length);
    }
    uci_worker_leave(worker);
    return status;
}

/* Smoothed as TCP does, with its weight (Jacobson 1988; RFC 6298), and not from what was asked for twice (Karn 1987) */
static void uci_control_measure(uci_worker_t *worker, uint64_t sample)
{
    uint64_t before = worker->talk.round_trip;

    sample                  = uci_min(sample, UCI_ASK_INTERVAL_NS);
    worker->talk.round_trip = (before == 0) ? sample : before - (before / 8) + (sample / 8);
}

void uci_control_heard(const uci_recv_op_t *op)
{
    if ((op->way.arrived == 0) && (op->repair.asked == 0) && (op->chunk.tree != NULL)) {
        uci_control_measure(op->peer->worker, uci_process_time_ns() - op->ask.time);
    }
}

void uci_control_ask_soon(uci_worker_t *worker)
{
    if (!worker->talk.resync) {
        worker->talk.resync      = true;
        worker->talk.resync_time = uci_process_time_ns() + uci_ask_delay(worker);
    }
}

void uci_control_ask_at(uci_worker_t *worker, uint64_t time)
{
    worker->talk.resync_time = worker->talk.resync ? uci_min(worker->talk.resync_time, time) : time;
    worker->talk.resync      = true;
}

void uci_control_asks(uci_worker_t *worker, bool damaged)
{
    worker->talk.resync  = worker->talk.resync && !damaged;
    worker->talk.ask_now = false;
}

void uci_control_count_dropped(uci_worker_t *worker)
{
    ++worker->talk.dropped;
    uci_control_ask_soon(worker);
}

void uci_control_damaged(uci_worker_t *worker, const char *what, const uci_am_hdr_t *hdr)
{
    uci_blame(worker, hdr);
    UCI_STATS_INC(mismatched_control);
    uci_control_count_dropped(worker);
    uci_info("%s arrived damaged and was dropped; asking again", what);
}
