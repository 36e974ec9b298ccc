/* SPDX-License-Identifier: BSD-3-Clause */
#include "live.h"
#include "util/file.h"
#include "live_file.h"
#include "util/log.h"
#include "util/process.h"
#include "util/process_id.h"
#include "util/quiet.h"
#include "version.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UCI_LIVE_BLOCKS      8u   /* memory is taken for so many blocks at a time */
#define UCI_LIVE_BLOCKS_MAX  512u /* workers beyond that have none */
#define UCI_LIVE_NAMES_TRIED 1000u

static struct {
    char *region; /* NULL: this process has no file */
    size_t reserved;
    pid_t pid;
    dev_t device; /* of the file: who makes it longer opens it again */
    ino_t inode;
    bool used[UCI_LIVE_BLOCKS_MAX];
    char path[PATH_MAX];
} uci_live;

static pthread_mutex_t uci_live_lock = PTHREAD_MUTEX_INITIALIZER;

static uci_live_header_t *uci_live_header(void)
{
    return (uci_live_header_t *)(void *)uci_live.region;
}

static uci_live_gauges_t *uci_live_block(unsigned i)
{
    const uci_live_header_t *header = uci_live_header();

    return (uci_live_gauges_t *)(void *)(uci_live.region + header->blocks_offset + ((size_t)i * header->block_size));
}

static uint64_t *uci_live_counters(unsigned i)
{
    return (uint64_t *)(void *)((char *)uci_live_block(i) + UCI_LIVE_COUNTERS_OFFSET);
}

static uci_live_gauges_t *uci_live_gauges_of(uint64_t *block)
{
    return (uci_live_gauges_t *)(void *)((char *)block - UCI_LIVE_COUNTERS_OFFSET);
}

bool uci_live_is_open(void)
{
    return (uci_live.region != NULL) && (uci_live.pid == getpid());
}

/*
 * A fork. Its memory is at the same place, so that what points there still does, but it is nobody's file any more.
 */
static void uci_live_forked(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    if (uci_live.region != NULL) {
        (void)mmap(uci_live.region, uci_live.reserved, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        uci_live.region = NULL;
    }
    uci_live_lock = unlocked; /* whoever had it is not here */
}

static void uci_live_register(void)
{
    pthread_atfork(NULL, NULL, uci_live_forked);
}

/* With no file, too: there is a lock */
static void uci_live_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_live_register);
}

/* Made so that nobody else can have put something there. @return a descriptor, or -1 with errno */
static int uci_live_open_own_folder(char *path, size_t size)
{
    int fd;

    snprintf(path, size, UCI_LIVE_SHM "/" UCI_LIVE_SHM_PREFIX "%u", (unsigned)geteuid());
    if ((mkdir(path, S_IRWXU) != 0) && (errno != EEXIST)) {
        return -1;
    }
    fd = uci_live_folder_open(path, true, geteuid());
    if (fd >= 0) {
        uci_live_folder_clean(fd);
    }
    return fd;
}

static int uci_live_open_folder(const char *where, char *path, size_t size)
{
    int saved_errno, fd;

    if (strcmp(where, UCI_LIVE_AUTO) == 0) {
        return uci_live_open_own_folder(path, size);
    }
    if ((uci_process_expand(where, path, size - 1) != UCI_OK)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = uci_live_folder_open(path, false, 0);
    if ((fd >= 0) || (errno != ENOENT)) {
        return fd;
    }
    strcat(path, "/"); /* make all in front of the last one */
    saved_errno            = (uci_file_make_folder(path) == UCI_OK) ? 0 : errno;
    path[strlen(path) - 1] = '\0';
    errno                  = saved_errno;
    return (saved_errno == 0) ? uci_live_folder_open(path, false, 0) : -1;
}

static void uci_live_name(char *name, size_t size, unsigned i)
{
    if (i == 0) {
        snprintf(name, size, "%s.%d" UCI_LIVE_SUFFIX, uci_process_host(), (int)getpid());
    } else if (i == 1) {
        snprintf(name, size, "%s.%d-%lu" UCI_LIVE_SUFFIX, uci_process_host(), (int)getpid(), uci_process_pid_space());
    } else {
        snprintf(name, size, "%s.%d-%lu-%u" UCI_LIVE_SUFFIX, uci_process_host(), (int)getpid(), uci_process_pid_space(),
                 i - 1);
    }
}

/* A file of this name is there if the number of its process has come around, or the process has called exec(): keep it. Containers give out
 * the same few numbers, and the kernel that of a container which is gone */
static int uci_live_create(int folder_fd, mode_t rights, char *name, size_t size)
{
    unsigned i;
    int fd = -1;

    for (i = 0; i < UCI_LIVE_NAMES_TRIED; ++i) {
        uci_live_name(name, size, i);
        fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, rights);
        if ((fd >= 0) || (errno != EEXIST)) {
            break;
        }
    }
    return fd;
}

