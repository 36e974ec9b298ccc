/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of UCI's own that can't be written end no program: writing to a pipe whose reader has gone brings SIGPIPE, beyond a limit (RLIMIT_FSIZE)
 * SIGXFSZ, and both would. Held back from the thread that writes, the call says EPIPE or EFBIG.
 */
#ifndef UCI_QUIET_H_
#define UCI_QUIET_H_

#include <signal.h>
#include <stdbool.h>

#define UCI_QUIET_SIGNALS 2

typedef struct uci_quiet {
    sigset_t mask;                       /**< of the thread, before */
    bool was_pending[UCI_QUIET_SIGNALS]; /**< these are somebody else's, and stay */
} uci_quiet_t;

/** From here to uci_quiet_end() in the same thread. May be nested. Keeps errno; async-signal-safe. */
void uci_quiet_begin(uci_quiet_t *quiet_p);
void uci_quiet_end(const uci_quiet_t *quiet);

#endif
