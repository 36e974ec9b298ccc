/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Small messages between two workers of one process and one thread, so that no work depends on time: what callgrind
 * counts is what a message takes (count.sh). The calls have the form in which Open MPI makes them.
 *
 *     bench_count FORM BYTES MESSAGES
 *
 *     block   ping-pong of blocking sends and receives: REQUEST in the caller's memory
 *     window  64 receives and 64 sends, nonblocking, then their completion: callbacks
 *     idle    turns of progress that find nothing, as many as there would be messages
 *     lonely  the same of one of 16 workers that all have sent to it
 *     pending the same while a message that nobody receives is on its way
 *     gather  one nonblocking message from each of 15 workers, then their completion
 *
 * Only count_FORM() is to be counted (--toggle-collect).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

enum { WINDOW = 64, WARM_UP = 1000, CROWD = 16, TAG = 0x1234, MAX_BYTES = 1 << 16, REQUEST_MAX = 4096 };

typedef struct side {
    ucp_worker_h worker;
    ucp_ep_h ep; /* to the other side */
    char send[MAX_BYTES], recv[MAX_BYTES];
    char request[REQUEST_MAX] __attribute__((aligned(64)));
} side_t;

static size_t request_size;
static unsigned completed;

static void fail(const char *what, ucs_status_t status)
{
    fprintf(stderr, "bench_count: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fail(what, status);
    }
}

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    ++completed;
    ucp_request_free(request);
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    ++completed;
    ucp_request_free(request);
}

static void *request_of(side_t *side)
{
    return side->request + request_size;
}

/* What is not sent at once, while the connection is being made, may need both sides */
static void send_blocking(side_t *side, side_t *other, size_t bytes)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FLAG_FAST_CMPL,
                                 .request      = request_of(side)};
    ucs_status_ptr_t request  = ucp_tag_send_nbx(side->ep, side->send, bytes, TAG, &param);

    while (request != NULL) {
        if (UCS_PTR_IS_ERR(request)) {
            fail("send", UCS_PTR_STATUS(request));
        }
        if (ucp_request_check_status(request) == UCS_OK) {
            break;
        }
        ucp_worker_progress(side->worker);
        ucp_worker_progress(other->worker);
    }
}

/* One message from @a from to @a to. The receive is posted first, as the rank that waits in a ping-pong does. */
static void one_way(side_t *from, side_t *to, size_t bytes)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST, .request = request_of(to)};
    ucp_tag_recv_info_t info;
    ucs_status_ptr_t request;
    unsigned polls = 0;

    request = ucp_tag_recv_nbx(to->worker, to->recv, bytes, TAG, UINT64_MAX, &param);
    send_blocking(from, to, bytes);
    if (request != NULL) {
        while (ucp_request_test(param.request, &info) == UCS_INPROGRESS) {
            ucp_worker_progress(to->worker);
            if (++polls > 1000) {
                ucp_worker_progress(from->worker); /* it is not connected yet */
            }
        }
    }
}

static __attribute__((noinline)) void count_block(side_t *side, size_t bytes, unsigned messages)
{
    unsigned i;

    for (i = 0; i < messages; ++i) {
        one_way(&side[i & 1], &side[~i & 1], bytes);
    }
}

static __attribute__((noinline)) void count_window(side_t *side, size_t bytes, unsigned messages)
{
    ucp_request_param_t send = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};
    ucp_request_param_t recv = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                .cb.recv      = on_received};
    unsigned i, done, expected;

    for (done = 0; done < messages; done += WINDOW) {
        completed = 0;
        expected  = 2 * WINDOW;
        for (i = 0; i < WINDOW; ++i) {
            ucp_tag_recv_nbx(side[1].worker, side[1].recv, bytes, TAG, UINT64_MAX, &recv);
        }
        for (i = 0; i < WINDOW; ++i) {
            expected -= (ucp_tag_send_nbx(side[0].ep, side[0].send, bytes, TAG, &send) == NULL);
        }
        while (completed < expected) {
            ucp_worker_progress(side[1].worker);
            ucp_worker_progress(side[0].worker);
        }
        one_way(&side[1], &side[0], sizeof(int)); /* as the benchmark of the message rate has it */
    }
}

static __attribute__((noinline)) void count_idle(side_t *side, size_t bytes, unsigned messages)
{
    unsigned i;

    for (i = 0; i < messages; ++i) {
        ucp_worker_progress(side[1].worker);
    }
    one_way(&side[0], &side[1], bytes);
}

static __attribute__((noinline)) void count_lonely(side_t *side, size_t bytes, unsigned messages)
{
    count_idle(side, bytes, messages);
}

