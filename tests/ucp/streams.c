/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams: bytes of any size of send arrive once and in order, whatever the sizes of the receives, by each of the functions; endpoints are
 * told apart; what waits is told of once; a close cancels.
 *
 * What UCX 1.13.1 does, and its documents do not say: a receive of elements of several bytes ends with whole ones; a receive in which
 * there is all it asks for returns no request, and calls nobody back, whatever its flags; an endpoint is polled once for what comes until
 * all of it has been taken; the n-th endpoint of one worker to another is connected to the n-th of that one.
 */
#include "ucp_test.h"

enum { LARGE = 24 << 20, WINDOW = 64, TURNS = 4000, TURNS_WITH_FAULTS = 800 };

/* A position in a stream of bytes that follow from its number */
typedef struct flow {
    unsigned stream;
    size_t sent, received;
} flow_t;

/* A receive under way */
typedef struct receipt {
    void *request;
    ucs_status_t status;
    size_t length; /* when it is over */
    int calls;
} receipt_t;

static ut_pair_t pair;
static char *out, *in;
static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = (random_state * 6364136223846793005ul) + 1442695040888963407ul;
    return (unsigned)((random_state >> 33) % below);
}

static char byte_at(unsigned stream, size_t position)
{
    return (char)((position * 7) + ((position >> 8) * 13) + ((position >> 16) * 31) + (stream * 101) + 1);
}

static void open_pair(void)
{
    ut_pair_open_as(&pair, ut_features, &(ucp_worker_params_t){.field_mask = 0});
    out          = malloc(LARGE);
    in           = malloc(LARGE);
    random_state = 1;
}

static void close_pair(void)
{
    ut_settle(&pair);
    ut_pair_close(&pair);
    free(out);
    free(in);
}

/* --------------------------------------------------------- operations */

static void on_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    receipt_t *receipt = user_data;

    receipt->status = status;
    receipt->length = length;
    ++receipt->calls;
}

static ucs_status_ptr_t send_bytes(ucp_ep_h ep, flow_t *flow, char *buffer, size_t length)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    size_t i;

    for (i = 0; i < length; ++i) {
        buffer[i] = byte_at(flow->stream, flow->sent + i);
    }
    flow->sent += length;
    return ucp_stream_send_nbx(ep, buffer, length, &none);
}

static void check_bytes(flow_t *flow, const char *data, size_t length)
{
    size_t i;

    for (i = 0; (i < length) && (data[i] == byte_at(flow->stream, flow->received + i)); ++i) {
    }
    UT_CHECK(i == length, "stream %u: byte %zu is wrong", flow->stream, flow->received + i);
    flow->received += length;
}

static void receive(receipt_t *receipt, ucp_ep_h ep, void *buffer, size_t length, unsigned flags)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS,
                                 .cb.recv_stream = on_received,
                                 .user_data      = receipt,
                                 .flags          = flags};
    ucs_status_ptr_t ptr;

    *receipt         = (receipt_t){.status = UCS_INPROGRESS};
    ptr              = ucp_stream_recv_nbx(ep, buffer, length, &receipt->length, &param);
    receipt->request = UCS_PTR_IS_PTR(ptr) ? ptr : NULL;
    if (!UCS_PTR_IS_PTR(ptr)) {
        receipt->status = UCS_PTR_STATUS(ptr);
        UT_CHECK(receipt->calls == 0, "a receive that is over at once has called back");
    }
}

static void wait_for(receipt_t *receipt)
{
    size_t told = SIZE_MAX;

    if (receipt->request == NULL) {
        return;
    }
    ut_clock_start();
    while (ucp_stream_recv_request_test(receipt->request, &told) == UCS_INPROGRESS) {
        ut_progress(&pair);
        ut_clock_check("receive of a stream");
    }
    UT_CHECK((receipt->calls == 1) && (told == receipt->length), "%d calls, %zu bytes by the call, %zu by the test",
             receipt->calls, receipt->length, told);
    ucp_request_free(receipt->request);
    receipt->request = NULL;
}

static void receive_all(flow_t *flow, ucp_ep_h ep, size_t length)
{
    receipt_t receipt;

    receive(&receipt, ep, in, length, UCP_STREAM_RECV_FLAG_WAITALL);
    wait_for(&receipt);
    UT_CHECK_STATUS(receipt.status, UCS_OK, "ucp_stream_recv_nbx");
    UT_CHECK(receipt.length == length, "%zu bytes of %zu", receipt.length, length);
    check_bytes(flow, in, length);
}

