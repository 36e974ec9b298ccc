/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What loops for ever is ended by SIGPROF after so much processor time of its own: real time would say how busy the machine is.
 */
#ifndef CPU_LIMIT_H_
#define CPU_LIMIT_H_

#include <signal.h>
#include <sys/time.h>

/** From now on. @param seconds  of processor time; 0: no limit. */
static inline void cpu_limit(unsigned seconds)
{
    struct itimerval limit = {.it_value.tv_sec = seconds};

    setitimer(ITIMER_PROF, &limit, NULL);
}

#endif
