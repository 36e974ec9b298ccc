/* SPDX-License-Identifier: BSD-3-Clause */
#include "live_file.h"
#include "util/process.h"
#include "util/process_id.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UCI_LIVE_COUNTERS_MAX 1024u
#define UCI_LIVE_CLEAN_STAMP  ".cleaned"
#define UCI_LIVE_CLEAN_NS     60000000000ul /* between two who look for files to remove */

const char *const uci_live_fate_names[] = {"running", "ended", "aborted", "killed", "silent", NULL};
const char *const uci_live_wait_names[] = {"nothing", "message", "rest of message", "receive", "acknowledgement", NULL};

uint64_t uci_live_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000000000ul) + (uint64_t)now.tv_nsec;
}

static bool uci_live_file_lies_within(uint64_t offset, uint64_t count, uint64_t size, uint64_t end)
{
    return (offset <= end) && (count * size <= end - offset);
}

static const char *uci_live_file_refusal(const uci_live_header_t *header, size_t length)
{
    uint64_t counters = header->counters;

    if ((header->header_size < UCI_LIVE_HEADER_MIN) || (header->names_offset < header->header_size) ||
        (header->counters > UCI_LIVE_COUNTERS_MAX) || (header->blocks == 0) || (header->state >= UCI_LIVE_STATES) ||
        (header->pid == 0) || (header->pid > INT32_MAX)) {
        return "its header is damaged";
    }
    if ((header->block_size % 8 != 0) || (header->blocks_offset % 8 != 0) || (header->counters_offset % 8 != 0) ||
        (header->counters_offset < sizeof(uci_live_gauges_t)) ||
        !uci_live_file_lies_within(header->counters_offset, counters, 8, header->block_size)) {
        return "its blocks are of no valid form";
    }
    if (!uci_live_file_lies_within(header->names_offset, counters, UCI_LIVE_NAME, header->blocks_offset) ||
        !uci_live_file_lies_within(header->blocks_offset, header->blocks, header->block_size, length)) {
        return "it is cut off, or its header is damaged";
    }
    return NULL;
}

/* Is it one of those before? */
static bool uci_live_file_is_twice(const char *names, unsigned i)
{
    unsigned j;

    for (j = 0; j < i; ++j) {
        if (strcmp(names + ((size_t)j * UCI_LIVE_NAME), names + ((size_t)i * UCI_LIVE_NAME)) == 0) {
            return true;
        }
    }
    return false;
}

/* Names become names of members and of metrics */
static bool uci_live_file_names_are_right(const char *all, unsigned count)
{
    const char *names = all;
    unsigned i;
    size_t length;

    for (i = 0; i < count; ++i, names += UCI_LIVE_NAME) {
        length = strnlen(names, UCI_LIVE_NAME);
        if ((length == 0) || (length == UCI_LIVE_NAME) ||
            (strspn(names, "abcdefghijklmnopqrstuvwxyz0123456789_") != length) || (names[0] < 'a') ||
            uci_live_file_is_twice(all, i)) {
            return false;
        }
    }
    return true;
}

void uci_live_file_make_printable(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (; *text != '\0'; ++text) {
        if ((*text < ' ') || (*text > '~')) { /* a char may be signed: what is not ASCII is one or the other */
            *text = '?';
        }
    }
}

static void uci_live_file_make_header_printable(uci_live_header_t *header)
{
    uci_live_file_make_printable(header->host, sizeof(header->host));
    uci_live_file_make_printable(header->boot, sizeof(header->boot));
    uci_live_file_make_printable(header->job, sizeof(header->job));
    uci_live_file_make_printable(header->program, sizeof(header->program));
    uci_live_file_make_printable(header->mode, sizeof(header->mode));
    uci_live_file_make_printable(header->digest, sizeof(header->digest));
    uci_live_file_make_printable(header->uci_version, sizeof(header->uci_version));
    uci_live_file_make_printable(header->ucx_version, sizeof(header->ucx_version));
    if (header->header_size >= sizeof(*header)) {
        uci_live_file_make_printable(header->revision, sizeof(header->revision));
        uci_live_file_make_printable(header->library, sizeof(header->library));
    }
}

