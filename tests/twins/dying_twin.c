/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A twin that is killed while it is connected to: preloaded, in front of libc's open(), with which UCX opens the memory of another process.
 *
 *     DYING_TWIN=TWIN
 *
 * Who opens memory of a process of that twin, and is of another one, kills it first. Without the variable open() is libc's.
 */
#define _GNU_SOURCE
#include "next_open.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int open(const char *path, int flags, ...);

static long twin_of_process(int pid)
{
    static const char name[] = "UCI_TWINS=";
    char path[40], *words = NULL;
    size_t space = 0;
    long twin    = -1;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    file = fopen(path, "r");
    while ((file != NULL) && (getdelim(&words, &space, '\0', file) > 0)) {
        if (strncmp(words, name, sizeof(name) - 1) == 0) {
            twin = twin_of(words);
        }
    }
    free(words);
    if (file != NULL) {
        fclose(file);
    }
    return twin;
}

static void kill_twin(const char *path)
{
    const char *dying = getenv("DYING_TWIN");
    struct stat found;
    int pid, naps = 0;

    if ((dying != NULL) && (sscanf(path, "/proc/%d/fd/", &pid) == 1) && (atol(dying) != twin_of(getenv("UCI_TWINS"))) &&
        (atol(dying) == twin_of_process(pid))) {
        kill(pid, SIGKILL);
        while ((stat(path, &found) == 0) && (++naps < 1000)) { /* until its files are closed */
            usleep(1000);
        }
    }
}

int open(const char *path, int flags, ...)
{
    va_list args;
    int fd;

    kill_twin(path);
    va_start(args, flags);
    fd = next_open("open", path, flags, args);
    va_end(args);
    return fd;
}
