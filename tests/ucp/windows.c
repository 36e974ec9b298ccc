/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows of large messages that are matched at once, while others which nobody receives yet hold most of what such messages go
 * through: some have to wait for others. With receives cancelled and requests freed in between, beside a receiver that has stopped,
 * before the end of a worker and before its endpoint is closed.
 */
#include "ucp_test.h"

enum { WINDOW = 16, HELD = 9, LENGTH = 300000, TAG_UNMATCHED = 1000, TAG_HELD = 2000, TURNS = 3 };

typedef struct window {
    ut_data_t from[WINDOW], to[WINDOW];
    ut_op_t send[WINDOW], recv[WINDOW];
    unsigned seed;
} window_t;

static ut_pair_t pair;
static window_t first, second;
static ut_data_t held[HELD];
static ut_op_t held_send[HELD];

static void open_window(window_t *window, ut_layout_t layout, unsigned seed)
{
    unsigned i;

    window->seed = seed;
    for (i = 0; i < WINDOW; ++i) {
        ut_data_open(&window->from[i], layout, LENGTH);
        ut_data_open(&window->to[i], layout, LENGTH);
        ut_data_fill(&window->from[i], seed + i);
    }
}

static void close_window(window_t *window)
{
    unsigned i;

    for (i = 0; i < WINDOW; ++i) {
        ut_data_close(&window->from[i]);
        ut_data_close(&window->to[i]);
    }
}

/* From @a from to the b side of @a to, receives first: all are matched as soon as they come */
static void start_window(window_t *window, const ut_side_t *from, const ut_pair_t *to)
{
    unsigned i;

    for (i = 0; i < WINDOW; ++i) {
        ut_recv(&window->recv[i], to, UT_RECV_NBX, &window->to[i], window->seed + i, UT_TAG_ALL);
    }
    for (i = 0; i < WINDOW; ++i) {
        ut_send(&window->send[i], from, UT_SEND_NBX, &window->from[i], window->seed + i);
    }
}

/* The receiver first, until it has matched them all */
static void take_turns(const ut_pair_t *sides, unsigned turns)
{
    unsigned i;

    for (i = 0; (turns > 0) && (i < 2 * WINDOW); ++i) {
        ucp_worker_progress(sides->b->worker);
    }
    while (turns-- > 0) {
        ut_progress(sides);
    }
}

static void check_message(window_t *window, unsigned i)
{
    UT_CHECK_STATUS(ut_wait(&pair, &window->recv[i]), UCS_OK, "receive");
    UT_CHECK(ut_data_check(&window->to[i], LENGTH, window->seed + i), "wrong content of message %u", i);
}

static void end_window(window_t *window)
{
    unsigned i;

    for (i = 0; i < WINDOW; ++i) {
        check_message(window, i);
        UT_CHECK_STATUS(ut_wait(&pair, &window->send[i]), UCS_OK, "send");
    }
}

/* Large enough messages for everything that the two have to agree on, and then those that nobody receives yet */
static void open_pair(uint64_t features)
{
    unsigned i;

    ut_pair_open(&pair, features);
    ut_exchange(&pair, LENGTH, 1);
    ut_exchange(&pair, LENGTH, 2);
    for (i = 0; i < HELD; ++i) {
        ut_data_open(&held[i], UT_CONTIG1, LENGTH);
        ut_data_fill(&held[i], TAG_HELD + i);
        ut_send(&held_send[i], pair.a, UT_SEND_NBX, &held[i], TAG_HELD + i);
    }
}

static void free_held(void)
{
    unsigned i;

    for (i = 0; i < HELD; ++i) {
        ut_data_close(&held[i]);
    }
}

