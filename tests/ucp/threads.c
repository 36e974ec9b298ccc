/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Workers of mode MULTI, used by many threads at the same time for everything that takes a lock: messages of all sizes,
 * probes, cancels, calls that wait inside of UCX, and callbacks that post. Threads meet on two workers, or have their own, one after the other.
 */
#include "ucp_test.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { MESSENGERS = 4, ROUNDS = 60, LIVES = 10, CONTEXTS = 50, AM_ID = 7 };
enum { TAG_PROBED = 5000, TAG_NEVER = 6000, TAG_NESTED = 7000 };

static ut_pair_t pair;
static unsigned running;      /* threads that have an end of their own */
static unsigned nested_sends; /* posted from callbacks */
static unsigned flushing;     /* the thread that flushes runs */

static bool others_run(void)
{
    return __atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0;
}

static void wait_for(ucs_status_ptr_t ptr, ucs_status_t expected, const char *what)
{
    UT_CHECK_STATUS(ut_wait_in_thread(&pair, ptr), expected, what);
}

static const ucp_request_param_t none = {.op_attr_mask = 0};

/* ------------------------------------------------------------- messages */

static void *messenger(void *argument)
{
    static const size_t sizes[] = {8, 700, 8192, 9000, 60000, 300000};
    unsigned number             = (unsigned)(uintptr_t)argument, i;
    char *from = malloc(300000), *to = malloc(300000);
    ucs_status_ptr_t send, recv;
    size_t length;

    for (i = 0; i < ROUNDS; ++i) {
        length = sizes[(i + number) % 6];
        ut_fill(from, length, i + number);
        recv = ucp_tag_recv_nbx(pair.b->worker, to, length, number, UT_TAG_ALL, &none);
        send = ((i % 3) == 0) ? ucp_tag_send_sync_nbx(pair.a->ep, from, length, number, &none)
                              : ucp_tag_send_nbx(pair.a->ep, from, length, number, &none);
        wait_for(recv, UCS_OK, "receive");
        wait_for(send, UCS_OK, "send");
        UT_CHECK(ut_verify(to, length, i + number) == SIZE_MAX, "wrong content, %zu bytes", length);
    }
    free(from);
    free(to);
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *prober(void *argument)
{
    char from[9000], to[9000];
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;
    ucs_status_ptr_t send;
    unsigned i;

    for (i = 0; i < ROUNDS; ++i) {
        ut_fill(from, sizeof(from), i);
        send = ucp_tag_send_nbx(pair.a->ep, from, sizeof(from) - (i % 2) * 1000, TAG_PROBED, &none);
        while ((message = ucp_tag_probe_nb(pair.b->worker, TAG_PROBED, UT_TAG_ALL, 1, &info)) == NULL) {
            ut_progress(&pair);
            sched_yield();
        }
        UT_CHECK(info.length == sizeof(from) - (i % 2) * 1000, "a probe finds %zu bytes", info.length);
        wait_for(ucp_tag_msg_recv_nbx(pair.b->worker, to, sizeof(to), message, &none), UCS_OK, "probed receive");
        wait_for(send, UCS_OK, "send");
        UT_CHECK(ut_verify(to, info.length, i) == SIZE_MAX, "wrong content");
    }
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *canceller(void *argument)
{
    ucs_status_ptr_t recv;
    char word[8];

    while (others_run()) {
        recv = ucp_tag_recv_nbx(pair.b->worker, word, sizeof(word), TAG_NEVER, UT_TAG_ALL, &none);
        ucp_request_cancel(pair.b->worker, recv);
        wait_for(recv, UCS_ERR_CANCELED, "a cancelled receive");
        sched_yield();
    }
    return NULL;
}

/* -------------------------------------------------- locks inside of locks */

/* UCX makes progress inside of these with its own lock held */
static void *flusher(void *argument)
{
    while (others_run()) {
        UT_CHECK_STATUS(ucp_worker_flush(pair.a->worker), UCS_OK, "ucp_worker_flush");
        UT_CHECK_STATUS(ucp_ep_flush(pair.a->ep), UCS_OK, "ucp_ep_flush");
        wait_for(ucp_worker_flush_nbx(pair.b->worker, &none), UCS_OK, "ucp_worker_flush_nbx");
        sched_yield();
    }
    __atomic_store_n(&flushing, 0, __ATOMIC_RELEASE);
    return NULL;
}

/* What such a call waits for may need the other worker's progress, while all others wait for the lock of this one */
static void *helper(void *argument)
{
    while (__atomic_load_n(&flushing, __ATOMIC_ACQUIRE)) {
        ucp_worker_progress(pair.b->worker);
        sched_yield();
    }
    return NULL;
}

static void nested_cb(void *request, ucs_status_t status, void *user_data)
{
    static uint64_t word;
    ucs_status_ptr_t ptr = ucp_tag_send_nbx(pair.a->ep, &word, sizeof(word), TAG_NESTED, &none);

    UT_CHECK(!UCS_PTR_IS_ERR(ptr), "a send from a callback");
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
    __atomic_add_fetch(&nested_sends, 1, __ATOMIC_RELAXED);
}

static ucs_status_t on_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
                          const ucp_am_recv_param_t *param)
{
    return UCS_OK;
}

/* With NO_IMM_CMPL UCX calls back from within the call, with its own lock held */
static void *nester(void *argument)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.send      = nested_cb};
    uint64_t word;
    unsigned i;

    for (i = 0; i < ROUNDS; ++i) {
        wait_for(ucp_am_send_nbx(pair.a->ep, AM_ID, NULL, 0, &word, sizeof(word), &param), UCS_OK, "am_send_nbx");
        wait_for(ucp_tag_recv_nbx(pair.b->worker, &word, sizeof(word), TAG_NESTED, UT_TAG_ALL, &none), UCS_OK,
                 "receive of what a callback sent");
    }
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Tables that all look into change meanwhile */
static void *opener(void *argument)
{
    ucp_datatype_t datatype;
    ucp_generic_dt_ops_t ops = {NULL};
    ucp_worker_h worker;
    ucp_context_h context;

    while (others_run()) {
        UT_CHECK_STATUS(ucp_dt_create_generic(&ops, NULL, &datatype), UCS_OK, "ucp_dt_create_generic");
        ucp_dt_destroy(datatype);
        context = ut_context_create(UCP_FEATURE_TAG);
        worker  = ut_worker_create(context);
        ucp_worker_progress(worker);
        ucp_worker_destroy(worker);
        ucp_cleanup(context);
        usleep(2000);
    }
    return NULL;
}

