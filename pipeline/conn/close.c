/* SPDX-License-Identifier: BSD-3-Clause */
#include "close.h"

#include <stdlib.h>

#include "base/am_handler.h"
#include "bye.h"
#include "close_report.h"
#include "closed.h"
#include "conversation/conversation.h"
#include "link/control.h"
#include "report/dump_line.h"
#include "base/request.h"
#include "endpoint.h"
#include "link/link_send.h"
#include "util/log.h"
#include "link/mailbox.h"
#include "util/process.h"
#include "transfer/repair.h"
#include "transfer/send_common.h"
#include "transfer/stream.h"
#include "link/txlog.h"
#include "rma/rma.h"

/* How long a close waits for an answer, and then for UCX to take what it has for the peer */
#define UCI_CLOSE_TIMEOUT_NS 10000000000ul

/* The same if only reports are exchanged: FIN, LEAVE and BYE say the same, and lie in the queues of a peer that is silent */
#define UCI_CLOSE_REPORT_NS 2000000000ul

/* Questions are repeated after this time, then after twice as long each time, up to 2 s: so several of them have to be lost before a peer
 * is taken for silent */
#define UCI_CLOSE_REPEAT_NS    250000000ul
#define UCI_CLOSE_REPEAT_SHIFT 3u

typedef struct uci_close {
    uci_list_t link;
    uci_ep_t *ep; /* NULL: UCX closes it */
    uci_peer_t *peer;
    uci_request_t *req;
    void *ucx;         /* UCX's close */
    uint64_t deadline; /* for what is waited for now */
    uint64_t asked_time;
    uint64_t flush_time; /* when UCX was told to close it */
    uint64_t operations; /* on the peer's memory that were begun before it */
    uint32_t round;      /* number of its last LEAVE; 0: none was necessary */
    bool answered;       /* the peer has told what it lacks, since that */
    unsigned asks;       /* LEAVEs without an answer */
    bool last;           /* of the user's endpoints to this peer */
    bool given_up;       /* asking */
} uci_close_t;

/* -------------------------------------------------------------- asking */

/* Ask, or ask again (REPAIR): what have you not finished? This is what we have. */
static void uci_close_ask(uci_close_t *closing, uint16_t flags)
{
    uci_peer_t *peer   = closing->peer;
    uci_control_t *msg = uci_close_report_get(peer, UCI_AM_LEAVE, SIZE_MAX);

    closing->asked_time = uci_process_time_ns();
    if (msg == NULL) {
        return; /* asked again after a while */
    }
    closing->answered = false;
    closing->round    = uci_conversation_ask(&peer->conversation, peer->talk.fins_sent);
    msg->hdr.op       = closing->round;
    msg->hdr.value    = peer->conversation.life;
    msg->hdr.flags |= flags;
    uci_control_send(msg);
}

/* There is somebody who can answer, and something he has not confirmed. If he leaves as well, he will receive nothing more */
static bool uci_close_has_to_ask(uci_peer_t *peer)
{
    if (!uci_conversation_is_heard(&peer->conversation)) {
        return false;
    }
    return (peer->conversation.fins_told != peer->talk.fins_sent) ||
           (!uci_conversation_is_leaving(&peer->conversation) && !uci_txlog_is_empty(peer));
}

static void uci_close_set_deadline(uci_close_t *closing, uint64_t delay)
{
    closing->deadline = uci_process_time_ns() + delay;
}

static void uci_close_begin(uci_close_t *closing)
{
    uci_peer_t *peer = closing->peer;

    /* it may go on sending to us, and needs a new endpoint then. After LEAVE HELLO would say that we are back */
    if (!peer->talk.hello_sent && !uci_conversation_is_leaving(&peer->conversation)) {
        uci_control_hello(peer);
    }
    uci_conversation_close(&peer->conversation);
    if (uci_close_has_to_ask(peer)) {
        uci_close_ask(closing, 0);
        uci_close_set_deadline(closing, uci_txlog_is_empty(peer) ? UCI_CLOSE_REPORT_NS : UCI_CLOSE_TIMEOUT_NS);
    }
}