static uci_status_t uci_live_file_check(char *data, size_t length, const char **reason_p)
{
    uci_live_header_t *header = (uci_live_header_t *)(void *)data;

    *reason_p = "it is too short to be a live file";
    if (length < sizeof(header->magic) + sizeof(header->version)) {
        return UCI_ERR_CORRUPT;
    }
    *reason_p = (header->magic == 0)                                   ? "it is being made, or was never finished"
                : (header->magic == __builtin_bswap64(UCI_LIVE_MAGIC)) ? "it is of a host with another byte order"
                                                                       : "it is no live file";
    if (header->magic != UCI_LIVE_MAGIC) {
        return UCI_ERR_CORRUPT;
    }
    *reason_p = "it is of a newer version of UCI";
    if (header->version > UCI_LIVE_VERSION) {
        return UCI_ERR_UNSUPPORTED;
    }
    *reason_p = "it is cut off";
    if ((length < UCI_LIVE_HEADER_MIN) || (header->version != UCI_LIVE_VERSION)) {
        return UCI_ERR_CORRUPT;
    }
    *reason_p = uci_live_file_refusal(header, length);
    if (*reason_p != NULL) {
        return UCI_ERR_CORRUPT;
    }
    if (!uci_live_file_names_are_right(data + header->names_offset, header->counters)) {
        *reason_p = "names of its counters are damaged";
        return UCI_ERR_CORRUPT;
    }
    uci_live_file_make_header_printable(header);
    return UCI_OK;
}

static char *uci_live_file_block(const uci_live_file_t *file, unsigned i)
{
    return file->data + file->header->blocks_offset + ((size_t)i * file->header->block_size);
}

static uci_live_fate_t uci_live_file_fate(const uci_live_header_t *header, uint64_t last_time)
{
    uint64_t now = uci_live_time();

    if (header->state != UCI_LIVE_RUNNING) {
        return (header->state == UCI_LIVE_ENDED) ? UCI_LIVE_FATE_ENDED : UCI_LIVE_FATE_ABORTED;
    }
    if ((header->boot[0] != '\0') && (strcmp(header->boot, uci_process_boot()) == 0)) {
        if (header->pid_space == uci_process_pid_space()) {
            return uci_process_lives((pid_t)header->pid, header->start) ? UCI_LIVE_FATE_RUNNING : UCI_LIVE_FATE_KILLED;
        }
    } else if (strcmp(header->host, uci_process_host()) == 0) {
        return UCI_LIVE_FATE_KILLED; /* the host has been booted since */
    }
    return ((last_time > now) || (now - last_time < UCI_LIVE_SILENCE_NS)) ? UCI_LIVE_FATE_RUNNING
                                                                          : UCI_LIVE_FATE_SILENT;
}

static uint64_t uci_live_file_last_time(const uci_live_file_t *file)
{
    uint64_t last = uci_max(file->header->begin_time, file->header->end_time);
    const uci_live_gauges_t *gauges;
    unsigned i;

    for (i = 1; i < file->header->blocks; ++i) {
        gauges = (const uci_live_gauges_t *)(const void *)uci_live_file_block(file, i);
        last   = uci_max(last, gauges->time);
    }
    return last;
}

uci_status_t uci_live_file_parse(char *data, size_t length, uci_live_file_t *file_p, const char **reason_p)
{
    uci_status_t status = uci_live_file_check(data, length, reason_p);

    if (status != UCI_OK) {
        free(data);
        return status;
    }
    file_p->data      = data;
    file_p->length    = length;
    file_p->header    = (const uci_live_header_t *)(const void *)data;
    file_p->last_time = uci_live_file_last_time(file_p);
    file_p->fate      = uci_live_file_fate(file_p->header, file_p->last_time);
    return UCI_OK;
}

void uci_live_file_cleanup(uci_live_file_t *file)
{
    free(file->data);
    file->data = NULL;
}

