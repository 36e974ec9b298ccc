/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How connections by socket address begin and end: closed in all orders, rejected, never accepted, failed, made again, and thousands of
 * them. (Processes without UCI on one side, and those that die: unlike.c.)
 */
#include "sock_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FEATURES = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM };

static sock_side_t *server, *client;
static sock_end_t at_server, at_client;

static void open_both(void)
{
    server = sock_open(FEATURES, 0);
    client = sock_open(FEATURES, 0);
    sock_listen(server);
}

static void close_sides(void)
{
    sock_close(client);
    sock_close(server);
}

static void exchange_some(unsigned seed)
{
    sock_exchange(&at_client, server, 10, seed);
    sock_exchange(&at_server, client, 10000, seed);
    sock_exchange(&at_client, server, 200000, seed);
}

/* Who hears that the other side has gone has had all that was sent before */
static void close_in_turn(bool server_first, bool first_forces, bool talk)
{
    sock_end_t *first = server_first ? &at_server : &at_client, *second = server_first ? &at_client : &at_server;

    open_both();
    sock_join(&at_client, client, &at_server, server);
    if (talk) {
        exchange_some(1);
    }
    sock_end_close(first, first_forces);
    sock_settle(20);
    UT_CHECK(second->errors <= 1, "%u errors", second->errors);
    sock_end_close(second, true);
    close_sides();
}

static void close_orders(void)
{
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    for (i = 0; i < 8; ++i) {
        close_in_turn(i & 1, i & 2, i & 4);
    }
}

/* Both at once, and what is around them */
static void close_ends(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t ptrs[2] = {ucp_ep_close_nbx(at_client.ep, &none), ucp_ep_close_nbx(at_server.ep, &none)};

    sock_wait(ptrs[0]);
    sock_wait(ptrs[1]);
    close_sides();
}

static void close_together(void)
{
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    for (i = 0; i < 3; ++i) {
        open_both();
        sock_join(&at_client, client, &at_server, server);
        if (i > 0) {
            exchange_some(i);
        }
        if (i > 1) {
            sock_settle(30);
        }
        close_ends();
    }
}

/* A client that has gone before its connection was accepted */
static void close_at_once(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t ptr;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    sock_connect(&at_client, client, server->port, 0);
    UT_CHECK(!UCS_STATUS_IS_ERR(sock_end_close(&at_client, true)), "close by force");
    sock_settle(20);

    sock_connect(&at_client, client, server->port, 0);
    ptr = ucp_ep_close_nbx(at_client.ep, &none);
    sock_settle(20);
    while (server->taken + 1 < server->asked) { /* of the first one */
        ucp_listener_reject(server->listener, sock_await(server));
    }
    sock_accept(&at_server, server, server);
    sock_wait(ptr);
    sock_settle(20);
    sock_end_close(&at_server, true);
    close_sides();
}

/* What was sent by an endpoint that is closed by force is canceled, though there is another one to the same worker, and only that. It may be
 * received all the same */
static void force_one_of_two_with(bool received)
{
    enum { LENGTH = 3 << 20 };
    ucp_request_param_t none = {.op_attr_mask = 0};
    sock_end_t ends[2][2];
    ucs_status_ptr_t sends[2], receives[2], small;
    char *out, *in;
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    out = malloc(LENGTH);
    in  = calloc(2, LENGTH);
    memset(out, 7, LENGTH);
    for (i = 0; i < 2; ++i) {
        sock_join(&ends[i][0], client, &ends[i][1], server);
        sock_exchange(&ends[i][0], server, 10, i);
        sends[i] = ucp_tag_send_nbx(ends[i][0].ep, out, LENGTH, i, &none);
    }
    small = ucp_tag_send_sync_nbx(ends[0][0].ep, out, 8, 2, &none);
    sock_settle(20);
    UT_CHECK(!UCS_STATUS_IS_ERR(sock_end_close(&ends[0][0], true)), "close by force");
    UT_CHECK_STATUS(sock_wait(sends[0]), UCS_ERR_CANCELED, "what was sent by the endpoint that was closed");
    UT_CHECK_STATUS(sock_wait(small), UCS_ERR_CANCELED, "what was sent by it, and waits for its receive");
    receives[1] = ucp_tag_recv_nbx(server->worker, in + LENGTH, LENGTH, 1, -1ul, &none);
    if (received) {
        receives[0] = ucp_tag_recv_nbx(server->worker, in, LENGTH, 0, -1ul, &none);
    }
    UT_CHECK_STATUS(sock_wait(receives[1]), UCS_OK, "receive of what was sent by the other one");
    UT_CHECK_STATUS(sock_wait(sends[1]), UCS_OK, "what was sent by the other one");
    UT_CHECK(memcmp(out, in + LENGTH, LENGTH) == 0, "the data of the other one");
    if (received) {
        UT_CHECK(UCS_STATUS_IS_ERR(sock_wait(receives[0])) || (memcmp(out, in, LENGTH) == 0),
                 "a receive of what was canceled ends well, with other data");
        sock_wait(ucp_tag_recv_nbx(server->worker, in, 8, 2, -1ul, &none));
    }
    sock_end_close(&ends[0][1], true);
    sock_end_close(&ends[1][0], false);
    sock_end_close(&ends[1][1], true);
    free(in);
    free(out);
    close_sides();
}