/* The receive comes when all is over */
static __attribute__((noinline)) void count_pending(side_t *side, size_t bytes, unsigned messages)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request  = ucp_tag_send_nbx(side[1].ep, side[1].send, bytes, TAG, &param), received;
    unsigned i;

    for (i = 0; i < messages; ++i) {
        ucp_worker_progress(side[1].worker);
    }
    received = ucp_tag_recv_nbx(side[0].worker, side[1].recv, bytes, TAG, UINT64_MAX, &param);
    while ((UCS_PTR_IS_PTR(request) && (ucp_request_check_status(request) == UCS_INPROGRESS)) ||
           (UCS_PTR_IS_PTR(received) && (ucp_request_check_status(received) == UCS_INPROGRESS))) {
        ucp_worker_progress(side[0].worker);
        ucp_worker_progress(side[1].worker);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    if (UCS_PTR_IS_PTR(received)) {
        ucp_request_free(received);
    }
}

static __attribute__((noinline)) void count_gather(side_t *side, size_t bytes, unsigned messages)
{
    ucp_request_param_t send = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};
    ucp_request_param_t recv = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                .cb.recv      = on_received};
    unsigned i, done, expected;

    for (done = 0; done < messages; done += CROWD - 1) {
        completed = 0;
        expected  = 2 * (CROWD - 1);
        for (i = 1; i < CROWD; ++i) {
            ucp_tag_recv_nbx(side[1].worker, side[1].recv, bytes, TAG, UINT64_MAX, &recv);
        }
        for (i = 0; i < CROWD; ++i) {
            expected -= (i != 1) && (ucp_tag_send_nbx(side[i].ep, side[i].send, bytes, TAG, &send) == NULL);
        }
        while (completed < expected) {
            ucp_worker_progress(side[1].worker);
        }
    }
}

/* Until connections are made, and whatever else begins with the first messages: not counted */
static __attribute__((noinline)) void warm_up(side_t *side, unsigned sides, size_t bytes)
{
    unsigned i, k;

    for (i = 0; i < WARM_UP; ++i) {
        one_way(&side[i & 1], &side[~i & 1], bytes);
        for (k = 2; k < sides; ++k) {
            one_way(&side[k], &side[1], bytes);
            ucp_worker_progress(side[k].worker);
        }
    }
}

typedef struct form {
    const char *name;
    void (*run)(side_t *, size_t, unsigned);
    unsigned sides;
} form_t;

static const form_t forms[] = {{"block", count_block, 2},       {"window", count_window, 2},
                               {"idle", count_idle, 2},         {"lonely", count_lonely, CROWD},
                               {"gather", count_gather, CROWD}, {"pending", count_pending, 2}};

static const form_t *find_form(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(forms) / sizeof(*forms); ++i) {
        if (!strcmp(forms[i].name, name)) {
            return &forms[i];
        }
    }
    fprintf(stderr, "bench_count: no form %s\n", name);
    exit(2);
}

static void connect_sides(side_t *from, side_t *to)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    size_t length;

    must(ucp_worker_get_address(to->worker, &address, &length), "address");
    params.address = address;
    must(ucp_ep_create(from->worker, &params, &from->ep), "endpoint");
    ucp_worker_release_address(to->worker, address);
}

static void close_side(side_t *side, side_t *other)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request  = ucp_ep_close_nbx(side->ep, &param);

    while (UCS_PTR_IS_PTR(request) && (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        ucp_worker_progress(side->worker);
        ucp_worker_progress(other->worker);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

int main(int argc, char **argv)
{
    ucp_params_t params               = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_context_attr_t attr           = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};
    static side_t side[CROWD];
    ucp_context_h context;
    unsigned i, messages;
    const form_t *form;
    size_t bytes;

    if (argc != 4) {
        fprintf(stderr, "usage: bench_count block|window|idle|lonely|pending|gather BYTES MESSAGES\n");
        return 2;
    }
    form     = find_form(argv[1]);
    bytes    = strtoul(argv[2], NULL, 0);
    messages = strtoul(argv[3], NULL, 0);

    must(ucp_init(&params, NULL, &context), "context");
    must(ucp_context_query(context, &attr), "query");
    request_size = attr.request_size;
    if ((request_size > REQUEST_MAX) || (bytes > MAX_BYTES)) {
        fail("sizes", UCS_ERR_INVALID_PARAM);
    }
    for (i = 0; i < form->sides; ++i) {
        must(ucp_worker_create(context, &worker_params, &side[i].worker), "worker");
        memset(side[i].send, 1, sizeof(side[i].send));
    }
    for (i = 0; i < form->sides; ++i) {
        connect_sides(&side[i], &side[(i == 1) ? 0 : 1]);
    }

    warm_up(side, form->sides, bytes);
    side[1].recv[0] = 0;
    form->run(side, bytes, messages);
    if ((bytes > 0) && memcmp(side[1].recv, side[0].send, bytes)) {
        fail("contents", UCS_ERR_IO_ERROR);
    }

    for (i = 0; i < form->sides; ++i) {
        close_side(&side[i], &side[(i == 1) ? 0 : 1]);
    }
    for (i = 0; i < form->sides; ++i) {
        ucp_worker_destroy(side[i].worker);
    }
    ucp_cleanup(context);
    return 0;
}
