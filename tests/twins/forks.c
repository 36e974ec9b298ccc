/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The ranks of a ring send the time of day. In the middle of it each forks a child, which asks for the time as well, and sends messages through UCX contexts
 * and workers of its own, as UCX allows. No child is any twin's, and none disturbs its parent.
 *
 *     forks time|context [rounds]
 */
#include "program.h"

#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>

#define CHILD_MESSAGES 50

static void wait_for(ucp_worker_h worker, ucs_status_ptr_t request)
{
    while (UCS_PTR_IS_PTR(request) && (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        ucp_worker_progress(worker);
    }
    if (UCS_PTR_IS_ERR(request)) {
        _exit(2);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

static void must(ucs_status_t status)
{
    if (status != UCS_OK) {
        _exit(3);
    }
}

/* Messages to itself. Between them UCX has many turns, for what would come of others */
static void exchange(ucp_worker_h worker, ucp_ep_h ep)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t receive;
    long sent, got, turn;

    for (sent = 0; sent < CHILD_MESSAGES; ++sent) {
        receive = ucp_tag_recv_nbx(worker, &got, sizeof(got), (ucp_tag_t)sent, UINT64_MAX, &none);
        wait_for(worker, ucp_tag_send_nbx(ep, &sent, sizeof(sent), (ucp_tag_t)sent, &none));
        wait_for(worker, receive);
        if (got != sent) {
            _exit(4);
        }
        for (turn = 0; turn < 2000; ++turn) {
            ucp_worker_progress(worker);
        }
    }
}

static void use_ucx(void)
{
    ucp_params_t params          = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t defaults = {.field_mask = 0};
    ucp_request_param_t none     = {.op_attr_mask = 0};
    ucp_ep_params_t to_itself    = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address       = NULL;
    ucp_context_h context;
    ucp_worker_h worker;
    size_t length;
    ucp_ep_h ep;

    must(ucp_init(&params, NULL, &context));
    must(ucp_worker_create(context, &defaults, &worker));
    must(ucp_worker_get_address(worker, &address, &length));
    to_itself.address = address;
    must(ucp_ep_create(worker, &to_itself, &ep));
    exchange(worker, ep);
    wait_for(worker, ucp_ep_close_nbx(ep, &none));
    ucp_worker_release_address(worker, address);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

static long now(void)
{
    struct timeval time;

    gettimeofday(&time, NULL);
    return (time.tv_sec * 1000000) + time.tv_usec;
}

/* @return how the child has ended: 0, or what waitpid() says */
static int fork_child(bool with_context)
{
    pid_t child = fork();
    int i, status = -1;

    if (child == 0) {
        for (i = 0; i < 3; ++i) {
            now();
        }
        if (with_context) {
            use_ucx();
        }
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    int round, rounds, status = 0;
    long sent, got, wrong     = 0;

    begin(&argc, &argv);
    rounds = argument(argc, argv, 2, 60);
    for (round = 0; round < rounds; ++round) {
        if (round == rounds / 2) {
            status = fork_child((argc > 1) && (strcmp(argv[1], "context") == 0));
            wrong += (status != 0);
        }
        sent = now();
        MPI_Sendrecv(&sent, 1, MPI_LONG, (rank + 1) % ranks, 1, &got, 1, MPI_LONG, (rank + ranks - 1) % ranks, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (status != 0) {
        fprintf(stderr, "rank %d: its child has ended with status %d\n", rank, status);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return end("forks", wrong);
}