/* Also if nothing is to be asked, and its BYE is waited for: it may be lost, and to who has said it LEAVE, said again, says so */
static bool uci_close_is_unanswered(const uci_close_t *closing)
{
    const uci_conversation_t *conversation = &closing->peer->conversation;

    return closing->last && (closing->ep != NULL) && !closing->given_up && !uci_conversation_is_gone(conversation) &&
           (uci_conversation_is_waiting(conversation) || ((closing->round > 0) && !closing->answered));
}

static uint64_t uci_close_ask_time(const uci_close_t *closing)
{
    return closing->asked_time + (UCI_CLOSE_REPEAT_NS << uci_min(closing->asks, UCI_CLOSE_REPEAT_SHIFT));
}

void uci_close_ask_again(uci_worker_t *worker, uint64_t now, bool damaged)
{
    uci_list_for_each(closing, &worker->conn.closing, uci_close_t, link)
    {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): asking ends no close */
        if (uci_close_is_unanswered(closing) && (damaged || (now >= uci_close_ask_time(closing)))) {
            closing->asks += !damaged;
            uci_close_ask(closing, UCI_AM_FLAG_REPAIR);
        }
    }
}

/* ------------------------------------------------------------- waiting */

/* UCX has offered segments of it through this endpoint, or the peer has been told where to read a message that our user takes
 * for sent. The peer has matched it, and nothing but FIN can be waited for */
static bool uci_close_is_read(const uci_close_t *closing)
{
    const uci_ep_t *ep = closing->ep;

    if (ep->half || ep->unpaired || uci_conversation_is_gone(&ep->peer->conversation)) {
        return false; /* what is offered there is lost: the peer asks for copies, or wants nothing more */
    }
    uci_list_for_each(op, &ep->peer->worker->xfer.send_ops, uci_send_op_t, all)
    {
        if ((op->peer == ep->peer) && ((op->way.offered_by == ep->ucp) ||
                                       (closing->last && (op->req == NULL) && !uci_list_is_empty(&op->way.grants)))) {
            return true;
        }
    }
    return false;
}

/* Is there a message that the user takes for sent, and of which the peer has not said that it has it? What waits for nothing but its
 * receive, and was canceled, it has */
static bool uci_close_is_lacking(uci_peer_t *peer)
{
    if ((peer->tx.acked < peer->tx.next) &&
        !(peer->box.mapped && uci_mailbox_heard(peer) && (peer->tx.acked == peer->tx.next))) {
        return true;
    }
    uci_list_for_each(op, &peer->worker->xfer.send_ops, uci_send_op_t, all)
    {
        if ((op->peer == peer) && (op->req == NULL) && (op->buffer != NULL)) {
            return true;
        }
    }
    return false;
}

/* Unasked, for who is silent: chunks of what is copied, and all frames. What it lacks shall lie in its queues when it comes back */
static void uci_close_hand_over(uci_close_t *closing)
{
    uci_peer_t *peer = closing->peer;

    uci_link_send_again(peer);
    uci_list_for_each_safe(op, &peer->worker->xfer.send_ops, uci_send_op_t, all)
    {
        if ((op->peer == peer) && (op->frame != NULL)) {
            uci_stream_hand_over(op);
        }
    }
    uci_close_set_deadline(closing, UCI_CLOSE_TIMEOUT_NS);
}

/* The peer is silent */
static void uci_close_give_up(uci_close_t *closing)
{
    uci_info("no answer from %s: closing all the same", uci_peer_name(closing->peer));
    closing->given_up = true;
    if (!uci_conversation_is_leaving(&closing->peer->conversation)) {
        uci_close_hand_over(closing);
    }
}

/* A close that began with nothing to ask stays so, unless a peer that was gone is back */
static bool uci_close_may_ask(const uci_close_t *closing)
{
    return uci_conversation_is_heard(&closing->peer->conversation) && !closing->given_up &&
           ((closing->round > 0) || uci_close_has_to_ask(closing->peer));
}

/* @return true while an answer, or what it has to be asked for, is to come. A peer that has answered fetches what it lacks, and is asked
 * again after a while */