static void force_one_of_two(void)
{
    force_one_of_two_with(true);
}

/* The close of the other one waits for no receive of what was canceled */
static void force_one_of_two_unread(void)
{
    force_one_of_two_with(false);
}

/* What waits for the other side of an endpoint that fails ends with it, though there is another one */
static void one_of_two_fails(void)
{
    enum { LENGTH = 3 << 20 };
    ucp_request_param_t none = {.op_attr_mask = 0};
    sock_end_t ends[2][2];
    ucs_status_ptr_t receive, send;
    size_t received;
    char in[8], *out;
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    out = calloc(1, LENGTH);
    for (i = 0; i < 2; ++i) {
        sock_join(&ends[i][0], client, &ends[i][1], server);
        sock_exchange(&ends[i][0], server, 10, i);
    }
    receive = ucp_stream_recv_nbx(ends[0][1].ep, in, sizeof(in), &received, &none);
    send    = ucp_tag_send_nbx(ends[0][1].ep, out, LENGTH, 1, &none);
    sock_settle(20);
    sock_end_close(&ends[0][0], false);
    UT_CHECK_STATUS(sock_wait(receive), UCS_ERR_CONNECTION_RESET,
                    "a receive from a stream whose other side has closed");
    UT_CHECK(UCS_STATUS_IS_ERR(sock_wait(send)), "a send ends well that nobody has received");
    sock_exchange(&ends[1][1], client, 1000, 3);
    for (i = 0; i < 3; ++i) {
        sock_end_close(&ends[(i + 1) / 2][(i + 1) % 2], true);
    }
    free(out);
    close_sides();
}

/* ---------------------------------------------------------------- answers */

static ucp_ep_h reply_ep;

static ucs_status_t on_question(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                const ucp_am_recv_param_t *param)
{
    reply_ep = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) ? param->reply_ep : NULL;
    return UCS_OK;
}

/* The endpoint to answer by is the one that is connected with the sender's */
static void answered_by_its_own(void)
{
    ucp_am_handler_param_t handler = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 3, .cb = on_question};
    ucp_request_param_t reply = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_REPLY};
    sock_end_t ends[3][2];
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    ucp_worker_set_am_recv_handler(server->worker, &handler);
    for (i = 0; i < 3; ++i) {
        sock_join(&ends[i][0], client, &ends[i][1], server);
    }
    for (i = 3; i-- > 0;) {
        reply_ep = NULL;
        UT_CHECK_STATUS(sock_wait(ucp_am_send_nbx(ends[i][0].ep, 3, NULL, 0, "hi", 2, &reply)), UCS_OK, "a question");
        ut_clock_start();
        while (reply_ep == NULL) {
            sock_progress();
            ut_clock_check("a question");
        }
        UT_CHECK(reply_ep == ends[i][1].ep, "to be answered by another endpoint than that of connection %u", i);
    }
    for (i = 0; i < 3; ++i) {
        sock_end_close(&ends[i][0], true);
        sock_end_close(&ends[i][1], true);
    }
    close_sides();
}

