/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of sends of active messages: when there is one, what it says, who is called back, whose memory it is, and what of the
 * program's may be written to when it is over.
 */
#include "am_test.h"

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

enum { ID = 19, LONGEST = 200000, UNDER_WAY = 500, CHAIN = 50 };

static const size_t sizes[]       = {0, 8, 100, 1000, 8192, 20000, LONGEST};
static const uint32_t protocols[] = {0, AM_EAGER, AM_RNDV};

static ut_pair_t pair;
static am_inbox_t inbox;
static am_recv_t recvs[UNDER_WAY];
static unsigned recv_count;

/* What is a rendezvous is received at once */
static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    am_on_message(arg, header, header_length, data, length, param);
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        am_recv(&recvs[recv_count++], pair.b, data, UT_CONTIG1, length, 0);
    }
    return UCS_OK;
}

static void open_pair(void)
{
    am_open(&pair);
    inbox      = (am_inbox_t){.answer = UCS_OK};
    recv_count = 0;
    am_listen(pair.b->worker, ID, on_message, &inbox, 0);
}

/* All that has been received by rendezvous, of one message */
static void end_recvs(size_t length, am_stamp_t stamp)
{
    unsigned i;

    for (i = 0; i < recv_count; ++i) {
        am_recv_end(&pair, &recvs[i], length, stamp);
    }
    recv_count = 0;
}

/* ------------------------------------------------------ what is returned */

typedef struct sent {
    ut_op_t op;
    am_stamp_t header;
    char data[LONGEST];
} sent_t;

static sent_t one;

/* Send as @a param says, which is given the callback too */
static ucs_status_ptr_t send_one(ucp_request_param_t *param, size_t length, uint32_t flags, unsigned number)
{
    ut_memory_t memory = one.op.memory;

    ut_op_open(&one.op, false);
    one.op.memory   = memory;
    one.op.callback = true;
    one.header      = (am_stamp_t){.source = 1, .number = number};
    ut_fill(one.data, length, am_seed(one.header));
    inbox.calls = 0;
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param->cb.send   = ut_op_sent;
    param->user_data = &one.op;
    param->flags     = flags;
    return ucp_am_send_nbx(pair.a->ep, ID, &one.header, sizeof(one.header), one.data, length, param);
}

static void end_one(size_t length)
{
    am_await(&pair, &inbox.calls, 1, "an active message");
    UT_CHECK(inbox.length == length, "%zu bytes came, %zu were sent", inbox.length, length);
    end_recvs(length, one.header);
    UT_CHECK_STATUS(ut_wait(&pair, &one.op), UCS_OK, "am_send");
}

/* For each size and protocol */
static void for_all(void (*test)(size_t length, uint32_t flags, unsigned number))
{
    unsigned size, protocol, number = 0;

    open_pair();
    for (size = 0; size < COUNT(sizes); ++size) {
        for (protocol = 0; protocol < COUNT(protocols); ++protocol) {
            test(sizes[size], protocols[protocol], ++number);
        }
    }
    ut_pair_close(&pair);
}

/* The callback is called if and only if there is a request, which says the same; ut_op_t looks after it */
static void test_plain(size_t length, uint32_t flags, unsigned number)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t ptr      = send_one(&param, length, flags, number);

    UT_CHECK(UCS_PTR_IS_PTR(ptr) || !(flags & AM_RNDV) || (pair.a == pair.b),
             "no request of a rendezvous that nobody has seen");
    ut_op_set(&one.op, ptr);
    end_one(length);
}

static void test_no_immediate(size_t length, uint32_t flags, unsigned number)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    ucs_status_ptr_t ptr      = send_one(&param, length, flags, number);

    UT_CHECK(UCS_PTR_IS_PTR(ptr), "%zu bytes: no request, although it is asked for", length);
    ut_op_set(&one.op, ptr);
    end_one(length);
}

