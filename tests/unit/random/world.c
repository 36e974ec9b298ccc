/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "active.h"
#include "conn/close.h"
#include "conn/endpoint.h"
#include "fake_ucx.h"
#include "faults.h"
#include "onesided.h"
#include "streamed.h"
#include "util/process.h"
#include "message/recv.h"
#include "base/request.h"
#include "message/send.h"
#include "transfer/send_common.h"
#include "message/unexpected.h"
#include "message/user_am.h"
#include "turn/resync.h"
#include "turn/wakeup.h"

#define START_NS    1000000000000ul
#define TURNS_MAX   300000u                          /* of all nodes, in which what is awaited comes */
#define IDLE_NS_MAX 2000000000ul                     /* a step of time */
#define TURN_NS_MAX (IDLE_NS_MAX / UCI_RESYNC_POLLS) /* so that a question is looked at in each step of time */
#define PATIENCE_NS \
    600000000000ul /* without an end of anything. Questions come after 32 s at last, answers may be lost */
#define STALL_NS \
    12000000000ul /* on a fair wire. This clock goes from one moment that is due to the next, and what is looked at each 1024 turns has no such
                     moment: so it goes faster than any worker turns. What was lost without a sign, as UCX loses nothing, is asked for
                     after 1, 2, 4 s */
#define CLOSES_MAX 64
#define HELD_MAX   32
#define BOTH_MIN   500 /* bytes: messages of worlds are small */

enum { DRAW_WORLD = 64 };

typedef enum { USER_SEND, USER_RECV, USER_CLOSE, USER_ACTIVE, USER_ONESIDED } user_kind_t;

/* What the program has begun */
typedef struct user_op {
    user_kind_t kind;
    unsigned node, peer;
    unsigned number; /* of the oracle's record */
    data_buffer_t buffer;
    op_t op; /* of a one-sided one, with what it needs */
    onesided_t onesided;
    void *request; /* NULL: none, or it has been given back */
    bool polled;
    bool done; /* and nothing more is to be done with it */
    bool told; /* its end has come */
    ucs_status_t status;
    ucp_tag_recv_info_t info;
} user_op_t;

static scenario_t *scenario;
static oracle_t oracle;
static FILE *story;
static verdict_t verdict;
static user_op_t ops[3 * ORACLE_MAX + CLOSES_MAX];
static unsigned ops_count, ops_first; /* those before are done */
static ucp_tag_message_h held[FAKE_NODES][HELD_MAX];
static unsigned held_recv[FAKE_NODES][HELD_MAX], held_count[FAKE_NODES];
static const op_t *for_callback[FAKE_NODES][ORACLE_MAX];
static unsigned for_callback_count[FAKE_NODES], for_callback_next[FAKE_NODES];
static draw_t schedule;
static uint64_t ended_at; /* when something ended last */
static unsigned looks;    /* of the oracle, by is_received() */
static bool at_end;       /* all that was sent is received: endpoints are closed, and opened again */
static bool is_fair;      /* the wire, and all that the program puts off */
static bool changed;      /* something has ended since the oracle last looked */

/* ------------------------------------------------------------------ telling */

void world_tell(const char *format, ...)
{
    va_list args;

    if (story == NULL) {
        return;
    }
    va_start(args, format);
    fprintf(story, "%12.3f us  ", (double)(fake_net.clock - START_NS) / 1e3);
    vfprintf(story, format, args);
    fputc('\n', story);
    va_end(args);
}

static void tell_op(const op_t *op, const char *what)
{
    if (story != NULL) {
        fprintf(story, "%12.3f us  ", (double)(fake_net.clock - START_NS) / 1e3);
        op_print(story, op);
        fprintf(story, "%s\n", what);
    }
}

static void fail(verdict_t why)
{
    if ((verdict == VERDICT_OK) && (why != VERDICT_OK)) {
        verdict = why;
        world_tell("*** %s: %s", verdict_names[why], oracle.text);
    }
}

void world_fail(verdict_t why, const char *format, ...)
{
    va_list args;

    if (verdict == VERDICT_OK) {
        va_start(args, format);
        vsnprintf(oracle.text, sizeof(oracle.text), format, args);
        va_end(args);
        fail(why);
    }
}

void world_changed(void)
{
    changed  = true;
    ended_at = fake_net.clock;
}

/* --------------------------------------------------------------------- ends */

static void run_op(const op_t *op);

static void send_ended(user_op_t *op)
{
    oracle_message_t *message = &oracle.messages[op->number];

    message->done   = true;
    message->status = op->status;
    world_tell("node %u: message %u has been sent, status %d", op->node, op->number, op->status);
    if (op->status != UCS_OK) {
        world_fail(VERDICT_STATUS, "message %u from %u to %u ended with status %d", op->number, op->node, op->peer,
                   op->status);
    }
    data_buffer_spoil(&op->buffer);
}

