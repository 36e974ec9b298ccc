/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Greetings by endpoints that were made by socket address: what each side says and becomes, whatever the other one says and however often.
 */
#include "conn/sock.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/frame.h"
#include "base/worker_alloc.h"
#include "link/control.h"
#include "settings/settings.h"
#include "util/log.h"

enum { SAID_MAX = 32 };

typedef struct words {
    uci_greeting_t *greeting;
    size_t length;
    ucp_ep_h by;
} words_t;

static words_t said[SAID_MAX];
static unsigned said_count, settled_count;

static uci_worker_t *workers[2]; /* server, client */
static uci_sock_t *socks[2];
static char ends[2], addresses[2][32];

/* ------------------------------------------------------------- fake UCX */

static ucs_status_ptr_t fake_am_send(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                     const void *buffer, size_t count, const ucp_request_param_t *param)
{
    cr_assert((id == UCI_GREETING_AM_ID) && (header_length == 0) && (said_count < SAID_MAX));
    cr_expect(param->flags == (UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER));
    said[said_count] = (words_t){.greeting = malloc(count), .length = count, .by = ep};
    memcpy(said[said_count++].greeting, buffer, count);
    return NULL;
}

static unsigned flushes;

static ucs_status_ptr_t fake_flush(ucp_ep_h ep, const ucp_request_param_t *param)
{
    ++flushes;
    return NULL; /* it is connected */
}

static void fake_print_info(ucp_ep_h ep, FILE *stream)
{
}

static ucs_status_t fake_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_OK;
}

/* --------------------------------------------------------------- a world */

static void on_settled(uci_sock_t *sock)
{
    ++settled_count;
}

static uci_worker_t *make_worker(unsigned i)
{
    static uci_context_t context;
    static const uci_worker_calls_t calls;
    uci_worker_t *worker = uci_worker_alloc((ucp_worker_h)&ends[i], &context, &calls);

    worker->uid          = 100 + i;
    worker->access.owner = uci_thread_self();
    worker->self.address = (ucp_address_t *)addresses[i];
    worker->self.length  = sizeof(addresses[i]);
    cr_assert(uci_mark_init(&worker->self.mark, worker->uid) == UCS_OK);
    worker->self.mark.eager_max = 8192;
    uci_conn_worker_init(&worker->conn);
    uci_control_worker_init(&worker->talk, sizeof(uci_control_t) + UCI_CONTROL_POOLED);
    uci_stats_join(&worker->stats, worker->uid);
    return worker;
}

static void open_world(void)
{
    cr_assert(uci_settings_read() == UCI_OK);
    uci_log_level         = UCI_LOG_FATAL;
    uci_ucp.am_send_nbx   = fake_am_send;
    uci_ucp.ep_flush_nbx  = fake_flush;
    uci_ucp.ep_print_info = fake_print_info;
    uci_ucp.ep_query      = fake_query;
    workers[0]            = make_worker(0);
    workers[1]            = make_worker(1);
    socks[1]              = uci_sock_create(workers[1], (ucp_ep_h)&ends[1], false, true, "the server", on_settled);
    socks[0]              = uci_sock_create(workers[0], (ucp_ep_h)&ends[0], true, true, "the client", on_settled);
    cr_assert((socks[0] != NULL) && (socks[1] != NULL));
}

static void close_world(void)
{
    unsigned i;

    for (i = 0; i < 2; ++i) {
        uci_sock_cleanup(workers[i]);
        uci_stats_leave(&workers[i]->stats);
        uci_control_worker_cleanup(&workers[i]->talk);
        uci_worker_free(workers[i]);
    }
    for (i = 0; i < said_count; ++i) {
        free(said[i].greeting);
    }
}

/* Words arrive at the other side, once, and it has its turn */
static void deliver(unsigned word)
{
    unsigned to               = (said[word].by == (ucp_ep_h)&ends[0]) ? 1 : 0;
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FIELD_REPLY_EP, .reply_ep = (ucp_ep_h)&ends[to]};

    cr_assert(word < said_count);
    cr_expect(uci_sock_recv(workers[to], NULL, 0, said[word].greeting, said[word].length, &param) == UCS_OK);
    (void)uci_sock_progress(workers[to]);
}

