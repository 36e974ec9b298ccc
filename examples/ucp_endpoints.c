/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two processes with nothing but UCX between them compare a buffer of theirs; the child has damaged one byte. Worker addresses go
 * through a socket pair, as they would through whatever the program has for it.
 *
 *     cc ucp_endpoints.c $(pkg-config --cflags --libs uci ucx) -o ucp_endpoints && ./ucp_endpoints
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucp/api/ucp.h>
#include <uci_ucp.h>

#define LENGTH ((size_t)8 << 20)
#define TAG    0x756369

typedef struct side {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
} side_t;

static void must(int is_good, const char *what)
{
    if (!is_good) {
        fprintf(stderr, "failed: %s\n", what);
        exit(2);
    }
}

static void move(int fd, void *data, size_t length, int is_write)
{
    ssize_t done;
    size_t at;

    for (at = 0; at < length; at += (size_t)done) {
        done = is_write ? write(fd, (char *)data + at, length - at) : read(fd, (char *)data + at, length - at);
        must(done > 0, "exchange of addresses");
    }
}

static void connect_side(side_t *side, int fd)
{
    ucp_params_t params               = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_ep_params_t ep_params         = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    size_t length, peer_length;
    void *peer;

    must(ucp_init(&params, NULL, &side->context) == UCS_OK, "ucp_init");
    must(ucp_worker_create(side->context, &worker_params, &side->worker) == UCS_OK, "ucp_worker_create");
    must(ucp_worker_get_address(side->worker, &address, &length) == UCS_OK, "ucp_worker_get_address");
    move(fd, &length, sizeof(length), 1);
    move(fd, address, length, 1);
    move(fd, &peer_length, sizeof(peer_length), 0);
    peer = malloc(peer_length);
    must(peer != NULL, "memory");
    move(fd, peer, peer_length, 0);
    ep_params.address = peer;
    must(ucp_ep_create(side->worker, &ep_params, &side->ep) == UCS_OK, "ucp_ep_create");
    ucp_worker_release_address(side->worker, address);
    free(peer);
}

static void disconnect_side(side_t *side, int fd)
{
    ucp_request_param_t param = {0};
    void *request             = ucp_ep_close_nbx(side->ep, &param);
    char byte                 = 0;

    while ((request != NULL) && !UCS_PTR_IS_ERR(request) && (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        ucp_worker_progress(side->worker);
    }
    if ((request != NULL) && !UCS_PTR_IS_ERR(request)) {
        ucp_request_free(request);
    }
    move(fd, &byte, 1, 1); /* neither goes while the other one still needs it */
    move(fd, &byte, 1, 0);
    ucp_worker_destroy(side->worker);
    ucp_cleanup(side->context);
}

int main(void)
{
    unsigned char *data = malloc(LENGTH);
    uci_byte_range_t ranges[4];
    uci_tree_result_t result = {.ranges = ranges, .max = 4};
    uci_tree_t *tree;
    int fds[2], is_child, status = 0;
    side_t side;

    must((data != NULL) && (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0), "memory and sockets");
    memset(data, 0x5a, LENGTH);
    is_child = (fork() == 0);
    data[LENGTH - 1] ^= (unsigned char)is_child;

    connect_side(&side, fds[is_child]);
    must(uci_tree_build(data, LENGTH, NULL, &tree) == UCI_OK, "uci_tree_build");
    must(uci_tree_compare_ucp(tree, side.worker, side.ep, TAG, &result) == UCI_OK, "uci_tree_compare_ucp");
    printf("%s: %zu ranges differ, the first one from %llu on; %llu bytes moved\n", is_child ? "child" : "parent",
           result.count, (result.count > 0) ? (unsigned long long)ranges[0].offset : 0,
           (unsigned long long)(result.sent + result.received));
    fflush(stdout);
    uci_tree_destroy(tree);
    disconnect_side(&side, fds[is_child]);
    free(data);

    if (!is_child) {
        wait(&status);
    }
    return !((result.count == 1) && (ranges[0].offset == LENGTH - 65536) && (status == 0));
}