/* What has not been read when its endpoint is closed is kept by nobody */
static void unread_streams(void)
{
    enum { COUNT = 60, SENDS = 8, LENGTH = 8000, ROOM_KIB = 2500 };
    static const char data[LENGTH];
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t sends[SENDS];
    size_t before = 0, after;
    unsigned i, k;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    for (i = 0; i < COUNT; ++i) {
        sock_join(&at_client, client, &at_server, server);
        for (k = 0; k < SENDS; ++k) {
            sends[k] = ucp_stream_send_nbx(at_client.ep, data, LENGTH, &none);
        }
        sock_end_close(&at_server, false);
        for (k = 0; k < SENDS; ++k) {
            sock_wait(sends[k]);
        }
        sock_end_close(&at_client, true);
        before = (i == COUNT / 4) ? sock_memory() : before;
    }
    after = sock_memory();
    UT_CHECK(after < before + ROOM_KIB, "memory grows by %zu KiB", after - before);
    close_sides();
}

static void exchange_in_stream(ucp_ep_h from, ucp_ep_h to)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    char in[8]               = "";
    size_t length;

    UT_CHECK_STATUS(sock_wait(ucp_stream_send_nbx(from, "12345678", 8, &none)), UCS_OK, "send");
    UT_CHECK_STATUS(sock_wait(ucp_stream_recv_nbx(to, in, 8, &length, &none)), UCS_OK, "receive");
    UT_CHECK(memcmp(in, "12345678", 8) == 0, "other bytes");
}

static ucp_ep_h connect_by_address(sock_side_t *from, sock_side_t *to, uint64_t more)
{
    ucp_ep_params_t params = {.field_mask = more, .err_mode = UCP_ERR_HANDLING_MODE_PEER};

    return ut_ep_create_as(from->worker, to->worker, params);
}

/* By worker address: endpoints that are made when one has been told of to answer by are connected in order, whatever they ask for */
static void made_after_an_answer(void)
{
    ucp_am_handler_param_t handler = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 3, .cb = on_question};
    ucp_request_param_t reply = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_REPLY};
    ucp_request_param_t none  = {.op_attr_mask = 0};
    ucp_ep_h from, to;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    ucp_worker_set_am_recv_handler(server->worker, &handler);
    from     = connect_by_address(client, server, 0);
    reply_ep = NULL;
    UT_CHECK_STATUS(sock_wait(ucp_am_send_nbx(from, 3, NULL, 0, "hi", 2, &reply)), UCS_OK, "a question");
    ut_clock_start();
    while (reply_ep == NULL) {
        sock_progress();
        ut_clock_check("a question");
    }
    to = connect_by_address(server, client, UCP_EP_PARAM_FIELD_USER_DATA);
    exchange_in_stream(from, to);
    exchange_in_stream(to, from);
    from = connect_by_address(client, server, 0);
    to   = connect_by_address(server, client, 0);
    exchange_in_stream(from, to);
    exchange_in_stream(to, from);
    sock_wait(ucp_worker_flush_nbx(client->worker, &none));
    sock_wait(ucp_worker_flush_nbx(server->worker, &none));
    close_sides();
}

/* By worker address, and the receiving side has no endpoint: who closes by force has taken what he has not sent along. Also if he has come back */
static void give_up_by_force(bool comes_back)
{
    enum { LENGTH = 1 << 20 };
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t send;
    sock_end_t end;
    char *out;

    if (!sock_is_possible() || ut_faults_are_on() || !ut_uci_is_on()) {
        return; /* what says so may be damaged, and is said once; on plain UCX it takes 20 s */
    }
    open_both();
    out = calloc(2, LENGTH);
    end = (sock_end_t){.side = client, .ep = connect_by_address(client, server, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE)};
    sock_exchange(&end, server, 10, 1);
    send = ucp_tag_send_nbx(end.ep, out, LENGTH, 2, &none);
    sock_settle(20);
    sock_end_close(&end, true);
    UT_CHECK_STATUS(sock_wait(send), UCS_ERR_CANCELED, "what was being sent");
    sock_settle(20);
    if (comes_back) {
        end.ep = connect_by_address(client, server, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE);
        sock_exchange(&end, server, 10, 3);
    }
    UT_CHECK_STATUS(sock_wait(ucp_tag_recv_nbx(server->worker, out + LENGTH, LENGTH, 2, -1ul, &none)),
                    UCS_ERR_CONNECTION_RESET, "a receive of what nobody sends any more");
    if (comes_back) {
        sock_end_close(&end, false);
    }
    free(out);
    close_sides();
}

static void gone_by_force(void)
{
    give_up_by_force(false);
}

static void back_after_force(void)
{
    give_up_by_force(true);
}

