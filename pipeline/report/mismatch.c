/* SPDX-License-Identifier: BSD-3-Clause */
#include "mismatch.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "util/log.h"
#include "util/process.h"
#include "settings/settings.h"

#define UCI_MISMATCH_LOOK_NS 50000000 /* from one look at uci_mismatch_go to the next */

__attribute__((visibility("default"))) volatile int uci_mismatch_go;

__attribute__((visibility("default"), noinline)) void uci_breakpoint_mismatch(const char *verdict, const char *cause)
{
    __asm__ volatile("" ::"r"(verdict), "r"(cause) : "memory"); /* or calls of it would be left out */
}

static void uci_mismatch_continued(int number)
{
    uci_mismatch_go = 1;
}

static void uci_mismatch_wait(void)
{
    const struct timespec time     = {.tv_nsec = UCI_MISMATCH_LOOK_NS};
    const struct sigaction handler = {.sa_handler = uci_mismatch_continued, .sa_flags = SA_RESTART};
    struct sigaction before;
    bool handled = (sigaction(SIGCONT, &handler, &before) == 0);

    while (!uci_mismatch_go) {
        nanosleep(&time, NULL);
    }
    uci_mismatch_go = 0;
    if (handled) {
        sigaction(SIGCONT, &before, NULL);
    }
}

void uci_mismatch_stop(const char *verdict, const char *cause)
{
    uci_breakpoint_mismatch(verdict, cause);
    if (uci_settings.on_mismatch == UCI_ON_MISMATCH_PAUSE) {
        uci_warn(
                "%s waits for a debugger (UCI_ON_MISMATCH=pause), on host %s: gdb -p %d; it goes on after 'set var uci_mismatch_go = 1' "
                "and 'detach' there, or after kill -CONT %d",
                uci_process_name(), uci_process_host(), (int)getpid(), (int)getpid());
        uci_mismatch_wait();
        uci_warn("%s goes on", uci_process_name());
    }
}