static void active_ended(user_op_t *op)
{
    world_tell("node %u: active message %u has been sent, status %d", op->node, op->number, op->status);
    if (op->status != UCS_OK) {
        world_fail(VERDICT_STATUS, "active message %u from %u to %u ended with status %d", op->number, op->node,
                   op->peer, op->status);
    }
    data_buffer_spoil(&op->buffer);
}

static void onesided_op_ended(user_op_t *op)
{
    world_tell("node %u: an operation on the memory of %u has ended, status %d", op->node, op->peer, op->status);
    if (op->status != UCS_OK) {
        world_fail(VERDICT_STATUS, "an operation of node %u on the memory of %u ended with status %d", op->node,
                   op->peer, op->status);
        return;
    }
    onesided_ended(&op->op, &op->onesided);
}

static void recv_ended(user_op_t *op)
{
    oracle_recv_t *recv = &oracle.recvs[op->number];

    recv->done     = true;
    recv->status   = op->status;
    recv->from_tag = op->info.sender_tag;
    recv->length   = op->info.length;
    world_tell("node %u: receive %u has ended, status %d, tag 0x%" PRIx64 ", %" PRIu64 " bytes", op->node, op->number,
               op->status, recv->from_tag, recv->length);
    if ((op->status == UCS_OK) && (recv->length > recv->capacity)) {
        world_fail(VERDICT_BYTES, "receive %u of node %u: %" PRIu64 " bytes where %" PRIu64 " fit", op->number,
                   op->node, recv->length, recv->capacity);
        return;
    }
    fail(oracle_received(&oracle, op->number, &op->buffer));
}

/* The user is told by a callback, by asking, or at once */
static void ended(user_op_t *op, ucs_status_t status)
{
    if (op->told) {
        world_fail(VERDICT_BYTES, "an operation of node %u ended twice", op->node);
        return;
    }
    op->told   = true;
    op->status = status;
    world_changed();
    if (op->kind == USER_SEND) {
        send_ended(op);
    } else if (op->kind == USER_RECV) {
        recv_ended(op);
    } else if (op->kind == USER_ACTIVE) {
        active_ended(op);
    } else if (op->kind == USER_ONESIDED) {
        onesided_op_ended(op);
    } else {
        world_tell("node %u: its endpoint to %u is closed, status %d", op->node, op->peer, status);
        if (status != UCS_OK) {
            world_fail(VERDICT_STATUS, "closing %u to %u ended with status %d", op->node, op->peer, status);
        }
    }
}

static void clean_up(user_op_t *op)
{
    op->done = true;
    if (op->kind == USER_ONESIDED) {
        onesided_free(&op->onesided);
    } else if (op->kind != USER_CLOSE) {
        if ((op->buffer.states > 0) && (verdict == VERDICT_OK)) {
            world_fail(VERDICT_TOUCHED, "a generic datatype of node %u is still being read or written", op->node);
        }
        data_buffer_destroy(&op->buffer);
    }
}

/* As programs do: what comes next is begun in the callback */
static void go_on(unsigned node)
{
    if (for_callback_next[node] < for_callback_count[node]) {
        run_op(for_callback[node][for_callback_next[node]++]);
    }
}

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    user_op_t *op = user_data;

    ended(op, status);
    uci_request_free(uci_request_from_user(request));
    op->request = NULL;
    go_on(op->node);
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    user_op_t *op = user_data;

    op->info = *info;
    ended(op, status);
    uci_request_free(uci_request_from_user(request));
    op->request = NULL;
    go_on(op->node);
}

/* What asks, and what can be freed now that no call is on the stack */
static void reap(void)
{
    unsigned i;

    for (i = ops_first; i < ops_count; ++i) {
        user_op_t *op = &ops[i];
        uci_request_t *req;

        if (op->done) {
            ops_first += (i == ops_first);
            continue;
        }
        if (op->request != NULL) {
            req = uci_request_from_user(op->request);
            if (op->polled && (uci_request_check(req) != UCS_INPROGRESS)) {
                op->info = req->info;
                ended(op, uci_request_check(req));
                uci_request_free(req);
                op->request = NULL;
            }
        }
        if (op->told && (op->request == NULL)) {
            clean_up(op);
        }
    }
}

/* ------------------------------------------------------------------ begins */

