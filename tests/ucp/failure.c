/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers that fail and endpoints that are closed by force: no operation waits for what will never come. Only tcp has
 * endpoints that notice (UCP_ERR_HANDLING_MODE_PEER); over other transports UCX refuses to make them.
 */
#include "ucp_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static ut_pair_t pair;

static struct {
    unsigned calls;
    void *arg;
    ucp_ep_h ep;
    ucs_status_t status;
} failed;

static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ++failed.calls;
    failed.arg    = arg;
    failed.ep     = ep;
    failed.status = status;
}

static ucs_status_t create_ep(ucp_worker_h worker, const ucp_address_t *address, ucp_ep_h *ep_p)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address     = address,
                              .err_mode    = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {on_failure, &failed}};

    return ucp_ep_create(worker, &params, ep_p);
}

/* A pair whose endpoints notice failures. @return false: this transport has none */
static bool open_pair(void)
{
    ut_side_t *sides = pair.sides;
    ucp_address_t *address;
    ucs_status_t status = UCS_OK;
    size_t length;
    unsigned i;

    if (strstr(getenv("UCX_TLS"), "tcp") == NULL) {
        return false;
    }
    pair.a = &sides[0];
    pair.b = &sides[1];
    for (i = 0; i < 2; ++i) {
        sides[i].context = (i == 0) ? ut_context_create(UCP_FEATURE_TAG | UCP_FEATURE_AM) : sides[0].context;
        sides[i].worker  = ut_worker_create(sides[i].context);
    }
    for (i = 0; (i < 2) && (status == UCS_OK); ++i) {
        UT_REQUIRE(ucp_worker_get_address(sides[1 - i].worker, &address, &length) == UCS_OK, "ucp_worker_get_address");
        status = create_ep(sides[i].worker, address, &sides[i].ep);
        ucp_worker_release_address(sides[1 - i].worker, address);
        UT_REQUIRE(status == UCS_OK, "ucp_ep_create: %s", ucs_status_string(status));
    }
    memset(&failed, 0, sizeof(failed));
    ut_exchange(&pair, 100, 1);
    ut_exchange(&pair, 100000, 1);
    return true;
}

static void close_workers(void)
{
    ucp_worker_destroy(pair.a->worker);
    ucp_worker_destroy(pair.b->worker);
    ucp_cleanup(pair.a->context);
}

static ucs_status_ptr_t close_by_force(ucp_ep_h ep, void *request)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};

    if (request != NULL) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST;
        param.request = request;
    }
    return ucp_ep_close_nbx(ep, &param);
}

enum { SENDS = 4 };
static char data[SENDS][1 << 20];

/* Sends that wait for a receive which nobody posts */
static void start_sends(ucp_ep_h ep, ut_op_t *ops)
{
    static const size_t sizes[SENDS] = {8, 20000, 1 << 20, 1 << 20};
    ucp_request_param_t none         = {.op_attr_mask = 0};
    unsigned i;

    memset(ops, 0, SENDS * sizeof(*ops));
    for (i = 0; i < SENDS; ++i) {
        ut_op_set(&ops[i], ucp_tag_send_sync_nbx(ep, data[i], sizes[i], 1000 + i, &none));
        UT_CHECK(!ut_op_is_done(&ops[i]), "send %u does not wait", i);
    }
}

static void check_sends(ut_op_t *ops)
{
    unsigned i;

    for (i = 0; i < SENDS; ++i) {
        UT_CHECK(UCS_STATUS_IS_ERR(ut_wait(&pair, &ops[i])), "send %u has succeeded", i);
    }
}

static void forced_close_of_sender(void)
{
    ut_op_t ops[SENDS];

    if (!open_pair()) {
        return;
    }
    start_sends(pair.a->ep, ops);
    ut_settle(&pair);
    ut_wait_ptr(&pair, close_by_force(pair.a->ep, NULL));
    check_sends(ops);
    ut_wait_ptr(&pair, close_by_force(pair.b->ep, NULL));
    close_workers();
}

/* The other side closes as usual afterwards, and does not wait long for an answer that can't come */
static void usual_close_after_forced(void)
{
    if (!open_pair()) {
        return;
    }
    ut_wait_ptr(&pair, close_by_force(pair.a->ep, NULL));
    ut_settle(&pair);
    ut_ep_close(&pair, pair.b->ep);
    close_workers();
}

