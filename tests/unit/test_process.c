/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <criterion/criterion.h>
#include "util/process.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

static void clear_ranks(void)
{
    size_t i;

    for (i = 0; i < uci_array_size(rank_names); ++i) {
        unsetenv(rank_names[i]);
    }
}

TestSuite(process, .init = clear_ranks);

Test(process, host_is_the_short_name)
{
    char name[HOST_NAME_MAX + 1];

    cr_assert(gethostname(name, sizeof(name)) == 0);
    name[strcspn(name, ".")] = '\0';
    cr_expect(strcmp(uci_process_host(), name) == 0, "%s", uci_process_host());
    cr_expect(uci_process_host() == uci_process_host());
}

/* Linux takes any bytes for one; it goes into names of files, lines of the log and records */
Test(process, host_of_other_characters)
{
    if (unshare(CLONE_NEWUTS) != 0) {
        cr_skip_test("a host's name can't be changed here");
    }
    cr_assert(sethostname("m\xc3\xbc l/\"\\x", 9) == 0);
    cr_expect(strcmp(uci_process_host(), "m___l___x") == 0, "%s", uci_process_host());
}

Test(process, no_launcher_no_rank)
{
    cr_expect(uci_process_rank() == -1);
}

Test(process, ranks_of_launchers_by_precedence)
{
    size_t i = uci_array_size(rank_names);
    char text[24];

    while (i-- > 0) { /* last first: each takes precedence over those set so far */
        snprintf(text, sizeof(text), "%zu", i);
        setenv(rank_names[i], text, 1);
        cr_expect(uci_process_rank() == (int)i, "%s", rank_names[i]);
    }
}

Test(process, job_size_of_launchers)
{
    unsetenv("SLURM_STEP_NUM_TASKS");
    unsetenv("PMI_SIZE");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    cr_expect(uci_process_job_size() == 0);
    setenv("SLURM_STEP_NUM_TASKS", "3", 1);
    cr_expect(uci_process_job_size() == 3);
    setenv("PMI_SIZE", "4", 1);
    cr_expect(uci_process_job_size() == 4);
    setenv("OMPI_COMM_WORLD_SIZE", "5", 1);
    cr_expect(uci_process_job_size() == 5);
}

Test(process, what_is_no_rank_is_skipped)
{
    setenv("OMPI_COMM_WORLD_RANK", "", 1);
    setenv("PMIX_RANK", "4294967294", 1); /* PMIX_RANK_WILDCARD */
    setenv("PMI_RANK", "1x", 1);
    cr_expect(uci_process_rank() == -1);
    setenv("SLURM_PROCID", "12", 1);
    cr_expect(uci_process_rank() == 12);
}

Test(process, time_goes_on)
{
    uint64_t start = uci_process_time_ns(), end;

    usleep(2000);
    end = uci_process_time_ns();
    cr_expect(end - start >= 2000000u);
    cr_expect(end - start < 10000000000u);
}

Test(process, file_name_patterns)
{
    char path[256], expected[256];

    cr_assert(uci_process_expand("plain", path, sizeof(path)) == UCI_OK);
    cr_expect(strcmp(path, "plain") == 0);
    cr_assert(uci_process_expand("", path, sizeof(path)) == UCI_OK);
    cr_expect(strcmp(path, "") == 0);

    snprintf(expected, sizeof(expected), "/tmp/%s-%d-x-100%%.json", uci_process_host(), (int)getpid());
    cr_assert(uci_process_expand("/tmp/%h-%p-%r-100%%.json", path, sizeof(path)) == UCI_OK);
    cr_expect(strcmp(path, expected) == 0, "%s", path);

    setenv("PMIX_RANK", "3", 1);
    cr_assert(uci_process_expand("%r%r", path, sizeof(path)) == UCI_OK);
    cr_expect(strcmp(path, "33") == 0, "%s", path);
}

Test(process, bad_file_name_patterns)
{
    char path[8];

    cr_expect(uci_process_expand("%x", path, sizeof(path)) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_process_expand("a%", path, sizeof(path)) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_process_expand("1234567", path, sizeof(path)) == UCI_OK);
    cr_expect(uci_process_expand("12345678", path, sizeof(path)) == UCI_ERR_INVALID_PARAM);
    cr_expect(uci_process_expand("1234567%r", path, sizeof(path)) == UCI_ERR_INVALID_PARAM);
}

Test(process, name_outside_of_mpi)
{
    char name[300];

    snprintf(name, sizeof(name), "%s:%d", uci_process_host(), (int)getpid());
    cr_expect(strcmp(uci_process_name(), name) == 0, "%s", uci_process_name());
}

Test(process, name_of_a_rank)
{
    char name[300];

    setenv("PMI_RANK", "7", 1);
    snprintf(name, sizeof(name), "rank 7 (%s:%d)", uci_process_host(), (int)getpid());
    cr_expect(strcmp(uci_process_name(), name) == 0, "%s", uci_process_name());
}

Test(process, name_of_a_child)
{
    char name[300];
    int status;
    pid_t pid;

    (void)uci_process_name();
    pid = fork();
    if (pid == 0) {
        snprintf(name, sizeof(name), "%s:%d", uci_process_host(), (int)getpid());
        _exit(strcmp(uci_process_name(), name) != 0);
    }
    cr_expect((waitpid(pid, &status, 0) == pid) && (status == 0), "it has its parent's");
}

