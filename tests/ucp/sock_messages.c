/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages by endpoints that were made by socket address: tags, active messages, streams, both directions, of all sizes, from the first
 * moment on, of several clients, with ids of the program's own.
 */
#include "sock_test.h"

static const size_t sizes[] = {0, 1, 8, 300, 4096, 8192, 8300, 40000, 65536, 300000, 2000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), FEATURES = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM };

static sock_side_t *server, *client;
static sock_end_t at_server, at_client;

static void open_both(void)
{
    server = sock_open(FEATURES, 0);
    client = sock_open(FEATURES, 0);
    sock_listen(server);
}

static void close_both(void)
{
    UT_CHECK_STATUS(sock_end_close(&at_client, false), UCS_OK, "close of the client's end");
    sock_end_close(&at_server, true);
    sock_close(client);
    sock_close(server);
}

static void tags(void)
{
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    sock_join(&at_client, client, &at_server, server);
    for (i = 0; i < 4 * SIZES; ++i) {
        sock_exchange(&at_client, server, sizes[i % SIZES], 2 * i);
        sock_exchange(&at_server, client, sizes[i % SIZES], (2 * i) + 1);
    }
    close_both();
}

/* All of them, posted before the server has accepted; and by the server, before it can have heard anything */
static void at_once(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t sends[2 * SIZES], recvs[2 * SIZES];
    char *out[2 * SIZES], *in[2 * SIZES];
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    for (i = 0; i < 2 * SIZES; ++i) {
        out[i] = malloc(sizes[i % SIZES] + 1);
        in[i]  = calloc(1, sizes[i % SIZES] + 1);
        ut_fill(out[i], sizes[i % SIZES], i);
    }
    sock_connect(&at_client, client, server->port, 0);
    for (i = 0; i < SIZES; ++i) {
        sends[i] = ucp_tag_send_nbx(at_client.ep, out[i], sizes[i], 7, &none);
        recvs[i] = ucp_tag_recv_nbx(server->worker, in[i], sizes[i], 7, UT_TAG_ALL, &none);
    }
    sock_settle(20);
    sock_accept(&at_server, server, server);
    for (i = SIZES; i < 2 * SIZES; ++i) {
        sends[i] = ucp_tag_send_sync_nbx(at_server.ep, out[i], sizes[i - SIZES], 8, &none);
        recvs[i] = ucp_tag_recv_nbx(client->worker, in[i], sizes[i - SIZES], 8, UT_TAG_ALL, &none);
    }
    UT_CHECK_STATUS(sock_wait(ucp_ep_flush_nbx(at_server.ep, &none)), UCS_OK, "flush");
    for (i = 0; i < 2 * SIZES; ++i) {
        UT_CHECK_STATUS(sock_wait(sends[i]), UCS_OK, "send");
        UT_CHECK_STATUS(sock_wait(recvs[i]), UCS_OK, "receive");
        UT_CHECK(ut_verify(in[i], sizes[i % SIZES], i) == SIZE_MAX, "message %u: wrong content", i);
        free(out[i]);
        free(in[i]);
    }
    close_both();
}

/* A flush of a worker, or of an endpoint, is over when what was sent before has been taken */
static void flushes(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t sends[2], flush[2];
    char data[100], room[2][100];
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    ut_fill(data, sizeof(data), 3);
    sock_connect(&at_client, client, server->port, 0);
    for (i = 0; i < 2; ++i) {
        sends[i] = ucp_tag_send_nbx(at_client.ep, data, sizeof(data), i, &none);
        flush[i] = (i == 0) ? ucp_worker_flush_nbx(client->worker, &none) : ucp_ep_flush_nbx(at_client.ep, &none);
    }
    sock_accept(&at_server, server, server);
    for (i = 0; i < 2; ++i) {
        UT_CHECK_STATUS(sock_wait(flush[i]), UCS_OK, "flush");
        UT_CHECK_STATUS(UCS_PTR_IS_PTR(sends[i]) ? ucp_request_check_status(sends[i]) : UCS_PTR_STATUS(sends[i]),
                        UCS_OK, "send before a flush");
        sock_wait(sends[i]);
        UT_CHECK_STATUS(sock_wait(ucp_tag_recv_nbx(server->worker, room[i], sizeof(room[i]), i, UT_TAG_ALL, &none)),
                        UCS_OK, "receive");
        UT_CHECK(ut_verify(room[i], sizeof(room[i]), 3) == SIZE_MAX, "wrong content");
    }
    close_both();
}

