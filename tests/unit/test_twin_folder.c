/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How processes of twins find each other through files.
 */
#include "capture.h"
#include "twin/twin_folder.h"
#include "twin_settings.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/uci-test-twins-XXXXXX";
static char twins[64];

static void set_up(void)
{
    cr_assert_not_null(mkdtemp(folder));
    snprintf(twins, sizeof(twins), "%s/a/b", folder); /* is made */
    test_twin_settings("/nowhere,0/2", "300", "1000");
}

static void tear_down(void)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(twin_folder, .init = set_up, .fini = tear_down);

static uci_twin_card_t own_card(void)
{
    uci_twin_card_t card;

    cr_assert_eq(uci_twin_card_fill(&card), UCI_OK);
    return card;
}

static bool is_there(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", twins, name);
    return access(path, F_OK) == 0;
}

static void write_text(const char *name, const char *text)
{
    char path[256];
    FILE *stream;

    snprintf(path, sizeof(path), "%s/%s", twins, name);
    stream = fopen(path, "w");
    cr_assert(stream != NULL);
    fputs(text, stream);
    fclose(stream);
}

Test(twin_folder, a_card_is_found_and_removed)
{
    uci_twin_card_t card = own_card(), found;

    cr_expect_eq(uci_twin_card_read(twins, 0, 300, &found), UCI_ERR_NO_ELEM);
    card.address        = "worker";
    card.address_length = 6;
    cr_assert_eq(uci_twin_card_write(twins, &card), UCI_OK);
    cr_expect(is_there("1/0.300.twin"));
    cr_expect_eq(uci_twin_card_read(twins, 1, 300, &found), UCI_ERR_NO_ELEM);
    cr_expect_eq(uci_twin_card_read(twins, 0, 44, &found), UCI_ERR_NO_ELEM);
    cr_assert_eq(uci_twin_card_read(twins, 0, 300, &found), UCI_OK);
    cr_expect((found.pid == getpid()) && (found.address_length == 6));
    cr_expect_arr_eq(found.address, "worker", 6);
    uci_twin_card_cleanup(&found);
    cr_assert_eq(uci_twin_card_write(twins, &card), UCI_OK, "one's own card may be written again");
    uci_twin_card_remove(twins, &card);
    cr_expect(!is_there("1"));
    cr_expect(is_there(""));
    uci_twin_card_remove(twins, &card);
    cr_expect_eq(uci_twin_card_read(twins, 0, 300, &found), UCI_ERR_NO_ELEM);
}

/* @return what was said, to be freed */
static char *read_bad(unsigned twin, unsigned rank, uci_status_t expected)
{
    test_capture_t capture = test_capture_start();
    uci_twin_card_t found;
    uci_status_t status = uci_twin_card_read(twins, twin, rank, &found);
    char *text          = test_capture_stop(&capture);

    cr_expect_eq(status, expected, "%d", status);
    return text;
}

Test(twin_folder, a_bad_card_is_refused_and_told_of_once)
{
    uci_twin_card_t card = own_card();
    char *text;

    cr_assert_eq(uci_twin_card_write(twins, &card), UCI_OK);
    write_text("1/1.300.twin", "uci-twin 1\n");
    text = read_bad(1, 300, UCI_ERR_INVALID_PARAM);
    cr_expect(strstr(text, "1/1.300.twin, which a twin has left: it is not a file of a twin") != NULL, "%s", text);
    free(text);
    text = read_bad(1, 300, UCI_ERR_INVALID_PARAM);
    cr_expect_str_eq(text, "");
    free(text);
}

Test(twin_folder, a_card_under_another_name_is_refused)
{
    uci_twin_card_t card = own_card();
    char from[256], to[256], *text;

    cr_assert_eq(uci_twin_card_write(twins, &card), UCI_OK);
    snprintf(from, sizeof(from), "%s/1/0.300.twin", twins);
    snprintf(to, sizeof(to), "%s/1/0.301.twin", twins);
    cr_assert_eq(rename(from, to), 0);
    text = read_bad(0, 301, UCI_ERR_INVALID_PARAM);
    cr_expect(strstr(text, "another rank or twin than its name") != NULL, "%s", text);
    free(text);
}

Test(twin_folder, what_is_no_file_is_refused)
{
    uci_twin_card_t card = own_card();
    char path[256], *text;

    cr_assert_eq(uci_twin_card_write(twins, &card), UCI_OK);
    snprintf(path, sizeof(path), "%s/1/1.300.twin", twins);
    cr_assert_eq(mkfifo(path, 0600), 0);
    text = read_bad(1, 300, UCI_ERR_IO);
    cr_expect(strstr(text, "it is not a regular file") != NULL, "%s", text);
    free(text);
}

