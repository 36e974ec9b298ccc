/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which path large messages between two processes of a node take: slots, unless this side's core or the other's is needed for both
 * directions; then they are fetched. Over a UCX of the tests' own that lists cma. What becomes of them when messages are lost, repeated
 * or damaged meanwhile is for random/.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "fake_ucx.h"
#include "base/peer_table.h"
#include "message/recv.h"
#include "base/request.h"
#include "message/send.h"
#include "transfer/recv_common.h"
#include "settings/settings.h"

#define LENGTH (1ul << 20)
#define SMALL  (64ul << 10)
#define TURNS  20000u

typedef struct transfer {
    unsigned from;
    char *data, *target;
    ucp_dt_iov_t parts[2]; /* of what is sent, if it is in pieces */
    uci_request_t *send, *recv;
} transfer_t;

static void begin(bool kernel_copy)
{
    unsigned i;

    setenv("UCI_LOG_LEVEL", "fatal", 0);
    setenv("UCI_CONFIG_FILE", "", 1);
    setenv("UCI_PROFILE", "none", 1);
    cr_assert_eq(uci_settings_read(), UCI_OK);
    fake_net_init(1000000000000ul);
    fake_net.kernel_copy = kernel_copy;
    for (i = 0; i < 2; ++i) {
        fake_node_create(i, 0x1000 + i, UCS_THREAD_MODE_SINGLE, 0);
    }
    cr_assert_eq(fake_ep_open(0, 1), UCS_OK);
    cr_assert_eq(fake_ep_open(1, 0), UCS_OK);
}

static void end(void)
{
    fake_node_destroy(0);
    fake_node_destroy(1);
}

static const ucp_request_param_t pending = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};

static transfer_t transfer_create(unsigned from, size_t length)
{
    transfer_t transfer = {.from = from, .data = malloc(length), .target = calloc(1, length)};
    size_t i;

    cr_assert((transfer.data != NULL) && (transfer.target != NULL));
    for (i = 0; i < length; ++i) {
        transfer.data[i] = (char)((i * 131) + (i >> 8) + from);
    }
    return transfer;
}

static uci_request_t *request_of(ucs_status_ptr_t request)
{
    cr_assert(UCS_PTR_IS_PTR(request));
    return uci_request_from_user(request);
}

static void post_send(transfer_t *transfer, size_t length)
{
    transfer->send = request_of(uci_send(fake_net.nodes[transfer->from].eps[1 - transfer->from], transfer->data, length,
                                         7, &pending, false));
}

/* Of two pieces: it can't be fetched */
static void post_send_in_pieces(transfer_t *transfer, size_t length)
{
    ucp_request_param_t param = pending;

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = ucp_dt_make_iov();
    transfer->parts[0] = (ucp_dt_iov_t){transfer->data, length / 3};
    transfer->parts[1] = (ucp_dt_iov_t){transfer->data + (length / 3), length - (length / 3)};
    transfer->send     = request_of(
                uci_send(fake_net.nodes[transfer->from].eps[1 - transfer->from], transfer->parts, 2, 7, &param, false));
}

static void post_recv(transfer_t *transfer, size_t length)
{
    transfer->recv = request_of(
            uci_recv(fake_net.nodes[1 - transfer->from].worker, transfer->target, length, 7, UINT64_MAX, &pending));
}

static bool is_over(uci_request_t *request)
{
    return uci_request_check(request) != UCS_INPROGRESS;
}

static void turn_all(void)
{
    fake_node_turn(0, false);
    fake_node_turn(1, false);
    fake_net.clock += 100;
}

static void finish(transfer_t *transfer, size_t length)
{
    unsigned i;

    for (i = 0; (i < TURNS) && !(is_over(transfer->send) && is_over(transfer->recv)); ++i) {
        turn_all();
    }
    cr_assert_eq(uci_request_check(transfer->send), UCS_OK);
    cr_assert_eq(uci_request_check(transfer->recv), UCS_OK);
    cr_expect_eq(memcmp(transfer->data, transfer->target, length), 0, "wrong bytes");
    uci_request_free(transfer->send);
    uci_request_free(transfer->recv);
    free(transfer->data);
    free(transfer->target);
}

