/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two processes, started differently: usage: unlike EXPECTED [NAME=VALUE]...
 *
 * The second process is this program again, with its environment changed as the arguments say ("NAME=" removes).
 * Each connects to the other and exchanges messages. EXPECTED is what each side must see:
 *
 *     talk     both connect, and messages of several sizes arrive in both directions; by socket address also an active message, sent first of all
 *     refuse   neither can connect: ucp_ep_create fails on both sides, and nothing hangs
 *     die      as talk; then the second process ends without a word, and what the first one waits for ends with an error
 *
 * With UNLIKE_WAY=socket the second process connects to the first by socket address; who is refused there hears it as an error of the endpoint,
 * and a server may hear of no client at all. With UNLIKE_WAY=socket-back the first connects to the second.
 */
#include "ucp_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHANNEL 200 /* file descriptor of the socket between both */

enum { OUTLIVED = 4000000 }; /* bytes of a message that nothing takes for sent before its receiver has it */

static void channel_send(const void *data, size_t length)
{
    UT_REQUIRE(send(CHANNEL, data, length, 0) == (ssize_t)length, "the other process is gone");
}

static void channel_recv(void *data, size_t length)
{
    UT_REQUIRE(recv(CHANNEL, data, length, MSG_WAITALL) == (ssize_t)length, "the other process is gone");
}

/* What the other side says, while this one goes on */
static uint32_t channel_exchange(ucp_worker_h worker, uint32_t word)
{
    uint32_t other;

    channel_send(&word, sizeof(word));
    ut_clock_start();
    while (recv(CHANNEL, &other, sizeof(other), MSG_DONTWAIT | MSG_PEEK) != sizeof(other)) {
        ucp_worker_progress(worker);
        ut_clock_check("what the other process does");
    }
    channel_recv(&other, sizeof(other));
    return other;
}

static void *exchange_addresses(ucp_worker_h worker)
{
    ucp_address_t *address;
    size_t length;
    void *other;

    UT_REQUIRE(ucp_worker_get_address(worker, &address, &length) == UCS_OK, "ucp_worker_get_address");
    channel_send(&length, sizeof(length));
    channel_send(address, length);
    ucp_worker_release_address(worker, address);
    channel_recv(&length, sizeof(length));
    other = malloc(length);
    channel_recv(other, length);
    return other;
}

/* Both send first: nothing but the sizes may make it wait */
static void talk(ucp_worker_h worker, ucp_ep_h ep, size_t length, unsigned seed)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    char *from = malloc(length + 1), *to = calloc(1, length + 1);
    ucs_status_ptr_t ptrs[2];
    unsigned i;

    ut_fill(from, length, seed);
    ptrs[0] = ucp_tag_send_nbx(ep, from, length, seed, &none);
    ptrs[1] = ucp_tag_recv_nbx(worker, to, length, seed, UT_TAG_ALL, &none);
    for (i = 0; i < 2; ++i) {
        ut_clock_start();
        while (UCS_PTR_IS_PTR(ptrs[i]) && !ucp_request_is_completed(ptrs[i])) {
            ucp_worker_progress(worker);
            ut_clock_check((i == 0) ? "a send" : "a receive");
        }
        if (UCS_PTR_IS_PTR(ptrs[i])) {
            UT_CHECK_STATUS(ucp_request_check_status(ptrs[i]), UCS_OK, (i == 0) ? "send" : "receive");
            ucp_request_free(ptrs[i]);
        } else {
            UT_CHECK_STATUS(UCS_PTR_STATUS(ptrs[i]), UCS_OK, (i == 0) ? "send" : "receive");
        }
    }
    UT_CHECK(ut_verify(to, length, seed) == SIZE_MAX, "wrong content, %zu bytes", length);
    free(from);
    free(to);
}

static void close_ep(ucp_worker_h worker, ucp_ep_h ep, uint32_t flags)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
    ucs_status_ptr_t ptr      = ucp_ep_close_nbx(ep, &param);

    ut_clock_start();
    while (UCS_PTR_IS_PTR(ptr) && !ucp_request_is_completed(ptr)) {
        ucp_worker_progress(worker);
        ut_clock_check("a close");
    }
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
}

static const char *expected;
static bool is_second;

static bool is_expected(const char *what)
{
    return strcmp(expected, what) == 0;
}

static void talk_of_all_sizes(ucp_worker_h worker, ucp_ep_h ep)
{
    static const size_t sizes[] = {0, 8, 8192, 9000, 1000000};
    unsigned i;

    for (i = 0; i < 3 * (sizeof(sizes) / sizeof(sizes[0])); ++i) {
        talk(worker, ep, sizes[i / 3], i);
    }
    channel_exchange(worker, 0);
}

