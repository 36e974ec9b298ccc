/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "capture.h"
#include "fault/fault.h"
#include "util/process.h"
#include "live/stats.h"
#include "version.h"

#include <dirent.h>
#include <jansson.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/uci-test-stats-XXXXXX";

static void set_up(void)
{
    uint64_t value = 1;

    cr_assert(mkdtemp(directory) != NULL);
    setenv("OMPI_COMM_WORLD_RANK", "5", 1);
#define SET(_name, _text) uci_stats._name = value++;
    UCI_STATS_COUNTERS(SET)
#undef SET
    uci_stats_set_info("xxh3", "repair", "1.13.1");
}

static unsigned entries(bool remove_all)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    unsigned count = 0;
    char path[512];

    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            ++count;
            snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
            if (remove_all) {
                unlink(path);
            }
        }
    }
    closedir(dir);
    return count;
}

static void tear_down(void)
{
    entries(true);
    rmdir(directory);
}

TestSuite(stats, .init = set_up, .fini = tear_down);

static json_t *load(const char *name)
{
    json_error_t error;
    char path[512];
    json_t *root;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    cr_assert(root != NULL, "%s:%d: %s", path, error.line, error.text);
    return root;
}

static void report(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    uci_stats_report(path);
}

static void expect_string(json_t *root, const char *key, const char *value)
{
    const char *found = json_string_value(json_object_get(root, key));

    cr_expect(found && (strcmp(found, value) == 0), "%s is %s", key, found ? found : "missing");
}

