/* SPDX-License-Identifier: BSD-3-Clause */
#include "quiet.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static const int uci_quiet_signals[UCI_QUIET_SIGNALS] = {SIGPIPE, SIGXFSZ};

void uci_quiet_begin(uci_quiet_t *quiet_p)
{
    sigset_t held, pending;
    unsigned i;

    sigemptyset(&held);
    sigpending(&pending);
    for (i = 0; i < UCI_QUIET_SIGNALS; ++i) {
        sigaddset(&held, uci_quiet_signals[i]);
        quiet_p->was_pending[i] = sigismember(&pending, uci_quiet_signals[i]) == 1;
    }
    pthread_sigmask(SIG_BLOCK, &held, &quiet_p->mask);
}

/* What has come of our writing is taken, and what was there before is left */
static void uci_quiet_take(int number)
{
    static const struct timespec now = {0};
    sigset_t pending, one;

    sigpending(&pending);
    if (sigismember(&pending, number) == 1) {
        sigemptyset(&one);
        sigaddset(&one, number);
        (void)sigtimedwait(&one, NULL, &now);
    }
}

void uci_quiet_end(const uci_quiet_t *quiet)
{
    int saved_errno = errno;
    unsigned i;

    for (i = 0; i < UCI_QUIET_SIGNALS; ++i) {
        if (!quiet->was_pending[i]) {
            uci_quiet_take(uci_quiet_signals[i]);
        }
    }
    pthread_sigmask(SIG_SETMASK, &quiet->mask, NULL);
    errno = saved_errno;
}
