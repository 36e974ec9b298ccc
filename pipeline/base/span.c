/* SPDX-License-Identifier: BSD-3-Clause */
#include "span.h"

#include <sys/mman.h>

#include "util/log.h"

#define UCI_SPANS_SIZE ((size_t)UCI_SPAN_COUNT * UCI_SPAN_SIZE)

static void uci_spans_create(uci_worker_t *worker)
{
    uci_spans_t *spans          = &worker->spans;
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .length     = UCI_SPANS_SIZE};
    ucs_status_t status;
    unsigned i;

    params.address = mmap(NULL, UCI_SPANS_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (params.address == MAP_FAILED) {
        uci_info("no memory for bounce buffers: messages take other paths");
        return;
    }
    status = uci_ucp.mem_map(worker->context->ucp, &params, &spans->memh);
    if (status != UCS_OK) {
        uci_info("bounce buffers can't be registered (%s): messages take other paths", uci_ucp.status_string(status));
        munmap(params.address, UCI_SPANS_SIZE);
        return;
    }
    spans->memory = params.address;
    for (i = 0; i < UCI_SPAN_COUNT; ++i) {
        spans->free[i] = (uint8_t)i;
    }
    spans->free_count = UCI_SPAN_COUNT;
}

void *uci_span_get(uci_worker_t *worker, unsigned keep)
{
    uci_spans_t *spans = &worker->spans;

    if (uci_unlikely(!spans->tried)) {
        spans->tried = true;
        uci_spans_create(worker);
    }
    /* the one used last: it may still be in the cache */
    return (spans->free_count > keep) ? spans->memory + ((size_t)spans->free[--spans->free_count] * UCI_SPAN_SIZE)
                                      : NULL;
}

void uci_span_put(uci_worker_t *worker, void *span)
{
    uci_spans_t *spans = &worker->spans;

    if (span != NULL) {
        spans->free[spans->free_count++] = (uint8_t)((size_t)((char *)span - spans->memory) / UCI_SPAN_SIZE);
    }
}

void uci_span_set_memh(const uci_worker_t *worker, ucp_request_param_t *param)
{
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    param->memh = worker->spans.memh;
}

void uci_spans_cleanup(uci_worker_t *worker)
{
    if (worker->spans.memory != NULL) {
        uci_ucp.mem_unmap(worker->context->ucp, worker->spans.memh);
        munmap(worker->spans.memory, UCI_SPANS_SIZE);
        worker->spans.memory = NULL;
    }
}