static void send_one_way(unsigned from, size_t length)
{
    transfer_t transfer = transfer_create(from, length);

    post_recv(&transfer, length);
    post_send(&transfer, length);
    finish(&transfer, length);
}

/* Both know each other's slots when each has offered them for a message that streamed */
static void warm_up(void)
{
    unsigned i;

    for (i = 0; i < 2; ++i) {
        send_one_way(i, SMALL);
        send_one_way(i, SMALL);
    }
    for (i = 0; i < 2; ++i) {
        cr_assert(fake_net.nodes[i].eps[1 - i]->peer->slots.maps_ours, "node %u", i);
    }
}

static uint64_t fetched(unsigned node)
{
    return fake_net.nodes[node].worker->stats.counters->get_messages;
}

static uint64_t by_stream(unsigned node)
{
    const uci_stats_t *counters = fake_net.nodes[node].worker->stats.counters;

    return counters->rendezvous_messages - counters->direct_messages;
}

/* Nothing is left that would change the path of what comes later */
static void expect_idle(void)
{
    unsigned i;

    for (i = 0; i < 2; ++i) {
        cr_expect_eq(fake_net.nodes[i].worker->xfer.large_sends, 0, "node %u", i);
        cr_expect_eq(fake_net.nodes[i].worker->xfer.large_recvs, 0, "node %u", i);
        cr_expect_eq(fake_net.nodes[i].worker->link.bounce.available, UCI_SLOT_COUNT, "node %u: slots are missing", i);
    }
}

static void exchange(bool recv_first, size_t length)
{
    transfer_t transfers[2] = {transfer_create(0, length), transfer_create(1, length)};
    unsigned i;

    for (i = 0; recv_first && (i < 2); ++i) {
        post_recv(&transfers[i], length);
    }
    for (i = 0; i < 2; ++i) {
        post_send(&transfers[i], length);
    }
    turn_all();
    for (i = 0; !recv_first && (i < 2); ++i) {
        post_recv(&transfers[i], length);
    }
    for (i = 0; i < 2; ++i) {
        finish(&transfers[i], length);
    }
    expect_idle();
}

Test(both_ways, one_way_goes_through_slots)
{
    begin(true);
    warm_up();
    send_one_way(0, LENGTH);
    send_one_way(1, LENGTH);
    send_one_way(0, LENGTH);
    cr_expect_eq(fetched(0) + fetched(1), 0);
    expect_idle();
    end();
}

/* As MPI_Sendrecv does it: the receiver says that it sends, too */
Test(both_ways, an_exchange_is_fetched)
{
    begin(true);
    warm_up();
    exchange(true, LENGTH);
    cr_expect_eq(fetched(0), 1);
    cr_expect_eq(fetched(1), 1);
    end();
}

static uint64_t slowly(unsigned from, unsigned to)
{
    return 1000000;
}