static bool uci_close_is_asking(uci_close_t *closing, bool late)
{
    uci_peer_t *peer = closing->peer;

    if (!uci_close_may_ask(closing)) {
        return false;
    }
    if ((closing->round > 0) && !closing->answered) {
        if (late) {
            uci_close_give_up(closing);
        }
        return !late;
    }
    if (!uci_conversation_is_leaving(&peer->conversation) && uci_close_is_lacking(peer)) {
        if (uci_process_time_ns() >= uci_close_ask_time(closing)) {
            ++closing->asks;
            uci_close_set_deadline(closing, UCI_CLOSE_TIMEOUT_NS);
            uci_close_ask(closing, 0);
        }
        return true;
    }
    if (peer->conversation.fins_told != peer->talk.fins_sent) {
        closing->asks = 0;
        uci_close_ask(closing, 0);
        return true;
    }
    return false;
}

/* As UCX's close, which flushes: what is fetched is to come, and what was sent is to be executed; by who is there to do it */
static bool uci_close_is_one_sided(const uci_close_t *closing)
{
    const uci_peer_t *peer = closing->peer;

    return (uci_rma_settled(peer) < closing->operations) && !closing->given_up &&
           uci_conversation_is_heard(&peer->conversation);
}

/* What UCX holds may wait for the other end of an endpoint, for which it asks with the first message that needs it. On tcp
 * the other side's UCX, up to 1.13, has to read this question alone: it crashes if it makes that end and anything
 * follows in what it has read, such as the flush of a close (docs/design.md, Closing). So UCX is not told to close
 * before it has let go of what was said */
static bool uci_close_has_to_wait(uci_close_t *closing)
{
    uci_peer_t *peer = closing->peer;
    bool late;

    if (uci_close_is_read(closing)) {
        uci_close_set_deadline(closing, UCI_CLOSE_TIMEOUT_NS);
        return true;
    }
    if (closing->last && uci_close_is_asking(closing, uci_process_time_ns() > closing->deadline)) {
        return true;
    }
    if (uci_close_is_one_sided(closing)) {
        return true;
    }
    if (uci_conversation_is_leaving(&peer->conversation) && (peer->conversation.status != UCS_OK)) {
        return false; /* its LEAVE was heard after it had failed: no BYE follows */
    }
    late = (uci_process_time_ns() > closing->deadline);
    return !late && (uci_conversation_is_leaving(&peer->conversation) ? uci_conversation_is_waiting(&peer->conversation)
                                                                      : (peer->talk.sending > 0));
}

/* -------------------------------------------------------------- ending */

static void uci_close_done(uci_close_t *closing, ucs_status_t status)
{
    uci_request_t *req = closing->req;

    if (closing->last) {
        uci_repair_ask_dropped(closing->peer);
        uci_bye_rest(closing->peer);
    }
    uci_list_del(&closing->link);
    uci_worker_work_ends(req->worker);
    free(closing);
    uci_request_complete(req, status);
}

static void uci_close_flushed(void *request, ucs_status_t status, void *user_data)
{
    uci_close_t *closing = user_data;
    uci_worker_t *worker = closing->req->worker;

    uci_ucp.request_free(request);
    uci_worker_enter(worker);
    uci_close_done(closing, status);
    uci_worker_leave(worker);
}

/* The peer has, or will never want, all that we have: let UCX close it. That flushes as far as the transport, as
 * with plain UCX, and not as far as ucp_ep_flush_nbx(): the peer may make no more progress */
static void uci_close_flush(uci_close_t *closing)
{
    ucp_ep_h ucp              = closing->ep->ucp;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = uci_close_flushed,
                                 .user_data    = closing};
    ucs_status_ptr_t request;

    if (closing->last) {
        uci_rma_fail(closing->peer, UCS_ERR_CANCELED);
        uci_bye_say(closing->peer, false);
    } else {
        uci_closed_say(closing->peer);
    }
    uci_ep_destroy(closing->ep);
    closing->ep         = NULL;
    closing->flush_time = uci_process_time_ns();
    request             = uci_ucp.ep_close_nbx(ucp, &param);
    if (UCS_PTR_IS_PTR(request)) {
        closing->ucx = request;
    } else {
        uci_close_done(closing, UCS_PTR_STATUS(request));
    }
}

/* Both sides have said BYE: what UCX still waits for is of no use. On tcp it is an answer of the peer (its flush is
 * a ping), which may be in MPI_Finalize, past its last progress: plain MPICH hangs there when ranks finalize at
 * different times (4.0.2, UCX 1.13.1). In shared memory it is room in the peer's queue, for answers that it does not want any more, and which
 * it will never make */
