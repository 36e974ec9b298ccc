/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include <stdlib.h>

#include "buffer.h"
#include "iov.h"
#include "util/log.h"

struct uci_stage {
    ucp_worker_h worker;
    ucp_ep_h ep; /* to itself */
    const uci_stage_dt_t *dt;
    ucp_datatype_t datatype;
    ucp_datatype_t user_datatype; /* of the operation that begins, until start_pack or start_unpack */
    ucs_memory_type_t type;
};

/* One buffer: what the generic datatype's functions are given */
typedef struct uci_staged {
    uci_stage_t *stage;
    ucs_memory_type_t type;
    const ucp_dt_iov_t *iov;
    size_t count;
    size_t length;
    size_t *index;
    ucp_dt_iov_t whole; /* a contiguous buffer is an iov of one entry */
} uci_staged_t;

/* ------------------------------------------------------------- moving */

static ucs_status_t uci_stage_finish(uci_stage_t *stage, ucs_status_ptr_t request)
{
    ucs_status_t status = UCS_INPROGRESS;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while (status == UCS_INPROGRESS) {
        uci_ucp.worker_progress(stage->worker);
        status = uci_ucp.request_check_status(request);
    }
    uci_ucp.request_free(request);
    return status;
}

static ucs_status_t uci_stage_move(uci_stage_t *stage, void *dst, ucs_memory_type_t dst_type, const void *src,
                                   ucs_memory_type_t src_type, size_t length)
{
    ucp_request_param_t send_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE, .memory_type = src_type};
    ucp_request_param_t recv_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE, .memory_type = dst_type};
    ucs_status_ptr_t send, recv;
    ucs_status_t status;

    recv = uci_ucp.tag_recv_nbx(stage->worker, dst, length, 0, 0, &recv_param);
    if (UCS_PTR_IS_ERR(recv)) {
        return UCS_PTR_STATUS(recv);
    }
    send = uci_ucp.tag_send_nbx(stage->ep, src, length, 0, &send_param);
    if (UCS_PTR_IS_ERR(send)) {
        uci_ucp.request_cancel(stage->worker, recv);
        (void)uci_stage_finish(stage, recv);
        return UCS_PTR_STATUS(send);
    }
    status = uci_stage_finish(stage, recv);
    send   = UCS_STATUS_PTR(uci_stage_finish(stage, send));
    return (status != UCS_OK) ? status : UCS_PTR_STATUS(send);
}

/* Walk the entries that hold [offset, offset + length) of the packed form */
static ucs_status_t uci_staged_move(uci_staged_t *staged, size_t offset, char *packed, size_t length, bool to_packed)
{
    ucs_status_t status = UCS_OK;
    size_t i, part;
    char *user;

    for (i = uci_iov_find(staged->iov, staged->count, staged->index, &offset);
         (i < staged->count) && (length > 0) && (status == UCS_OK); ++i) {
        part = uci_min(staged->iov[i].length - offset, length);
        if (part == 0) {
            continue; /* it may be nowhere */
        }
        user   = (char *)staged->iov[i].buffer + offset;
        status = to_packed ? uci_stage_move(staged->stage, packed, UCS_MEMORY_TYPE_HOST, user, staged->type, part)
                           : uci_stage_move(staged->stage, user, staged->type, packed, UCS_MEMORY_TYPE_HOST, part);
        packed += part;
        length -= part;
        offset = 0;
    }
    return status;
}

/* ------------------------------------------------ the generic datatype */

