/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages among several workers, and by several endpoints to one: each endpoint's messages arrive in their order, and answers go
 * to who has asked.
 */
#include "am_test.h"

enum { ID = 23, ANSWER = 24, WORKERS = 4, EACH = 200 };

/* One of the workers, and what it has got from each of the others */
typedef struct member {
    ucp_worker_h worker;
    ucp_ep_h eps[WORKERS];
    unsigned got[WORKERS];
    unsigned answers[WORKERS];
} member_t;

static ucp_context_h context;
static member_t members[WORKERS];
static unsigned count;

static size_t length_of(unsigned number)
{
    return (number % 10 == 9) ? 20000 : number * 7 % 3000;
}

/* An answer says who gives it, and which question it is about */
static void answer(unsigned from, ucp_ep_h ep, unsigned number)
{
    static am_stamp_t stamps[WORKERS][WORKERS * EACH];
    static unsigned next[WORKERS];
    ucp_request_param_t none = {.op_attr_mask = 0};
    am_stamp_t *stamp        = &stamps[from][next[from]++ % (WORKERS * EACH)];
    ucs_status_ptr_t ptr;

    *stamp = (am_stamp_t){.source = from, .number = number};
    ptr    = ucp_am_send_nbx(ep, ANSWER, stamp, sizeof(*stamp), NULL, 0, &none);
    UT_CHECK(!UCS_PTR_IS_ERR(ptr), "an answer: %s", ucs_status_string(UCS_PTR_STATUS(ptr)));
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
}

static void check_question(member_t *member, am_stamp_t stamp, const void *data, size_t length)
{
    UT_REQUIRE(stamp.source < WORKERS, "from worker %u", stamp.source);
    UT_CHECK(stamp.number == member->got[stamp.source], "message %u of worker %u comes as its number %u", stamp.number,
             stamp.source, member->got[stamp.source]);
    UT_CHECK((length == length_of(stamp.number)) && (ut_verify(data, length, am_seed(stamp)) == SIZE_MAX),
             "message %u of worker %u: wrong content", stamp.number, stamp.source);
    ++member->got[stamp.source];
}

static ucs_status_t on_question(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                const ucp_am_recv_param_t *param)
{
    am_stamp_t stamp = am_header_stamp(header, header_length);
    member_t *member = arg;

    check_question(member, stamp, data, length);
    UT_REQUIRE(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP, "no endpoint to reply to");
    answer((unsigned)(member - members), param->reply_ep, stamp.number);
    return UCS_OK;
}

static ucs_status_t on_answer(void *arg, const void *header, size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    am_stamp_t stamp = am_header_stamp(header, header_length);
    member_t *member = arg;

    UT_CHECK(stamp.number == member->answers[stamp.source], "answer %u of worker %u comes as its number %u",
             stamp.number, stamp.source, member->answers[stamp.source]);
    ++member->answers[stamp.source];
    return UCS_OK;
}

static void progress_all(void)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        ucp_worker_progress(members[i].worker);
    }
}

static void open_all(void)
{
    unsigned i, k;

    count   = (strcmp(getenv("UCX_TLS"), "self") == 0) ? 1 : WORKERS;
    context = ut_context_create(ut_features);
    memset(members, 0, sizeof(members));
    for (i = 0; i < count; ++i) {
        members[i].worker = ut_worker_create(context);
        am_listen(members[i].worker, ID, on_question, &members[i], 0);
        am_listen(members[i].worker, ANSWER, on_answer, &members[i], 0);
    }
    for (i = 0; i < count; ++i) {
        for (k = 0; k < count; ++k) {
            members[i].eps[k] = ut_ep_create(members[i].worker, members[k].worker);
        }
    }
}

static void close_all(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t closes[WORKERS * WORKERS];
    unsigned i;

    for (i = 0; i < count * count; ++i) {
        closes[i] = ucp_ep_close_nbx(members[i / count].eps[i % count], &none);
    }
    ut_clock_start();
    for (i = 0; i < count * count; ++i) {
        while (UCS_PTR_IS_PTR(closes[i]) && (ucp_request_check_status(closes[i]) == UCS_INPROGRESS)) {
            progress_all();
            ut_clock_check("a close");
        }
        if (UCS_PTR_IS_PTR(closes[i])) {
            ucp_request_free(closes[i]);
        }
    }
    for (i = 0; i < count; ++i) {
        ucp_worker_destroy(members[i].worker);
    }
    ucp_cleanup(context);
}

static void ask(am_send_t *send, ucp_ep_h ep, unsigned from, unsigned number)
{
    am_what_t what = {.id            = ID,
                      .flags         = AM_EAGER | AM_REPLY,
                      .header_length = 8,
                      .length        = length_of(number),
                      .stamp         = {.source = from, .number = number}};

    am_send(send, ep, &what);
}

static bool all_answered(void)
{
    unsigned i;

    for (i = 0; i < count * count; ++i) {
        if (members[i / count].answers[i % count] < EACH) {
            return false;
        }
    }
    return true;
}

/* Everybody asks everybody, itself too */
static void everybody(void)
{
    am_send_t *sends = calloc(WORKERS * WORKERS * EACH, sizeof(*sends));
    unsigned number, i, posted = 0;
    ut_pair_t one = {.a = &one.sides[0], .b = &one.sides[0]};

    open_all();
    for (number = 0; number < EACH; ++number) {
        for (i = 0; i < count * count; ++i) {
            ask(&sends[posted++], members[i / count].eps[i % count], i / count, number);
        }
        progress_all();
    }
    ut_clock_start();
    while (!all_answered()) {
        progress_all();
        ut_clock_check("answers from everybody");
    }
    for (i = 0; i < posted; ++i) {
        one.a->worker = members[(i % (count * count)) / count].worker;
        UT_CHECK_STATUS(am_send_end(&one, &sends[i]), UCS_OK, "am_send");
    }
    close_all();
    free(sends);
}

static unsigned any_answers;

static ucs_status_t on_any_answer(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                  const ucp_am_recv_param_t *param)
{
    ++any_answers;
    return UCS_OK;
}

/* Two endpoints from one worker to another, as if they were two senders */
static void two_endpoints(void)
{
    am_send_t *sends = calloc(2 * EACH, sizeof(*sends));
    ut_pair_t pair;
    ucp_ep_h second;
    unsigned i;

    am_open(&pair);
    second = ut_ep_create(pair.a->worker, pair.b->worker);
    memset(members, 0, sizeof(members));
    am_listen(pair.b->worker, ID, on_question, &members[0], 0);
    am_listen(pair.a->worker, ANSWER, on_any_answer, NULL, 0);
    any_answers = 0;
    for (i = 0; i < 2 * EACH; ++i) {
        ask(&sends[i], (i % 2) ? second : pair.a->ep, i % 2, i / 2);
    }
    am_await(&pair, &any_answers, 2 * EACH, "answers to two endpoints");
    for (i = 0; i < 2 * EACH; ++i) {
        UT_CHECK_STATUS(am_send_end(&pair, &sends[i]), UCS_OK, "am_send");
    }
    ut_ep_close(&pair, second);
    ut_pair_close(&pair);
    free(sends);
}

static const ut_test_t tests[] = {AM_TEST(everybody), AM_TEST(two_endpoints)};

UT_MAIN(tests)
