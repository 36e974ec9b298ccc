/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a close counts, and must count down again whatever becomes of a message: else it waits for ever.
 */
#include <criterion/criterion.h>

#include "conversation/conversation.h"
#include "fake_talk.h"

#include "base/am_handler.h"
#include "base/resting.h"
#include "conn/close.h"
#include "conn/rest.h"
#include "link/control.h"
#include "link/link_recv.h"
#include "link/link_send.h"
#include "link/mailbox.h"
#include "message/early.h"

/* A message of the peer's, as it comes to who takes it */
static void take(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data, size_t length)
{
    uci_am_t am = {.peer = peer, .hdr = hdr, .data = data, .length = length};

    uci_am_handler(peer->worker, hdr->type)->take(&am);
}

static void set_up(void)
{
    net_read_settings();
    net_init();
    net_create(0);
    net_create(1);
    net_open(0, 1);
    net_open(1, 0);
}

static void tear_down(void)
{
    unsigned turn;

    for (turn = 0; (turn < 100) && !net_is_idle(); ++turn) {
        net_turn(0);
        net_turn(1);
    }
    net_end_operations(net_nodes[0].worker);
    net_end_operations(net_nodes[1].worker);
    net_destroy(0);
    net_destroy(1);
}

TestSuite(close, .init = set_up, .fini = tear_down, .timeout = 20);

/* It never reached UCX */
Test(close, a_bye_that_was_dropped)
{
    uci_peer_t *peer = uci_worker_peer(net_nodes[0].worker, 0x1234567); /* nobody knows where to */

    uci_control_send_simple(peer, UCI_AM_BYE, 0, 0, 0);
    cr_assert(!uci_list_is_empty(&peer->talk.pending));
    uci_control_drop_pending(peer);
    cr_expect(uci_list_is_empty(&peer->talk.pending));
    cr_expect(peer->talk.byes == 0, "%u BYEs are waited for", peer->talk.byes);
    cr_expect(peer->talk.sending == 0);
}

/* A BYE takes a new connection when it is said again, so it is only for who has not got the first one */
Test(close, a_leave_that_has_crossed_our_bye)
{
    uci_peer_t *peer         = net_nodes[0].ep->peer;
    const uint64_t report[2] = {0};
    const uci_am_hdr_t again = {.type = UCI_AM_LEAVE, .flags = UCI_AM_FLAG_REPAIR};

    net_clock = 1000000000000ul;
    uci_conversation_close(&peer->conversation);
    uci_conversation_say_bye(&peer->conversation);
    take(peer, &again, report, sizeof(report));
    cr_expect(uci_conversation_is_leaving(&peer->conversation));
    cr_expect(talk_count(1, UCI_AM_BYE) == 0);
    net_clock += 250 * TALK_MS;
    take(peer, &again, report, sizeof(report));
    cr_expect(talk_count(1, UCI_AM_BYE) == 1, "it was lost");
    take(peer, &again, report, sizeof(report));
    cr_expect(talk_count(1, UCI_AM_BYE) == 1, "once");
    net_clock = 0;
}

/* It has said LEAVE, and we, who close as well, have nothing to ask: its BYE is waited for, and may be lost */
Test(close, a_bye_that_does_not_come)
{
    uci_peer_t *peer         = net_nodes[0].ep->peer;
    uci_worker_t *worker     = peer->worker;
    const uint64_t report[2] = {0};
    const uci_am_hdr_t leave = {.type = UCI_AM_LEAVE}, bye = {.type = UCI_AM_BYE};
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t closing;

    net_clock = 1000000000000ul;
    take(peer, &leave, report, sizeof(report));
    closing = uci_ep_close(net_nodes[0].ep, &param);
    cr_assert(UCS_PTR_IS_PTR(closing));
    cr_expect_eq(peer->conversation.state, UCI_CLOSING_WAITING);
    net_clock += 200 * TALK_MS;
    uci_close_ask_again(worker, net_clock, false);
    cr_expect(talk_count(1, UCI_AM_LEAVE) == 0, "it may be on its way");
    net_clock += 100 * TALK_MS;
    uci_close_ask_again(worker, net_clock, false);
    cr_expect(talk_count(1, UCI_AM_LEAVE) == 1, "LEAVE has it come again");
    uci_close_ask_again(worker, net_clock, true);
    cr_expect(talk_count(1, UCI_AM_LEAVE) == 2, "at once, if something was damaged");
    take(peer, &bye, report, sizeof(report));
    uci_close_progress(worker);
    cr_expect(uci_conversation_is_left(&peer->conversation));
    net_clock       = 0;
    net_nodes[0].ep = NULL;
}

