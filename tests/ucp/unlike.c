/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two processes, started differently: usage: unlike EXPECTED [NAME=VALUE]...
 *
 * The second process is this program again, with its environment changed as the arguments say ("NAME=" removes).
 * Each connects to the other and exchanges messages. EXPECTED is what each side must see:
 *
 *     talk     both connect, and messages of several sizes arrive in both directions
 *     refuse   neither can connect: ucp_ep_create fails on both sides, and nothing hangs
 */
#include "ucp_test.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHANNEL 200 /* file descriptor of the socket between both */

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

static void close_ep(ucp_worker_h worker, ucp_ep_h ep)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t ptr     = ucp_ep_close_nbx(ep, &none);

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

static void meet(void)
{
    static const size_t sizes[] = {0, 8, 8192, 9000, 1000000};
    ucp_ep_params_t params      = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_context_h context       = ut_context_create(UCP_FEATURE_TAG);
    ucp_worker_h worker         = ut_worker_create(context);
    void *other                 = exchange_addresses(worker);
    ucs_status_t status, other_status;
    ucp_ep_h ep;
    unsigned i;

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
        for (i = 0; i < 3 * (sizeof(sizes) / sizeof(sizes[0])); ++i) {
            talk(worker, ep, sizes[i / 3], i);
        }
        channel_exchange(worker, 0);
    }
    if (status == UCS_OK) {
        close_ep(worker, ep);
    }
    channel_exchange(worker, 0);
    free(other);
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
    static const ut_test_t tests[] = {UT_TEST(meet)};
    bool second                    = (argc > 2) && (strcmp(argv[2], "--second") == 0);
    pid_t child                    = 0;
    int status                     = 0, failed;

    if (argc < 2) {
        fprintf(stderr, "usage: unlike talk|refuse [NAME=VALUE]...\n");
        return 2;
    }
    expected = argv[1];
    if (!second) {
        child = start_other(argc, argv);
    }
    failed = ut_main(1, argv, tests, 1);
    if (!second) {
        close(CHANNEL);
        waitpid(child, &status, 0);
    }
    return (failed || (status != 0)) ? 1 : 0;
}
