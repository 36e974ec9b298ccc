/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contexts, workers, addresses and endpoints: made, asked, closed in every way, several at a time.
 */
#include "ucp_test.h"

static ut_pair_t pair;

static bool only_self(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls != NULL) && (strcmp(tls, "self") == 0);
}

/* A call that blocks can wait for the other side, which in this process nobody progresses meanwhile */
static bool may_block(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls != NULL) && (strstr(tls, "tcp") == NULL);
}

/* ------------------------------------------------------------ addresses */

static uint64_t uid_of(ucp_address_t *address)
{
    ucp_worker_address_attr_t attr = {.field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID};

    UT_CHECK_STATUS(ucp_worker_address_query(address, &attr), UCS_OK, "ucp_worker_address_query");
    return attr.worker_uid;
}

static void addresses(void)
{
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_THREAD_MODE |
                                            UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    ucp_address_t *one, *two;
    size_t one_length, two_length;
    void *copy;

    ut_pair_open(&pair, UCP_FEATURE_AM);
    UT_CHECK_STATUS(ucp_worker_get_address(pair.a->worker, &one, &one_length), UCS_OK, "ucp_worker_get_address");
    UT_CHECK_STATUS(ucp_worker_get_address(pair.a->worker, &two, &two_length), UCS_OK, "ucp_worker_get_address");
    UT_CHECK_STATUS(ucp_worker_query(pair.a->worker, &attr), UCS_OK, "ucp_worker_query");
    UT_CHECK(one_length == two_length, "addresses of %zu and %zu bytes", one_length, two_length);
    UT_CHECK((one_length == attr.address_length) && (memcmp(one, attr.address, one_length) == 0),
             "ucp_worker_query gives another address");
    UT_CHECK(attr.thread_mode == UCS_THREAD_MODE_SINGLE, "thread mode %d", attr.thread_mode);
    UT_CHECK(attr.max_am_header > 0, "max_am_header %zu", attr.max_am_header);
    copy = malloc(one_length);
    memcpy(copy, one, one_length);
    UT_CHECK((uid_of(one) == uid_of(attr.address)) && (uid_of(copy) == uid_of(one)), "different uids of one worker");
    free(copy);
    ucp_worker_release_address(pair.a->worker, one);
    ucp_worker_release_address(pair.a->worker, two);
    ucp_worker_release_address(pair.a->worker, attr.address);
    if (pair.a != pair.b) {
        UT_CHECK_STATUS(ucp_worker_get_address(pair.a->worker, &one, &one_length), UCS_OK, "get_address");
        UT_CHECK_STATUS(ucp_worker_get_address(pair.b->worker, &two, &two_length), UCS_OK, "get_address");
        UT_CHECK(uid_of(one) != uid_of(two), "two workers with one uid");
        ucp_worker_release_address(pair.a->worker, one);
        ucp_worker_release_address(pair.b->worker, two);
    }
    ut_pair_close(&pair);
}

static void query_without_address(void)
{
    ucp_worker_attr_t attr = {
            .field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE, .address = (void *)7, .address_length = 8};

    ut_pair_open(&pair, 0);
    UT_CHECK_STATUS(ucp_worker_query(pair.a->worker, &attr), UCS_OK, "ucp_worker_query");
    UT_CHECK((attr.address == (void *)7) && (attr.address_length == 8), "fields that were not asked for were written");
    ut_pair_close(&pair);
}

/* Endpoints are made from copies, when the original is long released */
static void address_copies(void)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    size_t length;
    ucp_ep_h ep;
    char *copy;

    ut_pair_open(&pair, 0);
    UT_CHECK_STATUS(ucp_worker_get_address(pair.b->worker, &address, &length), UCS_OK, "get_address");
    copy = malloc(length + 1);
    memcpy(copy + 1, address, length); /* at an odd place */
    ucp_worker_release_address(pair.b->worker, address);
    params.address = (ucp_address_t *)(copy + 1);
    UT_CHECK_STATUS(ucp_ep_create(pair.a->worker, &params, &ep), UCS_OK, "ep_create");
    memset(copy, 0, length + 1);
    free(copy);
    ut_exchange(&pair, 100, 1);
    ut_ep_close(&pair, ep);
    ut_exchange(&pair, 100000, 1);
    ut_pair_close(&pair);
}