static void receive_held(void)
{
    ut_data_t to;
    ut_op_t recv;
    unsigned i;

    for (i = 0; i < HELD; ++i) {
        ut_data_open(&to, UT_CONTIG1, LENGTH);
        ut_recv(&recv, &pair, UT_RECV_NBX, &to, TAG_HELD + i, UT_TAG_ALL);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK(ut_data_check(&to, LENGTH, TAG_HELD + i), "wrong content of what was held");
        UT_CHECK_STATUS(ut_wait(&pair, &held_send[i]), UCS_OK, "send");
        ut_data_close(&to);
    }
    free_held();
}

static void close_pair(void)
{
    receive_held();
    ut_pair_close(&pair);
}

static void of_any_layout(void)
{
    static const ut_layout_t layouts[] = {UT_CONTIG1, UT_IOV3, UT_GENERIC};
    unsigned i;

    open_pair(0);
    for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
        open_window(&first, layouts[i], 100);
        start_window(&first, pair.a, &pair);
        take_turns(&pair, 1);
        end_window(&first);
        close_window(&first);
    }
    close_pair();
}

/* Another window comes while the first is under way; so do messages to oneself */
static void one_after_the_other(void)
{
    ut_pair_t self = {.a = &pair.sides[0], .b = &pair.sides[0]};
    ut_side_t to_self;

    open_pair(0);
    to_self    = *pair.a;
    to_self.ep = ut_ep_create(pair.a->worker, pair.a->worker);
    open_window(&first, UT_CONTIG1, 200);
    open_window(&second, UT_IOV3, 300);
    start_window(&first, pair.a, &pair);
    take_turns(&pair, 3);
    start_window(&second, &to_self, &self);
    end_window(&second);
    end_window(&first);
    close_window(&first);
    close_window(&second);
    ut_ep_close(&pair, to_self.ep);
    close_pair();
}

/* ------------------------------------------------- cancelled and freed */

static void cancel_unmatched(ut_op_t *op)
{
    ucp_request_cancel(pair.b->worker, op->request);
    UT_CHECK_STATUS(ut_wait(&pair, op), UCS_ERR_CANCELED, "cancelled receive");
}

/* A receive that was matched can't be cancelled; another one takes the place of one that was not */
static void cancel_any(window_t *window, unsigned i)
{
    if (ut_op_is_done(&window->recv[i])) {
        return;
    }
    ucp_request_cancel(pair.b->worker, window->recv[i].request);
    if (ut_wait(&pair, &window->recv[i]) == UCS_ERR_CANCELED) {
        ut_recv(&window->recv[i], &pair, UT_RECV_NBX, &window->to[i], window->seed + i, UT_TAG_ALL);
    }
}

static void with_receives_cancelled(void)
{
    ut_op_t unmatched[WINDOW];
    ut_data_t nothing;
    unsigned i, turns;

    open_pair(0);
    ut_data_open(&nothing, UT_CONTIG1, LENGTH);
    for (turns = 0; turns < TURNS; ++turns) {
        open_window(&first, UT_CONTIG1, 400);
        for (i = 0; i < WINDOW; ++i) {
            ut_recv(&unmatched[i], &pair, UT_RECV_NBX, &nothing, TAG_UNMATCHED + i, UT_TAG_ALL);
        }
        start_window(&first, pair.a, &pair);
        take_turns(&pair, turns);
        for (i = 0; i < WINDOW; ++i) {
            cancel_unmatched(&unmatched[i]);
            cancel_any(&first, i);
        }
        end_window(&first);
        close_window(&first);
    }
    ut_data_close(&nothing);
    close_pair();
}

static void must_not_be_called(void *request, ucs_status_t status, void *user_data)
{
    UT_REQUIRE(false, "the callback of a request that was freed");
}

