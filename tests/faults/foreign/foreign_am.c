/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * As foreign_traffic.c, but by active messages of UCX's, in a context of the program's own beside MPI's: eager, by rendezvous, as UCX likes;
 * headers of all lengths; data that are checked in the handler, kept and checked later, or received. MPI starts it, and keeps time. With
 * FOREIGN_WAY=sock its endpoint is made by socket address.
 *
 * usage: foreign_am SECONDS [SEED]
 *
 * @ranks 2
 * @link -lucp -lucs
 */
#define _GNU_SOURCE /* memmem, in pattern.h */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <ucp/api/ucp.h>

#include "tally.h"

enum { ID = 5, LARGEST = 1 << 20, IN_ALL = 1 << 20, WINDOW = 12, HEADER_MAX = 512 };

static struct {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    ucp_listener_h listener; /* of rank 0, or NULL */
    uint64_t next[2];        /* number of the next message by its sender's rank */
    uint64_t random;         /* the same on both ranks: they agree on what comes next */
    unsigned char *out[WINDOW], *in[WINDOW];
    const void *kept[WINDOW];
    int kept_count, received, partner;
    size_t size; /* of the messages of this round */
} traffic;

static size_t draw_below(size_t limit)
{
    return foreign_below(&traffic.random, limit);
}

static size_t draw_size(void)
{
    static const size_t sizes[] = {0,    24,   64,    68,    512,   1000,  4000,   4096,   6000,   8100,
                                   8192, 8300, 12288, 16384, 32768, 65536, 100000, 131072, 262145, LARGEST};

    size_t size = sizes[draw_below(CHECK_COUNT_OF(sizes))];

    return size - draw_below(2) * draw_below((size < 24) ? size : 24);
}

/* --------------------------------------------------------------- receiving */

/* Its number is where it is in the round, since active messages of an endpoint are in order */
static void on_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    int i = (int)(intptr_t)user_data;

    CHECK((status == UCS_OK) && (length == traffic.size), "status %d, %zu bytes of %zu", status, length, traffic.size);
    tally_check(traffic.in[i], length, foreign_number(traffic.partner, traffic.next[traffic.partner] + (uint64_t)i));
    ++traffic.received;
    ucp_request_free(request);
}

static void receive(void *data, size_t length, int i)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv_am = on_received,
                                 .user_data  = (void *)(intptr_t)i};
    ucs_status_ptr_t request  = ucp_am_recv_data_nbx(traffic.worker, data, traffic.in[i], length, &param);

    CHECK(UCS_PTR_IS_PTR(request), "receiving the data of an active message fails");
}

/* Without UCI a header may be wrong as data may */
static void check_header(const void *header, size_t length, uint64_t number)
{
    size_t first = 0;

    if (foreign_count_wrong(header, length, tally.key, number, &first) > 0) {
        tally_check(header, length, number);
    }
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    static int here;
    int i           = here++;
    uint64_t number = foreign_number(traffic.partner, traffic.next[traffic.partner] + (uint64_t)i);

    here = (here == *(int *)arg) ? 0 : here;
    CHECK(length == traffic.size, "%zu bytes, not %zu", length, traffic.size);
    check_header(header, header_length, number);
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        receive(data, length, i);
        return UCS_INPROGRESS;
    }
    tally_check(data, length, number);
    ++traffic.received;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) || (i % 3 != 0)) {
        return UCS_OK;
    }
    traffic.kept[traffic.kept_count++] = data;
    return UCS_INPROGRESS;
}

static void release_kept(void)
{
    while (traffic.kept_count > 0) {
        ucp_am_data_release(traffic.worker, (void *)traffic.kept[--traffic.kept_count]);
    }
}

/* ----------------------------------------------------------------- a round */

