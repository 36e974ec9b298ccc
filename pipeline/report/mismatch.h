/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * For debuggers: a place to stop at when a message did not arrive as it was sent, and UCI_ON_MISMATCH=pause, which waits for one.
 */
#ifndef UCI_MISMATCH_H_
#define UCI_MISMATCH_H_

#include "util/types.h"

/** Does nothing. Exported: `break uci_breakpoint_mismatch` stops in the thread and the process that has found the damage, when all that is
 *  in its record is known. @param verdict, cause  as in the record. */
void uci_breakpoint_mismatch(const char *verdict, const char *cause);

/** Exported: a debugger sets it to another value than 0, and a process that waits goes on. It is 0 again then. */
extern volatile int uci_mismatch_go;

/** A record is complete: call uci_breakpoint_mismatch(), then wait if UCI_ON_MISMATCH says so. */
void uci_mismatch_stop(const char *verdict, const char *cause);

#endif