/* ------------------------------------------------------------ endpoints */

typedef enum { CLOSE_NBX, CLOSE_NBX_FLUSH, CLOSE_NB_FLUSH, CLOSE_DISCONNECT, CLOSE_DESTROY, CLOSES } close_t;

static void close_by(ucp_ep_h ep, close_t how)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = 0};

    switch (how) {
    case CLOSE_NBX:
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_close_nbx(ep, &param)), UCS_OK, "ep_close_nbx");
        break;
    case CLOSE_NBX_FLUSH:
        param.op_attr_mask = 0;
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_close_nbx(ep, &param)), UCS_OK, "ep_close_nbx");
        break;
    case CLOSE_NB_FLUSH:
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH)), UCS_OK, "ep_close_nb");
        break;
    case CLOSE_DISCONNECT:
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_disconnect_nb(ep)), UCS_OK, "disconnect_nb");
        break;
    default:
        if (may_block()) {
            ucp_ep_destroy(ep);
        } else {
            ut_ep_close(&pair, ep);
        }
        break;
    }
}

static void close_and_reopen(void)
{
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 3 * CLOSES; ++i) {
        ut_exchange(&pair, 64, i);
        ut_exchange(&pair, 20000, i);
        if (i % 2 == 0) {
            close_by(pair.a->ep, i % CLOSES);
            pair.a->ep = ut_ep_create(pair.a->worker, pair.b->worker);
        } else {
            close_by(pair.b->ep, i % CLOSES);
            pair.b->ep = ut_ep_create(pair.b->worker, pair.a->worker);
        }
    }
    ut_exchange(&pair, 64, i);
    ut_pair_close(&pair);
}

static void force_close(void)
{
    ucp_ep_params_t params    = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                 .err_mode   = UCP_ERR_HANDLING_MODE_PEER};
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucp_address_t *address;
    ucs_status_t status;
    size_t length;
    ucp_ep_h ep;
    unsigned i;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 2; ++i) {
        ucp_worker_get_address(pair.b->worker, &address, &length);
        params.address = address;
        status         = ucp_ep_create(pair.a->worker, &params, &ep);
        ucp_worker_release_address(pair.b->worker, address);
        if (status != UCS_OK) {
            break; /* not every transport has it */
        }
        ut_exchange(&pair, 100, 1);
        if (i == 0) {
            UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_close_nbx(ep, &force)), UCS_OK, "forced ep_close_nbx");
        } else {
            UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FORCE)), UCS_OK,
                            "forced ep_close_nb");
        }
        ut_exchange(&pair, 100, 1);
    }
    ut_pair_close(&pair);
}

/* UCX closes by force what it was told to handle errors of, and refuses the rest: that stays as it is */
static void force_refused(void)
{
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};

    ut_pair_open(&pair, 0);
    ut_exchange(&pair, 100, 1);
    UT_CHECK_STATUS(UCS_PTR_STATUS(ucp_ep_close_nbx(pair.a->ep, &force)), UCS_ERR_INVALID_PARAM, "ep_close_nbx");
    UT_CHECK_STATUS(UCS_PTR_STATUS(ucp_ep_close_nb(pair.a->ep, UCP_EP_CLOSE_MODE_FORCE)), UCS_ERR_INVALID_PARAM,
                    "ep_close_nb");
    ut_exchange(&pair, 100, 2);
    ut_exchange(&pair, 20000, 3);
    ut_pair_close(&pair);
}

/* Several endpoints to one worker: order holds on each, and a close of one leaves the others */
static void several_endpoints(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t send[5], recv[5];
    char from[5][100], to[5][100];
    ucp_ep_h eps[5];
    unsigned i, round;

    ut_pair_open(&pair, 0);
    for (i = 0; i < 5; ++i) {
        eps[i] = ut_ep_create(pair.a->worker, pair.b->worker);
    }
    for (round = 0; round < 5; ++round) {
        for (i = round; i < 5; ++i) {
            ut_fill(from[i], 100, (round * 5) + i);
            recv[i] = ucp_tag_recv_nbx(pair.b->worker, to[i], 100, i, UT_TAG_ALL, &none);
            send[i] = ucp_tag_send_nbx(eps[i], from[i], 100, i, &none);
        }
        for (i = round; i < 5; ++i) {
            UT_CHECK_STATUS(ut_wait_ptr(&pair, recv[i]), UCS_OK, "receive");
            UT_CHECK_STATUS(ut_wait_ptr(&pair, send[i]), UCS_OK, "send");
            UT_CHECK(ut_verify(to[i], 100, (round * 5) + i) == SIZE_MAX, "wrong content by endpoint %u", i);
        }
        close_by(eps[round], round % CLOSES);
    }
    ut_pair_close(&pair);
}

