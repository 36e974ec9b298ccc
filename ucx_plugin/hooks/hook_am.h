/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Handlers of active messages: UCI keeps them, and calls them with what has been verified. UCX has one of ours instead.
 */
#ifndef UCI_HOOK_AM_H_
#define UCI_HOOK_AM_H_

#include "base/worker_state.h"

/** The worker passes through from now on: its handlers are UCX's. */
void uci_hook_am_give_back(uci_worker_t *worker);

#endif
