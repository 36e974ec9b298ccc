/* SPDX-License-Identifier: BSD-3-Clause */
#include "seal_key.h"
#include "util/log.h"
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define UCI_SEAL_KEY_DIGITS (2 * UCI_SEAL_KEY)
#define UCI_SEAL_KEY_MODE   (S_IRUSR | S_IWUSR) /* at most */

#define UCI_SEAL_KEY_HOW "make one with (umask 077; openssl rand -hex 32 >FILE)"

static int uci_seal_key_digit(char digit)
{
    if ((digit >= '0') && (digit <= '9')) {
        return digit - '0';
    }
    digit |= 0x20; /* lower case */
    return ((digit >= 'a') && (digit <= 'f')) ? digit - 'a' + 10 : -1;
}

static bool uci_seal_key_parse(const char *text, size_t length, uint8_t *key)
{
    int high, low, bad = 0;
    size_t i;

    if ((length != UCI_SEAL_KEY_DIGITS + 1) || (text[UCI_SEAL_KEY_DIGITS] != '\n')) {
        return false;
    }
    for (i = 0; i < UCI_SEAL_KEY; ++i) {
        high = uci_seal_key_digit(text[2 * i]);
        low  = uci_seal_key_digit(text[2 * i + 1]);
        bad |= high | low;
        key[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    return bad >= 0;
}

/* @return -1 (logged) if it can't be opened. Neither a pipe nor a link may lead us elsewhere. */
static int uci_seal_key_open(const char *path, uci_status_t *status_p)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0) {
        return fd;
    }
    *status_p = (errno == ENOENT) ? UCI_ERR_NO_ELEM : (errno == ELOOP) ? UCI_ERR_INVALID_PARAM : UCI_ERR_IO;
    if (errno == ELOOP) {
        uci_error("key file %s is a symbolic link: name the file itself in UCI_KEY_FILE", path);
    } else if (errno == ENOENT) {
        uci_error(
                "key file %s does not exist on this host: UCI_KEY_FILE must name it where all ranks see it, as 'uci_run "
                "--seal' does; or " UCI_SEAL_KEY_HOW,
                path);
    } else {
        uci_error("key file %s could not be opened: %m", path);
    }
    return -1;
}

/* Looked at when it is open, so that it is the file that is read */
static uci_status_t uci_seal_key_check(const char *path, int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        uci_error("key file %s could not be examined: %m", path);
        return UCI_ERR_IO;
    }
    if (!S_ISREG(info.st_mode)) {
        uci_error("key file %s is not a regular file: name one in UCI_KEY_FILE", path);
        return UCI_ERR_INVALID_PARAM;
    }
    if (info.st_uid != geteuid()) {
        uci_error(
                "key file %s belongs to user %u, and this process is of user %u: use a key of your own; " UCI_SEAL_KEY_HOW,
                path, (unsigned)info.st_uid, (unsigned)geteuid());
        return UCI_ERR_INVALID_PARAM;
    }
    if ((info.st_mode & 07777 & ~UCI_SEAL_KEY_MODE) != 0) {
        uci_error(
                "key file %s has mode %04o: others than its owner may have read or changed it. Make a new key, or, if "
                "you are sure that nobody has: chmod 0600 %s",
                path, (unsigned)(info.st_mode & 07777), path);
        return UCI_ERR_INVALID_PARAM;
    }
    return UCI_OK;
}

/* @param text  secret memory for the file's content, and one byte: to see that there is no more */
static uci_status_t uci_seal_key_load(const char *path, int fd, char *text, uint8_t *key)
{
    size_t length = 0, size = UCI_SEAL_KEY_DIGITS + 2;
    ssize_t ret;

    do {
        ret = read(fd, text + length, size - length);
        length += (ret > 0) ? (size_t)ret : 0;
    } while ((ret > 0) && (length < size));

    if (ret < 0) {
        uci_error("key file %s could not be read: %m", path);
        return UCI_ERR_IO;
    }
    if (!uci_seal_key_parse(text, length, (uint8_t *)text)) {
        uci_error(
                "key file %s does not hold one key, which is 64 hexadecimal digits and an end of line; " UCI_SEAL_KEY_HOW,
                path);
        return UCI_ERR_INVALID_PARAM;
    }
    __builtin_memcpy(key, text, UCI_SEAL_KEY);
    return UCI_OK;
}

uci_status_t uci_seal_key_read(const char *path, uint8_t key[UCI_SEAL_KEY])
{
    uci_status_t status;
    char *text;
    int fd;

    fd = uci_seal_key_open(path, &status);
    if (fd < 0) {
        return status;
    }
    status = uci_seal_key_check(path, fd);
    if (status != UCI_OK) {
        goto out_close;
    }
    text = uci_secret_alloc(UCI_SEAL_KEY_DIGITS + 2);
    if (text == NULL) {
        status = UCI_ERR_NO_MEMORY;
        goto out_close;
    }
    status = uci_seal_key_load(path, fd, text, key);
    uci_secret_free(text);

out_close:
    close(fd);
    return status;
}
