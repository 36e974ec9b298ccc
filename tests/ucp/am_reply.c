/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies to active messages, by the endpoint that the handler is told: from within the handler and later, by every protocol, and if the
 * receiver has no endpoint of its own, or several.
 */
#include "am_test.h"

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

enum { PING = 11, PONG = 12, OLD = 13, TAG = 77, ROUNDS = 10000, NESTED_ROUNDS = 200, BODY = 120 };

static ut_pair_t pair;
static am_inbox_t pings, pongs;

/* Only a knows where the other side is */
static void open_one_way(void)
{
    memset(&pair, 0, sizeof(pair));
    pair.a          = &pair.sides[0];
    pair.b          = (strcmp(getenv("UCX_TLS"), "self") == 0) ? pair.a : &pair.sides[1];
    pair.a->context = ut_context_create(ut_features);
    pair.b->context = pair.a->context;
    pair.a->worker  = ut_worker_create(pair.a->context);
    if (pair.b != pair.a) {
        pair.b->worker = ut_worker_create(pair.b->context);
    }
    pair.a->ep = ut_ep_create(pair.a->worker, pair.b->worker);
    am_prepare(&pair);
}

static void close_one_way(void)
{
    ut_ep_close(&pair, pair.a->ep);
    if (pair.b != pair.a) {
        ucp_worker_destroy(pair.b->worker);
    }
    ucp_worker_destroy(pair.a->worker);
    ucp_cleanup(pair.a->context);
}

static am_what_t ping(uint32_t flags, size_t length, unsigned number)
{
    return (am_what_t){.id            = PING,
                       .flags         = flags | AM_REPLY,
                       .header_length = 8,
                       .length        = length,
                       .stamp         = {.source = 1, .number = number}};
}

static am_what_t pong(uint32_t flags, size_t length, unsigned number)
{
    return (am_what_t){
            .id = PONG, .flags = flags, .header_length = 8, .length = length, .stamp = {.source = 2, .number = number}};
}

/* ---------------------------------------------------------- from outside */

static void end_arrival(am_inbox_t *inbox, const ut_side_t *side, const am_what_t *what)
{
    am_recv_t recv;

    UT_CHECK((inbox->stamp.source == what->stamp.source) && (inbox->stamp.number == what->stamp.number) &&
                     (inbox->length == what->length),
             "message %u.%u of %zu bytes came, %u.%u of %zu was sent", inbox->stamp.source, inbox->stamp.number,
             inbox->length, what->stamp.source, what->stamp.number, what->length);
    if (inbox->attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        am_recv(&recv, side, inbox->data, UT_CONTIG1, what->length, 0);
        am_recv_end(&pair, &recv, what->length, what->stamp);
    } else if (inbox->answered == UCS_INPROGRESS) {
        ucp_am_data_release(side->worker, inbox->data);
    }
}

/* Every size there, and back by every protocol; the endpoint is kept while others come */
static void later(void)
{
    static const size_t sizes[]   = {0, 8, 1000, 8192, 20000, 300000};
    static const uint32_t flags[] = {0, AM_EAGER, AM_RNDV};
    am_send_t there, back;
    unsigned size, flag, number = 0;

    open_one_way();
    pings = pongs = (am_inbox_t){.answer = UCS_INPROGRESS};
    am_listen(pair.b->worker, PING, am_on_message, &pings, 0);
    am_listen(pair.a->worker, PONG, am_on_message, &pongs, 0);
    for (size = 0; size < COUNT(sizes); ++size) {
        for (flag = 0; flag < COUNT(flags); ++flag) {
            am_what_t question = ping(flags[flag], sizes[size], ++number);
            am_what_t answer   = pong(flags[(flag + 1) % COUNT(flags)], sizes[(size + 1) % COUNT(sizes)], number);

            am_send(&there, pair.a->ep, &question);
            am_await(&pair, &pings.calls, number, "a question");
            end_arrival(&pings, pair.b, &question);
            UT_REQUIRE(pings.reply_ep != NULL, "no endpoint to reply to");
            am_send(&back, pings.reply_ep, &answer);
            am_await(&pair, &pongs.calls, number, "an answer");
            end_arrival(&pongs, pair.a, &answer);
            UT_CHECK_STATUS(am_send_end(&pair, &there), UCS_OK, "am_send of a question");
            UT_CHECK_STATUS(am_send_end(&pair, &back), UCS_OK, "am_send of an answer");
        }
    }
    close_one_way();
}

/* ----------------------------------------------------- from within handlers */

static struct {
    char body[BODY];
} bodies[ROUNDS + 1];
static unsigned round_count, rounds;

static size_t body_length(unsigned number)
{
    return (number * 13) % BODY;
}

