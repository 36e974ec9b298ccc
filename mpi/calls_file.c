/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/log.h"
#include "util/process.h"
#include "util/quiet.h"

uci_calls_map_t *uci_calls;

static pthread_mutex_t uci_calls_lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *uci_calls_line;
static char *uci_calls_text;
static size_t uci_calls_length;
static size_t uci_calls_room; /* of the text, for the line that has been begun */

uint64_t uci_calls_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000000000ul) + (uint64_t)now.tv_nsec;
}

static void uci_calls_fill_head(uci_calls_head_t *head, int rank, unsigned size, bool checks)
{
    head->layout   = UCI_CALLS_LAYOUT;
    head->pid      = (uint32_t)getpid();
    head->rank     = rank;
    head->size     = size;
    head->begun_ns = uci_calls_now();
    head->checks   = checks;
    head->peers    = uci_min(size, UCI_CALLS_PEERS);
    snprintf(head->host, sizeof(head->host), "%s", uci_process_host());
    memcpy(head->magic, "UCICALLS", sizeof(head->magic));
}

/* Its room is taken now: a store into a full file system would be a SIGBUS. @return NULL with errno set */
static uci_calls_map_t *uci_calls_make(const char *path, size_t length)
{
    struct stat info;
    uci_quiet_t quiet;
    int fd, error;
    void *map;

    if ((lstat(path, &info) == 0) && S_ISREG(info.st_mode)) {
        unlink(path); /* another process may have mapped it, and would get a SIGBUS if it was cut */
    }
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    uci_quiet_begin(&quiet);
    error = (fd < 0) ? errno : posix_fallocate(fd, 0, (off_t)length);
    uci_quiet_end(&quiet);
    map   = (error == 0) ? mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    error = (error == 0) ? errno : error;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return (map != MAP_FAILED) ? map : NULL;
}

bool uci_calls_open(const char *path, int rank, int size, bool checks)
{
    unsigned peers       = uci_min((unsigned)size, UCI_CALLS_PEERS);
    uci_calls_map_t *map = uci_calls_make(path, sizeof(*map) + (peers * sizeof(map->peers[0])));

    if (map == NULL) {
        uci_error("calls of MPI are not watched: cannot make %s (UCI_CALLS): %m", path);
        return false;
    }
    uci_calls_fill_head(&map->head, rank, (unsigned)size, checks);
    uci_calls = map;
    return true;
}

int uci_calls_take(uint32_t *used_p, uint32_t limit)
{
    uint32_t used = __atomic_load_n(used_p, __ATOMIC_RELAXED);

    do {
        if (used >= limit) {
            __atomic_fetch_add(&uci_calls->head.lost, 1, __ATOMIC_RELAXED);
            return UCI_CALLS_NONE;
        }
    } while (!__atomic_compare_exchange_n(used_p, &used, used + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return (int)used;
}

static bool uci_calls_begin(uci_json_t *json, size_t room)
{
    pthread_mutex_lock(&uci_calls_lock);
    uci_calls_room = room;
    uci_calls_line = open_memstream(&uci_calls_text, &uci_calls_length);
    if (uci_calls_line == NULL) {
        __atomic_fetch_add(&uci_calls->head.lost, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&uci_calls_lock);
        return false;
    }
    uci_json_begin(json, uci_calls_line, ", ");
    return true;
}

bool uci_calls_line_begin(uci_json_t *json)
{
    return uci_calls_begin(json, UCI_CALLS_TEXT - UCI_CALLS_RESERVED);
}

bool uci_calls_finding_begin(uci_json_t *json, const char *what)
{
    if (!uci_calls_begin(json, UCI_CALLS_TEXT)) {
        return false;
    }
    uci_json_string(json, "finding", what);
    return true;
}

/* Who reads meanwhile sees a line as a whole, or not */
void uci_calls_line_end(uci_json_t *json)
{
    uci_calls_head_t *head = &uci_calls->head;

    uci_json_end(json);
    fputc('\n', uci_calls_line);
    fclose(uci_calls_line);
    if ((uci_calls_text != NULL) && (head->text + uci_calls_length <= uci_calls_room)) {
        memcpy(uci_calls->text + head->text, uci_calls_text, uci_calls_length);
        __atomic_store_n(&head->text, head->text + uci_calls_length, __ATOMIC_RELEASE);
    } else {
        __atomic_fetch_add(&head->lost, 1, __ATOMIC_RELAXED);
    }
    free(uci_calls_text);
    uci_calls_text = NULL;
    pthread_mutex_unlock(&uci_calls_lock);
}