/* By worker address, both sides, again and again: pairs are made of what either side has made, and of what handles errors alike */
static void reopened_by_force(void)
{
    sock_end_t ends[2];
    unsigned round, i;

    if (!sock_is_possible() || ut_faults_are_on()) {
        return; /* what a forced close says is said once */
    }
    open_both();
    for (round = 0; round < 10; ++round) {
        ends[0].side = client;
        ends[0].ep   = connect_by_address(client, server, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE);
        ends[1].side = server;
        ends[1].ep   = connect_by_address(server, client, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE);
        sock_exchange(&ends[0], server, 400000, 1);
        sock_exchange(&ends[1], client, 400000, 2);
        for (i = 0; i < 2; ++i) {
            sock_end_close(&ends[i], true);
        }
    }
    close_sides();
}

/* ------------------------------------------------------------- a death */

enum { KILLED_LENGTH = 64 << 20 };

/* Connected by worker address, of which killed_sender() tells it, until it is killed */
static void killed_sender_itself(void)
{
    const char *text          = getenv("SOCK_ENDS_ADDRESS");
    ucp_request_param_t none  = {.op_attr_mask = 0};
    ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                 .err_mode   = UCP_ERR_HANDLING_MODE_PEER};
    unsigned char address[4096];
    char *data;
    ucp_ep_h ep;
    size_t i;

    if (text == NULL) {
        return; /* by itself it is no test */
    }
    for (i = 0; (2 * i + 1 < strlen(text)) && (i < sizeof(address)); ++i) {
        UT_REQUIRE(sscanf(text + 2 * i, "%2hhx", &address[i]) == 1, "SOCK_ENDS_ADDRESS");
    }
    client            = sock_open(FEATURES, 0);
    ep_params.address = (const ucp_address_t *)address;
    UT_REQUIRE(ucp_ep_create(client->worker, &ep_params, &ep) == UCS_OK, "ucp_ep_create");
    data = malloc(KILLED_LENGTH);
    memset(data, 1, KILLED_LENGTH);
    (void)ucp_tag_send_nbx(ep, data, KILLED_LENGTH, 1, &none);
    sock_settle(60000);
    _exit(1);
}

static pid_t start_sender(void)
{
    ucp_address_t *address;
    size_t length, i;
    pid_t sender;
    char *text;

    UT_REQUIRE(ucp_worker_get_address(server->worker, &address, &length) == UCS_OK, "ucp_worker_get_address");
    text = calloc(2, length + 1);
    for (i = 0; i < length; ++i) {
        sprintf(text + 2 * i, "%02x", ((unsigned char *)address)[i]);
    }
    ucp_worker_release_address(server->worker, address);
    setenv("SOCK_ENDS_ADDRESS", text, 1);
    sender = fork();
    if (sender == 0) {
        execl("/proc/self/exe", "sock_ends", "killed_sender_itself", NULL);
        _exit(1);
    }
    unsetenv("SOCK_ENDS_ADDRESS");
    free(text);
    return sender;
}

/* The receiving side has no endpoint, and hears all the same that there is nobody any more */
static void killed_sender(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t receive;
    volatile char *in;
    pid_t sender;

    if (!sock_is_possible()) {
        return;
    }
    server  = sock_open(FEATURES, 0);
    in      = calloc(1, KILLED_LENGTH);
    receive = ucp_tag_recv_nbx(server->worker, (void *)in, KILLED_LENGTH, 1, -1ul, &none);
    sender  = start_sender();
    ut_clock_start();
    while (in[100] == 0) {
        sock_progress();
        ut_clock_check("the first bytes of who will be killed");
    }
    kill(sender, SIGKILL);
    waitpid(sender, NULL, 0);
    UT_CHECK(UCS_STATUS_IS_ERR(sock_wait(receive)) || (in[KILLED_LENGTH - 1] == 1),
             "a receive from who was killed ends well, without its bytes");
    free((void *)in);
    sock_close(server);
}

/* Where errors are not handled UCX refuses to close by force, whatever the state of the connection: it goes on */
static void force_refused(void)
{
    if (!sock_is_possible()) {
        return;
    }
    sock_err_mode = UCP_ERR_HANDLING_MODE_NONE;
    open_both();
    sock_connect(&at_client, client, server->port, 0);
    UT_CHECK_STATUS(sock_end_close(&at_client, true), UCS_ERR_INVALID_PARAM, "close by force of what connects");
    sock_accept(&at_server, server, server);
    UT_CHECK_STATUS(sock_end_close(&at_server, true), UCS_ERR_INVALID_PARAM, "close by force of what is accepted");
    exchange_some(1);
    UT_CHECK_STATUS(sock_end_close(&at_client, true), UCS_ERR_INVALID_PARAM, "close by force");
    UT_CHECK_STATUS(sock_end_close(&at_server, true), UCS_ERR_INVALID_PARAM, "close by force");
    exchange_some(2);
    close_ends();
    sock_err_mode = UCP_ERR_HANDLING_MODE_PEER;
}

