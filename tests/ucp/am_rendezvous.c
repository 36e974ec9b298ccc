/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages by rendezvous: received from within the handler, later, or never. The send lasts until the receiver has decided.
 */
#include "am_test.h"

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

enum { ID = 9, MANY = 40 };

static const size_t sizes[] = {0, 1, 100, 8192, 20000, 300000};

static ut_pair_t pair;
static am_inbox_t inbox;

static am_what_t rendezvous(size_t length, unsigned number)
{
    return (am_what_t){.id            = ID,
                       .flags         = AM_RNDV,
                       .header_length = 16,
                       .length        = length,
                       .stamp         = {.source = 1, .number = number}};
}

static void open_pair(ucs_status_t answer)
{
    am_open(&pair);
    inbox = (am_inbox_t){.answer = answer};
    am_listen(pair.b->worker, ID, am_on_message, &inbox, 0);
}

/* Send, and wait for the handler */
static void send_and_await(am_send_t *send, const am_what_t *what)
{
    inbox.calls = 0;
    am_send(send, pair.a->ep, what);
    am_await(&pair, &inbox.calls, 1, "a rendezvous");
    UT_CHECK((inbox.length == what->length) && (inbox.attr & UCP_AM_RECV_ATTR_FLAG_RNDV), "%zu bytes, attributes 0x%lx",
             inbox.length, (unsigned long)inbox.attr);
}

/* -------------------------------------------------------------- received */

/* Into every layout, with all that a receive may be asked for, and room to spare */
static void received_later(void)
{
    unsigned size, layout, how = 0;
    am_what_t what;
    am_send_t send;
    am_recv_t recv;

    open_pair(UCS_INPROGRESS);
    for (size = 0; size < COUNT(sizes); ++size) {
        for (layout = 0; layout < UT_LAYOUTS; ++layout, ++how) {
            what        = rendezvous(sizes[size], how);
            what.layout = (layout + how) % UT_LAYOUTS;
            send_and_await(&send, &what);
            am_recv(&recv, pair.b, inbox.data, layout, what.length + ((how % 3) * 100) + 1, how % 4);
            am_recv_end(&pair, &recv, what.length, what.stamp);
            UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send");
        }
    }
    ut_pair_close(&pair);
}

/* The send is not over before the receiver has said what becomes of it */
static void sender_waits(void)
{
    unsigned size;
    am_what_t what;
    am_send_t send;
    am_recv_t recv;

    open_pair(UCS_INPROGRESS);
    for (size = 0; size < COUNT(sizes); ++size) {
        what = rendezvous(sizes[size], size);
        send_and_await(&send, &what);
        ut_settle(&pair);
        UT_CHECK(!ut_op_is_done(&send.op), "a rendezvous of %zu bytes is over, and nobody has received it",
                 what.length);
        am_recv(&recv, pair.b, inbox.data, UT_CONTIG1, what.length, 0);
        am_recv_end(&pair, &recv, what.length, what.stamp);
        UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send");
    }
    ut_pair_close(&pair);
}

/* Many at once, the last first, some never */
static void *descs[MANY];
static unsigned arrived;

static ucs_status_t on_many(void *arg, const void *header, size_t header_length, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    am_stamp_t stamp = am_header_stamp(header, header_length);

    UT_CHECK(stamp.number == arrived, "message %u comes as number %u", stamp.number, arrived);
    descs[arrived++] = data;
    return UCS_INPROGRESS;
}

static void many_at_once(void)
{
    am_send_t sends[MANY];
    am_recv_t recvs[MANY];
    am_what_t what[MANY];
    unsigned i;

    open_pair(UCS_INPROGRESS);
    arrived = 0;
    am_listen(pair.b->worker, ID, on_many, NULL, 0);
    for (i = 0; i < MANY; ++i) {
        what[i]       = rendezvous(sizes[i % COUNT(sizes)], i);
        what[i].flags = (what[i].length > 10000) ? AM_RNDV | AM_REPLY : AM_RNDV;
        am_send(&sends[i], pair.a->ep, &what[i]);
    }
    am_await(&pair, &arrived, MANY, "many rendezvous");
    for (i = MANY; i-- > 0;) {
        if (i % 5 == 4) {
            ucp_am_data_release(pair.b->worker, descs[i]);
        } else {
            am_recv(&recvs[i], pair.b, descs[i], UT_CONTIG1, what[i].length, 0);
        }
    }
    for (i = 0; i < MANY; ++i) {
        if (i % 5 != 4) {
            am_recv_end(&pair, &recvs[i], what[i].length, what[i].stamp);
        }
        UT_CHECK_STATUS(am_send_end(&pair, &sends[i]), UCS_OK, "am_send");
    }
    ut_pair_close(&pair);
}

/* ---------------------------------------------------------- by the handler */

static am_recv_t inside;
static ucs_status_t inside_answer;
static unsigned inside_how;
static ut_layout_t inside_layout;