/* Memory that held a request of a tag operation: what the close puts there is something else */
static void forced_close_with_user_memory(void)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST};
    ucs_status_ptr_t closing;
    ucs_status_t status;
    ut_memory_t memory;
    ut_op_t ops[SENDS];
    char word[8];

    if (!open_pair()) {
        return;
    }
    ut_memory_open(&memory, pair.a->context);
    param.request = memory.request;
    UT_CHECK(ucp_tag_recv_nbx(pair.a->worker, word, sizeof(word), 5, UT_TAG_ALL, &param) == memory.request, "receive");
    ucp_request_cancel(pair.a->worker, memory.request);
    ut_clock_start();
    while (ucp_request_check_status(memory.request) == UCS_INPROGRESS) {
        ut_progress(&pair);
        ut_clock_check("cancel");
    }
    UT_CHECK_STATUS(ucp_request_check_status(memory.request), UCS_ERR_CANCELED, "receive");
    start_sends(pair.a->ep, ops);
    closing = close_by_force(pair.a->ep, memory.request);
    ut_clock_start();
    while (UCS_PTR_IS_PTR(closing) && ((status = ucp_request_check_status(closing)) == UCS_INPROGRESS)) {
        ut_progress(&pair);
        ut_clock_check("a forced close");
    }
    UT_CHECK(!UCS_PTR_IS_PTR(closing) || (status == UCS_OK), "forced close: %s", ucs_status_string(status));
    check_sends(ops);
    ut_wait_ptr(&pair, close_by_force(pair.b->ep, NULL));
    ut_memory_close(&memory);
    close_workers();
}

static void *kept;

static ucs_status_t on_am(void *arg, const void *header, size_t header_length, void *am_data, size_t length,
                          const ucp_am_recv_param_t *param)
{
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) {
        kept = am_data;
        return UCS_INPROGRESS;
    }
    return UCS_OK;
}

static void releasing_cb(void *request, ucs_status_t status, void *user_data)
{
    UT_CHECK(UCS_STATUS_IS_ERR(status), "a send to nobody has succeeded");
    ucp_am_data_release(pair.a->worker, kept);
    kept = NULL;
}

/* What is over when a worker is destroyed calls back while its program may still use it */
static void destroy_behind_forced_close(void)
{
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
                                      .id    = 3,
                                      .flags = UCP_AM_FLAG_PERSISTENT_DATA,
                                      .cb    = on_am};
    ucp_request_param_t param      = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = releasing_cb};
    ucp_request_param_t none       = {.op_attr_mask = 0};
    ucs_status_ptr_t send;

    if (!open_pair()) {
        return;
    }
    kept = NULL;
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(pair.a->worker, &handler), UCS_OK, "handler");
    (void)ut_wait_ptr(&pair, ucp_am_send_nbx(pair.b->ep, 3, NULL, 0, data[0], 1000, &none));
    ut_clock_start();
    while (kept == NULL) {
        ut_progress(&pair);
        ut_clock_check("an active message");
    }
    send = ucp_tag_send_sync_nbx(pair.a->ep, data[1], 20000, 1000, &param);
    UT_CHECK(UCS_PTR_IS_PTR(send), "a send that nobody receives is over");
    (void)close_by_force(pair.a->ep, NULL);
    close_workers();
    UT_CHECK(kept == NULL, "no callback");
}

/* ------------------------------------------------------- a peer that dies */

typedef struct victim {
    pid_t pid;
    volatile size_t length; /* of its address, once it is there */
    char address[4096];
} victim_t;

static void be_victim(victim_t *victim)
{
    ucp_context_h context = ut_context_create(UCP_FEATURE_TAG);
    ucp_worker_h worker   = ut_worker_create(context);
    ucp_address_t *address;
    size_t length;

    UT_REQUIRE(ucp_worker_get_address(worker, &address, &length) == UCS_OK, "ucp_worker_get_address");
    UT_REQUIRE(length <= sizeof(victim->address), "an address of %zu bytes", length);
    memcpy(victim->address, address, length);
    __atomic_store_n(&victim->length, length, __ATOMIC_RELEASE);
    while (getppid() != 1) {
        ucp_worker_progress(worker);
    }
    _exit(0);
}