/* Who sleeps meanwhile is not woken before there is something to do */
Test(close, a_close_that_asks_nothing)
{
    uci_peer_t *peer          = net_nodes[0].ep->peer;
    ucp_request_param_t param = {.op_attr_mask = 0};
    uci_ep_t *other           = uci_ep_create(peer, net_nodes[0].ep->ucp, true);

    net_clock          = 1000000000000ul;
    peer->talk.sending = 1;
    cr_assert(UCS_PTR_IS_PTR(uci_ep_close(net_nodes[0].ep, &param)));
    net_clock += 1000 * TALK_MS;
    uci_close_ask_again(peer->worker, net_clock, false);
    uci_close_progress(peer->worker);
    cr_expect(uci_close_due(peer->worker) == net_clock + (9000 * TALK_MS), "when it has waited long enough");
    peer->talk.sending = 0;
    uci_close_progress(peer->worker);
    cr_expect(uci_close_due(peer->worker) == UINT64_MAX);
    net_clock       = 0;
    net_nodes[0].ep = other;
}

/* It has failed before its LEAVE was heard: nobody is there who would say BYE */
Test(close, a_bye_of_who_has_failed)
{
    uci_peer_t *peer          = net_nodes[0].ep->peer;
    const uint64_t report[2]  = {0};
    const uci_am_hdr_t leave  = {.type = UCI_AM_LEAVE};
    ucp_request_param_t param = {.op_attr_mask = 0};

    net_clock = 1000000000000ul;
    uci_conversation_fail(&peer->conversation, UCS_ERR_CONNECTION_RESET);
    take(peer, &leave, report, sizeof(report));
    cr_expect(!UCS_PTR_IS_PTR(uci_ep_close(net_nodes[0].ep, &param)), "it waits for a BYE");
    net_clock       = 0;
    net_nodes[0].ep = NULL;
}

static unsigned let_go;

static ucs_status_ptr_t never_closed(ucp_ep_h ep, const ucp_request_param_t *param)
{
    return malloc(1);
}

static void count_let_go(void *request)
{
    ++let_go;
    free(request);
}

/* UCX 1.13 aborts if a worker goes that closes something for which somebody waits */
Test(close, that_ucx_has_not_ended_with_its_worker)
{
    uci_peer_t *peer          = net_nodes[0].ep->peer;
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;

    uci_ucp.ep_close_nbx = never_closed;
    uci_ucp.request_free = count_let_go;
    uci_conversation_fail(&peer->conversation, UCS_ERR_CONNECTION_RESET);
    request = uci_ep_close(net_nodes[0].ep, &param);
    cr_assert(UCS_PTR_IS_PTR(request));
    cr_assert(let_go == 0);
    uci_request_free(uci_request_from_user(request));
    net_destroy(0);
    cr_expect(let_go == 1);
    net_create(0);
    net_nodes[0].ep = NULL;
}

