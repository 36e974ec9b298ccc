/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What every MPI test program needs: contents that can be told apart, guarded buffers, and a way to fail that
 * does not depend on what is being tested.
 *
 * The bytes of a message follow from (source, tag, index, seed): swapped, stale, shifted or foreign data shows.
 * Each rank checks what it gets by itself and calls MPI_Abort when something is wrong, so no message has to
 * arrive for a failure to be seen. A program's last line is "PASS <name>", or "SKIP <name>: <reason>".
 *
 * Usage of every program: <program> [scale [seed]], scale 1 being the default amount of work.
 */
#ifndef UCI_TESTS_MPI_CHECK_H_
#define UCI_TESTS_MPI_CHECK_H_

#include <mpi.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK_UNUSED           __attribute__((unused))
#define CHECK_COUNT_OF(_array) (sizeof(_array) / sizeof((_array)[0]))

enum {
    CHECK_GUARD         = 64, /* bytes before and after each buffer, to catch writes past its ends */
    CHECK_GUARD_BYTE    = 0xA7,
    CHECK_POISON_BYTE   = 0xDB, /* what a receive buffer holds before the message comes */
    CHECK_SCRIBBLE_BYTE = 0x3C  /* what a send buffer is overwritten with once it may be reused */
};

static struct {
    const char *name;
    int rank, size;
    double scale;
    uint64_t seed;
    uint64_t messages, bytes;   /* checked by this rank */
    const char *volatile phase; /* what is being tested, for reports */
    volatile long step;
    int trace;
} check CHECK_UNUSED;

/* ---- failing ---- */

static inline __attribute__((noreturn, format(printf, 3, 4))) void check_fail_at(const char *file, int line,
                                                                                 const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "CHECK FAILED %s: rank %d of %d, %s:%d, in '%s' step %ld: %s\n", check.name, check.rank, check.size,
            file, line, check.phase ? check.phase : "start", check.step, text);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, 3);
    _exit(3); /* MPI_Abort may return */
}

#define check_fail(...) check_fail_at(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(_condition, ...) \
    do { \
        if (!(_condition)) { \
            check_fail(__VA_ARGS__); \
        } \
    } while (0)

/**
 * Name what comes next; seen in failure reports, when the runner asks a hanging program where it is, and as it
 * happens if CHECK_TRACE is set.
 */
static inline void check_phase(const char *phase)
{
    if (check.trace) {
        fprintf(stderr, "%s: rank %d: %s, after step %ld of '%s'\n", check.name, check.rank, phase, check.step,
                check.phase ? check.phase : "start");
    }
    check.phase = phase;
    check.step  = 0;
}

/** The runner sends SIGUSR2 to a program that took too long. */
static inline void check_where(int number)
{
    char text[256];
    int length = snprintf(text, sizeof(text), "HANGS %s: rank %d of %d in '%s' step %ld\n", check.name, check.rank,
                          check.size, check.phase ? check.phase : "start", check.step);

    (void)number;
    if ((length > 0) && (write(STDERR_FILENO, text, (size_t)length) < 0)) {
        _exit(4);
    }
}

/* ---- start and end ---- */

static inline void check_start(int argc, char **argv, const char *name)
{
    check.name  = name;
    check.trace = (getenv("CHECK_TRACE") != NULL);
    check.scale = (argc > 1) ? strtod(argv[1], NULL) : 1.0;
    check.seed  = (argc > 2) ? strtoull(argv[2], NULL, 0) : 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &check.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check.size);
    signal(SIGUSR2, check_where);
    CHECK(check.scale > 0, "bad scale '%s'", argv[1]);
}

static inline void check_init(int *argc, char ***argv, const char *name)
{
    MPI_Init(argc, argv);
    check_start(*argc, *argv, name);
}

static inline void check_sleep_ms(int milliseconds)
{
    struct timespec left = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};

    while ((nanosleep(&left, &left) != 0) && (errno == EINTR)) {
    }
}

/** Print the verdict. Wrong data has already aborted the job; the sums are only for the reader. */
static inline void check_pass(void)
{
    uint64_t mine[2] = {check.messages, check.bytes};
    uint64_t sums[2] = {0, 0};

    check_phase("final reduction");
    CHECK(check.messages > 0, "this rank checked nothing");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(mine, sums, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check.rank == 0) {
        printf("%s: %llu messages, %llu bytes checked by %d ranks\nPASS %s\n", check.name, (unsigned long long)sums[0],
               (unsigned long long)sums[1], check.size, check.name);
        fflush(stdout);
    }
}

