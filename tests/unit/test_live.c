/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Live files: what a process has counted is there whatever becomes of it, and what is not such a file is told from one.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "container.h"
#include "live/live.h"
#include "live/live_file.h"
#include "util/log.h"
#include "util/process.h"
#include "live/stats.h"
#include "version.h"

static char folder[] = "/tmp/uci-test-live.XXXXXX";
static int folder_fd;

static void make_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
    cr_assert(folder_fd >= 0);
}

static void drop_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(live, .init = make_folder, .fini = drop_folder);

static const char *name_of(pid_t pid)
{
    static char name[128];

    snprintf(name, sizeof(name), "%s.%d" UCI_LIVE_SUFFIX, uci_process_host(), (int)pid);
    return name;
}

static uci_live_file_t read_file(pid_t pid)
{
    uci_live_file_t file;
    const char *reason;

    cr_assert(uci_live_file_read(folder_fd, name_of(pid), &file, &reason) == UCI_OK, "%s: %s", name_of(pid), reason);
    return file;
}

static uint64_t value_of(pid_t pid, const char *name)
{
    uci_live_file_t file = read_file(pid);
    uint64_t value       = uci_live_file_value(&file, name);

    uci_live_file_cleanup(&file);
    return value;
}

static uci_live_fate_t fate_of(pid_t pid)
{
    uci_live_file_t file = read_file(pid);
    uci_live_fate_t fate = file.fate;

    uci_live_file_cleanup(&file);
    return fate;
}

/* What UCI_STATS=- would say of messages that were sent */
static uint64_t total(void)
{
    test_capture_t capture = test_capture_start();
    const char *found;
    uint64_t value = 0;
    char *text;

    uci_stats_report("-");
    text  = test_capture_stop(&capture);
    found = strstr(text, "messages sent ");
    if (found != NULL) {
        value = strtoul(found + strlen("messages sent "), NULL, 10);
    }
    free(text);
    return value;
}

Test(live, counters_and_header)
{
    uci_stats_block_t block;
    uci_live_file_t file;

    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
    setenv("SLURM_JOB_ID", "77", 1);
    uci_stats.messages_sent = 5; /* before there is a file */
    uci_stats_set_info("xxh3", "repair", "1.13.1");
    uci_stats_open_live(folder);
    cr_assert(uci_live_is_open());
    uci_stats_join(&block, 42);
    uci_stats_here = block.counters;
    UCI_STATS_ADD(messages_sent, 100);
    UCI_STATS_ADD(bytes_received, 1ul << 40);

    file = read_file(getpid());
    cr_expect(uci_live_file_value(&file, "messages_sent") == 105);
    cr_expect(uci_live_file_value(&file, "bytes_received") == 1ul << 40);
    cr_expect(uci_live_file_value(&file, "no_such_counter") == 0);
    cr_expect(file.fate == UCI_LIVE_FATE_RUNNING);
    cr_expect((file.header->rank == 3) && (file.header->job_size == 8));
    cr_expect_str_eq(file.header->job, "slurm:77");
    cr_expect_str_eq(file.header->host, uci_process_host());
    cr_expect_str_eq(file.header->program, program_invocation_short_name);
    cr_expect_str_eq(file.header->digest, "xxh3");
    cr_expect_str_eq(file.header->mode, "repair");
    cr_expect_str_eq(file.header->ucx_version, "1.13.1");
    uci_live_file_cleanup(&file);

    uci_stats_leave(&block);
    cr_expect(total() == 105);
    uci_live_end(UCI_LIVE_ENDED);
    cr_expect(fate_of(getpid()) == UCI_LIVE_FATE_ENDED);
    uci_live_end(UCI_LIVE_ABORTED);
    cr_expect(fate_of(getpid()) == UCI_LIVE_FATE_ENDED, "only the first word counts");
}

static pid_t run_child(void (*end)(void))
{
    uci_stats_block_t block;
    pid_t pid = fork();

    if (pid == 0) {
        uci_stats_open_live(folder);
        uci_stats_join(&block, 7);
        uci_stats_here = block.counters;
        UCI_STATS_ADD(messages_sent, 1234567);
        end();
        _exit(9);
    }
    cr_assert(pid > 0);
    return pid;
}

