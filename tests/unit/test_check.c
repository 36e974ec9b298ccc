/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Of uci_check, what scripts can't bring about at will: files that go, shrink or become something else between being found and being
 * read; names; two sides that are threads.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/check_manifest.h"
#include "check/check_peer.h"
#include "check/check_pipe.h"
#include "check/check_scan.h"

static char folder[] = "/tmp/uci_check.XXXXXX";
static uci_check_form_t form;
static const uci_check_scan_options_t options = {.threads = 2, .relative = true};

static void start(void)
{
    form = (uci_check_form_t){uci_digest_by_id(UCI_DIGEST_XXH3), 4096, 16};
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static void end(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(check, .init = start, .fini = end);

static void write_file(const char *name, size_t length)
{
    FILE *stream = fopen(name, "w");
    size_t i;

    for (i = 0; i < length; ++i) {
        fputc((int)(i * 2654435761u >> 11) & 0xff, stream);
    }
    cr_assert_eq(fclose(stream), 0);
}

/* One file as it was found, to be read after @a change */
static uci_check_entry_t read_after(void (*change)(void), uci_check_list_t *list)
{
    uci_check_entry_t *entry;
    uci_check_work_t work = {0};
    struct stat st;

    write_file("file", 100000);
    cr_assert_eq(stat("file", &st), 0);
    uci_check_list_init(list, &form);
    entry       = uci_check_list_add(list);
    *entry      = (uci_check_entry_t){.path   = strdup("file"),
                                      .type   = UCI_CHECK_FILE,
                                      .length = (uint64_t)st.st_size,
                                      .dev    = st.st_dev,
                                      .ino    = st.st_ino,
                                      .mtime  = st.st_mtim,
                                      .ctime  = st.st_ctim};
    entry->name = entry->path;
    uci_check_list_make_leaves(list);
    change();
    uci_check_read(list, &options, &work);
    return *entry;
}

static void nothing(void)
{
}

static void removed(void)
{
    unlink("file");
}

static void shrunk(void)
{
    cr_assert_eq(truncate("file", 5000), 0);
}

static void become_link(void)
{
    unlink("file");
    cr_assert_eq(symlink("/etc/passwd", "file"), 0);
}

static void become_pipe(void)
{
    unlink("file");
    cr_assert_eq(mkfifo("file", 0600), 0);
}

static void replaced(void)
{
    write_file("other", 100000);
    cr_assert_eq(rename("other", "file"), 0);
}

static void become_folder(void)
{
    unlink("file");
    mkdir("file", 0700);
}

Test(check, files_that_change, .timeout = 20)
{
    static const struct {
        void (*change)(void);
        int error;
    } cases[] = {{nothing, 0},
                 {removed, ENOENT},
                 {shrunk, UCI_CHECK_CHANGED},
                 {become_link, UCI_CHECK_CHANGED},
                 {become_pipe, UCI_CHECK_CHANGED},
                 {become_folder, UCI_CHECK_CHANGED},
                 {replaced, UCI_CHECK_CHANGED}};
    uci_check_entry_t entry;
    uci_check_list_t list;
    size_t i;

    for (i = 0; i < uci_array_size(cases); ++i) {
        cr_assert_eq(system("rm -rf file"), 0);
        entry = read_after(cases[i].change, &list);
        cr_expect_eq(entry.error, cases[i].error, "case %zu: %s", i, uci_check_why(&entry));
        cr_expect_eq(entry.type, (cases[i].error == 0) ? UCI_CHECK_FILE : UCI_CHECK_UNREADABLE);
        uci_check_list_cleanup(&list);
    }
}

Test(check, names)
{
    static const struct {
        const char *name, *text;
    } cases[]                        = {{"plain name", "plain name"},
                                        {"a\nb\\c\t", "a\\nb\\\\c\\x09"},
                                        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
                                        {"\xff\xc3", "\\xff\\xc3"},
                                        {"\xc2\x9b", "\\xc2\\x9b"},                            /* a control character */
                                        {"\xc0\xaf\xe0\x80\xaf", "\\xc0\\xaf\\xe0\\x80\\xaf"}, /* written too long */
                                        {"\xed\xa0\x80", "\\xed\\xa0\\x80"}};                  /* half a pair */
    static const char *const wrong[] = {"\\", "\\x", "\\x1", "\\x00", "\\xzz", "\\t", "a\\"};
    char *text, copy[16];
    size_t i;

    for (i = 0; i < uci_array_size(cases); ++i) {
        text = uci_check_escape(cases[i].name);
        cr_expect_str_eq(text, cases[i].text);
        cr_expect(uci_check_unescape(text));
        cr_expect_str_eq(text, cases[i].name);
        free(text);
    }
    for (i = 0; i < uci_array_size(wrong); ++i) {
        snprintf(copy, sizeof(copy), "%s", wrong[i]);
        cr_expect_not(uci_check_unescape(copy), "%s", wrong[i]);
    }
}

/* A manifest is taken as it was written, or not at all: each byte changed, each length cut */
Test(check, manifests_that_are_damaged, .timeout = 60)
{
    char *paths[] = {".", NULL}, *text, *copy;
    uci_check_manifest_t manifest;
    uci_check_work_t work = {0};
    uci_check_list_t list;
    uint64_t digest;
    size_t length, i;
    FILE *stream;

    write_file("a", 10000);
    write_file("b\n", 0);
    uci_check_list_init(&list, &form);
    cr_assert(uci_check_scan(paths, &options, &list, &work));
    cr_assert(uci_check_manifest_write(&list, paths, "manifest", true, &digest));
    stream = fopen("manifest", "r");
    text   = calloc(1, 65536);
    length = fread(text, 1, 65535, stream);
    fclose(stream);
    for (i = 0; i <= length; ++i) {
        copy = calloc(1, length + 1);
        memcpy(copy, text, length);
        if (i < length) {
            copy[i] ^= 1;
        }
        cr_expect_eq(uci_check_manifest_parse(copy, length, &manifest) == NULL, i == length, "byte %zu", i);
        uci_check_manifest_cleanup(&manifest);
        if (i < length) {
            copy = strndup(text, i);
            cr_expect_not_null(uci_check_manifest_parse(copy, i, &manifest), "cut at %zu", i);
            uci_check_manifest_cleanup(&manifest);
        }
    }
    cr_assert(uci_check_manifest_read("manifest", &manifest));
    cr_expect_eq(manifest.list.count, 3);
    cr_expect_not_null(manifest.list.entries[1].leaves);
    uci_check_manifest_cleanup(&manifest);
    uci_check_list_cleanup(&list);
    free(text);
}

typedef struct {
    int fd, is_first;
    const char *path;
    uci_status_t status;
    uci_check_list_t own, subset, theirs;
    uci_check_diffs_t diffs;
} side_t;

static void *run_side(void *arg)
{
    side_t *side          = arg;
    uci_check_pipe_t pipe = {.in = side->fd, .out = side->fd};
    uci_check_wire_t wire = {uci_check_pipe_swap, &pipe};
    char *paths[]         = {(char *)side->path, NULL};
    uci_check_work_t work = {0};
    const bool is_good    = uci_check_scan(paths, &options, &side->own, &work);

    side->status = uci_check_peer_compare(&wire, is_good ? &side->own : NULL, side->is_first, side->is_first,
                                          &side->subset, &side->theirs, &side->diffs);
    shutdown(side->fd, SHUT_RDWR);
    return NULL;
}

static void compare(side_t sides[2])
{
    pthread_t thread;
    int fds[2], i;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (i = 0; i < 2; ++i) {
        sides[i] = (side_t){.fd = fds[i], .is_first = (i == 0), .path = (i == 0) ? "a" : "b"};
        uci_check_list_init(&sides[i].own, &form);
        uci_check_list_init(&sides[i].subset, &form);
        uci_check_list_init(&sides[i].theirs, &form);
    }
    pthread_create(&thread, NULL, run_side, &sides[1]);
    run_side(&sides[0]);
    pthread_join(thread, NULL);
    close(fds[0]);
    close(fds[1]);
}

static void cleanup(side_t sides[2])
{
    int i;

    for (i = 0; i < 2; ++i) {
        uci_check_diffs_cleanup(&sides[i].diffs);
        uci_check_list_cleanup(&sides[i].subset);
        uci_check_list_cleanup(&sides[i].theirs);
        uci_check_list_cleanup(&sides[i].own);
    }
}

/* Both sides know the same; what neither can read is the same to none */
Test(check, two_sides, .timeout = 60)
{
    side_t sides[2];

    mkdir("a", 0700);
    mkdir("b", 0700);
    write_file("a/file", 100000);
    write_file("b/file", 100000);
    compare(sides);
    cr_expect_eq(sides[0].status, UCI_OK);
    cr_expect_eq(sides[1].status, UCI_OK);
    cr_expect_eq(sides[0].diffs.count, 0);
    cr_expect_eq(sides[0].diffs.compared, 2);
    cleanup(sides);

    cr_assert_eq(truncate("b/file", 90000), 0);
    write_file("b/more", 1);
    compare(sides);
    cr_expect_eq(sides[1].status, UCI_OK);
    cr_assert_eq(sides[0].diffs.count, 2);
    cr_assert_eq(sides[1].diffs.count, 2);
    cr_expect_eq(sides[0].diffs.list[0].ranges.list[0].offset, 90000 / 4096 * 4096);
    cr_expect_eq(sides[0].diffs.list[0].ranges.bytes, 100000 - (90000 / 4096 * 4096));
    cr_expect_eq(sides[1].diffs.list[0].ranges.bytes, 100000 - (90000 / 4096 * 4096));
    cr_expect_eq(sides[0].diffs.list[1].kind, UCI_CHECK_DIFF_NEW);
    cleanup(sides);

    cr_assert_eq(rename("b", "c"), 0);
    compare(sides);
    cr_expect_eq(sides[0].status, UCI_ERR_IO);
    cr_expect_eq(sides[1].status, UCI_ERR_IO);
    cleanup(sides);
}