/* ------------------------------------------------------- active messages */

enum { ID = 5 };

typedef struct inbox {
    sock_side_t *side;
    unsigned calls, kept;
    unsigned seed;
    size_t length;
    void *data; /* that it keeps */
    bool is_rndv;
    ucp_ep_h reply_ep;
} inbox_t;

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    inbox_t *inbox = arg;

    ++inbox->calls;
    UT_CHECK(header_length == sizeof(inbox->seed), "a header of %zu bytes", header_length);
    memcpy(&inbox->seed, header, sizeof(inbox->seed));
    inbox->length   = length;
    inbox->reply_ep = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) ? param->reply_ep : NULL;
    inbox->is_rndv  = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    if (inbox->is_rndv || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA)) {
        inbox->data = data;
        return UCS_INPROGRESS;
    }
    UT_CHECK(ut_verify(data, length, inbox->seed) == SIZE_MAX, "wrong data, %zu bytes", length);
    return UCS_OK;
}

static void listen_am(inbox_t *inbox, sock_side_t *side)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                  UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                    .id  = ID,
                                    .cb  = on_message,
                                    .arg = inbox};

    *inbox = (inbox_t){.side = side};
    UT_CHECK_STATUS(ucp_worker_set_am_recv_handler(side->worker, &param), UCS_OK, "ucp_worker_set_am_recv_handler");
}

static void take_kept(inbox_t *inbox)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    char *room;

    if (inbox->data == NULL) {
        return;
    }
    ++inbox->kept;
    if (inbox->is_rndv) {
        room = malloc(inbox->length + 1);
        UT_CHECK_STATUS(sock_wait(ucp_am_recv_data_nbx(inbox->side->worker, inbox->data, room, inbox->length, &none)),
                        UCS_OK, "ucp_am_recv_data_nbx");
        UT_CHECK(ut_verify(room, inbox->length, inbox->seed) == SIZE_MAX, "wrong data, %zu bytes", inbox->length);
        free(room);
    } else {
        UT_CHECK(ut_verify(inbox->data, inbox->length, inbox->seed) == SIZE_MAX, "wrong data, %zu bytes",
                 inbox->length);
        ucp_am_data_release(inbox->side->worker, inbox->data);
    }
    inbox->data = NULL;
}

static void send_am(sock_end_t *from, inbox_t *to, size_t length, unsigned seed)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_REPLY};
    unsigned calls            = to->calls;
    char *out                 = malloc(length + 1);
    ucs_status_ptr_t ptr;

    ut_fill(out, length, seed);
    ptr = ucp_am_send_nbx(from->ep, ID, &seed, sizeof(seed), out, length, &param);
    ut_clock_start();
    while (to->calls == calls) {
        sock_progress();
        ut_clock_check("an active message");
    }
    take_kept(to);
    UT_CHECK_STATUS(sock_wait(ptr), UCS_OK, "send of an active message");
    UT_CHECK((to->seed == seed) && (to->length == length), "another message than was sent");
    free(out);
}

static void active_messages(void)
{
    inbox_t server_inbox, client_inbox;
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    listen_am(&server_inbox, server);
    listen_am(&client_inbox, client);
    sock_connect(&at_client, client, server->port, 0);
    sock_accept(&at_server, server, server);
    for (i = 0; i < 2 * SIZES; ++i) {
        send_am(&at_client, &server_inbox, sizes[i % SIZES], 2 * i);
        UT_CHECK(server_inbox.reply_ep == at_server.ep, "another endpoint to reply by");
        send_am(&at_server, &client_inbox, sizes[i % SIZES], (2 * i) + 1);
        UT_CHECK(client_inbox.reply_ep == at_client.ep, "another endpoint to reply by");
    }
    UT_CHECK(server_inbox.kept > 0, "no data were kept");
    close_both();
}