static void finish(ucs_status_ptr_t request)
{
    ucs_status_t status = UCS_PTR_IS_PTR(request) ? UCS_INPROGRESS : UCS_PTR_STATUS(request);

    while (status == UCS_INPROGRESS) {
        ucp_worker_progress(traffic.worker);
        status = ucp_request_check_status(request);
    }
    CHECK(status == UCS_OK, "a send fails: %s", ucs_status_string(status));
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

static void send_all(int count, uint32_t flags, size_t header_length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
    static unsigned char headers[WINDOW][HEADER_MAX];
    ucs_status_ptr_t requests[WINDOW];
    int i;

    for (i = 0; i < count; ++i) {
        uint64_t number = foreign_number(check.rank, traffic.next[check.rank] + (uint64_t)i);

        foreign_fill(traffic.out[i], traffic.size, tally.key, number);
        foreign_fill(headers[i], header_length, tally.key, number);
        requests[i] = ucp_am_send_nbx(traffic.ep, ID, headers[i], header_length, traffic.out[i], traffic.size, &param);
    }
    for (i = 0; i < count; ++i) {
        finish(requests[i]);
        check_scribble(traffic.out[i], (traffic.size < 4096) ? traffic.size : 4096);
    }
}

/* What lies in front of the data is to be hit (wire.c), and of a rendezvous these are words of UCX's own, which ends the process that reads them
 * wrong */
static bool is_front_hit(void)
{
    const char *headers = getenv("FOREIGN_WIRE_HEADERS");

    return (headers != NULL) && (strtod(headers, NULL) > 0);
}

static int round_count; /* of its messages; the handler knows by it when the next round begins */

static void play(int sender)
{
    static const uint32_t all_flags[] = {0, UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV};
    uint32_t flags                    = all_flags[draw_below(CHECK_COUNT_OF(all_flags))];
    size_t header_length              = draw_below(3) * draw_below(HEADER_MAX / 2);
    size_t most;

    traffic.size = draw_size();
    if ((flags == UCP_AM_SEND_FLAG_RNDV) && is_front_hit()) {
        flags = 0;
    }
    check_phase((flags == 0) ? "any" : (flags == UCP_AM_SEND_FLAG_EAGER) ? "eager" : "rendezvous");
    most             = IN_ALL / (traffic.size + 1);
    round_count      = 1 + (int)draw_below((most < WINDOW) ? most + 1 : WINDOW);
    traffic.received = 0;
    MPI_Barrier(MPI_COMM_WORLD); /* the receiver knows what comes */
    if (check.rank == sender) {
        send_all(round_count, flags, header_length);
    } else {
        while (traffic.received < round_count) {
            ucp_worker_progress(traffic.worker);
        }
        release_kept();
    }
    traffic.next[sender] += (uint64_t)round_count;
    while (sender == check.rank) { /* until the receiver has all: its questions are answered */
        int flag                   = 0;
        static MPI_Request request = MPI_REQUEST_NULL;
        static char token;

        if (request == MPI_REQUEST_NULL) {
            MPI_Irecv(&token, 1, MPI_CHAR, traffic.partner, 0, MPI_COMM_WORLD, &request);
        }
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (flag) {
            return;
        }
        ucp_worker_progress(traffic.worker);
    }
    MPI_Send("", 1, MPI_CHAR, traffic.partner, 0, MPI_COMM_WORLD);
}

/* --------------------------------------------------------------- the whole */

static void connect_workers(void)
{
    ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    char theirs[8192];
    ucp_address_t *address;
    size_t length;

    CHECK(ucp_worker_get_address(traffic.worker, &address, &length) == UCS_OK, "no address");
    CHECK(length <= sizeof(theirs), "an address of %zu bytes", length);
    MPI_Sendrecv(address, (int)length, MPI_BYTE, traffic.partner, 1, theirs, sizeof(theirs), MPI_BYTE, traffic.partner,
                 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ep.address = (const ucp_address_t *)theirs;
    CHECK(ucp_ep_create(traffic.worker, &ep, &traffic.ep) == UCS_OK, "no endpoint");
    ucp_worker_release_address(traffic.worker, address);
}

static ucp_conn_request_h caller;

static void on_request(ucp_conn_request_h request, void *arg)
{
    (void)arg;
    caller = request;
}

/* That the other side has closed is called an error */
static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    CHECK(status == UCS_ERR_CONNECTION_RESET, "the endpoint fails: %s", ucs_status_string(status));
}

static int listen_here(struct sockaddr_in *address)
{
    ucp_listener_params_t params = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                                                  UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                    .sockaddr        = {(struct sockaddr *)address, sizeof(*address)},
                                    .conn_handler.cb = on_request};
    ucp_listener_attr_t attr     = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};

    CHECK(ucp_listener_create(traffic.worker, &params, &traffic.listener) == UCS_OK, "no listener");
    CHECK(ucp_listener_query(traffic.listener, &attr) == UCS_OK, "no port");
    return ((struct sockaddr_in *)&attr.sockaddr)->sin_port;
}

