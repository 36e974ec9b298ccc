/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UCI_PROCESS_LINES     10u
#define UCI_PROCESS_JOB_LINES 40u

static char uci_process_host_name[256];

static void uci_process_read_host(void)
{
    char *name = uci_process_host_name, *c;

    /* The last byte stays 0: gethostname() need not terminate a name it cuts. */
    if ((gethostname(name, sizeof(uci_process_host_name) - 1) != 0) || (name[0] == '\0')) {
        strcpy(name, "unknown");
    }
    name[strcspn(name, ".")] = '\0';
    for (c = name; *c != '\0'; ++c) { /* Linux takes any bytes */
        if (!isgraph((unsigned char)*c) || (strchr("\"\\/", *c) != NULL)) {
            *c = '_';
        }
    }
}

const char *uci_process_host(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_process_read_host);
    return uci_process_host_name;
}

/* @return the first of these variables that has a number, or -1 */
static int uci_process_number(const char *const *names, size_t count)
{
    const char *text;
    char *end;
    size_t i;
    long number;

    for (i = 0; i < count; ++i) {
        text = getenv(names[i]);
        if ((text == NULL) || (*text == '\0')) {
            continue;
        }

        errno  = 0;
        number = strtol(text, &end, 10);
        if ((errno == 0) && (*end == '\0') && (number >= 0) && (number <= INT_MAX)) {
            return (int)number;
        }
    }
    return -1;
}

int uci_process_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

    return uci_process_number(names, uci_array_size(names));
}

unsigned uci_process_job_size(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    int count                        = uci_process_number(names, uci_array_size(names));

    return (count > 0) ? (unsigned)count : 0;
}

unsigned uci_process_lines(void)
{
    static unsigned lines;
    unsigned known = __atomic_load_n(&lines, __ATOMIC_RELAXED), size;

    if (known == 0) {
        size  = uci_process_job_size();
        known = UCI_PROCESS_JOB_LINES / uci_max(size, 1u);
        known = uci_min(uci_max(known, 1u), UCI_PROCESS_LINES);
        __atomic_store_n(&lines, known, __ATOMIC_RELAXED);
    }
    return known;
}

unsigned uci_process_local_count(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"};
    int count                        = uci_process_number(names, uci_array_size(names));

    return (count > 0) ? (unsigned)count : 0;
}

static char uci_process_own_name[sizeof(uci_process_host_name) + 64];

static void uci_process_make_name(void)
{
    int rank = uci_process_rank();

    if (rank < 0) {
        snprintf(uci_process_own_name, sizeof(uci_process_own_name), "%s:%d", uci_process_host(), (int)getpid());
    } else {
        snprintf(uci_process_own_name, sizeof(uci_process_own_name), "rank %d (%s:%d)", rank, uci_process_host(),
                 (int)getpid());
    }
}

/* A child that is forked off has another one. Not a name of each thread: a library that is loaded late has to do with the little
 * that glibc keeps free in the memory of threads (glibc.rtld.optional_static_tls). */
static void uci_process_start_name(void)
{
    uci_process_make_name();
    pthread_atfork(NULL, NULL, uci_process_make_name);
}

const char *uci_process_name(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_process_start_name);
    return uci_process_own_name;
}

static char uci_process_job_name[320];

/* The batch system knows best; its launcher may have one inside */
static void uci_process_make_job(void)
{
    static const struct {
        const char *variable, *launcher;
    } names[] = {{"SLURM_JOB_ID", "slurm"}, {"PBS_JOBID", "pbs"}, {"LSB_JOBID", "lsf"}, {"PMIX_NAMESPACE", "prrte"}};
    const char *text = NULL;
    size_t i;

    for (i = 0; i < uci_array_size(names); ++i) {
        text = getenv(names[i].variable);
        if ((text != NULL) && (*text != '\0')) {
            snprintf(uci_process_job_name, sizeof(uci_process_job_name), "%s:%s", names[i].launcher, text);
            return;
        }
    }
    if ((getenv("HYDI_CONTROL_FD") != NULL) || (getenv("PMI_FD") != NULL)) {
        snprintf(uci_process_job_name, sizeof(uci_process_job_name), "hydra:%s.%d", uci_process_host(), (int)getppid());
    }
}

const char *uci_process_job(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_process_make_job);
    return (uci_process_job_name[0] != '\0') ? uci_process_job_name : NULL;
}

double uci_process_wall_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + ((double)now.tv_nsec * 1e-9);
}

uint64_t uci_process_time_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000ul) + (uint64_t)now.tv_nsec;
}

/* @return length written, as snprintf() does, or -1 if @a conversion is unknown. */
static int uci_process_expand_one(char conversion, char *buffer, size_t size)
{
    switch (conversion) {
    case 'h':
        return snprintf(buffer, size, "%s", uci_process_host());
    case 'p':
        return snprintf(buffer, size, "%d", (int)getpid());
    case 'r':
        return (uci_process_rank() < 0) ? snprintf(buffer, size, "x")
                                        : snprintf(buffer, size, "%d", uci_process_rank());
    case '%':
        return snprintf(buffer, size, "%%");
    default:
        return -1;
    }
}