/* --------------------------------------------------------------- streams */

static void stream_one(sock_end_t *from, sock_end_t *to, size_t length, unsigned seed)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucp_request_param_t all  = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_STREAM_RECV_FLAG_WAITALL};
    char *out = malloc(length), *in = calloc(1, length);
    ucs_status_ptr_t ptrs[2];
    size_t received;

    ut_fill(out, length, seed);
    ptrs[0] = ucp_stream_recv_nbx(to->ep, in, length, &received, &all);
    ptrs[1] = ucp_stream_send_nbx(from->ep, out, length, &none);
    UT_CHECK_STATUS(sock_wait(ptrs[0]), UCS_OK, "receive of a stream");
    UT_CHECK_STATUS(sock_wait(ptrs[1]), UCS_OK, "send of a stream");
    UT_CHECK(ut_verify(in, length, seed) == SIZE_MAX, "wrong bytes of %zu", length);
    free(out);
    free(in);
}

/* Endpoints are accepted in another order than they were made in: each stream goes to its own other end */
static void streams(void)
{
    enum { PAIRS = 4 };
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST};
    ucp_conn_request_h requests[PAIRS];
    sock_end_t ends[PAIRS][2];
    unsigned i, j;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    for (i = 0; i < PAIRS; ++i) {
        sock_connect(&ends[i][0], client, server->port, 0);
        requests[i] = sock_await(server);
    }
    for (i = PAIRS; i-- > 0;) {
        params.conn_request = requests[i];
        ends[i][1]          = (sock_end_t){.side = server};
        UT_REQUIRE(ucp_ep_create(server->worker, &params, &ends[i][1].ep) == UCS_OK, "ucp_ep_create");
    }
    for (j = 1; j < SIZES; ++j) {
        for (i = 0; i < PAIRS; ++i) {
            stream_one(&ends[i][0], &ends[i][1], sizes[j], (10 * j) + i);
            stream_one(&ends[i][1], &ends[i][0], sizes[j], (10 * j) + i + 5);
        }
    }
    for (i = 0; i < PAIRS; ++i) {
        UT_CHECK_STATUS(sock_end_close(&ends[i][0], false), UCS_OK, "close");
        sock_end_close(&ends[i][1], true);
    }
    sock_close(client);
    sock_close(server);
}

/* -------------------------------------------------------- several, and ids */

static void check_id(ucp_conn_request_h request, uint64_t id)
{
    ucp_conn_request_attr_t attr = {.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID |
                                                  UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR};

    UT_CHECK_STATUS(ucp_conn_request_query(request, &attr), UCS_OK, "ucp_conn_request_query");
    UT_CHECK(attr.client_id == id, "the client has the id 0x%lx, not 0x%lx", (unsigned long)attr.client_id,
             (unsigned long)id);
    UT_CHECK(attr.client_address.ss_family != 0, "no address");
}

/* Where all is sealed what has no room for UCI's mark can't connect */
static bool is_refused(uint64_t id)
{
    return (getenv("UCI_SEAL") != NULL) && ut_uci_is_on() && (id >> 40 != 0);
}

/* A program's own ids, of all sizes, are what the server is told */
static void client_ids(void)
{
    static const uint64_t ids[] = {
            0, 1, 0xffffffff, 0x123456789a, 0xffffffffff, 0x10000000000, 0x0123456789abcdef, UINT64_MAX};
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST};
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    server = sock_open(FEATURES, 0);
    sock_listen(server);
    for (i = 0; (i < sizeof(ids) / sizeof(ids[0])) && !is_refused(ids[i]); ++i) {
        client = sock_open(FEATURES, ids[i]);
        sock_connect(&at_client, client, server->port, UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID);
        params.conn_request = sock_await(server);
        check_id(params.conn_request, ids[i]);
        at_server = (sock_end_t){.side = server};
        UT_REQUIRE(ucp_ep_create(server->worker, &params, &at_server.ep) == UCS_OK, "ucp_ep_create");
        sock_exchange(&at_client, server, 1000, i);
        sock_exchange(&at_server, client, 100000, i);
        sock_end_close(&at_client, false);
        sock_end_close(&at_server, true);
        sock_close(client);
    }
    sock_close(server);
}

