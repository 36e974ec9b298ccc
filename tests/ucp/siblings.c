/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several workers in one process of which only some get turns of progress. What was sent by the others must arrive all the same if
 * plain UCX needs nothing more of them; and none of the program's functions may be called but from progress of its own worker.
 */
#include "ucp_test.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

enum { MESSAGES = 200, ORDERED = 10, TAG = 40, AM_ID = 9, WAIT_MS = 20, GENERIC_LENGTH = 700 };

static ucp_context_h other_context;
static ucp_worker_h other; /* the worker in which the program waits */

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000) + ((uint64_t)now.tv_nsec / 1000000);
}

/* Without UCP_FEATURE_TAG it is none of UCI's workers */
static void open_other_with(uint64_t features, ucs_thread_mode_t mode)
{
    other_context = ut_context_create(features);
    other         = ut_worker_create_with(other_context, mode);
}

static void open_other(uint64_t features)
{
    open_other_with(features, UCS_THREAD_MODE_SINGLE);
}

static void close_other(void)
{
    ucp_worker_destroy(other);
    ucp_cleanup(other_context);
}

/* Side a waits in another worker. That takes long enough to be left alone, and far less than what asks again by the clock */
static void wait_in_other(const ut_pair_t *pair)
{
    uint64_t end = now_ms() + WAIT_MS;
    unsigned i;

    while (now_ms() < end) {
        for (i = 0; i < 100; ++i) {
            ucp_worker_progress(other);
        }
        if (pair->b != pair->a) {
            ucp_worker_progress(pair->b->worker);
        }
    }
}

/* -------------------------------------------------------- who waits serves */

/* @a sender makes no progress after its send has ended */
static void send_and_leave(const ut_pair_t *pair, size_t length, unsigned seed)
{
    ut_data_t from, to;
    ut_op_t send, recv;

    ut_data_open(&from, UT_CONTIG1, length);
    ut_data_open(&to, UT_CONTIG1, length);
    ut_data_fill(&from, seed);
    ut_recv(&recv, pair, UT_RECV_NBX, &to, TAG, UT_TAG_ALL);
    ut_send(&send, pair->a, UT_SEND_NBX, &from, TAG);
    UT_CHECK_STATUS(ut_wait(pair, &send), UCS_OK, "send");
    ut_clock_start();
    while (!ut_op_is_done(&recv)) {
        ucp_worker_progress(pair->b->worker);
        ucp_worker_progress(other);
        ut_clock_check("what a worker without progress has sent");
    }
    UT_CHECK_STATUS(ut_wait(pair, &recv), UCS_OK, "receive");
    UT_CHECK(ut_data_check(&to, length, seed), "wrong content");
    ut_data_close(&from);
    ut_data_close(&to);
}

static void serve(uint64_t features)
{
    static const size_t lengths[] = {8, 60, 700, 3000};
    ut_pair_t pair;
    unsigned i;

    ut_pair_open(&pair, 0);
    open_other(features);
    ut_exchange(&pair, 8, TAG + 1); /* connected */
    for (i = 0; i < MESSAGES; ++i) {
        send_and_leave(&pair, lengths[i % 4], i);
    }
    close_other();
    ut_pair_close(&pair);
}

static void waits_in_worker_for_rma(void)
{
    serve(UCP_FEATURE_RMA);
}

static void waits_in_worker_for_tags(void)
{
    serve(UCP_FEATURE_TAG);
}

/* UCX makes progress itself in calls that wait: here in the other worker's flush */
static void waits_in_flush(void)
{
    ut_pair_t pair;
    ut_data_t from, to;
    ut_op_t send, recv;
    unsigned i;

    ut_pair_open(&pair, 0);
    open_other(UCP_FEATURE_RMA);
    ut_exchange(&pair, 8, TAG + 1);
    ut_data_open(&from, UT_CONTIG1, 700);
    ut_data_open(&to, UT_CONTIG1, 700);
    for (i = 0; i < MESSAGES / 4; ++i) {
        ut_data_fill(&from, i);
        ut_recv(&recv, &pair, UT_RECV_NBX, &to, TAG, UT_TAG_ALL);
        ut_send(&send, pair.a, UT_SEND_NBX, &from, TAG);
        UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
        ut_clock_start();
        while (!ut_op_is_done(&recv)) {
            ucp_worker_progress(pair.b->worker);
            UT_CHECK_STATUS(ucp_worker_flush(other), UCS_OK, "ucp_worker_flush");
            ucp_worker_progress(other);
            ut_clock_check("what a worker without progress has sent");
        }
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK(ut_data_check(&to, 700, i), "wrong content");
    }
    ut_data_close(&from);
    ut_data_close(&to);
    close_other();
    ut_pair_close(&pair);
}

