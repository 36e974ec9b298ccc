/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which receive gets which message: order, masks, probes with and without removal, truncation, cancelling.
 */
#include "ucp_test.h"

#include <unistd.h>

static ut_pair_t pair;

/* Send a message of one word and forget it: small sends complete at once */
static void put(unsigned value, ucp_tag_t tag)
{
    ut_data_t data;
    ut_op_t op;

    ut_data_open(&data, UT_CONTIG1, 16);
    ut_data_fill(&data, value);
    ut_send(&op, pair.a, UT_SEND_NBX, &data, tag);
    UT_CHECK_STATUS(ut_wait(&pair, &op), UCS_OK, "send");
    ut_data_close(&data);
}

static void expect(ut_op_t *op, const ut_data_t *data, unsigned value, ucp_tag_t tag)
{
    UT_CHECK_STATUS(ut_wait(&pair, op), UCS_OK, "receive");
    UT_CHECK(!op->informed || (op->info.sender_tag == tag), "tag 0x%lx received, 0x%lx expected",
             (unsigned long)op->info.sender_tag, (unsigned long)tag);
    UT_CHECK(ut_data_check(data, 16, value), "message %u expected, another came", value);
}

static void get(unsigned value, ucp_tag_t tag, ucp_tag_t ask, ucp_tag_t mask)
{
    ut_data_t data;
    ut_op_t op;

    ut_data_open(&data, UT_CONTIG1, 16);
    ut_recv(&op, &pair, UT_RECV_NBX, &data, ask, mask);
    expect(&op, &data, value, tag);
    ut_data_close(&data);
}

static void unexpected_order(void)
{
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 40; ++i) {
        put(i, 7);
    }
    ut_settle(&pair);
    for (i = 0; i < 40; ++i) {
        get(i, 7, (i & 1) ? 7 : 0, (i & 1) ? UT_TAG_ALL : 0);
    }
    ut_pair_close(&pair);
}

static void posted_order(void)
{
    ut_data_t data[40];
    ut_op_t ops[40];
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 40; ++i) {
        ut_data_open(&data[i], UT_CONTIG1, 16);
        ut_recv(&ops[i], &pair, UT_RECV_NBX, &data[i], (i & 1) ? 7 : 0, (i & 1) ? UT_TAG_ALL : 0);
    }
    for (i = 0; i < 40; ++i) {
        put(i, 7);
    }
    for (i = 0; i < 40; ++i) {
        expect(&ops[i], &data[i], i, 7);
        ut_data_close(&data[i]);
    }
    ut_pair_close(&pair);
}

/* Small and large messages of one tag alternate: order is by message, not by speed */
static void mixed_sizes_order(void)
{
    ut_data_t from[12], to[12];
    ut_op_t send[12], recv[12];
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 12; ++i) {
        ut_data_open(&from[i], UT_CONTIG1, (i % 3 == 0) ? 200000 : (i % 3 == 1) ? 10 : 20000);
        ut_data_open(&to[i], UT_CONTIG1, 200000);
        ut_data_fill(&from[i], i);
        ut_send(&send[i], pair.a, UT_SEND_NBX, &from[i], 9);
    }
    ut_settle(&pair);
    for (i = 0; i < 12; ++i) {
        ut_recv(&recv[i], &pair, UT_RECV_NBX, &to[i], 0, 0);
    }
    for (i = 0; i < 12; ++i) {
        UT_CHECK_STATUS(ut_wait(&pair, &recv[i]), UCS_OK, "receive");
        UT_CHECK(!recv[i].informed || (recv[i].info.length == from[i].length), "message %u: %zu bytes, %zu expected", i,
                 recv[i].info.length, from[i].length);
        UT_CHECK(ut_data_check(&to[i], from[i].length, i), "message %u has wrong content", i);
        UT_CHECK_STATUS(ut_wait(&pair, &send[i]), UCS_OK, "send");
        ut_data_close(&from[i]);
        ut_data_close(&to[i]);
    }
    ut_pair_close(&pair);
}

static void masks(void)
{
    ut_pair_open(&pair, 0);
    put(1, 0x11aa);
    put(2, 0x22aa);
    put(3, 0x11bb);
    put(4, 0x8000000000000000ul);
    ut_settle(&pair);
    get(3, 0x11bb, 0x11bb, UT_TAG_ALL);
    get(2, 0x22aa, 0x22ff, 0xff00);
    get(4, 0x8000000000000000ul, 0xffffffff00000000ul, 0x8000000000000000ul);
    get(1, 0x11aa, 0x00aa, 0x00ff);
    ut_pair_close(&pair);
}