static void meet(void)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_context_h context  = ut_context_create(UCP_FEATURE_TAG);
    ucp_worker_h worker    = ut_worker_create(context);
    void *other            = exchange_addresses(worker);
    ucs_status_t status, other_status;
    ucp_ep_h ep;

    params.address = other;
    status         = ucp_ep_create(worker, &params, &ep);
    other_status   = (ucs_status_t)(int32_t)channel_exchange(worker, (uint32_t)(int32_t)status);
    if (strcmp(expected, "refuse") == 0) {
        UT_CHECK(status != UCS_OK, "connected to a peer that should have been refused");
        UT_CHECK(other_status != UCS_OK, "the other side connected");
    } else {
        UT_CHECK_STATUS(status, UCS_OK, "ucp_ep_create");
    }
    if ((status == UCS_OK) && (other_status == UCS_OK)) {
        talk_of_all_sizes(worker, ep);
    }
    if (status == UCS_OK) {
        close_ep(worker, ep, 0);
    }
    channel_exchange(worker, 0);
    free(other);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

/* ------------------------------------------------------- by socket address */

enum { AM_ID = 5 };

static ucp_conn_request_h caller;
static unsigned calls;

static ucs_status_t on_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
                          const ucp_am_recv_param_t *param)
{
    ++calls;
    UT_CHECK((length == sizeof(calls)) && (ut_verify(data, length, AM_ID) == SIZE_MAX), "wrong data");
    return UCS_OK;
}

static void listen_am(ucp_worker_h worker)
{
    ucp_am_handler_param_t param = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = AM_ID, .cb = on_am};

    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(worker, &param), UCS_OK, "ucp_worker_set_am_recv_handler");
}

/* From each side at once: who has no UCI does not wait until the other side knows that */
static void talk_am(ucp_worker_h worker, ucp_ep_h ep)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    char data[sizeof(calls)];
    ucs_status_ptr_t ptr;

    ut_fill(data, sizeof(data), AM_ID);
    ptr = ucp_am_send_nbx(ep, AM_ID, NULL, 0, data, sizeof(data), &none);
    ut_clock_start();
    while ((calls == 0) || (UCS_PTR_IS_PTR(ptr) && !ucp_request_is_completed(ptr))) {
        ucp_worker_progress(worker);
        ut_clock_check("an active message");
    }
    UT_CHECK_STATUS(UCS_PTR_IS_PTR(ptr) ? ucp_request_check_status(ptr) : UCS_PTR_STATUS(ptr), UCS_OK,
                    "send of an active message");
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
}

static unsigned errors;

static void on_request(ucp_conn_request_h request, void *arg)
{
    caller = request;
}

/* In UCX user data take the place of what the handler is to be told */
static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    UT_CHECK(arg == &errors, "another argument of the error handler");
    ++errors;
}

static uint32_t listen_at(ucp_worker_h worker, ucp_listener_h *listener_p)
{
    struct sockaddr_in address   = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ucp_listener_params_t params = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                                                  UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                    .sockaddr        = {(struct sockaddr *)&address, sizeof(address)},
                                    .conn_handler.cb = on_request};
    ucp_listener_attr_t attr     = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};

    UT_REQUIRE(ucp_listener_create(worker, &params, listener_p) == UCS_OK, "ucp_listener_create");
    UT_REQUIRE(ucp_listener_query(*listener_p, &attr) == UCS_OK, "ucp_listener_query");
    return ntohs(((struct sockaddr_in *)&attr.sockaddr)->sin_port);
}

/* @param port  0: accept who has called. @return NULL: refused at once */
static ucp_ep_h open_end(ucp_worker_h worker, uint32_t port)
{
    struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                                            UCP_EP_PARAM_FIELD_USER_DATA,
                              .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler.cb  = on_error,
                              .err_handler.arg = &calls,
                              .user_data       = &errors,
                              .flags           = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
                              .sockaddr        = {(struct sockaddr *)&address, sizeof(address)},
                              .conn_request    = caller};
    ucp_ep_h ep            = NULL;

    params.field_mask |= (port != 0) ? UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR
                                     : UCP_EP_PARAM_FIELD_CONN_REQUEST;
    return (ucp_ep_create(worker, &params, &ep) == UCS_OK) ? ep : NULL;
}

static void await_word(ucp_worker_h worker)
{
    uint32_t word;

    ut_clock_start();
    while ((recv(CHANNEL, &word, sizeof(word), MSG_DONTWAIT | MSG_PEEK) != sizeof(word)) && (caller == NULL)) {
        ucp_worker_progress(worker);
        ut_clock_check("a connection");
    }
}

static void await_error(ucp_worker_h worker)
{
    ut_clock_start();
    while (errors == 0) {
        ucp_worker_progress(worker);
        ut_clock_check("an error of the endpoint");
    }
}