/* All that is there, by read() and not by a mapping: its owner may cut the file short at any time */
static uci_status_t uci_live_file_load(int fd, char **data_p, size_t *length_p, const char **reason_p)
{
    struct stat info;
    ssize_t ret;
    char *data;

    if (fstat(fd, &info) != 0) {
        goto err_errno;
    }
    if (!S_ISREG(info.st_mode) || ((size_t)info.st_size > UCI_LIVE_FILE_MAX)) {
        *reason_p = S_ISREG(info.st_mode) ? "it is too large to be a live file" : "it is not a regular file";
        return UCI_ERR_CORRUPT;
    }
    data = malloc((size_t)info.st_size + 1);
    if (data == NULL) {
        *reason_p = "no memory";
        return UCI_ERR_NO_MEMORY;
    }
    ret = pread(fd, data, (size_t)info.st_size, 0);
    if (ret < 0) {
        free(data);
        goto err_errno;
    }
    *data_p   = data;
    *length_p = (size_t)ret;
    return UCI_OK;

err_errno:
    *reason_p = strerrordesc_np(errno);
    return UCI_ERR_IO;
}

uci_status_t uci_live_file_read(int folder_fd, const char *name, uci_live_file_t *file_p, const char **reason_p)
{
    uci_status_t status;
    size_t length;
    char *data;
    int fd;

    fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        *reason_p = (errno == ELOOP) ? "it is a symbolic link" : strerrordesc_np(errno);
        return UCI_ERR_IO;
    }
    status = uci_live_file_load(fd, &data, &length, reason_p);
    close(fd);
    return (status == UCI_OK) ? uci_live_file_parse(data, length, file_p, reason_p) : status;
}

bool uci_live_file_is_name(const char *name)
{
    size_t length = strlen(name), suffix = strlen(UCI_LIVE_SUFFIX);

    return (length > suffix) && (name[0] != '.') && (strcmp(name + length - suffix, UCI_LIVE_SUFFIX) == 0);
}

void uci_live_file_describe(const uci_live_file_t *file, char *text, size_t size)
{
    const uci_live_header_t *header = file->header;

    if (header->header_size >= sizeof(*header)) {
        snprintf(text, size, "UCI %s (%s) of %s", header->uci_version, header->revision, header->library);
    } else {
        snprintf(text, size, "UCI %s", header->uci_version);
    }
}

const char *uci_live_file_name(const uci_live_file_t *file, unsigned i)
{
    return file->data + file->header->names_offset + ((size_t)i * UCI_LIVE_NAME);
}

uint64_t uci_live_file_sum(const uci_live_file_t *file, unsigned i)
{
    uint64_t sum = 0;
    unsigned block;

    for (block = 0; block < file->header->blocks; ++block) {
        sum += ((const uint64_t *)(const void *)(uci_live_file_block(file, block) + file->header->counters_offset))[i];
    }
    return sum;
}

uint64_t uci_live_file_value(const uci_live_file_t *file, const char *name)
{
    unsigned i;

    for (i = 0; i < file->header->counters; ++i) {
        if (strcmp(uci_live_file_name(file, i), name) == 0) {
            return uci_live_file_sum(file, i);
        }
    }
    return 0;
}

bool uci_live_file_gauges(const uci_live_file_t *file, unsigned i, uci_live_gauges_t *gauges_p)
{
    unsigned j;

    memcpy(gauges_p, uci_live_file_block(file, i), sizeof(*gauges_p));
    if ((gauges_p->uid == 0) || (gauges_p->time == 0) || (gauges_p->sequence != gauges_p->sequence_begun)) {
        return false;
    }
    for (j = 0; j < UCI_LIVE_WAITS; ++j) {
        if (gauges_p->waits[j].kind >= UCI_LIVE_WAIT_KINDS) {
            return false;
        }
        uci_live_file_make_printable(gauges_p->waits[j].host, sizeof(gauges_p->waits[j].host));
        uci_live_file_make_printable(gauges_p->waits[j].what, sizeof(gauges_p->waits[j].what));
    }
    return true;
}

int uci_live_folder_open(const char *path, bool own, uint32_t uid)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (own ? O_NOFOLLOW : 0));
    struct stat info;

    if ((fd >= 0) && own &&
        ((fstat(fd, &info) != 0) || (info.st_uid != uid) || ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0))) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* @return true if it is time, and nobody else has come before. One that comes later was left while the clock was wrong */
