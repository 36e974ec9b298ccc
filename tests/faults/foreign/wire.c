/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A bad wire: preloaded in front of libc, it damages messages as they arrive by recv() and its kind (UCX's tcp), or by
 * process_vm_readv() and process_vm_writev() (UCX's cma). Knows nothing of UCI or UCX; only bytes that the pattern (pattern.h) tells to be payload are hit, so
 * that the headers of others stay whole, but for FOREIGN_WIRE_HEADERS. Set by the environment:
 *
 *   FOREIGN_KEY            of the job; without it nothing is done
 *   FOREIGN_WIRE           recv, cma: which of them
 *   FOREIGN_WIRE_RATE      of the calls that bring payload, this part is hit (default 0.02)
 *   FOREIGN_WIRE_KIND      flip, burst, zero, any (default any)
 *   FOREIGN_WIRE_SEED      (default 1), mixed with the process's id
 *   FOREIGN_WIRE_HEADERS   part of the hits that go to the 24 bytes in front of a message's first line instead, if it is
 *                          one of at most 4096 bytes (default 0): what UCI puts there
 *   FOREIGN_WIRE_COUNTS    a folder: each process keeps a file wire.PID in it, one line that is true at any time:
 *                          "wire: N hits, N bytes, N header hits, N calls with payload, N calls"
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pattern.h"

enum { HEADER_BYTES = 24, HEADER_MESSAGE_MAX = 4096, PATH_LENGTH = 512 };

static struct {
    bool recv, cma;
    uint64_t key, random;
    double rate, headers;
    int kind, file;
    pthread_mutex_t lock;
    uint64_t hits, bytes, header_hits, with_payload, calls;
} wire = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1, .rate = 0.02};

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return ((value == NULL) || (*value == '\0')) ? otherwise : value;
}

/* Another process must not go on with this one's count: its own is opened when it counts first */
static void count(void)
{
    char text[256], path[PATH_LENGTH];
    int length;

    if (wire.file < 0) {
        snprintf(path, sizeof(path), "%s/wire.%d", setting("FOREIGN_WIRE_COUNTS", "/nonexistent"), getpid());
        wire.file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    length = snprintf(
            text, sizeof(text), "wire: %llu hits, %llu bytes, %llu header hits, %llu calls with payload, %llu calls\n",
            (unsigned long long)wire.hits, (unsigned long long)wire.bytes, (unsigned long long)wire.header_hits,
            (unsigned long long)wire.with_payload, (unsigned long long)wire.calls);
    if ((wire.file >= 0) && (pwrite(wire.file, text, (size_t)length, 0) != length)) {
        _exit(9); /* hits that are not counted must not look like none */
    }
}

__attribute__((constructor)) static void wire_init(void)
{
    const char *which = setting("FOREIGN_WIRE", "");

    wire.key     = foreign_key();
    wire.recv    = (wire.key != 0) && (strstr(which, "recv") != NULL);
    wire.cma     = (wire.key != 0) && (strstr(which, "cma") != NULL);
    wire.rate    = strtod(setting("FOREIGN_WIRE_RATE", "0.02"), NULL);
    wire.headers = strtod(setting("FOREIGN_WIRE_HEADERS", "0"), NULL);
    wire.kind    = foreign_kind_parse(setting("FOREIGN_WIRE_KIND", "any"));
    wire.random  = strtoull(setting("FOREIGN_WIRE_SEED", "1"), NULL, 0) + ((uint64_t)getpid() << 32);
    if (wire.kind < 0) {
        fprintf(stderr, "wire: unknown FOREIGN_WIRE_KIND\n");
        _exit(9);
    }
}

static bool draw(double rate)
{
    return (double)(foreign_random(&wire.random) >> 11) < rate * (double)(1ull << 53);
}

/* The next function of this name: libc's */
static void *next_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL) {
        fprintf(stderr, "wire: no function %s\n", name);
        _exit(9);
    }
    return function;
}

/** Damage payload from @a bytes on, which is line @a line, as long as lines of the same message follow. */
static void hit_payload(uint8_t *bytes, const uint8_t *end, foreign_line_t line, size_t length)
{
    foreign_kind_t kind = (wire.kind == FOREIGN_KINDS) ? (foreign_kind_t)foreign_below(&wire.random, FOREIGN_KINDS)
                                                       : (foreign_kind_t)wire.kind;
    size_t extent       = foreign_extent(kind, &wire.random), first, i;
    uint64_t number     = line.number;
    uint8_t before;

    extent = ((kind != FOREIGN_ZERO) && (extent > length)) ? length : extent;
    first  = (kind == FOREIGN_ZERO) ? 0 : foreign_below(&wire.random, length - extent + 1);
    while ((extent > 0) && (length > 0) && (line.number == number)) {
        for (i = first; (i < length) && (extent > 0); ++i, --extent) {
            before   = bytes[i];
            bytes[i] = foreign_damaged(kind, before, &wire.random);
            wire.bytes += (bytes[i] != before);
        }
        first = 0;
        bytes += length;
        length = foreign_line_at(bytes, (size_t)(end - bytes), wire.key, &line);
    }
    ++wire.hits;
}