/* No message matches what nobody sent, however many others there are */
static void no_match(void)
{
    ucp_tag_recv_info_t info;
    ut_data_t data;
    ut_op_t op;

    ut_pair_open(&pair, 0);
    ut_data_open(&data, UT_CONTIG1, 16);
    ut_recv(&op, &pair, UT_RECV_NBX, &data, 5, UT_TAG_ALL);
    put(1, 6);
    put(2, 7);
    ut_settle(&pair);
    UT_CHECK(!ut_op_is_done(&op), "a receive took a message of another tag");
    UT_CHECK(ucp_tag_probe_nb(pair.b->worker, 8, UT_TAG_ALL, 0, &info) == NULL, "a probe found another tag");
    put(3, 5);
    expect(&op, &data, 3, 5);
    get(1, 6, 6, UT_TAG_ALL);
    get(2, 7, 7, UT_TAG_ALL);
    ut_data_close(&data);
    ut_pair_close(&pair);
}

static void probe_reports(void)
{
    static const size_t sizes[] = {0, 1, 8192, 8193, 200000};
    ucp_tag_recv_info_t info;
    ut_data_t from, to;
    ut_op_t send, recv;
    unsigned i, repeat;

    ut_pair_open(&pair, 0);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        ut_data_open(&from, UT_CONTIG1, sizes[i]);
        ut_data_open(&to, UT_CONTIG1, sizes[i]);
        ut_data_fill(&from, i);
        ut_send(&send, pair.a, UT_SEND_NBX, &from, 0x500 + i);
        for (repeat = 0; repeat < 3; ++repeat) {
            ut_probe(&pair, 0x500, ~0xfful, 0, &info);
            UT_CHECK(info.length == sizes[i], "probe reports %zu bytes, %zu were sent", info.length, sizes[i]);
            UT_CHECK(info.sender_tag == 0x500 + i, "probe reports tag 0x%lx", (unsigned long)info.sender_tag);
        }
        ut_recv(&recv, &pair, UT_RECV_NBX, &to, 0x500 + i, UT_TAG_ALL);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
        UT_CHECK(ut_data_check(&to, sizes[i], i), "wrong content");
        ut_data_close(&from);
        ut_data_close(&to);
    }
    ut_pair_close(&pair);
}

/* A probed message is received by its handle alone, later ones pass it */
static void probe_removes(void)
{
    ucp_tag_message_h first, third;
    ucp_tag_recv_info_t info;
    ut_data_t data;
    ut_op_t op;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};

    ut_pair_open(&pair, 0);
    ut_data_open(&data, UT_CONTIG1, 16);
    put(1, 3);
    put(2, 3);
    put(3, 4);
    ut_settle(&pair);
    first = ut_probe(&pair, 3, UT_TAG_ALL, 1, &info);
    third = ut_probe(&pair, 4, UT_TAG_ALL, 1, &info);
    UT_CHECK(ucp_tag_probe_nb(pair.b->worker, 4, UT_TAG_ALL, 0, &info) == NULL, "a removed message is probed again");
    get(2, 3, 0, 0);
    UT_CHECK(ucp_tag_probe_nb(pair.b->worker, 0, 0, 0, &info) == NULL, "a removed message is probed again");

    memset(&op, 0, sizeof(op));
    ut_op_set(&op, ucp_tag_msg_recv_nbx(pair.b->worker, data.buffer, data.count, third, &param));
    op.recv = true;
    expect(&op, &data, 3, 4);
    ut_data_poison(&data);
    memset(&op, 0, sizeof(op));
    ut_op_set(&op, ucp_tag_msg_recv_nbx(pair.b->worker, data.buffer, data.count, first, &param));
    op.recv = true;
    expect(&op, &data, 1, 3);
    ut_data_close(&data);
    ut_pair_close(&pair);
}