static void end_by_kill(void)
{
    raise(SIGKILL);
}

static void end_by_exit(void)
{
    _exit(1);
}

static void end_in_order(void)
{
    uci_live_end(UCI_LIVE_ENDED);
    _exit(0);
}

static void end_by_abort(void)
{
    uci_live_end(UCI_LIVE_ABORTED);
    raise(SIGKILL);
}

Test(live, nothing_is_lost)
{
    static const struct {
        void (*end)(void);
        uci_live_fate_t fate;
    } cases[] = {{end_by_kill, UCI_LIVE_FATE_KILLED},
                 {end_by_exit, UCI_LIVE_FATE_KILLED},
                 {end_in_order, UCI_LIVE_FATE_ENDED},
                 {end_by_abort, UCI_LIVE_FATE_ABORTED}};
    siginfo_t info;
    size_t i;
    pid_t pid;

    for (i = 0; i < uci_array_size(cases); ++i) {
        pid = run_child(cases[i].end);
        cr_assert(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
        cr_expect(fate_of(pid) == cases[i].fate, "case %zu, as a zombie", i);
        cr_assert(waitpid(pid, NULL, 0) == pid);
        cr_expect(fate_of(pid) == cases[i].fate, "case %zu", i);
        cr_expect(value_of(pid, "messages_sent") == 1234567, "case %zu", i);
    }
}

Test(live, a_fork_does_not_count_in_its_parents_file)
{
    uci_stats_block_t block, own;
    pid_t pid;
    int status;

    uci_stats_open_live(folder);
    uci_stats_join(&block, 1);
    uci_stats_here = block.counters;
    UCI_STATS_ADD(messages_sent, 10);
    pid = fork();
    if (pid == 0) {
        if (uci_live_is_open() || (uci_stats_here->messages_sent != 0)) {
            _exit(1);
        }
        UCI_STATS_ADD(messages_sent, 1000); /* in what it has inherited */
        uci_live_end_gauges(uci_live_begin_gauges(block.live));
        uci_live_end(UCI_LIVE_ABORTED);
        uci_stats_reset();
        uci_stats_open_live(folder);
        uci_stats_join(&own, 2);
        uci_stats_here = own.counters;
        UCI_STATS_ADD(messages_sent, 7);
        uci_stats_leave(&block);
        uci_stats_leave(&own);
        _exit(uci_live_is_open() ? 0 : 2);
    }
    cr_assert(waitpid(pid, &status, 0) == pid);
    cr_expect(status == 0, "status %x", status);
    cr_expect(value_of(getpid(), "messages_sent") == 10);
    cr_expect(fate_of(getpid()) == UCI_LIVE_FATE_RUNNING);
    cr_expect(value_of(pid, "messages_sent") == 7);
    UCI_STATS_ADD(messages_sent, 1);
    cr_expect(value_of(getpid(), "messages_sent") == 11);
}

static int open_live(void *arg)
{
    uci_stats_open_live(folder);
    return uci_live_is_open() ? 0 : 1;
}

static unsigned count_files(void)
{
    DIR *dir       = opendir(folder);
    unsigned count = 0;
    struct dirent *entry;

    cr_assert_not_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        count += uci_live_file_is_name(entry->d_name);
    }
    closedir(dir);
    return count;
}

/* Some at the same time, and one after another: then their namespaces may have one number as well */
Test(live, processes_in_containers_have_one_number)
{
    enum { AT_A_TIME = 3, TIMES = 7 };
    pid_t pids[AT_A_TIME];
    unsigned i, j;
    char text[512];

    for (i = 0; i < TIMES; ++i) {
        for (j = 0; j < AT_A_TIME; ++j) {
            pids[j] = test_container_start(open_live, NULL);
        }
        for (j = 0; j < AT_A_TIME; ++j) {
            test_container_wait(pids[j]);
        }
    }
    cr_expect_eq(count_files(), AT_A_TIME * TIMES);
    uci_stats_open_live(folder);
    cr_expect(uci_live_find_peer(uci_process_host(), 1, text, sizeof(text)));
}