/* -------------------------------------------------------------- refusals */

static void rejected(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t sends[2];
    char data[100] = "";
    char *large;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    large = calloc(1, 100000);
    sock_connect(&at_client, client, server->port, 0);
    sends[0] = ucp_tag_send_nbx(at_client.ep, data, sizeof(data), 1, &none);
    sends[1] = ucp_tag_send_nbx(at_client.ep, large, 100000, 1, &none);
    UT_CHECK_STATUS(ucp_listener_reject(server->listener, sock_await(server)), UCS_OK, "ucp_listener_reject");
    ut_clock_start();
    while (at_client.errors == 0) {
        sock_progress();
        ut_clock_check("a rejection");
    }
    UT_CHECK_STATUS(at_client.error, UCS_ERR_REJECTED, "the client's error");
    UT_CHECK(UCS_STATUS_IS_ERR(sock_wait(sends[0])), "a send to nobody ends well");
    UT_CHECK(UCS_STATUS_IS_ERR(sock_wait(sends[1])), "a send to nobody ends well");
    UT_CHECK(UCS_STATUS_IS_ERR(sock_wait(ucp_tag_send_nbx(at_client.ep, data, sizeof(data), 1, &none))),
             "a send by an endpoint that has failed ends well");
    sock_end_close(&at_client, true);
    UT_CHECK(at_client.errors == 1, "%u errors", at_client.errors);

    /* and the next one is accepted */
    sock_join(&at_client, client, &at_server, server);
    exchange_some(3);
    sock_end_close(&at_client, false);
    sock_end_close(&at_server, true);
    free(large);
    close_sides();
}

static void nobody_listens(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t send;
    char data[100] = "";
    uint16_t port;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    port = server->port;
    ucp_listener_destroy(server->listener);
    server->listener = NULL;
    sock_connect(&at_client, client, port, 0);
    send = ucp_tag_send_nbx(at_client.ep, data, sizeof(data), 1, &none);
    ut_clock_start();
    while (at_client.errors == 0) {
        sock_progress();
        ut_clock_check("an error");
    }
    UT_CHECK(UCS_STATUS_IS_ERR(sock_wait(send)), "a send to nobody ends well");
    sock_end_close(&at_client, true);
    close_sides();
}

/* A server that is elsewhere: nothing fails, and what is given up is canceled */
static void never_accepted(void)
{
    ucp_request_param_t none = {.op_attr_mask = 0};
    ucs_status_ptr_t sends[2];
    char data[100] = "", *large;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    large = calloc(1, 100000);
    sock_connect(&at_client, client, server->port, 0);
    sends[0] = ucp_tag_send_nbx(at_client.ep, data, sizeof(data), 1, &none);
    sends[1] = ucp_tag_send_nbx(at_client.ep, large, 100000, 1, &none);
    sock_expect(server);
    sock_settle(100);
    UT_CHECK(at_client.errors == 0, "an error");
    UT_CHECK(UCS_PTR_IS_PTR(sends[1]) && (ucp_request_check_status(sends[1]) == UCS_INPROGRESS), "a send is over");
    sock_end_close(&at_client, true);
    UT_CHECK_STATUS(sock_wait(sends[1]), UCS_ERR_CANCELED, "large send");
    if (UCS_PTR_IS_PTR(sends[0])) {
        sock_wait(sends[0]);
    }
    free(large);
    close_sides();
}

/* Its client's worker goes with the endpoint: UCX allows that as long as it holds no request, and aborts else where errors are not handled */
static void given_up(void)
{
    if (!sock_is_possible()) {
        return;
    }
    sock_err_mode = UCP_ERR_HANDLING_MODE_NONE;
    open_both();
    sock_connect(&at_client, client, server->port, 0);
    sock_expect(server);
    sock_settle(100);
    UT_CHECK(at_client.errors == 0, "an error");
    close_sides();
    sock_err_mode = UCP_ERR_HANDLING_MODE_PEER;
}

/* ------------------------------------------------------------- many times */

