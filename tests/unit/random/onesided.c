/* SPDX-License-Identifier: BSD-3-Clause */
#include "onesided.h"

#include <stdlib.h>
#include <string.h>

#include "fake_ucx.h"
#include "rma/rma.h"
#include "world.h"

#define SLICE ONESIDED_MAX /* bytes, a multiple of 8 */
#define WORDS 4u           /* of all */

enum { DRAW_KEYS = 96 };

/* Of one worker: what others work on, then the words */
typedef struct memory {
    char slices[FAKE_NODES][SLICE];
    uint64_t words[WORDS];
} memory_t;

/* What is known of a slice: what will lie there, and which operation has touched each byte last */
typedef struct slice {
    char bytes[SLICE];
    unsigned touched[SLICE];
    unsigned begun; /* operations */
} slice_t;

static const scenario_t *scenario;
static memory_t memories[FAKE_NODES];
static slice_t slices[FAKE_NODES][FAKE_NODES]; /* by owner, and who works on it */
static uint64_t sums[FAKE_NODES][WORDS];
static uci_rma_key_t keys[FAKE_NODES][FAKE_NODES];
static uci_rma_regions_t *regions[FAKE_NODES];

/* ------------------------------------------------------------------- worlds */

static void make_key(unsigned owner)
{
    ucp_mem_h memh = (ucp_mem_h)&memories[owner];
    uci_rma_packed_t packed;
    size_t size = 9; /* a key of UCX is no shorter */
    void *text;
    unsigned i;

    uci_rma_region_add(regions[owner], memh, &memories[owner], sizeof(memories[owner]));
    text = uci_rma_key_pack(regions[owner], memh, "a UCX key", &size);
    if ((text == NULL) || !uci_rma_key_find(text, size, &packed)) {
        abort();
    }
    free(text);
    for (i = 0; i < FAKE_NODES; ++i) {
        draw_t draw = draw_for(scenario->seed, DRAW_KEYS, (owner * FAKE_NODES) + i);

        keys[owner][i] = (uci_rma_key_t){.packed = packed, .settled = true};
        if (draw_hits(&draw, 20)) {
            keys[owner][i].memory = (char *)&memories[owner]; /* attached */
        }
    }
}

void onesided_begin(const scenario_t *the_scenario)
{
    unsigned owner, i;

    scenario = the_scenario;
    memset(sums, 0, sizeof(sums));
    for (owner = 0; owner < scenario->nodes; ++owner) {
        memset(&memories[owner], 0, sizeof(memories[owner]));
        for (i = 0; i < scenario->nodes; ++i) {
            data_write(memories[owner].slices[i], SLICE, scenario, 200000 + (owner * FAKE_NODES) + i);
            memcpy(slices[owner][i].bytes, memories[owner].slices[i], SLICE);
            memset(slices[owner][i].touched, 0, sizeof(slices[owner][i].touched));
            slices[owner][i].begun = 0;
        }
        regions[owner]                    = uci_rma_regions_create();
        fake_net.nodes[owner].context.rma = regions[owner];
        make_key(owner);
    }
}

void onesided_end(void)
{
    unsigned owner;

    for (owner = 0; owner < scenario->nodes; ++owner) {
        uci_rma_regions_destroy(regions[owner]);
    }
}

/* --------------------------------------------------------------- operations */

static uint64_t place_of(const op_t *op)
{
    return op->tag % (SLICE - op->length + 1);
}

static void touch(slice_t *slice, uint64_t place, const void *bytes, size_t length)
{
    size_t i;

    ++slice->begun;
    memcpy(slice->bytes + place, bytes, length);
    for (i = 0; i < length; ++i) {
        slice->touched[place + i] = slice->begun;
    }
}

static uint64_t address_of(const op_t *op, uint64_t place)
{
    return (uint64_t)(uintptr_t)(memories[op->peer].slices[op->node] + place);
}

static ucs_status_ptr_t run_put(const op_t *op, onesided_t *this, ucp_request_param_t *param, uci_ep_t *ep,
                                slice_t *slice)
{
    char *bytes = malloc(op->length + 1);
    size_t count;
    void *arg;

    data_write(bytes, op->length, scenario, 300000 + slice->begun);
    data_buffer_create(&this->buffer, op->form, op->length, op->mask);
    data_buffer_fill(&this->buffer, bytes, op->length);
    touch(slice, place_of(op), bytes, op->length);
    free(bytes);
    arg = data_buffer_arg(&this->buffer, &count, &param->datatype);
    return uci_rma_put(ep, arg, count, address_of(op, place_of(op)), &keys[op->peer][op->node], param);
}

static ucs_status_ptr_t run_get(const op_t *op, onesided_t *this, ucp_request_param_t *param, uci_ep_t *ep,
                                slice_t *slice)
{
    size_t count;
    void *arg;

    ++slice->begun;
    this->wanted = malloc(op->length + 1);
    memcpy(this->wanted, slice->bytes + place_of(op), op->length);
    data_buffer_create(&this->buffer, op->form, op->length, op->mask);
    arg = data_buffer_arg(&this->buffer, &count, &param->datatype);
    return uci_rma_get(ep, arg, count, address_of(op, place_of(op)), &keys[op->peer][op->node], param);
}

/* What lies there afterwards */
static uint64_t result_of(ucp_atomic_op_t kind, uint64_t before, uint64_t operand, uint64_t swap)
{
    switch (kind) {
    case UCP_ATOMIC_OP_ADD:
        return before + operand;
    case UCP_ATOMIC_OP_AND:
        return before & operand;
    case UCP_ATOMIC_OP_OR:
        return before | operand;
    case UCP_ATOMIC_OP_XOR:
        return before ^ operand;
    case UCP_ATOMIC_OP_SWAP:
        return operand;
    default:
        return (before == operand) ? swap : before;
    }
}

