/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints made by socket address, and listeners.
 */
#ifndef UCI_HOOK_SOCK_H_
#define UCI_HOOK_SOCK_H_

#include "attach/plugin.h"
#include "conn/sock.h"

/** As ucp_ep_create(), by socket address or connection request, for a worker of UCI's. */
ucs_status_t uci_hook_sock_open(uci_worker_t *worker, const ucp_ep_params_t *params, ucp_err_handler_cb_t on_error,
                                ucp_ep_h *ep_p);

/** As ucp_ep_close_nbx(): the program closes it, which may wait. */
ucs_status_ptr_t uci_hook_sock_close(uci_sock_t *sock, const ucp_request_param_t *param);

/** It is one of a peer's, and the program closes it. @return false: it was not made by socket address. */
void uci_hook_sock_forget(ucp_ep_h ep);

/** The worker goes. */
void uci_hook_sock_end(uci_worker_t *worker);

#endif
