/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a worker shows of itself in the live file of its process (UCI_LIVE) beside its counters: peers, memory in use, and whom it
 * waits for. Written now and then by who makes progress in it.
 */
#ifndef UCI_GAUGES_H_
#define UCI_GAUGES_H_

#include "base/worker_state.h"

#define UCI_GAUGES_NS 100000000ul /**< between two times */

/** Write them, if that was long ago and there is a live file. Called now and then by who is in the worker. */
void uci_gauges_refresh(uci_worker_t *worker);

#endif
