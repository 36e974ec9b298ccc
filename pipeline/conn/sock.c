/* SPDX-License-Identifier: BSD-3-Clause */
#include "sock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/frame.h"
#include "base/worker_lock.h"
#include "endpoint.h"
#include "live/stats.h"
#include "report/dump_line.h"
#include "settings/settings.h"
#include "util/log.h"
#include "util/process.h"

/* FIRST is said again after this time, then after twice as long each time, up to 8 s */
#define UCI_SOCK_REPEAT_NS    250000000ul
#define UCI_SOCK_REPEAT_SHIFT 5u

#define UCI_SOCK_SECOND 1000000000ul

/* The upper bits of an id with a mark */
#define UCI_SOCK_ID_SEED 0x5543492d736f636bul

/* UCX completes it when it has connected */
struct uci_sock_flush {
    uci_worker_t *worker;
    uci_sock_t *sock; /* NULL: it is gone */
};

/* ------------------------------------------------------------------ ids */

static uint64_t uci_sock_id_check(uint64_t id)
{
    return XXH3_64bits_withSeed(&id, sizeof(id), UCI_SOCK_ID_SEED) & ~(UCI_SOCK_ID_MAX - 1);
}

uint64_t uci_sock_id(uint64_t id)
{
    return uci_sock_id_check(id) | id;
}

bool uci_sock_id_is_marked(uint64_t id, uint64_t *own_p)
{
    uint64_t own = id & (UCI_SOCK_ID_MAX - 1);

    if (uci_sock_id(own) != id) {
        return false;
    }
    *own_p = own;
    return true;
}

/* ---------------------------------------------------------------- lines */

bool uci_sock_is_required(void)
{
    return uci_settings.require || uci_seal_is_on() || (uci_settings.twins.of > 0);
}

void uci_sock_print(const struct sockaddr *address, char *text, size_t size)
{
    const struct sockaddr_in6 *six = (const void *)address;
    const struct sockaddr_in *four = (const void *)address;
    char host[INET6_ADDRSTRLEN]    = "";

    if ((address != NULL) && (address->sa_family == AF_INET)) {
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
        snprintf(text, size, "%s:%u", host, ntohs(four->sin_port));
    } else if ((address != NULL) && (address->sa_family == AF_INET6)) {
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
        snprintf(text, size, "[%s]:%u", host, ntohs(six->sin6_port));
    } else {
        snprintf(text, size, "an unknown address");
    }
}

/* Each connection of a program could be one: the first ones are said */
static bool uci_sock_says(void)
{
    static unsigned said;

    return __atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) < uci_process_lines();
}

void uci_sock_say_raw(const char *name, const char *why)
{
    UCI_STATS_ADD_OUTSIDE(unverified_connections, 1);
    if (uci_sock_says()) {
        uci_warn("the connection of %s with %s is not verified: %s; its messages pass through", uci_process_name(),
                 name, why);
    }
}

void uci_sock_say_refused(const char *name, const char *why)
{
    if (uci_sock_says()) {
        uci_error("%s refuses the connection with %s: %s, so its messages could not be verified (%s)",
                  uci_process_name(), name, why,
                  uci_settings.require ? "UCI_REQUIRE=on"
                  : uci_seal_is_on()   ? "UCI_SEAL"
                                       : "UCI_TWINS");
    }
}

/* ---------------------------------------------------------------- states */

static void uci_sock_refuse(uci_sock_t *sock)
{
    sock->status = UCS_ERR_UNSUPPORTED;
    sock->state  = UCI_SOCK_REFUSED;
}

static void uci_sock_pass(uci_sock_t *sock, const char *why)
{
    if (uci_sock_is_required()) {
        uci_sock_say_refused(sock->name, why);
        uci_sock_refuse(sock);
        return;
    }
    uci_sock_say_raw(sock->name, why);
    sock->state = UCI_SOCK_RAW;
}

/* -------------------------------------------------------------- greeting */

static uint64_t uci_sock_greeting_check(const uci_greeting_t *greeting)
{
    return XXH3_64bits_withSeed(greeting + 1, greeting->length, XXH3_64bits(greeting, offsetof(uci_greeting_t, check)));
}

static void uci_sock_said(void *request, ucs_status_t status, void *user_data)
{
    uci_ucp.request_free(request);
    free(user_data);
}

