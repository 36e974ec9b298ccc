/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * When an operation is asked about: at once if it is named, after a while if it is doubted, each second if nothing was damaged; and each
 * question in vain doubles the wait.
 */
#include <criterion/criterion.h>

#include "base/ask.h"
#include "link/blame.h"
#include "base/peer.h"
#include "transfer/recv_op_part.h"
#include "transfer/send_op_part.h"
#include "base/worker_state.h"
#include "turn/dispatch.h"

#define MS    1000000ul
#define S     1000000000ul
#define BEGIN (1000 * S)

static uci_worker_t worker;
static uci_peer_t peers[2];
static uci_ask_t ask;

static void set_up(void)
{
    memset(&worker, 0, sizeof(worker));
    memset(peers, 0, sizeof(peers));
    worker.calls.handlers = uci_am_handlers;
    peers[0].worker = peers[1].worker = &worker;
    peers[0].uid                      = 17;
    peers[1].uid                      = 18;
    uci_list_init(&worker.xfer.send_ops);
    uci_list_init(&worker.xfer.recv_ops);
    uci_ask_init(&ask, &peers[0], BEGIN);
}

TestSuite(ask, .init = set_up, .timeout = 10);

/* @return how long after the last time it is asked about */
static uint64_t wait_of(void)
{
    return uci_ask_time(&ask, &peers[0]) - ask.time;
}

static void ask_at_last(void)
{
    uci_ask_done(&ask, &peers[0], uci_ask_time(&ask, &peers[0]));
}

Test(ask, silence_is_asked_about_rarely)
{
    static const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 32, 32};
    size_t i;

    for (i = 0; i < uci_array_size(seconds); ++i) {
        cr_assert_eq(wait_of(), seconds[i] * S, "question %zu after %lu ns", i, (unsigned long)wait_of());
        ask_at_last();
    }
    uci_ask_heard(&ask, BEGIN);
    cr_expect_eq(wait_of(), S);
}

Test(ask, who_is_named_is_asked_about_at_once)
{
    uci_ask_name(&ask);
    cr_expect(uci_ask_is_urgent(&ask, &peers[0]));
    cr_expect_eq(wait_of(), MS / 2);
    ask_at_last();
    cr_expect_not(uci_ask_is_urgent(&ask, &peers[0]));
    cr_expect_eq(wait_of(), S, "the question may have been understood");
    uci_ask_name(&ask);
    cr_expect_eq(wait_of(), MS / 2, "an answer came, damaged: there is somebody who answers");
}

/* Damage of others, as much as there may be: ten questions in the first second, and one in each that follows */
/* Our answer may have crossed the other side's question: what it asks about need not have been lost */
Test(ask, a_hint_is_asked_about_at_once_and_is_no_damage)
{
    uci_ask_hint(&ask);
    cr_expect_eq(wait_of(), MS / 2);
    cr_expect(uci_ask_is_urgent(&ask, &peers[0]));
    cr_expect_not(uci_ask_is_damaged(&ask, &peers[0]));
    ask_at_last();
    cr_expect_not(uci_ask_is_urgent(&ask, &peers[0]));
    uci_ask_hint(&ask);
    uci_ask_name(&ask);
    cr_expect(uci_ask_is_damaged(&ask, &peers[0]));
}

Test(ask, doubts_are_not_asked_about_without_end)
{
    unsigned questions;
    uint64_t now;

    for (now = BEGIN, questions = 0; now < BEGIN + (8 * S); now += MS / 10) {
        uci_blame_anything(&worker, NULL);
        cr_assert(uci_ask_is_urgent(&ask, &peers[0]));
        cr_assert_leq(uci_ask_time(&ask, &peers[0]), ask.time + S);
        if (now >= uci_ask_time(&ask, &peers[0])) {
            uci_ask_done(&ask, &peers[0], now);
            ++questions;
        }
    }
    cr_expect_leq(questions, 17u, "%u questions", questions);
    cr_expect_geq(questions, 8u);
}

Test(ask, damage_of_another_one_is_no_doubt)
{
    uci_blame_anything(&worker, &peers[1]);
    cr_expect_not(uci_ask_is_urgent(&ask, &peers[0]));
    uci_blame_anything(&worker, &peers[0]);
    cr_expect(uci_ask_is_urgent(&ask, &peers[0]));
}

/* What is left of a header tells whom it was about: a receive by slot or peer beside the number, a send by peer and number */
Test(ask, blame)
{
    uci_frame_t frame      = {.seq = 5};
    uci_send_op_t sends[2] = {{.peer = &peers[0], .frame = &frame}, {.peer = &peers[1], .frame = &frame}};
    uci_recv_op_t recv     = {
                .peer = &peers[1], .seq = 7, .slot = 3, .repair.intact_before = 1}; /* something has come since it asked */
    uci_am_hdr_t hdr = {.type = UCI_AM_FIN, .uid = 18, .seq = 5};

    uci_list_add_tail(&worker.xfer.send_ops, &sends[0].all);
    uci_list_add_tail(&worker.xfer.send_ops, &sends[1].all);
    uci_list_add_tail(&worker.xfer.recv_ops, &recv.link);
    uci_blame(&worker, &hdr);
    cr_expect(sends[1].ask.named);
    cr_expect_not(sends[0].ask.named);
    cr_expect_not(recv.ask.named);
    hdr = (uci_am_hdr_t){.type = UCI_AM_DATA, .uid = 99, .seq = 7, .op = 3};
    uci_blame(&worker, &hdr);
    cr_expect(recv.ask.named);
    cr_expect(recv.ask.spoilt);
    cr_expect_eq(worker.talk.damage + peers[0].talk.damage + peers[1].talk.damage, 0);
    hdr = (uci_am_hdr_t){.type = UCI_AM_ACK, .uid = 18};
    uci_blame(&worker, &hdr);
    cr_expect_eq(worker.talk.damage + peers[0].talk.damage + peers[1].talk.damage, 0, "it was about no operation");
    uci_blame(&worker, NULL);
    cr_expect_eq(worker.talk.damage, 1);
}