/* Receives that nothing comes for any more are the worker's, and stay */
static void again(void)
{
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    for (i = 0; i < 30; ++i) {
        sock_join(&at_client, client, &at_server, server);
        exchange_some(i);
        sock_end_close((i & 1) ? &at_client : &at_server, (i & 2) != 0);
        sock_settle((i & 4) ? 10 : 0);
        sock_end_close((i & 1) ? &at_server : &at_client, true);
    }
    close_sides();
}

/* The next one is open before the last one is closed */
static void overlapping(void)
{
    enum { ENDS = 3 };
    sock_end_t ends[ENDS][2];
    unsigned i;

    if (!sock_is_possible()) {
        return;
    }
    open_both();
    for (i = 0; i < 24; ++i) {
        at_client = ends[i % ENDS][0];
        at_server = ends[i % ENDS][1];
        if (i >= ENDS) {
            sock_end_close(&ends[i % ENDS][0], (i & 1) != 0);
            sock_end_close(&ends[i % ENDS][1], true);
        }
        sock_join(&ends[i % ENDS][0], client, &ends[i % ENDS][1], server);
        at_client = ends[i % ENDS][0];
        at_server = ends[i % ENDS][1];
        exchange_some(i);
    }
    for (i = 0; i < ENDS; ++i) {
        sock_end_close(&ends[i][0], false);
        sock_end_close(&ends[i][1], true);
    }
    close_sides();
}

static void connect_once(unsigned seed)
{
    sock_join(&at_client, client, &at_server, server);
    sock_exchange(&at_client, server, 100, seed);
    sock_exchange(&at_server, client, 100, seed);
    sock_end_close(&at_client, false);
    sock_end_close(&at_server, true);
}

static int by_size(const void *a, const void *b)
{
    const long one = *(const long *)a, other = *(const long *)b;

    return (one > other) - (one < other);
}

/* Of one client; and of clients that are new each time. What is kept of one is not kept of the next: then each quarter but the first would take
 * as much. What grows once, by a MiB or two, as a pool does, is in one of them (UCX 1.23, with threads: 1 of 40 runs). */
static void churn(bool new_clients, unsigned count, size_t most)
{
    enum { QUARTERS = 4 };
    long before = 0, more[QUARTERS];
    unsigned i, quarter;

    open_both();
    for (quarter = 0; quarter < QUARTERS; ++quarter) {
        for (i = 0; i < count / QUARTERS; ++i) {
            if (new_clients) {
                sock_close(client);
                client = sock_open(FEATURES, 0);
            }
            connect_once(i);
        }
        more[quarter] = (long)sock_memory() - before;
        before += more[quarter];
    }
    qsort(&more[1], QUARTERS - 1, sizeof(more[0]), by_size);
    UT_CHECK(more[2] <= (long)most, "%u connections take %ld KiB, in the median of three times", count / QUARTERS,
             more[2]);
    close_sides();
}

/* More of them, for who has the time, or fewer: SOCK_CHURN=5 */
static unsigned times(unsigned count)
{
    const char *text = getenv("SOCK_CHURN");

    return (text != NULL) ? (unsigned)(atof(text) * count) : count;
}

static void thousands(void)
{
    if (sock_is_possible()) {
        churn(false, times(400), 512);
    }
}

static void new_clients(void)
{
    if (sock_is_possible()) {
        churn(true, times(80), 1024);
    }
}

static const ut_test_t tests[] = {UT_TEST(close_orders),
                                  UT_TEST(close_together),
                                  UT_TEST(close_at_once),
                                  UT_TEST(rejected),
                                  UT_TEST(nobody_listens),
                                  UT_TEST(never_accepted),
                                  UT_TEST(given_up),
                                  UT_TEST(again),
                                  UT_TEST(overlapping),
                                  UT_TEST(thousands),
                                  UT_TEST(new_clients),
                                  UT_TEST(force_refused),
                                  UT_TEST(force_one_of_two),
                                  UT_TEST(force_one_of_two_unread),
                                  UT_TEST(one_of_two_fails),
                                  UT_TEST(answered_by_its_own),
                                  UT_TEST(unread_streams),
                                  UT_TEST(made_after_an_answer),
                                  UT_TEST(gone_by_force),
                                  UT_TEST(back_after_force),
                                  UT_TEST(reopened_by_force),
                                  UT_TEST(killed_sender),
                                  UT_TEST(killed_sender_itself)};

UT_MAIN(tests)