/* Nobody holds the requests of these sends any more; their receivers wait all the same */
static void with_requests_freed(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = must_not_be_called};
    ucs_status_ptr_t request;
    unsigned i;

    open_pair(0);
    open_window(&first, UT_CONTIG1, 500);
    for (i = 0; i < WINDOW; ++i) {
        ut_recv(&first.recv[i], &pair, UT_RECV_NBX, &first.to[i], first.seed + i, UT_TAG_ALL);
        request = ucp_tag_send_nbx(pair.a->ep, first.from[i].buffer, LENGTH, first.seed + i, &param);
        UT_REQUIRE(!UCS_PTR_IS_ERR(request), "send");
        if (request != NULL) {
            ucp_request_free(request);
        }
    }
    take_turns(&pair, 1);
    for (i = 0; i < WINDOW; ++i) {
        check_message(&first, i);
    }
    ut_exchange(&pair, LENGTH, 1);
    close_pair(); /* what is sent may still be read until here */
    close_window(&first);
}

/* ------------------------------------------- a receiver that has stopped */

static ucs_status_t sink_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    return UCS_OK;
}

/* A side that gets turns from this program only: a handler of its own keeps others from making progress for it */
static void open_third(ut_side_t *third)
{
    ucp_am_handler_param_t handler = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 7, .cb = sink_am};

    third->context = pair.a->context;
    third->worker  = ut_worker_create(third->context);
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(third->worker, &handler), UCS_OK, "set_am_recv_handler");
    third->ep = ut_ep_create(third->worker, pair.a->worker);
}

static void wait_for_third(const ut_side_t *third, ut_op_t *op)
{
    ut_clock_start();
    while (!ut_op_is_done(op)) {
        ut_progress(&pair);
        ucp_worker_progress(third->worker);
        ut_clock_check("an operation with the third side");
    }
    UT_CHECK_STATUS(ut_wait(&pair, op), UCS_OK, "operation with the third side");
}

static void close_third(const ut_side_t *third, ucp_ep_h ep)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t closing = ucp_ep_close_nbx(ep, &none);

    ut_clock_start();
    while (UCS_PTR_IS_PTR(closing) && (ucp_request_check_status(closing) == UCS_INPROGRESS)) {
        ut_progress(&pair);
        ucp_worker_progress(third->worker);
        ut_clock_check("a close");
    }
    if (UCS_PTR_IS_PTR(closing)) {
        ucp_request_free(closing);
    }
}

/* The third side takes @a turns turns and stops: messages to the other one go on */
static void stop_after(ut_side_t *third, const ut_side_t *to_third, unsigned turns)
{
    ut_pair_t sides = {.a = pair.a, .b = third};
    unsigned i;

    open_window(&first, UT_CONTIG1, 600);
    open_window(&second, UT_CONTIG1, 700);
    start_window(&first, to_third, &sides);
    take_turns(&sides, turns);
    start_window(&second, pair.a, &pair);
    end_window(&second);
    for (i = 0; i < WINDOW; ++i) {
        wait_for_third(third, &first.recv[i]);
        wait_for_third(third, &first.send[i]);
        UT_CHECK(ut_data_check(&first.to[i], LENGTH, first.seed + i), "wrong content of message %u", i);
    }
    close_window(&first);
    close_window(&second);
}

static void beside_one_who_stops(void)
{
    ut_side_t third, to_third;
    unsigned turns;

    if (strcmp(getenv("UCX_TLS"), "self") == 0) {
        return;
    }
    open_pair(UCP_FEATURE_AM);
    open_third(&third);
    to_third    = *pair.a;
    to_third.ep = ut_ep_create(pair.a->worker, third.worker);
    for (turns = 0; turns < TURNS; ++turns) {
        stop_after(&third, &to_third, turns);
    }
    close_third(&third, to_third.ep);
    close_third(&third, third.ep);
    ucp_worker_destroy(third.worker);
    close_pair();
}

/* --------------------------------------------------- before the end */

/* One worker goes while messages wait in it, the other one makes some more turns and goes, too */
static void end_after(unsigned turns, bool sender_first)
{
    ut_side_t *sides[2];
    unsigned i;

    open_pair(0);
    sides[0] = sender_first ? pair.a : pair.b;
    sides[1] = sender_first ? pair.b : pair.a;
    open_window(&first, UT_CONTIG1, 800);
    start_window(&first, pair.a, &pair);
    take_turns(&pair, turns);
    ucp_worker_destroy(sides[0]->worker);
    if (sides[1] != sides[0]) {
        for (i = 0; i < 100; ++i) {
            ucp_worker_progress(sides[1]->worker);
        }
        ucp_worker_destroy(sides[1]->worker);
    }
    ucp_cleanup(pair.a->context);
    close_window(&first);
    free_held();
}