/* With REPLY, so that its receiver is told by which endpoint it has come */
static void uci_sock_post(uci_sock_t *sock, uci_greeting_t *greeting)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS,
                                 .cb.send   = uci_sock_said,
                                 .user_data = greeting,
                                 .flags     = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER};
    ucs_status_ptr_t request;

    greeting->check = uci_sock_greeting_check(greeting);
    request         = uci_ucp.am_send_nbx(sock->ucp, UCI_GREETING_AM_ID, NULL, 0, greeting,
                                          sizeof(*greeting) + greeting->length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        free(greeting);
    }
}

static void uci_sock_say(uci_sock_t *sock, uci_greeting_kind_t kind)
{
    const uci_worker_t *worker = sock->worker;
    bool is_marked             = (kind == UCI_GREETING_FIRST) || (kind == UCI_GREETING_ANSWER);
    size_t length              = is_marked ? sizeof(uci_mark_t) + worker->self.length : 0;
    uci_greeting_t *greeting   = malloc(sizeof(*greeting) + length);

    if (greeting == NULL) {
        uci_error("failed to allocate a greeting of %zu bytes", length);
        return; /* FIRST is said again, and so asked for */
    }
    *greeting = (uci_greeting_t){.magic   = UCI_GREETING_MAGIC,
                                 .version = UCI_GREETING_VERSION,
                                 .kind    = (uint8_t)kind,
                                 .stream  = (kind == UCI_GREETING_FIRST) ? sock->stream : 0,
                                 .length  = (uint32_t)length};
    if (is_marked) {
        uci_mark_put(greeting + 1, &worker->self.mark, worker->self.address, worker->self.length);
    }
    uci_sock_post(sock, greeting);
}

static void uci_sock_say_first(uci_sock_t *sock)
{
    sock->time = uci_process_time_ns() + (UCI_SOCK_REPEAT_NS << uci_min(sock->said, UCI_SOCK_REPEAT_SHIFT));
    ++sock->said;
    uci_sock_say(sock, UCI_GREETING_FIRST);
}

/* What can be said of it without anybody's keys. Another version says that it is one, and no more */
const char *uci_sock_check(const uci_greeting_t *greeting, size_t length)
{
    bool is_marked;

    if ((length < sizeof(*greeting)) || (greeting->magic != UCI_GREETING_MAGIC)) {
        return "no greeting";
    }
    if ((greeting->length != length - sizeof(*greeting)) || (greeting->check != uci_sock_greeting_check(greeting))) {
        return "damage";
    }
    if (greeting->version != UCI_GREETING_VERSION) {
        return NULL;
    }
    is_marked = (greeting->kind == UCI_GREETING_FIRST) || (greeting->kind == UCI_GREETING_ANSWER);
    if ((greeting->kind == 0) || (greeting->kind >= UCI_GREETING_LAST) || (greeting->zero != 0) ||
        (greeting->stream > ((greeting->kind == UCI_GREETING_FIRST) ? UCI_EP_SOCK_MASK : 0))) {
        return "what none says";
    }
    return (is_marked ? (greeting->length <= sizeof(uci_mark_t) + UCI_WIRE_ADDRESS_MAX) : (greeting->length == 0))
                   ? NULL
                   : "a mark that none has";
}

/* Kept as a mark at least, so that one of another protocol can be looked at */
static uci_mark_t *uci_sock_keep(const uci_greeting_t *greeting)
{
    uci_mark_t *mark = calloc(1, uci_max((size_t)greeting->length, sizeof(*mark) + 1));

    if (mark == NULL) {
        uci_error("failed to allocate a mark of %u bytes", greeting->length);
        return NULL;
    }
    memcpy(mark, greeting + 1, greeting->length);
    if (!uci_mark_is_present(mark) ||
        ((mark->protocol == UCI_PROTOCOL_VERSION) && (greeting->length != sizeof(*mark) + mark->address_length))) {
        free(mark);
        return NULL;
    }
    return mark;
}

static void uci_sock_hear(uci_sock_t *sock, const uci_greeting_t *greeting)
{
    sock->heard = uci_sock_keep(greeting);
    if (sock->heard != NULL) {
        sock->stream = sock->is_server ? sock->stream : greeting->stream;
        sock->state  = UCI_SOCK_HEARD;
    }
}

/* To a client */
static void uci_sock_hear_first(uci_sock_t *sock, const uci_greeting_t *greeting)
{
    switch (sock->state) {
    case UCI_SOCK_CONNECTING:
    case UCI_SOCK_LISTENING:
        uci_sock_hear(sock, greeting);
        break;
    case UCI_SOCK_KNOWN:
        uci_sock_say(sock, UCI_GREETING_ANSWER);
        break;
    case UCI_SOCK_RAW:
        uci_sock_say(sock, UCI_GREETING_PASS);
        break;
    case UCI_SOCK_REFUSED:
        uci_sock_say(sock, UCI_GREETING_REFUSE);
        break;
    default:
        break;
    }
}