/* The listener's worker accepts for others of its context, as in UCX's examples */
static void several(void)
{
    enum { CLIENTS = 3 };
    sock_side_t *clients[CLIENTS], *second;
    sock_end_t ends[CLIENTS][2];
    unsigned i, j;

    if (!sock_is_possible()) {
        return;
    }
    server = sock_open(FEATURES, 0);
    second = sock_open_beside(server);
    sock_listen(server);
    for (i = 0; i < CLIENTS; ++i) {
        clients[i] = sock_open(FEATURES, 0);
        sock_connect(&ends[i][0], clients[i], server->port, 0);
        sock_accept(&ends[i][1], (i == 0) ? server : second, server);
    }
    for (j = 0; j < SIZES; ++j) {
        for (i = 0; i < CLIENTS; ++i) {
            sock_exchange(&ends[i][0], ends[i][1].side, sizes[j], j);
            sock_exchange(&ends[i][1], clients[i], sizes[j], j);
        }
    }
    for (i = 0; i < CLIENTS; ++i) {
        UT_CHECK_STATUS(sock_end_close(&ends[i][0], false), UCS_OK, "close");
        sock_end_close(&ends[i][1], true);
        sock_close(clients[i]);
    }
    sock_close(second);
    sock_close(server);
}

/* ----------------------------------------------------------------- mixed */

static sock_side_t *second_client;
static sock_end_t ends[2][2]; /* of each client: at the client, at the server */

/* With an id of so many bits UCI knows nothing of the second one, as if it were not there */
static void open_mixed(void)
{
    server        = sock_open(FEATURES, 0);
    client        = sock_open(FEATURES, 0);
    second_client = sock_open(FEATURES, UINT64_MAX);
    sock_listen(server);
    sock_join(&ends[0][0], client, &ends[0][1], server);
    sock_join(&ends[1][0], second_client, &ends[1][1], server);
}

static void close_mixed(void)
{
    unsigned i;

    for (i = 0; i < 2; ++i) {
        sock_end_close(&ends[i][0], false);
        sock_end_close(&ends[i][1], true);
    }
    sock_close(second_client);
    sock_close(client);
    sock_close(server);
}

typedef struct receipt {
    char *data;
    ucp_tag_recv_info_t info;
    ucs_status_ptr_t ptr;
} receipt_t;

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    receipt_t *receipt = user_data;

    UT_CHECK_STATUS(status, UCS_OK, "receive");
    receipt->info = *info;
}

