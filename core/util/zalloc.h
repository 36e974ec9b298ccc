/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Zeroed memory for what comes and goes with each message.
 */
#ifndef UCI_ZALLOC_H_
#define UCI_ZALLOC_H_

#include <stdlib.h>
#include <string.h>

#include "types.h"

/** What is larger takes memory only where it is written to, as calloc() has it from the kernel. */
#define UCI_ZALLOC_TOUCHED (64ul << 10)

/**
 * As calloc(1, @a size), for up to 1 KiB about ten times faster: glibc's calloc takes nothing from the thread's cache, which malloc and free
 * use (before 2.41). @return zeroed memory, to be freed by free(), or NULL. Thread safe.
 */
UCI_INLINE void *uci_zalloc(size_t size)
{
    void *memory;

    if (size > UCI_ZALLOC_TOUCHED) {
        return calloc(1, size);
    }
    memory = malloc(size);
#ifndef __clang_analyzer__
    __asm__("" : "+r"(memory)); /* else the compiler makes a calloc of it */
#endif
    if (memory != NULL) {
        memset(memory, 0, size);
    }
    return memory;
}

#endif
