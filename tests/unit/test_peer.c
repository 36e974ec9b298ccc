/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is found out of a peer, over a fake UCX.
 */
#include <criterion/criterion.h>

#include "fake_net.h"

#include "link/bounce.h"
#include "base/peer.h"
#include "base/siblings.h"

static uci_peer_t *peer;

/* Of pods: what tells them apart is at the end */
int gethostname(char *name, size_t size)
{
    snprintf(name, size, "training-of-a-large-model-2026-11-worker-00017");
    return 0;
}

static void set_up(void)
{
    net_init();
    net_read_settings();
    uci_tuner_init("0");
    net_create(0);
    net_create(1);
    net_open(0, 1);
    peer = net_nodes[0].ep->peer;
}

static void tear_down(void)
{
    unsigned turns;

    for (turns = 0; (turns < 100) && !net_is_idle(); ++turns) {
        net_turn(0);
        net_turn(1);
    }
    net_end_operations(net_nodes[0].worker);
    net_destroy(0);
    net_destroy(1);
}

TestSuite(peer, .init = set_up, .fini = tear_down, .timeout = 10);

/* UCX names no lane yet: nothing that follows from that is kept */
Test(peer, transports_are_asked_for_again)
{
    const uci_plan_t *plan;

    free(peer->lanes.transports); /* asked for when the endpoint was opened */
    peer->lanes.transports = NULL;
    peer->plan             = NULL;
    net_transports         = "";
    cr_expect_str_empty(uci_peer_transports(peer));
    plan = uci_peer_plan(peer);
    cr_assert_not_null(plan);
    cr_expect_str_empty(plan->transports);
    cr_expect_not(uci_peer_is_reached(peer));
    cr_expect_not(peer->slots.offered, "it may share memory yet");

    net_transports = "posix/memory";
    cr_expect_str_eq(uci_peer_transports(peer), "posix");
    cr_expect_str_eq(uci_peer_plan(peer)->transports, "posix");
    uci_peer_is_reached(peer);
    cr_expect(peer->slots.offered);

    net_transports = "tcp/eth0";
    cr_expect_str_eq(uci_peer_transports(peer), "posix", "what is known is not asked for again");
}

/* Processes have the same number in each container: cut names made them one */
Test(peer, host_name_is_whole)
{
    cr_expect_str_eq(peer->mark.host, "training-of-a-large-model-2026-11-worker-00017");
    cr_expect_not(uci_siblings_lack(peer));
    peer->mark.host[strlen(peer->mark.host) - 1] = '8';
    cr_expect_not(uci_siblings_lack(peer), "it is on another host");
}