static user_op_t *new_op(user_kind_t kind, const op_t *op)
{
    user_op_t *user = &ops[ops_count++];

    if (ops_count == uci_array_size(ops)) {
        abort();
    }
    memset(user, 0, sizeof(*user));
    user->kind   = kind;
    user->node   = op->node;
    user->peer   = op->peer;
    user->polled = op->polled;
    return user;
}

static ucp_request_param_t param_for(user_op_t *user, ucp_datatype_t datatype)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = datatype};

    if (!user->polled) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.user_data = user;
        if (user->kind == USER_RECV) {
            param.cb.recv = on_received;
        } else {
            param.cb.send = on_sent;
        }
    }
    if (user->kind == USER_RECV) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_RECV_INFO;
        param.recv_info.tag_info = &user->info;
    }
    return param;
}

/* What the call has returned: it may be over, and its callback called or never to be called */
static void begun(user_op_t *user, ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        ended(user, UCS_PTR_STATUS(request));
    } else if (!user->told) {
        user->request = request;
    }
}

/* Both ways: who has closed receives nothing more */
static bool are_connected(unsigned node, unsigned peer)
{
    return (fake_net.nodes[node].eps[peer] != NULL) && (fake_net.nodes[peer].eps[node] != NULL);
}

static void run_send(const op_t *op)
{
    uci_ep_t *ep = fake_net.nodes[op->node].eps[op->peer];
    oracle_message_t *message;
    ucp_request_param_t param;
    ucp_datatype_t datatype;
    user_op_t *user;
    size_t count;
    void *arg;
    char *bytes;

    if (!are_connected(op->node, op->peer) || (oracle.messages_count == ORACLE_MAX)) {
        return;
    }
    user         = new_op(USER_SEND, op);
    user->number = oracle.messages_count++;
    message      = &oracle.messages[user->number];
    *message     = (oracle_message_t){.number   = user->number,
                                      .from     = op->node,
                                      .to       = op->peer,
                                      .tag      = op->tag,
                                      .length   = op->length,
                                      .taken_by = -1};
    bytes        = malloc(op->length + 1);
    data_write(bytes, op->length, scenario, user->number);
    memcpy(&message->first_bytes, bytes, uci_min(op->length, sizeof(message->first_bytes)));
    data_buffer_create(&user->buffer, op->form, op->length, draw_mix(scenario->seed, user->number));
    data_buffer_fill(&user->buffer, bytes, op->length);
    free(bytes);
    world_tell("node %u: message %u, to %u, tag 0x%" PRIx64 ", %" PRIu64 " bytes%s", op->node, user->number, op->peer,
               op->tag, op->length, op->sync ? ", synchronous" : "");
    arg   = data_buffer_arg(&user->buffer, &count, &datatype);
    param = param_for(user, datatype);
    begun(user, uci_send(ep, arg, count, op->tag, &param, op->sync));
}

/* Its header is the caller's only until the call returns */
static void run_active(const op_t *op)
{
    static const uint32_t all_flags[] = {0, UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV, UCP_AM_SEND_FLAG_REPLY};
    uci_ep_t *ep                      = fake_net.nodes[op->node].eps[op->peer];
    size_t count, header_length = op->mask % ACTIVE_HEADER_MAX;
    unsigned number;
    char header[ACTIVE_HEADER_MAX], *bytes;
    ucp_request_param_t param;
    ucp_datatype_t datatype;
    user_op_t *user;
    void *arg;

    if (!are_connected(op->node, op->peer)) {
        return;
    }
    number = active_note(op->node, op->peer, op->length, header_length);
    if (number == 0) {
        return;
    }
    user         = new_op(USER_ACTIVE, op);
    user->number = number;
    bytes        = malloc(op->length + 1);
    data_write(bytes, op->length, scenario, number);
    data_buffer_create(&user->buffer, op->form, op->length, draw_mix(scenario->seed, number));
    data_buffer_fill(&user->buffer, bytes, op->length);
    free(bytes);
    active_header(number, header, header_length);
    world_tell("node %u: active message %u, to %u, header of %zu bytes, %" PRIu64 " bytes", op->node, number, op->peer,
               header_length, op->length);
    arg   = data_buffer_arg(&user->buffer, &count, &datatype);
    param = param_for(user, datatype);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = all_flags[op->tag % uci_array_size(all_flags)];
    begun(user, uci_user_am_send(ep, op->node, header, header_length, arg, count, &param));
    memset(header, 0x77, sizeof(header));
}

static void run_onesided(const op_t *op)
{
    user_op_t *user;
    ucp_request_param_t param;

    if (!are_connected(op->node, op->peer)) {
        return;
    }
    user     = new_op(USER_ONESIDED, op);
    user->op = *op;
    param    = param_for(user, ucp_dt_make_contig(1));
    tell_op(op, "");
    begun(user, onesided_run(&user->op, &user->onesided, &param));
}

