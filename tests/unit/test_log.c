/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "capture.h"
#include "util/log.h"
#include "util/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define LINE_PATTERN "^\\[[0-9]+\\.[0-9]{6}\\] \\[[^ :]+:[0-9]+:[0-9]+\\] [a-z_]+\\.c:[0-9]+  UCI [A-Z ]{5} [^\n]*\n$"

static bool matches(const char *pattern, const char *text)
{
    regex_t regex;
    int ret;

    cr_assert(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0);
    ret = regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    return ret == 0;
}

Test(log, line_has_the_shape_of_ucx)
{
    test_capture_t capture = test_capture_start();
    char expected[512], *text;

    uci_warn("device %s is %d", "mlx5_0", 7);
    text = test_capture_stop(&capture);

    snprintf(expected, sizeof(expected), "[%s:%d:%d] test_log.c:", uci_process_host(), (int)getpid(), (int)getpid());
    cr_assert(matches(LINE_PATTERN, text), "'%s'", text);
    cr_assert(strstr(text, expected) != NULL, "'%s' lacks '%s'", text, expected);
    cr_assert(strstr(text, "  UCI WARN  device mlx5_0 is 7\n") != NULL, "'%s'", text);
    free(text);
}

Test(log, only_the_base_name_of_the_file_is_shown)
{
    test_capture_t capture = test_capture_start();
    char *text;

    uci_log_print("/a/long/path/file.c", 42, UCI_LOG_ERROR, "text");
    text = test_capture_stop(&capture);
    cr_assert(strstr(text, "] file.c:42  UCI ERROR text\n") != NULL, "'%s'", text);
    free(text);
}

Test(log, levels_above_the_one_set_are_silent)
{
    test_capture_t capture = test_capture_start();
    char *text;

    cr_expect(uci_log_level == UCI_LOG_WARN);
    uci_error("one");
    uci_warn("two");
    uci_info("three");
    uci_log_level = UCI_LOG_FATAL;
    uci_error("four");
    uci_log_level = UCI_LOG_TRACE;
    uci_trace("five");
    text = test_capture_stop(&capture);

    cr_expect(strstr(text, "one") && strstr(text, "two") && strstr(text, "five"), "'%s'", text);
    cr_expect(!strstr(text, "three") && !strstr(text, "four"), "'%s'", text);
    free(text);
}

Test(log, arguments_of_a_silent_line_are_not_evaluated)
{
    int evaluated = 0;

    uci_debug("%d", ++evaluated);
    cr_expect(evaluated == 0);
}

Test(log, every_level_has_a_name)
{
    unsigned level;

    for (level = 0; level < UCI_LOG_LAST; ++level) {
        cr_expect(uci_log_level_names[level] != NULL);
    }
    cr_expect(uci_log_level_names[UCI_LOG_LAST] == NULL);
}

Test(log, errno_reaches_the_text_and_survives)
{
    test_capture_t capture = test_capture_start();
    char *text;

    errno = ENOENT;
    uci_error("open failed: %m");
    cr_expect(errno == ENOENT);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "open failed: No such file or directory\n") != NULL, "'%s'", text);
    free(text);
}

Test(log, a_long_line_is_cut_and_ended)
{
    test_capture_t capture = test_capture_start();
    char longer[8192], *text;

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    uci_error("%s", longer);
    text = test_capture_stop(&capture);

    cr_expect(strlen(text) <= 4096);
    cr_expect(strlen(text) > 4000);
    cr_expect(strcmp(text + strlen(text) - 5, "x...\n") == 0);
    free(text);
}

Test(log, a_file_name_of_any_length_is_harmless)
{
    test_capture_t capture = test_capture_start();
    char longer[8192], *text;

    memset(longer, 'f', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    uci_log_print(longer, 1, UCI_LOG_ERROR, "text");
    text = test_capture_stop(&capture);
    cr_expect(strlen(text) <= 4096);
    cr_expect(text[strlen(text) - 1] == '\n');
    free(text);
}

Test(log, control_characters_become_blanks)
{
    test_capture_t capture = test_capture_start();
    char *text;

    uci_error("a\nb\033[31mc\177d\xc3\xa9");
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "UCI ERROR a b [31mc d\xc3\xa9\n") != NULL, "'%s'", text);
    free(text);
}

/* A pipe in packet mode keeps the boundaries of writes. */
Test(log, a_line_is_one_write)
{
    char packet[8192];
    int fds[2], saved = dup(STDERR_FILENO);
    ssize_t length;

    cr_assert(pipe2(fds, O_DIRECT | O_NONBLOCK) == 0);
    dup2(fds[1], STDERR_FILENO);
    uci_error("one");
    uci_error("two");
    dup2(saved, STDERR_FILENO);

    length = read(fds[0], packet, sizeof(packet));
    cr_assert(length > 0);
    cr_expect(memcmp(packet + length - 4, "one\n", 4) == 0);
    length = read(fds[0], packet, sizeof(packet));
    cr_assert(length > 0);
    cr_expect(memcmp(packet + length - 4, "two\n", 4) == 0);
}