/* Nothing is missing, and it was us who asked: to say so would take a new connection too. Who asks himself is told: his log waits for it */
Test(close, an_answer_to_who_has_closed)
{
    uci_peer_t *peer          = net_nodes[0].ep->peer;
    const uci_am_hdr_t answer = {.type = UCI_AM_SENT, .flags = UCI_AM_FLAG_REPAIR}, question = {.type = UCI_AM_SENT};
    uci_list_t eps;

    uci_list_move(&peer->eps, &eps);
    take(peer, &answer, NULL, 0);
    cr_expect(uci_list_is_empty(&peer->talk.pending) && uci_list_is_empty(&peer->eps));
    take(peer, &question, NULL, 0);
    cr_expect(talk_count(1, UCI_AM_ACK) == 1,
              "it has no endpoint, and makes one: the address is that of the one it had");
    cr_assert(!uci_list_is_empty(&peer->eps));
    uci_ep_destroy(uci_container_of(peer->eps.next, uci_ep_t, link));
    uci_list_move(&eps, &peer->eps);
}

/* Numbers that no acknowledgement has reached while nothing is kept for them: it could ask for nothing, and the question would take a new
 * connection, which UCX does not survive when its worker goes meanwhile */
Test(close, nothing_is_asked_after_bye)
{
    uci_peer_t *peer = net_nodes[0].ep->peer;
    uint64_t next    = peer->tx.next;

    net_clock = 1000000000000ul;
    uci_link_watch(peer);
    peer->tx.next = peer->tx.acked + 1;
    net_clock += 100 * TALK_MS;
    uci_link_look(peer->worker);
    cr_expect(talk_count(1, UCI_AM_SENT) == 1, "the log's timer asks");
    uci_conversation_close(&peer->conversation);
    uci_conversation_say_bye(&peer->conversation);
    net_clock += 1000 * TALK_MS;
    uci_link_look(peer->worker);
    cr_expect(talk_count(1, UCI_AM_SENT) == 1);
    cr_expect(!peer->tx.watched);
    peer->tx.next = next;
    net_clock     = 0;
}

/* What is told to who has closed may be memory that is gone: UCX 1.18 does not survive to be asked for that */
Test(close, a_box_for_who_has_closed)
{
    struct {
        uci_am_box_t box;
        char key[16];
    } told                 = {.box = {.address = 64, .key = 1, .size = 1u << 20, .offset = 64, .granules = 256}};
    uci_peer_t *peer       = net_nodes[0].ep->peer;
    const uci_am_hdr_t hdr = {.type = UCI_AM_BOX};

    uci_conversation_close(&peer->conversation);
    take(peer, &hdr, &told, sizeof(told));
    cr_expect((peer->box.rkey == NULL) && !peer->box.mapped);
}

/* A worker of several devices has an address that is longer than a pooled message: to who has closed it goes without a new connection, which
 * UCX 1.13 does not survive when the other worker goes meanwhile */
Test(close, a_long_hello_for_who_has_closed)
{
    uci_peer_t *peer     = net_nodes[0].ep->peer;
    uci_worker_t *worker = peer->worker;
    const unsigned to    = 1;

    worker->self.address = realloc(worker->self.address, 400);
    worker->self.length  = 400;
    cr_assert(uci_peer_set_address(peer, &to, sizeof(to)) == UCS_OK, "it could be connected to");
    net_nodes[0].ep->half = true;
    uci_control_hello(peer);
    cr_expect(talk_count(1, UCI_AM_HELLO) == 1);
    cr_expect(peer->eps.next->next == &peer->eps, "there is another endpoint");
}

/* After our BYE a question takes a new connection, and the other side's BYE may be on its way, with its worker behind it */
Test(close, no_question_crosses_a_bye)
{
    uci_peer_t *peer        = net_nodes[0].ep->peer;
    const uci_am_hdr_t sent = {.type = UCI_AM_SENT, .value = peer->rx.next + 2};
    const unsigned to       = 1;

    net_clock = 1000000000000ul;
    cr_assert(uci_peer_set_address(peer, &to, sizeof(to)) == UCS_OK, "it could be connected to");
    uci_conversation_close(&peer->conversation);
    uci_conversation_say_bye(&peer->conversation);
    uci_ep_destroy(net_nodes[0].ep);
    net_nodes[0].ep = NULL;
    take(peer, &sent, NULL, 0);
    cr_expect(talk_count(1, UCI_AM_ACK) == 0);
    cr_expect(uci_list_is_empty(&peer->eps));
    net_clock += UCI_PEER_CROSSING_NS;
    take(peer, &sent, NULL, 0);
    cr_expect(talk_count(1, UCI_AM_ACK) == 1, "it is still there, and something is missing");
    net_clock = 0;
}