/* -------------------------------------------------------------- sizes */

static void sizes_of(size_t length, bool first)
{
    flow_t flow = {.stream = 1};
    ucs_status_ptr_t ptr;
    receipt_t receipt;

    if (first) { /* the receive is there before */
        receive(&receipt, pair.b->ep, in, length, UCP_STREAM_RECV_FLAG_WAITALL);
        ptr = send_bytes(pair.a->ep, &flow, out, length);
        wait_for(&receipt);
        UT_CHECK(receipt.length == length, "%zu bytes of %zu", receipt.length, length);
        check_bytes(&flow, in, length);
    } else {
        ptr = send_bytes(pair.a->ep, &flow, out, length);
        ut_settle(&pair);
        receive_all(&flow, pair.b->ep, length);
    }
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "ucp_stream_send_nbx");
}

static void sizes(void)
{
    static const size_t all[] = {1, 8, 100, 1000, 4096, 8191, 8192, 8193, 65536, 300000, 1 << 20, LARGE};
    unsigned i;

    open_pair();
    for (i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        sizes_of(all[i], false);
        sizes_of(all[i], true);
    }
    close_pair();
}

/* A send is over though nobody receives */
static void sends_need_no_receive(void)
{
    flow_t flow = {.stream = 2};
    unsigned i;

    open_pair();
    for (i = 0; i < 8; ++i) {
        UT_CHECK_STATUS(ut_wait_ptr(&pair, send_bytes(pair.a->ep, &flow, out, 500000)), UCS_OK, "send");
    }
    receive_all(&flow, pair.b->ep, 8 * 500000);
    close_pair();
}

static void elements(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_contig(8)};
    flow_t flow               = {.stream = 3};
    ucs_status_ptr_t ptr;
    size_t length = 0;

    open_pair();
    ptr = ucp_stream_recv_nbx(pair.b->ep, in, 10, &length, &param);
    UT_REQUIRE(UCS_PTR_IS_PTR(ptr), "a receive of nothing is over");
    ut_wait_ptr(&pair, send_bytes(pair.a->ep, &flow, out, 13));
    ut_settle(&pair);
    UT_CHECK(ucp_request_check_status(ptr) == UCS_INPROGRESS, "over with a part of an element");
    ut_wait_ptr(&pair, send_bytes(pair.a->ep, &flow, out, 3));
    ut_clock_start();
    while (ucp_stream_recv_request_test(ptr, &length) == UCS_INPROGRESS) {
        ut_progress(&pair);
        ut_clock_check("two elements");
    }
    UT_CHECK(length == 16, "%zu bytes", length);
    check_bytes(&flow, in, length);
    UT_CHECK_STATUS(ucp_request_test(ptr, NULL), UCS_OK, "ucp_request_test");
    ucp_request_free(ptr);
    close_pair();
}

static void layouts(void)
{
    const size_t length = 20000;
    ut_layout_t layout;

    open_pair();
    for (layout = 0; layout < UT_LAYOUTS; ++layout) {
        ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE};
        ut_layout_t to            = (layout + 1) % UT_LAYOUTS;
        ut_data_t from, into;
        ucs_status_ptr_t sent, ptr;
        size_t got = 0;

        ut_data_open(&from, layout, length);
        ut_data_open(&into, to, length);
        ut_data_fill(&from, layout);
        ut_data_poison(&into);
        param.datatype = from.datatype;
        sent           = ucp_stream_send_nbx(pair.a->ep, from.buffer, from.count, &param);
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags    = UCP_STREAM_RECV_FLAG_WAITALL;
        param.datatype = into.datatype;
        ptr            = ucp_stream_recv_nbx(pair.b->ep, into.buffer, into.count, &got, &param);
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait_ptr(&pair, sent), UCS_OK, "send");
        UT_CHECK(ut_data_check(&into, length, layout), "%s to %s: wrong", ut_layout_names[layout], ut_layout_names[to]);
        ut_data_close(&from);
        ut_data_close(&into);
    }
    close_pair();
}

/* --------------------------------------------------------- any function */

typedef struct side_state {
    ucp_ep_h ep;
    flow_t flow; /* what it sends */
    struct {
        ucs_status_ptr_t request;
        char *buffer;
    } sends[WINDOW];
    unsigned next;
} side_state_t;

static size_t draw_length(void)
{
    static const unsigned limits[] = {16, 200, 3000, 9000, 70000};

    return 1 + draw(limits[draw(sizeof(limits) / sizeof(limits[0]))]);
}