#define THREADS 4
#define LINES   500

static void *print_lines(void *arg)
{
    unsigned i;

    for (i = 0; i < LINES; ++i) {
        uci_error("thread %d line %u end", *(int *)arg, i);
    }
    return NULL;
}

Test(log, lines_of_threads_do_not_mix)
{
    test_capture_t capture = test_capture_start();
    pthread_t threads[THREADS];
    int ids[THREADS], i;
    char *text, *line, *save;
    unsigned count = 0;

    for (i = 0; i < THREADS; ++i) {
        ids[i] = i;
        cr_assert(pthread_create(&threads[i], NULL, print_lines, &ids[i]) == 0);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }

    text = test_capture_stop(&capture);
    for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        cr_assert(matches("UCI ERROR thread [0-9] line [0-9]+ end$", line), "'%s'", line);
        ++count;
    }
    cr_expect(count == THREADS * LINES, "%u", count);
    free(text);
}

static void at_abort(void)
{
    uci_log_print("abort.c", 1, UCI_LOG_ERROR, "saved");
    uci_fatal("again"); /* must not come back here */
}

static int run_fatal(void (*func)(void), char **text_p)
{
    test_capture_t capture = test_capture_start();
    int status;
    pid_t pid;

    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        uci_log_level = UCI_LOG_FATAL;
        uci_log_at_abort(at_abort);
        uci_log_at_abort(func);
        uci_fatal("the end");
    }

    cr_assert(waitpid(pid, &status, 0) == pid);
    *text_p = test_capture_stop(&capture);
    return status;
}

Test(log, fatal_aborts_after_the_registered_function)
{
    char *text;
    int status = run_fatal(at_abort, &text);
    char *end = strstr(text, "UCI FATAL the end\n"), *saved = strstr(text, "UCI ERROR saved\n");

    cr_expect(WIFSIGNALED(status) && (WTERMSIG(status) == SIGABRT));
    cr_assert(end && saved && strstr(text, "UCI FATAL again\n"), "'%s'", text);
    cr_expect(end < saved);
    cr_expect(strstr(saved + strlen("UCI ERROR saved"), "saved") == NULL);
    free(text);
}

Test(log, the_registered_function_can_be_cleared)
{
    char *text;
    int status = run_fatal(NULL, &text);

    cr_expect(WIFSIGNALED(status) && (WTERMSIG(status) == SIGABRT));
    cr_expect(strstr(text, "the end") && !strstr(text, "saved"), "'%s'", text);
    free(text);
}

static pthread_barrier_t both_end;

static void save_slowly(void)
{
    usleep(200000);
    uci_log_print("abort.c", 1, UCI_LOG_ERROR, "saved");
}

static void *end_it(void *arg)
{
    pthread_barrier_wait(&both_end);
    uci_fatal("the end");
    return arg;
}

static void end_it_twice(void)
{
    pthread_t other;

    pthread_barrier_init(&both_end, NULL, 2);
    uci_log_at_abort(save_slowly);
    pthread_create(&other, NULL, end_it, NULL);
    end_it(NULL);
}

Test(log, two_threads_that_end_the_process)
{
    test_capture_t capture = test_capture_start();
    int status;
    char *text;
    pid_t pid = fork();

    cr_assert(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        end_it_twice();
    }
    cr_assert(waitpid(pid, &status, 0) == pid);
    text = test_capture_stop(&capture);
    cr_expect(WIFSIGNALED(status) && (WTERMSIG(status) == SIGABRT));
    cr_expect(strstr(text, "UCI ERROR saved\n") != NULL, "'%s'", text);
    free(text);
}

/* As "program 2>&1 | head" leaves it; a signal of the program's own stays its own */
Test(log, a_reader_that_goes_takes_nobody_with_it)
{
    sigset_t set;
    int ends[2];

    cr_assert(pipe(ends) == 0);
    close(ends[0]);
    cr_assert(dup2(ends[1], STDERR_FILENO) >= 0);
    uci_warn("nobody reads this");
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    cr_assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    cr_assert(raise(SIGPIPE) == 0);
    uci_warn("nor this");
    cr_expect((sigpending(&set) == 0) && sigismember(&set, SIGPIPE));
    cr_assert(sigwait(&set, ends) == 0);
    uci_warn("nor this");
    cr_expect((sigpending(&set) == 0) && !sigismember(&set, SIGPIPE));
}
