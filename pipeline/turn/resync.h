/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Asking again. UCX delivers active messages reliably, so one is lost only when its content arrives damaged: then it is dropped, and
 * both sides ask, after a short while, for whatever is due; and each second or more for what has not come without any damage. Also
 * here: sends that nobody has received for long are completed from a copy.
 */
#ifndef UCI_RESYNC_H_
#define UCI_RESYNC_H_

#include "base/worker_state.h"

/** How often, of time and of turns of progress, it is looked whether it is time to ask */
#define UCI_RESYNC_CHECK_NS 10000000ul
#define UCI_RESYNC_POLLS    256

/** Ask now, if it is time. Called from progress while operations are active. */
void uci_resync_progress(uci_worker_t *worker);

/** @return when that has something to do, if nothing arrives; UINT64_MAX: never. */
uint64_t uci_resync_due(const uci_worker_t *worker);

#endif
