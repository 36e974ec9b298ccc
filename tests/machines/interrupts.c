/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded: a signal every millisecond, whose handler asks for no restart of system calls. INTERRUPTS_COUNT names a file for their number.
 */
#include <signal.h>
#include <sys/time.h>

#include "count.h"

static volatile unsigned long interrupts;

static void on_alarm(int number)
{
    ++interrupts;
}

__attribute__((constructor)) static void begin(void)
{
    struct itimerval every  = {{0, 1000}, {0, 1000}};
    struct sigaction action = {.sa_handler = on_alarm};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

__attribute__((destructor)) static void end(void)
{
    write_count("INTERRUPTS_COUNT", interrupts);
}