/* A, B wait; B is probed; a wildcard receive must get A */
static void probe_keeps_order(void)
{
    ucp_tag_recv_info_t info;

    ut_pair_open(&pair, 0);
    put(1, 0xa);
    put(2, 0xb);
    ut_settle(&pair);
    ut_probe(&pair, 0xb, UT_TAG_ALL, 0, &info);
    get(1, 0xa, 0, 0);
    get(2, 0xb, 0, 0);

    put(3, 0xa);
    put(4, 0xb);
    ut_settle(&pair);
    ut_probe(&pair, 0xb, UT_TAG_ALL, 0, &info);
    put(5, 0xb);
    put(6, 0xa);
    ut_settle(&pair);
    get(4, 0xb, 0xb, UT_TAG_ALL);
    get(3, 0xa, 0xa, UT_TAG_ALL);
    get(5, 0xb, 0, 0);
    get(6, 0xa, 0, 0);
    ut_pair_close(&pair);
}

/* A receive does not wait for what a probe before it found, or is still about to find out */
static void probe_then_receive(void)
{
    ucp_tag_recv_info_t info;
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 10; ++i) {
        put(i, 3);
        ut_settle(&pair);
        ucp_tag_probe_nb(pair.b->worker, 3, UT_TAG_ALL, 0, &info);
        get(i, 3, 3, UT_TAG_ALL);
        ucp_tag_probe_nb(pair.b->worker, 3, UT_TAG_ALL, 0, &info);
    }
    ut_pair_close(&pair);
}

/* Posted receives come first, whatever is probed meanwhile */
static void probe_and_posted(void)
{
    ucp_tag_recv_info_t info;
    ut_data_t data;
    ut_op_t op;

    ut_pair_open(&pair, 0);
    ut_data_open(&data, UT_CONTIG1, 16);
    ut_recv(&op, &pair, UT_RECV_NBX, &data, 1, UT_TAG_ALL);
    put(1, 1);
    put(2, 1);
    ut_probe(&pair, 1, UT_TAG_ALL, 0, &info);
    expect(&op, &data, 1, 1);
    get(2, 1, 1, UT_TAG_ALL);
    ut_data_close(&data);
    ut_pair_close(&pair);
}

/* Many messages are probed one by one, large ones among them; nothing is lost or overtaken */
static void probe_storm(void)
{
    ut_data_t from[30], to;
    ucp_tag_recv_info_t info;
    ut_op_t send[30], recv;
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 30; ++i) {
        ut_data_open(&from[i], UT_CONTIG1, (i % 5 == 4) ? 60000 + i : i * 100);
        ut_data_fill(&from[i], i);
        ut_send(&send[i], pair.a, UT_SEND_NBX, &from[i], i % 3);
    }
    for (i = 0; i < 30; ++i) {
        ut_probe(&pair, 0, 0, 0, &info);
        UT_CHECK(info.length == from[i].length, "probe %u reports %zu bytes, %zu expected", i, info.length,
                 from[i].length);
        ut_data_open(&to, UT_CONTIG1, info.length);
        ut_recv(&recv, &pair, (i % 2) ? UT_RECV_NBX : UT_RECV_MSG_NB, &to, 0, 0);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK(ut_data_check(&to, from[i].length, i), "message %u has wrong content", i);
        UT_CHECK_STATUS(ut_wait(&pair, &send[i]), UCS_OK, "send");
        ut_data_close(&to);
        ut_data_close(&from[i]);
    }
    ut_pair_close(&pair);
}

static void truncate_one(ut_send_t form, ut_recv_t recv_form, ut_layout_t layout, size_t sent, size_t room, bool first)
{
    ut_data_t from, to;
    ut_op_t send, recv;

    ut_data_open(&from, UT_CONTIG1, sent);
    ut_data_open(&to, layout, room);
    ut_data_fill(&from, 1);
    if (first) {
        ut_recv(&recv, &pair, recv_form, &to, 77, UT_TAG_ALL);
        ut_send(&send, pair.a, form, &from, 77);
    } else {
        ut_send(&send, pair.a, form, &from, 77);
        ut_settle(&pair);
        ut_recv(&recv, &pair, recv_form, &to, 77, UT_TAG_ALL);
    }
    ut_wait(&pair, &recv);
    UT_CHECK(recv.status == UCS_ERR_MESSAGE_TRUNCATED, "%zu bytes into %zu (%s, receive %s): %s", sent, room,
             ut_layout_names[layout], first ? "first" : "later", ucs_status_string(recv.status));
    UT_CHECK(!recv.informed || (recv.info.length == sent),
             "%zu bytes into %zu (%s, %s, receive %s): the length reported is %zu", sent, room, ut_layout_names[layout],
             ut_recv_names[recv_form], first ? "first" : "later", recv.info.length);
    UT_CHECK(!recv.informed || (recv.info.sender_tag == 77), "truncated: the tag reported is 0x%lx",
             (unsigned long)recv.info.sender_tag);
    UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send of what is truncated");
    ut_data_close(&from);
    ut_data_close(&to);
}

