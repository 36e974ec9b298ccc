/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Processes that are number 1 of pid namespaces of their own, as those of containers are.
 */
#ifndef UCI_TESTS_CONTAINER_H_
#define UCI_TESTS_CONTAINER_H_

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_CONTAINER_NONE 77 /* exit status: it can't be had here */

/* @return of the process that waits for it, and ends with what @a func returns */
static inline pid_t test_container_start(int (*func)(void *arg), void *arg)
{
    pid_t waiting = fork(), first;
    int status;

    if (waiting != 0) {
        return waiting;
    }
    if (unshare(CLONE_NEWPID) != 0) {
        _exit(TEST_CONTAINER_NONE);
    }
    first = fork();
    if (first == 0) {
        _exit((getpid() == 1) ? func(arg) : 1);
    }
    _exit((waitpid(first, &status, 0) == first) && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Each of them, with 0; skips the test where there are none */
static inline void test_container_wait(pid_t pid)
{
    int status = -1;

    cr_assert(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == TEST_CONTAINER_NONE)) {
        cr_skip_test("pid namespaces are made by root");
    }
    cr_expect(status == 0, "status %x", status);
}

#endif
