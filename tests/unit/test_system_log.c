/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The system's log, which is this test's own syslog().
 */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "util/process.h"
#include "util/system_log.h"

typedef struct log_lines {
    unsigned count;
    int priority;
    char last[256];
} log_lines_t;

static log_lines_t *lines; /* shared with children */

static void take_line(int priority, const char *format, va_list args)
{
    ++lines->count;
    lines->priority = priority;
    vsnprintf(lines->last, sizeof(lines->last), format, args);
}

void syslog(int priority, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    take_line(priority, format, args);
    va_end(args);
}

/* A clock that can be put forward: core's own is called through libc's */
static time_t later;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    now->tv_sec  = 1000 + later;
    now->tv_nsec = 0;
    return 0;
}

static void set_up(void)
{
    lines = mmap(NULL, sizeof(*lines), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(lines != MAP_FAILED);
}

TestSuite(system_log, .init = set_up);

Test(system_log, a_line)
{
    uci_system_log("message from rank %d", 3);
    cr_expect(lines->count == 1);
    cr_expect(lines->priority == (LOG_USER | LOG_WARNING));
    cr_expect_str_eq(lines->last, "UCI: message from rank 3");
}

Test(system_log, lines_are_limited_and_counted)
{
    unsigned i;

    for (i = 0; i < 100; ++i) {
        uci_system_log("line %u", i);
    }
    cr_expect(lines->count == UCI_SYSTEM_LOG_LINES);
    cr_expect_str_eq(lines->last, "UCI: line 9");
    later = 59;
    uci_system_log("too early");
    cr_expect(lines->count == UCI_SYSTEM_LOG_LINES);
    later = 60;
    uci_system_log("again");
    cr_expect(lines->count == UCI_SYSTEM_LOG_LINES + 2, "what was left out, and this");
    cr_expect_str_eq(lines->last, "UCI: again");
}

Test(system_log, the_end_of_a_process_tells_what_was_left_out)
{
    unsigned i;
    pid_t pid = fork();

    if (pid == 0) {
        for (i = 0; i < UCI_SYSTEM_LOG_LINES + 5; ++i) {
            uci_system_log("line %u", i);
        }
        if (fork() == 0) {
            exit(0); /* these are its parent's */
        }
        wait(NULL);
        exit(0);
    }
    cr_assert(waitpid(pid, NULL, 0) == pid);
    cr_expect(lines->count == UCI_SYSTEM_LOG_LINES + 1, "%u", lines->count);
    cr_expect_str_eq(lines->last, "UCI: 5 more lines of this process were left out");
}
