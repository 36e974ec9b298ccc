/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that sleeps between events is woken for everything that has to be done for its messages: with UCX's
 * descriptor, with one of its own, and by the call that waits itself.
 */
#include "ucp_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static ut_pair_t pair;
static unsigned nap_us; /* 0: sleeps until there is something */

/* self has no events, and over tcp plain UCX 1.13 misses some between workers of one process */
static bool has_events(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls != NULL) && (strncmp(tls, "posix", 5) == 0);
}

static unsigned progress_until_quiet(void)
{
    unsigned count, all = 0;

    do {
        count = ucp_worker_progress(pair.a->worker) + ucp_worker_progress(pair.b->worker);
        all += count;
    } while (count > 0);
    return all;
}

/* Progress until nothing moves, arm, sleep until there is something. @return false: nobody wakes us */
static bool sleep_until_event(void)
{
    ucp_worker_h workers[] = {pair.a->worker, pair.b->worker};
    struct pollfd fds[2];
    ucs_status_t status;
    unsigned i;

    progress_until_quiet();
    if (nap_us > 0) {
        usleep(nap_us);
        return true;
    }
    for (i = 0; i < 2; ++i) {
        status = ucp_worker_arm(workers[i]);
        if (status == UCS_ERR_BUSY) {
            return true;
        }
        UT_CHECK_STATUS(status, UCS_OK, "ucp_worker_arm");
        UT_CHECK_STATUS(ucp_worker_get_efd(workers[i], &fds[i].fd), UCS_OK, "ucp_worker_get_efd");
        fds[i].events = POLLIN;
    }
    return poll(fds, 2, 5000) > 0;
}

static void sleep_until_done(ut_op_t *op, const char *what)
{
    ut_clock_start();
    while (!ut_op_is_done(op)) {
        ut_clock_check(what);
        if (!sleep_until_event()) {
            UT_CHECK(false, "%s: nobody wakes us, and it is not done", what);
            return;
        }
    }
}

/* Messages of all sizes, sent and received asleep; with faults injected, repairs too need nobody to poll */
static void messages(void)
{
    static const size_t sizes[] = {8, 8192, 9000, 300000, 5 << 20};
    ut_data_t from, to;
    ut_op_t send, recv;
    unsigned i;

    if (!has_events()) {
        return;
    }
    ut_pair_open(&pair, UCP_FEATURE_WAKEUP);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        ut_data_open(&from, UT_CONTIG1, sizes[i]);
        ut_data_open(&to, UT_CONTIG1, sizes[i]);
        ut_data_fill(&from, i);
        ut_recv(&recv, &pair, UT_RECV_NBX, &to, i, UT_TAG_ALL);
        ut_send(&send, pair.a, UT_SEND_SYNC_NBX, &from, i);
        sleep_until_done(&recv, "receive");
        sleep_until_done(&send, "send");
        UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
        UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
        UT_CHECK(ut_data_check(&to, sizes[i], i), "%zu bytes: wrong content", sizes[i]);
        ut_data_close(&from);
        ut_data_close(&to);
    }
    ut_pair_close(&pair);
}

/* A program that looks only now and then: what is lost is asked for in time though its turns are few */
static void napping(void)
{
    nap_us = 50000;
    messages();
    nap_us = 0;
}

/* Active messages, by each protocol: the receiver is asleep when they come */
typedef struct am {
    unsigned calls;
    void *desc;
} am_t;

static ucs_status_t on_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
                          const ucp_am_recv_param_t *param)
{
    am_t *am = arg;

    ++am->calls;
    am->desc = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) ? data : NULL;
    return (am->desc != NULL) ? UCS_INPROGRESS : UCS_OK;
}

static void sleep_until_called(const am_t *am, unsigned calls)
{
    ut_clock_start();
    while (am->calls < calls) {
        ut_clock_check("an active message");
        if (!sleep_until_event()) {
            UT_CHECK(false, "nobody wakes us for active message %u", calls);
            return;
        }
    }
}

/* A pair whose second worker tells @a am of what comes */
static void open_pair_for(am_t *am)
{
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id  = 0,
                                      .cb  = on_am,
                                      .arg = am};

    ut_pair_open_with(&pair, ut_features | UCP_FEATURE_WAKEUP, UCS_THREAD_MODE_SINGLE);
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(pair.b->worker, &handler), UCS_OK, "set_am_recv_handler");
}

