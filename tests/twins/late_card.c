/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A file system that shows new files late, as NFS does: preloaded, in front of libc's open64(), with which UCI opens files, it says for a
 * while that there is no card of a twin.
 *
 *     LATE_CARD=TWIN,MILLISECONDS
 *
 * The processes of that twin find no file *.twin so long after the first that they look for. Without the variable, and in all other processes,
 * open64() is libc's. At its end the process says on standard error how often it did not find one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int open64(const char *path, int flags, ...);

static long twin, late_ms, denied;
static int is_late;

static long now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static __attribute__((constructor)) void begin(void)
{
    const char *text = getenv("LATE_CARD"), *twins = getenv("UCI_TWINS");
    const char *own = (twins != NULL) ? strrchr(twins, ',') : NULL;

    if ((text == NULL) || (own == NULL)) {
        return;
    }
    if (sscanf(text, "%ld,%ld", &twin, &late_ms) != 2) {
        fprintf(stderr, "late_card: LATE_CARD=%s is not TWIN,MILLISECONDS\n", text);
        exit(2);
    }
    is_late = (twin == atol(own + 1));
}

static int is_card(const char *path)
{
    size_t length = strlen(path);

    return (length > 5) && (strcmp(path + length - 5, ".twin") == 0);
}

static int is_denied(const char *path, int flags)
{
    static long first;

    if (!is_late || (flags & O_CREAT) || !is_card(path)) {
        return 0;
    }
    if (first == 0) {
        first = now_ms();
    }
    return now_ms() < first + late_ms;
}

/* Others may open files before our constructor has run */
int open64(const char *path, int flags, ...)
{
    static int (*right_open)(const char *path, int flags, ...);
    mode_t mode = 0;
    va_list args;

    va_start(args, flags);
    if (flags & O_CREAT) {
        mode = va_arg(args, mode_t);
    }
    va_end(args);
    if (is_denied(path, flags)) {
        ++denied;
        errno = ENOENT;
        return -1;
    }
    if (right_open == NULL) {
        right_open = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    }
    return right_open(path, flags, mode);
}

static __attribute__((destructor)) void end(void)
{
    if (denied > 0) {
        fprintf(stderr, "late_card: %ld times no card\n", denied);
    }
}