/* Receives of any tag, which take what comes from either, each in its order. @param early  they are posted first */
static void from_both(size_t length, bool early, bool probe)
{
    enum { EACH = 6, ALL = 2 * EACH };
    ucp_request_param_t none  = {.op_attr_mask = 0};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv = on_received};
    ucs_status_ptr_t sends[ALL];
    receipt_t receipts[ALL];
    unsigned i, next[2] = {0, 0};
    char *out[ALL];

    for (i = 0; i < ALL; ++i) {
        receipts[i] = (receipt_t){.data = calloc(1, length + 1)};
        out[i]      = malloc(length + 1);
        ut_fill(out[i], length, i);
    }
    for (i = 0; early && (i < ALL); ++i) {
        param.user_data = &receipts[i];
        receipts[i].ptr = ucp_tag_recv_nbx(server->worker, receipts[i].data, length, 0, 0, &param);
    }
    for (i = 0; i < ALL; ++i) {
        sends[i] = ucp_tag_send_nbx(ends[i % 2][0].ep, out[i], length, i, &none);
    }
    if (!early) {
        sock_settle(20);
    }
    for (i = 0; !early && (i < ALL); ++i) {
        param.user_data = &receipts[i];
        if (probe) {
            ucp_tag_message_h message;
            ucp_tag_recv_info_t info;

            ut_clock_start();
            while ((message = ucp_tag_probe_nb(server->worker, 0, 0, 1, &info)) == NULL) {
                sock_progress();
                ut_clock_check("a probe");
            }
            UT_CHECK((info.sender_tag < ALL) && (info.length == length), "what a probe says");
            receipts[i].ptr = ucp_tag_msg_recv_nbx(server->worker, receipts[i].data, length, message, &param);
        } else {
            receipts[i].ptr = ucp_tag_recv_nbx(server->worker, receipts[i].data, length, 0, 0, &param);
        }
    }
    for (i = 0; i < ALL; ++i) {
        unsigned tag;

        UT_CHECK_STATUS(sock_wait(receipts[i].ptr), UCS_OK, "receive");
        tag = (unsigned)receipts[i].info.sender_tag;
        UT_CHECK((tag < ALL) && (tag == (2 * next[tag % 2]) + (tag % 2)), "message %u in the wrong order", tag);
        ++next[tag % 2];
        UT_CHECK(receipts[i].info.length == length, "%zu bytes, not %zu", receipts[i].info.length, length);
        UT_CHECK(ut_verify(receipts[i].data, length, tag) == SIZE_MAX, "message %u: wrong content", tag);
        free(receipts[i].data);
    }
    for (i = 0; i < ALL; ++i) {
        UT_CHECK_STATUS(sock_wait(sends[i]), UCS_OK, "send");
        free(out[i]);
    }
}

static void mixed_tags(void)
{
    unsigned i;

    if (!sock_is_possible() || is_refused(UINT64_MAX)) {
        return;
    }
    open_mixed();
    for (i = 0; i < SIZES; ++i) {
        from_both(sizes[i], false, false);
        from_both(sizes[i], true, false);
        from_both(sizes[i], false, true);
        sock_exchange(&ends[0][1], client, sizes[i], i);
        sock_exchange(&ends[1][1], second_client, sizes[i], i);
    }
    close_mixed();
}

/* What is in pieces, what is too long, what is canceled, and what nobody receives */
static void mixed_receives(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucp_request_param_t iov  = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = UCP_DATATYPE_IOV};
    char data[1000], room[1000];
    ucp_dt_iov_t pieces[2] = {{room, 300}, {room + 300, 700}};
    ucs_status_ptr_t ptr;
    unsigned i;

    if (!sock_is_possible() || is_refused(UINT64_MAX)) {
        return;
    }
    open_mixed();
    ut_fill(data, sizeof(data), 9);
    for (i = 0; i < 2; ++i) {
        memset(room, 0, sizeof(room));
        ptr = ucp_tag_recv_nbx(server->worker, pieces, 2, 1, UT_TAG_ALL, &iov);
        UT_CHECK_STATUS(sock_wait(ucp_tag_send_nbx(ends[i][0].ep, data, sizeof(data), 1, &none)), UCS_OK, "send");
        UT_CHECK_STATUS(sock_wait(ptr), UCS_OK, "receive in pieces");
        UT_CHECK(ut_verify(room, sizeof(room), 9) == SIZE_MAX, "wrong content");

        ptr = ucp_tag_recv_nbx(server->worker, room, 100, 2, UT_TAG_ALL, &none);
        UT_CHECK_STATUS(sock_wait(ucp_tag_send_nbx(ends[i][0].ep, data, sizeof(data), 2, &none)), UCS_OK, "send");
        UT_CHECK_STATUS(sock_wait(ptr), UCS_ERR_MESSAGE_TRUNCATED, "receive into less");

        ptr = ucp_tag_recv_nbx(server->worker, room, 100, 3, UT_TAG_ALL, &none);
        ucp_request_cancel(server->worker, ptr);
        UT_CHECK_STATUS(sock_wait(ptr), UCS_ERR_CANCELED, "a receive that is canceled");

        UT_CHECK_STATUS(sock_wait(ucp_tag_send_nbx(ends[i][0].ep, data, sizeof(data), 4, &none)), UCS_OK, "send");
    }
    sock_settle(20);
    close_mixed();
}