static void expect_said(unsigned word, unsigned by, uci_greeting_kind_t kind)
{
    cr_assert(said_count > word, "%u words, not more than %u", said_count, word);
    cr_expect(said[word].by == (ucp_ep_h)&ends[by]);
    cr_expect(said[word].greeting->kind == kind, "%u, not %u", said[word].greeting->kind, kind);
    cr_expect(uci_sock_check(said[word].greeting, said[word].length) == NULL);
}

/* The client has waited for as long as it does without asking UCX, and UCX says that it has connected */
static void connect_client(void)
{
    cr_assert((socks[1]->state == UCI_SOCK_CONNECTING) && (uci_sock_due(workers[1]) < UINT64_MAX) && (flushes == 0));
    socks[1]->time = 0;
    (void)uci_sock_progress(workers[1]);
    cr_assert((socks[1]->state == UCI_SOCK_LISTENING) && (flushes == 1));
}

static void reseal(unsigned word)
{
    uci_greeting_t *greeting = said[word].greeting;

    greeting->check = XXH3_64bits_withSeed(greeting + 1, greeting->length, XXH3_64bits(greeting, 16));
}

TestSuite(sock, .init = open_world, .fini = close_world);

/* ----------------------------------------------------------------- tests */

Test(sock, ids_keep_the_program_s_own)
{
    static const uint64_t ids[] = {0, 1, 0xffffffff, UCI_SOCK_ID_MAX - 1};
    uint64_t own;
    unsigned i;

    for (i = 0; i < uci_array_size(ids); ++i) {
        cr_expect(uci_sock_id_is_marked(uci_sock_id(ids[i]), &own) && (own == ids[i]));
        cr_expect(!uci_sock_id_is_marked(uci_sock_id(ids[i]) ^ (1ul << 40), &own));
        cr_expect(!uci_sock_id_is_marked(ids[i], &own), "0x%lx", (unsigned long)ids[i]);
    }
}

Test(sock, both_know_each_other)
{
    expect_said(0, 0, UCI_GREETING_FIRST);
    cr_expect(uci_sock_is_waiting(socks[0]) && uci_sock_is_waiting(socks[1]));
    deliver(0);
    expect_said(1, 1, UCI_GREETING_ANSWER);
    cr_expect(socks[1]->state == UCI_SOCK_KNOWN);
    cr_expect(uci_sock_is_waiting(socks[0]));
    deliver(1);
    cr_assert(socks[0]->state == UCI_SOCK_KNOWN);
    cr_expect((settled_count == 2) && (workers[0]->ops_active == 0) && (workers[1]->ops_active == 0));
    cr_expect((socks[0]->ep->peer->uid == workers[1]->uid) && (socks[1]->ep->peer->uid == workers[0]->uid));
    cr_expect((socks[0]->ep->number == socks[1]->ep->number) && (socks[0]->ep->number >= 1u << 31));
}

Test(sock, what_waits_for_it_asks_ucx_once)
{
    uci_sock_hurry(socks[1]);
    uci_sock_hurry(socks[1]);
    cr_expect((socks[1]->state == UCI_SOCK_LISTENING) && (flushes == 1));
    uci_sock_hurry(socks[0]);
    cr_expect((socks[0]->state == UCI_SOCK_SPOKEN) && (flushes == 1), "a server has nothing to ask");
    deliver(0);
    cr_expect(socks[1]->state == UCI_SOCK_KNOWN);
}

Test(sock, what_is_repeated_is_answered)
{
    deliver(0);
    deliver(0);
    expect_said(2, 1, UCI_GREETING_ANSWER);
    deliver(2); /* the first one is lost */
    cr_expect(socks[0]->state == UCI_SOCK_KNOWN);
    deliver(1);
    deliver(2);
    cr_expect((settled_count == 2) && (said_count == 3));
}

Test(sock, first_is_repeated)
{
    socks[0]->time = 0;
    (void)uci_sock_progress(workers[0]);
    expect_said(1, 0, UCI_GREETING_FIRST);
    cr_expect(uci_sock_due(workers[0]) < UINT64_MAX);
    deliver(1);
    deliver(2);
    cr_expect(socks[0]->state == UCI_SOCK_KNOWN);
    cr_expect(uci_sock_due(workers[0]) == UINT64_MAX);
}