/* ------------------------------------------- but the program's code stays where it is */

static unsigned order[ORDERED], ordered;

static void on_ordered(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    UT_CHECK_STATUS(status, UCS_OK, "status given to the callback");
    UT_CHECK(info->length == 64, "%zu bytes", info->length);
    order[ordered++] = (unsigned)(uintptr_t)user_data;
    ucp_request_free(request);
}

/* Receives end while their program waits in another worker. It hears of that in its own worker's progress, in order */
static void callbacks_wait_for_their_worker(void)
{
    static char from[64], to[ORDERED][64];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv = on_ordered};
    ucp_request_param_t none  = {.op_attr_mask = 0};
    ucs_status_ptr_t freed;
    ut_pair_t pair;
    unsigned i;

    ut_pair_open(&pair, 0);
    open_other(UCP_FEATURE_RMA);
    ut_exchange(&pair, 8, TAG + 1);
    ordered = 0;
    for (i = 0; i < ORDERED; ++i) {
        param.user_data = (void *)(uintptr_t)i;
        freed           = ucp_tag_recv_nbx(pair.a->worker, to[i], 64, TAG, UT_TAG_ALL, &param);
    }
    if (pair.a != pair.b) {
        ucp_request_free(freed); /* nobody wants to hear of the last one */
        for (i = 0; i < ORDERED; ++i) {
            freed = ucp_tag_send_nbx(pair.b->ep, from, 64, TAG, &none);
            UT_CHECK(!UCS_PTR_IS_ERR(freed), "send");
            if (freed != NULL) {
                ucp_request_free(freed);
            }
        }
        wait_in_other(&pair);
        UT_CHECK(ordered == 0, "%u callbacks from progress of another worker", ordered);
        ut_clock_start();
        while (ordered < ORDERED - 1) {
            ut_progress(&pair);
            ut_clock_check("a receive");
        }
        for (i = 0; (i < ordered) && !ut_faults_are_on(); ++i) {
            UT_CHECK(order[i] == i, "receive %u ended as number %u", order[i], i);
        }
    } else {
        for (i = 0; i < ORDERED; ++i) {
            ut_wait_ptr(&pair, ucp_tag_send_nbx(pair.a->ep, from, 64, TAG, &none));
        }
        ut_clock_start();
        while (ordered < ORDERED) {
            ut_progress(&pair);
            ut_clock_check("a receive");
        }
    }
    ut_settle(&pair);
    close_other();
    ut_pair_close(&pair);
}

static unsigned active_messages;

static ucs_status_t on_active_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                      const ucp_am_recv_param_t *param)
{
    ++active_messages;
    return UCS_OK;
}

static void active_messages_wait_for_their_worker(void)
{
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
                                      .id         = AM_ID,
                                      .cb         = on_active_message};
    ucp_request_param_t none       = {.op_attr_mask = 0};
    ut_pair_t pair;

    ut_pair_open(&pair, UCP_FEATURE_AM);
    open_other(UCP_FEATURE_RMA);
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(pair.a->worker, &handler), UCS_OK, "handler");
    ut_exchange(&pair, 8, TAG + 1);
    active_messages = 0;
    if (pair.a != pair.b) {
        ut_wait_ptr(&pair, ucp_am_send_nbx(pair.b->ep, AM_ID, NULL, 0, "text", 4, &none));
        active_messages = 0; /* it may have come while we waited */
        UT_CHECK(!UCS_PTR_IS_ERR(ucp_am_send_nbx(pair.b->ep, AM_ID, NULL, 0, "text", 4, &none)), "send");
        wait_in_other(&pair);
        UT_CHECK(active_messages == 0, "an active message from progress of another worker");
        ut_clock_start();
        while (active_messages == 0) {
            ut_progress(&pair);
            ut_clock_check("an active message");
        }
    }
    close_other();
    ut_pair_close(&pair);
}

/* A worker that is making progress is not entered again, whatever its callbacks do */
static ut_pair_t nested_pair;
static ut_op_t send_second;
static ut_data_t from, second;
static unsigned nested_calls;