static unsigned new_recv(const op_t *op)
{
    unsigned number     = oracle.recvs_count++;
    oracle_recv_t *recv = &oracle.recvs[number];

    *recv = (oracle_recv_t){.node = op->node, .tag = op->tag, .mask = op->mask, .order = number, .message = -1};
    return number;
}

static user_op_t *new_recv_op(const op_t *op, unsigned number)
{
    user_op_t *user = new_op(USER_RECV, op);

    user->number                  = number;
    oracle.recvs[number].posted   = true;
    oracle.recvs[number].capacity = op->length;
    data_buffer_create(&user->buffer, op->form, op->length, draw_mix(scenario->seed, ~(uint64_t)number));
    return user;
}

static void run_recv(const op_t *op)
{
    ucp_request_param_t param;
    ucp_datatype_t datatype;
    user_op_t *user;
    size_t count;
    void *arg;

    if (oracle.recvs_count == ORACLE_MAX) {
        return;
    }
    user = new_recv_op(op, new_recv(op));
    world_tell("node %u: receive %u, tag 0x%" PRIx64 "/0x%" PRIx64 ", %" PRIu64 " bytes", op->node, user->number,
               op->tag, op->mask, op->length);
    arg   = data_buffer_arg(&user->buffer, &count, &datatype);
    param = param_for(user, datatype);
    begun(user, uci_recv(fake_net.nodes[op->node].worker, arg, count, op->tag, op->mask, &param));
}

static void run_probe(const op_t *op)
{
    bool remove              = (op->kind == OP_MPROBE) && (held_count[op->node] < HELD_MAX);
    ucp_tag_recv_info_t info = {0};
    ucp_tag_message_h message;
    unsigned number;

    if (oracle.recvs_count == ORACLE_MAX) {
        return;
    }
    message = uci_unexpected_probe(fake_net.nodes[op->node].worker, op->tag, op->mask, remove, &info);
    world_tell("node %u: probe, tag 0x%" PRIx64 "/0x%" PRIx64 ": %s, tag 0x%" PRIx64 ", %zu bytes", op->node, op->tag,
               op->mask, (message != NULL) ? "there is one" : "nothing", (uint64_t)info.sender_tag, info.length);
    if (message == NULL) {
        return;
    }
    fail(oracle_probed(&oracle, op->node, op->tag, op->mask, info.sender_tag, info.length));
    if (remove) {
        number                                    = new_recv(op);
        oracle.recvs[number].probed               = true;
        oracle.recvs[number].probed_tag           = info.sender_tag;
        oracle.recvs[number].probed_length        = info.length;
        held[op->node][held_count[op->node]]      = message;
        held_recv[op->node][held_count[op->node]] = number;
        ++held_count[op->node];
    }
}

static void run_message_recv(const op_t *op)
{
    unsigned node = op->node, number;
    ucp_request_param_t param;
    ucp_tag_message_h message;
    ucp_datatype_t datatype;
    user_op_t *user;
    size_t count;
    void *arg;

    if (held_count[node] == 0) {
        return;
    }
    message = held[node][0];
    number  = held_recv[node][0];
    --held_count[node];
    memmove(&held[node][0], &held[node][1], held_count[node] * sizeof(held[node][0]));
    memmove(&held_recv[node][0], &held_recv[node][1], held_count[node] * sizeof(held_recv[node][0]));
    user = new_recv_op(op, number);
    world_tell("node %u: receive %u, of the probed message", node, number);
    arg   = data_buffer_arg(&user->buffer, &count, &datatype);
    param = param_for(user, datatype);
    begun(user, uci_unexpected_recv(fake_net.nodes[node].worker, arg, count, message, &param));
}

static void cancel(user_op_t *user)
{
    world_tell("node %u: receive %u is cancelled", user->node, user->number);
    uci_request_cancel(uci_request_from_user(user->request));
}

static void run_cancel(const op_t *op)
{
    unsigned i, left = op->peer;

    for (i = ops_first; i < ops_count; ++i) {
        if ((ops[i].kind == USER_RECV) && (ops[i].node == op->node) && (ops[i].request != NULL) && !ops[i].told &&
            (left-- == 0)) {
            cancel(&ops[i]);
            return;
        }
    }
}

static bool is_all_received(unsigned from, unsigned to)
{
    unsigned i;

    for (i = 0; i < oracle.messages_count; ++i) {
        if ((oracle.messages[i].from == from) && (oracle.messages[i].to == to) && (oracle.messages[i].taken_by < 0)) {
            return false;
        }
    }
    return true;
}