static void uci_sock_hear_answer(uci_sock_t *sock, const uci_greeting_t *greeting)
{
    if (sock->state != UCI_SOCK_SPOKEN) {
        return; /* it has been answered */
    }
    switch (greeting->kind) {
    case UCI_GREETING_ANSWER:
        uci_sock_hear(sock, greeting);
        break;
    case UCI_GREETING_PASS:
        uci_sock_pass(sock, "its client has not waited for a greeting (UCI_CONNECT_WAIT)");
        break;
    default:
        uci_error("%s is refused by its client %s, whose own messages say why", uci_process_name(), sock->name);
        uci_sock_refuse(sock);
        break;
    }
}

static void uci_sock_take(uci_sock_t *sock, const uci_greeting_t *greeting)
{
    if (greeting->version != UCI_GREETING_VERSION) {
        if (uci_sock_is_waiting(sock)) {
            uci_error("%s refuses %s: it greets in version %u, this one in %u; start all with the same build of UCI",
                      uci_process_name(), sock->name, greeting->version, UCI_GREETING_VERSION);
            uci_sock_refuse(sock);
        }
    } else if (!sock->is_server && (greeting->kind == UCI_GREETING_FIRST)) {
        uci_sock_hear_first(sock, greeting);
    } else if (sock->is_server && (greeting->kind != UCI_GREETING_FIRST)) {
        uci_sock_hear_answer(sock, greeting);
    }
}

static uci_sock_t *uci_sock_find(uci_worker_t *worker, ucp_ep_h ucp)
{
    uci_list_for_each(sock, &worker->conn.socks, uci_sock_t, link)
    {
        if (sock->ucp == ucp) {
            return sock;
        }
    }
    uci_list_for_each(settled, &worker->conn.settled, uci_sock_t, link)
    {
        if (settled->ucp == ucp) {
            return settled;
        }
    }
    return NULL;
}

/* In memory that is aligned, and that nobody else can write to */
static void uci_sock_recv_copy(uci_worker_t *worker, ucp_ep_h ucp, const void *data, size_t length)
{
    uci_sock_t *sock         = uci_sock_find(worker, ucp);
    uci_greeting_t *greeting = (sock != NULL) ? malloc(length) : NULL;
    const char *wrong;

    if (greeting == NULL) {
        return;
    }
    memcpy(greeting, data, length);
    wrong = uci_sock_check(greeting, length);
    if (wrong == NULL) {
        uci_sock_take(sock, greeting);
    } else {
        UCI_STATS_INC(mismatched_control);
        uci_info("a greeting from %s is dropped: %s", sock->name, wrong);
    }
    free(greeting);
}

ucs_status_t uci_sock_recv(void *arg, const void *header, size_t header_length, void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    uci_worker_t *worker = arg;

    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) || !(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) ||
        (length < sizeof(uci_greeting_t)) ||
        (length > sizeof(uci_greeting_t) + sizeof(uci_mark_t) + UCI_WIRE_ADDRESS_MAX)) {
        return UCS_OK;
    }
    uci_worker_enter(worker);
    uci_sock_recv_copy(worker, param->reply_ep, data, length);
    uci_worker_leave(worker);
    return UCS_OK;
}

/* ------------------------------------------------------------ connecting */

/* A flush ends when UCX has connected: a server may take any time to accept. It is a request that UCX holds, as a send would be: where errors
 * are not handled UCX aborts if a worker with one is destroyed (ucp_destroyed_ep_pending_purge()). So there is none before one is needed. */
static void uci_sock_connected(uci_sock_flush_t *flush, ucs_status_t status)
{
    uci_sock_t *sock = flush->sock;

    free(flush);
    if (sock == NULL) {
        return;
    }
    sock->flush = NULL;
    if (sock->state != UCI_SOCK_CONNECTING) {
        return;
    }
    if (status != UCS_OK) {
        uci_sock_fail(sock, status);
        return;
    }
    sock->time  = uci_process_time_ns() + (uci_settings.connect_wait * UCI_SOCK_SECOND);
    sock->state = UCI_SOCK_LISTENING;
}

static void uci_sock_flushed(void *request, ucs_status_t status, void *user_data)
{
    uci_sock_flush_t *flush = user_data;
    uci_worker_t *worker    = flush->worker;

    uci_ucp.request_free(request);
    uci_worker_enter(worker);
    uci_sock_connected(flush, status);
    uci_worker_leave(worker);
}