static void receive_one(size_t size, unsigned seed, ut_op_t *send)
{
    ut_data_t to;
    ut_op_t recv;

    ut_data_open(&to, UT_CONTIG1, size);
    ut_recv(&recv, &pair, UT_RECV_NBX, &to, seed, UT_TAG_ALL);
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
    UT_CHECK_STATUS(ut_wait(&pair, send), UCS_OK, "send");
    UT_CHECK(ut_data_check(&to, size, seed), "wrong content");
    ut_data_close(&to);
}

/* What was sent before a close arrives after it, small and large */
static void close_behind_sends(void)
{
    static const size_t sizes[] = {0, 8, 8000, 9000, 100000};
    ut_data_t from[5];
    ut_op_t send[5], recv;
    unsigned i, how;

    for (how = 0; how < CLOSE_DESTROY; ++how) {
        ut_pair_open(&pair, 0);
        for (i = 0; i < 5; ++i) {
            ut_data_open(&from[i], UT_CONTIG1, sizes[i]);
            ut_data_fill(&from[i], i);
            ut_send(&send[i], pair.a, UT_SEND_NBX, &from[i], i);
        }
        ut_recv(&recv, &pair, UT_RECV_NBX, &from[4], 999, UT_TAG_ALL);
        ucp_request_cancel(pair.b->worker, recv.request);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_ERR_CANCELED, "cancelled receive");
        for (i = 3; i < 5; ++i) {
            receive_one(sizes[i], i, &send[i]);
        }
        close_by(pair.a->ep, how);
        for (i = 0; i < 3; ++i) {
            receive_one(sizes[i], i, &send[i]);
        }
        for (i = 0; i < 5; ++i) {
            ut_data_close(&from[i]);
        }
        pair.a->ep = ut_ep_create(pair.a->worker, pair.b->worker);
        ut_pair_close(&pair);
    }
}

/* One side only has an endpoint, and says all it has to say before the other one reads any of it */
static void read_in_one_go(size_t size)
{
    enum { COUNT = 4 };
    ut_data_t from[COUNT], to[COUNT];
    ut_op_t send[COUNT], recv[COUNT];
    ut_side_t *b = &pair.sides[1];
    unsigned i;

    pair.a          = &pair.sides[0];
    pair.b          = b;
    pair.a->context = b->context = ut_context_create(UCP_FEATURE_TAG);
    pair.a->worker               = ut_worker_create(pair.a->context);
    b->worker                    = ut_worker_create(b->context);
    pair.a->ep                   = ut_ep_create(pair.a->worker, b->worker);
    ut_settle(&pair);
    for (i = 0; i < COUNT; ++i) {
        ut_data_open(&from[i], UT_CONTIG1, size);
        ut_data_open(&to[i], UT_CONTIG1, size);
        ut_data_fill(&from[i], i);
        ut_recv(&recv[i], &pair, UT_RECV_NBX, &to[i], i, UT_TAG_ALL);
    }
    for (i = 0; i < COUNT; ++i) {
        ut_send(&send[i], pair.a, (size < 1000) ? UT_SEND_SYNC_NBX : UT_SEND_NBX, &from[i], i);
    }
    for (i = 0; i < COUNT; ++i) {
        UT_CHECK_STATUS(ut_wait(&pair, &recv[i]), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &send[i]), UCS_OK, "send");
        UT_CHECK(ut_data_check(&to[i], size, i), "wrong content of message %u", i);
        ut_data_close(&from[i]);
        ut_data_close(&to[i]);
    }
    ut_ep_close(&pair, pair.a->ep);
    ucp_worker_destroy(pair.a->worker);
    ucp_worker_destroy(b->worker);
    ucp_cleanup(pair.a->context);
}