/* All its own sends there are over, and it has received what came from there: who closes says that he receives nothing more */
static bool may_close(unsigned node, unsigned peer)
{
    unsigned i;

    fail(oracle_assign(&oracle));
    if (!is_all_received(peer, node) || !active_is_received(peer, node) || !onesided_is_executed(peer, node) ||
        !streamed_is_settled(node, peer)) {
        return false;
    }

    for (i = ops_first; i < ops_count; ++i) {
        if ((ops[i].kind != USER_RECV) && (ops[i].kind != USER_CLOSE) && (ops[i].node == node) &&
            (ops[i].peer == peer) && !ops[i].told) {
            return false;
        }
    }
    return fake_net.nodes[node].eps[peer] != NULL;
}

/* A connection breaks: UCX tells both its ends */
static void break_connection(unsigned node, unsigned peer)
{
    uci_worker_t *other = fake_net.nodes[peer].worker;
    uci_peer_t *back;

    world_tell("the connection of nodes %u and %u breaks", node, peer);
    uci_ep_fail(fake_net.nodes[node].eps[peer], UCS_ERR_ENDPOINT_TIMEOUT);
    uci_worker_enter(other);
    back = uci_worker_peer_find(other, fake_net.nodes[node].uid);
    if (back != NULL) {
        uci_ep_abandon(back, UCS_ERR_ENDPOINT_TIMEOUT);
    }
    uci_worker_leave(other);
}

/* At the end, where nothing is lost by it: one in four by force */
static uint32_t close_flags(void)
{
    return (at_end && (scenario->classes & FAULTS_REOPEN) && draw_hits(&schedule, 25)) ? UCP_EP_CLOSE_FLAG_FORCE : 0;
}

static void close_endpoint(const op_t *op, uci_ep_t *ep)
{
    user_op_t *user           = new_op(USER_CLOSE, op);
    ucp_request_param_t param = param_for(user, 0);

    world_tell("node %u: closes its endpoint to %u", op->node, op->peer);
    param.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_DATATYPE;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = close_flags();
    begun(user, uci_ep_close(ep, &param));
}

static void run_close(const op_t *op)
{
    uci_ep_t *ep;

    if (may_close(op->node, op->peer)) {
        ep = fake_net.nodes[op->node].eps[op->peer];
        streamed_closed(op->node, op->peer);
        fake_net.nodes[op->node].eps[op->peer] = NULL;
        close_endpoint(op, ep);
    }
}

/* At the end it may be one more, and then the first one is closed; or the connection that there is breaks */
static void run_open(const op_t *op)
{
    uci_ep_t *ep = fake_net.nodes[op->node].eps[op->peer];

    if ((ep != NULL) && (!at_end || !may_close(op->node, op->peer))) {
        return;
    }
    if ((ep != NULL) && draw_hits(&schedule, 25)) {
        break_connection(op->node, op->peer);
        return;
    }
    world_tell("node %u: opens an endpoint to %u", op->node, op->peer);
    if (fake_ep_open(op->node, op->peer) != UCS_OK) {
        world_fail(VERDICT_STATUS, "no endpoint from %u to %u", op->node, op->peer);
    }
    if (ep != NULL) {
        close_endpoint(op, ep);
    }
}

static unsigned turn(unsigned node)
{
    unsigned count;

    faults_hit_memory(node);
    active_turn(node, is_fair ? 100 : 30);
    count = fake_node_turn(node, draw_hits(&schedule, 50));
    reap();
    return count;
}

static void run_op(const op_t *op)
{
    uci_worker_t *worker = fake_net.nodes[op->node].worker;

    changed = true;
    uci_worker_enter(worker); /* as the hooks do */
    switch (op->kind) {
    case OP_SEND:
        run_send(op);
        break;
    case OP_RECV:
        run_recv(op);
        break;
    case OP_PROBE:
    case OP_MPROBE:
        run_probe(op);
        break;
    case OP_MESSAGE_RECV:
        run_message_recv(op);
        break;
    case OP_CANCEL:
        run_cancel(op);
        break;
    case OP_ACTIVE:
        run_active(op);
        break;
    case OP_PUT:
    case OP_GET:
    case OP_ATOMIC:
    case OP_FLUSH:
        run_onesided(op);
        break;
    case OP_STREAM_SEND:
    case OP_STREAM_RECV:
        streamed_run(op);
        break;
    case OP_CLOSE:
        run_close(op);
        break;
    case OP_OPEN:
        run_open(op);
        break;
    default:
        break;
    }
    uci_worker_leave(worker);
}