Test(sock, who_is_too_late_passes)
{
    connect_client();
    socks[1]->time = 0;
    (void)uci_sock_progress(workers[1]);
    cr_expect(socks[1]->state == UCI_SOCK_RAW);
    deliver(0);
    expect_said(1, 1, UCI_GREETING_PASS);
    deliver(1);
    cr_expect((socks[0]->state == UCI_SOCK_RAW) && (settled_count == 2));
    cr_expect(uci_stats_outside->unverified_connections == 2);
}

Test(sock, nothing_passes_where_it_must_not)
{
    uci_settings.require = true;
    connect_client();
    socks[1]->time = 0;
    (void)uci_sock_progress(workers[1]);
    cr_expect((socks[1]->state == UCI_SOCK_REFUSED) && (socks[1]->status == UCS_ERR_UNSUPPORTED));
    deliver(0);
    expect_said(1, 1, UCI_GREETING_REFUSE);
    deliver(1);
    cr_expect(socks[0]->state == UCI_SOCK_REFUSED);
    cr_expect(uci_stats_outside->unverified_connections == 0);
}

Test(sock, damage_is_not_heard)
{
    unsigned char *bytes = (unsigned char *)said[0].greeting;
    size_t i;

    for (i = 0; i < said[0].length; ++i) {
        bytes[i] ^= 4;
        deliver(0);
        bytes[i] ^= 4;
        cr_assert((said_count == 1) && (socks[1]->state == UCI_SOCK_CONNECTING), "byte %zu", i);
    }
    deliver(0);
    cr_expect(socks[1]->state == UCI_SOCK_KNOWN);
}

Test(sock, lies_are_not_believed)
{
    uci_greeting_t *greeting = said[0].greeting;

    greeting->stream = 1u << 30;
    reseal(0);
    deliver(0);
    greeting->stream = 1;
    greeting->kind   = UCI_GREETING_LAST;
    reseal(0);
    deliver(0);
    greeting->kind = UCI_GREETING_ANSWER; /* that a server does not say */
    reseal(0);
    deliver(0);
    greeting->kind = UCI_GREETING_FIRST;
    greeting->zero = 1;
    reseal(0);
    deliver(0);
    cr_expect((said_count == 1) && (socks[1]->state == UCI_SOCK_CONNECTING));
}

Test(sock, another_version_is_refused)
{
    ++said[0].greeting->version;
    reseal(0);
    deliver(0);
    cr_expect((socks[1]->state == UCI_SOCK_REFUSED) && (settled_count == 1));
}

Test(sock, another_protocol_is_refused_on_both_sides)
{
    uci_mark_t *mark = (uci_mark_t *)(void *)(said[0].greeting + 1);

    ++mark->protocol;
    reseal(0);
    deliver(0);
    cr_expect(socks[1]->state == UCI_SOCK_REFUSED);
    expect_said(1, 1, UCI_GREETING_REFUSE);
    deliver(1);
    cr_expect((socks[0]->state == UCI_SOCK_REFUSED) && (settled_count == 2));
}

/* A job that hangs is asked between UCX's word and the next turn, which may never come */
Test(sock, what_is_not_settled_yet_has_a_name)
{
    char line[128] = "";
    int pipes[2];

    uci_sock_fail(socks[0], UCS_ERR_CONNECTION_RESET);
    cr_assert(pipe(pipes) == 0);
    uci_sock_dump(workers[0], pipes[1]);
    cr_assert(read(pipes[0], line, sizeof(line) - 1) > 0);
    cr_expect(strstr(line, "connection with the client: failed") != NULL, "%s", line);
    close(pipes[0]);
    close(pipes[1]);
}

Test(sock, who_fails_is_settled_once)
{
    uci_sock_fail(socks[0], UCS_ERR_CONNECTION_RESET);
    (void)uci_sock_progress(workers[0]);
    cr_expect((socks[0]->state == UCI_SOCK_FAILED) && (socks[0]->status == UCS_ERR_CONNECTION_RESET));
    uci_sock_fail(socks[0], UCS_ERR_TIMED_OUT);
    deliver(0);
    deliver(1);
    cr_expect((socks[0]->state == UCI_SOCK_FAILED) && (socks[0]->status == UCS_ERR_CONNECTION_RESET));
    cr_expect(settled_count == 2);
}