/* The receive of what has come as a rendezvous: its bytes are those of @a seed */
static void receive_asleep(const am_t *am, char *to, size_t length, unsigned seed)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ut_op_t recv;

    ut_op_open(&recv, false);
    ut_op_set(&recv, ucp_am_recv_data_nbx(pair.b->worker, am->desc, to, length, &none));
    sleep_until_done(&recv, "receive");
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
    UT_CHECK(ut_verify(to, length, seed) == SIZE_MAX, "%zu bytes: wrong content", length);
}

static void active_messages(void)
{
    static char from[300000], to[sizeof(from)];
    static const size_t sizes[] = {8, 8192, 9000, sizeof(from)};
    am_t am                     = {0};
    ucp_request_param_t param   = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS};
    ut_op_t send;
    unsigned i;

    if (!has_events()) {
        return;
    }
    open_pair_for(&am);
    for (i = 0; i < 2 * (sizeof(sizes) / sizeof(sizes[0])); ++i) {
        param.flags = (i & 1) ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
        ut_op_open(&send, false);
        ut_fill(from, sizes[i / 2], i);
        ut_op_set(&send, ucp_am_send_nbx(pair.a->ep, 0, NULL, 0, from, sizes[i / 2], &param));
        sleep_until_called(&am, i + 1);
        if (am.desc != NULL) {
            receive_asleep(&am, to, sizes[i / 2], i);
        }
        sleep_until_done(&send, "send");
        UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
    }
    ut_pair_close(&pair);
}

/* A sender that sleeps is woken where plain UCX may have completed its send at once, and the layer below makes up for it later (an active message: to
 * which size UCX does so it does not say); nobody receives. Plain UCX waits with the larger one, so the size is small */
static void late_send(void)
{
    static char from[200000], to[sizeof(from)];
    const size_t length      = ut_uci_is_on() ? sizeof(from) : 1000;
    am_t am                  = {0};
    ucp_request_param_t none = {.op_attr_mask = 0};
    ut_op_t send;

    if (!has_events()) {
        return;
    }
    open_pair_for(&am);
    ut_op_open(&send, false);
    ut_fill(from, length, 1);
    ut_op_set(&send, ucp_am_send_nbx(pair.a->ep, 0, NULL, 0, from, length, &none));
    sleep_until_done(&send, "a send that nobody receives");
    sleep_until_called(&am, 1);
    if (am.desc != NULL) {
        receive_asleep(&am, to, length, 1);
    }
    UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
    ut_pair_close(&pair);
}

/* Endpoints close asleep */
static void closing(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t closes[2];
    ut_op_t ops[2];
    unsigned i;

    if (!has_events()) {
        return;
    }
    ut_pair_open(&pair, UCP_FEATURE_WAKEUP);
    ut_exchange(&pair, 100, 1);
    memset(ops, 0, sizeof(ops));
    closes[0] = ucp_ep_close_nbx(pair.a->ep, &none);
    closes[1] = ucp_ep_close_nbx(pair.b->ep, &none);
    for (i = 0; i < 2; ++i) {
        ut_op_set(&ops[i], closes[i]);
    }
    for (i = 0; i < 2; ++i) {
        sleep_until_done(&ops[i], "close");
        UT_CHECK_STATUS(ut_wait(&pair, &ops[i]), UCS_OK, "close");
    }
    ucp_worker_destroy(pair.b->worker);
    ucp_worker_destroy(pair.a->worker);
    ucp_cleanup(pair.a->context);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + ((double)now.tv_nsec / 1e9);
}

/* A worker with nothing to do sleeps: no timer of anybody's wakes it */
static void nothing_to_do(void)
{
    struct pollfd fd = {.events = POLLIN};
    double begin     = seconds();

    if (!has_events() || ut_faults_are_on()) {
        return;
    }
    ut_pair_open(&pair, UCP_FEATURE_WAKEUP);
    ut_exchange(&pair, 100000, 1);
    do {
        progress_until_quiet();
        UT_REQUIRE(seconds() - begin < 10, "the worker is never quiet");
    } while (ucp_worker_arm(pair.a->worker) != UCS_OK);
    UT_CHECK_STATUS(ucp_worker_get_efd(pair.a->worker, &fd.fd), UCS_OK, "ucp_worker_get_efd");
    UT_CHECK(poll(&fd, 1, 300) == 0, "an idle worker is woken");
    UT_CHECK_STATUS(ucp_worker_signal(pair.a->worker), UCS_OK, "ucp_worker_signal");
    UT_CHECK(poll(&fd, 1, 5000) == 1, "ucp_worker_signal does not wake");
    UT_CHECK_STATUS(ucp_worker_arm(pair.a->worker), UCS_ERR_BUSY, "ucp_worker_arm after a signal");
    UT_CHECK_STATUS(ucp_worker_arm(pair.a->worker), UCS_OK, "ucp_worker_arm after that");
    ut_pair_close(&pair);
}

