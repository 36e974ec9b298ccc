/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that others may reach: what is mapped is known by number, and keys of it tell which it is.
 */
#include "attach/plugin.h"

#include <stdlib.h>

#include "params.h"
#include "rma/rma.h"
#include "util/log.h"

/* Memory of the host's, which UCI can reach itself. @return whether @a attr tells where it is */
static bool uci_hook_is_reached(ucp_mem_h memh, ucp_mem_attr_t *attr)
{
    attr->field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH | UCP_MEM_ATTR_FIELD_MEM_TYPE;
    return (uci_ucp.mem_query(memh, attr) == UCS_OK) && (attr->mem_type == UCS_MEMORY_TYPE_HOST) && (attr->length > 0);
}

/* Newer headers than UCI's: memory that another process has exported lies elsewhere */
static bool uci_hook_is_imported(const ucp_mem_map_params_t *params)
{
    const uint64_t known = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                           UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_PROT |
                           UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;

    return (params->field_mask & ~known) != 0;
}

UCI_EXPORT ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh_p)
{
    uci_context_t *ours;
    ucp_mem_attr_t attr;
    ucs_status_t status;

    UCI_HOOK();
    status = uci_ucp.mem_map(context, params, memh_p);
    ours   = uci_handles_find(&uci_contexts, context);
    if ((status == UCS_OK) && (ours != NULL) && (ours->rma != NULL) && !uci_hook_is_imported(params) &&
        uci_hook_is_reached(*memh_p, &attr)) {
        uci_rma_region_add(ours->rma, *memh_p, attr.address, attr.length);
    }
    return status;
}

UCI_EXPORT ucs_status_t ucp_mem_unmap(ucp_context_h context, ucp_mem_h memh)
{
    uci_context_t *ours;

    UCI_HOOK();
    ours = uci_handles_find(&uci_contexts, context);
    if ((ours != NULL) && (ours->rma != NULL)) {
        uci_rma_region_remove(ours->rma, memh);
    }
    return uci_ucp.mem_unmap(context, memh);
}

UCI_EXPORT ucs_status_t ucp_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **rkey_buffer_p, size_t *size_p)
{
    uci_context_t *ours;
    ucs_status_t status;
    size_t size;
    void *key;

    UCI_HOOK();
    status = uci_ucp.rkey_pack(context, memh, rkey_buffer_p, size_p);
    ours   = uci_handles_find(&uci_contexts, context);
    if ((status != UCS_OK) || (ours == NULL) || (ours->rma == NULL)) {
        return status;
    }
    size = *size_p;
    key  = uci_rma_key_pack(ours->rma, memh, *rkey_buffer_p, &size);
    if ((key == NULL) || !uci_handles_add(&uci_rkey_buffers, key, key)) {
        free(key);
        return UCS_OK; /* what is done with it passes */
    }
    uci_ucp.rkey_buffer_release(*rkey_buffer_p);
    *rkey_buffer_p = key;
    *size_p        = size;
    return UCS_OK;
}

UCI_EXPORT void ucp_rkey_buffer_release(void *rkey_buffer)
{
    void *ours;

    UCI_HOOK();
    ours = uci_handles_remove(&uci_rkey_buffers, rkey_buffer);
    if (ours != NULL) {
        free(ours);
    } else {
        uci_ucp.rkey_buffer_release(rkey_buffer);
    }
}

/* UCX reads its own part. How long the program's buffer is nobody tells: what can be read is looked at */
static bool uci_hook_find_key(const void *rkey_buffer, uci_rma_packed_t *packed_p)
{
    size_t room = uci_rma_key_room(rkey_buffer);
    char copy[UCI_RMA_KEY_ROOM];

    uci_params_read(copy, rkey_buffer, room);
    return uci_rma_key_find(copy, room, packed_p);
}

/* By an endpoint that is not ours nobody asks whose key it is; by one made by socket address that is asked when the key is used */
UCI_EXPORT ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h ep, const void *rkey_buffer, ucp_rkey_h *rkey_p)
{
    uci_rma_packed_t packed;
    uci_rma_key_t *key;
    ucs_status_t status;

    UCI_HOOK();
    status = uci_ucp.ep_rkey_unpack(ep, rkey_buffer, rkey_p);
    if ((status != UCS_OK) || ((uci_plugin_ep(ep) == NULL) && (uci_plugin_sock(ep) == NULL)) ||
        !uci_hook_find_key(rkey_buffer, &packed)) {
        return status;
    }
    key = uci_rma_key_unpack(&packed);
    if ((key == NULL) || !uci_handles_add(&uci_rkeys, *rkey_p, key)) {
        free(key);
        uci_ucp.rkey_destroy(*rkey_p);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

UCI_EXPORT void ucp_rkey_destroy(ucp_rkey_h rkey)
{
    UCI_HOOK();
    free(uci_handles_remove(&uci_rkeys, rkey));
    uci_ucp.rkey_destroy(rkey);
}
