/* SPDX-License-Identifier: BSD-3-Clause */
#include "memtype.h"

#include "data/buffer.h"
#include "data/hostmem.h"

/* UCS_MEMORY_TYPE_RDMA of later UCX: the headers may be older than the library */
#define UCI_MEMTYPE_RDMA 5

bool uci_memtype_is_host_only(uint64_t types)
{
    return (types & ~(UINT64_C(1) << UCS_MEMORY_TYPE_HOST | UINT64_C(1) << UCI_MEMTYPE_RDMA)) == 0;
}

bool uci_memtype_keeps_host(uint64_t types)
{
    return uci_memtype_is_host_only(
            types & ~(UINT64_C(1) << UCS_MEMORY_TYPE_CUDA | UINT64_C(1) << UCS_MEMORY_TYPE_CUDA_MANAGED));
}

static ucs_memory_type_t uci_memtype_of_handle(ucp_mem_h memh)
{
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE};

    return (uci_ucp.mem_query(memh, &attr) == UCS_OK) ? attr.mem_type : UCS_MEMORY_TYPE_HOST;
}

/* What UCX can't map it can't place either: it takes it for the host's. One byte, since all that is mapped may be registered
 * with devices, and its pages pinned */
static ucs_memory_type_t uci_memtype_ask(const uci_context_t *context, const void *address)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address    = (void *)address,
                                   .length     = 1};
    ucs_memory_type_t type;
    ucp_mem_h memh;

    if (uci_ucp.mem_map(context->ucp, &params, &memh) != UCS_OK) {
        return UCS_MEMORY_TYPE_HOST;
    }
    type = uci_memtype_of_handle(memh);
    uci_ucp.mem_unmap(context->ucp, memh);
    if ((type == UCS_MEMORY_TYPE_HOST) && context->keeps_host) {
        uci_hostmem_remember(address);
    }
    return type;
}

static ucs_memory_type_t uci_memtype_of_address(const uci_context_t *context, const void *address, size_t length)
{
    if (context->host_only || (length == 0) || uci_hostmem_is_fixed(address) ||
        (context->keeps_host && uci_hostmem_is_remembered(address))) {
        return UCS_MEMORY_TYPE_HOST;
    }
    return uci_memtype_ask(context, address);
}

static ucs_memory_type_t uci_memtype_of_iov(const uci_context_t *context, const ucp_dt_iov_t *iov, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if (iov[i].length > 0) {
            return uci_memtype_of_address(context, iov[i].buffer, iov[i].length);
        }
    }
    return UCS_MEMORY_TYPE_HOST;
}

ucs_memory_type_t uci_memtype(const uci_context_t *context, const void *buffer, size_t count,
                              const ucp_request_param_t *param)
{
    ucp_datatype_t datatype = uci_buffer_datatype(param);

    if ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC) {
        return UCS_MEMORY_TYPE_HOST;
    }
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) && (param->memory_type != UCS_MEMORY_TYPE_UNKNOWN)) {
        return param->memory_type;
    }
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMH) {
        return uci_memtype_of_handle(param->memh);
    }
    if ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_IOV) {
        return uci_memtype_of_iov(context, buffer, count);
    }
    return uci_memtype_of_address(context, buffer, uci_buffer_contig_length(datatype, count));
}