static void send_some(side_state_t *side)
{
    unsigned i    = side->next++ % WINDOW;
    size_t length = draw_length();

    UT_CHECK_STATUS(ut_wait_ptr(&pair, side->sends[i].request), UCS_OK, "send");
    free(side->sends[i].buffer);
    side->sends[i].buffer  = malloc(length);
    side->sends[i].request = send_bytes(side->ep, &side->flow, side->sends[i].buffer, length);
}

/* Two pieces are given back in the other order */
static void take_data(ucp_ep_h ep, flow_t *flow)
{
    size_t lengths[2];
    void *data[2];
    unsigned count = 0;

    while ((count < 2) && ((data[count] = ucp_stream_recv_data_nb(ep, &lengths[count])) != NULL)) {
        UT_REQUIRE(!UCS_PTR_IS_ERR(data[count]), "recv_data: %s", ucs_status_string(UCS_PTR_STATUS(data[count])));
        check_bytes(flow, data[count], lengths[count]);
        ++count;
    }
    while (count > 0) {
        ucp_stream_data_release(ep, data[--count]);
    }
}

static void receive_some(ucp_ep_h ep, flow_t *flow)
{
    size_t left = flow->sent - flow->received, length = draw_length();
    receipt_t receipts[3];
    unsigned i, count, flags = draw(2) ? UCP_STREAM_RECV_FLAG_WAITALL : 0;

    if (draw(3) == 0) {
        take_data(ep, flow);
        return;
    }
    for (count = 0; (count < 3) && (left > 0); ++count) {
        length = (length < left) ? length : left;
        receive(&receipts[count], ep, in + (count * 100000), length, flags);
        left -= length;
        if (!flags) {
            ++count;
            break; /* how much it gets is not known */
        }
    }
    for (i = 0; i < count; ++i) {
        wait_for(&receipts[i]);
        UT_CHECK_STATUS(receipts[i].status, UCS_OK, "receive");
        check_bytes(flow, in + (i * 100000), receipts[i].length);
    }
}

static void at_random(void)
{
    side_state_t sides[2] = {{.flow = {.stream = 4}}, {.flow = {.stream = 5}}};
    unsigned turn, i, turns = ut_faults_are_on() ? TURNS_WITH_FAULTS : TURNS;
    bool both;

    open_pair();
    both        = (pair.a != pair.b);
    sides[0].ep = pair.a->ep;
    sides[1].ep = pair.b->ep;
    for (turn = 0; turn < turns; ++turn) {
        side_state_t *side = &sides[both ? draw(2) : 0];

        if (draw(2) && (side->flow.sent - side->flow.received < 500000)) {
            send_some(side);
        } else {
            receive_some((side == &sides[0]) ? pair.b->ep : pair.a->ep, &side->flow);
        }
        ut_progress(&pair);
    }
    for (i = 0; i < 2; ++i) {
        receive_all(&sides[i].flow, (i == 0) ? pair.b->ep : pair.a->ep, sides[i].flow.sent - sides[i].flow.received);
        for (turn = 0; turn < WINDOW; ++turn) {
            UT_CHECK_STATUS(ut_wait_ptr(&pair, sides[i].sends[turn].request), UCS_OK, "send");
            free(sides[i].sends[turn].buffer);
        }
    }
    close_pair();
}

/* The older functions */
static int old_calls;
static size_t old_length;

static void on_old_sent(void *request, ucs_status_t status)
{
    ++old_calls;
}

static void on_old_received(void *request, ucs_status_t status, size_t length)
{
    old_length = length;
    ++old_calls;
}

static void old_functions(void)
{
    flow_t flow = {.stream = 6};
    ucs_status_ptr_t sent, ptr;
    size_t length = 0, i;

    open_pair();
    old_calls = 0;
    for (i = 0; i < 30000; ++i) {
        out[i] = byte_at(6, i);
    }
    ptr = ucp_stream_recv_nb(pair.b->ep, in, 30000, ucp_dt_make_contig(1), on_old_received, &length,
                             UCP_STREAM_RECV_FLAG_WAITALL);
    UT_REQUIRE(UCS_PTR_IS_PTR(ptr), "over before anything was sent");
    sent = ucp_stream_send_nb(pair.a->ep, out, 30000, ucp_dt_make_contig(1), on_old_sent, 0);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "ucp_stream_recv_nb");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, sent), UCS_OK, "ucp_stream_send_nb");
    UT_CHECK((old_length == 30000) && (old_calls >= 1), "%zu bytes, %d calls", old_length, old_calls);
    check_bytes(&flow, in, 30000);
    close_pair();
}