static void run_program(void)
{
    size_t i;

    for (i = 0; (i < scenario->ops_count) && (verdict == VERDICT_OK); ++i) {
        const op_t *op = &scenario->ops[i];

        if (op->by_callback && (op->kind < OP_TURN)) {
            for_callback[op->node][for_callback_count[op->node]++] = op;
        } else if (op->kind == OP_TURN) {
            tell_op(op, "");
            turn(op->node);
        } else if (op->kind == OP_WAIT) {
            fake_net.clock += op->length;
        } else {
            run_op(op);
            reap();
        }
    }
}

/* ----------------------------------------------------------------- the end */

/* What the clock has gone on by while a worker had something to do, beyond what so many turns of it take */
static uint64_t leapt_ns;

/* The next moment at which something happens. While a worker says that it has something to do now, time goes on all the same, and faster as
 * less comes of it; so it does where nobody awaits anything. No step is long: logs are looked after as often as workers turn, which is no such
 * moment. */
static void pass_time(unsigned idle)
{
    uint64_t step = 1000ul << uci_min(idle / 4, 22u);
    uint64_t next = fake_net_due(), due;
    bool busy     = (next <= fake_net.clock);
    unsigned i;

    for (i = 0; i < scenario->nodes; ++i) {
        due  = uci_worker_due(fake_net.nodes[i].worker);
        busy = busy || (due <= fake_net.clock);
        next = (due > fake_net.clock) ? uci_min(next, due) : next;
    }
    step = uci_min(step, IDLE_NS_MAX);
    if ((next != UINT64_MAX) && (!busy || (next < fake_net.clock + step))) {
        fake_net.clock = uci_max(uci_min(next, fake_net.clock + IDLE_NS_MAX), fake_net.clock) + 1;
    } else {
        fake_net.clock += step;
        leapt_ns += busy ? step - uci_min(step, TURN_NS_MAX) : 0;
    }
}

/* All of them go on until it is so. @return false: it never is. */
static bool wait_until(bool (*is_so)(void))
{
    unsigned turns, idle = 0, i, first, count;

    for (turns = 0; turns < TURNS_MAX; ++turns) {
        if (verdict != VERDICT_OK) {
            return true;
        }
        if (is_so()) {
            return true;
        }
        first = (unsigned)draw_below(&schedule, scenario->nodes);
        for (i = 0, count = 0; i < scenario->nodes; ++i) {
            count += turn((first + i) % scenario->nodes);
        }
        idle = (count > 0) ? 0 : idle + 1;
        pass_time(idle);
        if (fake_net.clock - ended_at > PATIENCE_NS) {
            break;
        }
    }
    return is_so();
}

/* What can be received of what has been sent, has been */
static bool is_received(void)
{
    static bool before;

    /* it takes the longer the more there is */
    if (changed && (++looks % (1 + (oracle.messages_count / 16)) == 0)) {
        changed = false;
        fail(oracle_assign(&oracle));
        before = (verdict == VERDICT_OK) && (oracle_waiting(&oracle) < 0) && active_is_over();
    }
    return before && !changed;
}

static bool is_over(void)
{
    unsigned i;

    if (!active_is_over()) {
        return false;
    }
    for (i = ops_first; i < ops_count; ++i) {
        if (!ops[i].told) {
            return false;
        }
    }
    return true;
}

static void wait_for(bool (*is_so)(void), const char *what)
{
    unsigned i;

    changed  = true;
    ended_at = fake_net.clock;
    if (wait_until(is_so) || (verdict != VERDICT_OK)) {
        return;
    }
    oracle.text[0] = '\0';
    oracle_assign(&oracle);
    if (oracle_waiting(&oracle) >= 0) {
        fail(VERDICT_WAITS);
    }
    for (i = ops_first; i < ops_count; ++i) {
        if (!ops[i].told) {
            static const char *const kinds[] = {"send", "receive", "close", "active message", "operation on memory"};

            world_fail(VERDICT_WAITS, "%s: %s %u of node %u never ends", what, kinds[ops[i].kind], ops[i].number,
                       ops[i].node);
        }
    }
    world_fail(VERDICT_WAITS, "%s: not so", what);
}

/* What the program has left for callbacks that did not come, and messages that it holds */
static void finish_program(void)
{
    op_t op = {.kind = OP_MESSAGE_RECV, .length = scenario->length_max + 4};
    unsigned node;

    for (node = 0; node < scenario->nodes; ++node) {
        while (for_callback_next[node] < for_callback_count[node]) {
            go_on(node);
        }
        op.node = node;
        while (held_count[node] > 0) {
            run_op(&op);
        }
    }
}