/* Body and header are static: the request need not be waited for */
static void hit_back(ucp_ep_h ep, unsigned id, unsigned number)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = AM_REPLY};
    am_stamp_t stamp          = {.source = id, .number = number};
    size_t length             = body_length(number);
    ucs_status_ptr_t ptr;

    ut_fill(bodies[number].body, length, am_seed(stamp));
    ptr = ucp_am_send_nbx(ep, id, NULL, 0, bodies[number].body, length, &param);
    UT_CHECK(!UCS_PTR_IS_ERR(ptr), "am_send %u: %s", number, ucs_status_string(UCS_PTR_STATUS(ptr)));
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
}

/* The argument is the id of what comes */
static ucs_status_t on_ball(void *arg, const void *header, size_t header_length, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    unsigned id      = (unsigned)(uintptr_t)arg;
    am_stamp_t stamp = {.source = id, .number = round_count};

    UT_REQUIRE(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP, "round %u: no endpoint to reply to", round_count);
    UT_CHECK((header_length == 0) && (length == body_length(round_count)), "round %u: header of %zu, %zu bytes",
             round_count, header_length, length);
    UT_CHECK(ut_verify(data, length, am_seed(stamp)) == SIZE_MAX, "round %u: wrong content", round_count);
    if (++round_count < rounds) {
        hit_back(param->reply_ep, (id == PING) ? PONG : PING, round_count);
    }
    return UCS_OK;
}

/* A worker that talks to itself may call handlers within its sends: one within the other */
static void ping_pong(void)
{
    open_one_way();
    round_count = 0;
    rounds      = (pair.a == pair.b) ? NESTED_ROUNDS : ROUNDS;
    am_listen(pair.b->worker, PING, on_ball, (void *)(uintptr_t)PING, 0);
    am_listen(pair.a->worker, PONG, on_ball, (void *)(uintptr_t)PONG, 0);
    hit_back(pair.a->ep, PING, 0);
    am_await(&pair, &round_count, rounds, "ping-pong");
    close_one_way();
}

/* A rendezvous is answered from within its handler with another, which is received within its handler */
static am_send_t back;
static am_recv_t question_recv, answer_recv;

static ucs_status_t on_question(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                const ucp_am_recv_param_t *param)
{
    am_what_t answer = pong(AM_RNDV, length + 1000, pings.calls + 1);

    am_on_message(arg, header, header_length, data, length, param);
    am_recv(&question_recv, pair.b, data, UT_CONTIG1, length, 0);
    am_send(&back, param->reply_ep, &answer);
    return UCS_INPROGRESS;
}

static ucs_status_t on_answer(void *arg, const void *header, size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    am_on_message(arg, header, header_length, data, length, param);
    am_recv(&answer_recv, pair.a, data, UT_IOV3, length, 0);
    return UCS_OK;
}

static void rendezvous_within(void)
{
    static const size_t sizes[] = {1, 9000, 200000};
    am_send_t there;
    unsigned size;

    open_one_way();
    pings = pongs = (am_inbox_t){.answer = UCS_INPROGRESS};
    am_listen(pair.b->worker, PING, on_question, &pings, 0);
    am_listen(pair.a->worker, PONG, on_answer, &pongs, 0);
    for (size = 0; size < COUNT(sizes); ++size) {
        am_what_t question = ping(AM_RNDV, sizes[size], size + 1);

        am_send(&there, pair.a->ep, &question);
        am_await(&pair, &pongs.calls, size + 1, "an answer");
        am_recv_end(&pair, &question_recv, question.length, question.stamp);
        am_recv_end(&pair, &answer_recv, question.length + 1000, (am_stamp_t){.source = 2, .number = size + 1});
        UT_CHECK_STATUS(am_send_end(&pair, &there), UCS_OK, "am_send of a question");
        UT_CHECK_STATUS(am_send_end(&pair, &back), UCS_OK, "am_send of an answer");
    }
    close_one_way();
}

/* ------------------------------------------------------------------ others */

static ucs_status_t on_old(void *arg, void *data, size_t length, ucp_ep_h reply_ep, unsigned flags)
{
    ++pings.calls;
    pings.reply_ep = reply_ep;
    return UCS_OK;
}

