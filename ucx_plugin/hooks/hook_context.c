/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include <stdlib.h>

#include "util/log.h"
#include "base/memtype.h"
#include "params.h"
#include "base/request.h"
#include "rma/rma.h"
#include "settings/settings.h"
#include "base/signed.h"
#include "attach/tcp_segment.h"
#include "attach/ucx_config.h"

/* What UCI verifies: a context with any of these is its own */
#define UCI_HOOK_FEATURES \
    (UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64)

/* One that can't say knows the host's alone */
static void uci_hook_learn_memory_types(uci_context_t *context)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};

    if (uci_ucp.context_query(context->ucp, &attr) != UCS_OK) {
        attr.memory_types = 0;
    }
    context->host_only  = uci_memtype_is_host_only(attr.memory_types);
    context->short_way  = context->host_only && (uci_signed_ops == NULL);
    context->keeps_host = uci_memtype_keeps_host(attr.memory_types);
}

static void uci_hook_learn_request_size(ucp_context_h context)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};

    if (uci_ucp.context_query(context, &attr) == UCS_OK) {
        uci_request_set_ucx_size(attr.request_size);
    }
}

static ucs_status_t uci_hook_context_add(ucp_context_h ucp, const ucp_params_t *params, const ucp_config_t *config)
{
    uci_context_t *context = calloc(1, sizeof(*context));
    uci_ucx_thresholds_t thresholds;

    if (context == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    context->ucp    = ucp;
    context->rma    = uci_rma_regions_create();
    context->wakeup = (params->features & UCP_FEATURE_WAKEUP) != 0;
    uci_hook_learn_memory_types(context);
    if (params->field_mask & UCP_PARAM_FIELD_REQUEST_SIZE) {
        context->request_size = params->request_size;
    }
    if (params->field_mask & UCP_PARAM_FIELD_REQUEST_INIT) {
        context->request_init = params->request_init;
    }
    if (params->field_mask & UCP_PARAM_FIELD_REQUEST_CLEANUP) {
        context->request_cleanup = params->request_cleanup;
    }
    uci_ucx_config_thresholds(config, &thresholds);
    context->buffered_max      = thresholds.eager;
    context->buffered_fast_max = thresholds.eager_fast;
    context->rndv_is_set       = thresholds.is_set;
    if (!uci_handles_add(&uci_contexts, ucp, context)) {
        uci_rma_regions_destroy(context->rma);
        free(context);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

static void uci_hook_context_forget(ucp_context_h ucp)
{
    uci_context_t *context = uci_handles_remove(&uci_contexts, ucp);

    if (context != NULL) {
        uci_rma_regions_destroy(context->rma);
        free(context);
    }
}

static ucs_status_t uci_hook_init(unsigned api_major_version, unsigned api_minor_version, const ucp_params_t *params,
                                  const ucp_config_t *config, ucp_context_h *context_p)
{
    uci_init_params_t ours;
    ucp_context_h context; /* a program may look at *context_p instead of the status: it is written when all is done */
    ucs_status_t status;

    if ((uci_settings.mode == UCI_MODE_OFF) || !(params->field_mask & UCP_PARAM_FIELD_FEATURES) ||
        !(params->features & UCI_HOOK_FEATURES)) {
        return uci_ucp.init_version(api_major_version, api_minor_version, params, config, context_p);
    }

    /* active messages carry chunks and acknowledgements, RMA the repairs, tag messages what is not in the host's memory (stage.h) */
    uci_params_copy_init(&ours, params);
    ours.ucx.features |= UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA;
    status = uci_ucx_config_init(api_major_version, api_minor_version, &ours.ucx, config, &context);
    if (status != UCS_OK) {
        return status;
    }

    uci_hook_learn_request_size(context);
    uci_tcp_segment_widen(context);
    status = uci_hook_context_add(context, params, config);
    if (status != UCS_OK) {
        uci_error("failed to set up UCI for a UCX context");
        uci_ucp.cleanup(context);
        return status;
    }
    *context_p = context;
    return UCS_OK;
}

UCI_EXPORT ucs_status_t ucp_init_version(unsigned api_major_version, unsigned api_minor_version,
                                         const ucp_params_t *params, const ucp_config_t *config,
                                         ucp_context_h *context_p)
{
    ucs_status_t status;

    UCI_HOOK();
    uci_plugin_claim();
    status = uci_hook_init(api_major_version, api_minor_version, params, config, context_p);
    uci_module_refresh();
    return status;
}

uci_context_t *uci_plugin_context_open(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_config_t *config;
    ucp_context_h ucp;
    ucs_status_t status;

    status = uci_ucp.config_read(NULL, NULL, &config);
    if (status == UCS_OK) {
        status = uci_hook_init(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &ucp);
        uci_ucp.config_release(config);
    }
    if (status != UCS_OK) {
        uci_error("failed to make a UCX context: %s", uci_ucp.status_string(status));
        return NULL;
    }
    return uci_handles_find(&uci_contexts, ucp);
}

void uci_plugin_context_close(uci_context_t *context)
{
    ucp_context_h ucp = context->ucp;

    uci_hook_context_forget(ucp);
    uci_ucp.cleanup(ucp);
}

UCI_EXPORT void ucp_cleanup(ucp_context_h context)
{
    UCI_HOOK();
    uci_hook_context_forget(context);
    uci_ucp.cleanup(context);
}

UCI_EXPORT ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
    ucs_status_t status;

    UCI_HOOK();
    status = uci_ucp.context_query(context, attr);
    if ((status == UCS_OK) && (uci_settings.mode != UCI_MODE_OFF) && (attr->field_mask & UCP_ATTR_FIELD_REQUEST_SIZE)) {
        /* of all contexts, so that a request in a user's memory always has our word in front of UCX's part */
        uci_request_set_ucx_size(attr->request_size);
        attr->request_size = uci_request_user_size();
    }
    return status;
}