static void one_side_only(void)
{
    if (!only_self()) {
        read_in_one_go(8);
        read_in_one_go(300000);
    }
}

/* The same with nothing to say but that it closes again */
static void closes_without_a_word(void)
{
    unsigned i;

    for (i = 0; (i < 3) && !only_self(); ++i) {
        ut_pair_open(&pair, 0);
        ut_ep_close(&pair, pair.b->ep);
        ut_settle(&pair);
        ut_ep_close(&pair, pair.a->ep);
        pair.b->ep = ut_ep_create(pair.b->worker, pair.a->worker);
        ut_settle(&pair);
        ut_ep_close(&pair, pair.b->ep);
        ucp_worker_destroy(pair.a->worker);
        ucp_worker_destroy(pair.b->worker);
        ucp_cleanup(pair.a->context);
    }
}

/* The other side closes; we go on sending to it, and only then close */
static void one_side_closes_first(void)
{
    unsigned i;

    if (only_self()) {
        return;
    }
    ut_pair_open(&pair, 0);
    ut_exchange(&pair, 100, 1);
    close_by(pair.b->ep, CLOSE_NBX);
    for (i = 0; i < 20; ++i) {
        ut_exchange(&pair, (i & 1) ? 30000 : 100, i);
    }
    ut_exchange(&pair, 5000000, i);
    pair.b->ep = ut_ep_create(pair.b->worker, pair.a->worker);
    ut_pair_close(&pair);
}

/* It closes while the message is on its way: UCX cancels the receive; UCI has sent again what UCX lost */
static void closes_while_receiving(void)
{
    static const size_t sizes[] = {30000, 1000000};
    ut_data_t from, to;
    ut_op_t send, recv;
    unsigned i;

    if (only_self() || !ut_uci_is_on()) {
        return;
    }
    for (i = 0; i < 2; ++i) {
        ut_pair_open(&pair, 0);
        ut_exchange(&pair, 100, 1);
        ut_data_open(&from, UT_CONTIG1, sizes[i]);
        ut_data_open(&to, UT_CONTIG1, sizes[i]);
        ut_data_fill(&from, i);
        ut_recv(&recv, &pair, UT_RECV_NBX, &to, i, UT_TAG_ALL);
        ut_send(&send, pair.a, UT_SEND_NBX, &from, i);
        ucp_worker_progress(pair.b->worker);
        close_by(pair.b->ep, CLOSE_NBX);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
        UT_CHECK(ut_data_check(&to, sizes[i], i), "wrong content, %zu bytes", sizes[i]);
        ut_data_close(&from);
        ut_data_close(&to);
        pair.b->ep = ut_ep_create(pair.b->worker, pair.a->worker);
        ut_pair_close(&pair);
    }
}

/* A close is in progress, since the other side has to be told what was sent, when the same side opens an endpoint again: it is back, and
 * the close says nothing of an end. The second close does */
static void reopened_while_closing(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ut_data_t data;
    ut_op_t send;
    ucs_status_ptr_t closing;
    unsigned i;

    for (i = 0; (i < 4) && !only_self(); ++i) {
        ut_pair_open(&pair, 0);
        ut_exchange(&pair, 100, i);
        ut_data_open(&data, UT_CONTIG1, 100);
        ut_data_fill(&data, i);
        ut_send(&send, pair.a, UT_SEND_NBX, &data, i);
        closing    = ucp_ep_close_nbx(pair.a->ep, &none);
        pair.a->ep = ut_ep_create(pair.a->worker, pair.b->worker);
        if (i & 1) {
            ut_settle(&pair);
        }
        receive_one(100, i, &send);
        ut_exchange(&pair, 5000000, i);
        UT_CHECK_STATUS(ut_wait_ptr(&pair, closing), UCS_OK, "the first close");
        ut_exchange(&pair, 300000, i);
        ut_data_close(&data);
        ut_pair_close(&pair);
    }
}

