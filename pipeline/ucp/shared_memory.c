/* SPDX-License-Identifier: BSD-3-Clause */
#include "shared_memory.h"

#include <stdint.h>
#include <string.h>

#include "util/process.h"

bool uci_shared_memory_is_possible(const char *transports)
{
    return (strstr(transports, "posix") != NULL) || (strstr(transports, "sysv") != NULL) ||
           (strstr(transports, "self") != NULL);
}

static bool uci_shared_memory_is_aligned(const void *address)
{
    return (uintptr_t)address % UCI_CACHE_LINE == 0;
}

ucs_status_t uci_shared_memory_create(ucp_context_h ucp, size_t length, uci_shared_memory_t *memory_p)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                   .address = NULL,
                                   .length  = length,
                                   .flags   = UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_NONBLOCK};
    ucp_mem_attr_t attr         = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    uci_shared_memory_t memory;
    ucs_status_t status;

    status = uci_ucp.mem_map(ucp, &params, &memory.memh);
    if (status != UCS_OK) {
        return status;
    }
    status = uci_ucp.mem_query(memory.memh, &attr);
    if (status != UCS_OK) {
        goto err_unmap;
    }
    if (!uci_shared_memory_is_aligned(attr.address)) {
        status = UCS_ERR_INVALID_ADDR;
        goto err_unmap;
    }
    status = uci_ucp.rkey_pack(ucp, memory.memh, &memory.rkey, &memory.rkey_length);
    if (status != UCS_OK) {
        goto err_unmap;
    }
    memory.address = attr.address;
    *memory_p      = memory;
    return UCS_OK;

err_unmap:
    uci_ucp.mem_unmap(ucp, memory.memh);
    return status;
}

void uci_shared_memory_cleanup(ucp_context_h ucp, uci_shared_memory_t *memory)
{
    if (memory->address != NULL) {
        uci_ucp.rkey_buffer_release(memory->rkey);
        uci_ucp.mem_unmap(ucp, memory->memh);
        memory->address = NULL;
    }
}

bool uci_shared_memory_is_mapped(const void *address, size_t length)
{
    return uci_shared_memory_is_aligned(address) && uci_process_is_shared(address, length);
}
