/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "file.h"
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UCI_FILE_TEMP_MAX 512 /* what the name of a temporary file adds to the one it becomes */

static uci_status_t uci_file_write(const char *path, uci_file_write_func_t write, const void *arg)
{
    FILE *stream = fopen(path, "we");
    int failed;

    if (stream == NULL) {
        return UCI_ERR_IO;
    }

    write(stream, arg);
    failed = ferror(stream);
    failed |= fclose(stream);
    return failed ? UCI_ERR_IO : UCI_OK;
}

static bool uci_file_may_be_replaced(const char *path)
{
    struct stat info;

    return (lstat(path, &info) != 0) || S_ISREG(info.st_mode);
}

uci_status_t uci_file_replace(const char *path, uci_file_write_func_t write, const void *arg)
{
    char temp[PATH_MAX + UCI_FILE_TEMP_MAX];
    int saved_errno;

    if (!uci_file_may_be_replaced(path)) {
        return uci_file_write(path, write, arg);
    }

    snprintf(temp, sizeof(temp), "%s.%s.%d.tmp", path, uci_process_host(), (int)syscall(SYS_gettid));
    if ((uci_file_write(temp, write, arg) == UCI_OK) && (rename(temp, path) == 0)) {
        return UCI_OK;
    }

    saved_errno = errno;
    unlink(temp);
    errno = saved_errno;
    return UCI_ERR_IO;
}

uci_status_t uci_file_make_folder(const char *path)
{
    char folder[PATH_MAX];
    char *slash;

    if (strlen(path) >= sizeof(folder)) {
        errno = ENAMETOOLONG;
        return UCI_ERR_IO;
    }

    strcpy(folder, path);
    for (slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if ((mkdir(folder, S_IRWXU) != 0) && (errno != EEXIST)) {
            return UCI_ERR_IO;
        }
        *slash = '/';
    }
    return UCI_OK;
}

uci_status_t uci_file_read(const char *path, size_t max, char **text_p, size_t *length_p)
{
    FILE *stream        = fopen(path, "re");
    uci_status_t status = UCI_OK;
    struct stat info;
    size_t length;
    char *text;

    if (stream == NULL) {
        return ((errno == ENOENT) || (errno == ENOTDIR)) ? UCI_ERR_NO_ELEM : UCI_ERR_IO;
    }
    if ((fstat(fileno(stream), &info) == 0) && S_ISDIR(info.st_mode)) {
        fclose(stream);
        errno = EISDIR;
        return UCI_ERR_IO;
    }

    text = malloc(max + 2); /* one byte more than allowed tells a file that is too large */
    if (text == NULL) {
        fclose(stream);
        return UCI_ERR_NO_MEMORY;
    }
    length = fread(text, 1, max + 1, stream);
    if (ferror(stream) || (length > max)) {
        errno  = (length > max) ? EFBIG : EIO;
        status = UCI_ERR_IO;
        free(text);
    } else {
        text[length] = '\0';
        *text_p      = text;
        *length_p    = length;
    }
    fclose(stream);
    return status;
}