/* A send that nobody receives, and what becomes of it when its receiver has died */
static void outlive(ucp_worker_h worker, ucp_ep_h ep)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    char *large              = calloc(1, OUTLIVED);
    ucs_status_ptr_t ptr     = ucp_tag_send_nbx(ep, large, OUTLIVED, 4711, &none);
    ucs_status_t status;

    await_error(worker);
    ut_clock_start();
    while (UCS_PTR_IS_PTR(ptr) && !ucp_request_is_completed(ptr)) {
        ucp_worker_progress(worker);
        ut_clock_check("a send to who has died");
    }
    status = UCS_PTR_IS_PTR(ptr) ? ucp_request_check_status(ptr) : UCS_PTR_STATUS(ptr);
    UT_CHECK(UCS_STATUS_IS_ERR(status), "a send to nobody ends well");
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_free(ptr);
    }
    free(large);
}

/* The client's connection is refused on either side: it hears of it, and closes; the server hears of that, if it has heard of the client */
static void be_refused(ucp_worker_h worker, ucp_ep_h ep, bool is_server)
{
    if (!is_server && (ep != NULL)) {
        await_error(worker);
        close_ep(worker, ep, UCP_EP_CLOSE_FLAG_FORCE);
    }
    channel_exchange(worker, 0);
    if (is_server && (ep != NULL)) {
        await_error(worker);
        close_ep(worker, ep, UCP_EP_CLOSE_FLAG_FORCE);
    }
}

/* @return the endpoint; NULL: none */
static ucp_ep_h meet_at_socket(ucp_worker_h worker, ucp_listener_h *listener_p, bool is_server)
{
    uint32_t port;

    if (!is_server) {
        port = channel_exchange(worker, 0);
        return open_end(worker, port);
    }
    (void)channel_exchange(worker, listen_at(worker, listener_p));
    await_word(worker);
    return (caller != NULL) ? open_end(worker, 0) : NULL;
}

static void meet_by_socket(void)
{
    bool is_server          = is_second == (strcmp(getenv("UNLIKE_WAY"), "socket-back") == 0);
    ucp_context_h context   = ut_context_create(UCP_FEATURE_TAG | UCP_FEATURE_AM);
    ucp_worker_h worker     = ut_worker_create(context);
    ucp_listener_h listener = NULL;
    ucp_ep_h ep;

    listen_am(worker);
    ep = meet_at_socket(worker, &listener, is_server);
    if (is_expected("refuse")) {
        be_refused(worker, ep, is_server);
        ep = NULL;
    } else {
        UT_REQUIRE(ep != NULL, "no endpoint");
        talk_am(worker, ep);
        talk_of_all_sizes(worker, ep);
    }
    if (is_expected("die") && is_second) {
        _exit(0);
    } else if (is_expected("die")) {
        outlive(worker, ep);
    } else {
        channel_exchange(worker, 0);
    }
    if (ep != NULL) {
        close_ep(worker, ep, UCP_EP_CLOSE_FLAG_FORCE);
    }
    if (listener != NULL) {
        ucp_listener_destroy(listener);
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

static void change_environment(int count, char **changes)
{
    int i;

    for (i = 0; i < count; ++i) {
        char *value = strchr(changes[i], '=');

        UT_REQUIRE(value != NULL, "%s is not NAME=VALUE", changes[i]);
        if (value[1] == '\0') {
            *value = '\0';
            unsetenv(changes[i]);
        } else {
            putenv(changes[i]);
        }
    }
}

static pid_t start_other(int argc, char **argv)
{
    char *again[] = {argv[0], argv[1], "--second", NULL};
    int sockets[2];
    pid_t child;

    UT_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
    child = fork();
    UT_REQUIRE(child >= 0, "fork");
    dup2(sockets[(child == 0) ? 1 : 0], CHANNEL);
    close(sockets[0]);
    close(sockets[1]);
    if (child == 0) {
        change_environment(argc - 2, argv + 2);
        execv("/proc/self/exe", again);
        UT_REQUIRE(false, "execv");
    }
    return child;
}

int main(int argc, char **argv)
{
    static const ut_test_t tests[]     = {UT_TEST(meet)};
    static const ut_test_t by_socket[] = {UT_TEST(meet_by_socket)};
    bool second                        = (argc > 2) && (strcmp(argv[2], "--second") == 0);
    pid_t child                        = 0;
    int status                         = 0, failed;

    if (argc < 2) {
        fprintf(stderr, "usage: unlike talk|refuse|die [NAME=VALUE]...\n");
        return 2;
    }
    expected = argv[1];
    if (!second) {
        child = start_other(argc, argv);
    }
    is_second = second;
    failed    = ut_main(1, argv, (getenv("UNLIKE_WAY") != NULL) ? by_socket : tests, 1);
    if (!second) {
        close(CHANNEL);
        waitpid(child, &status, 0);
    }
    return (failed || (status != 0)) ? 1 : 0;
}