static void run_all(void *(*const *functions)(void *), unsigned count, unsigned ending)
{
    ucp_am_handler_param_t handler = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = AM_ID, .cb = on_am};
    pthread_t threads[16];
    unsigned i;

    ut_pair_open_with(&pair, UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM, UCS_THREAD_MODE_MULTI);
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(pair.b->worker, &handler), UCS_OK, "set_am_recv_handler");
    running  = ending;
    flushing = 1;
    for (i = 0; i < count; ++i) {
        UT_REQUIRE(pthread_create(&threads[i], NULL, functions[i], (void *)(uintptr_t)i) == 0, "pthread_create");
    }
    for (i = 0; i < count; ++i) {
        pthread_join(threads[i], NULL);
    }
    ut_pair_close(&pair);
}

static void everything(void)
{
    void *(*const functions[])(void *) = {messenger, messenger, messenger, messenger, prober,
                                          nester,    canceller, flusher,   helper,    opener};

    run_all(functions, 10, 6);
    UT_CHECK(nested_sends == ROUNDS, "%u sends from callbacks", nested_sends);
}

static void asking_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    unsigned *called = user_data;

    UT_CHECK_STATUS(ucp_request_check_status(request), status, "check_status inside of the callback");
    UT_CHECK(ucp_request_is_completed(request), "not completed inside of the callback");
    ++*called;
}

/* A callback is told that its request is over: matched, and canceled */
static void callback_asks(void)
{
    unsigned called           = 0;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv      = asking_cb,
                                 .user_data    = &called};
    char from[100]            = {0}, to[100];
    ucs_status_ptr_t recv;

    ut_pair_open_with(&pair, UCP_FEATURE_TAG, UCS_THREAD_MODE_MULTI);
    recv = ucp_tag_recv_nbx(pair.b->worker, to, sizeof(to), 1, UT_TAG_ALL, &param);
    wait_for(ucp_tag_send_nbx(pair.a->ep, from, sizeof(from), 1, &none), UCS_OK, "send");
    wait_for(recv, UCS_OK, "receive");
    recv = ucp_tag_recv_nbx(pair.b->worker, to, sizeof(to), 2, UT_TAG_ALL, &param);
    ucp_request_cancel(pair.b->worker, recv);
    wait_for(recv, UCS_ERR_CANCELED, "receive");
    UT_CHECK(called == 2, "%u callbacks", called);
    ut_pair_close(&pair);
}