Test(live, workers_come_and_go)
{
    enum { WORKERS = 30, ROUNDS = 3 };
    static uci_stats_block_t blocks[WORKERS];
    unsigned i, round;

    uci_stats_open_live(folder);
    for (round = 0; round < ROUNDS; ++round) {
        for (i = 0; i < WORKERS; ++i) {
            uci_stats_join(&blocks[i], i + 1);
            uci_stats_here = blocks[i].counters;
            UCI_STATS_ADD(messages_sent, i + 1);
        }
        for (i = 0; i < WORKERS; ++i) {
            uci_stats_leave(&blocks[(i * 7) % WORKERS]);
        }
    }
    cr_expect(value_of(getpid(), "messages_sent") == ROUNDS * WORKERS * (WORKERS + 1) / 2);
    cr_expect(total() == ROUNDS * WORKERS * (WORKERS + 1) / 2);
}

Test(live, more_workers_than_blocks)
{
    enum { WORKERS = 600 };
    static uci_stats_block_t blocks[WORKERS];
    uci_live_file_t file;
    unsigned i;

    uci_stats_open_live(folder);
    for (i = 0; i < WORKERS; ++i) {
        uci_stats_join(&blocks[i], i + 1);
        uci_stats_here = blocks[i].counters;
        UCI_STATS_INC(messages_sent);
    }
    file = read_file(getpid());
    cr_expect(file.header->unlisted > 0);
    cr_expect(uci_live_file_value(&file, "messages_sent") + file.header->unlisted == WORKERS);
    uci_live_file_cleanup(&file);
    cr_expect(total() == WORKERS);
    for (i = 0; i < WORKERS; ++i) {
        uci_stats_leave(&blocks[i]);
    }
    file = read_file(getpid());
    cr_expect(file.header->unlisted == 0);
    cr_expect(uci_live_file_value(&file, "messages_sent") == WORKERS);
    uci_live_file_cleanup(&file);
}

Test(live, the_file_is_removed_meanwhile)
{
    static uci_stats_block_t blocks[20];
    char path[256];
    unsigned i;

    uci_stats_open_live(folder);
    snprintf(path, sizeof(path), "%s/%s", folder, name_of(getpid()));
    cr_assert(unlink(path) == 0);
    cr_assert(close(open(path, O_WRONLY | O_CREAT, 0600)) == 0); /* and there is another one in its place */
    for (i = 0; i < uci_array_size(blocks); ++i) {
        uci_stats_join(&blocks[i], i + 1);
        uci_stats_here = blocks[i].counters;
        UCI_STATS_INC(messages_sent);
    }
    cr_expect(total() == uci_array_size(blocks));
    for (i = 0; i < uci_array_size(blocks); ++i) {
        uci_stats_leave(&blocks[i]);
    }
    cr_expect(total() == 0 /* printed already: nothing has changed */);
}

static void expect_no_file(const char *where, const char *word)
{
    test_capture_t capture = test_capture_start();
    uci_stats_block_t block;
    char *text;

    uci_stats_open_live(where);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, word) != NULL, "UCI_LIVE=%s: '%s'", where, text);
    cr_expect(!uci_live_is_open());
    free(text);
    uci_stats_join(&block, 1);
    uci_stats_here = block.counters;
    UCI_STATS_ADD(messages_sent, 3);
    uci_stats_leave(&block);
    cr_expect(uci_stats.messages_sent == 3);
}

Test(live, off)
{
    expect_no_file("off", "");
    cr_expect(rmdir(folder) == 0, "nothing was made");
}

Test(live, no_folder)
{
    expect_no_file("/proc/self/no such folder", "UCI WARN  no live file with UCI_LIVE=/proc/self/no such folder: ");
}

Test(live, no_room)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};

    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    expect_no_file(folder, "File too large");
    cr_expect(rmdir(folder) == 0, "the file has gone");
}

Test(live, no_room_for_more_workers)
{
    struct rlimit limit = {.rlim_cur = 20000, .rlim_max = RLIM_INFINITY};
    static uci_stats_block_t blocks[50];
    unsigned i;

    uci_stats_open_live(folder);
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (i = 0; i < uci_array_size(blocks); ++i) {
        uci_stats_join(&blocks[i], i + 1);
        uci_stats_here = blocks[i].counters;
        UCI_STATS_INC(messages_sent);
    }
    limit.rlim_cur = RLIM_INFINITY;
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    cr_expect(blocks[49].live == NULL);
    cr_expect(total() == uci_array_size(blocks));
}

