/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies of structures that a program hands to UCX, so that UCX can be told something else. UCX appends members, and tells by
 * a mask which are there: the program and libucp may know more of them, or fewer, than the headers UCI was built with. What
 * UCX 1.13 has is always there. If the mask has other bits, something is behind it: how much is not known, so that a copy
 * has all that can be read there, up to UCI_PARAMS_ROOM bytes. UCX looks at what the mask names only.
 */
#ifndef UCI_PARAMS_H_
#define UCI_PARAMS_H_

#include <ucp/api/ucp.h>

#include "util/types.h"

/** For members that came after 1.13; 1.23 has 8 bytes of them in ucp_params_t, 24 in ucp_request_param_t. */
#define UCI_PARAMS_ROOM 256

typedef union uci_init_params {
    ucp_params_t ucx;
    char bytes[sizeof(ucp_params_t) + UCI_PARAMS_ROOM];
} uci_init_params_t;

typedef union uci_ep_params {
    ucp_ep_params_t ucx;
    char bytes[sizeof(ucp_ep_params_t) + UCI_PARAMS_ROOM];
} uci_ep_params_t;

typedef union uci_worker_params {
    ucp_worker_params_t ucx;
    char bytes[sizeof(ucp_worker_params_t) + UCI_PARAMS_ROOM];
} uci_worker_params_t;

typedef union uci_listener_params {
    ucp_listener_params_t ucx;
    char bytes[sizeof(ucp_listener_params_t) + UCI_PARAMS_ROOM];
} uci_listener_params_t;

typedef union uci_request_params {
    ucp_request_param_t ucx;
    char bytes[sizeof(ucp_request_param_t) + UCI_PARAMS_ROOM];
} uci_request_params_t;

/** @a copy has what @a params has, newer members included, and zeros behind. */
void uci_params_copy_init(uci_init_params_t *copy, const ucp_params_t *params);
void uci_params_copy_ep(uci_ep_params_t *copy, const ucp_ep_params_t *params);
void uci_params_copy_worker(uci_worker_params_t *copy, const ucp_worker_params_t *params);
void uci_params_copy_listener(uci_listener_params_t *copy, const ucp_listener_params_t *params);
void uci_params_copy_request(uci_request_params_t *copy, const ucp_request_param_t *params);

/** Does UCX refuse to close it by force? What a server does not say of error handling its client has said. */
UCI_INLINE bool uci_params_are_unforced(const ucp_ep_params_t *params)
{
    if (params->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) {
        return params->err_mode == UCP_ERR_HANDLING_MODE_NONE;
    }
    return !(params->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST);
}

/** What UCX tells the program's handler of errors: user data take the place of its argument. */
UCI_INLINE void *uci_params_error_arg(const ucp_ep_params_t *params)
{
    return (params->field_mask & UCP_EP_PARAM_FIELD_USER_DATA) ? params->user_data : params->err_handler.arg;
}

UCI_INLINE bool uci_params_force(const ucp_request_param_t *param)
{
    return (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) && (param->flags & UCP_EP_CLOSE_FLAG_FORCE);
}

/** Copy what is readable of @a length bytes of the program's, whose end is not known; the first one is there. Zeros behind. */
void uci_params_read(char *dst, const char *src, size_t length);

#endif