static void uci_live_copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", (text != NULL) ? text : "");
}

static void uci_live_copy_end(char *to, size_t size, const char *text)
{
    size_t length = strlen(text);

    uci_live_copy(to, size, text + ((length < size) ? 0 : length - size + 1));
}

static void uci_live_write_header(uci_live_header_t *header, const char *const *names, unsigned counters)
{
    unsigned i;
    bool dead;

    header->version         = UCI_LIVE_VERSION;
    header->header_size     = sizeof(*header);
    header->names_offset    = sizeof(*header);
    header->counters        = counters;
    header->blocks_offset   = (uint32_t)uci_align_up(sizeof(*header) + (counters * UCI_LIVE_NAME), UCI_CACHE_LINE);
    header->counters_offset = UCI_LIVE_COUNTERS_OFFSET;
    header->block_size      = (uint32_t)uci_align_up(header->counters_offset + (counters * 8), UCI_CACHE_LINE);
    header->blocks          = 1;
    header->state           = UCI_LIVE_RUNNING;
    header->pid             = (uint32_t)getpid();
    header->uid             = (uint32_t)geteuid();
    header->rank            = uci_process_rank();
    header->job_size        = uci_process_job_size();
    header->start           = uci_process_start(getpid(), &dead);
    header->pid_space       = uci_process_pid_space();
    header->begin_time      = uci_live_time();
    uci_live_copy(header->host, sizeof(header->host), uci_process_host());
    uci_live_copy(header->boot, sizeof(header->boot), uci_process_boot());
    uci_live_copy(header->job, sizeof(header->job), uci_process_job());
    uci_live_copy(header->program, sizeof(header->program), program_invocation_short_name);
    uci_live_copy(header->uci_version, sizeof(header->uci_version), UCI_VERSION);
    uci_live_copy(header->revision, sizeof(header->revision), UCI_REVISION);
    uci_live_copy_end(header->library, sizeof(header->library), uci_process_library());
    for (i = 0; i < counters; ++i) {
        uci_live_copy((char *)header + header->names_offset + ((size_t)i * UCI_LIVE_NAME), UCI_LIVE_NAME, names[i]);
    }
}

static size_t uci_live_size(const uci_live_header_t *header, unsigned blocks)
{
    return header->blocks_offset + ((size_t)blocks * header->block_size);
}

/* Memory for all of it is taken now: a store into a full file system would be a SIGBUS. @return 0 or an errno */
static int uci_live_allocate(int fd, size_t size)
{
    uci_quiet_t quiet;
    int ret;

    uci_quiet_begin(&quiet);
    ret = posix_fallocate(fd, 0, (off_t)size);
    uci_quiet_end(&quiet);
    if (ret != 0) {
        errno = ret;
    }
    return ret;
}

static uci_status_t uci_live_map(int fd, const char *const *names, unsigned counters)
{
    union {
        uci_live_header_t header;
        char names[sizeof(uci_live_header_t) + (UCI_LIVE_NAME * 128)];
    } first;
    struct stat info;
    size_t reserved;
    void *region;

    if (counters > 128) {
        errno = E2BIG;
        return UCI_ERR_IO;
    }
    memset(&first, 0, sizeof(first));
    uci_live_write_header(&first.header, names, counters);
    first.header.size = uci_live_size(&first.header, UCI_LIVE_BLOCKS);
    reserved          = uci_live_size(&first.header, UCI_LIVE_BLOCKS_MAX);
    if ((uci_live_allocate(fd, first.header.size) != 0) || (fstat(fd, &info) != 0)) {
        return UCI_ERR_IO;
    }
    region = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                  0); /* what is behind its end is not touched */
    if (region == MAP_FAILED) {
        return UCI_ERR_IO;
    }
    memcpy(region, &first, first.header.blocks_offset);
    __atomic_store_n(&((uci_live_header_t *)region)->magic, UCI_LIVE_MAGIC, __ATOMIC_RELEASE);
    memset(uci_live.used, 0, sizeof(uci_live.used));
    uci_live.region   = region;
    uci_live.reserved = reserved;
    uci_live.pid      = getpid();
    uci_live.device   = info.st_dev;
    uci_live.inode    = info.st_ino;
    return UCI_OK;
}