static void cancel_all(void)
{
    unsigned i;

    for (i = ops_first; i < ops_count; ++i) {
        if ((ops[i].kind == USER_RECV) && (ops[i].request != NULL) && !ops[i].told) {
            uci_worker_enter(fake_net.nodes[ops[i].node].worker);
            cancel(&ops[i]);
            uci_worker_leave(fake_net.nodes[ops[i].node].worker);
        }
    }
    reap();
}

static bool receives_are_over(void)
{
    unsigned i;

    for (i = ops_first; i < ops_count; ++i) {
        if ((ops[i].kind == USER_RECV) && !ops[i].told) {
            return false;
        }
    }
    return true;
}

/* One receive of any tag for each message that nobody has got */
static void receive_all(void)
{
    op_t op = {.kind = OP_RECV, .length = scenario->length_max + 4};
    unsigned i;

    fail(oracle_assign(&oracle));
    for (i = 0; (i < oracle.messages_count) && (verdict == VERDICT_OK); ++i) {
        if (oracle.messages[i].taken_by < 0) {
            op.node   = oracle.messages[i].to;
            op.polled = draw_hits(&schedule, 50);
            run_op(&op);
        }
    }
}

static void close_or_open_some(op_kind_t kind, unsigned percent)
{
    op_t op = {.kind = kind};

    for (op.node = 0; op.node < scenario->nodes; ++op.node) {
        for (op.peer = 0; op.peer < scenario->nodes; ++op.peer) {
            if (draw_hits(&schedule, percent)) {
                op.polled = draw_hits(&schedule, 50);
                run_op(&op);
            }
        }
    }
}

static bool is_time_to_leave(void)
{
    return draw_hits(&schedule, 10);
}

/* What is left is received as often as something is */
static bool streams_are_over(void)
{
    streamed_finish();
    return streamed_is_over();
}

static bool is_executed(void)
{
    unsigned i, k;

    for (i = 0; i < scenario->nodes; ++i) {
        for (k = 0; k < scenario->nodes; ++k) {
            if (!onesided_is_executed(i, k)) {
                return false;
            }
        }
    }
    return true;
}

/* All close, and before that some come back, at any moment of the ends of others */
static void end_all(void)
{
    unsigned rounds = (scenario->classes & FAULTS_REOPEN) ? (unsigned)draw_below(&schedule, 4) : 0;

    at_end = true;
    while (rounds-- > 0) {
        close_or_open_some(OP_CLOSE, 60);
        wait_until(is_time_to_leave);
        close_or_open_some(OP_OPEN, 40);
        wait_until(is_time_to_leave);
    }
    close_or_open_some(OP_CLOSE, 100);
    wait_for(is_over, "all closes");
}

/* From now on the wire is fair, and all turn: what was lost before that is asked for, and comes */
static void receive_by_fair_wire(void)
{
    uint64_t begin = fake_net.clock, leapt = leapt_ns;

    faults_pause(true);
    is_fair = true;
    wait_for(is_received, "what can be received");
    is_fair = false;
    faults_pause(false);
    if (ended_at > begin + STALL_NS + (leapt_ns - leapt)) {
        world_fail(VERDICT_WAITS, "on a fair wire the last one has come after %.3f s",
                   (double)(ended_at - begin) / 1e9);
    }
}

static void end_program(void)
{
    finish_program();
    if (draw_hits(&schedule, 50)) {
        receive_by_fair_wire();
    } else {
        wait_for(is_received, "what can be received");
    }
    if (verdict != VERDICT_OK) {
        return;
    }
    fail(oracle_judge_order(&oracle));
    world_tell("------ the program is over");
    cancel_all();
    wait_for(receives_are_over, "after cancelling");
    if (scenario->leave_early && (verdict == VERDICT_OK)) {
        close_or_open_some(OP_CLOSE, 60);
        wait_until(is_time_to_leave);
    }
    if (verdict == VERDICT_OK) {
        receive_all();
        wait_for(is_over, "all operations");
    }
    if (verdict == VERDICT_OK) {
        fail(oracle_assign(&oracle));
        fail(oracle_judge_order(&oracle));
    }
    if (verdict == VERDICT_OK) {
        wait_for(streams_are_over, "all streams");
        wait_for(is_executed, "what was done to memory");
        onesided_judge();
    }
    world_tell("------ all close");
    if (verdict == VERDICT_OK) {
        end_all();
    }
}

/* ---------------------------------------------------------------- beginning */

static bool is_acknowledged(void)
{
    unsigned i;

    for (i = 0; i < scenario->nodes; ++i) {
        uci_worker_for_each_peer(peer, fake_net.nodes[i].worker)
        {
            if (peer->tx.acked != peer->tx.next) {
                return false;
            }
        }
    }
    return is_over();
}