static void test_own_memory(size_t length, uint32_t flags, unsigned number)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST};
    ucs_status_ptr_t ptr;

    param.op_attr_mask |= (number & 1) ? UCP_OP_ATTR_FLAG_NO_IMM_CMPL : 0;
    ut_memory_open(&one.op.memory, pair.a->context);
    param.request = one.op.memory.request;
    ptr           = send_one(&param, length, flags, number);
    UT_CHECK(!UCS_PTR_IS_PTR(ptr) || (ptr == param.request), "another request than the one that was given");
    ut_op_set(&one.op, ptr);
    end_one(length);
}

/* Whole within the call, or nothing at all */
static void test_immediate(size_t length, uint32_t flags, unsigned number)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
    ucs_status_ptr_t ptr      = send_one(&param, length, flags, number);

    UT_CHECK(!UCS_PTR_IS_PTR(ptr), "a request, although there may be none");
    UT_CHECK((ptr != NULL) || !(flags & AM_RNDV), "a rendezvous that is over at once");
    if (ptr != NULL) {
        UT_CHECK_STATUS(UCS_PTR_STATUS(ptr), UCS_ERR_NO_RESOURCE, "am_send that is not over at once");
        ut_settle(&pair);
        UT_CHECK(inbox.calls == 0, "a message came that was not sent");
        return;
    }
    am_await(&pair, &inbox.calls, 1, "an active message");
}

/* Hints change nothing that is seen */
static void test_hints(size_t length, uint32_t flags, unsigned number)
{
    static const uint32_t hints[] = {UCP_OP_ATTR_FLAG_FAST_CMPL, UCP_OP_ATTR_FLAG_MULTI_SEND,
                                     UCP_OP_ATTR_FIELD_MEMORY_TYPE};
    ucp_request_param_t param     = {.op_attr_mask = hints[number % COUNT(hints)], .memory_type = UCS_MEMORY_TYPE_HOST};

    ut_op_set(&one.op, send_one(&param, length, flags, number));
    end_one(length);
}

/* Nobody waits for it, and nobody is called back */
static void test_given_up(size_t length, uint32_t flags, unsigned number)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t ptr      = send_one(&param, length, flags, number);

    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
    am_await(&pair, &inbox.calls, 1, "an active message whose request was freed");
    end_recvs(length, one.header);
    ut_settle(&pair);
    UT_CHECK(one.op.calls == 0, "%d callbacks of a request that was freed", one.op.calls);
}

static void returned(void)
{
    for_all(test_plain);
}

static void no_immediate(void)
{
    for_all(test_no_immediate);
}

static void own_memory(void)
{
    for_all(test_own_memory);
}

static void immediate(void)
{
    for_all(test_immediate);
}

static void hints(void)
{
    for_all(test_hints);
}

static void given_up(void)
{
    for_all(test_given_up);
}

/* ------------------------------------------------------- the old function */

static void on_sent_old(void *request, ucs_status_t status)
{
    ut_area_t *area = request;

    area->status = status;
    ++area->calls;
}

static void old_function(void)
{
    ucp_datatype_t byte = ucp_dt_make_contig(1);
    ut_area_t *area;
    unsigned size;

    open_pair();
    for (size = 0; size < COUNT(sizes); ++size) {
        inbox = (am_inbox_t){.answer = UCS_OK};
        ut_fill(one.data, sizes[size], am_seed(inbox.stamp));
        area = ucp_am_send_nb(pair.a->ep, ID, one.data, sizes[size], byte, on_sent_old, 0);
        am_await(&pair, &inbox.calls, 1, "an active message");
        if (area != NULL) {
            UT_REQUIRE(UCS_PTR_IS_PTR(area), "am_send_nb: %s", ucs_status_string(UCS_PTR_STATUS(area)));
            ut_clock_start();
            while (!ucp_request_is_completed(area)) {
                ut_progress(&pair);
                ut_clock_check("am_send_nb");
            }
            UT_CHECK((area->calls == 1) && (area->status == UCS_OK), "%d callbacks, %s", area->calls,
                     ucs_status_string(area->status));
            area->calls = 0;
            ucp_request_free(area);
        }
    }
    ut_pair_close(&pair);
}

/* ------------------------------------------------------------- under way */