static victim_t *start_victim(void)
{
    victim_t *victim = mmap(NULL, sizeof(*victim), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    UT_REQUIRE(victim != MAP_FAILED, "mmap");
    pid = fork();
    UT_REQUIRE(pid >= 0, "fork");
    if (pid == 0) {
        be_victim(victim);
    }
    victim->pid = pid;
    ut_clock_start();
    while (__atomic_load_n(&victim->length, __ATOMIC_ACQUIRE) == 0) {
        ut_clock_check("the other process");
    }
    return victim;
}

/* A worker of ours that is about to send to the victim; false: not on this transport */
static bool meet_victim(victim_t **victim_p, ucp_ep_h *ep_p)
{
    if (strstr(getenv("UCX_TLS"), "tcp") == NULL) {
        return false;
    }
    *victim_p = start_victim();
    pair.a = pair.b = &pair.sides[0];
    pair.a->context = ut_context_create(UCP_FEATURE_TAG);
    pair.a->worker  = ut_worker_create(pair.a->context);
    memset(&failed, 0, sizeof(failed));
    UT_CHECK_STATUS(create_ep(pair.a->worker, (const ucp_address_t *)(*victim_p)->address, ep_p), UCS_OK,
                    "ucp_ep_create");
    return true;
}

static void kill_victim(const victim_t *victim)
{
    kill(victim->pid, SIGKILL);
    waitpid(victim->pid, NULL, 0);
}

static void wait_for_failure(void)
{
    ut_clock_start();
    while (failed.calls == 0) {
        ut_progress(&pair);
        ut_clock_check("the failure of a peer");
    }
}

static void close_worker(void)
{
    ucp_worker_destroy(pair.a->worker);
    ucp_cleanup(pair.a->context);
}

static void leave_victim(ucp_ep_h ep)
{
    ut_wait_ptr(&pair, close_by_force(ep, NULL));
    close_worker();
}

/* As meet_victim(), and sends are under way that it does not receive */
static bool send_to_victim(victim_t **victim_p, ucp_ep_h *ep_p, ut_op_t *ops)
{
    if (!meet_victim(victim_p, ep_p)) {
        return false;
    }
    start_sends(*ep_p, ops);
    ut_settle(&pair);
    return true;
}

static void peer_dies(void)
{
    victim_t *victim;
    ut_op_t ops[SENDS];
    ucp_ep_h ep;

    if (!send_to_victim(&victim, &ep, ops)) {
        return;
    }
    UT_CHECK(failed.calls == 0, "the peer has failed before it died");
    kill_victim(victim);
    wait_for_failure();
    check_sends(ops);
    UT_CHECK((failed.calls == 1) && (failed.ep == ep) && (failed.arg == &failed) && UCS_STATUS_IS_ERR(failed.status),
             "%u calls of the error handler, status %s", failed.calls, ucs_status_string(failed.status));
    leave_victim(ep);
}

/* The same with another handler, which takes the place of the first; none does that UCX refuses */
static void peer_dies_other_handler(void)
{
    static int word;
    ucp_ep_params_t params  = {.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER, .err_handler = {on_failure, &word}};
    ucp_ep_params_t refused = {.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                               .err_mode   = UCP_ERR_HANDLING_MODE_PEER};
    victim_t *victim;
    ut_op_t ops[SENDS];
    ucp_ep_h ep;

    if (!meet_victim(&victim, &ep)) {
        return;
    }
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_modify_nb(ep, &params)), UCS_OK, "ucp_ep_modify_nb");
    UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_ep_modify_nb(ep, &refused)), UCS_ERR_INVALID_PARAM, "of the mode");
    start_sends(ep, ops);
    kill_victim(victim);
    check_sends(ops);
    wait_for_failure();
    UT_CHECK((failed.calls == 1) && (failed.arg == &word), "another handler was called");
    leave_victim(ep);
}

/* While the endpoint is being closed: the close ends, and what waits for the peer fails */
static void peer_dies_while_closing(void)
{
    static const ucp_request_param_t none = {.op_attr_mask = 0};
    victim_t *victim;
    ucs_status_ptr_t closing;
    ut_op_t ops[SENDS];
    ucp_ep_h ep;

    if (!send_to_victim(&victim, &ep, ops)) {
        return;
    }
    closing = ucp_ep_close_nbx(ep, &none);
    ut_settle(&pair);
    kill_victim(victim);
    (void)ut_wait_ptr(&pair, closing);
    check_sends(ops);
    close_worker();
}

static ucp_ep_h two_eps[2];
static ucs_status_ptr_t second_closing;

static void *close_second(void *arg)
{
    static const ucp_request_param_t none = {.op_attr_mask = 0};

    second_closing = ucp_ep_close_nbx(arg, &none);
    return NULL;
}

/* The other one fails next, in the same call of progress, and is being closed by then: by a thread that waits for its turn */
static void on_first_failure(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    pthread_t *thread = arg;

    if (++failed.calls == 1) {
        failed.ep = ep;
        UT_REQUIRE(pthread_create(thread, NULL, close_second, two_eps[ep == two_eps[0]]) == 0, "pthread_create");
        usleep(100000);
    }
}