/* UCX connects in progress only, of both sides */
static void await_other(void)
{
    MPI_Request barrier;
    int is_here = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    while (!is_here) {
        ucp_worker_progress(traffic.worker);
        MPI_Test(&barrier, &is_here, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 is the server */
static void connect_by_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ucp_ep_params_t ep         = {.field_mask     = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                  .err_mode       = UCP_ERR_HANDLING_MODE_PEER,
                                  .err_handler.cb = on_error,
                                  .flags          = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
                                  .sockaddr       = {(struct sockaddr *)&address, sizeof(address)}};
    ucp_request_param_t none   = {.op_attr_mask = 0};
    int port                   = (check.rank == 0) ? listen_here(&address) : 0;

    MPI_Bcast(&port, 1, MPI_INT, 0, MPI_COMM_WORLD);
    while ((check.rank == 0) && (caller == NULL)) {
        ucp_worker_progress(traffic.worker);
    }
    address.sin_port = (in_port_t)port;
    ep.conn_request  = caller;
    ep.field_mask |= (check.rank == 0) ? UCP_EP_PARAM_FIELD_CONN_REQUEST
                                       : UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    CHECK(ucp_ep_create(traffic.worker, &ep, &traffic.ep) == UCS_OK, "no endpoint");
    finish(ucp_ep_flush_nbx(traffic.ep, &none));
    await_other();
}

static bool is_by_socket(void)
{
    const char *way = getenv("FOREIGN_WAY");

    return (way != NULL) && (strcmp(way, "sock") == 0);
}

static void open_ucx(void)
{
    ucp_params_t params            = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
    ucp_worker_params_t worker     = {.field_mask = 0};
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
                                      .id    = ID,
                                      .flags = UCP_AM_FLAG_PERSISTENT_DATA,
                                      .cb    = on_message,
                                      .arg   = &round_count};
    ucp_config_t *config;

    CHECK(ucp_config_read(NULL, NULL, &config) == UCS_OK, "no configuration");
    CHECK(ucp_init(&params, config, &traffic.context) == UCS_OK, "no context");
    ucp_config_release(config);
    CHECK(ucp_worker_create(traffic.context, &worker, &traffic.worker) == UCS_OK, "no worker");
    CHECK(ucp_worker_set_am_recv_handler(traffic.worker, &handler) == UCS_OK, "no handler");
    if (is_by_socket()) {
        connect_by_socket();
    } else {
        connect_workers();
    }
}

/* By socket both sides close by force, behind all messages: who closes first cuts the other one off */
static void close_ucx(void)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    if (is_by_socket()) {
        param = (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    }
    finish(ucp_ep_close_nbx(traffic.ep, &param));
    MPI_Barrier(MPI_COMM_WORLD);
    if (traffic.listener != NULL) {
        ucp_listener_destroy(traffic.listener);
    }
    ucp_worker_destroy(traffic.worker);
    ucp_cleanup(traffic.context);
}

int main(int argc, char **argv)
{
    int sender = 0, status, i;
    double end;

    check_init(&argc, &argv, "foreign_am");
    CHECK(check.size == 2, "needs 2 ranks");
    traffic.partner = 1 - check.rank;
    traffic.random  = check.seed;
    tally_begin();
    for (i = 0; i < WINDOW; ++i) {
        traffic.out[i] = malloc(LARGEST);
        traffic.in[i]  = malloc(LARGEST);
        CHECK((traffic.out[i] != NULL) && (traffic.in[i] != NULL), "no memory");
    }
    open_ucx();
    for (end = MPI_Wtime() + check.scale; tally_time_is_left(end); sender = 1 - sender) {
        play(sender);
    }
    status = tally_report("foreign_am");
    close_ucx();
    check_finalize();
    return status;
}
