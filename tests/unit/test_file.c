/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that others read and write at the same time.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "container.h"
#include "util/file.h"
#include "util/process.h"
#include "util/process_id.h"

static char folder[] = "/tmp/uci-test-file.XXXXXX";

static void make_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
}

static void drop_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(file, .init = make_folder, .fini = drop_folder);

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_text(FILE *stream, const void *arg)
{
    fputs(arg, stream);
}

static void expect_content(const char *path, const char *expected)
{
    size_t length;
    char *text;

    cr_assert_eq(uci_file_read(path, 1 << 20, &text, &length), UCI_OK);
    cr_expect_str_eq(text, expected);
    cr_expect_eq(length, strlen(expected));
    free(text);
}

static unsigned count_entries(void)
{
    DIR *dir       = opendir(folder);
    unsigned count = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL) {
        ++count;
    }
    closedir(dir);
    return count - 2; /* . and .. */
}

Test(file, replaced_as_a_whole)
{
    const char *path = path_of("a");

    cr_assert_eq(uci_file_replace(path, write_text, "old"), UCI_OK);
    expect_content(path, "old");
    cr_assert_eq(uci_file_replace(path, write_text, "new"), UCI_OK);
    expect_content(path, "new");
    cr_expect_eq(count_entries(), 1, "a temporary file is left");
}

Test(file, many_writers_leave_one_of_their_files)
{
    static char text[100001]; /* far more than one write */
    const char *path = path_of("b");
    unsigned i, j;
    size_t length;
    char *found;

    for (i = 0; i < 8; ++i) {
        if (fork() == 0) {
            memset(text, 'a' + (int)i, sizeof(text) - 1);
            for (j = 0; j < 20; ++j) {
                if (uci_file_replace(path, write_text, text) != UCI_OK) {
                    _exit(1);
                }
            }
            _exit(0);
        }
    }
    for (i = 0; i < 8; ++i) {
        int status;

        cr_assert_gt(wait(&status), 0);
        cr_expect_eq(status, 0);
        cr_assert_eq(uci_file_read(path, sizeof(text), &found, &length), UCI_OK);
        cr_expect_eq(length, sizeof(text) - 1);
        cr_expect_eq(strspn(found, (char[]){found[0], 0}), length, "mixed");
        free(found);
    }
    cr_expect_eq(count_entries(), 1);
}

/* As often as many_writers_leave_one_of_their_files: of processes of one number neither takes the other's file away */
static int replace_often(void *arg)
{
    unsigned i;

    for (i = 0; i < 200; ++i) {
        if (uci_file_replace(arg, write_text, "text") != UCI_OK) {
            return 1;
        }
    }
    return 0;
}

Test(file, writers_in_containers_have_one_number)
{
    char *path = strdup(path_of("c"));
    pid_t pids[4];
    size_t i;

    for (i = 0; i < 4; ++i) {
        pids[i] = test_container_start(replace_often, path);
    }
    for (i = 0; i < 4; ++i) {
        test_container_wait(pids[i]);
    }
    expect_content(path, "text");
    cr_expect_eq(count_entries(), 1);
    free(path);
}

Test(file, what_is_no_file_is_written_into)
{
    struct stat info;

    cr_expect_eq(uci_file_replace("/dev/null", write_text, "x"), UCI_OK);
    cr_assert_eq(stat("/dev/null", &info), 0);
    cr_expect(S_ISCHR(info.st_mode));
}

Test(file, errors)
{
    size_t length;
    char *text;

    cr_expect_eq(uci_file_replace(path_of("no/such/folder"), write_text, "x"), UCI_ERR_IO);
    cr_expect_eq(errno, ENOENT);
    cr_expect_eq(uci_file_read(path_of("none"), 10, &text, &length), UCI_ERR_NO_ELEM);
    cr_expect_eq(uci_file_read(folder, 10, &text, &length), UCI_ERR_IO);
    cr_expect_eq(errno, EISDIR);
    cr_assert_eq(uci_file_replace(path_of("c"), write_text, "12345"), UCI_OK);
    cr_expect_eq(uci_file_read(path_of("c"), 4, &text, &length), UCI_ERR_IO);
    cr_expect_eq(errno, EFBIG);
    cr_assert_eq(uci_file_read(path_of("c"), 5, &text, &length), UCI_OK);
    free(text);
}

/* A device without an end, and pipes whose other side nobody has: said, not waited for */
Test(file, what_is_no_file_is_not_read, .timeout = 10)
{
    static const char *const wrong[] = {"/dev/zero", "/dev/random", "/dev/full"};
    size_t length, i;
    char *text;

    for (i = 0; i < uci_array_size(wrong); ++i) {
        cr_expect_eq(uci_file_read(wrong[i], 10, &text, &length), UCI_ERR_IO, "%s", wrong[i]);
        cr_expect_eq(errno, EINVAL);
    }
    cr_assert_eq(mkfifo(path_of("pipe"), 0600), 0);
    cr_expect_eq(uci_file_read(path_of("pipe"), 10, &text, &length), UCI_ERR_IO);
    cr_expect_str_eq(uci_file_error(errno), "it is not a regular file");
    cr_expect_null(uci_file_open(path_of("pipe")));
    expect_content("/dev/null", "");
}

