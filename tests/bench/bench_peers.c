/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What peers cost: memory and time for each of COUNT endpoints that one worker, the hub, has to other workers of this process.
 *
 *     bench_peers COUNT
 *
 * Run plain and with UCI preloaded; peers.py puts the two beside each other. One line, comma-separated: COUNT; nanoseconds of one
 * call of ucp_worker_progress of the hub alone; then bytes of memory and microseconds a peer for: its worker, the two endpoints, a
 * message of 8 bytes each way; nanoseconds of ucp_worker_progress again; bytes and microseconds for a message of 256 KiB to it; and
 * all bytes of the process. Memory that is mapped several times counts once (Pss), since here both sides of a connection are in
 * one process. Each worker has exchanged a message with another hub before, so that what a worker has but once is counted there.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>

enum { LARGE = 256 << 10, POLLS = 20000, TAG = 1 };

typedef struct peer {
    ucp_worker_h worker;
    ucp_ep_h from_hub, to_hub;
} peer_t;

static ucp_context_h context;
static ucp_worker_h hub, other_hub;
static char source[LARGE], sink[LARGE];

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "bench_peers: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Bytes in use, after giving back what is free */
static double memory_in_use(void)
{
    FILE *file    = fopen("/proc/self/smaps_rollup", "r");
    long kilobyte = -1;
    char line[256];

    malloc_trim(0);
    while ((file != NULL) && (kilobyte < 0) && (fgets(line, sizeof(line), file) != NULL)) {
        sscanf(line, "Pss: %ld kB", &kilobyte);
    }
    if (kilobyte < 0) {
        fprintf(stderr, "bench_peers: cannot read /proc/self/smaps_rollup\n");
        exit(1);
    }
    fclose(file);
    return 1024.0 * (double)kilobyte;
}

static ucp_worker_h make_worker(void)
{
    ucp_worker_params_t params = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_worker_h worker;

    must(ucp_worker_create(context, &params, &worker), "worker");
    return worker;
}

static ucp_ep_h make_endpoint(ucp_worker_h from, ucp_worker_h to)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    size_t length;
    ucp_ep_h ep;

    must(ucp_worker_get_address(to, &address, &length), "address");
    params.address = address;
    must(ucp_ep_create(from, &params, &ep), "endpoint");
    ucp_worker_release_address(to, address);
    return ep;
}

/* Progress both until this is done */
static void wait_for(ucs_status_ptr_t request, ucp_worker_h one, ucp_worker_h other)
{
    if (request == NULL) {
        return;
    }
    must(UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK, "message");
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(one);
        ucp_worker_progress(other);
    }
    must(ucp_request_check_status(request), "message");
    ucp_request_free(request);
}

static void send_message(ucp_ep_h ep, ucp_worker_h from, ucp_worker_h to, size_t length)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t receive, send;

    receive = ucp_tag_recv_nbx(to, sink, length, TAG, UINT64_MAX, &none);
    send    = ucp_tag_send_nbx(ep, source, length, TAG, &none);
    wait_for(send, from, to);
    wait_for(receive, from, to);
}

static double progress_ns(void)
{
    double begin = now();
    int i;

    for (i = 0; i < POLLS; ++i) {
        ucp_worker_progress(hub);
    }
    return 1e9 * (now() - begin) / POLLS;
}

static void close_all(peer_t *peers, int count)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t closing, answer;
    int i;

    for (i = 0; i < count; ++i) {
        closing = ucp_ep_close_nbx(peers[i].from_hub, &none);
        answer  = ucp_ep_close_nbx(peers[i].to_hub, &none);
        wait_for(closing, hub, peers[i].worker);
        wait_for(answer, hub, peers[i].worker);
        ucp_worker_destroy(peers[i].worker);
    }
}

/* Each step is done for one peer; what it took is printed for all of them */
static void make_peer(peer_t *peer)
{
    ucp_ep_h there, back;

    peer->worker = make_worker();
    there        = make_endpoint(other_hub, peer->worker);
    back         = make_endpoint(peer->worker, other_hub);
    send_message(there, other_hub, peer->worker, 8);
    send_message(back, peer->worker, other_hub, 8);
}

static void connect_peer(peer_t *peer)
{
    peer->from_hub = make_endpoint(hub, peer->worker);
    peer->to_hub   = make_endpoint(peer->worker, hub);
}

static void exchange_small(peer_t *peer)
{
    send_message(peer->from_hub, hub, peer->worker, 8);
    send_message(peer->to_hub, peer->worker, hub, 8);
}

static void send_large(peer_t *peer)
{
    send_message(peer->from_hub, hub, peer->worker, LARGE);
}

static void run_step(void (*step)(peer_t *peer), peer_t *peers, int count)
{
    double memory = memory_in_use(), begin = now(), passed;
    int i;

    for (i = 0; i < count; ++i) {
        step(&peers[i]);
    }
    passed = now() - begin;
    printf(",%.0f,%.2f", (memory_in_use() - memory) / count, 1e6 * passed / count);
}

static void measure(int count)
{
    peer_t *peers = calloc(count, sizeof(*peers));

    hub       = make_worker();
    other_hub = make_worker();
    printf("%d,%.1f", count, progress_ns());
    run_step(make_peer, peers, count);
    run_step(connect_peer, peers, count);
    run_step(exchange_small, peers, count);
    printf(",%.1f", progress_ns());
    run_step(send_large, peers, count);
    printf(",%.0f\n", memory_in_use());
    close_all(peers, count);
    ucp_worker_destroy(hub);
    ucp_worker_destroy(other_hub);
    free(peers);
}

int main(int argc, char **argv)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    int count           = (argc > 1) ? atoi(argv[1]) : 0;

    if (count < 1) {
        fprintf(stderr, "usage: bench_peers COUNT\n");
        return 2;
    }
    must(ucp_init(&params, NULL, &context), "context");
    memset(source, 1, sizeof(source));
    memset(sink, 2, sizeof(sink));
    measure(count);
    ucp_cleanup(context);
    return 0;
}