Test(live, a_folder_is_made)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/a/%%h/b", folder);
    uci_stats_open_live(path);
    cr_expect(uci_live_is_open());
    snprintf(path, sizeof(path), "%s/a/%s/b/%s", folder, uci_process_host(), name_of(getpid()));
    cr_expect(access(path, F_OK) == 0);
}

/* Whatever lies where the file belongs is neither followed nor written to */
Test(live, a_link_in_its_place)
{
    char path[256], victim[256];
    struct stat info;

    snprintf(path, sizeof(path), "%s/%s", folder, name_of(getpid()));
    snprintf(victim, sizeof(victim), "%s/victim", folder);
    cr_assert(close(open(victim, O_WRONLY | O_CREAT, 0600)) == 0);
    cr_assert(symlink(victim, path) == 0);
    uci_stats_open_live(folder);
    cr_assert(uci_live_is_open());
    cr_expect((lstat(path, &info) == 0) && S_ISLNK(info.st_mode), "it has another name");
    cr_expect((stat(victim, &info) == 0) && (info.st_size == 0));
}

Test(live, a_link_is_not_read)
{
    uci_live_file_t file;
    const char *reason;

    uci_stats_open_live(folder);
    cr_assert(symlinkat(name_of(getpid()), folder_fd, "link.live") == 0);
    cr_assert(mkfifoat(folder_fd, "pipe.live", 0600) == 0);
    cr_expect(uci_live_file_read(folder_fd, "link.live", &file, &reason) == UCI_ERR_IO);
    cr_expect_str_eq(reason, "it is a symbolic link");
    cr_expect(uci_live_file_read(folder_fd, "pipe.live", &file, &reason) == UCI_ERR_CORRUPT);
    cr_expect_str_eq(reason, "it is not a regular file");
}

Test(live, own_folder)
{
    char path[128];
    int fd;

    cr_assert(chmod(folder, 0700) == 0);
    fd = uci_live_folder_open(folder, true, geteuid());
    cr_expect(fd >= 0);
    close(fd);
    cr_expect((uci_live_folder_open(folder, true, geteuid() + 1) < 0) && (errno == EPERM), "another user's");
    cr_assert(chmod(folder, 0722) == 0);
    cr_expect((uci_live_folder_open(folder, true, geteuid()) < 0) && (errno == EPERM), "others may write to it");
    cr_assert(chmod(folder, 0700) == 0);
    snprintf(path, sizeof(path), "%s/link", folder);
    cr_assert(symlink(folder, path) == 0);
    cr_expect(uci_live_folder_open(path, true, geteuid()) < 0, "a link");
    fd = uci_live_folder_open(path, false, 0);
    cr_expect(fd >= 0, "a folder that was asked for may be one");
}

/*
 * Contents
 */

static char *copy_of_file(size_t *length_p)
{
    uci_stats_block_t block;
    uci_live_file_t file;
    char *copy;

    uci_stats_open_live(folder);
    uci_stats_join(&block, 5);
    uci_stats_here = block.counters;
    UCI_STATS_ADD(messages_sent, 77);
    file = read_file(getpid());
    copy = malloc(file.length);
    cr_assert(copy != NULL);
    memcpy(copy, file.data, file.length);
    *length_p = file.length;
    uci_live_file_cleanup(&file);
    return copy;
}

/* Everything that can be asked of it */
static void ask_all(const uci_live_file_t *file)
{
    uci_live_gauges_t gauges;
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < file->header->counters; ++i) {
        sum += uci_live_file_sum(file, i) + strlen(uci_live_file_name(file, i));
    }
    for (i = 0; i < file->header->blocks; ++i) {
        sum += uci_live_file_gauges(file, i, &gauges);
    }
    cr_assert(sum + 1 != 0);
    cr_assert((file->fate < UCI_LIVE_FATES) && (strlen(file->header->host) < sizeof(file->header->host)));
}