/* The call that waits by itself: both ends are one worker, so each turn waits for its own messages */
static void waiting(void)
{
    ut_data_t from, to;
    ut_op_t send, recv;
    int word = 0;

    if (!has_events()) {
        return;
    }
    ut_pair_open_self(&pair, UCP_FEATURE_WAKEUP);
    UT_CHECK_STATUS(ucp_worker_signal(pair.a->worker), UCS_OK, "ucp_worker_signal");
    UT_CHECK_STATUS(ucp_worker_wait(pair.a->worker), UCS_OK, "ucp_worker_wait");
    ucp_worker_wait_mem(pair.a->worker, &word);
    ut_data_open(&from, UT_CONTIG1, 1000);
    ut_data_open(&to, UT_CONTIG1, 1000);
    ut_data_fill(&from, 1);
    ut_recv(&recv, &pair, UT_RECV_NBX, &to, 1, UT_TAG_ALL);
    ut_send(&send, pair.a, UT_SEND_SYNC_NBX, &from, 1);
    ut_clock_start();
    while (!ut_op_is_done(&recv) || !ut_op_is_done(&send)) {
        if (progress_until_quiet() == 0) {
            UT_CHECK_STATUS(ucp_worker_signal(pair.a->worker), UCS_OK, "ucp_worker_signal");
            UT_CHECK_STATUS(ucp_worker_wait(pair.a->worker), UCS_OK, "ucp_worker_wait");
        }
        ut_clock_check("a message to oneself");
    }
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
    UT_CHECK_STATUS(ut_wait(&pair, &send), UCS_OK, "send");
    UT_CHECK(ut_data_check(&to, 1000, 1), "wrong content");
    ut_data_close(&from);
    ut_data_close(&to);
    ut_pair_close(&pair);
}

/* A worker with the program's own set of events, and its own word for the worker's, connected to itself. @return the set */
static int open_given_set(ut_side_t *side)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_EVENT_FD | UCP_WORKER_PARAM_FIELD_USER_DATA,
                                  .user_data  = &pair};

    pair.a = pair.b = side;
    side->context   = ut_context_create(UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP);
    params.event_fd = epoll_create1(0);
    UT_REQUIRE(ucp_worker_create(side->context, &params, &side->worker) == UCS_OK, "ucp_worker_create");
    side->ep = ut_ep_create(side->worker, side->worker);
    return params.event_fd;
}

static void given_set(void)
{
    static char data[100000], back[sizeof(data)];
    ucp_request_param_t none = {.op_attr_mask = 0};
    ut_side_t *side          = &pair.sides[0];
    struct epoll_event event;
    ut_op_t ops[2];
    int fd, set, count;

    if (!has_events()) {
        return;
    }
    set = open_given_set(side);
    UT_CHECK_STATUS(ucp_worker_get_efd(side->worker, &fd), UCS_ERR_UNSUPPORTED, "ucp_worker_get_efd");
    ut_fill(data, sizeof(data), 1);
    memset(ops, 0, sizeof(ops));
    ops[0].recv = true;
    ut_op_set(&ops[0], ucp_tag_recv_nbx(side->worker, back, sizeof(back), 1, UT_TAG_ALL, &none));
    ut_op_set(&ops[1], ucp_tag_send_sync_nbx(side->ep, data, sizeof(data), 1, &none));
    ut_clock_start();
    while (!ut_op_is_done(&ops[0]) || !ut_op_is_done(&ops[1])) {
        ut_clock_check("a message to oneself");
        if ((progress_until_quiet() > 0) || (ucp_worker_arm(side->worker) == UCS_ERR_BUSY)) {
            continue;
        }
        count = epoll_wait(set, &event, 1, 1000);
        UT_CHECK((count <= 0) || (event.data.ptr == &pair), "an event with another word");
    }
    UT_CHECK_STATUS(ut_wait(&pair, &ops[0]), UCS_OK, "receive");
    UT_CHECK_STATUS(ut_wait(&pair, &ops[1]), UCS_OK, "send");
    UT_CHECK(ut_verify(back, sizeof(back), 1) == SIZE_MAX, "wrong content");
    ut_pair_close(&pair);
    close(set);
}