void uci_sock_hurry(uci_sock_t *sock)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = uci_sock_flushed};
    ucs_status_ptr_t request;

    if ((sock->state != UCI_SOCK_CONNECTING) || (sock->flush != NULL)) {
        return;
    }
    sock->flush = calloc(1, sizeof(*sock->flush));
    if (sock->flush == NULL) {
        uci_error("failed to allocate a flush");
        uci_sock_fail(sock, UCS_ERR_NO_MEMORY);
        return;
    }
    *sock->flush    = (uci_sock_flush_t){.worker = sock->worker, .sock = sock};
    sock->time      = UINT64_MAX;
    param.user_data = sock->flush;
    request         = uci_ucp.ep_flush_nbx(sock->ucp, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        uci_sock_connected(sock->flush, UCS_PTR_STATUS(request));
    }
}

/* -------------------------------------------------------------- settling */

/* Without memory: what comes by it before it is KNOWN is answered by another endpoint, or dropped, if it is a stream's */
static void uci_sock_is_to_come(uci_sock_t *sock)
{
    sock->coming = malloc(sizeof(*sock->coming));
    if (sock->coming != NULL) {
        *sock->coming = (uci_conn_coming_t){.count = sock->stream, .ucp = sock->ucp};
        uci_list_add_tail(&sock->worker->conn.coming, &sock->coming->link);
    }
}

static void uci_sock_has_come(uci_sock_t *sock)
{
    if (sock->coming != NULL) {
        uci_list_del(&sock->coming->link);
        free(sock->coming);
        sock->coming = NULL;
    }
}

/* Both sides come to the same */
static uint32_t uci_sock_number(const uci_sock_t *sock, const uci_peer_t *peer)
{
    uint64_t own = sock->worker->uid;

    return sock->is_server ? uci_ep_accepted(sock->stream, own, peer->uid)
                           : uci_ep_accepted(sock->stream, peer->uid, own);
}