static bool parse_copy(const char *data, size_t length, uci_status_t *status_p)
{
    char *copy = malloc(length + 1);
    uci_live_file_t file;
    const char *reason = NULL;

    memcpy(copy, data, length);
    *status_p = uci_live_file_parse(copy, length, &file, &reason);
    if (*status_p == UCI_OK) {
        ask_all(&file);
        uci_live_file_cleanup(&file);
        return true;
    }
    cr_expect((reason != NULL) && (*reason != '\0'));
    return false;
}

Test(live, cut_off_at_every_byte)
{
    uci_status_t status;
    size_t length, i, enough;
    char *data                      = copy_of_file(&length);
    const uci_live_header_t *header = (const uci_live_header_t *)(void *)data;

    enough = header->blocks_offset + ((size_t)header->blocks * header->block_size);
    for (i = 0; i <= length; ++i) {
        cr_expect(parse_copy(data, i, &status) == (i >= enough), "%zu of %zu bytes", i, length);
    }
    free(data);
}

Test(live, every_byte_damaged)
{
    static const unsigned char masks[] = {0x01, 0x80, 0xff};
    uci_status_t status;
    size_t length, i, j, right = 0;
    char *data = copy_of_file(&length);

    for (i = 0; i < length; ++i) {
        for (j = 0; j < uci_array_size(masks); ++j) {
            data[i] ^= (char)masks[j];
            right += parse_copy(data, length, &status);
            data[i] ^= (char)masks[j];
        }
    }
    cr_expect(right > 0, "counters may have any value");
    free(data);
}

Test(live, what_is_told)
{
    uci_live_header_t *header;
    uci_status_t status;
    size_t length;
    char *data = copy_of_file(&length);

    header = (uci_live_header_t *)(void *)data;
    cr_expect(parse_copy(data, length, &status));
    ++header->version;
    cr_expect(!parse_copy(data, length, &status) && (status == UCI_ERR_UNSUPPORTED), "newer");
    --header->version;
    header->blocks = UINT32_MAX;
    cr_expect(!parse_copy(data, length, &status) && (status == UCI_ERR_CORRUPT));
    header->blocks = 2;
    header->counters += 1;
    cr_expect(!parse_copy(data, length, &status), "a name that is none");
    header->counters -= 1;
    strcpy(header->program, "a\033[31mb\n");
    cr_expect(parse_copy(data, length, &status));
    memset(header->program, 'x', sizeof(header->program)); /* and no end */
    cr_expect(parse_copy(data, length, &status));
    header->magic = __builtin_bswap64(header->magic);
    cr_expect(!parse_copy(data, length, &status));
    free(data);
}

/* No metric may be there twice, nor a member */
Test(live, no_two_counters_have_a_name)
{
    uci_live_header_t *header;
    uci_live_file_t file;
    const char *reason;
    size_t length;
    char *data = copy_of_file(&length);

    header = (uci_live_header_t *)(void *)data;
    memcpy(data + header->names_offset + (2 * UCI_LIVE_NAME), data + header->names_offset, UCI_LIVE_NAME);
    cr_assert(uci_live_file_parse(data, length, &file, &reason) == UCI_ERR_CORRUPT);
    cr_expect_str_eq(reason, "names of its counters are damaged");
}

Test(live, texts_are_made_printable)
{
    const char *reason;
    uci_live_file_t file;
    size_t length;
    char *data = copy_of_file(&length);

    strcpy(((uci_live_header_t *)(void *)data)->program, "a\033[31mb\nc\xff");
    cr_assert(uci_live_file_parse(data, length, &file, &reason) == UCI_OK);
    cr_expect_str_eq(file.header->program, "a?[31mb?c?");
    uci_live_file_cleanup(&file);
}