/* A handler of the old sort is told as well */
static void old_handler(void)
{
    am_what_t question = {.id = OLD, .flags = AM_REPLY, .length = 100}, answer = pong(0, 100, 1);
    am_send_t there;

    open_one_way();
    pings = pongs = (am_inbox_t){.answer = UCS_OK};
    am_listen_old(pair.b->worker, OLD, on_old, NULL, 0);
    am_listen(pair.a->worker, PONG, am_on_message, &pongs, 0);
    am_send(&there, pair.a->ep, &question);
    am_await(&pair, &pings.calls, 1, "a question");
    UT_REQUIRE(pings.reply_ep != NULL, "no endpoint to reply to");
    am_send(&back, pings.reply_ep, &answer);
    am_await(&pair, &pongs.calls, 1, "an answer");
    UT_CHECK_STATUS(am_send_end(&pair, &there), UCS_OK, "am_send of a question");
    UT_CHECK_STATUS(am_send_end(&pair, &back), UCS_OK, "am_send of an answer");
    close_one_way();
}

/* An endpoint like any other: tagged messages go by it too */
static void tagged(void)
{
    static const size_t sizes[] = {8, 9000, 200000};
    am_what_t question          = ping(0, 8, 1);
    ut_side_t from;
    am_send_t there;
    ut_op_t send, recv;
    ut_data_t out, in;
    unsigned size;
    ut_pair_t back_pair;

    open_one_way();
    pings = (am_inbox_t){.answer = UCS_OK};
    am_listen(pair.b->worker, PING, am_on_message, &pings, 0);
    am_send(&there, pair.a->ep, &question);
    am_await(&pair, &pings.calls, 1, "a question");
    from      = (ut_side_t){.context = pair.b->context, .worker = pair.b->worker, .ep = pings.reply_ep};
    back_pair = (ut_pair_t){.a = pair.b, .b = pair.a};
    for (size = 0; size < COUNT(sizes); ++size) {
        ut_data_open(&out, UT_CONTIG1, sizes[size]);
        ut_data_open(&in, UT_CONTIG1, sizes[size]);
        ut_data_fill(&out, size);
        ut_recv(&recv, &back_pair, UT_RECV_NBX, &in, TAG, UT_TAG_ALL);
        ut_send(&send, &from, UT_SEND_NBX, &out, TAG);
        UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK(ut_data_check(&in, sizes[size], size), "wrong content, %zu bytes", sizes[size]);
        ut_data_close(&out);
        ut_data_close(&in);
    }
    UT_CHECK_STATUS(am_send_end(&pair, &there), UCS_OK, "am_send of a question");
    close_one_way();
}

/* --------------------------------------------------- several endpoints */

static ucp_ep_h create_special(const ut_side_t *from, const ut_side_t *to)
{
    return ut_ep_create_as(from->worker, to->worker, (ucp_ep_params_t){.field_mask = UCP_EP_PARAM_FIELD_USER_DATA});
}

static void exchange_both_ways(uint32_t flags, size_t length)
{
    ut_pair_t back  = pair;
    am_what_t there = ping(flags, length, 1), here = pong(flags, length, 2);

    back.a = pair.b;
    back.b = pair.a;
    there.flags &= ~(uint32_t)AM_REPLY;
    am_exchange(&pair, &pings, &there, UT_CONTIG1);
    am_exchange(&back, &pongs, &here, UT_CONTIG1);
}

/* Both sides have a second endpoint, and close their first. The answering side had none when it was spoken to, so that UCI had to make one */
static void first_ones_closed(void)
{
    am_what_t alone = ping(AM_EAGER, 300000, 0);
    ucp_ep_h firsts[2];

    if (strcmp(getenv("UCX_TLS"), "self") == 0) {
        return; /* one worker */
    }
    open_one_way();
    am_listen(pair.b->worker, PING, am_on_message, &pings, 0);
    am_listen(pair.a->worker, PONG, am_on_message, &pongs, 0);
    alone.flags = AM_EAGER;
    am_exchange(&pair, &pings, &alone, UT_CONTIG1);
    pair.b->ep = create_special(pair.b, pair.a);
    exchange_both_ways(AM_EAGER, 300000);
    firsts[0]  = pair.a->ep;
    firsts[1]  = pair.b->ep;
    pair.a->ep = ut_ep_create(pair.a->worker, pair.b->worker);
    pair.b->ep = create_special(pair.b, pair.a);
    exchange_both_ways(AM_EAGER, 8);
    ut_ep_close(&pair, firsts[0]);
    ut_ep_close(&pair, firsts[1]);
    exchange_both_ways(AM_EAGER, 300000);
    exchange_both_ways(AM_RNDV, 1 << 20);
    ut_ep_close(&pair, pair.b->ep);
    close_one_way();
}

static const ut_test_t tests[] = {AM_TEST(later),
                                  AM_TEST(ping_pong),
                                  AM_TEST(rendezvous_within),
                                  AM_TEST(old_handler),
                                  {"tagged", tagged, UCP_FEATURE_TAG | UCP_FEATURE_AM},
                                  AM_TEST(first_ones_closed)};

UT_MAIN(tests)
