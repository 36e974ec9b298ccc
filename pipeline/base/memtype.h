/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which memory a user's buffer is in. Only the host's may be read and written here; all other is moved by UCX (stage.h).
 *
 * A context that knows the host's memory alone answers with one test. Else the caller's word counts
 * (UCP_OP_ATTR_FIELD_MEMORY_TYPE), then that of the memory handle (UCP_OP_ATTR_FIELD_MEMH). Else the address tells, if it is
 * known to be the host's (hostmem.h), and at last UCX is asked. It has no cheaper way to do that in public than to map memory:
 * the first byte of the buffer, whose type is that of all.
 */
#ifndef UCI_MEMTYPE_H_
#define UCI_MEMTYPE_H_

#include "worker_state.h"

/** @return whether no memory type in @a types, a bit set as UCX reports it (ucp_context_attr_t.memory_types), is one that
 *          has to be recognised by address. NIC memory (UCS_MEMORY_TYPE_RDMA) has none: only a caller's word tells. */
bool uci_memtype_is_host_only(uint64_t types);

/** @return whether in a context of these types a page that the host's processor may read, and that was the host's, may be taken
 *          for such still (hostmem.h). */
bool uci_memtype_keeps_host(uint64_t types);

/** The memory type of an operation's buffer, for callers whom uci_memtype_is_host() does not satisfy. For an iov, that of its
 *  first entry which is not empty, as UCX has it. A generic datatype's functions know their memory: host. */
ucs_memory_type_t uci_memtype(const uci_context_t *context, const void *buffer, size_t count,
                              const ucp_request_param_t *param);

/** Is this the host's memory, as far as one test can tell, and may an operation go the short way? */
UCI_INLINE bool uci_memtype_is_host_fast(const uci_context_t *context, const ucp_request_param_t *param)
{
    return context->short_way && !(param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE);
}

/** The same of an operation that takes a longer way for other reasons. */
UCI_INLINE bool uci_memtype_is_host_only_now(const uci_context_t *context, const ucp_request_param_t *param)
{
    return context->host_only && !(param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE);
}

/** Is this the host's memory? */
UCI_INLINE bool uci_memtype_is_host(const uci_context_t *context, const void *buffer, size_t count,
                                    const ucp_request_param_t *param)
{
    return uci_likely(uci_memtype_is_host_fast(context, param)) ||
           (uci_memtype(context, buffer, count, param) == UCS_MEMORY_TYPE_HOST);
}

#endif