static void before_the_end(void)
{
    unsigned turns;

    if (!ut_uci_is_on() && (strstr(getenv("UCX_TLS"), "cma") != NULL)) {
        return; /* an assertion of UCX's fails */
    }
    for (turns = 0; turns < 2 * TURNS; ++turns) {
        end_after(turns / 2, turns % 2);
    }
}

static bool window_is_sent(void)
{
    unsigned i = 0;

    while ((i < WINDOW) && ut_op_is_done(&first.send[i])) {
        ++i;
    }
    return i == WINDOW;
}

/* Where UCX buffers what is sent (UCX_RNDV_THRESH), it arrives although its endpoint has been closed behind it */
static void before_a_close(void)
{
    unsigned turns;

    for (turns = 0; turns < TURNS; ++turns) {
        open_pair(0);
        open_window(&first, UT_CONTIG1, 850);
        start_window(&first, pair.a, &pair);
        take_turns(&pair, turns);
        if (window_is_sent()) {
            ut_ep_close(&pair, pair.a->ep);
            end_window(&first);
            pair.a->ep = ut_ep_create(pair.a->worker, pair.b->worker);
        }
        end_window(&first);
        close_window(&first);
        close_pair();
    }
}

/* Only endpoints over tcp can be closed by force; where there is shared memory, too, messages go there by another one */
static void closed_by_force_after(unsigned turns)
{
    ucp_ep_params_t params    = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                 .err_mode   = UCP_ERR_HANDLING_MODE_PEER};
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucp_address_t *address;
    ucs_status_t status;
    size_t length;
    ucp_ep_h ep;
    unsigned i;

    open_pair(0);
    UT_REQUIRE(ucp_worker_get_address(pair.b->worker, &address, &length) == UCS_OK, "ucp_worker_get_address");
    params.address = address;
    status         = ucp_ep_create(pair.a->worker, &params, &ep);
    ucp_worker_release_address(pair.b->worker, address);
    UT_REQUIRE(status == UCS_OK, "ucp_ep_create: %s", ucs_status_string(status));
    open_window(&first, UT_CONTIG1, 900);
    start_window(&first, pair.a, &pair);
    take_turns(&pair, turns);
    ut_ep_close(&pair, pair.a->ep);
    ut_wait_ptr(&pair, ucp_ep_close_nbx(ep, &force));
    for (i = 0; i < WINDOW; ++i) {
        status = ut_wait(&pair, &first.send[i]);
        UT_CHECK((status == UCS_OK) || UCS_STATUS_IS_ERR(status), "send");
    }
    ucp_worker_destroy(pair.a->worker);
    for (i = 0; i < 100; ++i) {
        ucp_worker_progress(pair.b->worker);
    }
    ucp_worker_destroy(pair.b->worker);
    ucp_cleanup(pair.a->context);
    close_window(&first);
    free_held();
}

static void before_a_forced_close(void)
{
    unsigned turns;

    if ((strstr(getenv("UCX_TLS"), "tcp") == NULL) || (strstr(getenv("UCX_TLS"), "posix") == NULL)) {
        return;
    }
    for (turns = 0; turns < TURNS; ++turns) {
        closed_by_force_after(turns);
    }
}

static const ut_test_t tests[] = {UT_TEST(of_any_layout),           UT_TEST(one_after_the_other),
                                  UT_TEST(with_receives_cancelled), UT_TEST(with_requests_freed),
                                  UT_TEST(beside_one_who_stops),    UT_TEST(before_the_end),
                                  UT_TEST(before_a_close),          UT_TEST(before_a_forced_close)};

UT_MAIN(tests)