Test(live, says_what_runs)
{
    uci_live_header_t *header;
    uci_live_file_t file;
    const char *reason;
    char text[512], *data;
    size_t length;

    uci_stats_open_live(folder);
    cr_expect(uci_live_find_peer(uci_process_host(), (uint32_t)getpid(), text, sizeof(text)));
    cr_expect(strstr(text, "UCI " UCI_VERSION " (" UCI_REVISION ") of /") == text, "%s", text);
    cr_expect(strstr(text, uci_process_library()) != NULL, "%s", text);
    cr_expect(!uci_live_find_peer("elsewhere", (uint32_t)getpid(), text, sizeof(text)));
    cr_expect(!uci_live_find_peer("../..", (uint32_t)getpid(), text, sizeof(text)));
    cr_expect(!uci_live_find_peer(uci_process_host(), 1, text, sizeof(text)));

    data                = copy_of_file(&length);
    header              = (uci_live_header_t *)(void *)data;
    header->header_size = UCI_LIVE_HEADER_MIN; /* of an older build: names begin there */
    memset(header->library, 'x', sizeof(header->library));
    cr_assert(uci_live_file_parse(data, length, &file, &reason) == UCI_OK, "%s", reason);
    uci_live_file_describe(&file, text, sizeof(text));
    cr_expect_str_eq(text, "UCI " UCI_VERSION);
    uci_live_file_cleanup(&file);
}

Test(live, gauges)
{
    uci_live_gauges_t *gauges, read;
    uci_stats_block_t block;
    uci_live_file_t file;

    uci_stats_open_live(folder);
    uci_stats_join(&block, 5);
    file = read_file(getpid());
    cr_expect(!uci_live_file_gauges(&file, 1, &read), "nobody has looked yet");
    uci_live_file_cleanup(&file);

    gauges            = uci_live_begin_gauges(block.live);
    gauges->time      = uci_live_time();
    gauges->log_bytes = 12;
    gauges->waits[0]  = (uci_live_wait_t){.kind = UCI_LIVE_WAIT_POSTED, .rank = 3, .what = "tag\n5"};
    file              = read_file(getpid());
    cr_expect(!uci_live_file_gauges(&file, 1, &read), "they are being written");
    uci_live_file_cleanup(&file);

    uci_live_end_gauges(gauges);
    file = read_file(getpid());
    cr_expect(uci_live_file_gauges(&file, 1, &read));
    cr_expect((read.log_bytes == 12) && (read.waits[0].rank == 3));
    cr_expect_str_eq(read.waits[0].what, "tag?5");
    cr_expect(!uci_live_file_gauges(&file, 0, &read), "the first block is no worker's");
    uci_live_file_cleanup(&file);

    uci_stats_leave(&block);
    file = read_file(getpid());
    cr_expect(!uci_live_file_gauges(&file, 1, &read), "it has gone");
    uci_live_file_cleanup(&file);
}

/*
 * Cleaning
 */

static void write_aged(const char *name, const char *data, size_t length, uint64_t age, uint32_t state)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - (time_t)(age / 1000000000ul)}};
    uci_live_header_t header;
    int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    times[1] = times[0];
    memcpy(&header, data, sizeof(header));
    header.begin_time = header.end_time = uci_live_time() - age;
    header.state                        = state;
    header.start ^= 1; /* a process that is gone, whose number is ours now */
    cr_assert(write(fd, &header, sizeof(header)) == sizeof(header));
    cr_assert(write(fd, data + sizeof(header), length - sizeof(header)) == (ssize_t)(length - sizeof(header)));
    cr_assert(futimens(fd, times) == 0);
    close(fd);
}