static ucs_status_t on_message_receive(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                       const ucp_am_recv_param_t *param)
{
    am_on_message(arg, header, header_length, data, length, param);
    am_recv(&inside, pair.b, data, inside_layout, length, inside_how);
    return inside_answer;
}

/* It may say OK or INPROGRESS then: the descriptor is UCX's */
static void received_inside(void)
{
    unsigned size, i = 0;
    am_what_t what;
    am_send_t send;

    open_pair(UCS_INPROGRESS);
    am_listen(pair.b->worker, ID, on_message_receive, &inbox, 0);
    for (size = 0; size < COUNT(sizes); ++size) {
        for (inside_layout = 0; inside_layout < UT_LAYOUTS; ++inside_layout, ++i) {
            inside_how    = i % 4;
            inside_answer = (i % 3 == 0) ? UCS_INPROGRESS : UCS_OK;
            what          = rendezvous(sizes[size], i);
            send_and_await(&send, &what);
            am_recv_end(&pair, &inside, what.length, what.stamp);
            UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send");
        }
    }
    ut_pair_close(&pair);
}

/* ------------------------------------------------------------ not received */

/* The handler says no: the send ends with what it said */
static void refused(void)
{
    static const ucs_status_t answers[] = {UCS_OK,           UCS_ERR_REJECTED,          UCS_ERR_NO_MEMORY,
                                           UCS_ERR_CANCELED, UCS_ERR_MESSAGE_TRUNCATED, UCS_ERR_IO_ERROR};
    unsigned answer, size;
    am_what_t what;
    am_send_t send;

    for (answer = 0; answer < COUNT(answers); ++answer) {
        open_pair(answers[answer]);
        for (size = 0; size < COUNT(sizes); ++size) {
            what = rendezvous(sizes[size], size);
            send_and_await(&send, &what);
            UT_CHECK_STATUS(am_send_end(&pair, &send), answers[answer], "am_send of what the handler refused");
        }
        ut_pair_close(&pair);
    }
}

/* Kept, and released without a receive; or received into nothing */
static void released(void)
{
    unsigned size;
    am_what_t what;
    am_send_t send;
    am_recv_t recv;

    open_pair(UCS_INPROGRESS);
    for (size = 0; size < COUNT(sizes); ++size) {
        what = rendezvous(sizes[size], size);
        send_and_await(&send, &what);
        ucp_am_data_release(pair.b->worker, inbox.data);
        UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send of what was released");
        send_and_await(&send, &what);
        am_recv(&recv, pair.b, inbox.data, UT_CONTIG1, 0, (size & 1) ? AM_NO_IMM : 0);
        UT_CHECK_STATUS(am_recv_wait(&pair, &recv), UCS_OK, "a receive into nothing");
        UT_CHECK(recv.length == 0, "%zu bytes received into nothing", recv.length);
        UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send of what was received into nothing");
        am_recv_close(&recv);
    }
    ut_pair_close(&pair);
}

/* Neither side can take back what is under way: UCX cancels nothing but receives of tags */
static void cancelled(void)
{
    am_what_t what = rendezvous(300000, 1);
    am_send_t send;
    am_recv_t recv;

    open_pair(UCS_INPROGRESS);
    send_and_await(&send, &what);
    ucp_request_cancel(pair.a->worker, send.op.request);
    am_recv(&recv, pair.b, inbox.data, UT_CONTIG1, what.length, 0);
    if (recv.op.request != NULL) {
        ucp_request_cancel(pair.b->worker, recv.op.request);
    }
    am_recv_end(&pair, &recv, what.length, what.stamp);
    UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send that was cancelled");
    ut_pair_close(&pair);
}

/* A request that is given up early: the data comes all the same */
static void request_given_up(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    const size_t length      = 300000;
    char *to                 = calloc(1, length);
    am_what_t what           = rendezvous(length, 1);
    ucs_status_ptr_t ptr;
    am_send_t send;

    open_pair(UCS_INPROGRESS);
    send_and_await(&send, &what);
    ptr = ucp_am_recv_data_nbx(pair.b->worker, inbox.data, to, length, &none);
    UT_CHECK(!UCS_PTR_IS_ERR(ptr), "am_recv_data");
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
    UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send");
    ut_clock_start();
    while (ut_verify(to, length, am_seed(what.stamp)) != SIZE_MAX) {
        ut_progress(&pair);
        ut_clock_check("a receive whose request was freed");
    }
    ut_pair_close(&pair);
    free(to);
}

static const ut_test_t tests[] = {AM_TEST(received_later),  AM_TEST(sender_waits),    AM_TEST(many_at_once),
                                  AM_TEST(received_inside), AM_TEST(refused),         AM_TEST(released),
                                  AM_TEST(cancelled),       AM_TEST(request_given_up)};

UT_MAIN(tests)
