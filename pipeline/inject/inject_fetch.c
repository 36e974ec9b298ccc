/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_fetch.h"

#include <stdlib.h>

#include "base/peer.h"
#include "base/worker_state.h"
#include "inject_bytes.h"
#include "live/stats.h"
#include "transfer/fetch.h"

/* What was asked for, of whom it is, and what may befall it when it has come */
typedef struct uci_inject_in {
    ucp_request_param_t param; /* the caller's */
    const uci_recv_op_t *op;
    char *target;
    size_t length;
    void (*damage)(const struct uci_inject_in *in);
} uci_inject_in_t;

static struct {
    __typeof__(uci_ucp.am_recv_data_nbx) am_recv_data_nbx;
    __typeof__(uci_ucp.get_nbx) get_nbx;
} uci_inject_ucx;

/* @param ours  else it is the program's own call. @return NULL: it goes to UCX as it is, for that reason, or as there is no memory */
static uci_inject_in_t *uci_inject_in_create(void *target, size_t length, const ucp_request_param_t *param, bool ours,
                                             void (*damage)(const uci_inject_in_t *in))
{
    uci_inject_in_t *in = ours ? malloc(sizeof(*in)) : NULL;

    if (in != NULL) {
        in->param  = *param;
        in->op     = ((const uci_fetch_t *)param->user_data)->op;
        in->target = target;
        in->length = length;
        in->damage = damage;
    }
    return in;
}

/* It has come, or failed */
static uci_inject_in_t uci_inject_in_end(uci_inject_in_t *in, ucs_status_t status)
{
    uci_inject_in_t ended = *in;

    free(in);
    if (status == UCS_OK) {
        ended.damage(&ended);
    }
    return ended;
}

/* What UCX says at once: it ends here unless it is under way */
static ucs_status_ptr_t uci_inject_in_begun(uci_inject_in_t *in, ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        (void)uci_inject_in_end(in, UCS_PTR_STATUS(request));
    }
    return request;
}

static bool uci_inject_draw_fetch(uci_fault_target_t target, const uci_recv_op_t *op, uci_fault_t *fault_p)
{
    return uci_fault_draw(target, op->length, op->peer->worker->self.mark.rank, fault_p); /* the rank that it is for */
}

/* ----------------------------------------------------------- a segment's */

/* @a length bytes of the chunk at @a data become those of another one, where there is one of other content */
static bool uci_inject_swap_chunks(char *data, uint32_t length, const char *other)
{
    if ((other == NULL) || (memcmp(data, other, length) == 0)) {
        return false;
    }
    memcpy(data, other, length);
    return true;
}

static void uci_inject_segment(const uci_inject_in_t *in)
{
    uint32_t offset, chunk, length = (uint32_t)in->length;
    char *other, *data = in->target;
    uci_fault_t fault;

    for (offset = 0; offset < length; offset += chunk) {
        chunk = uci_min(in->op->chunk.size, length - offset);
        if (!uci_inject_draw_fetch(UCI_FAULT_PAYLOAD, in->op, &fault)) {
            uci_inject_remember(data + offset, chunk);
            continue;
        }
        other = (offset + chunk + chunk <= length) ? data + offset + chunk : NULL;
        if ((fault.kind == UCI_FAULT_SWAP) && uci_inject_swap_chunks(data + offset, chunk, other)) {
            continue;
        }
        if ((fault.kind == UCI_FAULT_STALE) && uci_inject_swap_chunks(data + offset, chunk, uci_inject_stale(chunk))) {
            continue;
        }
        uci_inject_bytes(&fault, data + offset, chunk);
    }
}

static void uci_inject_segment_fetched(void *request, ucs_status_t status, size_t length, void *user_data)
{
    uci_inject_in_t in = uci_inject_in_end(user_data, status);

    in.param.cb.recv_am(request, status, length, in.param.user_data);
}

static ucs_status_ptr_t uci_inject_am_recv_data(ucp_worker_h worker, void *desc, void *buffer, size_t count,
                                                const ucp_request_param_t *param)
{
    bool ours = (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) && (param->cb.recv_am == uci_fetch_segment_done);
    uci_inject_in_t *in = uci_inject_in_create(buffer, count, param, ours, uci_inject_segment);
    ucp_request_param_t own;

    if (in == NULL) {
        return uci_inject_ucx.am_recv_data_nbx(worker, desc, buffer, count, param);
    }
    own            = *param;
    own.cb.recv_am = uci_inject_segment_fetched;
    own.user_data  = in;
    return uci_inject_in_begun(in, uci_inject_ucx.am_recv_data_nbx(worker, desc, buffer, count, &own));
}

/* ---------------------------------------------------------------- a get's */

/* Another region than was granted, as after a stale registration: no byte is what it should be */
static void uci_inject_region(void *memory, size_t length)
{
    unsigned char *bytes = memory;
    size_t i;

    for (i = 0; i < length; ++i) {
        bytes[i] ^= 0xff;
    }
}

static void uci_inject_got(const uci_inject_in_t *in)
{
    uci_fault_t fault;
    bool region = uci_inject_draw_fetch(UCI_FAULT_REGION, in->op, &fault);

    if (region) {
        uci_inject_region(in->target, in->length);
    }
    if (uci_inject_draw_fetch(UCI_FAULT_REPAIR, in->op, &fault)) {
        uci_inject_bytes(&fault, in->target, in->length);
        UCI_STATS_ADD(faults_unseen, region); /* one of both is seen */
    }
}

static void uci_inject_get_done(void *request, ucs_status_t status, void *user_data)
{
    uci_inject_in_t in = uci_inject_in_end(user_data, status);

    in.param.cb.send(request, status, in.param.user_data);
}

static ucs_status_ptr_t uci_inject_get(ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
                                       const ucp_request_param_t *param)
{
    bool ours = (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) && (param->cb.send == uci_fetch_chunk_done);
    uci_inject_in_t *in = uci_inject_in_create(buffer, count, param, ours, uci_inject_got);
    ucp_request_param_t own;

    if (in == NULL) {
        return uci_inject_ucx.get_nbx(ep, buffer, count, address, rkey, param);
    }
    own           = *param;
    own.cb.send   = uci_inject_get_done;
    own.user_data = in;
    return uci_inject_in_begun(in, uci_inject_ucx.get_nbx(ep, buffer, count, address, rkey, &own));
}

void uci_inject_fetch_install(bool here)
{
    if (here && (uci_ucp.am_recv_data_nbx != uci_inject_am_recv_data)) {
        uci_inject_ucx.am_recv_data_nbx = uci_ucp.am_recv_data_nbx;
        uci_inject_ucx.get_nbx          = uci_ucp.get_nbx;
        uci_ucp.am_recv_data_nbx        = uci_inject_am_recv_data;
        uci_ucp.get_nbx                 = uci_inject_get;
    } else if (!here && (uci_ucp.am_recv_data_nbx == uci_inject_am_recv_data)) {
        uci_ucp.am_recv_data_nbx = uci_inject_ucx.am_recv_data_nbx;
        uci_ucp.get_nbx          = uci_inject_ucx.get_nbx;
    }
}