static void uci_close_let_go(uci_close_t *closing)
{
    uci_ucp.request_free(closing->ucx);
    uci_close_done(closing, UCS_OK);
}

/* Connected by socket address UCX takes leave of its peer, too: it loses its request if the worker goes meanwhile */
#define UCI_CLOSE_SOCKET_NS 250000000ul

/* Our BYE has; or it lies behind so much that its peer does not take, that he is past taking anything: sooner if he has said that he waits
 * for nothing. It may also wait for an endpoint that is still connecting, which UCX does not like to lose (uci_ep_shutdown()) */
static bool uci_close_has_left(const uci_close_t *closing)
{
    const uci_peer_t *peer = closing->peer;
    bool is_over  = uci_conversation_is_gone(&peer->conversation) && (peer->conversation.gone_time != UINT64_MAX);
    uint64_t time = uci_process_time_ns() - closing->flush_time;

    if (peer->talk.byes == 0) {
        return !peer->lanes.by_socket || (time > UCI_CLOSE_SOCKET_NS);
    }
    return time > (is_over ? UCI_CLOSE_REPORT_NS : UCI_CLOSE_TIMEOUT_NS);
}

static void uci_close_advance(uci_close_t *closing)
{
    const uci_peer_t *peer = closing->peer;

    if (closing->ep == NULL) {
        if (uci_conversation_is_leaving(&peer->conversation) && uci_conversation_is_left(&peer->conversation) &&
            uci_close_has_left(closing)) {
            uci_close_let_go(closing);
        }
    } else if (!uci_close_has_to_wait(closing)) {
        uci_close_flush(closing);
    }
}

void uci_close_progress(uci_worker_t *worker)
{
    uci_list_for_each_safe(closing, &worker->conn.closing, uci_close_t, link)
    {
        uci_close_advance(closing);
    }
}

bool uci_close_is_going_on(const uci_peer_t *peer)
{
    uci_list_for_each(closing, &peer->worker->conn.closing, uci_close_t, link)
    {
        if (closing->peer == peer) {
            return true;
        }
    }
    return false;
}

/* As uci_close_is_asking(), of which it is the time */
static bool uci_close_asks_again(const uci_close_t *closing)
{
    uci_peer_t *peer = closing->peer;

    if (uci_close_is_unanswered(closing)) {
        return true;
    }
    if (!closing->last || !uci_close_may_ask(closing)) {
        return false;
    }
    return (peer->conversation.fins_told != peer->talk.fins_sent) ||
           (!uci_conversation_is_leaving(&peer->conversation) && uci_close_is_lacking(peer));
}

/* What ends without any word of ours has no time: nobody would be awake for it but in vain */
static uint64_t uci_close_due_of(const uci_close_t *closing)
{
    if (closing->ep == NULL) {
        return UINT64_MAX;
    }
    if (uci_close_asks_again(closing)) {
        return uci_min(closing->deadline, uci_close_ask_time(closing));
    }
    return uci_close_is_one_sided(closing) ? UINT64_MAX : closing->deadline;
}

uint64_t uci_close_due(const uci_worker_t *worker)
{
    uint64_t due = UINT64_MAX;

    uci_list_for_each(closing, &worker->conn.closing, uci_close_t, link)
    {
        due = uci_min(due, uci_close_due_of(closing));
    }
    return due;
}

/* As in UCX: what is not done is not done any more. The other side is told, if that gets through, so that it does
 * not wait for us when it closes */
static ucs_status_ptr_t uci_close_forced(uci_ep_t *ep, const ucp_request_param_t *param)
{
    bool last        = uci_ep_is_last_of_user(ep);
    uci_peer_t *peer = ep->peer;
    ucp_ep_h ucp     = ep->ucp;
    ucs_status_ptr_t ret;

    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) {
        uci_request_clear_marker(param->request);
    }
    if (last) {
        uci_conversation_close(&peer->conversation);
        if (peer->conversation.status == UCS_OK) {
            uci_bye_say(peer, true);
        }
    } else {
        ep->closing = true;
        uci_closed_say(peer);
        uci_ep_cancel(ep, UCS_ERR_CANCELED);
    }
    uci_ep_destroy(ep);
    ret = uci_ucp.ep_close_nbx(ucp, param);
    if (last) {
        ++peer->worker->conn.ended;
        uci_ep_abandon(peer, (peer->conversation.status == UCS_OK) ? UCS_ERR_CANCELED : peer->conversation.status);
    }
    return ret;
}

