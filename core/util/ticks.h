/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Time stamps that cost a few nanoseconds: the processor's counter, which runs at one rate on all cores, sleep included (x86-64:
 * constant and nonstop time stamp counter, as all of today have; aarch64: the generic timer). What a tick is worth is found out when it is
 * asked for, from two readings of both clocks. Thread safe.
 */
#ifndef UCI_CORE_TICKS_H_
#define UCI_CORE_TICKS_H_

#include "process.h"
#include "types.h"

/** @return ticks since some time in the past; not 0. Not ordered against other instructions. */
UCI_INLINE uint64_t uci_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return uci_process_time_ns();
#endif
}

/** Both clocks at one time. */
typedef struct uci_ticks_mark {
    uint64_t ticks;
    uint64_t ns; /**< uci_process_time_ns() */
} uci_ticks_mark_t;

UCI_INLINE uci_ticks_mark_t uci_ticks_mark(void)
{
    return (uci_ticks_mark_t){.ticks = uci_ticks(), .ns = uci_process_time_ns()};
}

/** @param begin  earlier than @a now: the further, the better. @return uci_process_time_ns() at @a ticks. */
UCI_INLINE uint64_t uci_ticks_to_ns(uint64_t ticks, const uci_ticks_mark_t *begin, const uci_ticks_mark_t *now)
{
    double rate = (now->ticks > begin->ticks) ? (double)(now->ns - begin->ns) / (double)(now->ticks - begin->ticks) : 0;

    return now->ns - (uint64_t)((double)(int64_t)(now->ticks - ticks) * rate);
}

#endif