Test(live, cleaning)
{
    const uint64_t minute = 60000000000ul;
    struct timespec old = {.tv_sec = time(NULL) - 7200}, both[2] = {old, old};
    size_t length;
    char *data = copy_of_file(&length);
    int fd;

    write_aged("ended.old.live", data, length, 11 * minute, UCI_LIVE_ENDED);
    write_aged("ended.new.live", data, length, 9 * minute, UCI_LIVE_ENDED);
    write_aged("killed.old.live", data, length, 61 * minute, UCI_LIVE_RUNNING);
    write_aged("killed.new.live", data, length, 59 * minute, UCI_LIVE_RUNNING);
    write_aged("ended.old.other", data, length, 11 * minute, UCI_LIVE_ENDED);
    fd = openat(folder_fd, "garbage.live", O_WRONLY | O_CREAT, 0600);
    cr_assert((write(fd, "garbage", 7) == 7) && (futimens(fd, both) == 0) && (close(fd) == 0));
    fd = openat(folder_fd, "empty.live", O_WRONLY | O_CREAT, 0600);
    cr_assert((futimens(fd, both) == 0) && (close(fd) == 0));

    uci_live_folder_clean(folder_fd);
    cr_expect(faccessat(folder_fd, "ended.old.live", F_OK, 0) != 0);
    cr_expect(faccessat(folder_fd, "killed.old.live", F_OK, 0) != 0);
    cr_expect(faccessat(folder_fd, "empty.live", F_OK, 0) != 0);
    cr_expect(faccessat(folder_fd, "ended.new.live", F_OK, 0) == 0);
    cr_expect(faccessat(folder_fd, "killed.new.live", F_OK, 0) == 0);
    cr_expect(faccessat(folder_fd, "ended.old.other", F_OK, 0) == 0);
    cr_expect(faccessat(folder_fd, "garbage.live", F_OK, 0) == 0);
    cr_expect(faccessat(folder_fd, name_of(getpid()), F_OK, 0) == 0, "it runs");

    write_aged("ended.old.live", data, length, 11 * minute, UCI_LIVE_ENDED);
    uci_live_folder_clean(folder_fd);
    cr_expect(faccessat(folder_fd, "ended.old.live", F_OK, 0) == 0, "once a minute");

    both[0].tv_sec = both[1].tv_sec = time(NULL) + 100000; /* by a clock that was wrong */
    cr_assert(utimensat(folder_fd, ".cleaned", both, 0) == 0);
    uci_live_folder_clean(folder_fd);
    cr_expect(faccessat(folder_fd, "ended.old.live", F_OK, 0) != 0);
    free(data);
}

/* Jobs that come and go every second leave no more than so many, and those are the last */
Test(live, cleaning_leaves_so_many)
{
    enum { MORE = 50 };
    size_t length;
    char *data = copy_of_file(&length), name[32];
    unsigned i, left = 0;

    for (i = 0; i < UCI_LIVE_GONE_MAX + MORE; ++i) {
        snprintf(name, sizeof(name), "gone.%u.live", (i * 77) % (UCI_LIVE_GONE_MAX + MORE));
        write_aged(name, data, length, (1 + (i * 77) % (UCI_LIVE_GONE_MAX + MORE)) * 1000000000ul,
                   (i % 2) ? UCI_LIVE_ENDED : UCI_LIVE_RUNNING);
    }
    uci_live_folder_clean(folder_fd);
    for (i = 0; i < UCI_LIVE_GONE_MAX + MORE; ++i) {
        snprintf(name, sizeof(name), "gone.%u.live", i);
        cr_expect((faccessat(folder_fd, name, F_OK, 0) == 0) == (i < UCI_LIVE_GONE_MAX), "%s", name);
        left += faccessat(folder_fd, name, F_OK, 0) == 0;
    }
    cr_expect(left == UCI_LIVE_GONE_MAX, "%u are left", left);
    cr_expect(faccessat(folder_fd, name_of(getpid()), F_OK, 0) == 0, "it runs");
    free(data);
}

Test(live, another_host)
{
    uci_live_header_t *header;
    uci_live_file_t file;
    const char *reason;
    size_t length;
    char *data = copy_of_file(&length);

    header = (uci_live_header_t *)(void *)data;
    strcpy(header->host, "elsewhere");
    strcpy(header->boot, "another boot");
    cr_assert(uci_live_file_parse(data, length, &file, &reason) == UCI_OK);
    cr_expect(file.fate == UCI_LIVE_FATE_RUNNING, "it was there just now");
    data = malloc(length);
    memcpy(data, file.data, length);
    uci_live_file_cleanup(&file);
    ((uci_live_header_t *)(void *)data)->begin_time -= 2 * UCI_LIVE_SILENCE_NS;
    cr_assert(uci_live_file_parse(data, length, &file, &reason) == UCI_OK);
    cr_expect(file.fate == UCI_LIVE_FATE_SILENT);
    strcpy(((uci_live_header_t *)(void *)file.data)->host, uci_process_host());
    data = malloc(length);
    memcpy(data, file.data, length);
    uci_live_file_cleanup(&file);
    cr_assert(uci_live_file_parse(data, length, &file, &reason) == UCI_OK);
    cr_expect(file.fate == UCI_LIVE_FATE_KILLED, "this host has been booted since");
    uci_live_file_cleanup(&file);
}
