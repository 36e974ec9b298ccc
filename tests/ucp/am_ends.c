/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flushes and closes with active messages under way: what was sent before arrives. A rendezvous that nobody has received yet holds up
 * neither, and is received after its sender has closed.
 */
#include "am_test.h"

enum { ID = 29, UNDER_WAY = 300, FEW = 10 };

static ut_pair_t pair;
static unsigned arrived;
static am_inbox_t inbox;
static am_send_t sends[UNDER_WAY];

/* One in 16 is of several fragments, if any is */
static bool fragments;

static size_t length_of(unsigned number)
{
    return (fragments && (number % 16 == 5)) ? 20000 : number * 11 % 4000;
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    am_stamp_t stamp = am_header_stamp(header, header_length);

    UT_CHECK(stamp.number == arrived, "message %u comes as number %u", stamp.number, arrived);
    UT_CHECK((length == length_of(stamp.number)) && (ut_verify(data, length, am_seed(stamp)) == SIZE_MAX),
             "message %u: wrong content", stamp.number);
    ++arrived;
    return UCS_OK;
}

static void open_pair(void)
{
    am_open(&pair);
    arrived = 0;
    am_listen(pair.b->worker, ID, on_message, NULL, 0);
}

/* Nobody turns meanwhile */
static void post_all(bool with_fragments)
{
    unsigned i;

    fragments = with_fragments;
    for (i = 0; i < UNDER_WAY; ++i) {
        am_what_t what = {.id            = ID,
                          .flags         = AM_EAGER,
                          .header_length = 8,
                          .length        = length_of(i),
                          .stamp         = {.source = 1, .number = i}};

        am_send(&sends[i], pair.a->ep, &what);
    }
}

static void end_all(void)
{
    unsigned i;

    am_await(&pair, &arrived, UNDER_WAY, "messages that were under way");
    for (i = 0; i < UNDER_WAY; ++i) {
        UT_CHECK_STATUS(am_send_end(&pair, &sends[i]), UCS_OK, "am_send");
    }
    ut_settle(&pair);
    UT_CHECK(arrived == UNDER_WAY, "%u messages arrived", arrived);
}

/* --------------------------------------------------------------- flushes */

typedef ucs_status_ptr_t (*flush_func_t)(const ucp_request_param_t *param);

static ucs_status_ptr_t flush_ep(const ucp_request_param_t *param)
{
    return ucp_ep_flush_nbx(pair.a->ep, param);
}

static ucs_status_ptr_t flush_worker(const ucp_request_param_t *param)
{
    return ucp_worker_flush_nbx(pair.a->worker, param);
}

/* All sends are over when a flush is */
static void flush_with(flush_func_t flush)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    unsigned i;

    open_pair();
    post_all(true);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, flush(&none)), UCS_OK, "flush");
    for (i = 0; i < UNDER_WAY; ++i) {
        UT_CHECK(ut_op_is_done(&sends[i].op), "send %u is not over, although it was flushed", i);
    }
    end_all();
    ut_pair_close(&pair);
}

static void flushed_ep(void)
{
    flush_with(flush_ep);
}

static void flushed_worker(void)
{
    flush_with(flush_worker);
}

/* ---------------------------------------------------------------- closes */

static ucs_status_ptr_t close_ep(ucp_ep_h ep)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    return ucp_ep_close_nbx(ep, &none);
}

/* Both sides but what a test has closed itself */
static void destroy(void)
{
    if (pair.a != pair.b) {
        ucp_worker_destroy(pair.b->worker);
    }
    ucp_worker_destroy(pair.a->worker);
    ucp_cleanup(pair.a->context);
}

static void close_b(void)
{
    if (pair.a != pair.b) {
        ut_ep_close(&pair, pair.b->ep);
    }
}

/* By the sender, right after its last send; on an endpoint that is used for the first time, and on one that was */
static void sender_closes(bool connected)
{
    ucs_status_ptr_t closing;

    open_pair();
    if (connected) {
        post_all(true);
        end_all();
        arrived = 0;
    }
    post_all(true);
    closing = close_ep(pair.a->ep);
    end_all();
    UT_CHECK_STATUS(ut_wait_ptr(&pair, closing), UCS_OK, "close");
    close_b();
    destroy();
}

static void closed_at_once(void)
{
    sender_closes(false);
}

static void closed_when_connected(void)
{
    sender_closes(true);
}

/* The receiver does not turn before the close is over: few messages, which fit into what lies between. Over tcp a close waits for the
 * other side */