/**
 * Wait for all ranks without a message: files in a folder that the runner gives to each job. Where there is no such folder
 * (several hosts, say), wait for long enough.
 * @param place     a name for it: ranks meet there once.
 * @param progress  call MPI meanwhile: somebody may still wait for a message of this rank's that arrived damaged.
 */
static inline void check_meet_outside(const char *place, int progress)
{
    const char *folder = getenv("CHECK_FOLDER");
    char path[512];
    int rank, tries, file, flag;

    if (folder == NULL) {
        check_sleep_ms(progress ? 0 : 300);
        return;
    }
    snprintf(path, sizeof(path), "%s/%s.%d", folder, place, check.rank);
    file = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0, "cannot make %s", path);
    close(file);
    for (rank = 0; rank < check.size; ++rank) {
        snprintf(path, sizeof(path), "%s/%s.%d", folder, place, rank);
        for (tries = 0; (tries < 20000) && (access(path, F_OK) != 0); ++tries) {
            if (progress) {
                MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            }
            check_sleep_ms(1);
        }
    }
}

/** All pairs exchange messages, twice: after that no connection is half made. */
static inline void check_connect_all(void)
{
    enum { TAG_CONNECT = 32000 };
    MPI_Request requests[2];
    int round, i, to, from;

    for (round = 0; round < 2; ++round) {
        for (i = 1; i < check.size; ++i) {
            to   = (check.rank + i) % check.size;
            from = (check.rank + check.size - i) % check.size;
            MPI_Irecv(NULL, 0, MPI_BYTE, from, TAG_CONNECT, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(NULL, 0, MPI_BYTE, to, TAG_CONNECT, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
    }
}

/**
 * MPICH 4.0 hangs in MPI_Finalize over UCX's tcp when one rank closes its endpoints while another still makes
 * progress: the close waits for a remote answer, and who has closed waits in a PMI barrier, where nobody answers
 * (pmodels/mpich#6596; with plain UCX and 4 ranks in every second run). It ends well if all ranks have posted their
 * closes before any makes progress again: so all stop calling MPI, and only then all call MPI_Finalize. But not before nobody
 * waits for a message any more: one that came damaged is repaired only while its sender calls MPI.
 */
static inline void check_finalize(void)
{
    const char *transports = getenv("UCX_TLS");

#ifdef MPICH_VERSION
    if ((transports == NULL) || (strstr(transports, "tcp") != NULL)) {
        check_phase("before MPI_Finalize");
        check_connect_all();
        MPI_Barrier(MPI_COMM_WORLD);
        check_meet_outside("done", 1);
        check_meet_outside("still", 0);
    }
#endif
    (void)transports;
    check_phase("MPI_Finalize");
    MPI_Finalize();
}

static inline int check_finish(void)
{
    check_pass();
    check_finalize();
    return 0;
}

/** All ranks call it: what is tested does not exist here. */
static inline int check_skip(const char *reason)
{
    if (check.rank == 0) {
        printf("SKIP %s: %s\n", check.name, reason);
        fflush(stdout);
    }
    check_finalize();
    return 0;
}

/** Open MPI from 5 on does not know that processes of another job are on its own host: only the network reaches them. */
static inline bool check_is_job_alone(void)
{
#if defined(OMPI_MAJOR_VERSION) && (OMPI_MAJOR_VERSION >= 5)
    const char *transports = getenv("UCX_TLS");

    return (transports != NULL) && (strstr(transports, "tcp") == NULL);
#else
    return false;
#endif
}

/** @a count times the scale of this run, at least 1. */
static inline int check_scaled(int count)
{
    int scaled = (int)(count * check.scale + 0.5);

    return (scaled < 1) ? 1 : scaled;
}

/** The other one of the pair (0,1), (2,3), ...; MPI_PROC_NULL for the odd one out. */
static inline int check_partner(void)
{
    int partner = check.rank ^ 1;

    return (partner < check.size) ? partner : MPI_PROC_NULL;
}

/* ---- contents ---- */

static inline uint64_t check_mix(uint64_t value)
{
    value ^= value >> 30;
    value *= 0xbf58476d1ce4e5b9ull;
    value ^= value >> 27;
    value *= 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

/** Next number of a reproducible sequence. */
static inline uint64_t check_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15ull;
    return check_mix(*state);
}

static inline uint64_t check_key(int source, int tag, uint64_t index)
{
    uint64_t key = check_mix(check.seed + 0x517cc1b727220a95ull);

    key = check_mix(key ^ (uint64_t)(uint32_t)source);
    key = check_mix(key + (uint64_t)(uint32_t)tag);
    return check_mix(key ^ (index * 0x9e3779b97f4a7c15ull));
}

static inline uint64_t check_word(uint64_t key, size_t i)
{
    return check_mix(key + i * 0x9e3779b97f4a7c15ull);
}

/** Write the contents of message (source, tag, index). */
static inline void check_fill(void *buffer, size_t length, int source, int tag, uint64_t index)
{
    unsigned char *bytes = buffer;
    uint64_t key         = check_key(source, tag, index);
    uint64_t word;
    size_t i;

    for (i = 0; i < length / 8; ++i) {
        word = check_word(key, i);
        memcpy(bytes + i * 8, &word, 8);
    }
    word = check_word(key, i);
    memcpy(bytes + i * 8, &word, length % 8);
}

/** Does @a buffer look like a piece of message (source, tag, index)? Only to say more about a failure. */
static inline int check_looks_like(const unsigned char *bytes, size_t first, size_t length, int source, int tag,
                                   uint64_t index)
{
    size_t i      = (first + 7) / 8;
    uint64_t word = check_word(check_key(source, tag, index), i);

    return (i * 8 + 8 <= length) && (memcmp(bytes + i * 8, &word, 8) == 0);
}

static inline const char *check_guess(const unsigned char *bytes, size_t first, size_t length, int source, int tag,
                                      uint64_t index)
{
    static char text[96];
    uint64_t older;

    if (bytes[first] == CHECK_POISON_BYTE) {
        return "never written";
    } else if (bytes[first] == CHECK_SCRIBBLE_BYTE) {
        return "read after the send buffer was reused";
    }
    for (older = (index > 8) ? index - 8 : 0; older <= index + 8; ++older) {
        if (check_looks_like(bytes, first, length, source, tag, older)) {
            snprintf(text, sizeof(text), "contents of message %llu of that source and tag", (unsigned long long)older);
            return (older == index) ? "what follows is right again" : text;
        }
    }
    return (bytes[first] == 0) ? "zero" : "unknown";
}

static inline __attribute__((noreturn)) void check_report_bytes(const char *file, int line, const void *buffer,
                                                                size_t length, int source, int tag, uint64_t index)
{
    const unsigned char *got = buffer;
    unsigned char *want      = malloc(length);
    size_t i, first = length, last = 0, wrong = 0;
    char hex[2][52] = {"", ""};

    check_fill(want, length, source, tag, index);
    for (i = 0; i < length; ++i) {
        if (got[i] != want[i]) {
            first = (first < i) ? first : i;
            last  = i;
            ++wrong;
        }
    }
    for (i = first; (i < first + 16) && (i < length); ++i) {
        snprintf(hex[0] + (i - first) * 3, 4, " %02x", got[i]);
        snprintf(hex[1] + (i - first) * 3, 4, " %02x", want[i]);
    }
    check_fail_at(file, line,
                  "wrong contents: message %llu from rank %d tag %d, %zu of %zu bytes wrong, first %zu, last %zu (%s)\n"
                  "    got %s\n    want%s",
                  (unsigned long long)index, source, tag, wrong, length, first, last,
                  check_guess(got, first, length, source, tag, index), hex[0], hex[1]);
}

/** Is this message (source, tag, index)? Aborts with a report if not. */
static inline void check_bytes_at(const char *file, int line, const void *buffer, size_t length, int source, int tag,
                                  uint64_t index)
{
    const unsigned char *bytes = buffer;
    uint64_t key               = check_key(source, tag, index);
    uint64_t wrong             = 0, word, got;
    size_t i;

    for (i = 0; i < length / 8; ++i) {
        memcpy(&got, bytes + i * 8, 8);
        wrong |= got ^ check_word(key, i);
    }
    word = check_word(key, i);
    if ((wrong != 0) || (memcmp(bytes + i * 8, &word, length % 8) != 0)) {
        check_report_bytes(file, line, buffer, length, source, tag, index);
    }
    __atomic_add_fetch(&check.messages, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&check.bytes, length, __ATOMIC_RELAXED);
}

#define check_bytes(...) check_bytes_at(__FILE__, __LINE__, __VA_ARGS__)

/** Are all @a length bytes @a value? */
static inline int check_all(const void *buffer, unsigned char value, size_t length)
{
    const unsigned char *bytes = buffer;
    size_t i;

    for (i = 0; i < length; ++i) {
        if (bytes[i] != value) {
            return 0;
        }
    }
    return 1;
}

/** The send buffer may be reused now: do so, so that a late read of it shows. */
static inline void check_scribble(void *buffer, size_t length)
{
    memset(buffer, CHECK_SCRIBBLE_BYTE, length);
}

/** Does @a status tell the source, tag and length that were sent? */
static inline void check_status_at(const char *file, int line, const MPI_Status *status, int source, int tag,
                                   size_t length)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    if ((status->MPI_SOURCE != source) || (status->MPI_TAG != tag) || (count != (int)length)) {
        check_fail_at(file, line, "wrong status: source %d tag %d length %d, expected %d, %d, %zu", status->MPI_SOURCE,
                      status->MPI_TAG, count, source, tag, length);
    }
}

#define check_status(...) check_status_at(__FILE__, __LINE__, __VA_ARGS__)

/* ---- guarded buffers ---- */

typedef struct check_buffer {
    unsigned char *data; /* what MPI gets */
    size_t length;
    unsigned char *memory;
} check_buffer_t;

/** @a shift moves the data off its alignment. */
static inline void check_buffer_make(check_buffer_t *buffer, size_t length, size_t shift)
{
    buffer->memory = malloc(length + 2 * CHECK_GUARD + shift);
    CHECK(buffer->memory != NULL, "no memory for %zu bytes", length);
    buffer->data   = buffer->memory + CHECK_GUARD + shift;
    buffer->length = length;
    memset(buffer->data - CHECK_GUARD, CHECK_GUARD_BYTE, CHECK_GUARD);
    memset(buffer->data, CHECK_POISON_BYTE, length);
    memset(buffer->data + length, CHECK_GUARD_BYTE, CHECK_GUARD);
}

static inline void check_guards_at(const char *file, int line, const check_buffer_t *buffer)
{
    if (!check_all(buffer->data - CHECK_GUARD, CHECK_GUARD_BYTE, CHECK_GUARD) ||
        !check_all(buffer->data + buffer->length, CHECK_GUARD_BYTE, CHECK_GUARD)) {
        check_fail_at(file, line, "bytes outside a buffer of %zu were overwritten", buffer->length);
    }
}

#define check_guards(_buffer) check_guards_at(__FILE__, __LINE__, _buffer)

static inline void check_buffer_free(check_buffer_t *buffer)
{
    check_guards(buffer);
    free(buffer->memory);
    buffer->memory = NULL;
}

/* ---- sizes ---- */

/** Sizes at which something changes: words, cache lines, eager limits, segments, chunks. */
static const size_t check_sizes[] CHECK_UNUSED = {
        0,    1,    7,    8,    9,    63,    64,    65,    1000,  4095,  4096,   4097,   8100,    8184,    8191,
        8192, 8193, 8200, 8240, 8300, 16384, 32768, 65535, 65536, 65537, 100000, 262144, 1048579, 4194304,
};
enum { CHECK_SIZES = sizeof(check_sizes) / sizeof(check_sizes[0]) };

/** A random size: most are small, a few reach @a largest. */
static inline size_t check_random_size(uint64_t *state, size_t largest)
{
    static const size_t limits[] = {64, 256, 256, 2048, 8300, 8300, 70000, SIZE_MAX};
    uint64_t number              = check_random(state);
    size_t limit                 = limits[number % CHECK_COUNT_OF(limits)];

    limit = (limit < largest) ? limit : largest;
    return (size_t)(number >> 16) % (limit + 1);
}

#endif
