/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How long to wait before asking again: what is measured, what is not, and the limits.
 */
#include <criterion/criterion.h>

#include "base/ask.h"
#include "link/control.h"
#include "util/process.h"
#include "message/recv.h"

#define MS 1000000ul

static uci_worker_t worker;

/* A receive that sent CTS @a ns ago gets its first chunk */
static void hear(uint64_t ns, uint32_t arrived, unsigned asked)
{
    static uci_peer_t peer = {.worker = &worker};
    uci_recv_op_t op       = {
                  .peer = &peer, .way.arrived = arrived, .repair.asked = asked, .chunk.tree = (uci_merkle_t *)&worker};

    op.ask.time = uci_process_time_ns() - ns;
    uci_control_heard(&op);
}

Test(control, delay_is_half_a_millisecond_at_least)
{
    cr_expect_eq(uci_ask_delay(&worker), MS / 2);
    hear(1000, 0, 0);
    cr_expect_gt(worker.talk.round_trip, 0);
    cr_expect_lt(uci_ask_delay(&worker), 100 * MS, "measured now, however slow this machine is");
    worker.talk.round_trip = 1000;
    cr_expect_eq(uci_ask_delay(&worker), MS / 2);
}

Test(control, delay_is_twice_the_round_trip)
{
    uint64_t first;
    int i;

    hear(20 * MS, 0, 0);
    first = uci_ask_delay(&worker);
    cr_expect_geq(first, 40 * MS);
    cr_expect_eq(first, 2 * worker.talk.round_trip);
    hear(200 * MS, 0, 0);
    cr_expect_gt(uci_ask_delay(&worker), first, "it follows");
    cr_expect_lt(uci_ask_delay(&worker), 200 * MS, "but not at once");
    for (i = 0; i < 100; ++i) {
        hear(MS, 0, 0);
    }
    cr_expect_lt(uci_ask_delay(&worker), first, "and back");
}

Test(control, delay_has_a_limit)
{
    hear(3600000 * MS, 0, 0);
    cr_expect_eq(uci_ask_delay(&worker), 1000 * MS);
}

Test(control, what_was_asked_for_twice_is_not_measured)
{
    hear(20 * MS, 0, 1);
    cr_expect_eq(worker.talk.round_trip, 0);
    hear(20 * MS, 3, 0);
    cr_expect_eq(worker.talk.round_trip, 0, "nor is what comes after the first chunk");
}
