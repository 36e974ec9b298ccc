/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Files with keys: which are taken, and what is said of the others, without a word of what they hold.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "seal/seal_key.h"

#define DIGITS "00112233445566778899aAbBcCdDeEfF000102030405060708090a0b0c0d0e0f"

static char folder[] = "/tmp/uci-test-seal-key.XXXXXX";
static char path[64];

static void make_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/key", folder);
    cr_redirect_stderr();
}

static void drop_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(seal_key, .init = make_folder, .fini = drop_folder);

static void write_key(const char *text, mode_t mode)
{
    FILE *stream;

    unlink(path);
    stream = fopen(path, "w");
    cr_assert_not_null(stream);
    fputs(text, stream);
    fclose(stream);
    cr_assert_eq(chmod(path, mode), 0);
}

/* @param word  of what is printed */
static void expect_refused(uci_status_t expected, const char *word)
{
    static char text[8192];
    uint8_t key[UCI_SEAL_KEY], untouched[UCI_SEAL_KEY];
    FILE *printed = cr_get_redirected_stderr();
    const char *said;
    size_t length;

    memset(key, 0x5a, sizeof(key));
    memcpy(untouched, key, sizeof(key));
    cr_expect_eq(uci_seal_key_read(path, key), expected);
    fflush(stderr);
    usleep(20000);
    length       = (size_t)read(fileno(printed), text, sizeof(text) - 1);
    text[length] = '\0';
    cr_expect_not_null(strstr(text, word), "'%s' is not in: %s", word, text);
    said = strstr(text, " UCI "); /* the time and the process in front of it may hold any digits */
    cr_assert_not_null(said);
    cr_expect_null(strstr(said, "1122"), "what the file holds is printed: %s", text);
    cr_expect_arr_eq(key, untouched, sizeof(key));
}

Test(seal_key, is_read)
{
    static const uint8_t expected[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
                                       0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05,
                                       0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f};
    uint8_t key[UCI_SEAL_KEY];

    write_key(DIGITS "\n", 0600);
    cr_expect_eq(uci_seal_key_read(path, key), UCI_OK);
    cr_expect_arr_eq(key, expected, sizeof(key));
    write_key(DIGITS "\n", 0400);
    cr_expect_eq(uci_seal_key_read(path, key), UCI_OK);
}

Test(seal_key, modes)
{
    static const mode_t modes[] = {0644, 0640, 0604, 0660, 0602, 0620, 0700, 0500, 04600, 0666};
    size_t i;

    for (i = 0; i < uci_array_size(modes); ++i) {
        write_key(DIGITS "\n", modes[i]);
        expect_refused(UCI_ERR_INVALID_PARAM, "chmod 0600");
    }
}

Test(seal_key, owner)
{
    if (geteuid() != 0) {
        cr_skip_test("only root can make a file of somebody else's");
    }
    write_key(DIGITS "\n", 0600);
    cr_assert_eq(chown(path, 12345, 12345), 0);
    expect_refused(UCI_ERR_INVALID_PARAM, "belongs to user 12345");
}

Test(seal_key, contents)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        DIGITS,
                                        DIGITS "\n\n",
                                        DIGITS "0\n",
                                        DIGITS "\r\n",
                                        " " DIGITS "\n",
                                        "0011223344556677\n",
                                        "g0112233445566778899aAbBcCdDeEfF000102030405060708090a0b0c0d0e0f\n",
                                        "00112233445566778899aAbBcCdDeEfF000102030405060708090a0b0c0d0e0/\n",
                                        "00112233445566778899aAbBcCdDeEfF000102030405060708090a0b0c0d0e\n\n\n"};
    size_t i;

    for (i = 0; i < uci_array_size(texts); ++i) {
        write_key(texts[i], 0600);
        expect_refused(UCI_ERR_INVALID_PARAM, "64 hexadecimal digits");
    }
}

Test(seal_key, missing)
{
    expect_refused(UCI_ERR_NO_ELEM, "does not exist on this host");
}

Test(seal_key, folder)
{
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_refused(UCI_ERR_INVALID_PARAM, "not a regular file");
}

Test(seal_key, link)
{
    char target[80];

    write_key(DIGITS "\n", 0600);
    snprintf(target, sizeof(target), "%s.real", path);
    cr_assert_eq(rename(path, target), 0);
    cr_assert_eq(symlink(target, path), 0);
    expect_refused(UCI_ERR_INVALID_PARAM, "symbolic link");
}

Test(seal_key, pipe, .timeout = 10)
{
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refused(UCI_ERR_INVALID_PARAM, "not a regular file");
}

Test(seal_key, device)
{
    snprintf(path, sizeof(path), "/dev/zero");
    expect_refused(UCI_ERR_INVALID_PARAM, "not a regular file");
}

Test(seal_key, unreadable_way)
{
    snprintf(path, sizeof(path), "/dev/null/key");
    expect_refused(UCI_ERR_IO, "could not be opened");
}