static void on_first(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    uint64_t end = now_ms() + WAIT_MS;
    bool had_come;

    ++nested_calls;
    ut_send(&send_second, nested_pair.a, UT_SEND_NBX, &from, TAG);
    had_come = ut_verify_value(second.memory, second.extent, 0xdb) != SIZE_MAX; /* within the call, to oneself */
    while (now_ms() < end) {
        ucp_worker_progress(other);
    }
    UT_CHECK(had_come || (ut_verify_value(second.memory, second.extent, 0xdb) == SIZE_MAX),
             "progress inside of progress");
    ucp_request_free(request);
}

static void waits_in_callback(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv      = on_first};
    ut_pair_t *pair           = &nested_pair;
    ut_op_t send_first, recv_second;
    ut_data_t first;
    char to[8];

    ut_pair_open(pair, 0);
    open_other(UCP_FEATURE_RMA);
    ut_exchange(pair, 8, TAG + 1);
    ut_data_open(&first, UT_CONTIG1, 8);
    ut_data_open(&from, UT_CONTIG1, GENERIC_LENGTH);
    ut_data_open(&second, UT_GENERIC, GENERIC_LENGTH);
    ut_data_fill(&from, 2);
    nested_calls = 0;
    ucp_tag_recv_nbx(pair->b->worker, to, sizeof(to), TAG, UT_TAG_ALL, &param);
    ut_recv(&recv_second, pair, UT_RECV_NBX, &second, TAG, UT_TAG_ALL);
    ut_send(&send_first, pair->a, UT_SEND_NBX, &first, TAG);
    UT_CHECK_STATUS(ut_wait(pair, &send_first), UCS_OK, "send");
    ut_clock_start();
    while (nested_calls == 0) {
        ut_progress(pair);
        ut_clock_check("a receive");
    }
    UT_CHECK_STATUS(ut_wait(pair, &send_second), UCS_OK, "send");
    UT_CHECK_STATUS(ut_wait(pair, &recv_second), UCS_OK, "receive");
    UT_CHECK(ut_data_check(&second, GENERIC_LENGTH, 2), "wrong content");
    ut_data_close(&first);
    ut_data_close(&from);
    ut_data_close(&second);
    close_other();
    ut_pair_close(pair);
}

/* ------------------------------------------------------------- threads */

static bool threads_end;

static void *wait_in_thread(void *argument)
{
    ucp_worker_h worker = argument;

    while (!__atomic_load_n(&threads_end, __ATOMIC_ACQUIRE)) {
        ucp_worker_progress(worker);
    }
    return NULL;
}

static void *exchange_in_thread(void *argument)
{
    uint64_t end = now_ms() + WAIT_MS;
    unsigned i;

    for (i = 0; now_ms() < end; ++i) {
        ut_exchange(argument, 1 + (i % 9000), i % 100);
    }
    return NULL;
}

/* Of workers that any thread may use, one at a time (SINGLE is the thread's that made it, by which UCX 1.18 stands) */
static void open_serialized(ut_pair_t *pair)
{
    ut_pair_open_with(pair, UCP_FEATURE_TAG, UCS_THREAD_MODE_SERIALIZED);
}

static void open_other_serialized(void)
{
    open_other_with(UCP_FEATURE_RMA, UCS_THREAD_MODE_SERIALIZED);
}

/* Each worker has one thread at a time; the pair's goes from thread to thread */
static void threads_of_their_own(void)
{
    pthread_t waiting, exchanging;
    ut_pair_t pair;
    int round;

    open_serialized(&pair);
    open_other_serialized();
    ut_exchange(&pair, 8, TAG + 1);
    threads_end = false;
    pthread_create(&waiting, NULL, wait_in_thread, other);
    for (round = 0; round < 3; ++round) {
        exchange_in_thread(&pair);
        pthread_create(&exchanging, NULL, exchange_in_thread, &pair);
        pthread_join(exchanging, NULL);
    }
    __atomic_store_n(&threads_end, true, __ATOMIC_RELEASE);
    pthread_join(waiting, NULL);
    close_other();
    ut_pair_close(&pair);
}

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;

static void *exchange_in_turn(void *argument)
{
    unsigned i;

    for (i = 0; i < 50; ++i) {
        pthread_mutex_lock(&turn_lock);
        ut_exchange(argument, 1 + (i * 300), i);
        pthread_mutex_unlock(&turn_lock);
    }
    return NULL;
}