static void at_once(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
    flow_t flow               = {.stream = 7};
    ucs_status_ptr_t ptr;
    size_t length = 0;

    open_pair();
    ptr = ucp_stream_recv_nbx(pair.b->ep, in, 10, &length, &param);
    UT_CHECK(UCS_PTR_STATUS(ptr) == UCS_ERR_NO_RESOURCE, "nothing is there, and %s",
             ucs_status_string(UCS_PTR_STATUS(ptr)));
    UT_CHECK_STATUS(ut_wait_ptr(&pair, send_bytes(pair.a->ep, &flow, out, 10)), UCS_OK, "send");
    ut_clock_start();
    do {
        ut_progress(&pair);
        ut_clock_check("what is here at once");
        ptr = ucp_stream_recv_nbx(pair.b->ep, in, 10, &length, &param);
    } while (UCS_PTR_STATUS(ptr) == UCS_ERR_NO_RESOURCE);
    UT_CHECK((ptr == NULL) && (length == 10), "%zu bytes", length);
    check_bytes(&flow, in, 10);
    ptr = ucp_stream_send_nbx(pair.a->ep, out, 1,
                              &(ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = 1});
    UT_CHECK(UCS_PTR_STATUS(ptr) == UCS_ERR_NOT_IMPLEMENTED, "a flag that does not exist: %s",
             ucs_status_string(UCS_PTR_STATUS(ptr)));
    close_pair();
}

/* ---------------------------------------------------------- endpoints */

static unsigned poll_b(ucp_stream_poll_ep_t *eps, unsigned max)
{
    ssize_t count = ucp_stream_worker_poll(pair.b->worker, eps, max, 0);

    UT_REQUIRE(count >= 0, "ucp_stream_worker_poll: %s", ucs_status_string((ucs_status_t)count));
    return (unsigned)count;
}

static void await_poll(ucp_ep_h wanted)
{
    ucp_stream_poll_ep_t one;

    ut_clock_start();
    while (poll_b(&one, 1) == 0) {
        ut_progress(&pair);
        ut_clock_check("an endpoint to be polled");
    }
    UT_CHECK(one.ep == wanted, "another endpoint is polled");
}

static void polled_once(void)
{
    flow_t flow = {.stream = 8};
    ucp_stream_poll_ep_t one;
    ucs_status_ptr_t ptr;

    open_pair();
    UT_CHECK(poll_b(&one, 1) == 0, "nothing was sent");
    ptr = send_bytes(pair.a->ep, &flow, out, 100);
    await_poll(pair.b->ep);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "send");
    ut_settle(&pair);
    UT_CHECK(poll_b(&one, 1) == 0, "polled twice");
    ptr = send_bytes(pair.a->ep, &flow, out, 100);
    await_poll(pair.b->ep);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "send");
    receive_all(&flow, pair.b->ep, 200);
    ut_settle(&pair);
    UT_CHECK(poll_b(&one, 1) == 0, "polled with nothing there");
    ptr = send_bytes(pair.a->ep, &flow, out, 50); /* taken before it is asked */
    receive_all(&flow, pair.b->ep, 50);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptr), UCS_OK, "send");
    ut_settle(&pair);
    UT_CHECK(poll_b(&one, 1) == 0, "polled after all was taken");
    close_pair();
}

static ucp_ep_h connect_as(const ut_side_t *from, const ut_side_t *to, void *user_data, unsigned flags)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_USER_DATA | UCP_EP_PARAM_FIELD_FLAGS,
                              .flags      = flags,
                              .user_data  = user_data};

    return ut_ep_create_as(from->worker, to->worker, params);
}

static ucp_ep_h connect_to(const ut_side_t *from, const ut_side_t *to, void *user_data)
{
    return connect_as(from, to, user_data, 0);
}