/* @return UCS_OK; or an error: its mark is refused (logged), or there is no memory */
static ucs_status_t uci_sock_admit(uci_sock_t *sock, const uci_mark_t *mark)
{
    ucs_status_t status = uci_mark_check(mark);
    uci_peer_t *peer;

    if (status != UCS_OK) {
        return status;
    }
    peer   = uci_worker_peer(sock->worker, uci_mark_uid(mark));
    status = (peer != NULL) ? uci_ep_introduce(peer, mark) : UCS_ERR_NO_MEMORY;
    if (status != UCS_OK) {
        return status;
    }
    uci_peer_set_way(peer, true);
    sock->ep = uci_ep_create(peer, sock->ucp, true);
    if (sock->ep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    uci_sock_has_come(sock);
    sock->ep->number       = uci_sock_number(sock, peer);
    sock->ep->user_data    = sock->user_data;
    sock->ep->user_handler = sock->user_handler;
    sock->ep->unforced     = sock->unforced;
    return UCS_OK;
}

static void uci_sock_meet(uci_sock_t *sock)
{
    ucs_status_t status = uci_sock_admit(sock, sock->heard);

    free(sock->heard);
    sock->heard = NULL;
    if (!sock->is_server) {
        uci_sock_say(sock, (status == UCS_OK) ? UCI_GREETING_ANSWER : UCI_GREETING_REFUSE);
    }
    if (status == UCS_OK) {
        uci_debug("the other side of the connection with %s is %s", sock->name, uci_peer_name(sock->ep->peer));
        uci_ep_begin(sock->ep);
        sock->state = UCI_SOCK_KNOWN;
    } else {
        uci_error("%s refuses the connection with %s", uci_process_name(), sock->name);
        uci_sock_refuse(sock);
    }
}

static void uci_sock_advance(uci_sock_t *sock, uint64_t now)
{
    if (sock->state == UCI_SOCK_HEARD) {
        uci_sock_meet(sock);
    } else if (now < sock->time) {
        return;
    } else if (sock->state == UCI_SOCK_CONNECTING) {
        uci_sock_hurry(sock);
    } else if (sock->state == UCI_SOCK_LISTENING) {
        uci_sock_pass(sock, "no greeting has come from there: it runs without UCI, or with UCI_MODE=off");
    } else if (sock->state == UCI_SOCK_SPOKEN) {
        uci_sock_say_first(sock);
    }
}

static void uci_sock_settle(uci_sock_t *sock)
{
    uci_list_del(&sock->link);
    uci_list_add_tail(&sock->worker->conn.settled, &sock->link);
    uci_worker_work_ends(sock->worker);
    sock->is_settled = true;
    sock->settled(sock);
}

unsigned uci_sock_progress(uci_worker_t *worker)
{
    uint64_t now   = uci_process_time_ns();
    unsigned count = 0;
    uci_list_t todo;
    uci_sock_t *sock;

    uci_list_move(&worker->conn.socks, &todo); /* the program may be called, and close any of them */
    while (!uci_list_is_empty(&todo)) {
        sock = uci_container_of(uci_list_requeue(&todo, &worker->conn.socks), uci_sock_t, link);
        uci_sock_advance(sock, now);
        if (sock->state >= UCI_SOCK_KNOWN) {
            uci_sock_settle(sock);
            ++count;
        }
    }
    return count;
}

uint64_t uci_sock_due(const uci_worker_t *worker)
{
    uint64_t due = UINT64_MAX;

    uci_list_for_each(sock, &worker->conn.socks, uci_sock_t, link)
    {
        due = uci_min(due, (sock->state >= UCI_SOCK_HEARD) ? 0 : sock->time);
    }
    return due;
}

/* ------------------------------------------------------------- beginning */

uci_sock_t *uci_sock_create(uci_worker_t *worker, ucp_ep_h ucp, bool is_server, bool is_marked, const char *name,
                            uci_sock_settled_t settled)
{
    uci_sock_t *sock = calloc(1, sizeof(*sock));

    if (sock == NULL) {
        uci_error("failed to allocate an endpoint");
        return NULL;
    }
    sock->worker    = worker;
    sock->ucp       = ucp;
    sock->is_server = is_server;
    sock->settled   = settled;
    sock->time      = is_server ? UINT64_MAX : uci_process_time_ns() + (uci_settings.connect_wait * UCI_SOCK_SECOND);
    snprintf(sock->name, sizeof(sock->name), "%s", name);
    uci_list_init(&sock->deferred);
    if (!is_marked) {
        sock->state      = UCI_SOCK_RAW;
        sock->is_settled = true;
        uci_list_add_tail(&worker->conn.settled, &sock->link);
        return sock;
    }
    sock->state = is_server ? UCI_SOCK_SPOKEN : UCI_SOCK_CONNECTING;
    uci_list_add_tail(&worker->conn.socks, &sock->link);
    uci_worker_work_begins(worker);
    if (is_server) {
        sock->stream = ++worker->conn.streams & UCI_EP_SOCK_MASK;
        uci_sock_is_to_come(sock);
        uci_sock_say_first(sock);
    }
    return sock;
}

void uci_sock_fail(uci_sock_t *sock, ucs_status_t status)
{
    if (uci_sock_is_waiting(sock) && (sock->state < UCI_SOCK_KNOWN)) {
        sock->status = status;
        sock->state  = UCI_SOCK_FAILED;
    }
}

void uci_sock_destroy(uci_sock_t *sock)
{
    if (uci_sock_is_waiting(sock)) {
        uci_worker_work_ends(sock->worker);
    }
    if (sock->flush != NULL) {
        sock->flush->sock = NULL;
    }
    uci_list_del(&sock->link);
    uci_sock_has_come(sock);
    free(sock->heard);
    free(sock);
}

void uci_sock_visit(uci_worker_t *worker, void (*func)(uci_sock_t *sock))
{
    uci_list_for_each_safe(sock, &worker->conn.socks, uci_sock_t, link)
    {
        func(sock);
    }
    uci_list_for_each_safe(settled, &worker->conn.settled, uci_sock_t, link)
    {
        func(settled);
    }
}

void uci_sock_cleanup(uci_worker_t *worker)
{
    uci_sock_visit(worker, uci_sock_destroy);
}

void uci_sock_dump(const uci_worker_t *worker, int fd)
{
    static const char *const states[] = {
            [UCI_SOCK_CONNECTING] = "UCX connects", [UCI_SOCK_LISTENING] = "waits for a greeting",
            [UCI_SOCK_SPOKEN] = "has greeted",      [UCI_SOCK_HEARD] = "has been greeted",
            [UCI_SOCK_KNOWN] = "has UCI",           [UCI_SOCK_RAW] = "has no UCI",
            [UCI_SOCK_REFUSED] = "refused",         [UCI_SOCK_FAILED] = "failed"};
    unsigned shown = 0;

    uci_list_for_each(sock, &worker->conn.socks, uci_sock_t, link)
    {
        if ((sock->link.next == NULL) || (++shown > UCI_DUMP_MAX)) {
            return;
        }
        uci_dump_line(fd, "  connection with %s: %s", sock->name, states[sock->state]);
    }
}