static bool uci_live_folder_is_due(int folder_fd)
{
    uint64_t now = uci_live_time(), stamp;
    struct stat info;
    int fd;

    if (fstatat(folder_fd, UCI_LIVE_CLEAN_STAMP, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        stamp = (uint64_t)info.st_mtim.tv_sec * 1000000000ul;
        if ((stamp + UCI_LIVE_CLEAN_NS > now) && (stamp < now + UCI_LIVE_CLEAN_NS)) {
            return false;
        }
    }
    fd = openat(folder_fd, UCI_LIVE_CLEAN_STAMP, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                S_IRUSR | S_IWUSR);
    if (fd < 0) {
        return false;
    }
    (void)futimens(fd, NULL);
    close(fd);
    return true;
}

/* The file of a process that is gone, and may be removed */
typedef struct uci_live_gone {
    uint64_t last_time;
    char name[NAME_MAX + 1];
} uci_live_gone_t;

/* The newest, in no order */
typedef struct uci_live_gone_list {
    unsigned count;
    uci_live_gone_t files[UCI_LIVE_GONE_MAX];
} uci_live_gone_list_t;

/* Keep this one, unless there are enough that are newer: then the oldest is removed */
static void uci_live_folder_keep(int folder_fd, uci_live_gone_list_t *list, const char *name, uint64_t last_time)
{
    uci_live_gone_t *oldest = list->files;
    unsigned i;

    if (list->count < UCI_LIVE_GONE_MAX) {
        oldest = &list->files[list->count++];
    } else {
        for (i = 1; i < list->count; ++i) {
            if (list->files[i].last_time < oldest->last_time) {
                oldest = &list->files[i];
            }
        }
        if (last_time <= oldest->last_time) {
            (void)unlinkat(folder_fd, name, 0);
            return;
        }
        (void)unlinkat(folder_fd, oldest->name, 0);
    }
    oldest->last_time = last_time;
    snprintf(oldest->name, sizeof(oldest->name), "%s", name);
}

static void uci_live_folder_clean_file(int folder_fd, uci_live_gone_list_t *list, const char *name)
{
    uint64_t now = uci_live_time(), keep, last_time;
    uci_live_fate_t fate;
    uci_live_file_t file;
    const char *reason;
    struct stat info;

    if (fstatat(folder_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
    }
    if (uci_live_file_read(folder_fd, name, &file, &reason) != UCI_OK) {
        /* its process was killed while it made the file; what is unknown stays */
        if ((info.st_size == 0) && ((uint64_t)info.st_mtim.tv_sec * 1000000000ul + UCI_LIVE_ENDED_NS <= now)) {
            (void)unlinkat(folder_fd, name, 0);
        }
        return;
    }
    fate      = file.fate;
    last_time = file.last_time;
    uci_live_file_cleanup(&file);
    if (fate == UCI_LIVE_FATE_RUNNING) {
        return;
    }
    keep = (fate == UCI_LIVE_FATE_ENDED) ? UCI_LIVE_ENDED_NS : UCI_LIVE_KEEP_NS;
    if (last_time + keep < now) {
        (void)unlinkat(folder_fd, name, 0);
    } else if (fate != UCI_LIVE_FATE_SILENT) { /* that one may be there still */
        uci_live_folder_keep(folder_fd, list, name, last_time);
    }
}

void uci_live_folder_clean(int folder_fd)
{
    uci_live_gone_list_t *gone;
    struct dirent *entry;
    DIR *dir;
    int fd;

    if (!uci_live_folder_is_due(folder_fd)) {
        return;
    }
    gone = malloc(sizeof(*gone));
    if (gone == NULL) {
        return;
    }
    gone->count = 0;
    fd          = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir         = (fd >= 0) ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        goto out_free;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (uci_live_file_is_name(entry->d_name)) {
            uci_live_folder_clean_file(folder_fd, gone, entry->d_name);
        }
    }
    closedir(dir);
out_free:
    free(gone);
}
