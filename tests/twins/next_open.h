/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What libraries in front of libc's open() and open64() pass on.
 */
#ifndef UCI_TESTS_TWINS_NEXT_OPEN_H_
#define UCI_TESTS_TWINS_NEXT_OPEN_H_

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef int (*open_func_t)(const char *path, int flags, ...);

/* @param name  "open" or "open64". @param args  of the caller's, behind flags. */
static int next_open(const char *name, const char *path, int flags, va_list args)
{
    static open_func_t func;
    mode_t mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;

    if (func == NULL) {
        func = (open_func_t)dlsym(RTLD_NEXT, name);
    }
    return func(path, flags, mode);
}

/* @return the N of UCI_TWINS=FOLDER,N/OF; -1: there is none. */
static long twin_of(const char *twins)
{
    const char *own = (twins != NULL) ? strrchr(twins, ',') : NULL;

    return (own != NULL) ? atol(own + 1) : -1;
}

#endif