/* ------------------------------------------------------------- peers that rest */

static bool is_over(void *request)
{
    return !UCS_PTR_IS_PTR(request) || (uci_request_from_user(request)->status != UCS_INPROGRESS);
}

/* Both users close */
static void part(void)
{
    const ucp_request_param_t none = {.op_attr_mask = 0};
    void *requests[2];
    unsigned node, turn;

    for (node = 0; node < 2; ++node) {
        uci_worker_enter(net_nodes[node].worker);
        requests[node]     = uci_ep_close(net_nodes[node].ep, &none);
        net_nodes[node].ep = NULL;
        uci_worker_leave(net_nodes[node].worker);
    }
    for (turn = 0; (turn < 1000) && !(is_over(requests[0]) && is_over(requests[1])); ++turn) {
        net_turn(0);
        net_turn(1);
    }
    for (node = 0; node < 2; ++node) {
        cr_assert(is_over(requests[node]));
        if (UCS_PTR_IS_PTR(requests[node])) {
            talk_keep(requests[node]);
        }
    }
    talk_turns(10, TALK_MS);
}

/* @return how many peers it has */
static size_t lay_to_rest(unsigned node)
{
    uci_worker_t *worker = net_nodes[node].worker;

    uci_worker_enter(worker);
    worker->conn.ended = SIZE_MAX;
    uci_rest_progress(worker);
    uci_worker_leave(worker);
    return worker->peers.count;
}

static void exchange(unsigned count)
{
    unsigned i, first = talk_recvs_count;

    for (i = 0; i < count; ++i) {
        (void)talk_recv(1, i, UINT64_MAX);
        talk_send(0, i, 100);
        (void)talk_recv(0, i, UINT64_MAX);
        talk_send(1, i, 30000);
    }
    cr_assert(talk_run(1000));
    for (i = 0; i < count; ++i) {
        talk_expect(first + (2 * i), i, 100);
        talk_expect(first + (2 * i) + 1, i, 30000);
    }
}

Test(close, who_has_gone_rests)
{
    uint64_t uid = net_nodes[1].worker->uid;
    unsigned life;

    for (life = 0; life < 3; ++life) {
        exchange(5);
        cr_expect(lay_to_rest(0) == 1, "there is an endpoint");
        cr_expect(net_nodes[0].ep->peer->conversation.life == life);
        cr_expect(net_nodes[0].ep->peer->tx.next >= 5 * (life + 1), "it goes on counting: %lu",
                  (unsigned long)net_nodes[0].ep->peer->tx.next);
        part();
        cr_expect((lay_to_rest(0) == 0) && (lay_to_rest(1) == 0));
        cr_expect(uci_resting_has(net_nodes[0].worker, uid));
        cr_expect(net_nodes[0].worker->peers.resting_count == 1, "its place is its own");
        net_open(0, 1);
        net_open(1, 0);
        cr_expect(!uci_resting_has(net_nodes[0].worker, uid));
        cr_expect(net_nodes[0].worker->peers.count == 1);
    }
}

Test(close, who_is_asked_for_is_awake)
{
    uci_worker_t *worker = net_nodes[0].worker;
    uint64_t uid         = net_nodes[1].worker->uid;

    exchange(1);
    part();
    cr_assert(lay_to_rest(0) == 0);
    cr_assert(uci_worker_peer_find(worker, uid) != NULL);
    cr_expect(uci_worker_peer_find(worker, uid)->conversation.state == UCI_LEFT_GONE);
    cr_expect(uci_worker_peer_find(worker, 0x1234567) == NULL, "nobody has ever heard of it");
    cr_expect(lay_to_rest(0) == 0);
    net_open(0, 1);
    net_open(1, 0);
}

