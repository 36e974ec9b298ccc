/* SPDX-License-Identifier: BSD-3-Clause */
#include "active.h"

#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fake_ucx.h"
#include "message/user_am.h"
#include "base/request.h"
#include "world.h"

#define ACTIVE_MAX   256u
#define FIRST_NUMBER 100000u /* those of tag messages are below */

enum { DRAW_ACTIVE = 80 };

typedef struct sent {
    unsigned number;
    uint64_t length;
    size_t header_length;
} sent_t;

typedef struct queue {
    sent_t sent[ACTIVE_MAX];
    unsigned count, told; /* handed out */
} queue_t;

/* What a handler has not done with when it returns: data that it keeps, a descriptor of data that it receives later, or is receiving */
typedef enum { KEPT, LATER, COMING, OVER } taken_kind_t;

typedef struct taken {
    taken_kind_t kind;
    unsigned from, node, number;
    uint64_t length;
    void *data; /* or the descriptor */
    data_buffer_t buffer;
    void *request;
} taken_t;

static const scenario_t *scenario;
static queue_t queues[FAKE_NODES][FAKE_NODES];
static taken_t taken[FAKE_NODES * FAKE_NODES * ACTIVE_MAX];
static unsigned taken_count, numbers;
static draw_t schedule;

/* ---------------------------------------------------------------- contents */

void active_header(unsigned number, char *bytes, size_t length)
{
    data_write(bytes, length, scenario, number + 1);
}

static bool is_right(const void *data, uint64_t length, unsigned number)
{
    char *wanted = malloc(length + 1);
    bool same;

    data_write(wanted, length, scenario, number);
    same = (length == 0) || (memcmp(data, wanted, length) == 0);
    free(wanted);
    return same;
}

static bool is_header_right(const void *header, const sent_t *sent)
{
    char wanted[ACTIVE_HEADER_MAX];

    active_header(sent->number, wanted, sent->header_length);
    return (sent->header_length == 0) || (memcmp(header, wanted, sent->header_length) == 0);
}

/* ---------------------------------------------------------- what is put off */

static void over(taken_t *this)
{
    this->kind = OVER;
    world_changed();
}

static void on_data(void *request, ucs_status_t status, size_t length, void *user_data)
{
    taken_t *this = user_data;
    char *bytes;

    if ((status != UCS_OK) || (length != this->length)) {
        world_fail(VERDICT_STATUS, "data of active message %u from %u to %u: status %d, %zu bytes", this->number,
                   this->from, this->node, status, length);
        return;
    }
    bytes = malloc(length + 1);
    data_buffer_read(&this->buffer, bytes, length);
    if (!is_right(bytes, length, this->number) || !data_buffer_is_clean(&this->buffer, length)) {
        world_fail(VERDICT_BYTES, "data of active message %u from %u to %u are wrong", this->number, this->from,
                   this->node);
    }
    world_tell("node %u: data of active message %u are here", this->node, this->number);
    free(bytes);
    over(this);
    if (request != NULL) {
        uci_request_free(uci_request_from_user(request));
    }
}

static void receive(taken_t *this, void *desc)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE,
                                 .cb.recv_am = on_data,
                                 .user_data  = this};
    ucs_status_ptr_t ptr;
    size_t count;
    void *arg;

    this->kind = COMING;
    data_buffer_create(&this->buffer, draw_hits(&schedule, 80) ? FORM_CONTIG : FORM_IOV, this->length,
                       draw_mix(scenario->seed, this->number));
    arg = data_buffer_arg(&this->buffer, &count, &param.datatype);
    ptr = uci_user_am_recv_data(fake_net.nodes[this->node].worker, desc, arg, count, &param);
    if (!UCS_PTR_IS_PTR(ptr)) {
        on_data(NULL, UCS_PTR_STATUS(ptr), this->length, this);
    }
}

static taken_t *take(taken_kind_t kind, unsigned from, unsigned node, const sent_t *sent, void *data)
{
    taken_t *this = &taken[taken_count++];

    *this = (taken_t){
            .kind = kind, .from = from, .node = node, .number = sent->number, .length = sent->length, .data = data};
    return this;
}

static void look_again(taken_t *this)
{
    if (!is_right(this->data, this->length, this->number)) {
        world_fail(VERDICT_BYTES, "data of active message %u, which node %u has kept, are not what they were",
                   this->number, this->node);
    }
    over(this);
    uci_user_am_release(fake_net.nodes[this->node].worker, this->data);
}

void active_turn(unsigned node, unsigned percent)
{
    unsigned i;

    for (i = 0; i < taken_count; ++i) {
        if ((taken[i].node != node) || (taken[i].kind > LATER) || !draw_hits(&schedule, percent)) {
            continue;
        }
        uci_worker_enter(fake_net.nodes[node].worker);
        if (taken[i].kind == KEPT) {
            look_again(&taken[i]);
        } else {
            receive(&taken[i], taken[i].data);
        }
        uci_worker_leave(fake_net.nodes[node].worker);
    }
}