/* None of them is the last one when it begins to close, but together they are: the other side must hear of it */
static void all_endpoints_at_once(void)
{
    enum { ENDPOINTS = 3 };
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t closing[ENDPOINTS];
    ut_op_t send[ENDPOINTS];
    ucp_ep_h first;
    ut_data_t data;
    unsigned i;

    if (only_self()) {
        return;
    }
    ut_pair_open(&pair, 0);
    first = pair.a->ep;
    ut_exchange(&pair, 100, 1);
    ut_data_open(&data, UT_CONTIG1, 100);
    ut_data_fill(&data, 0);
    ut_send(&send[0], pair.a, UT_SEND_NBX, &data, 0);
    closing[0] = ucp_ep_close_nbx(first, &none);
    for (i = 1; i < ENDPOINTS; ++i) {
        pair.a->ep = ut_ep_create(pair.a->worker, pair.b->worker);
        ut_send(&send[i], pair.a, UT_SEND_NBX, &data, i);
        closing[i] = ucp_ep_close_nbx(pair.a->ep, &none);
    }
    for (i = 0; i < ENDPOINTS; ++i) {
        ut_data_t to;
        ut_op_t recv;

        ut_data_open(&to, UT_CONTIG1, 100);
        ut_recv(&recv, &pair, UT_RECV_NBX, &to, i, UT_TAG_ALL);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &send[i]), UCS_OK, "send");
        UT_CHECK(ut_data_check(&to, 100, 0), "wrong content by endpoint %u", i);
        ut_data_close(&to);
    }
    for (i = 0; i < ENDPOINTS; ++i) {
        UT_CHECK_STATUS(ut_wait_ptr(&pair, closing[i]), UCS_OK, "ep_close_nbx");
    }
    ut_data_close(&data);
    ut_clock_start();
    ut_ep_close(&pair, pair.b->ep);
    ut_clock_check("the other side's close");
    ucp_worker_destroy(pair.a->worker);
    ucp_worker_destroy(pair.b->worker);
    ucp_cleanup(pair.a->context);
}

/* ---------------------------------------------- contexts and workers */

static void two_contexts(void)
{
    ut_pair_t other;
    unsigned i;

    ut_pair_open(&pair, 0);
    ut_pair_open(&other, UCP_FEATURE_RMA);
    for (i = 0; i < 10; ++i) {
        ut_exchange(&pair, 100 * i, i);
        ut_exchange(&other, 20000 * i, i);
    }
    ut_pair_close(&pair);
    ut_exchange(&other, 100, i);
    ut_exchange(&other, 100000, i);
    ut_pair_close(&other);
}

static void again_and_again(void)
{
    unsigned i;

    for (i = 0; i < 8; ++i) {
        ut_pair_open(&pair, 0);
        ut_exchange(&pair, 100, i);
        ut_exchange(&pair, 30000, i);
        ut_pair_close(&pair);
    }
}

#define CROWD 12

/* Everybody sends to everybody, and to itself */
static void crowd(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucp_context_h context    = ut_context_create(UCP_FEATURE_TAG);
    static ucs_status_ptr_t send[CROWD][CROWD], recv[CROWD][CROWD];
    static char from[CROWD][CROWD][64], to[CROWD][CROWD][64];
    ucp_worker_h workers[CROWD];
    ucp_ep_h eps[CROWD][CROWD];
    unsigned i, k;

    if (only_self()) {
        ucp_cleanup(context);
        return;
    }
    for (i = 0; i < CROWD; ++i) {
        workers[i] = ut_worker_create(context);
    }
    for (i = 0; i < CROWD; ++i) {
        for (k = 0; k < CROWD; ++k) {
            eps[i][k] = ut_ep_create(workers[i], workers[k]);
            ut_fill(from[i][k], 64, (i * CROWD) + k);
            recv[i][k] = ucp_tag_recv_nbx(workers[i], to[i][k], 64, k, UT_TAG_ALL, &none);
        }
    }
    for (i = 0; i < CROWD; ++i) {
        for (k = 0; k < CROWD; ++k) {
            send[i][k] = ucp_tag_send_nbx(eps[i][k], from[i][k], 64, i, &none);
        }
    }
    for (i = 0; i < CROWD; ++i) {
        for (k = 0; k < CROWD; ++k) {
            ut_clock_start();
            while ((UCS_PTR_IS_PTR(recv[i][k]) && !ucp_request_is_completed(recv[i][k])) ||
                   (UCS_PTR_IS_PTR(send[i][k]) && !ucp_request_is_completed(send[i][k]))) {
                unsigned w;

                for (w = 0; w < CROWD; ++w) {
                    ucp_worker_progress(workers[w]);
                }
                ut_clock_check("a message in the crowd");
            }
            UT_CHECK(ut_verify(to[i][k], 64, (k * CROWD) + i) == SIZE_MAX, "wrong content from %u to %u", k, i);
            if (UCS_PTR_IS_PTR(recv[i][k])) {
                ucp_request_free(recv[i][k]);
            }
            if (UCS_PTR_IS_PTR(send[i][k])) {
                ucp_request_free(send[i][k]);
            }
        }
    }
    for (i = 0; i < CROWD; ++i) {
        ucp_worker_destroy(workers[i]);
    }
    ucp_cleanup(context);
}