static void hit_header(uint8_t *first_line)
{
    uint8_t *at = first_line - HEADER_BYTES + foreign_below(&wire.random, HEADER_BYTES);

    *at = foreign_damaged(FOREIGN_FLIP, *at, &wire.random);
    ++wire.hits;
    ++wire.bytes;
    ++wire.header_hits;
}

/** What has arrived at @a data: damage it now and then, if there is payload in it. */
static void arrived(void *data, size_t length)
{
    uint8_t *bytes = data, *chosen = NULL;
    const uint8_t *end = bytes + length, *found = bytes;
    foreign_line_t line, chosen_line            = {0};
    size_t there, chosen_there                  = 0;
    uint64_t seen = 0;

    pthread_mutex_lock(&wire.lock);
    ++wire.calls;
    while ((found = foreign_line_search(found, (size_t)(end - found), wire.key)) != NULL) {
        there = foreign_line_at(found, (size_t)(end - found), wire.key, &line);
        if ((there > 0) && (foreign_below(&wire.random, ++seen) == 0)) {
            chosen       = bytes + (found - bytes);
            chosen_line  = line;
            chosen_there = there;
        }
        found += (there > 0) ? there : 1;
    }
    wire.with_payload += (chosen != NULL);
    if ((chosen != NULL) && draw(wire.rate)) {
        if ((chosen_line.line == 0) && (chosen_line.length <= HEADER_MESSAGE_MAX) && (chosen - bytes >= HEADER_BYTES) &&
            draw(wire.headers)) {
            hit_header(chosen);
        } else {
            hit_payload(chosen, end, chosen_line, chosen_there);
        }
        count();
    }
    pthread_mutex_unlock(&wire.lock);
}

static void arrived_iov(const struct iovec *iov, size_t count_of_iov, ssize_t length)
{
    size_t i, here;

    for (i = 0; (i < count_of_iov) && (length > 0); ++i) {
        here = ((size_t)length < iov[i].iov_len) ? (size_t)length : iov[i].iov_len;
        arrived(iov[i].iov_base, here);
        length -= (ssize_t)here;
    }
}

/* ------------------------------------------------ in front of libc */

#define WIRE_NEXT(_type, _name) \
    static _type next; \
    if (next == NULL) { \
        next = (_type)next_function(_name); \
    }

typedef ssize_t (*recv_func_t)(int, void *, size_t, int);
typedef ssize_t (*recvmsg_func_t)(int, struct msghdr *, int);
typedef ssize_t (*readv_func_t)(int, const struct iovec *, int);
typedef ssize_t (*vm_func_t)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                             unsigned long);

__attribute__((visibility("default"))) ssize_t recv(int file, void *data, size_t length, int flags)
{
    ssize_t got;

    WIRE_NEXT(recv_func_t, "recv");
    got = next(file, data, length, flags);
    if (wire.recv && (got > 0) && !(flags & MSG_PEEK)) {
        arrived(data, (size_t)got);
    }
    return got;
}

__attribute__((visibility("default"))) ssize_t recvmsg(int file, struct msghdr *msg, int flags)
{
    ssize_t got;

    WIRE_NEXT(recvmsg_func_t, "recvmsg");
    got = next(file, msg, flags);
    if (wire.recv && (got > 0) && !(flags & MSG_PEEK)) {
        arrived_iov(msg->msg_iov, msg->msg_iovlen, got);
    }
    return got;
}

__attribute__((visibility("default"))) ssize_t readv(int file, const struct iovec *iov, int count_of_iov)
{
    ssize_t got;

    WIRE_NEXT(readv_func_t, "readv");
    got = next(file, iov, count_of_iov);
    if (wire.recv && (got > 0)) {
        arrived_iov(iov, (size_t)count_of_iov, got);
    }
    return got;
}

__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
                                                                unsigned long locals, const struct iovec *remote,
                                                                unsigned long remotes, unsigned long flags)
{
    ssize_t got;

    WIRE_NEXT(vm_func_t, "process_vm_readv");
    got = next(pid, local, locals, remote, remotes, flags);
    if (wire.cma && (got > 0)) {
        arrived_iov(local, locals, got);
    }
    return got;
}

/** What is written goes out of a damaged copy: the sender's own memory stays as it is. */
__attribute__((visibility("default"))) ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
                                                                 unsigned long locals, const struct iovec *remote,
                                                                 unsigned long remotes, unsigned long flags)
{
    struct iovec copy = {NULL, 0};
    unsigned long i;
    ssize_t put;

    WIRE_NEXT(vm_func_t, "process_vm_writev");
    for (i = 0; i < locals; ++i) {
        copy.iov_len += local[i].iov_len;
    }
    copy.iov_base = wire.cma ? malloc(copy.iov_len) : NULL;
    if (copy.iov_base == NULL) {
        return next(pid, local, locals, remote, remotes, flags);
    }
    copy.iov_len = 0;
    for (i = 0; i < locals; ++i) {
        memcpy((uint8_t *)copy.iov_base + copy.iov_len, local[i].iov_base, local[i].iov_len);
        copy.iov_len += local[i].iov_len;
    }
    arrived(copy.iov_base, copy.iov_len);
    put = next(pid, &copy, 1, remote, remotes, flags);
    free(copy.iov_base);
    return put;
}