static void arrives_after_the_close(void)
{
    const ut_pair_t alone = {.a = &pair.sides[0], .b = &pair.sides[0]};
    am_what_t what        = {.id = ID, .flags = AM_EAGER, .header_length = 8, .stamp = {.source = 1}};
    ucs_status_ptr_t closing;
    unsigned i;

    if (strstr(getenv("UCX_TLS"), "tcp") != NULL) {
        return;
    }
    open_pair();
    post_all(false);
    end_all();
    arrived = 0;
    for (i = 0; i < FEW; ++i) {
        what.stamp.number = i;
        what.length       = length_of(i);
        am_send(&sends[i], pair.a->ep, &what);
    }
    closing = close_ep(pair.a->ep);
    UT_CHECK_STATUS(ut_wait_ptr(&alone, closing), UCS_OK, "close");
    for (i = 0; i < FEW; ++i) {
        UT_CHECK_STATUS(am_send_end(&alone, &sends[i]), UCS_OK, "am_send");
    }
    am_await(&pair, &arrived, FEW, "messages sent before a close");
    close_b();
    destroy();
}

/* The receiver has no endpoint any more: what is in one piece, and asks for no reply, needs none */
static void receiver_closed_first(void)
{
    /* What was sent before its sender has heard of the close, and has come damaged as the last of all, nobody asks for: a known defect, of tag
     * messages as well (1 of 40 runs with one fault in ten) */
    if (getenv("UCI_FAULT") != NULL) {
        return;
    }
    open_pair();
    post_all(true);
    end_all();
    arrived = 0;
    if (pair.a != pair.b) {
        ut_ep_close(&pair, pair.b->ep);
    }
    post_all(false);
    end_all();
    ut_ep_close(&pair, pair.a->ep);
    destroy();
}

/* ------------------------------------------------------------ rendezvous */

static void post_rendezvous(am_send_t *send, am_what_t *what)
{
    *what = (am_what_t){.id = ID, .flags = AM_RNDV, .header_length = 8, .length = 200000, .stamp = {.source = 1}};
    open_pair();
    inbox = (am_inbox_t){.answer = UCS_INPROGRESS};
    am_listen(pair.b->worker, ID, am_on_message, &inbox, 0);
    am_send(send, pair.a->ep, what);
    am_await(&pair, &inbox.calls, 1, "a rendezvous");
}

static void receive_rendezvous(am_send_t *send, const am_what_t *what)
{
    am_recv_t recv;

    am_recv(&recv, pair.b, inbox.data, UT_CONTIG1, what->length, 0);
    am_recv_end(&pair, &recv, what->length, what->stamp);
    UT_CHECK_STATUS(am_send_end(&pair, send), UCS_OK, "am_send");
}

static void rendezvous_and_flush(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    am_send_t send;
    am_what_t what;

    post_rendezvous(&send, &what);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, flush_ep(&none)), UCS_OK, "flush of an endpoint");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, flush_worker(&none)), UCS_OK, "flush of a worker");
    UT_CHECK(!ut_op_is_done(&send.op), "a rendezvous is over, and nobody has received it");
    receive_rendezvous(&send, &what);
    ut_pair_close(&pair);
}

/* Who closes its only endpoint cannot receive by it */
static bool has_no_other_end(void)
{
    return strcmp(getenv("UCX_TLS"), "self") == 0;
}

/* A rendezvous whose sender has closed ends all the same: received, or released */
static void end_after_close(bool is_received)
{
    am_send_t send;
    am_what_t what;

    if (has_no_other_end()) {
        return;
    }
    post_rendezvous(&send, &what);
    ut_ep_close(&pair, pair.a->ep);
    if (is_received) {
        receive_rendezvous(&send, &what);
    } else {
        ucp_am_data_release(pair.b->worker, inbox.data);
        UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send of what was released");
    }
    close_b();
    destroy();
}

static void rendezvous_and_close(void)
{
    end_after_close(true);
}

static void rendezvous_refused_after_close(void)
{
    end_after_close(false);
}

static const ut_test_t tests[] = {AM_TEST(flushed_ep),
                                  AM_TEST(flushed_worker),
                                  AM_TEST(closed_at_once),
                                  AM_TEST(closed_when_connected),
                                  AM_TEST(arrives_after_the_close),
                                  AM_TEST(receiver_closed_first),
                                  AM_TEST(rendezvous_and_flush),
                                  AM_TEST(rendezvous_and_close),
                                  AM_TEST(rendezvous_refused_after_close)};

UT_MAIN(tests)
