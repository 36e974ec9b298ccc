/* SPDX-License-Identifier: BSD-3-Clause
 *
 * To be preloaded: for libucx_integrity, and for nobody else, time passes eight times as fast. A program with faults waits most of its time until what was
 * lost is asked for. Only for programs of one process, in one thread: there nobody is away while the other side's time runs out.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define RATE 8
#define NS   1000000000ul

static int (*real_clock_gettime)(clockid_t id, struct timespec *time);
static uintptr_t library, library_size; /* its code */

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    unsigned i;

    if (strstr(info->dlpi_name, "libucx_integrity.so") == NULL) {
        return 0;
    }
    for (i = 0; i < info->dlpi_phnum; ++i) {
        if ((info->dlpi_phdr[i].p_type == PT_LOAD) && (info->dlpi_phdr[i].p_flags & PF_X)) {
            library      = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            library_size = info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    uint64_t ns;
    int result;

    if (real_clock_gettime == NULL) {
        dl_iterate_phdr(find_library, NULL);
        real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    result = real_clock_gettime(id, time);
    if ((id == CLOCK_MONOTONIC) && ((uintptr_t)__builtin_return_address(0) - library < library_size)) {
        ns            = (((uint64_t)time->tv_sec * NS) + (uint64_t)time->tv_nsec) * RATE;
        time->tv_sec  = (time_t)(ns / NS);
        time->tv_nsec = (long)(ns % NS);
    }
    return result;
}
