/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a close counts, and must count down again whatever becomes of a message: else it waits for ever.
 */
#include <criterion/criterion.h>

#include "conversation/conversation.h"
#include "fake_talk.h"

#include "base/am_handler.h"
#include "conn/close.h"
#include "link/control.h"
#include "link/link_recv.h"
#include "link/link_send.h"
#include "link/mailbox.h"

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