/* @return UCI_OK, or UCI_ERR_IO with errno */
static uci_status_t uci_live_make(const char *where, const char *const *names, unsigned counters)
{
    bool own = strcmp(where, UCI_LIVE_AUTO) == 0;
    char folder[PATH_MAX - NAME_MAX], name[NAME_MAX];
    uci_status_t status = UCI_ERR_IO;
    int folder_fd, fd, saved_errno;

    folder_fd = uci_live_open_folder(where, folder, sizeof(folder));
    if (folder_fd < 0) {
        return UCI_ERR_IO;
    }
    fd = uci_live_create(folder_fd, own ? S_IRUSR | S_IWUSR : S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, name,
                         sizeof(name));
    if (fd >= 0) {
        status      = uci_live_map(fd, names, counters);
        saved_errno = errno;
        close(fd);
        if (status != UCI_OK) {
            (void)unlinkat(folder_fd, name, 0);
        }
        errno = saved_errno;
        snprintf(uci_live.path, sizeof(uci_live.path), "%s/%s", folder, name);
    }
    saved_errno = errno;
    close(folder_fd);
    errno = saved_errno;
    return status;
}

/* Is it one of those that a process may have, see uci_live_name()? @param stem  what they begin with, "HOST.PID" */
static bool uci_live_is_of(const char *name, const char *stem)
{
    size_t length = strlen(stem);

    return (strncmp(name, stem, length) == 0) && ((name[length] == '-') || (name[length] == '.')) &&
           uci_live_file_is_name(name);
}

/* Of two files the one that was begun last is @a latest, and the other one is given back */
static void uci_live_take_later(uci_live_file_t *latest, uci_live_file_t *file)
{
    uci_live_file_t earlier = *file;

    if ((latest->data == NULL) || (file->header->begin_time > latest->header->begin_time)) {
        earlier = *latest;
        *latest = *file;
    }
    uci_live_file_cleanup(&earlier);
}

/* @return the latest file of this process's name in the folder is @a file_p. The folder is closed */
static bool uci_live_read_latest(int folder_fd, const char *host, uint32_t pid, uci_live_file_t *file_p)
{
    DIR *dir = fdopendir(folder_fd);
    char stem[NAME_MAX];
    uci_live_file_t file;
    struct dirent *entry;
    const char *reason;

    file_p->data = NULL;
    if (dir == NULL) {
        close(folder_fd);
        return false;
    }
    snprintf(stem, sizeof(stem), "%s.%u", host, pid);
    while ((entry = readdir(dir)) != NULL) {
        if (uci_live_is_of(entry->d_name, stem) &&
            (uci_live_file_read(folder_fd, entry->d_name, &file, &reason) == UCI_OK)) {
            uci_live_take_later(file_p, &file);
        }
    }
    closedir(dir);
    return file_p->data != NULL;
}

bool uci_live_find_peer(const char *host, uint32_t pid, char *text, size_t size)
{
    char folder[PATH_MAX];
    uci_live_file_t file;
    bool found;
    int fd;

    if (!uci_live_is_open() || (strchr(host, '/') != NULL)) {
        return false;
    }
    snprintf(folder, sizeof(folder), "%s", uci_live.path);
    *strrchr(folder, '/') = '\0';
    fd                    = uci_live_folder_open(folder, false, 0);
    if (fd < 0) {
        return false;
    }
    found = uci_live_read_latest(fd, host, pid, &file);
    if (found) {
        uci_live_file_describe(&file, text, size);
        uci_live_file_cleanup(&file);
    }
    return found;
}

uci_status_t uci_live_open(const char *where, const char *const *names, unsigned counters, uint64_t **block_p)
{
    uci_status_t status = UCI_OK;

    if (strcmp(where, UCI_LIVE_OFF) == 0) {
        return UCI_ERR_UNSUPPORTED;
    }
    uci_live_watch_forks();
    pthread_mutex_lock(&uci_live_lock);
    if (!uci_live_is_open()) {
        status = uci_live_make(where, names, counters);
        if (status != UCI_OK) {
            uci_log((strcmp(where, UCI_LIVE_AUTO) == 0) ? UCI_LOG_INFO : UCI_LOG_WARN,
                    "no live file with UCI_LIVE=%s: %m; statistics are lost if this process is killed", where);
        }
    }
    if (status == UCI_OK) {
        *block_p = uci_live_counters(0);
    }
    pthread_mutex_unlock(&uci_live_lock);
    return status;
}

void uci_live_set_info(const char *digest, const char *mode, const char *ucx_version)
{
    uci_live_watch_forks();
    pthread_mutex_lock(&uci_live_lock);
    if (uci_live_is_open()) {
        uci_live_copy(uci_live_header()->digest, sizeof(uci_live_header()->digest), digest);
        uci_live_copy(uci_live_header()->mode, sizeof(uci_live_header()->mode), mode);
        uci_live_copy(uci_live_header()->ucx_version, sizeof(uci_live_header()->ucx_version), ucx_version);
    }
    pthread_mutex_unlock(&uci_live_lock);
}

