/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of UCI_EVENTS: a line that could not be written as a whole.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "report/record.h"
#include "settings/settings.h"
#include "live/stats.h"
#include "util/log.h"

static char file_name[] = "/tmp/uci-test-record-XXXXXX";

static void set_up(void)
{
    int fd = mkstemp(file_name);

    cr_assert(fd >= 0);
    close(fd);
    uci_settings.events = file_name;
    uci_log_level       = UCI_LOG_FATAL;
}

static void tear_down(void)
{
    unlink(file_name);
}

TestSuite(record, .init = set_up, .fini = tear_down);

static void write_line(const char *line)
{
    FILE *stream = uci_record_open();

    cr_assert_not_null(stream);
    fprintf(stream, "%s\n", line);
    uci_record_close(stream);
}

/* Files end there, as on a disk that is full */
static void limit_files(rlim_t size)
{
    struct rlimit limit;

    cr_assert(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = size;
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void expect_file(const char *expected)
{
    char text[256] = "";
    FILE *stream   = fopen(file_name, "r");

    cr_assert_not_null(stream);
    text[fread(text, 1, sizeof(text) - 1, stream)] = '\0';
    fclose(stream);
    cr_expect_str_eq(text, expected);
}

Test(record, one_line_behind_the_other)
{
    write_line("{\"n\": 1}");
    write_line("{\"n\": 2}");
    expect_file("{\"n\": 1}\n{\"n\": 2}\n");
}

/* The next one, which has room again, is whole, and in a line of its own */
Test(record, a_line_that_is_cut_short_spoils_no_other)
{
    signal(SIGXFSZ, SIG_IGN);
    write_line("{\"n\": 1}");
    limit_files(13);
    write_line("{\"n\": 2}");
    cr_expect(uci_stats.events_lost == 1);
    limit_files(RLIM_INFINITY);
    write_line("{\"n\": 3}");
    write_line("{\"n\": 4}");
    expect_file("{\"n\": 1}\n{\"n\"\n{\"n\": 3}\n{\"n\": 4}\n");
    cr_expect(uci_stats.events_lost == 1);
}