/* A process that leaves its card, and is killed, or lives on until the pipe is closed */
static pid_t start_other(bool lives, int *hold_p)
{
    int ready[2], hold[2];
    char byte;
    pid_t pid;

    cr_assert((pipe(ready) == 0) && (pipe(hold) == 0));
    pid = fork();
    if (pid == 0) {
        uci_twin_card_t card;

        close(hold[1]);
        if ((uci_twin_card_fill(&card) != UCI_OK) || (uci_twin_card_write(twins, &card) != UCI_OK) ||
            (write(ready[1], "x", 1) != 1) || (read(hold[0], &byte, 1) < 0)) {
            _exit(1);
        }
        _exit(0);
    }
    close(hold[0]);
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    *hold_p = hold[1];
    if (!lives) {
        close(hold[1]);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
    }
    return pid;
}

Test(twin_folder, a_card_of_a_process_that_is_gone_is_none)
{
    uci_twin_card_t card, found;
    int hold;

    start_other(false, &hold);
    cr_expect(is_there("1/0.300.twin"));
    cr_expect_eq(uci_twin_card_read(twins, 0, 300, &found), UCI_ERR_NO_ELEM);
    card = own_card();
    cr_expect_eq(uci_twin_card_write(twins, &card), UCI_OK);
    cr_expect_eq(uci_twin_card_read(twins, 0, 300, &found), UCI_OK);
    uci_twin_card_cleanup(&found);
}

Test(twin_folder, who_is_there_already_stays)
{
    uci_twin_card_t card = own_card(), found;
    test_capture_t capture;
    uci_status_t status;
    char *text;
    pid_t pid;
    int hold;

    pid     = start_other(true, &hold);
    capture = test_capture_start();
    status  = uci_twin_card_write(twins, &card);
    text    = test_capture_stop(&capture);
    cr_expect_eq(status, UCI_ERR_BUSY);
    cr_expect(strstr(text, "is rank 300 of twin 0 already") != NULL, "%s", text);
    uci_twin_card_remove(twins, &card);
    cr_assert_eq(uci_twin_card_read(twins, 0, 300, &found), UCI_OK, "only one's own card is removed");
    cr_expect_eq(found.pid, pid);
    close(hold);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    uci_twin_card_cleanup(&found);
    free(text);
}

Test(twin_folder, a_folder_that_cannot_be_written_is_told_of)
{
    uci_twin_card_t card = own_card();
    test_capture_t capture;
    uci_status_t status;
    char *text;

    capture = test_capture_start();
    status  = uci_twin_card_write("/proc/self/fd", &card);
    text    = test_capture_stop(&capture);
    cr_expect_eq(status, UCI_ERR_IO);
    cr_expect(strstr(text, "cannot write /proc/self/fd/1/0.300.twin") != NULL, "%s", text);
    cr_expect(strstr(text, "UCI_TWINS must name a folder that all of them can write to") != NULL, "%s", text);
    free(text);
}

#define THREADS 4
#define ROUNDS  200

static atomic_uint parts;

/* Others come and go in the same folder, which disappears and is made again; what is read is whole */
static void *come_and_go(void *arg)
{
    uci_twin_card_t card = own_card(), found;
    uci_status_t status;
    unsigned i;

    card.rank = 512 + (unsigned)(uintptr_t)arg;
    for (i = 0; i < ROUNDS; ++i) {
        if (uci_twin_card_write(twins, &card) != UCI_OK) {
            return NULL;
        }
        status = uci_twin_card_read(twins, 0, 512 + (i % THREADS), &found);
        if (status == UCI_OK) {
            uci_twin_card_cleanup(&found);
        } else if (status != UCI_ERR_NO_ELEM) {
            return NULL;
        }
        uci_twin_card_remove(twins, &card);
    }
    atomic_fetch_add(&parts, 1);
    return NULL;
}

Test(twin_folder, others_come_and_go)
{
    pthread_t threads[THREADS];
    uintptr_t i;

    for (i = 0; i < THREADS; ++i) {
        cr_assert_eq(pthread_create(&threads[i], NULL, come_and_go, (void *)i), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    cr_expect_eq(atomic_load(&parts), THREADS);
    cr_expect(!is_there("2"));
}
