/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of UCI_EVENTS and UCI_CAPTURE: what could not be written as a whole.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/capture_file.h"
#include "report/record.h"
#include "util/process.h"
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
    uci_quiet_t quiet;
    FILE *stream = uci_record_open(&quiet);

    cr_assert_not_null(stream);
    fprintf(stream, "%s\n", line);
    uci_record_close(stream, &quiet);
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

Test(record, a_reader_that_goes_takes_nobody_with_it)
{
    uci_quiet_t quiet;
    FILE *stream;
    int reader;

    unlink(file_name);
    cr_assert(mkfifo(file_name, S_IRUSR | S_IWUSR) == 0);
    reader = open(file_name, O_RDONLY | O_NONBLOCK);
    stream = uci_record_open(&quiet);
    cr_assert_not_null(stream);
    fputs("{}\n", stream);
    close(reader);
    uci_record_close(stream, &quiet);
    cr_expect(uci_stats.events_lost == 1);
}

/* Of @a kind, "bad" or "good". @param rank  in its name. @return its bytes, -1 if it is not there; it is removed */
static long captured_by(const char *rank, unsigned number, const char *kind)
{
    char path[256];
    struct stat info;
    long size;

    snprintf(path, sizeof(path), "/tmp/%.64s.%d.%s.%u.%s", uci_process_host(), (int)getpid(), rank, number, kind);
    size = (stat(path, &info) == 0) ? (long)info.st_size : -1;
    unlink(path);
    return size;
}

static long captured(unsigned number, const char *kind)
{
    return captured_by("x", number, kind);
}

Test(record, a_chunk_is_captured_as_a_whole)
{
    static const char bytes[10000];
    char name[128];

    uci_settings.capture = "/tmp";
    uci_capture_chunk(name, sizeof(name), bytes, 1000, bytes, 10000);
    cr_expect_str_not_empty(name);
    cr_expect_eq(captured(0, "bad"), 1000);
    cr_expect_eq(captured(0, "good"), 10000);
    limit_files(5000);
    uci_capture_chunk(name, sizeof(name), bytes, 1000, bytes, 10000);
    cr_expect_str_not_empty(name);
    cr_expect_eq(captured(1, "bad"), 1000);
    cr_expect_eq(captured(1, "good"), -1, "a part of it");
    uci_capture_chunk(name, sizeof(name), bytes, 10000, NULL, 0);
    cr_expect_str_empty(name);
    cr_expect_eq(captured(2, "bad"), -1, "a part of it");
}

Test(record, what_ranks_of_one_process_id_capture_is_kept_apart)
{
    char name[128];

    uci_settings.capture = "/tmp";
    setenv("PMI_RANK", "12", 1);
    uci_capture_chunk(name, sizeof(name), "bad", 3, "right", 5);
    cr_expect(captured_by("12", 0, "bad") == 3);
    cr_expect(captured_by("12", 0, "good") == 5);
}