/* ---------------------------------------------------------------- handlers */

static ucs_status_t take_descriptor(unsigned from, unsigned node, const sent_t *sent, void *desc)
{
    if (draw_hits(&schedule, 10)) {
        return UCS_OK; /* nobody wants them */
    }
    if (draw_hits(&schedule, 50)) {
        (void)take(LATER, from, node, sent, desc);
        return UCS_INPROGRESS;
    }
    receive(take(COMING, from, node, sent, NULL), desc);
    return UCS_OK;
}

static ucs_status_t take_data(unsigned from, unsigned node, const sent_t *sent, void *data, uint64_t attr)
{
    if (!is_right(data, sent->length, sent->number)) {
        world_fail(VERDICT_BYTES, "active message %u from %u to %u has wrong bytes", sent->number, from, node);
    }
    if ((sent->length == 0) || !(attr & UCP_AM_RECV_ATTR_FLAG_DATA) || draw_hits(&schedule, 70)) {
        return UCS_OK;
    }
    (void)take(KEPT, from, node, sent, data);
    return UCS_INPROGRESS;
}

static ucs_status_t on_active(void *arg, const void *header, size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    unsigned from = (unsigned)(uintptr_t)arg / FAKE_NODES, node = (unsigned)(uintptr_t)arg % FAKE_NODES;
    queue_t *queue     = &queues[from][node];
    const sent_t *sent = &queue->sent[queue->told];

    if (queue->told == queue->count) {
        world_fail(VERDICT_BYTES, "node %u is handed one more active message than %u has sent", node, from);
        return UCS_OK;
    }
    ++queue->told;
    world_changed();
    world_tell("node %u: active message %u from %u, header of %zu bytes, %zu bytes%s", node, sent->number, from,
               header_length, length, (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) ? ", rendezvous" : "");
    if ((length != sent->length) || (header_length != sent->header_length) || !is_header_right(header, sent)) {
        world_fail(VERDICT_ORDER, "node %u is handed an active message of %zu+%zu bytes from %u, not %u, of %zu+%lu",
                   node, header_length, length, from, sent->number, sent->header_length, (unsigned long)sent->length);
        return UCS_OK;
    }
    return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) ? take_descriptor(from, node, sent, data)
                                                           : take_data(from, node, sent, data, param->recv_attr);
}

/* ------------------------------------------------------------------- worlds */

void active_begin(const scenario_t *the_scenario)
{
    unsigned i;

    for (i = 0; i < taken_count; ++i) {
        if (taken[i].buffer.memory != NULL) {
            data_buffer_destroy(&taken[i].buffer);
        }
    }
    scenario    = the_scenario;
    taken_count = 0;
    numbers     = FIRST_NUMBER;
    schedule    = draw_for(scenario->seed, DRAW_ACTIVE, 0);
    for (i = 0; i < FAKE_NODES * FAKE_NODES; ++i) {
        queues[i / FAKE_NODES][i % FAKE_NODES].count = queues[i / FAKE_NODES][i % FAKE_NODES].told = 0;
    }
}

/* As the hooks, which learn of endpoints that UCI has made to answer by */
static void on_endpoint(uci_ep_t *ep)
{
}

void active_join(unsigned node)
{
    uci_user_am_handler_t handler = {.recv = on_active};
    unsigned from;

    uci_worker_show_by(fake_net.nodes[node].worker, on_endpoint, on_endpoint);
    for (from = 0; from < FAKE_NODES; ++from) {
        handler.arg = (void *)(uintptr_t)((from * FAKE_NODES) + node);
        if (uci_user_am_set_handler(fake_net.nodes[node].worker, (uint16_t)from, &handler) != UCS_OK) {
            abort();
        }
    }
}

unsigned active_note(unsigned from, unsigned to, uint64_t length, size_t header_length)
{
    queue_t *queue = &queues[from][to];

    if (queue->count == ACTIVE_MAX) {
        return 0;
    }
    numbers += 2; /* one for its data, one for its header */
    queue->sent[queue->count++] = (sent_t){.number = numbers, .length = length, .header_length = header_length};
    return numbers;
}

bool active_is_received(unsigned from, unsigned to)
{
    unsigned i;

    for (i = 0; i < taken_count; ++i) {
        if ((taken[i].kind != OVER) && (taken[i].from == from) && (taken[i].node == to)) {
            return false;
        }
    }
    return queues[from][to].told == queues[from][to].count;
}

bool active_is_over(void)
{
    unsigned i;

    for (i = 0; i < FAKE_NODES * FAKE_NODES; ++i) {
        if (!active_is_received(i / FAKE_NODES, i % FAKE_NODES)) {
            return false;
        }
    }
    return true;
}