ucs_status_ptr_t uci_ep_close(uci_ep_t *ep, const ucp_request_param_t *param)
{
    uint32_t flags       = (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) ? param->flags : 0;
    uci_peer_t *peer     = ep->peer;
    uci_worker_t *worker = peer->worker;
    uci_close_t *closing;
    uci_request_t *req;

    if (flags & UCP_EP_CLOSE_FLAG_FORCE) {
        return uci_close_forced(ep, param);
    }

    closing = calloc(1, sizeof(*closing));
    req     = uci_request_get(worker, param);
    if ((closing == NULL) || (req == NULL)) {
        uci_error("failed to allocate what a close needs");
        free(closing);
        if (req != NULL) {
            uci_request_put(req);
        }
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    closing->ep         = ep;
    closing->peer       = peer;
    closing->req        = req;
    closing->last       = uci_ep_is_last_of_user(ep);
    closing->operations = peer->rma.sent;
    closing->asked_time = uci_process_time_ns();
    ep->closing         = true;
    uci_list_add_tail(&worker->conn.closing, &closing->link);
    uci_worker_work_begins(worker);

    uci_close_set_deadline(closing, UCI_CLOSE_TIMEOUT_NS);
    if (closing->last) {
        uci_close_begin(closing);
    }
    uci_close_advance(closing);
    return uci_request_posted(req, param);
}

void uci_close_revoke(uci_peer_t *peer)
{
    if (uci_conversation_open(&peer->conversation) == UCI_CONVERSATION_RETURN) { /* and the other side has to know */
        uci_control_hello(peer);
        uci_link_watch(peer);
    }
    uci_list_for_each(closing, &peer->worker->conn.closing, uci_close_t, link)
    {
        closing->last = closing->last && (closing->peer != peer);
    }
}

static void uci_close_on_missing(uci_am_t *am)
{
    uci_close_report_take(am->peer, am->data, am->length);
    uci_list_for_each(closing, &am->peer->worker->conn.closing, uci_close_t, link)
    {
        if ((closing->peer == am->peer) && closing->last && (am->hdr->op == closing->round)) {
            closing->answered = true;
        }
    }
}

UCI_AM_HANDLER(MISSING, 15, "answer to LEAVE", "report",
               "none: what the closing side has is fetched, or asked for, and LEAVE comes again; or BYE",
               "LEAVE comes again", .flags = UCI_AM_FLAG_REPAIR, .min = 2 * sizeof(uint64_t), .max = UINT32_MAX,
               .grain = 2 * sizeof(uint64_t), .hit = UCI_AM_HIT(ACK), .special = UCI_AM_FLAG_REPAIR,
               .check = uci_close_report_check, .take = uci_close_on_missing);

void uci_close_shutdown(uci_worker_t *worker)
{
    uci_list_for_each(closing, &worker->conn.closing, uci_close_t, link)
    {
        if (closing->ucx != NULL) {
            uci_ucp.request_free(closing->ucx);
            closing->ucx = NULL;
        }
    }
}

void uci_close_cleanup(uci_worker_t *worker)
{
    uci_list_for_each_safe(closing, &worker->conn.closing, uci_close_t, link)
    {
        uci_list_del(&closing->link);
        free(closing);
    }
}

void uci_close_dump(const uci_worker_t *worker, int fd)
{
    unsigned shown = 0;

    uci_list_for_each(closing, &worker->conn.closing, uci_close_t, link)
    {
        if ((closing->link.next == NULL) || (++shown > UCI_DUMP_MAX)) {
            return;
        }
        uci_dump_line(fd, "  close of %s: %s; %u questions without an answer%s%s%s", uci_peer_name(closing->peer),
                      (closing->ep == NULL) ? "UCX closes it" : "waits for the other side", closing->asks,
                      closing->last ? ", last" : "", closing->answered ? ", answered" : "",
                      closing->given_up ? ", given up asking" : "");
    }
}
