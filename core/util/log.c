/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"
#include "process.h"
#include "quiet.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UCI_LOG_LINE_MAX 4096
#define UCI_LOG_CUT      "..." /* ends the text of a line that was too long */

#define UCI_LOG_ABORT_SECONDS 5 /* for which a thread that ends the process waits for another one that does */

uci_log_level_t uci_log_level = UCI_LOG_WARN;

const char *const uci_log_level_names[] = {"fatal", "error", "warn", "info", "debug", "trace", NULL};

static const char *const uci_log_tags[] = {"FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

static void (*uci_log_abort_func)(void);

static size_t uci_log_prefix(char *line, size_t size, const char *file, unsigned number, uci_log_level_t level)
{
    const char *slash = strrchr(file, '/');
    struct timespec now;
    int length;

    clock_gettime(CLOCK_REALTIME, &now);
    length = snprintf(line, size, "[%ld.%06ld] [%s:%d:%d] %s:%u  UCI %-5s ", (long)now.tv_sec, now.tv_nsec / 1000,
                      uci_process_host(), (int)getpid(), (int)syscall(SYS_gettid), (slash == NULL) ? file : slash + 1,
                      number, uci_log_tags[level]);
    return uci_min((size_t)uci_max(length, 0), size - 1);
}

/* A line stays one line, and a damaged string cannot drive the terminal. */
static void uci_log_blank_controls(char *text, size_t length)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if (((unsigned char)text[i] < ' ') || (text[i] == 0x7f)) {
            text[i] = ' ';
        }
    }
}

void uci_log_print(const char *file, unsigned line, uci_log_level_t level, const char *fmt, ...)
{
    int saved_errno = errno;
    char text[UCI_LOG_LINE_MAX];
    size_t prefix, room, length;
    uci_quiet_t quiet;
    ssize_t written;
    int ret;
    va_list ap;

    room   = sizeof(text) - 1; /* one byte is kept for the newline */
    prefix = uci_log_prefix(text, room, file, line, level);
    room -= prefix;

    errno = saved_errno; /* for %m */
    va_start(ap, fmt);
    ret = vsnprintf(text + prefix, room, fmt, ap);
    va_end(ap);

    length = (size_t)uci_max(ret, 0);
    if (length >= room) {
        length = room - 1;
        if (length >= strlen(UCI_LOG_CUT)) {
            /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): written by its length */
            memcpy(text + prefix + length - strlen(UCI_LOG_CUT), UCI_LOG_CUT, strlen(UCI_LOG_CUT));
        }
    }

    length += prefix;
    uci_log_blank_controls(text, length);
    text[length++] = '\n';

    uci_quiet_begin(&quiet);
    do {
        written = write(STDERR_FILENO, text, length);
    } while ((written < 0) && (errno == EINTR));
    uci_quiet_end(&quiet);

    errno = saved_errno;
}

void uci_log_at_abort(void (*func)(void))
{
    __atomic_store_n(&uci_log_abort_func, func, __ATOMIC_RELEASE);
}

/* Another thread may be at it: it ends the process when all is written. What it needs may be ours, though */
static void uci_log_wait_for_abort(void)
{
    static long first;
    long none = 0, self = syscall(SYS_gettid);

    if (!__atomic_compare_exchange_n(&first, &none, self, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        (none != self)) {
        sleep(UCI_LOG_ABORT_SECONDS);
    }
}

void uci_log_abort(void)
{
    /* Taken out before it is called: an error inside it must not call it again. */
    void (*func)(void);

    uci_log_wait_for_abort();
    func = __atomic_exchange_n(&uci_log_abort_func, NULL, __ATOMIC_ACQ_REL);
    if (func != NULL) {
        func();
    }
    abort();
}