static void *uci_staged_start(void *context, const void *buffer, size_t count)
{
    uci_stage_t *stage   = context;
    uci_staged_t *staged = malloc(sizeof(*staged));

    if (staged == NULL) {
        uci_fatal("failed to allocate what describes a buffer");
    }
    staged->stage = stage;
    staged->type  = stage->type;
    if ((stage->user_datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_IOV) {
        staged->iov   = buffer;
        staged->count = count;
    } else {
        staged->whole = (ucp_dt_iov_t){.buffer = (void *)buffer,
                                       .length = uci_buffer_contig_length(stage->user_datatype, count)};
        staged->iov   = &staged->whole;
        staged->count = 1;
    }
    if (uci_iov_index(staged->iov, staged->count, &staged->length, &staged->index) != UCS_OK) {
        uci_fatal("failed to describe a buffer");
    }
    return staged;
}

static void *uci_staged_start_unpack(void *context, void *buffer, size_t count)
{
    return uci_staged_start(context, buffer, count);
}

static size_t uci_staged_size(void *state)
{
    return ((uci_staged_t *)state)->length;
}

static size_t uci_staged_pack(void *state, size_t offset, void *dst, size_t max_length)
{
    uci_staged_t *staged = state;
    size_t length        = uci_min(max_length, staged->length - offset);
    ucs_status_t status  = uci_staged_move(staged, offset, dst, length, true);

    if (status != UCS_OK) {
        uci_fatal("UCX can't read %zu bytes of memory type %d: %s", length, (int)staged->type,
                  uci_ucp.status_string(status));
    }
    return length;
}

static ucs_status_t uci_staged_unpack(void *state, size_t offset, const void *src, size_t length)
{
    return uci_staged_move(state, offset, (void *)src, length, false);
}

static void uci_staged_finish(void *state)
{
    free(((uci_staged_t *)state)->index);
    free(state);
}

void uci_stage_prepare(uci_stage_t *stage, ucs_memory_type_t type, const ucp_request_param_t *param,
                       ucp_request_param_t *ours_p)
{
    stage->type          = type;
    stage->user_datatype = uci_buffer_datatype(param);
    *ours_p              = *param;
    ours_p->op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    ours_p->datatype = stage->datatype;
}

/* -------------------------------------------------------- its worker */

static ucs_status_t uci_stage_connect(uci_stage_t *stage)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    ucs_status_t status;
    size_t length;

    status = uci_ucp.worker_get_address(stage->worker, &address, &length);
    if (status != UCS_OK) {
        return status;
    }
    params.address = address;
    status         = uci_ucp.ep_create(stage->worker, &params, &stage->ep);
    uci_ucp.worker_release_address(stage->worker, address);
    return status;
}

ucs_status_t uci_stage_create(ucp_context_h context, const uci_stage_dt_t *dt, uci_stage_t **stage_p)
{
    static const ucp_generic_dt_ops_t ops = {.start_pack   = uci_staged_start,
                                             .start_unpack = uci_staged_start_unpack,
                                             .packed_size  = uci_staged_size,
                                             .pack         = uci_staged_pack,
                                             .unpack       = uci_staged_unpack,
                                             .finish       = uci_staged_finish};
    ucp_worker_params_t params            = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                             .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    uci_stage_t *stage                    = calloc(1, sizeof(*stage));
    ucs_status_t status                   = UCS_ERR_NO_MEMORY;

    if (stage == NULL) {
        goto err;
    }
    stage->dt = dt;
    status    = uci_ucp.worker_create(context, &params, &stage->worker);
    if (status != UCS_OK) {
        goto err_free;
    }
    status = uci_stage_connect(stage);
    if (status != UCS_OK) {
        goto err_destroy_worker;
    }
    status = dt->create(&ops, stage, &stage->datatype);
    if (status != UCS_OK) {
        goto err_destroy_worker;
    }
    uci_buffer_generic_lookup(stage->datatype)->is_staged = true;
    *stage_p                                              = stage;
    return UCS_OK;

err_destroy_worker:
    uci_ucp.worker_destroy(stage->worker); /* its endpoint goes with it */
err_free:
    free(stage);
err:
    uci_error("failed to set up what moves a GPU's memory: %s", uci_ucp.status_string(status));
    return status;
}

void uci_stage_destroy(uci_stage_t *stage)
{
    stage->dt->destroy(stage->datatype);
    uci_ucp.worker_destroy(stage->worker);
    free(stage);
}
