/* SPDX-License-Identifier: BSD-3-Clause */
#include "sock_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

ucp_err_handling_mode_t sock_err_mode = UCP_ERR_HANDLING_MODE_PEER;

static sock_side_t *sides[SOCK_SIDES];

bool sock_is_possible(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls == NULL) || (strstr(tls, "tcp") != NULL) || (strstr(tls, "all") != NULL);
}

static sock_side_t *open_worker(ucp_context_h context, uint64_t id)
{
    ucp_worker_params_t params = {.field_mask = (id != 0) ? UCP_WORKER_PARAM_FIELD_CLIENT_ID : 0, .client_id = id};
    sock_side_t *side          = calloc(1, sizeof(*side));
    unsigned i;

    side->context = context;
    if (getenv("SOCK_MULTI") != NULL) { /* with all locks */
        params.field_mask |= UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        params.thread_mode = UCS_THREAD_MODE_MULTI;
    }
    UT_REQUIRE(ucp_worker_create(side->context, &params, &side->worker) == UCS_OK, "ucp_worker_create");
    for (i = 0; (i < SOCK_SIDES) && (sides[i] != NULL); ++i) {
    }
    UT_REQUIRE(i < SOCK_SIDES, "too many workers");
    sides[i] = side;
    return side;
}

sock_side_t *sock_open(uint64_t features, uint64_t id)
{
    return open_worker(ut_context_create(features), id);
}

sock_side_t *sock_open_beside(sock_side_t *other)
{
    return open_worker(other->context, 0);
}

static ucp_conn_request_h take_request(sock_side_t *listener)
{
    return listener->requests[listener->taken++ % SOCK_REQUESTS];
}

/* UCX wants an answer to each request: one without keeps its handler, which UCX's thread calls when the client goes, with a worker that was freed */
static void refuse_all(sock_side_t *side)
{
    while (side->taken < side->asked) {
        ucp_listener_reject(side->listener, take_request(side));
    }
}

void sock_close(sock_side_t *side)
{
    ucp_context_h context = side->context;
    unsigned i, users = 0;

    if (side->listener != NULL) {
        refuse_all(side);
        ucp_listener_destroy(side->listener);
    }
    ucp_worker_destroy(side->worker);
    for (i = 0; i < SOCK_SIDES; ++i) {
        if (sides[i] == side) {
            sides[i] = NULL;
        } else if ((sides[i] != NULL) && (sides[i]->context == context)) {
            ++users;
        }
    }
    free(side);
    if (users == 0) {
        ucp_cleanup(context);
    }
}

void sock_progress(void)
{
    unsigned i;

    for (i = 0; i < SOCK_SIDES; ++i) {
        if (sides[i] != NULL) {
            ucp_worker_progress(sides[i]->worker);
        }
    }
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000) + ((uint64_t)now.tv_nsec / 1000000);
}

void sock_settle(unsigned ms)
{
    uint64_t end = now_ms() + ms;

    while (now_ms() < end) {
        sock_progress();
    }
}

/* ----------------------------------------------------------- connections */

static void on_request(ucp_conn_request_h request, void *arg)
{
    sock_side_t *side = arg;

    UT_REQUIRE(side->asked - side->taken < SOCK_REQUESTS, "too many requests");
    side->requests[side->asked++ % SOCK_REQUESTS] = request;
}

static void on_accepted(ucp_ep_h ep, void *arg)
{
    sock_side_t *side = arg;

    side->accepted = ep;
}

static void listen_with(sock_side_t *side, ucp_listener_params_t *params)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ucp_listener_attr_t attr   = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};

    params->field_mask |= UCP_LISTENER_PARAM_FIELD_SOCK_ADDR;
    params->sockaddr.addr    = (struct sockaddr *)&address;
    params->sockaddr.addrlen = sizeof(address);
    UT_REQUIRE(ucp_listener_create(side->worker, params, &side->listener) == UCS_OK, "ucp_listener_create");
    UT_REQUIRE(ucp_listener_query(side->listener, &attr) == UCS_OK, "ucp_listener_query");
    side->port = ntohs(((struct sockaddr_in *)&attr.sockaddr)->sin_port);
}