/* One message on each way, there and back, until the workers know each other and frames go by their mailboxes */
static void warm_up(void)
{
    op_t send = {.kind = OP_SEND, .tag = 1}, recv = {.kind = OP_RECV, .tag = 1, .mask = 0, .length = 64};
    unsigned round;

    faults_pause(true);
    for (round = 0; round < 2; ++round) {
        for (send.node = 0; send.node < scenario->nodes; ++send.node) {
            for (send.peer = 0; send.peer < scenario->nodes; ++send.peer) {
                send.length = scenario_length(scenario, send.node, 8);
                recv.node   = send.peer;
                run_op(&send);
                run_op(&recv);
            }
        }
        wait_for(is_acknowledged, "warming up");
    }
    world_tell("------ the program begins");
    faults_pause(false);
}

/* -------------------------------------------------------------------- world */

void world_init(void)
{
    setenv("UCI_ON_ERROR", "error", 1);
    setenv("UCI_LOG_LEVEL", "fatal", 0);
    setenv("UCI_CONFIG_FILE", "", 1);
    setenv("UCI_PROFILE", "none", 1);
    setenv("UCI_DIGEST", "xxh3", 1);
    setenv("UCI_EAGER_MAX", "2k", 1);
    if (uci_settings_read() != UCI_OK) {
        abort();
    }
    uci_tuner_both_min = BOTH_MIN;
}

/* What it takes in one frame is settled once for a process; a world has its own, and says so in its address */
static void limit_frames(unsigned node)
{
    uci_worker_t *worker = fake_net.nodes[node].worker;

    worker->choice.eager_max    = scenario->eager_max[node];
    worker->self.mark.eager_max = (uint32_t)worker->choice.eager_max;
    uci_mark_finish(&worker->self.mark);
}

/* They depend on these settings; making them takes longer than many a world */
static void refresh_plans(void)
{
    static uci_path_t path;
    static size_t chunk_size;

    if ((path != uci_settings.path) || (chunk_size != uci_settings.chunk_size)) {
        path       = uci_settings.path;
        chunk_size = uci_settings.chunk_size;
        uci_tuner_refresh();
    }
}

static void create(void)
{
    unsigned i, k;

    if (uci_seal_init() != UCI_OK) { /* here and not in world_init(): a fork has no keys */
        abort();
    }
    fake_net_init(START_NS);
    fake_net.transports     = scenario->transports;
    fake_net.no_rdma        = scenario->no_rdma;
    fake_net.self_at_once   = scenario->self_at_once;
    fake_net.kernel_copy    = scenario->kernel_copy;
    fake_net.burst          = scenario->burst;
    uci_settings.path       = scenario->path;
    uci_settings.chunk_size = scenario->chunk_size;
    uci_settings.carrier    = scenario->by_mailbox ? UCI_CARRIER_AUTO : UCI_CARRIER_AM;
    refresh_plans();
    data_init();
    faults_begin(scenario, story);
    active_begin(scenario);
    streamed_begin(scenario);
    for (i = 0; i < scenario->nodes; ++i) {
        fake_node_create(i, scenario->uids[i], scenario->threads ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE,
                         scenario->buffered_max);
        limit_frames(i);
        active_join(i);
    }
    onesided_begin(scenario);
    for (i = 0; i < scenario->nodes; ++i) {
        for (k = 0; k < scenario->nodes; ++k) {
            if (fake_ep_open(i, k) != UCS_OK) {
                abort();
            }
        }
    }
}

static void destroy(void)
{
    unsigned i;

    reap();
    for (i = 0; i < scenario->nodes; ++i) {
        fake_node_destroy(i);
    }
    onesided_end();
    faults_end();
}

verdict_t world_run(scenario_t *the_scenario, FILE *the_story, const char **text_p)
{
    scenario  = the_scenario;
    story     = the_story;
    verdict   = VERDICT_OK;
    looks     = 0;
    at_end    = false;
    is_fair   = false;
    ops_count = ops_first = 0;
    uci_peer_first        = scenario->first;
    schedule              = draw_for(scenario->seed, DRAW_WORLD, 0);
    memset(held_count, 0, sizeof(held_count));
    memset(for_callback_count, 0, sizeof(for_callback_count));
    memset(for_callback_next, 0, sizeof(for_callback_next));
    oracle_begin(&oracle, scenario);
    create();
    if (scenario->warm) {
        warm_up();
    }
    run_program();
    if (verdict == VERDICT_OK) {
        end_program();
    }
    *text_p = oracle.text;
    if (verdict == VERDICT_OK) {
        destroy();
    }
    return verdict;
}
