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
#include "next_open.h"

#include <errno.h>
#include <stdio.h>
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
    const char *text = getenv("LATE_CARD");
    long own         = twin_of(getenv("UCI_TWINS"));

    if ((text == NULL) || (own < 0)) {
        return;
    }
    if (sscanf(text, "%ld,%ld", &twin, &late_ms) != 2) {
        fprintf(stderr, "late_card: LATE_CARD=%s is not TWIN,MILLISECONDS\n", text);
        exit(2);
    }
    is_late = (twin == own);
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
    va_list args;
    int fd;

    if (is_denied(path, flags)) {
        ++denied;
        errno = ENOENT;
        return -1;
    }
    va_start(args, flags);
    fd = next_open("open64", path, flags, args);
    va_end(args);
    return fd;
}

static __attribute__((destructor)) void end(void)
{
    if (denied > 0) {
        fprintf(stderr, "late_card: %ld times no card\n", denied);
    }
}