void sock_listen(sock_side_t *side)
{
    ucp_listener_params_t params = {.field_mask       = UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                    .conn_handler.cb  = on_request,
                                    .conn_handler.arg = side};

    listen_with(side, &params);
}

void sock_listen_old(sock_side_t *side)
{
    ucp_listener_params_t params = {.field_mask         = UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER,
                                    .accept_handler.cb  = on_accepted,
                                    .accept_handler.arg = side};

    listen_with(side, &params);
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    sock_end_t *end = arg;

    UT_CHECK(ep == end->ep, "an error of another endpoint");
    ++end->errors;
    end->error = status;
}

static ucp_ep_params_t end_params(sock_end_t *end)
{
    return (ucp_ep_params_t){.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                                           UCP_EP_PARAM_FIELD_USER_DATA,
                             .err_mode        = sock_err_mode,
                             .err_handler.cb  = on_error,
                             .err_handler.arg = end,
                             .user_data       = end};
}

void sock_connect(sock_end_t *end, sock_side_t *side, uint16_t port, unsigned flags)
{
    struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    ucp_ep_params_t params;

    *end   = (sock_end_t){.side = side};
    params = end_params(end);
    params.field_mask |= UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags            = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | flags;
    params.sockaddr.addr    = (struct sockaddr *)&address;
    params.sockaddr.addrlen = sizeof(address);
    UT_REQUIRE(ucp_ep_create(side->worker, &params, &end->ep) == UCS_OK, "ucp_ep_create by socket address");
}

void sock_expect(sock_side_t *listener)
{
    ut_clock_start();
    while (listener->asked == listener->taken) {
        sock_progress();
        ut_clock_check("a connection");
    }
}

ucp_conn_request_h sock_await(sock_side_t *listener)
{
    sock_expect(listener);
    return take_request(listener);
}

void sock_accept(sock_end_t *end, sock_side_t *side, sock_side_t *listener)
{
    ucp_ep_params_t params;

    *end   = (sock_end_t){.side = side};
    params = end_params(end);
    params.field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = sock_await(listener);
    UT_REQUIRE(ucp_ep_create(side->worker, &params, &end->ep) == UCS_OK, "ucp_ep_create by connection request");
}

void sock_join(sock_end_t *client, sock_side_t *from, sock_end_t *server, sock_side_t *to)
{
    sock_connect(client, from, to->port, 0);
    sock_accept(server, to, to);
}

/* ------------------------------------------------------------ operations */

ucs_status_t sock_wait(ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    ut_clock_start();
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        sock_progress();
        ut_clock_check("an operation");
    }
    ucp_request_free(request);
    return status;
}

ucs_status_t sock_end_close(sock_end_t *end, bool force)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0};

    return sock_wait(ucp_ep_close_nbx(end->ep, &param));
}

void sock_exchange(const sock_end_t *from, const sock_side_t *to, size_t length, unsigned seed)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    char *out = malloc(length + 1), *in = calloc(1, length + 1);
    ucs_status_ptr_t ptrs[2];

    ut_fill(out, length, seed);
    ptrs[0] = ucp_tag_recv_nbx(to->worker, in, length, seed, UT_TAG_ALL, &none);
    ptrs[1] = ucp_tag_send_nbx(from->ep, out, length, seed, &none);
    UT_CHECK_STATUS(sock_wait(ptrs[1]), UCS_OK, "send");
    UT_CHECK_STATUS(sock_wait(ptrs[0]), UCS_OK, "receive");
    UT_CHECK(ut_verify(in, length, seed) == SIZE_MAX, "wrong content, %zu bytes", length);
    free(out);
    free(in);
}

size_t sock_memory(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t all = 0, resident = 0;

    UT_REQUIRE((file != NULL) && (fscanf(file, "%zu %zu", &all, &resident) == 2), "/proc/self/statm");
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}
