/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Catch what a unit test makes the code print on stderr. Each Criterion test is a process of its own, so
 * nothing else writes there.
 */
#ifndef UCI_TEST_CAPTURE_H_
#define UCI_TEST_CAPTURE_H_

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct test_capture {
    FILE *file;
    int saved_fd;
} test_capture_t;

static inline test_capture_t test_capture_start(void)
{
    test_capture_t capture = {tmpfile(), dup(STDERR_FILENO)};

    cr_assert(capture.file != NULL);
    fflush(stderr);
    dup2(fileno(capture.file), STDERR_FILENO);
    return capture;
}

/** @return what was printed since, to be freed. */
static inline char *test_capture_stop(test_capture_t *capture)
{
    off_t size;
    char *text;

    fflush(stderr);
    dup2(capture->saved_fd, STDERR_FILENO);
    close(capture->saved_fd);

    size = lseek(fileno(capture->file), 0, SEEK_END);
    text = calloc(1, (size_t)size + 1);
    cr_assert(pread(fileno(capture->file), text, (size_t)size, 0) == size);
    fclose(capture->file);
    return text;
}

#endif
