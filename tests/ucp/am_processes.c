/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages between two processes: both ways at once by every protocol, in order, and back and forth by the endpoint to reply to.
 */
#include "am_test.h"
#include "two_test.h"

#include <sched.h>

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

enum { ID = 3, BALL = 4, ROUNDS = 1000, MANY = 3000, WITH_FAULTS = 1000, WINDOW = 64 };

static ut_side_t here;
static ut_pair_t pair = {.a = &here, .b = &here}; /* what is progressed is our side */
static am_inbox_t inbox;

static void open_side(void)
{
    two_connect(&here, ut_features);
    am_prepare(&pair);
    inbox = (am_inbox_t){.answer = UCS_INPROGRESS};
}

/* Both handlers are set */
static void begin(void)
{
    two_meet(NULL);
}

static void close_side(void)
{
    two_meet(here.worker);
    ut_ep_close(&pair, here.ep);
    two_meet(here.worker);
    ucp_worker_destroy(here.worker);
    ucp_cleanup(here.context);
}

/* ------------------------------------------------------ every protocol */

static void exchange(uint32_t flags, size_t header_length, size_t length, unsigned number)
{
    am_what_t out = {.id            = ID,
                     .flags         = flags,
                     .header_length = header_length,
                     .length        = length,
                     .stamp         = {.source = two_side, .number = number}};
    am_stamp_t in = {.source = !two_side, .number = number};
    am_send_t send;
    am_recv_t recv;

    am_send(&send, here.ep, &out);
    am_await(&pair, &inbox.calls, number, "a message of the other process");
    UT_CHECK((inbox.length == length) && (inbox.header_length == header_length) && (inbox.stamp.number == number),
             "message %u, header of %zu, %zu bytes instead of %u, %zu, %zu", inbox.stamp.number, inbox.header_length,
             inbox.length, number, header_length, length);
    if (inbox.attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        am_recv(&recv, &here, inbox.data, UT_CONTIG1, length, 0);
        am_recv_end(&pair, &recv, length, in);
    } else if (inbox.answered == UCS_INPROGRESS) {
        ucp_am_data_release(here.worker, inbox.data);
    }
    UT_CHECK_STATUS(am_send_end(&pair, &send), UCS_OK, "am_send");
    two_meet(here.worker); /* one message at a time is told */
}

static void both_ways(void)
{
    static const size_t sizes[]       = {0, 8, 1000, 8192, 20000, 300000, 4 << 20};
    static const uint32_t protocols[] = {0, AM_EAGER, AM_RNDV, AM_REPLY};
    unsigned size, protocol, number = 0;

    if (!two_is_possible()) {
        return;
    }
    open_side();
    am_listen(here.worker, ID, am_on_message, &inbox, 0);
    begin();
    for (size = 0; size < COUNT(sizes); ++size) {
        for (protocol = 0; protocol < COUNT(protocols); ++protocol) {
            exchange(protocols[protocol], 8 + (size * 50), sizes[size], ++number);
        }
    }
    close_side();
}

/* ------------------------------------------------------------- in order */

static unsigned arrived;

static ucs_status_t on_many(void *arg, const void *header, size_t header_length, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    am_stamp_t stamp = {.source = !two_side, .number = arrived};

    UT_CHECK(am_header_check(header, header_length, stamp) && (ut_verify(data, length, am_seed(stamp)) == SIZE_MAX),
             "not message %u, or wrong content", arrived);
    ++arrived;
    return UCS_OK;
}

static void many(void)
{
    unsigned count = ut_faults_are_on() ? WITH_FAULTS : MANY, i;
    am_send_t sends[WINDOW];

    if (!two_is_possible()) {
        return;
    }
    open_side();
    arrived = 0;
    am_listen(here.worker, ID, on_many, NULL, 0);
    begin();
    for (i = 0; i < count + WINDOW; ++i) {
        am_what_t what = {.id            = ID,
                          .flags         = AM_EAGER,
                          .header_length = 8,
                          .length        = (i % 100 == 99) ? 20000 : i * 37 % 1000,
                          .stamp         = {.source = two_side, .number = i}};

        if (i >= WINDOW) {
            UT_CHECK_STATUS(am_send_end(&pair, &sends[i % WINDOW]), UCS_OK, "am_send");
        }
        if (i < count) {
            am_send(&sends[i % WINDOW], here.ep, &what);
        }
    }
    am_await(&pair, &arrived, count, "messages of the other process");
    close_side();
}

/* ------------------------------------------------------- back and forth */

static uint64_t balls[ROUNDS + 1];
static unsigned rounds;

static void hit(ucp_ep_h ep)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = AM_REPLY};
    ucs_status_ptr_t ptr;

    balls[rounds] = rounds;
    ptr           = ucp_am_send_nbx(ep, BALL, &balls[rounds], sizeof(balls[0]), NULL, 0, &param);
    UT_CHECK(!UCS_PTR_IS_ERR(ptr), "am_send: %s", ucs_status_string(UCS_PTR_STATUS(ptr)));
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
}

/* Each process sees each second round */
static ucs_status_t on_ball(void *arg, const void *header, size_t header_length, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    uint64_t round;

    UT_REQUIRE((header_length == sizeof(round)) && (length == 0), "header of %zu, %zu bytes", header_length, length);
    memcpy(&round, header, sizeof(round));
    UT_CHECK(round == rounds, "round %lu comes as round %u", (unsigned long)round, rounds);
    rounds += 1;
    if (rounds < ROUNDS) {
        hit(param->reply_ep);
        rounds += 1;
    }
    return UCS_OK;
}

static void back_and_forth(void)
{
    if (!two_is_possible()) {
        return;
    }
    open_side();
    rounds = 0;
    am_listen(here.worker, BALL, on_ball, NULL, 0);
    begin();
    if (two_side == 0) {
        hit(here.ep);
        rounds = 1;
    }
    ut_clock_start();
    while (rounds < ROUNDS) {
        ut_progress(&pair);
        sched_yield();
        ut_clock_check("back and forth");
    }
    close_side();
}

static const ut_test_t tests[] = {AM_TEST(both_ways), AM_TEST(many), AM_TEST(back_and_forth)};

int main(int argc, char **argv)
{
    return two_main(argc, argv, tests, COUNT(tests));
}