Test(stats, json_has_exactly_the_counters_and_the_context)
{
    uint64_t value = 1;
    size_t keys    = 0;
    json_t *root;

    report("out.json");
    root = load("out.json");

#define CHECK(_name, _text) \
    if (strcmp(#_name, "faults_injected") != 0) { \
        cr_expect(json_integer_value(json_object_get(root, #_name)) == (json_int_t)value, "%s", #_name); \
    } \
    ++value; \
    ++keys;
    UCI_STATS_COUNTERS(CHECK)
#undef CHECK

    expect_string(root, "digest", "xxh3");
    expect_string(root, "mode", "repair");
    expect_string(root, "version", UCI_VERSION);
    expect_string(root, "ucx_version", "1.13.1");
    expect_string(root, "host", uci_process_host());
    cr_expect(json_integer_value(json_object_get(root, "pid")) == getpid());
    cr_expect(json_integer_value(json_object_get(root, "rank")) == 5);
    cr_expect(json_integer_value(json_object_get(root, "job_size")) == uci_process_job_size());
    cr_expect(json_object_get(root, "faults_injected") != NULL);
    cr_expect(json_object_size(root) == keys + 8);
    json_decref(root);
}

static json_int_t reported(const char *counter)
{
    json_int_t value;
    json_t *root;

    report("out.json");
    root  = load("out.json");
    value = json_integer_value(json_object_get(root, counter));
    json_decref(root);
    return value;
}

Test(stats, faults_are_those_of_the_injector)
{
    uci_fault_spec_t spec;
    uci_fault_t fault;
    char error[64];

    cr_assert(uci_fault_parse("rate=1", &spec, error, sizeof(error)) == UCI_OK);
    uci_fault_init(&spec, 0, -1);
    cr_assert(uci_fault_draw(UCI_FAULT_PAYLOAD, 1, 0, &fault));
    cr_assert(uci_fault_draw(UCI_FAULT_PAYLOAD, 1, 0, &fault));
    cr_expect(reported("faults_injected") == 2);
}

/* Who adds up a job counts none twice; and count=N is of each process */
Test(stats, a_fork_has_none_of_its_parents_faults)
{
    uci_fault_spec_t spec;
    uci_fault_t fault;
    char error[64];

    cr_assert(uci_fault_parse("rate=1,count=2", &spec, error, sizeof(error)) == UCI_OK);
    uci_fault_init(&spec, 0, -1);
    cr_assert(uci_fault_draw(UCI_FAULT_PAYLOAD, 1, 0, &fault));
    cr_assert(uci_fault_draw(UCI_FAULT_PAYLOAD, 1, 0, &fault));
    cr_assert(!uci_fault_draw(UCI_FAULT_PAYLOAD, 1, 0, &fault));
    uci_stats_reset(); /* as in the child */
    cr_expect(uci_fault_draw(UCI_FAULT_PAYLOAD, 1, 0, &fault));
    cr_expect(reported("faults_injected") == 1);
}

Test(stats, file_name_pattern)
{
    char name[512];

    report("s-%h-%p-%r%%.json");
    snprintf(name, sizeof(name), "s-%s-%d-5%%.json", uci_process_host(), (int)getpid());
    json_decref(load(name));
    cr_expect(entries(false) == 1);
}

Test(stats, last_report_replaces_the_file)
{
    json_t *root;

    report("out.json");
    uci_stats.messages_sent = 12345678901234u;
    report("out.json");
    root = load("out.json");
    cr_expect(json_integer_value(json_object_get(root, "messages_sent")) == 12345678901234);
    cr_expect(entries(false) == 1, "a temporary file was left");
    json_decref(root);
}

/* A file under its final name is always whole: readers hold the old one while it is replaced. */
Test(stats, a_reader_keeps_the_old_file)
{
    char path[512], text[8192];
    json_t *root;
    FILE *old;

    report("out.json");
    snprintf(path, sizeof(path), "%s/out.json", directory);
    old                     = fopen(path, "r");
    uci_stats.messages_sent = 777;
    report("out.json");
    text[fread(text, 1, sizeof(text) - 1, old)] = '\0';
    fclose(old);
    root = json_loads(text, 0, NULL);
    cr_assert(root != NULL);
    cr_expect(json_integer_value(json_object_get(root, "messages_sent")) == 1);
    json_decref(root);
}

Test(stats, what_is_no_file_is_not_replaced)
{
    char link_path[512];
    struct stat info;

    snprintf(link_path, sizeof(link_path), "%s/null", directory);
    cr_assert(symlink("/dev/null", link_path) == 0);
    uci_stats_report(link_path);
    uci_stats_report("/dev/null");
    cr_assert(lstat(link_path, &info) == 0);
    cr_expect(S_ISLNK(info.st_mode));
    cr_assert(lstat("/dev/null", &info) == 0);
    cr_expect(S_ISCHR(info.st_mode));
}

Test(stats, nowhere_is_silent)
{
    test_capture_t capture = test_capture_start();
    char *text;

    uci_stats_report("");
    uci_stats_report(NULL);
    text = test_capture_stop(&capture);
    cr_expect(*text == '\0', "%s", text);
    free(text);
}

static void expect_failure(const char *destination, const char *expected)
{
    test_capture_t capture = test_capture_start();
    char *text;

    uci_stats_report(destination);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "UCI ERROR") && strstr(text, destination) && strstr(text, expected), "%s", text);
    free(text);
}

Test(stats, failures_are_logged)
{
    expect_failure("/nonexistent/out.json", "No such file or directory");
    expect_failure("/tmp/out-%x.json", "%h, %p, %r and %%");
    expect_failure("/dev/full", "No space left on device");
    expect_failure("/tmp", "Is a directory");
}

static unsigned lines(const char *text)
{
    unsigned count = 0;

    for (; *text != '\0'; ++text) {
        count += (*text == '\n');
    }
    return count;
}

Test(stats, summary_shows_what_is_not_zero)
{
    test_capture_t capture = test_capture_start();
    char *text;

    memset(&uci_stats, 0, sizeof(uci_stats));
    uci_stats.messages_sent = 12;
    UCI_STATS_INC(repaired_chunks);
    UCI_STATS_ADD(repaired_chunks, 2);
    uci_stats_report("-");
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, ", rank 5, mode repair, digest xxh3\n") != NULL, "%s", text);
    cr_expect(strstr(text, " messages sent ") && strstr(text, " 12\n") && strstr(text, " 3\n"), "%s", text);
    cr_expect(lines(text) == 3, "%s", text);
    free(text);
}

Test(stats, summary_is_printed_again_only_if_changed)
{
    test_capture_t capture = test_capture_start();
    char *text;

    memset(&uci_stats, 0, sizeof(uci_stats));
    uci_stats_report("-");
    uci_stats_report("-");
    UCI_STATS_INC(acks_sent);
    uci_stats_report("-");
    text = test_capture_stop(&capture);
    cr_expect(lines(text) == 3, "%s", text);
    free(text);
}

