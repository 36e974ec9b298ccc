/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A GPU whose memory is the host's: between UCI and UCX, which says that it knows CUDA's memory, and is told of none. So UCI takes the ways that it
 * has for a GPU's, where there is none; a real one has suite gpu.
 */
#include <dlfcn.h>
#include <ucp/api/ucp.h>

#define NEXT(_name) ((__typeof__(_name) *)dlsym(RTLD_NEXT, #_name))

ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
    ucs_status_t status = NEXT(ucp_context_query)(context, attr);

    if (attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) {
        attr->memory_types |= 1ul << UCS_MEMORY_TYPE_CUDA;
    }
    return status;
}

static ucp_request_param_t of_host(const ucp_request_param_t *param)
{
    ucp_request_param_t host = *param;

    host.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    return host;
}

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    ucp_request_param_t host = of_host(param);

    return NEXT(ucp_tag_send_nbx)(ep, buffer, count, tag, &host);
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t mask,
                                  const ucp_request_param_t *param)
{
    ucp_request_param_t host = of_host(param);

    return NEXT(ucp_tag_recv_nbx)(worker, buffer, count, tag, mask, &host);
}