Test(file, a_pipe_without_a_reader_is_not_waited_for, .timeout = 10)
{
    FILE *reader, *writer;
    char line[16];

    cr_assert_eq(mkfifo(path_of("pipe"), 0600), 0);
    cr_expect_eq(uci_file_replace(path_of("pipe"), write_text, "x"), UCI_ERR_IO);
    cr_expect_str_eq(uci_file_error(errno), "nobody reads from it");
    cr_expect_null(uci_file_create(path_of("pipe"), true));

    reader = fopen(path_of("pipe"), "r+"); /* both sides */
    cr_assert_not_null(reader);
    writer = uci_file_create(path_of("pipe"), true);
    cr_assert_not_null(writer);
    fputs("line\n", writer);
    cr_expect_eq(fclose(writer), 0);
    cr_assert_not_null(fgets(line, sizeof(line), reader));
    cr_expect_str_eq(line, "line\n");
    fclose(reader);
}

Test(file, appended)
{
    const char *path = path_of("log");
    FILE *stream;
    int i;

    for (i = 0; i < 2; ++i) {
        stream = uci_file_create(path, true);
        cr_assert_not_null(stream);
        fputs("line\n", stream);
        fclose(stream);
    }
    expect_content(path, "line\nline\n");
    stream = uci_file_create(path, false);
    cr_assert_not_null(stream);
    fclose(stream);
    expect_content(path, "");
}

/* What was put in the way of the file that becomes the new one is not written into */
Test(file, no_link_in_the_way_is_followed)
{
    char name[512], precious[256];
    struct stat info;

    snprintf(precious, sizeof(precious), "%s", path_of("precious"));
    cr_assert_eq(uci_file_replace(precious, write_text, "precious"), UCI_OK);
    snprintf(name, sizeof(name), "%s.%s.%lu.%d.tmp", path_of("target"), uci_process_host(), uci_process_pid_space(),
             (int)gettid());
    cr_assert_eq(symlink(precious, name), 0);
    cr_assert_eq(uci_file_replace(path_of("target"), write_text, "new"), UCI_OK);
    expect_content(precious, "precious");
    expect_content(path_of("target"), "new");
    cr_assert_eq(lstat(path_of("target"), &info), 0);
    cr_expect(S_ISREG(info.st_mode));
    cr_expect_eq(count_entries(), 2);
}

/* A log folder for everybody (mode 1777): a link there is followed if it is ours, or of whose folder it is */
Test(file, a_link_of_another_user_is_not_written_through)
{
    char link[256], target[256];
    FILE *stream;

    if (geteuid() != 0) {
        cr_skip_test("only root can make a link another user's");
    }
    snprintf(target, sizeof(target), "%s", path_of("precious"));
    snprintf(link, sizeof(link), "%s", path_of("events.1.jsonl"));
    cr_assert_eq(uci_file_replace(target, write_text, "precious"), UCI_OK);
    cr_assert_eq(symlink(target, link), 0);
    cr_assert_eq(chmod(folder, 01777), 0);
    stream = uci_file_create(link, true);
    cr_assert_not_null(stream, "a link of our own");
    fclose(stream);
    cr_assert_eq(lchown(link, 65534, 65534), 0);
    cr_assert_null(uci_file_create(link, true));
    cr_expect(strstr(uci_file_error(errno), "link") != NULL || errno == EACCES, "%s", strerror(errno));
    cr_assert_null(uci_file_create(link, false));
    cr_assert_eq(chmod(folder, 0755), 0);
    stream = uci_file_create(link, true);
    cr_assert_not_null(stream, "in a folder where nobody else can put it");
    fclose(stream);
    expect_content(target, "precious");
}

Test(file, make_folder)
{
    struct stat info;

    cr_assert_eq(uci_file_make_folder(path_of("x/y/z.json")), UCI_OK);
    cr_assert_eq(stat(path_of("x/y"), &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0700);
    cr_expect_neq(stat(path_of("x/y/z.json"), &info), 0);
    cr_expect_eq(uci_file_make_folder(path_of("x/y/z.json")), UCI_OK, "there already");
    cr_assert_eq(uci_file_replace(path_of("f"), write_text, "x"), UCI_OK);
    cr_expect_eq(uci_file_make_folder(path_of("f/g/h")), UCI_ERR_IO, "a file is in the way");
}

Test(file, check_writable)
{
    struct stat info;

    cr_expect_eq(uci_file_check_writable(path_of("new")), UCI_OK);
    cr_expect_neq(stat(path_of("new"), &info), 0, "it was not made");
    cr_assert_eq(uci_file_replace(path_of("old"), write_text, "x"), UCI_OK);
    cr_expect_eq(uci_file_check_writable(path_of("old")), UCI_OK);
    cr_expect_eq(uci_file_check_writable("new"), UCI_OK, "in the working folder");
    cr_expect_eq(uci_file_check_writable(path_of("none/new")), UCI_ERR_IO);
    cr_expect_eq(errno, ENOENT);
    cr_expect_eq(uci_file_check_writable(path_of("old/new")), UCI_ERR_IO);
    cr_expect_eq(errno, ENOTDIR);
    cr_expect_eq(uci_file_check_writable("/"), UCI_ERR_IO);
    cr_expect_eq(errno, EISDIR);
}
