/* SPDX-License-Identifier: BSD-3-Clause */
#include "streamed.h"

#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fake_ucx.h"
#include "base/request.h"
#include "message/user_stream.h"
#include "world.h"

#define PARTS_MAX 4096u

enum { DRAW_STREAM = 112 };

typedef struct stream {
    uint64_t sent, got;
    uint64_t posted; /* bytes that receives have room for, which have not ended */
    unsigned sends;  /* that have not ended */
    bool ends;       /* its sender has closed */
    bool dropped;    /* who receives it has */
} stream_t;

/* A send, or a receive */
typedef struct part {
    stream_t *stream;
    bool all; /* of them, or none */
    unsigned from, to;
    uint64_t length;
    data_buffer_t buffer;
    size_t got;
} part_t;

static const scenario_t *scenario;
static stream_t streams[FAKE_NODES][FAKE_NODES];
static part_t parts[PARTS_MAX];
static unsigned parts_count;

void streamed_begin(const scenario_t *the_scenario)
{
    unsigned i;

    for (i = 0; i < parts_count; ++i) {
        data_buffer_destroy(&parts[i].buffer);
    }
    scenario    = the_scenario;
    parts_count = 0;
    memset(streams, 0, sizeof(streams));
}

/* Bytes of a stream from this place on */
static void write_bytes(char *bytes, uint64_t place, size_t length, unsigned from, unsigned to)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        uint64_t word = draw_mix(scenario->seed ^ DRAW_STREAM, ((place + i) / 8 * 16) + (from * FAKE_NODES) + to);

        bytes[i] = (char)(word >> ((place + i) % 8 * 8));
    }
}

static bool is_next(const void *bytes, size_t length, unsigned from, unsigned to)
{
    char *wanted = malloc(length + 1);
    bool same;

    write_bytes(wanted, streams[from][to].got, length, from, to);
    same = memcmp(bytes, wanted, length) == 0;
    free(wanted);
    if (!same) {
        world_fail(VERDICT_BYTES, "%zu bytes of the stream from %u to %u, from %lu on, are wrong", length, from, to,
                   (unsigned long)streams[from][to].got);
    }
    streams[from][to].got += length;
    world_changed();
    return same;
}

/* -------------------------------------------------------------------- ends */

static void send_ended(part_t *part, ucs_status_t status)
{
    --part->stream->sends;
    world_changed();
    if (status != UCS_OK) {
        world_fail(VERDICT_STATUS, "a send of %lu bytes into the stream from %u to %u ended with status %d",
                   (unsigned long)part->length, part->from, part->to, status);
    }
    data_buffer_spoil(&part->buffer);
}

static void recv_ended(part_t *part, ucs_status_t status, size_t length)
{
    char *bytes;

    part->stream->posted -= part->length;
    world_tell("node %u: %zu bytes of the stream from %u, status %d", part->to, length, part->from, status);
    if ((status != UCS_OK) || (length > part->length) || (length == 0) || (part->all && (length != part->length))) {
        world_fail(VERDICT_STATUS, "a receive of %lu bytes of the stream from %u to %u ended with status %d, %zu bytes",
                   (unsigned long)part->length, part->from, part->to, status, length);
        return;
    }
    bytes = malloc(length);
    data_buffer_read(&part->buffer, bytes, length);
    if (is_next(bytes, length, part->from, part->to) && !data_buffer_is_clean(&part->buffer, length)) {
        world_fail(VERDICT_TOUCHED, "a receive of the stream from %u to %u has written behind its %zu bytes",
                   part->from, part->to, length);
    }
    free(bytes);
}

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    send_ended(user_data, status);
    uci_request_free(uci_request_from_user(request));
}

static void on_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    recv_ended(user_data, status, length);
    uci_request_free(uci_request_from_user(request));
}

/* ------------------------------------------------------------------ begins */

static part_t *new_part(unsigned from, unsigned to, uint64_t length, form_t form)
{
    part_t *part = &parts[parts_count++];

    *part = (part_t){.stream = &streams[from][to], .from = from, .to = to, .length = length};
    data_buffer_create(&part->buffer, form, length, draw_mix(scenario->seed, ~(uint64_t)parts_count));
    return part;
}

static void begin_send(unsigned from, unsigned to, uint64_t length, form_t form)
{
    part_t *part              = new_part(from, to, length, form);
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE,
                                 .cb.send   = on_sent,
                                 .user_data = part};
    char *bytes               = malloc(length);
    ucs_status_ptr_t ptr;
    size_t count;
    void *arg;

    write_bytes(bytes, part->stream->sent, length, from, to);
    data_buffer_fill(&part->buffer, bytes, length);
    free(bytes);
    part->stream->sent += length;
    ++part->stream->sends;
    world_tell("node %u: %lu bytes into the stream to %u", from, (unsigned long)length, to);
    arg = data_buffer_arg(&part->buffer, &count, &param.datatype);
    ptr = uci_user_stream_send(fake_net.nodes[from].eps[to], arg, count, &param);
    if (!UCS_PTR_IS_PTR(ptr)) {
        send_ended(part, UCS_PTR_STATUS(ptr));
    }
}