/* All are posted before anybody turns */
static void many_under_way(void)
{
    am_send_t *sends = calloc(UNDER_WAY, sizeof(*sends));
    unsigned i;

    open_pair();
    for (i = 0; i < UNDER_WAY; ++i) {
        am_what_t what = {.id            = ID,
                          .flags         = protocols[i % COUNT(protocols)],
                          .header_length = 8 + (i % 50),
                          .length        = 5000,
                          .stamp         = {.source = 1, .number = i}};

        am_send(&sends[i], pair.a->ep, &what);
    }
    am_await(&pair, &inbox.calls, UNDER_WAY, "active messages");
    for (i = 0; i < recv_count; ++i) {
        UT_CHECK_STATUS(am_recv_wait(&pair, &recvs[i]), UCS_OK, "am_recv_data");
        am_recv_close(&recvs[i]);
    }
    for (i = 0; i < UNDER_WAY; ++i) {
        UT_CHECK_STATUS(am_send_end(&pair, &sends[i]), UCS_OK, "am_send");
    }
    ut_pair_close(&pair);
    free(sends);
}

/* Header and data are the program's again when the send is over: it writes the next message there at once, whether the last one has been
 * handled or not */
static void reused(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS};
    ucs_status_ptr_t ptr;
    unsigned i, size;

    open_pair();
    for (size = 0; size < COUNT(sizes); ++size) {
        inbox.calls = 0;
        for (i = 0; i < UNDER_WAY / 10; ++i) {
            one.header = (am_stamp_t){.source = 1, .number = i};
            ut_fill(one.data, sizes[size], am_seed(one.header));
            param.flags = protocols[i % COUNT(protocols)];
            ptr = ucp_am_send_nbx(pair.a->ep, ID, &one.header, sizeof(one.header), one.data, sizes[size], &param);
            UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "am_send");
            memset(&one.header, 0xff, sizeof(one.header));
            memset(one.data, 0xff, sizes[size]);
        }
        am_await(&pair, &inbox.calls, UNDER_WAY / 10, "active messages");
        UT_CHECK(inbox.stamp.number == i - 1, "the last message is %u", inbox.stamp.number);
        for (i = 0; i < recv_count; ++i) {
            UT_CHECK_STATUS(am_recv_wait(&pair, &recvs[i]), UCS_OK, "am_recv_data");
            am_recv_close(&recvs[i]);
        }
        recv_count = 0;
    }
    ut_pair_close(&pair);
}

/* ------------------------------------------------------- from a callback */

static ucs_status_ptr_t chain[CHAIN];
static unsigned chained, chain_ends;

static void on_sent_again(void *request, ucs_status_t status, void *user_data);

static void send_again(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.send      = on_sent_again};
    unsigned number           = chained++;

    chain[number] = ucp_am_send_nbx(pair.a->ep, ID, NULL, 0, one.data, 100, &param);
    UT_CHECK(UCS_PTR_IS_PTR(chain[number]), "am_send from a callback");
}

/* It may be called before the call that it is about returns: one within the other */
static void on_sent_again(void *request, ucs_status_t status, void *user_data)
{
    UT_CHECK_STATUS(status, UCS_OK, "am_send");
    ++chain_ends;
    if (chained < CHAIN) {
        send_again();
    }
}

static void from_callbacks(void)
{
    unsigned i;

    open_pair();
    chained = chain_ends = 0;
    ut_fill(one.data, 100, am_seed(inbox.stamp));
    send_again();
    am_await(&pair, &inbox.calls, CHAIN, "active messages that callbacks sent");
    am_await(&pair, &chain_ends, CHAIN, "callbacks");
    for (i = 0; i < CHAIN; ++i) {
        UT_CHECK_STATUS(ut_wait_ptr(&pair, chain[i]), UCS_OK, "am_send");
    }
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {
        AM_TEST(returned), AM_TEST(no_immediate), AM_TEST(own_memory),     AM_TEST(immediate), AM_TEST(hints),
        AM_TEST(given_up), AM_TEST(old_function), AM_TEST(many_under_way), AM_TEST(reused),    AM_TEST(from_callbacks)};

UT_MAIN(tests)
