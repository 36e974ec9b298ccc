/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define UCI_PARAMS_PAGE 4096ul /* the smallest there is */

/* Up to and including a member; and a mask's bits up to and including one */
#define UCI_PARAMS_UNTIL(_type, _member) (offsetof(_type, _member) + sizeof(((_type *)NULL)->_member))
#define UCI_PARAMS_BITS(_last)           ((2ul * (_last)) - 1)

/* What is readable of these bytes. The kernel reads, since nobody can say what is there; it stops before a range that is not
 * readable. Where it may not, the rest of the page that the structure ends in */
void uci_params_read(char *dst, const char *src, size_t length)
{
    const size_t page         = uci_min(length, UCI_PARAMS_PAGE - ((uintptr_t)src % UCI_PARAMS_PAGE));
    const struct iovec to     = {.iov_base = dst, .iov_len = length};
    const struct iovec from[] = {{(void *)src, page}, {(void *)(src + page), length - page}};

    memset(dst, 0, length);
    if (process_vm_readv(getpid(), &to, 1, from, uci_array_size(from), 0) < (ssize_t)page) {
        memcpy(dst, src, page);
    }
}

/* @param known  bytes that UCX 1.13 has
 * @param newer  bits of the mask that it does not */
static void uci_params_copy(char *copy, size_t size, const void *params, size_t known, uint64_t newer)
{
    memcpy(copy, params, known);
    if (newer != 0) {
        uci_params_read(copy + known, (const char *)params + known, size - known);
    } else {
        memset(copy + known, 0, size - known);
    }
}

void uci_params_copy_init(uci_init_params_t *copy, const ucp_params_t *params)
{
    uci_params_copy(copy->bytes, sizeof(copy->bytes), params, UCI_PARAMS_UNTIL(ucp_params_t, name),
                    params->field_mask & ~UCI_PARAMS_BITS(UCP_PARAM_FIELD_NAME));
}

void uci_params_copy_ep(uci_ep_params_t *copy, const ucp_ep_params_t *params)
{
    uci_params_copy(copy->bytes, sizeof(copy->bytes), params, UCI_PARAMS_UNTIL(ucp_ep_params_t, local_sockaddr),
                    params->field_mask & ~UCI_PARAMS_BITS(UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR));
}

void uci_params_copy_worker(uci_worker_params_t *copy, const ucp_worker_params_t *params)
{
    uci_params_copy(copy->bytes, sizeof(copy->bytes), params, UCI_PARAMS_UNTIL(ucp_worker_params_t, client_id),
                    params->field_mask & ~UCI_PARAMS_BITS(UCP_WORKER_PARAM_FIELD_CLIENT_ID));
}

void uci_params_copy_listener(uci_listener_params_t *copy, const ucp_listener_params_t *params)
{
    uci_params_copy(copy->bytes, sizeof(copy->bytes), params, UCI_PARAMS_UNTIL(ucp_listener_params_t, conn_handler),
                    params->field_mask & ~UCI_PARAMS_BITS(UCP_LISTENER_PARAM_FIELD_CONN_HANDLER));
}

void uci_params_copy_request(uci_request_params_t *copy, const ucp_request_param_t *params)
{
    const uint64_t flags = UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FLAG_FAST_CMPL | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL |
                           UCP_OP_ATTR_FLAG_MULTI_SEND;

    uci_params_copy(copy->bytes, sizeof(copy->bytes), params, UCI_PARAMS_UNTIL(ucp_request_param_t, memh),
                    params->op_attr_mask & ~(UCI_PARAMS_BITS(UCP_OP_ATTR_FIELD_MEMH) | flags));
}