/* A send that nobody takes yet: UCI waits for a time. @return what ucp_worker_arm() says in the end */
static ucs_status_t arm_beside_send(ut_side_t *side, ut_op_t *send)
{
    static char data[100000];
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_t status;
    double begin = seconds();

    memset(send, 0, sizeof(*send));
    ut_op_set(send, ucp_tag_send_sync_nbx(side->ep, data, sizeof(data), 1, &none));
    do {
        progress_until_quiet();
        status = ucp_worker_arm(side->worker);
    } while ((status == UCS_ERR_BUSY) && (seconds() - begin < 0.5));
    return status;
}

static void end_send(ut_side_t *side, ut_op_t *send)
{
    static char back[100000];
    ucp_request_param_t none = {.op_attr_mask = 0};
    ut_op_t recv             = {.recv = true};

    ut_op_set(&recv, ucp_tag_recv_nbx(side->worker, back, sizeof(back), 1, UT_TAG_ALL, &none));
    UT_CHECK_STATUS(ut_wait(&pair, &recv), UCS_OK, "receive");
    UT_CHECK_STATUS(ut_wait(&pair, send), UCS_OK, "send");
}

/* @return a timer in the set, or one that has this number there; -1: none */
static int find_timer(int set, int number)
{
    char name[64], line[128], what[64];
    int fd, found = -1;
    ssize_t length;
    FILE *stream;

    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", set);
    stream = fopen(name, "r");
    UT_REQUIRE(stream != NULL, "%s", name);
    while (fgets(line, sizeof(line), stream) != NULL) {
        if (sscanf(line, "tfd: %d", &fd) != 1) {
            continue;
        }
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        length                                  = readlink(name, what, sizeof(what) - 1);
        what[(length > 0) ? (size_t)length : 0] = '\0';
        if ((fd == number) || (strcmp(what, "anon_inode:[timerfd]") == 0)) {
            found = fd;
        }
    }
    fclose(stream);
    return found;
}

/* A child keeps all descriptors: UCI's timer must leave the program's set with its worker all the same. (UCX 1.13 itself may leave the descriptor of
 * ucp_worker_signal() there.) */
static void forked_set(void)
{
    ut_side_t *side = &pair.sides[0];
    int set, timer;
    ut_op_t send;
    pid_t child;

    if (!has_events()) {
        return;
    }
    set = open_given_set(side);
    (void)arm_beside_send(side, &send);
    child = fork();
    if (child == 0) {
        sleep(60);
        _exit(0);
    }
    end_send(side, &send);
    timer = find_timer(set, -1);
    ut_pair_close(&pair);
    UT_CHECK((timer < 0) || (find_timer(set, timer) < 0), "the timer of a worker that is gone is in the set");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(set);
}

/* Without a descriptor for UCI's timer the program polls, and is told so once */
static void no_descriptors(void)
{
    int said = dup(STDERR_FILENO), none = open("/dev/null", O_RDONLY), last;
    ut_side_t *side = &pair.sides[0];
    struct rlimit limit, few;
    FILE *lines = tmpfile();
    ut_op_t send;
    long bytes;

    if (!has_events() || ut_faults_are_on()) { /* repairs are told too */
        return;
    }
    ut_pair_open_self(&pair, UCP_FEATURE_WAKEUP);
    ut_exchange(&pair, 100000, 1); /* what that needs is open */
    UT_REQUIRE((lines != NULL) && (getrlimit(RLIMIT_NOFILE, &limit) == 0), "getrlimit");
    last = dup(none);
    close(last);
    few = (struct rlimit){.rlim_cur = (rlim_t)last, .rlim_max = limit.rlim_max};
    dup2(fileno(lines), STDERR_FILENO);
    UT_REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
    (void)arm_beside_send(side, &send);
    UT_REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    dup2(said, STDERR_FILENO);
    bytes = lseek(fileno(lines), 0, SEEK_END);
    UT_CHECK(bytes < 2000, "%ld bytes are said", bytes);
    end_send(side, &send);
    ut_pair_close(&pair);
    fclose(lines);
    close(none);
    close(said);
}

static const ut_test_t tests[] = {UT_TEST(messages),
                                  {"late_send", late_send, UCP_FEATURE_TAG | UCP_FEATURE_AM},
                                  {"active_messages", active_messages, UCP_FEATURE_TAG | UCP_FEATURE_AM},
                                  {"active_messages_alone", active_messages, UCP_FEATURE_AM},
                                  UT_TEST(napping),
                                  UT_TEST(closing),
                                  UT_TEST(nothing_to_do),
                                  UT_TEST(waiting),
                                  UT_TEST(given_set),
                                  UT_TEST(forked_set),
                                  UT_TEST(no_descriptors)};

UT_MAIN(tests)