Test(stats, workers_are_added_up)
{
    uci_stats_block_t first, second;
    test_capture_t capture;
    char *text;

    memset(&uci_stats, 0, sizeof(uci_stats));
    uci_stats_join(&first, 1);
    uci_stats_join(&second, 2);
    UCI_STATS_ADD(messages_sent, 1);
    uci_stats_here = first.counters;
    UCI_STATS_ADD(messages_sent, 10);
    uci_stats_here = second.counters;
    UCI_STATS_ADD(messages_sent, 100);
    uci_stats_leave(&second);
    cr_expect(uci_stats_here == &uci_stats, "a thread counts in a worker that is gone");
    UCI_STATS_ADD(messages_sent, 1000);
    cr_expect(uci_stats.messages_sent == 1101, "%lu", uci_stats.messages_sent);
    capture = test_capture_start();
    uci_stats_report("-");
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, " 1111\n") != NULL, "%s", text);
    free(text);

    uci_stats_reset();
    cr_expect((uci_stats.messages_sent == 0) && (first.counters->messages_sent == 0));
    uci_stats_leave(&first);
}

/* Until told to stop. @return how often */
static void *pass_outside(void *arg)
{
    const bool *stop = arg;
    uintptr_t passed = 0;

    for (; !__atomic_load_n(stop, __ATOMIC_RELAXED); ++passed) {
        UCI_STATS_PASSED(UCI_STATS_ADD_OUTSIDE, get, 3);
    }
    return (void *)passed;
}

/* Workers go while another thread counts what passes outside of all */
Test(stats, what_passes_outside_of_workers)
{
    enum { WORKERS = 100000 };
    uci_stats_block_t block;
    pthread_t thread;
    bool stop = false;
    void *passed;
    unsigned i;

    memset(&uci_stats, 0, sizeof(uci_stats));
    cr_assert(pthread_create(&thread, NULL, pass_outside, &stop) == 0);
    for (i = 0; i < WORKERS; ++i) {
        uci_stats_join(&block, 1);
        uci_stats_here = block.counters;
        UCI_STATS_PASSED(UCI_STATS_ADD, get, 5);
        uci_stats_leave(&block);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, &passed);
    cr_expect(uci_stats.passthrough_get == WORKERS + (uintptr_t)passed, "%lu", uci_stats.passthrough_get);
    cr_expect(uci_stats.passthrough_bytes == WORKERS * 5 + (uintptr_t)passed * 3, "%lu", uci_stats.passthrough_bytes);
}

/* Until told to stop */
static void *make_workers(void *arg)
{
    const bool *stop = arg;
    uci_stats_block_t block;

    while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
        uci_stats_join(&block, 1);
        uci_stats_leave(&block);
    }
    return NULL;
}

/* A process forks while another of its threads makes workers: the child, which has a worker of its own, waits for nobody who is not there */
Test(stats, a_fork_while_another_thread_is_at_work)
{
    enum { FORKS = 300 };
    uci_stats_block_t block;
    unsigned i, stuck = 0;
    pthread_t thread;
    bool stop = false;
    int status;
    pid_t pid;

    cr_assert(pthread_create(&thread, NULL, make_workers, &stop) == 0);
    for (i = 0; (i < FORKS) && (stuck == 0); ++i) {
        pid = fork();
        cr_assert(pid >= 0);
        if (pid == 0) {
            alarm(5);
            uci_stats_reset();
            uci_stats_set_info("xxh3", "repair", "1.13.1");
            uci_stats_join(&block, 1);
            uci_stats_leave(&block);
            _exit(0);
        }
        cr_assert(waitpid(pid, &status, 0) == pid);
        stuck += !WIFEXITED(status);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    cr_expect(stuck == 0, "fork %u waits for ever", i);
}

Test(stats, one_file_of_several_ranks)
{
    unsetenv("MPI_LOCALNRANKS");
    unsetenv("PMI_LOCAL_SIZE");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    cr_expect(!uci_stats_is_shared("/tmp/stats.json"));
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    cr_expect(uci_stats_is_shared("/tmp/stats.json"));
    cr_expect(uci_stats_is_shared("/tmp/stats.%%p.json"));
    cr_expect(uci_stats_is_shared("/tmp/stats.%h.json"));
    cr_expect(!uci_stats_is_shared("/tmp/stats.%r.json"));
    cr_expect(!uci_stats_is_shared("/tmp/stats.%h.%p.json"));
    cr_expect(!uci_stats_is_shared(""));
    cr_expect(!uci_stats_is_shared("-"));
    cr_expect(!uci_stats_is_shared("/dev/null"));
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1);
    cr_expect(!uci_stats_is_shared("/tmp/stats.%h.json"));
}
