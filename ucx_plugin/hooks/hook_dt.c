/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include <stdlib.h>

#include "data/buffer.h"
#include "util/log.h"

static uci_generic_dt_t *uci_hook_dt_lookup(ucp_datatype_t datatype)
{
    return uci_handles_find(&uci_datatypes, (const void *)(uintptr_t)datatype);
}

/* UCX does not tell what a datatype's functions are: remember them */
ucs_status_t uci_plugin_dt_create(const ucp_generic_dt_ops_t *ops, void *context, ucp_datatype_t *datatype_p)
{
    uci_generic_dt_t *generic;
    ucs_status_t status;

    status = uci_ucp.dt_create_generic(ops, context, datatype_p);
    if (status != UCS_OK) {
        return status;
    }
    generic = malloc(sizeof(*generic));
    if (generic != NULL) {
        *generic = (uci_generic_dt_t){.ops = *ops, .context = context};
    }
    if ((generic == NULL) || !uci_handles_add(&uci_datatypes, (const void *)(uintptr_t)*datatype_p, generic)) {
        uci_error("failed to remember a datatype");
        free(generic);
        uci_ucp.dt_destroy(*datatype_p);
        return UCS_ERR_NO_MEMORY;
    }
    uci_buffer_generic_lookup = uci_hook_dt_lookup;
    return UCS_OK;
}

void uci_plugin_dt_destroy(ucp_datatype_t datatype)
{
    free(uci_handles_remove(&uci_datatypes, (const void *)(uintptr_t)datatype));
    uci_ucp.dt_destroy(datatype);
}

UCI_EXPORT ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops, void *context,
                                              ucp_datatype_t *datatype_p)
{
    UCI_HOOK();
    return uci_plugin_dt_create(ops, context, datatype_p);
}

UCI_EXPORT void ucp_dt_destroy(ucp_datatype_t datatype)
{
    UCI_HOOK();
    uci_plugin_dt_destroy(datatype);
}