Test(process, memory_that_is_shared)
{
    size_t page   = (size_t)sysconf(_SC_PAGESIZE);
    char *memory  = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *private = malloc(10);

    cr_assert(memory != MAP_FAILED);
    munmap(memory + 3 * page, page);
    cr_expect(uci_process_is_shared(memory, 3 * page));
    cr_expect(uci_process_is_shared(memory + 1, 1));
    cr_expect(!uci_process_is_shared(memory, 3 * page + 1), "it ends before");
    cr_expect(!uci_process_is_shared(memory + 3 * page, 1), "nothing is there");
    cr_expect(!uci_process_is_shared(memory + page, SIZE_MAX - (uintptr_t)memory), "more than there is");
    cr_expect(!uci_process_is_shared(memory + page, SIZE_MAX), "beyond the end of all addresses");
    mprotect(memory + page, page, PROT_READ);
    cr_expect(!uci_process_is_shared(memory, 3 * page), "a part can't be written");
    cr_expect(uci_process_is_shared(memory + 2 * page, page));
    cr_expect(!uci_process_is_shared(private, 10), "ours");
    cr_expect(!uci_process_is_shared(&page, sizeof(page)), "ours");
    cr_expect(!uci_process_is_shared(NULL, 1));
    free(private);
}

Test(process, memory_that_may_be_written)
{
    size_t page  = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert(memory != MAP_FAILED);
    mprotect(memory + page, page, PROT_READ);
    munmap(memory + 2 * page, page);
    cr_expect(uci_process_is_writable(memory));
    cr_expect(uci_process_is_writable(memory + page - 1));
    cr_expect(!uci_process_is_writable(memory + page));
    cr_expect(!uci_process_is_writable(memory + 2 * page), "nothing is there");
    cr_expect(!uci_process_is_writable(NULL));
    cr_expect(!uci_process_is_writable("text"));
    cr_expect(uci_process_is_writable(&page));
    cr_expect(!uci_process_is_writable((const void *)UINTPTR_MAX));
}

Test(process, memory_that_can_be_read)
{
    size_t page  = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 4 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert(memory != MAP_FAILED);
    mprotect(memory + 2 * page, page, PROT_NONE);
    cr_expect(uci_process_is_readable(memory, 2 * page));
    cr_expect(uci_process_is_readable(memory + page - 1, page + 1));
    cr_expect(uci_process_is_readable(memory + 2 * page, 0));
    cr_expect(!uci_process_is_readable(memory + page, page + 1), "it may not be read");
    cr_expect(!uci_process_is_readable(memory + page - 1, 2 * page + 2), "in the middle");
    cr_expect(uci_process_is_readable(memory + 3 * page, page));
    munmap(memory + 2 * page, 2 * page);
    cr_expect(!uci_process_is_readable(memory + 2 * page - 1, 2), "nothing is there");
    cr_expect(!uci_process_is_readable(memory, SIZE_MAX), "beyond the end of all addresses");
    cr_expect(!uci_process_is_readable(NULL, 1));
    munmap(memory, 2 * page);
}

static void clear_launchers(void)
{
    static const char *const names[] = {"SLURM_JOB_ID",   "PBS_JOBID",       "LSB_JOBID",
                                        "PMIX_NAMESPACE", "HYDI_CONTROL_FD", "PMI_FD"};
    size_t i;

    for (i = 0; i < uci_array_size(names); ++i) {
        unsetenv(names[i]);
    }
}

Test(process, job_of_nobody)
{
    clear_launchers();
    cr_expect(uci_process_job() == NULL);
}

Test(process, job_of_the_batch_system_and_not_of_its_launcher)
{
    clear_launchers();
    setenv("PMIX_NAMESPACE", "1715863553", 1);
    setenv("SLURM_JOB_ID", "1234", 1);
    cr_expect(strcmp(uci_process_job(), "slurm:1234") == 0, "%s", uci_process_job());
}

Test(process, job_of_a_launcher)
{
    clear_launchers();
    setenv("PBS_JOBID", "", 1);
    setenv("PMIX_NAMESPACE", "prterun-node-77@1", 1);
    cr_expect(strcmp(uci_process_job(), "prrte:prterun-node-77@1") == 0, "%s", uci_process_job());
}

Test(process, job_of_hydra)
{
    char wanted[300];

    clear_launchers();
    setenv("PMI_FD", "6", 1);
    snprintf(wanted, sizeof(wanted), "hydra:%s.%d", uci_process_host(), (int)getppid());
    cr_expect(strcmp(uci_process_job(), wanted) == 0, "%s", uci_process_job());
}

Test(process, library)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    cr_assert(length > 0);
    program[length] = '\0';
    cr_expect_str_eq(uci_process_library(), program, "this code is linked into it");
}

Test(process, library_of_a_process)
{
    char path[4096];

    cr_assert(uci_process_find_library((uint32_t)getpid(), "libc.so", path, sizeof(path)));
    cr_expect(strstr(path, "/libc.so") != NULL, "%s", path);
    cr_expect(strchr(path, '\n') == NULL);
    cr_expect(!uci_process_find_library((uint32_t)getpid(), "no-such-library", path, sizeof(path)));
    cr_expect(!uci_process_find_library(0, "libc.so", path, sizeof(path)), "there is no such process");
}

static unsigned lines_of(const char *size)
{
    int status;
    pid_t pid = fork(); /* it is found out once */

    if (pid == 0) {
        setenv("PMI_SIZE", size, 1);
        _exit((int)uci_process_lines());
    }
    waitpid(pid, &status, 0);
    return (unsigned)WEXITSTATUS(status);
}

Test(process, lines_of_a_job)
{
    cr_expect_eq(lines_of("1"), 10);
    cr_expect_eq(lines_of("4"), 10);
    cr_expect_eq(lines_of("8"), 5);
    cr_expect_eq(lines_of("100000"), 1);
}
