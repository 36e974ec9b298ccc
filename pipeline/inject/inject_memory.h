/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Faults where bytes lie in memory that others share: boxes, slots, spans, and what waits in this process.
 */
#ifndef UCI_INJECT_MEMORY_H_
#define UCI_INJECT_MEMORY_H_

#include <stdbool.h>

/** Take the places at the edges, or leave them. @param here  faults are injected in this process. @param somewhere  in one of the job's. */
void uci_inject_memory_install(bool here, bool somewhere);

#endif