/* A failure is heard of by an endpoint that another thread closes just then */
static void peer_dies_while_others_close(void)
{
    ucp_ep_params_t params   = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                              UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                .err_mode       = UCP_ERR_HANDLING_MODE_PEER,
                                .err_handler.cb = on_first_failure};
    ucp_request_param_t none = {.op_attr_mask = 0};
    victim_t *victim;
    pthread_t thread;
    ut_op_t ops[SENDS];
    unsigned i;

    if (strstr(getenv("UCX_TLS"), "tcp") == NULL) {
        return;
    }
    victim = start_victim();
    pair.a = pair.b = &pair.sides[0];
    pair.a->context = ut_context_create(UCP_FEATURE_TAG);
    pair.a->worker  = ut_worker_create_with(pair.a->context, UCS_THREAD_MODE_MULTI);
    memset(&failed, 0, sizeof(failed));
    params.address         = (const ucp_address_t *)victim->address;
    params.err_handler.arg = &thread;
    for (i = 0; i < 2; ++i) {
        UT_CHECK_STATUS(ucp_ep_create(pair.a->worker, &params, &two_eps[i]), UCS_OK, "ucp_ep_create");
        UT_CHECK_STATUS(ut_wait_ptr(&pair, ucp_tag_send_nbx(two_eps[i], data[0], 8, 1, &none)), UCS_OK, "send");
    }
    start_sends(two_eps[0], ops);
    ut_settle(&pair);
    kill_victim(victim);
    wait_for_failure();
    pthread_join(thread, NULL);
    check_sends(ops);
    (void)ut_wait_ptr(&pair, second_closing);
    leave_victim(failed.ep);
}

/* A child that is forked off and ends: the parent goes on, and the messages are not the child's */
static void forked(void)
{
    int status;
    pid_t child;

    ut_pair_open(&pair, 0);
    ut_exchange(&pair, 100, 1);
    ut_exchange(&pair, 100000, 2);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        exit(0);
    }
    UT_CHECK((waitpid(child, &status, 0) == child) && (status == 0), "the child ends with %d", status);
    ut_exchange(&pair, 100, 3);
    ut_exchange(&pair, 100000, 4);
    ut_pair_close(&pair);
}

/* A child that goes on by itself, with workers of its own, for long enough that it would look after others of its process's. What it says itself
 * would not arrive over tcp, on plain UCX neither */
static int child_works(void)
{
    static ut_pair_t own;
    unsigned i;

    ut_pair_open(&own, 0);
    for (i = 0; i < 50; ++i) {
        ut_settle(&own);
        usleep(1000);
    }
    return (ut_failures() > 0);
}

/* What was on its way to the parent when it forked is the parent's */
static void forked_and_busy(void)
{
    enum { MANY = 40, LENGTH = 1000 };
    static ut_data_t from[MANY], to;
    static ut_op_t sends[MANY];
    int status, i;
    ut_op_t recv;
    pid_t child;

    ut_pair_open(&pair, 0);
    ut_exchange(&pair, 100, 1);
    for (i = 0; i < MANY; ++i) {
        ut_data_open(&from[i], UT_CONTIG1, LENGTH);
        ut_data_fill(&from[i], (unsigned)i);
        ut_send(&sends[i], pair.a, UT_SEND_NBX, &from[i], (ucp_tag_t)i);
    }
    fflush(stdout);
    child = fork();
    if (child == 0) {
        _exit(child_works());
    }
    UT_CHECK((waitpid(child, &status, 0) == child) && (status == 0), "the child ends with %d", status);
    ut_data_open(&to, UT_CONTIG1, LENGTH);
    for (i = 0; i < MANY; ++i) {
        ut_recv(&recv, &pair, UT_RECV_NBX, &to, (ucp_tag_t)i, UT_TAG_ALL);
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &sends[i]), UCS_OK, "send");
        UT_CHECK(ut_data_check(&to, LENGTH, (unsigned)i), "wrong content of message %d", i);
        ut_data_close(&from[i]);
    }
    ut_data_close(&to);
    ut_exchange(&pair, 100000, 2);
    ut_pair_close(&pair);
}

static const ut_test_t tests[] = {UT_TEST(peer_dies),
                                  UT_TEST(peer_dies_other_handler),
                                  UT_TEST(peer_dies_while_closing),
                                  UT_TEST(peer_dies_while_others_close),
                                  UT_TEST(forced_close_of_sender),
                                  UT_TEST(usual_close_after_forced),
                                  UT_TEST(forced_close_with_user_memory),
                                  UT_TEST(destroy_behind_forced_close),
                                  UT_TEST(forked),
                                  UT_TEST(forked_and_busy)};

UT_MAIN(tests)
