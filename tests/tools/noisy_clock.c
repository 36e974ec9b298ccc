/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A machine that other jobs have more of at one moment than at the next, as a process that measures there sees it: preloaded,
 * the monotonic clock runs up to 64 times as fast, at a rate that is drawn anew each millisecond.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t period_ns = 1000000;

static __thread struct {
    uint64_t real_ns, shown_ns, drawn_ns;
    unsigned rate;
} noisy; /* a thread's own: it only compares its own times */

static void noisy_advance(uint64_t real_ns)
{
    if (noisy.real_ns == 0) {
        noisy.shown_ns = real_ns;
    } else {
        noisy.shown_ns += (real_ns - noisy.real_ns) * noisy.rate;
    }
    noisy.real_ns = real_ns;
    if ((noisy.rate == 0) || (real_ns - noisy.drawn_ns > period_ns)) {
        noisy.rate     = 1u << ((unsigned)rand() % 7);
        noisy.drawn_ns = real_ns;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*original)(clockid_t, struct timespec *);
    int ret;

    if (original == NULL) {
        original = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    ret = original(clock, now);
    if ((ret == 0) && (clock == CLOCK_MONOTONIC)) {
        noisy_advance(((uint64_t)now->tv_sec * 1000000000) + (uint64_t)now->tv_nsec);
        now->tv_sec  = (time_t)(noisy.shown_ns / 1000000000);
        now->tv_nsec = (long)(noisy.shown_ns % 1000000000);
    }
    return ret;
}