/* A chunk that a repair has brought while it is being fetched is right until the fetch writes over it, whatever becomes of that */
Test(both_ways, a_fetch_that_fails_over_what_was_right)
{
    uci_list_t *recvs = NULL;
    transfer_t transfers[2];
    uci_recv_op_t *op;
    unsigned i;

    begin(true);
    warm_up();
    fake_net.hooks.fetch_time = slowly;
    for (i = 0; i < 2; ++i) {
        transfers[i] = transfer_create(i, LENGTH);
        post_recv(&transfers[i], LENGTH);
    }
    for (i = 0; i < 2; ++i) {
        post_send(&transfers[i], LENGTH);
    }
    recvs = &fake_net.nodes[1].worker->xfer.recv_ops;
    for (i = 0; (i < TURNS) &&
                (uci_list_is_empty(recvs) || (uci_container_of(recvs->next, uci_recv_op_t, link)->way.gets == 0));
         ++i) {
        turn_all();
    }
    cr_assert(i < TURNS);
    op = uci_container_of(recvs->next, uci_recv_op_t, link);
    memcpy(transfers[0].target, transfers[0].data, op->chunk.size);
    op->chunk.expected[0] = op->chunk.digest->digest(transfers[0].data, op->chunk.size);
    op->chunk.state[0]    = UCI_CHUNK_GOOD;
    ++op->chunk.good;
    uci_recv_op_chunk_torn(op, 0, transfers[0].target, op->chunk.size);
    uci_recv_op_chunk_torn(op, 1, transfers[0].target + op->chunk.size, op->chunk.size);
    cr_expect_eq(op->chunk.state[0], UCI_CHUNK_GOOD, "nothing has come of it");
    cr_expect_eq(op->chunk.state[1], UCI_CHUNK_MISSING, "it was none before");
    transfers[0].target[5] ^= 1;
    uci_recv_op_chunk_torn(op, 0, transfers[0].target, op->chunk.size);
    cr_expect_eq(op->chunk.state[0], UCI_CHUNK_BAD);
    cr_expect_eq(op->chunk.good, 0);
    fake_net.hooks.fetch_time = NULL;
    for (i = 0; i < 2; ++i) {
        finish(&transfers[i], LENGTH);
    }
    expect_idle();
    end();
}

Test(both_ways, so_it_is_if_receives_are_late)
{
    begin(true);
    warm_up();
    exchange(false, LENGTH);
    cr_expect_eq(fetched(0), 1);
    cr_expect_eq(fetched(1), 1);
    end();
}

/* A core that receives sends what it is told to as well: the sender knows it first */
Test(both_ways, a_send_while_a_receive_is_under_way)
{
    transfer_t there, back;
    unsigned i;

    begin(true);
    warm_up();
    there = transfer_create(0, 8 * LENGTH);
    back  = transfer_create(1, LENGTH);
    post_recv(&there, 8 * LENGTH);
    post_recv(&back, LENGTH);
    post_send(&there, 8 * LENGTH);
    for (i = 0; (i < TURNS) && (fake_net.nodes[1].worker->xfer.large_recvs == 0); ++i) {
        turn_all();
    }
    post_send(&back, LENGTH);
    cr_expect_eq(fake_net.nodes[1].worker->stats.counters->direct_messages, by_stream(1) + 1,
                 "it has taken slots, though it is to be fetched");
    finish(&there, 8 * LENGTH);
    finish(&back, LENGTH);
    cr_expect_eq(fetched(0), 0, "its receiver had begun with slots");
    cr_expect_eq(fetched(1), 1);
    expect_idle();
    end();
}

Test(both_ways, smaller_ones_go_through_slots)
{
    begin(true);
    warm_up();
    exchange(true, UCI_TUNER_BOTH_MIN);
    exchange(false, UCI_TUNER_BOTH_MIN);
    cr_expect_eq(fetched(0) + fetched(1), 0);
    end();
}

Test(both_ways, and_all_where_the_kernel_does_not_copy)
{
    begin(false);
    warm_up();
    exchange(true, LENGTH);
    exchange(false, LENGTH);
    cr_expect_eq(fetched(0) + fetched(1), 0);
    end();
}

/* Its receiver says that it sends, too, but this message can't be fetched: it goes through slots all the same, and does not stream */
Test(both_ways, what_is_in_pieces_goes_through_slots)
{
    transfer_t transfers[2];
    uint64_t streams;
    unsigned i;

    begin(true);
    warm_up();
    streams = by_stream(0);
    for (i = 0; i < 2; ++i) {
        transfers[i] = transfer_create(i, LENGTH);
        post_recv(&transfers[i], LENGTH);
    }
    post_send_in_pieces(&transfers[0], LENGTH);
    post_send(&transfers[1], LENGTH);
    for (i = 0; i < 2; ++i) {
        finish(&transfers[i], LENGTH);
    }
    cr_expect_eq(fetched(0), 0);
    cr_expect_eq(fetched(1), 1);
    cr_expect_eq(by_stream(0), streams);
    expect_idle();
    end();
}