/* The end comes while receives are posted, messages wait and nothing was closed */
static void sudden_end(void)
{
    unsigned inits = ut_inits, cleanups = ut_cleanups, i;
    ucp_request_param_t none = {.op_attr_mask = 0};
    static char from[100000], to[3][100000];
    ucs_status_ptr_t recv[3];

    ut_pair_open(&pair, 0);
    ut_exchange(&pair, 100, 1);
    for (i = 0; i < 3; ++i) {
        recv[i] = ucp_tag_recv_nbx(pair.b->worker, to[i], sizeof(to[i]), 1000 + i, UT_TAG_ALL, &none);
        UT_CHECK(UCS_PTR_IS_PTR(recv[i]), "receive");
        UT_CHECK(!UCS_PTR_IS_ERR(ucp_tag_send_nbx(pair.a->ep, from, 100, i, &none)), "send");
    }
    ut_settle(&pair);
    for (i = 0; i < 3; ++i) {
        ucp_request_cancel(pair.b->worker, recv[i]);
        ut_wait_ptr(&pair, recv[i]);
    }
    if (pair.a != pair.b) {
        ucp_worker_destroy(pair.b->worker);
    }
    ucp_worker_destroy(pair.a->worker);
    ucp_cleanup(pair.a->context);
    UT_CHECK(ut_inits - inits == ut_cleanups - cleanups, "request_init was called %u times, request_cleanup %u",
             ut_inits - inits, ut_cleanups - cleanups);
}

static void multi_thread_worker(void)
{
    ucp_params_t params               = {.field_mask        = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
                                         .features          = UCP_FEATURE_TAG,
                                         .mt_workers_shared = 1};
    ucp_worker_params_t worker_params = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_MULTI};
    ucp_request_param_t none          = {.op_attr_mask = 0};
    char from[5000], to[5000];
    ucs_status_ptr_t send, recv;

    memset(&pair, 0, sizeof(pair));
    pair.a = pair.b = &pair.sides[0];
    UT_CHECK_STATUS(ucp_init(&params, NULL, &pair.a->context), UCS_OK, "ucp_init");
    UT_CHECK_STATUS(ucp_worker_create(pair.a->context, &worker_params, &pair.a->worker), UCS_OK, "ucp_worker_create");
    pair.a->ep = ut_ep_create(pair.a->worker, pair.a->worker);
    ut_fill(from, sizeof(from), 1);
    recv = ucp_tag_recv_nbx(pair.a->worker, to, sizeof(to), 1, UT_TAG_ALL, &none);
    send = ucp_tag_send_sync_nbx(pair.a->ep, from, sizeof(from), 1, &none);
    UT_CHECK_STATUS(ut_wait_ptr(&pair, recv), UCS_OK, "receive");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, send), UCS_OK, "send");
    UT_CHECK(ut_verify(to, sizeof(to), 1) == SIZE_MAX, "wrong content");
    ut_pair_close(&pair);
}

/* ------------------------------------------------- who leaves first */

enum { SENDERS = 2, LEAVING_LENGTH = 3000000, TURNS_LEFT = 50000 };

static void on_peer_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
}

static ucp_ep_h create_ep(ucp_worker_h from, ucp_worker_h to, bool hears)
{
    ucp_ep_params_t params = {.field_mask     = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .err_mode       = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler.cb = on_peer_error};
    ucp_address_t *address;
    size_t length;
    ucp_ep_h ep;

    UT_REQUIRE(ucp_worker_get_address(to, &address, &length) == UCS_OK, "ucp_worker_get_address");
    params.address = address;
    if (hears) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    }
    UT_REQUIRE(ucp_ep_create(from, &params, &ep) == UCS_OK, "ucp_ep_create");
    ucp_worker_release_address(to, address);
    return ep;
}

