/* SPDX-License-Identifier: BSD-3-Clause */
#include "file.h"
#include "process.h"
#include "process_id.h"
#include "quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define UCI_FILE_TEMP_MAX 512 /* what the name of a temporary file adds to the one it becomes */

#define UCI_FILE_NULL_DEVICE makedev(1, 3)

static FILE *uci_file_stream(int fd, const char *mode)
{
    FILE *stream = fdopen(fd, mode);

    if (stream == NULL) {
        close(fd);
    }
    return stream;
}

/* @return 0, or an errno */
static int uci_file_refusal(int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        return errno;
    }
    if (S_ISREG(info.st_mode) || (S_ISCHR(info.st_mode) && (info.st_rdev == UCI_FILE_NULL_DEVICE))) {
        return 0;
    }
    return S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
}

FILE *uci_file_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), refusal;

    if (fd < 0) {
        errno = (errno == ENXIO) ? EINVAL : errno; /* a socket */
        return NULL;
    }
    refusal = uci_file_refusal(fd);
    if (refusal != 0) {
        close(fd);
        errno = refusal;
        return NULL;
    }
    return uci_file_stream(fd, "r");
}

/* @return false: it has a name that is too long, with errno set */
static bool uci_file_folder_of(const char *path, char folder[PATH_MAX])
{
    char *slash;

    if (strlen(path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(folder, path);
    slash = strrchr(folder, '/');
    if (slash == NULL) {
        strcpy(folder, ".");
    } else {
        slash[(slash == folder) ? 1 : 0] = '\0';
    }
    return true;
}

/* A link that somebody else may have put into a folder of everybody's leads to a file of ours: the kernel's rule (proc_sys_fs(5), protected_symlinks),
 * which not every machine has on */
static bool uci_file_is_a_trap(const char *path)
{
    struct stat link, info;
    char folder[PATH_MAX];

    return (lstat(path, &link) == 0) && S_ISLNK(link.st_mode) && uci_file_folder_of(path, folder) &&
           (stat(folder, &info) == 0) && (info.st_mode & S_ISVTX) && (info.st_mode & S_IWOTH) &&
           (link.st_uid != geteuid()) && (link.st_uid != info.st_uid);
}

static FILE *uci_file_open_to_write(const char *path, int flags)
{
    static const mode_t mode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
    int fd;

    flags |= O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    fd = open(path, flags | O_NOFOLLOW, mode);
    if ((fd < 0) && (errno == ELOOP) && !uci_file_is_a_trap(path)) {
        fd = open(path, flags, mode);
    }
    if (fd < 0) {
        return NULL;
    }
    fcntl(fd, F_SETFL, flags & O_APPEND); /* somebody reads: writing may wait for him */
    return uci_file_stream(fd, (flags & O_APPEND) ? "a" : "w");
}

FILE *uci_file_create(const char *path, bool append)
{
    return uci_file_open_to_write(path, append ? O_APPEND : O_TRUNC);
}

const char *uci_file_error(int error)
{
    switch (error) {
    case EINVAL:
        return "it is not a regular file";
    case EFBIG:
        return "it is too large";
    case ELOOP:
        return "it is a link of another user's in a folder of everybody's, or leads to itself";
    case ENXIO:
        return "nobody reads from it";
    default:
        return strerror(error);
    }
}

static uci_status_t uci_file_write(FILE *stream, uci_file_write_func_t write, const void *arg)
{
    uci_quiet_t quiet;
    int failed;

    if (stream == NULL) {
        return UCI_ERR_IO;
    }

    uci_quiet_begin(&quiet);
    write(stream, arg);
    failed = ferror(stream);
    failed |= fclose(stream);
    uci_quiet_end(&quiet);
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
        return uci_file_write(uci_file_create(path, false), write, arg);
    }

    /* of containers of one host each has a thread of this number */
    snprintf(temp, sizeof(temp), "%s.%s.%lu.%d.tmp", path, uci_process_host(), uci_process_pid_space(),
             (int)syscall(SYS_gettid));
    unlink(temp); /* of a process that was killed, or a link that was put there: it must be a new one */
    if ((uci_file_write(uci_file_open_to_write(temp, O_EXCL), write, arg) == UCI_OK) && (rename(temp, path) == 0)) {
        return UCI_OK;
    }

    saved_errno = errno;
    unlink(temp);
    errno = saved_errno;
    return UCI_ERR_IO;
}

uci_status_t uci_file_check_writable(const char *path)
{
    char folder[PATH_MAX];
    struct stat info;

    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode)) {
            errno = EISDIR;
            return UCI_ERR_IO;
        }
        return (access(path, W_OK) == 0) ? UCI_OK : UCI_ERR_IO;
    }
    if (errno != ENOENT) {
        return UCI_ERR_IO;
    }
    if (!uci_file_folder_of(path, folder)) {
        return UCI_ERR_IO;
    }
    return (access(folder, W_OK) == 0) ? UCI_OK : UCI_ERR_IO;
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
    FILE *stream        = uci_file_open(path);
    uci_status_t status = UCI_OK;
    size_t length;
    char *text;

    if (stream == NULL) {
        return ((errno == ENOENT) || (errno == ENOTDIR)) ? UCI_ERR_NO_ELEM : UCI_ERR_IO;
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