void uci_live_end(uci_live_state_t state)
{
    pthread_mutex_lock(&uci_live_lock);
    if (uci_live_is_open() && (uci_live_header()->state == UCI_LIVE_RUNNING)) {
        uci_live_header()->end_time = uci_live_time();
        __atomic_store_n(&uci_live_header()->state, state, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&uci_live_lock);
}

/* The file may have been removed, and another one may have its name */
static bool uci_live_lengthen(size_t size)
{
    int fd = open(uci_live.path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    bool done;

    if (fd < 0) {
        return false;
    }
    done = (fstat(fd, &info) == 0) && (info.st_dev == uci_live.device) && (info.st_ino == uci_live.inode) &&
           (uci_live_allocate(fd, size) == 0);
    close(fd);
    return done;
}

/* @return its number, or 0 */
static unsigned uci_live_find_block(void)
{
    uci_live_header_t *header = uci_live_header();
    unsigned i;
    size_t size;

    for (i = 1; i < header->blocks; ++i) {
        if (!uci_live.used[i]) {
            return i;
        }
    }
    if (i >= UCI_LIVE_BLOCKS_MAX) {
        return 0;
    }
    if (uci_live_size(header, i + 1) > header->size) {
        size = uci_live_size(header, uci_min(i + UCI_LIVE_BLOCKS, UCI_LIVE_BLOCKS_MAX));
        if (!uci_live_lengthen(size)) {
            return 0;
        }
        header->size = size;
    }
    __atomic_store_n(&header->blocks, i + 1, __ATOMIC_RELEASE);
    return i;
}

uint64_t *uci_live_take_block(uint64_t uid)
{
    uint64_t *block = NULL;
    unsigned i;

    pthread_mutex_lock(&uci_live_lock);
    i = uci_live_is_open() ? uci_live_find_block() : 0;
    if (i > 0) {
        uci_live.used[i] = true;
        block            = uci_live_counters(i);
        uci_live_end_gauges(memset(uci_live_begin_gauges(block), 0, offsetof(uci_live_gauges_t, sequence_begun)));
        uci_live_block(i)->uid = uid;
    }
    pthread_mutex_unlock(&uci_live_lock);
    return block;
}

static bool uci_live_is_inside(const uint64_t *block)
{
    return uci_live_is_open() && ((const char *)block >= uci_live.region) &&
           ((const char *)block < uci_live.region + uci_live.reserved);
}

void uci_live_give_block(uint64_t *block)
{
    uci_live_gauges_t *gauges;

    pthread_mutex_lock(&uci_live_lock);
    if (uci_live_is_inside(block)) { /* not one of before a fork */
        gauges      = uci_live_gauges_of(block);
        gauges->uid = 0;
        uci_live.used[((char *)gauges - (char *)uci_live_block(0)) / uci_live_header()->block_size] = false;
    }
    pthread_mutex_unlock(&uci_live_lock);
}

void uci_live_set_unlisted(unsigned count)
{
    pthread_mutex_lock(&uci_live_lock);
    if (uci_live_is_open()) {
        uci_live_header()->unlisted = count;
    }
    pthread_mutex_unlock(&uci_live_lock);
}

void uci_live_for_each_free(void (*func)(void *arg, const uint64_t *counters), void *arg)
{
    unsigned i;

    pthread_mutex_lock(&uci_live_lock);
    for (i = 1; uci_live_is_open() && (i < uci_live_header()->blocks); ++i) {
        if (!uci_live.used[i]) {
            func(arg, uci_live_counters(i));
        }
    }
    pthread_mutex_unlock(&uci_live_lock);
}

/* Whoever reads goes from the first byte to the last: if both numbers are the same then, nothing was written meanwhile */
uci_live_gauges_t *uci_live_begin_gauges(uint64_t *block)
{
    uci_live_gauges_t *gauges = uci_live_gauges_of(block);

#ifdef __SANITIZE_THREAD__
    (void)__atomic_fetch_add(&gauges->sequence_begun, 1, __ATOMIC_SEQ_CST); /* the sanitizer knows no fences */
#else
    __atomic_store_n(&gauges->sequence_begun, gauges->sequence_begun + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
    return gauges;
}

void uci_live_end_gauges(uci_live_gauges_t *gauges)
{
    __atomic_store_n(&gauges->sequence, gauges->sequence_begun, __ATOMIC_RELEASE);
}