uci_status_t uci_process_expand(const char *pattern, char *path, size_t size)
{
    size_t used = 0;
    int length;

    for (; *pattern != '\0'; ++pattern) {
        if (*pattern == '%') {
            length = uci_process_expand_one(*++pattern, path + used, size - used);
        } else {
            length = snprintf(path + used, size - used, "%c", *pattern);
        }

        if ((length < 0) || ((size_t)length >= size - used)) {
            return UCI_ERR_INVALID_PARAM;
        }
        used += (size_t)length;
    }

    path[used] = '\0';
    return UCI_OK;
}

/* One line of /proc/self/maps, "7f00a000-7f00c000 rw-s ...". If its mapping holds the byte at @a next, go behind it.
 * @return false: it holds that byte, and is not shared. */
static bool uci_process_cross_mapping(const char *line, uintptr_t *next_p)
{
    unsigned long first, end;
    char rights[5];

    if ((sscanf(line, "%lx-%lx %4s", &first, &end, rights) != 3) || (*next_p < first) || (*next_p >= end)) {
        return true;
    }
    *next_p = end;
    return (rights[0] == 'r') && (rights[1] == 'w') && (rights[3] == 's');
}

bool uci_process_is_shared(const void *address, size_t length)
{
    uintptr_t next = (uintptr_t)address, end = next + length;
    bool shared  = (end >= next);
    char *line   = NULL;
    size_t size  = 0;
    FILE *stream = fopen("/proc/self/maps", "re");

    if (stream == NULL) {
        return false;
    }
    while (shared && (next < end) && (getline(&line, &size, stream) > 0)) {
        shared = uci_process_cross_mapping(line, &next);
    }
    free(line);
    fclose(stream);
    return shared && (next >= end);
}

static char uci_process_library_path[PATH_MAX];

/* A library has the name it was loaded by, from the folder that the process was in; a program has the first of its arguments */
static void uci_process_read_library(void)
{
    const char *name = "/proc/self/exe";
    char path[PATH_MAX];
    Dl_info info;

    if ((dladdr(uci_process_library_path, &info) != 0) && (info.dli_fname != NULL) &&
        (strchr(info.dli_fname, '/') != NULL)) {
        name = info.dli_fname;
    }
    snprintf(uci_process_library_path, sizeof(uci_process_library_path), "%s",
             (realpath(name, path) != NULL) ? path : name);
}

const char *uci_process_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_process_read_library);
    return uci_process_library_path;
}

bool uci_process_find_library(uint32_t pid, const char *name, char *path, size_t size)
{
    const char *found = NULL, *slash;
    char maps[32], *line = NULL;
    size_t room = 0;
    FILE *stream;

    snprintf(maps, sizeof(maps), "/proc/%u/maps", pid);
    stream = fopen(maps, "re");
    if (stream == NULL) {
        return false;
    }
    while ((found == NULL) && (getline(&line, &room, stream) > 0)) {
        slash = strrchr(line, '/');
        if ((slash != NULL) && (strstr(slash, name) != NULL)) {
            found                     = strchr(line, '/');
            line[strcspn(line, "\n")] = '\0';
            snprintf(path, size, "%s", found);
        }
    }
    free(line);
    fclose(stream);
    return found != NULL;
}

bool uci_process_is_writable(const void *address)
{
    unsigned long first = 0, end = 0;
    char rights[5] = "", *line = NULL;
    size_t size  = 0;
    FILE *stream = fopen("/proc/self/maps", "re");

    if (stream == NULL) {
        return false;
    }
    while ((end <= (uintptr_t)address) && (getline(&line, &size, stream) > 0)) {
        if (sscanf(line, "%lx-%lx %4s", &first, &end, rights) != 3) {
            break;
        }
    }
    free(line);
    fclose(stream);
    return ((uintptr_t)address >= first) && ((uintptr_t)address < end) && (rights[1] == 'w');
}

#define UCI_PROCESS_PAGE ((uintptr_t)4096) /* or a part of one */

/* The kernel takes 8 bytes from there, and then refuses what it is to do with them */
static bool uci_process_is_word_readable(uintptr_t address)
{
    const void *word = (const void *)(address & ~(uintptr_t)7); /* in one page */
    int before       = errno;
    bool readable    = (syscall(SYS_rt_sigprocmask, -1, word, NULL, 8) == -1) && (errno == EINVAL);

    errno = before;
    return readable;
}

bool uci_process_is_readable(const void *address, size_t length)
{
    uintptr_t first = (uintptr_t)address, last = first + length - 1, page;

    if (length == 0) {
        return true;
    }
    if ((last < first) || !uci_process_is_word_readable(first)) {
        return false;
    }
    for (page = (first / UCI_PROCESS_PAGE) + 1; page <= last / UCI_PROCESS_PAGE; ++page) {
        if (!uci_process_is_word_readable(page * UCI_PROCESS_PAGE)) {
            return false;
        }
    }
    return true;
}
