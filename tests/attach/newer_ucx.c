/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands before libucp as one that is newer than the headers here: its structures have a member more at their end, named by the
 * mask's last bit. What it finds there is kept for the program (newer.c).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <ucp/api/ucp.h>

#define NEWER_FIELD (1ull << 63)

uint64_t newer_init, newer_ep, newer_modify, newer_send; /* what the last call's newer member was; 1: not named */

static void look(uint64_t *found, uint64_t mask, const void *end)
{
    *found = 1;
    if (mask & NEWER_FIELD) {
        memcpy(found, end, sizeof(*found));
    }
}

#define NEXT(_name) ((__typeof__(&_name))dlsym(RTLD_NEXT, #_name))

ucs_status_t ucp_init_version(unsigned api_major_version, unsigned api_minor_version, const ucp_params_t *params,
                              const ucp_config_t *config, ucp_context_h *context_p)
{
    look(&newer_init, params->field_mask, params + 1);
    return NEXT(ucp_init_version)(api_major_version, api_minor_version, params, config, context_p);
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    look(&newer_ep, params->field_mask, params + 1);
    return NEXT(ucp_ep_create)(worker, params, ep_p);
}

ucs_status_ptr_t ucp_ep_modify_nb(ucp_ep_h ep, const ucp_ep_params_t *params)
{
    look(&newer_modify, params->field_mask, params + 1);
    return NEXT(ucp_ep_modify_nb)(ep, params);
}

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    /* the mask of this one has 32 bits */
    look(&newer_send, (param->op_attr_mask & (1u << 31)) ? NEWER_FIELD : 0, param + 1);
    return NEXT(ucp_tag_send_nbx)(ep, buffer, count, tag, param);
}