/* Of endpoints to oneself each brings what it has sent, or they are pairs */
static void to_oneself(void)
{
    static const unsigned flags[] = {0, UCP_EP_PARAMS_FLAGS_NO_LOOPBACK};
    flow_t flows[2];
    ucs_status_ptr_t ptrs[2];
    ucp_ep_h eps[2];
    unsigned way, i;

    for (way = 0; way < 2; ++way) {
        open_pair();
        if (pair.a == pair.b) {
            close_pair(); /* it has one already */
            return;
        }
        for (i = 0; i < 2; ++i) {
            flows[i] = (flow_t){.stream = 12 + i};
            eps[i]   = connect_as(pair.a, pair.a, NULL, flags[way]);
        }
        for (i = 0; i < 2; ++i) {
            ptrs[i] = send_bytes(eps[i], &flows[i], out + (i * 3000), 3000);
        }
        for (i = 0; i < 2; ++i) {
            receive_all(&flows[i], eps[i ^ way], 3000);
            UT_CHECK_STATUS(ut_wait_ptr(&pair, ptrs[i]), UCS_OK, "send");
        }
        for (i = 0; i < 2; ++i) {
            ut_ep_close(&pair, eps[i]);
        }
        close_pair();
    }
}

/* The second of one side leads to the second of the other, made before or after the bytes have come */
static void second_endpoints(void)
{
    flow_t first = {.stream = 9}, second = {.stream = 10};
    ucp_stream_poll_ep_t polled;
    ucs_status_ptr_t ptrs[2];
    ucp_ep_h a, b;

    open_pair();
    if (pair.a == pair.b) {
        close_pair();
        return;
    }
    a       = connect_to(pair.a, pair.b, NULL);
    ptrs[0] = send_bytes(a, &second, out, 3000);
    ptrs[1] = send_bytes(pair.a->ep, &first, out + 3000, 20000);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptrs[1]), UCS_OK, "send");
    ut_settle(&pair);
    while (poll_b(&polled, 1) > 0) {
        UT_CHECK(polled.ep == pair.b->ep, "an endpoint that nobody has made");
    }
    receive_all(&first, pair.b->ep, 20000);
    b = connect_to(pair.b, pair.a, &second);
    ut_clock_start();
    while (poll_b(&polled, 1) == 0) {
        ut_progress(&pair);
        ut_clock_check("the second endpoint");
    }
    UT_CHECK((polled.ep == b) && (polled.user_data == &second), "polled: endpoint %p, user data %p", (void *)polled.ep,
             polled.user_data);
    receive_all(&second, b, 3000);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ptrs[0]), UCS_OK, "send");
    ut_ep_close(&pair, a);
    ut_ep_close(&pair, b);
    close_pair();
}

static void close_cancels(void)
{
    receipt_t receipts[2];
    unsigned i;

    open_pair();
    for (i = 0; i < 2; ++i) {
        receive(&receipts[i], pair.b->ep, in, 100, 0);
        UT_REQUIRE(receipts[i].request != NULL, "a receive of nothing is over");
    }
    ut_ep_close(&pair, pair.b->ep);
    pair.b->ep = connect_to(pair.b, pair.a, NULL);
    for (i = 0; i < 2; ++i) {
        wait_for(&receipts[i]);
        UT_CHECK_STATUS(receipts[i].status, UCS_ERR_CANCELED, "a receive of a closed endpoint");
    }
    close_pair();
}

/* What nobody has taken */
static void left_over(void)
{
    flow_t flow = {.stream = 11};
    size_t length;
    void *data;

    open_pair();
    UT_CHECK_STATUS(ut_wait_ptr(&pair, send_bytes(pair.a->ep, &flow, out, 5000)), UCS_OK, "send");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, send_bytes(pair.a->ep, &flow, out, 200000)), UCS_OK, "send");
    ut_clock_start();
    while ((data = ucp_stream_recv_data_nb(pair.b->ep, &length)) == NULL) {
        ut_progress(&pair);
        ut_clock_check("data");
    }
    check_bytes(&flow, data, length);
    ucp_stream_data_release(pair.b->ep, data);
    close_pair();
}

/* A test that runs in a context with tags, and in one that has nothing but streams */
#define STREAM_TEST(_name) \
    {#_name, _name, UCP_FEATURE_TAG | UCP_FEATURE_STREAM}, \
    { \
#_name "_alone", _name, UCP_FEATURE_STREAM \
    }

static const ut_test_t tests[] = {
        STREAM_TEST(sizes),
        STREAM_TEST(sends_need_no_receive),
        STREAM_TEST(elements),
        STREAM_TEST(layouts),
        STREAM_TEST(at_random),
        STREAM_TEST(old_functions),
        STREAM_TEST(at_once),
        STREAM_TEST(polled_once),
        STREAM_TEST(second_endpoints),
        STREAM_TEST(to_oneself),
        STREAM_TEST(close_cancels),
        STREAM_TEST(left_over),
};

UT_MAIN(tests)