Test(close, whose_message_is_here_stays)
{
    unsigned number;

    exchange(1);
    talk_send(1, 7, 100);
    cr_assert(talk_run(1000));
    part();
    cr_expect(lay_to_rest(0) == 1, "nobody has received it");
    number = talk_recv(0, 7, UINT64_MAX);
    talk_turns(10, TALK_MS);
    talk_expect(number, 7, 100);
    cr_expect(lay_to_rest(0) == 0);
    net_open(0, 1);
    net_open(1, 0);
}

Test(close, whom_somebody_names_stays)
{
    uci_worker_t *worker = net_nodes[0].worker;
    uci_control_t *msg;

    exchange(1);
    part();
    msg = uci_control_get(uci_worker_peer_find(worker, net_nodes[1].worker->uid), UCI_AM_ACK, 0, 0);
    cr_expect(lay_to_rest(0) == 1);
    uci_control_put(msg);
    cr_expect(lay_to_rest(0) == 0);
    net_open(0, 1);
    net_open(1, 0);
}

/* Our user has closed by force */
static uci_peer_t *abandon(void)
{
    const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    uci_peer_t *peer                = net_nodes[0].ep->peer;
    void *request;

    uci_worker_enter(net_nodes[0].worker);
    request = uci_ep_close(net_nodes[0].ep, &force);
    uci_worker_leave(net_nodes[0].worker);
    net_nodes[0].ep = NULL;
    if (UCS_PTR_IS_PTR(request)) {
        talk_keep(request);
    }
    return peer;
}

/* Chunks whose descriptor does not come any more */
Test(close, whose_chunks_were_early_rests)
{
    uci_peer_t *peer       = net_nodes[0].ep->peer;
    const uci_am_hdr_t hdr = {.digest = UCI_DIGEST_XXH3};
    const uci_am_t am      = {.peer = peer, .hdr = &hdr, .data = "chunk", .length = 5, .seq = peer->rx.next};

    cr_assert(uci_early_keep(&am));
    abandon();
    talk_turns(10, TALK_MS);
    cr_expect(lay_to_rest(0) == 0);
    net_open(0, 1);
}

/* Nobody says BYE then */
Test(close, who_has_failed_is_counted)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    uci_peer_t *peer          = net_nodes[0].ep->peer;
    size_t ended              = peer->worker->conn.ended;

    uci_conversation_fail(&peer->conversation, UCS_ERR_CONNECTION_RESET);
    (void)uci_ep_close(net_nodes[0].ep, &param);
    cr_expect(uci_conversation_is_ended(&peer->conversation));
    cr_expect(peer->worker->conn.ended == ended + 1, "who is looked for when enough are to be found");
    net_nodes[0].ep = NULL;
}

/* So many that tables grow while some are about */
Test(close, any_number_of_them)
{
    uci_worker_t *worker = net_nodes[0].worker;
    uint64_t uid;
    uci_peer_t *peer;

    for (uid = 1; uid <= 10000; ++uid) {
        peer = uci_worker_peer(worker, uid);
        cr_assert(peer != NULL);
        uci_conversation_fail(&peer->conversation, UCS_ERR_CANCELED);
        uci_conversation_close(&peer->conversation);
        peer->conversation.round = (uint32_t)uid;
        if (uid % 100 == 0) {
            cr_assert(lay_to_rest(0) == 1, "%zu peers", worker->peers.count);
        }
    }
    for (uid = 1; uid <= 10000; ++uid) {
        cr_assert(uci_resting_has(worker, uid));
        if (uid % 3 == 0) {
            cr_assert(uci_worker_peer(worker, uid)->conversation.round == uid, "peer %lu", (unsigned long)uid);
        }
    }
    cr_expect(worker->peers.count == 1 + (10000 / 3));
    cr_expect(lay_to_rest(0) == 1);
    cr_expect(worker->peers.resting_count == 10000);
}