static void wait_among(ucp_worker_h *workers, ucs_status_ptr_t request)
{
    unsigned i;

    UT_REQUIRE(!UCS_PTR_IS_ERR(request), "a request");
    ut_clock_start();
    while (UCS_PTR_IS_PTR(request) && (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        for (i = 0; i <= SENDERS; ++i) {
            ucp_worker_progress(workers[i]);
        }
        ut_clock_check("a request");
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

/* Two senders and a receiver of whatever comes, as in UCX's own tests: each flushes and closes, the senders' workers go, and the receiver's has
 * turns, and goes. There is nothing that UCX could call an error: run_ucp.sh looks at what it logs */
static void leave_first(bool hears)
{
    static char sent[LEAVING_LENGTH], received[SENDERS][LEAVING_LENGTH];
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucp_worker_h workers[SENDERS + 1];
    ucp_context_h contexts[SENDERS + 1];
    ucs_status_ptr_t sends[SENDERS], recvs[SENDERS];
    ucp_ep_h eps[SENDERS];
    unsigned i;

    for (i = 0; i <= SENDERS; ++i) {
        contexts[i] = ut_context_create(UCP_FEATURE_TAG);
        workers[i]  = ut_worker_create(contexts[i]);
    }
    for (i = 0; i < SENDERS; ++i) {
        eps[i]   = create_ep(workers[i], workers[SENDERS], hears);
        sends[i] = ucp_tag_send_nbx(eps[i], sent, sizeof(sent), i, &param);
    }
    for (i = 0; i < SENDERS; ++i) {
        recvs[i] = ucp_tag_recv_nbx(workers[SENDERS], received[i], sizeof(received[i]), 0, 0, &param);
    }
    for (i = 0; i < SENDERS; ++i) {
        wait_among(workers, recvs[i]);
        wait_among(workers, sends[i]);
        UT_CHECK(memcmp(received[i], sent, sizeof(sent)) == 0, "other bytes");
    }
    for (i = 0; i < SENDERS; ++i) {
        wait_among(workers, ucp_worker_flush_nbx(workers[i], &param));
        wait_among(workers, ucp_ep_close_nbx(eps[i], &param));
    }
    for (i = 0; i < SENDERS; ++i) {
        ucp_worker_destroy(workers[i]);
        ucp_cleanup(contexts[i]);
    }
    for (i = 0; i < TURNS_LEFT * hears; ++i) {
        ucp_worker_progress(workers[SENDERS]);
    }
    ucp_worker_destroy(workers[SENDERS]);
    ucp_cleanup(contexts[SENDERS]);
}

static bool can_hear(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls != NULL) && (strncmp(tls, "tcp", 3) == 0);
}

static void senders_leave_first(void)
{
    const char *tls = getenv("UCX_TLS");

    if ((tls != NULL) && (strcmp(tls, "self") == 0)) {
        return; /* no way from worker to worker */
    }
    leave_first(false);
    if (can_hear()) {
        leave_first(true);
    }
}

static const ut_test_t tests[] = {UT_TEST(addresses),
                                  UT_TEST(senders_leave_first),
                                  UT_TEST(query_without_address),
                                  UT_TEST(address_copies),
                                  UT_TEST(close_and_reopen),
                                  UT_TEST(force_close),
                                  UT_TEST(force_refused),
                                  UT_TEST(several_endpoints),
                                  UT_TEST(close_behind_sends),
                                  UT_TEST(one_side_closes_first),
                                  UT_TEST(closes_while_receiving),
                                  UT_TEST(reopened_while_closing),
                                  UT_TEST(all_endpoints_at_once),
                                  UT_TEST(two_contexts),
                                  UT_TEST(again_and_again),
                                  UT_TEST(crowd),
                                  UT_TEST(one_side_only),
                                  UT_TEST(closes_without_a_word),
                                  UT_TEST(sudden_end),
                                  UT_TEST(multi_thread_worker)};

UT_MAIN(tests)