static void truncation(void)
{
    static const size_t sizes[][2]     = {{1, 0},       {100, 99},  {8192, 100},    {8192, 8191},
                                          {9000, 8192}, {70000, 0}, {70000, 69999}, {300000, 10000}};
    static const ut_layout_t layouts[] = {UT_CONTIG1, UT_IOV3, UT_GENERIC};
    unsigned i, k, starts = ut_generic_starts - ut_generic_finishes;

    ut_pair_open(&pair, 0);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (k = 0; k < 3; ++k) {
            truncate_one(UT_SEND_NBX, UT_RECV_NBX, layouts[k], sizes[i][0], sizes[i][1], true);
            truncate_one(UT_SEND_NBX, UT_RECV_NB, layouts[k], sizes[i][0], sizes[i][1], false);
            truncate_one(UT_SEND_SYNC_NBX, UT_RECV_MSG_NB, layouts[k], sizes[i][0], sizes[i][1], false);
        }
        /* what follows is not harmed */
        ut_exchange(&pair, 1000, i);
        ut_exchange(&pair, 50000, i);
    }
    ut_pair_close(&pair);
    UT_CHECK(ut_generic_starts - ut_generic_finishes == starts, "generic operations are left unfinished");
}

static void truncation_immediate(void)
{
    ut_data_t from, to;
    ut_op_t send, recv;

    ut_pair_open(&pair, 0);
    ut_data_open(&from, UT_CONTIG1, 100);
    ut_data_open(&to, UT_CONTIG1, 50);
    ut_send(&send, pair.a, UT_SEND_NBX, &from, 1);
    ut_settle(&pair);
    ut_recv(&recv, &pair, UT_RECV_NBX, &to, 1, UT_TAG_ALL);
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_ERR_MESSAGE_TRUNCATED, "receive");
    UT_CHECK(ut_verify_value(to.memory + 114, to.extent - 114, 0xdb) == SIZE_MAX, "bytes behind the buffer changed");
    ut_wait(&pair, &send);
    ut_data_close(&from);
    ut_data_close(&to);
    ut_pair_close(&pair);
}

static void cancel_one(ut_recv_t form, ut_layout_t layout, size_t length)
{
    ut_data_t data;
    ut_op_t op;

    ut_data_open(&data, layout, length);
    ut_recv(&op, &pair, form, &data, 99, UT_TAG_ALL);
    ut_progress(&pair);
    UT_CHECK(!ut_op_is_done(&op), "a receive completed without a message");
    ucp_request_cancel(pair.b->worker, op.request);
    UT_CHECK_STATUS(ut_wait(&pair, &op), UCS_ERR_CANCELED, "cancelled receive");
    UT_CHECK(ut_data_check(&data, 0, 0), "a cancelled receive wrote into the buffer");
    ut_data_close(&data);
}

static void cancel(void)
{
    unsigned form, layout, starts = ut_generic_starts - ut_generic_finishes;

    ut_pair_open(&pair, 0);
    for (form = UT_RECV_NB; form <= UT_RECV_NBX; ++form) {
        for (layout = 0; layout < UT_LAYOUTS; ++layout) {
            cancel_one(form, layout, 100);
            cancel_one(form, layout, 100000);
        }
    }
    ut_exchange(&pair, 100, 99);
    ut_exchange(&pair, 100000, 99);
    ut_pair_close(&pair);
    /* UCX 1.13 does not finish what is cancelled */
    UT_CHECK(!ut_uci_is_on() || (ut_generic_starts - ut_generic_finishes == starts),
             "generic operations are left unfinished");
}