/* --------------------------------------------- a worker for each thread */

/* A worker that sends to itself */
static void use_worker(ucp_context_h context, unsigned number, unsigned rounds)
{
    char from[20000], to[sizeof(from)];
    ucs_status_ptr_t send, recv;
    ucp_worker_h worker = ut_worker_create(context);
    ucp_ep_h ep         = ut_ep_create(worker, worker);
    size_t length;
    unsigned i;

    for (i = 0; i < rounds; ++i) {
        length = (i % 2) ? sizeof(from) : 100;
        ut_fill(from, length, i + number);
        recv = ucp_tag_recv_nbx(worker, to, length, number, UT_TAG_ALL, &none);
        send = ucp_tag_send_nbx(ep, from, length, number, &none);
        while ((UCS_PTR_IS_PTR(recv) && !ucp_request_is_completed(recv)) ||
               (UCS_PTR_IS_PTR(send) && !ucp_request_is_completed(send))) {
            ucp_worker_progress(worker);
        }
        UT_CHECK(ut_verify(to, length, i + number) == SIZE_MAX, "wrong content");
        if (UCS_PTR_IS_PTR(recv)) {
            ucp_request_free(recv);
        }
        if (UCS_PTR_IS_PTR(send)) {
            ucp_request_free(send);
        }
    }
    ucp_worker_destroy(worker);
}

static void *own_worker(void *argument)
{
    ucp_context_h context = ut_context_create(UCP_FEATURE_TAG);

    use_worker(context, (unsigned)(uintptr_t)argument, ROUNDS);
    ucp_cleanup(context);
    return NULL;
}

static void *worker_after_worker(void *argument)
{
    ucp_context_h context = ut_context_create(UCP_FEATURE_TAG);
    unsigned lives;

    for (lives = 0; lives < LIVES; ++lives) {
        use_worker(context, (unsigned)(uintptr_t)argument, ROUNDS / LIVES);
    }
    ucp_cleanup(context);
    return NULL;
}

static void run_each(void *(*function)(void *))
{
    pthread_t threads[MESSENGERS];
    unsigned i;

    for (i = 0; i < MESSENGERS; ++i) {
        UT_REQUIRE(pthread_create(&threads[i], NULL, function, (void *)(uintptr_t)i) == 0, "pthread_create");
    }
    for (i = 0; i < MESSENGERS; ++i) {
        pthread_join(threads[i], NULL);
    }
}

static void workers_apart(void)
{
    run_each(own_worker);
}

/* One of all stays */
static void workers_come_and_go(void)
{
    ucp_context_h context = ut_context_create(UCP_FEATURE_TAG);
    ucp_worker_h worker   = ut_worker_create(context);

    run_each(worker_after_worker);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

/* ------------------------------------------------------- configurations */

static void *contexts_after_contexts(void *argument)
{
    const ucp_config_t *config = argument;
    ucp_params_t params        = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_context_h context;
    unsigned i;

    for (i = 0; i < CONTEXTS; ++i) {
        UT_REQUIRE(ucp_init(&params, config, &context) == UCS_OK, "ucp_init");
        ucp_cleanup(context);
    }
    return NULL;
}

/* UCX only reads it */
static void contexts_of_one_config(void)
{
    pthread_t threads[MESSENGERS];
    ucp_config_t *config;
    unsigned i;

    UT_REQUIRE(ucp_config_read(NULL, NULL, &config) == UCS_OK, "ucp_config_read");
    for (i = 0; i < MESSENGERS; ++i) {
        UT_REQUIRE(pthread_create(&threads[i], NULL, contexts_after_contexts, config) == 0, "pthread_create");
    }
    for (i = 0; i < MESSENGERS; ++i) {
        pthread_join(threads[i], NULL);
    }
    ucp_config_release(config);
}

static const ut_test_t tests[] = {UT_TEST(callback_asks), UT_TEST(everything), UT_TEST(contexts_of_one_config),
                                  UT_TEST(workers_apart), UT_TEST(workers_come_and_go)};

UT_MAIN(tests)