static void mixed_active_messages(void)
{
    inbox_t server_inbox, inboxes[2];
    unsigned i, j;

    if (!sock_is_possible() || is_refused(UINT64_MAX)) {
        return;
    }
    open_mixed();
    listen_am(&server_inbox, server);
    listen_am(&inboxes[0], client);
    listen_am(&inboxes[1], second_client);
    for (i = 0; i < 2 * SIZES; ++i) {
        for (j = 0; j < 2; ++j) {
            send_am(&ends[j][0], &server_inbox, sizes[i % SIZES], (4 * i) + j);
            UT_CHECK(server_inbox.reply_ep == ends[j][1].ep, "another endpoint to reply by");
            send_am(&ends[j][1], &inboxes[j], sizes[i % SIZES], (4 * i) + j + 2);
            UT_CHECK(inboxes[j].reply_ep == ends[j][0].ep, "another endpoint to reply by");
        }
    }
    close_mixed();
}

static void mixed_streams(void)
{
    unsigned i, j;

    if (!sock_is_possible() || is_refused(UINT64_MAX)) {
        return;
    }
    open_mixed();
    for (j = 1; j < SIZES; ++j) {
        for (i = 0; i < 2; ++i) {
            stream_one(&ends[i][0], &ends[i][1], sizes[j], (10 * j) + i);
            stream_one(&ends[i][1], &ends[i][0], sizes[j], (10 * j) + i + 5);
        }
    }
    close_mixed();
}

/* ---------------------------------------------------------------- others */

/* A worker that also has an endpoint by worker address, to the same one or to another */
static void beside_addresses(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    sock_end_t other         = {0};
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    other.side = client;
    other.ep   = ut_ep_create(client->worker, server->worker);
    sock_exchange(&other, server, 100, 1);
    sock_join(&at_client, client, &at_server, server);
    for (i = 0; i < SIZES; ++i) {
        sock_exchange(&at_client, server, sizes[i], i);
        sock_exchange(&other, server, sizes[i], i + 100);
        sock_exchange(&at_server, client, sizes[i], i);
    }
    UT_CHECK_STATUS(sock_end_close(&at_client, false), UCS_OK, "close");
    sock_end_close(&at_server, true);
    UT_CHECK_STATUS(sock_wait(ucp_ep_close_nbx(other.ep, &none)), UCS_OK, "close of the other endpoint");
    sock_close(client);
    sock_close(server);
}

/* A listener of the old sort gets an endpoint; it may be told of it when the client has sent something */
static void old_listener(void)
{
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    server = sock_open(FEATURES, 0);
    client = sock_open(FEATURES, 0);
    sock_listen_old(server);
    sock_connect(&at_client, client, server->port, 0);
    ut_clock_start();
    while (server->accepted == NULL) {
        sock_progress();
        ut_clock_check("a connection");
    }
    at_server = (sock_end_t){.side = server, .ep = server->accepted};
    for (i = 0; i < SIZES; ++i) {
        sock_exchange(&at_client, server, sizes[i], i);
        sock_exchange(&at_server, client, sizes[i], i);
    }
    close_both();
}

static const ut_test_t tests[] = {UT_TEST(tags),           UT_TEST(at_once),
                                  UT_TEST(flushes),        UT_TEST(active_messages),
                                  UT_TEST(streams),        UT_TEST(client_ids),
                                  UT_TEST(several),        UT_TEST(mixed_tags),
                                  UT_TEST(mixed_receives), UT_TEST(mixed_active_messages),
                                  UT_TEST(mixed_streams),  UT_TEST(beside_addresses),
                                  UT_TEST(old_listener)};

UT_MAIN(tests)