static ucs_status_ptr_t run_word(const op_t *op, onesided_t *this, ucp_request_param_t *param, uci_ep_t *ep)
{
    unsigned word = (unsigned)(op->tag % WORDS);

    ++slices[op->peer][op->node].begun;
    sums[op->peer][word] += this->operand;
    return uci_rma_atomic(ep, UCP_ATOMIC_OP_ADD, &this->operand, 1,
                          (uint64_t)(uintptr_t)&memories[op->peer].words[word], &keys[op->peer][op->node], param);
}

/* SWAP and CSWAP fetch always: of the latter the reply buffer is what to swap with */
static ucs_status_ptr_t run_atomic(const op_t *op, onesided_t *this, ucp_request_param_t *param, uci_ep_t *ep,
                                   slice_t *slice)
{
    ucp_atomic_op_t kind = (ucp_atomic_op_t)(op->length % (UCP_ATOMIC_OP_CSWAP + 1));
    uint64_t place       = op->tag % (SLICE / 8) * 8, before, after;

    this->operand   = op->mask;
    param->datatype = ucp_dt_make_contig(8);
    if (op->sync) {
        return run_word(op, this, param, ep);
    }
    memcpy(&before, slice->bytes + place, sizeof(before));
    if ((kind == UCP_ATOMIC_OP_CSWAP) && (op->mask % 2 == 0)) {
        this->operand = before; /* so that it swaps */
    }
    this->reply        = ~op->mask;
    this->wanted_reply = before;
    after              = result_of(kind, before, this->operand, this->reply);
    touch(slice, place, &after, sizeof(after));
    if ((kind >= UCP_ATOMIC_OP_SWAP) || op->polled) {
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param->reply_buffer = &this->reply;
    } else {
        this->reply = before; /* it is not fetched */
    }
    return uci_rma_atomic(ep, kind, &this->operand, 1, address_of(op, place), &keys[op->peer][op->node], param);
}

ucs_status_ptr_t onesided_run(const op_t *op, onesided_t *this, ucp_request_param_t *param)
{
    uci_ep_t *ep   = fake_net.nodes[op->node].eps[op->peer];
    slice_t *slice = &slices[op->peer][op->node];

    switch (op->kind) {
    case OP_PUT:
        return run_put(op, this, param, ep, slice);
    case OP_GET:
        return run_get(op, this, param, ep, slice);
    case OP_ATOMIC:
        return run_atomic(op, this, param, ep, slice);
    default:
        this->begun = slice->begun;
        param->op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_DATATYPE;
        return uci_rma_flush(fake_net.nodes[op->node].worker, ep, param);
    }
}

/* ------------------------------------------------------------------ judging */

static void judge_slice(unsigned owner, unsigned from, unsigned begun)
{
    const slice_t *slice = &slices[owner][from];
    unsigned i;

    for (i = 0; i < SLICE; ++i) {
        if ((slice->touched[i] <= begun) && (memories[owner].slices[from][i] != slice->bytes[i])) {
            world_fail(
                    VERDICT_BYTES,
                    "byte %u of what node %u works on in the memory of %u is wrong, after operation %u of %u; it was touched by %u",
                    i, from, owner, begun, slice->begun, slice->touched[i]);
            return;
        }
    }
}

static void judge_get(const op_t *op, const onesided_t *this)
{
    char *bytes = malloc(op->length + 1);

    data_buffer_read(&this->buffer, bytes, op->length);
    if ((memcmp(bytes, this->wanted, op->length) != 0) || !data_buffer_is_clean(&this->buffer, op->length)) {
        world_fail(VERDICT_BYTES, "a get of %lu bytes by node %u from %u brought other ones", (unsigned long)op->length,
                   op->node, op->peer);
    }
    free(bytes);
}

void onesided_ended(const op_t *op, onesided_t *this)
{
    if (op->kind == OP_GET) {
        judge_get(op, this);
    } else if ((op->kind == OP_ATOMIC) && !op->sync && (this->reply != this->wanted_reply)) {
        world_fail(VERDICT_BYTES, "an atomic operation of node %u on memory of %u fetched 0x%lx, not 0x%lx", op->node,
                   op->peer, (unsigned long)this->reply, (unsigned long)this->wanted_reply);
    } else if (op->kind == OP_FLUSH) {
        judge_slice(op->peer, op->node, this->begun);
    } else if (op->kind == OP_PUT) {
        data_buffer_spoil(&this->buffer);
    }
}

void onesided_free(onesided_t *this)
{
    if (this->buffer.memory != NULL) {
        data_buffer_destroy(&this->buffer);
    }
    free(this->wanted);
}

bool onesided_is_executed(unsigned from, unsigned to)
{
    const uci_peer_t *peer = uci_worker_peer_find(fake_net.nodes[from].worker, fake_net.nodes[to].uid);

    return (peer == NULL) || !uci_rma_is_pending(&peer->rma);
}

void onesided_judge(void)
{
    unsigned owner, i;

    for (owner = 0; owner < scenario->nodes; ++owner) {
        for (i = 0; i < scenario->nodes; ++i) {
            judge_slice(owner, i, UINT32_MAX);
        }
        for (i = 0; i < WORDS; ++i) {
            if (memories[owner].words[i] != sums[owner][i]) {
                world_fail(VERDICT_BYTES, "word %u of node %u is 0x%lx, not 0x%lx", i, owner,
                           (unsigned long)memories[owner].words[i], (unsigned long)sums[owner][i]);
            }
        }
    }
}