static void begin_recv(unsigned from, unsigned to, uint64_t length, form_t form, bool all)
{
    part_t *part              = new_part(from, to, length, form);
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_FLAGS,
                                 .cb.recv_stream = on_received,
                                 .user_data      = part,
                                 .flags          = all ? UCP_STREAM_RECV_FLAG_WAITALL : 0};
    ucs_status_ptr_t ptr;
    size_t count;
    void *arg;

    part->all = all;
    part->stream->posted += length;
    world_tell("node %u: a receive of %lu bytes of the stream from %u%s", to, (unsigned long)length, from,
               all ? ", all of them" : "");
    arg = data_buffer_arg(&part->buffer, &count, &param.datatype);
    ptr = uci_user_stream_recv(fake_net.nodes[to].eps[from], arg, count, &part->got, &param);
    if (!UCS_PTR_IS_PTR(ptr)) {
        recv_ended(part, UCS_PTR_STATUS(ptr), part->got);
    }
}

/* Only while no receive waits, which it would be for */
static void take_data(unsigned from, unsigned to)
{
    uci_ep_t *ep  = fake_net.nodes[to].eps[from];
    size_t length = 0;
    void *data;

    if (streams[from][to].posted > 0) {
        return;
    }
    data = uci_user_stream_recv_data(ep, &length);
    if (UCS_PTR_IS_ERR(data)) {
        world_fail(VERDICT_STATUS, "data of the stream from %u to %u: status %d", from, to, UCS_PTR_STATUS(data));
    } else if (data != NULL) {
        world_tell("node %u: takes %zu bytes of the stream from %u", to, length, from);
        (void)is_next(data, length, from, to);
        uci_user_stream_release(ep, data);
    }
}

static bool may_send(unsigned from, unsigned to)
{
    return !streams[from][to].ends && !streams[from][to].dropped && (parts_count < PARTS_MAX) &&
           (fake_net.nodes[from].eps[to] != NULL) && (fake_net.nodes[to].eps[from] != NULL);
}

/* Of one whose sender has closed no more than there is */
static bool may_receive(unsigned from, unsigned to, uint64_t length)
{
    const stream_t *stream = &streams[from][to];

    return !stream->dropped && (parts_count < PARTS_MAX) && (fake_net.nodes[to].eps[from] != NULL) &&
           (!stream->ends || (stream->got + stream->posted + length <= stream->sent));
}

void streamed_run(const op_t *op)
{
    uint64_t length = uci_max(op->length, 1ul);

    if (op->kind == OP_STREAM_SEND) {
        if (may_send(op->node, op->peer)) {
            begin_send(op->node, op->peer, length, op->form);
        }
    } else if (may_receive(op->peer, op->node, length)) {
        if (op->mask % 4 == 0) {
            take_data(op->peer, op->node);
        } else {
            begin_recv(op->peer, op->node, length, op->form, op->sync);
        }
    }
}

static void finish(unsigned from, unsigned to)
{
    const stream_t *stream = &streams[from][to];
    uint64_t left          = stream->sent - uci_min(stream->sent, stream->got + stream->posted);

    if ((stream->got + stream->posted > stream->sent) && may_send(from, to)) {
        uci_worker_enter(fake_net.nodes[from].worker);
        begin_send(from, to, stream->got + stream->posted - stream->sent, FORM_CONTIG);
        uci_worker_leave(fake_net.nodes[from].worker);
    }
    if ((left > 0) && may_receive(from, to, left)) {
        uci_worker_enter(fake_net.nodes[to].worker);
        begin_recv(from, to, left, FORM_CONTIG, true);
        uci_worker_leave(fake_net.nodes[to].worker);
    }
}

/* Receives that take less than they have room for leave bytes behind */
void streamed_finish(void)
{
    unsigned from, to;

    for (from = 0; from < scenario->nodes; ++from) {
        for (to = 0; to < scenario->nodes; ++to) {
            finish(from, to);
        }
    }
}

void streamed_closed(unsigned node, unsigned peer)
{
    streams[node][peer].ends    = true;
    streams[peer][node].dropped = true;
}

static bool is_received(unsigned from, unsigned to)
{
    return (streams[from][to].posted == 0) && (streams[from][to].got == streams[from][to].sent);
}

/* Receives of the other side's would never end */
bool streamed_is_settled(unsigned node, unsigned peer)
{
    return is_received(peer, node) && (streams[node][peer].sends == 0) && (streams[node][peer].posted == 0);
}

bool streamed_is_over(void)
{
    unsigned from, to;

    for (from = 0; from < FAKE_NODES; ++from) {
        for (to = 0; to < FAKE_NODES; ++to) {
            if (!is_received(from, to) || (streams[from][to].sends > 0)) {
                return false;
            }
        }
    }
    return true;
}