/* Cancelling one of several receives leaves the order of the others */
static void cancel_in_the_middle(void)
{
    ut_data_t data[3];
    ut_op_t ops[3];
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 3; ++i) {
        ut_data_open(&data[i], UT_CONTIG1, 16);
        ut_recv(&ops[i], &pair, UT_RECV_NBX, &data[i], 1, (i == 1) ? 0 : UT_TAG_ALL);
    }
    ucp_request_cancel(pair.b->worker, ops[1].request);
    UT_CHECK_STATUS(ut_wait(&pair, &ops[1]), UCS_ERR_CANCELED, "cancelled receive");
    put(1, 1);
    put(2, 1);
    expect(&ops[0], &data[0], 1, 1);
    expect(&ops[2], &data[2], 2, 1);
    for (i = 0; i < 3; ++i) {
        ut_data_close(&data[i]);
    }
    ut_pair_close(&pair);
}

/* Cancelling what is complete, or matched, does nothing */
static void cancel_too_late(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    ut_data_t from, to;
    ut_op_t send, recv;

    ut_pair_open(&pair, 0);
    ut_exchange(&pair, 8, 1);
    ut_data_open(&from, UT_CONTIG1, 16);
    ut_data_open(&to, UT_CONTIG1, 16);
    ut_data_fill(&from, 5);
    ut_send(&send, pair.a, UT_SEND_NBX, &from, 1);
    ut_probe(&pair, 1, UT_TAG_ALL, 0, &recv.info);
    memset(&recv, 0, sizeof(recv));
    ut_op_set(&recv, ucp_tag_recv_nbx(pair.b->worker, to.buffer, to.count, 1, UT_TAG_ALL, &param));
    recv.recv = true;
    ucp_request_cancel(pair.b->worker, recv.request);
    expect(&recv, &to, 5, 1);
    ut_wait(&pair, &send);
    ut_data_close(&from);
    ut_data_close(&to);
    ut_pair_close(&pair);
}

/* Messages that nobody receives do not stand in the way of the end */
static void left_behind(void)
{
    ucp_tag_recv_info_t info;
    unsigned i;

    for (i = 0; i < 3; ++i) {
        ut_pair_open(&pair, 0);
        put(1, 1);
        put(2, 2);
        if (i > 0) {
            ut_probe(&pair, 2, UT_TAG_ALL, i == 2, &info);
        }
        ut_exchange(&pair, 100, 3);
        if (i == 2) {
            get(1, 1, 1, UT_TAG_ALL);
        }
        ut_pair_close(&pair);
    }
}

/* MPIs give the core to another process when progress says that there was nothing to do: a large message that nobody
 * receives is nothing to do */
static void nothing_moves(void)
{
    unsigned i, busy = 0;
    ut_data_t from, to;
    ut_op_t send, recv;
    ut_pair_t pair;

    ut_pair_open(&pair, UCP_FEATURE_TAG);
    for (i = 0; i < 4; ++i) {
        ut_exchange(&pair, 300000, i);
    }
    ut_data_open(&from, UT_CONTIG1, 2000000);
    ut_data_open(&to, UT_CONTIG1, 2000000);
    ut_data_fill(&from, 7);
    ut_send(&send, pair.a, UT_SEND_NBX, &from, 5);
    ut_settle(&pair);
    for (i = 0; i < 10000; ++i) {
        busy += (ucp_worker_progress(pair.a->worker) > 0) + (ucp_worker_progress(pair.b->worker) > 0);
    }
    UT_CHECK(ut_faults_are_on() || (busy < 100), "progress found something to do %u times", busy);
    ut_recv(&recv, &pair, UT_RECV_NBX, &to, 5, UT_TAG_ALL);
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
    UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
    UT_CHECK(ut_data_check(&to, 2000000, 7), "wrong content");
    ut_data_close(&from);
    ut_data_close(&to);
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {UT_TEST(nothing_moves),
                                  UT_TEST(unexpected_order),
                                  UT_TEST(posted_order),
                                  UT_TEST(mixed_sizes_order),
                                  UT_TEST(masks),
                                  UT_TEST(no_match),
                                  UT_TEST(probe_reports),
                                  UT_TEST(probe_removes),
                                  UT_TEST(probe_keeps_order),
                                  UT_TEST(probe_then_receive),
                                  UT_TEST(probe_and_posted),
                                  UT_TEST(probe_storm),
                                  UT_TEST(truncation),
                                  UT_TEST(truncation_immediate),
                                  UT_TEST(cancel),
                                  UT_TEST(cancel_in_the_middle),
                                  UT_TEST(cancel_too_late),
                                  UT_TEST(left_behind)};

UT_MAIN(tests)
