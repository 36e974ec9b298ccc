/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The two cores that a measurement between cores runs on, and its clock. A benchmark that lacks them says so, and ends.
 */
#ifndef UCI_TESTS_BENCH_TWO_CORES_H_
#define UCI_TESTS_BENCH_TWO_CORES_H_

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int cores[2];

/* @return seconds */
static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void bind_to(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0) {
        perror("binding to a core");
        exit(1);
    }
}

/* Two cores that this process may use */
static void find_cores(const char *program)
{
    int core, found = 0;
    cpu_set_t set;

    sched_getaffinity(0, sizeof(set), &set);
    for (core = 0; (core < CPU_SETSIZE) && (found < 2); ++core) {
        if (CPU_ISSET(core, &set)) {
            cores[found++] = core;
        }
    }
    if (found < 2) {
        fprintf(stderr, "%s: needs two cores; this process may use one\n", program);
        exit(1);
    }
}

#endif
