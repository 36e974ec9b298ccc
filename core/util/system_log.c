/* SPDX-License-Identifier: BSD-3-Clause */
#include "system_log.h"
#include "process.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

#define UCI_SYSTEM_LOG_LENGTH 1024

static pthread_mutex_t uci_system_log_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    uint64_t begin; /* of this period; 0: there was no line yet */
    unsigned lines; /* in it */
    unsigned long dropped;
    pid_t pid; /* whose drops these are */
} uci_system_log_state;

static void uci_system_log_tell_dropped(void)
{
    if ((uci_system_log_state.dropped > 0) && (uci_system_log_state.pid == getpid())) {
        syslog(LOG_USER | LOG_WARNING, "UCI: %lu more lines of this process were left out",
               uci_system_log_state.dropped);
        uci_system_log_state.dropped = 0;
    }
}

/* @return true if one more line may be written */
static bool uci_system_log_take(void)
{
    static bool registered;
    uint64_t now = uci_process_time_ns();

    if ((uci_system_log_state.begin == 0) || (now - uci_system_log_state.begin >= UCI_SYSTEM_LOG_PERIOD)) {
        uci_system_log_tell_dropped();
        uci_system_log_state.begin = now;
        uci_system_log_state.lines = 0;
    }
    if (uci_system_log_state.lines < UCI_SYSTEM_LOG_LINES) {
        ++uci_system_log_state.lines;
        return true;
    }
    ++uci_system_log_state.dropped;
    uci_system_log_state.pid = getpid();
    if (!registered) {
        registered = true;
        atexit(uci_system_log_tell_dropped);
    }
    return false;
}

void uci_system_log(const char *format, ...)
{
    char text[UCI_SYSTEM_LOG_LENGTH];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pthread_mutex_lock(&uci_system_log_lock);
    if (uci_system_log_take()) {
        syslog(LOG_USER | LOG_WARNING, "UCI: %s", text);
    }
    pthread_mutex_unlock(&uci_system_log_lock);
}