/* Threads in turn, and one that waits in another worker all the while */
static void threads_in_turn(void)
{
    pthread_t waiting, threads[4];
    ut_pair_t pair;
    int i;

    open_serialized(&pair);
    open_other_serialized();
    threads_end = false;
    pthread_create(&waiting, NULL, wait_in_thread, other);
    for (i = 0; i < 4; ++i) {
        pthread_create(&threads[i], NULL, exchange_in_turn, &pair);
    }
    for (i = 0; i < 4; ++i) {
        pthread_join(threads[i], NULL);
    }
    __atomic_store_n(&threads_end, true, __ATOMIC_RELEASE);
    pthread_join(waiting, NULL);
    close_other();
    ut_pair_close(&pair);
}

/* This thread, which has served the pair, goes on waiting elsewhere while another one takes the pair over */
static void takes_over_while_served(void)
{
    ut_pair_t pair, pairs[4];
    pthread_t exchanging[4];
    uint64_t end;
    int i;

    ut_pair_open(&pair, 0);
    open_other(UCP_FEATURE_RMA);
    for (i = 0; i < 4; ++i) {
        open_serialized(&pairs[i]);
        ut_exchange(&pairs[i], 8, TAG + 1);
        wait_in_other(&pair);
        pthread_create(&exchanging[i], NULL, exchange_in_thread, &pairs[i]);
        for (end = now_ms() + WAIT_MS; now_ms() < end;) {
            ucp_worker_progress(other);
        }
        pthread_join(exchanging[i], NULL);
        ut_pair_close(&pairs[i]);
    }
    close_other();
    ut_pair_close(&pair);
}

/* -------------------------------------------------------------- sleepers */

static ucp_worker_h open_awake(ucp_context_h *context_p)
{
    *context_p = ut_context_create(UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP);
    return ut_worker_create(*context_p);
}

/* An event that another thread's turn has taken in still wakes who sleeps on the worker */
static void wakes_sleepers(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    struct pollfd event      = {.events = POLLIN};
    ut_pair_t pair           = {.a = &pair.sides[0], .b = &pair.sides[1]};
    ucs_status_ptr_t recv;
    ucs_status_t status;
    char to[8], from[8] = "text";

    if (strcmp(getenv("UCX_TLS"), "self") == 0) {
        return; /* two workers talk to each other here */
    }
    pair.a->worker = open_awake(&pair.a->context);
    pair.b->worker = open_awake(&pair.b->context);
    pair.a->ep     = ut_ep_create(pair.a->worker, pair.b->worker);
    pair.b->ep     = ut_ep_create(pair.b->worker, pair.a->worker);
    open_other(UCP_FEATURE_RMA);
    ut_exchange(&pair, 8, TAG + 1);
    ut_settle(&pair);
    recv = ucp_tag_recv_nbx(pair.a->worker, to, sizeof(to), TAG, UT_TAG_ALL, &none);
    UT_CHECK(ucp_worker_get_efd(pair.a->worker, &event.fd) == UCS_OK, "ucp_worker_get_efd");
    ut_clock_start();
    while ((status = ucp_worker_arm(pair.a->worker)) == UCS_ERR_BUSY) {
        ut_progress(&pair);
        ut_clock_check("arming a worker");
    }
    UT_CHECK_STATUS(status, UCS_OK, "ucp_worker_arm");
    UT_CHECK_STATUS(ut_wait_ptr(&(ut_pair_t){.a = pair.b, .b = pair.b},
                                ucp_tag_send_nbx(pair.b->ep, from, sizeof(from), TAG, &none)),
                    UCS_OK, "send");
    wait_in_other(&pair);
    UT_CHECK(poll(&event, 1, 2000) == 1, "nobody wakes who sleeps on the worker");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, recv), UCS_OK, "receive");
    ut_ep_close(&pair, pair.a->ep);
    ut_ep_close(&pair, pair.b->ep);
    ucp_worker_destroy(pair.a->worker);
    ucp_worker_destroy(pair.b->worker);
    ucp_cleanup(pair.a->context);
    ucp_cleanup(pair.b->context);
    close_other();
}

static const ut_test_t tests[] = {
        UT_TEST(waits_in_worker_for_rma),
        UT_TEST(waits_in_worker_for_tags),
        UT_TEST(waits_in_flush),
        UT_TEST(callbacks_wait_for_their_worker),
        UT_TEST(active_messages_wait_for_their_worker),
        UT_TEST(waits_in_callback),
        UT_TEST(threads_of_their_own),
        UT_TEST(threads_in_turn),
        UT_TEST(takes_over_while_served),
        UT_TEST(wakes_sleepers),
};

UT_MAIN(tests)
