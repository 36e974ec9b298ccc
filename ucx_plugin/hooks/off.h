/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * UCI_MODE=off: all goes to UCX as it comes. With faults it shows what happens without protection.
 */
#ifndef UCI_OFF_H_
#define UCI_OFF_H_

#include "ucp/ucp_api.h"

/** ucp_tag_send_nbx() or ucp_tag_send_sync_nbx() */
typedef __typeof__(ucp_tag_send_nbx) uci_hook_send_func_t;

/** Send by UCX's own function; where faults are injected maybe a damaged copy, which stays until the process ends. */
ucs_status_ptr_t uci_off_send(uci_hook_send_func_t *send, ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                              const ucp_request_param_t *param);

#endif
