/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libuci_twin_time.so, preloaded behind libucx_integrity.so: what the program asks the system for, the time and random numbers, passes
 * uci_twins_answer() (UCI_TWINS_TIME), so that twins get the same answers. Only questions of the program and of its own libraries do, and of the
 * run-time libraries of C++ and Fortran on their behalf; what MPI, UCX and the C library ask themselves is theirs. MPI_Wtime() is asked by
 * programs alone.
 *
 * Not reached: times read from the processor (rdtsc), files such as /dev/urandom, getpid(), and what is asked in MPI_Init() or before.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>

#define TIME_EXPORT __attribute__((visibility("default")))

/* Kinds of questions: each has answers of its own. Clocks: their ids */
enum { TIME_CLOCKS = 16, TIME_GETTIMEOFDAY = 16, TIME_TIME, TIME_RANDOM, TIME_WTIME, TIME_WTIME_FORTRAN };

/* Of libucx_integrity.so: twin 0 tells the words to the others, which get them. @return whether they are another one's */
typedef int (*time_answer_t)(unsigned kind, uint64_t words[2]);

TIME_EXPORT double MPI_Wtime(void);
TIME_EXPORT double mpi_wtime_(void);

static bool time_answer(unsigned kind, uint64_t words[2])
{
    static time_answer_t answer;
    static bool is_known;

    if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) {
        answer = (time_answer_t)dlsym(RTLD_DEFAULT, "uci_twins_answer");
        __atomic_store_n(&is_known, true, __ATOMIC_RELEASE);
    }
    return (answer != NULL) && (answer(kind, words) != 0);
}

static bool time_is_system(const char *path)
{
    static const char *const names[] = {"libmpi",   "libopen-", "libmca",    "libompi",    "libprrte",  "libucp",
                                        "libucs",   "libuct",   "libucm",    "libuci",     "libucx",    "libpmi",
                                        "libevent", "libhwloc", "libfabric", "libibverbs", "librdmacm", "libc.",
                                        "libc-",    "ld-",      "libgomp",   "libpthread", "mca_",      NULL};
    const char *slash                = strrchr(path, '/');
    const char *name                 = (slash != NULL) ? slash + 1 : path;
    unsigned i;

    for (i = 0; names[i] != NULL; ++i) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Callers are few: what was found of one is kept */
static bool time_is_programs(const void *caller)
{
    static __thread struct {
        const void *caller;
        bool is_programs;
    } known[64];
    unsigned slot = ((uintptr_t)caller >> 2) % 64;
    Dl_info info;

    if (known[slot].caller != caller) {
        known[slot].is_programs = (dladdr(caller, &info) != 0) && (info.dli_fname != NULL) &&
                                  !time_is_system(info.dli_fname);
        known[slot].caller = caller;
    }
    return known[slot].is_programs;
}

#define TIME_NEXT(_name) \
    static __typeof__(&_name) original; \
    if (original == NULL) { \
        original = (__typeof__(&_name))dlsym(RTLD_NEXT, #_name); \
    }

TIME_EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
    uint64_t words[2];
    int ret;

    TIME_NEXT(clock_gettime)
    ret = original(clock, now);
    if ((ret == 0) && (clock >= 0) && (clock < TIME_CLOCKS) && time_is_programs(__builtin_return_address(0))) {
        words[0] = (uint64_t)now->tv_sec;
        words[1] = (uint64_t)now->tv_nsec;
        if (time_answer((unsigned)clock, words)) {
            now->tv_sec  = (time_t)words[0];
            now->tv_nsec = (long)words[1];
        }
    }
    return ret;
}

TIME_EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    uint64_t words[2];
    int ret;

    TIME_NEXT(gettimeofday)
    ret = original(now, zone);
    if ((ret == 0) && time_is_programs(__builtin_return_address(0))) {
        words[0] = (uint64_t)now->tv_sec;
        words[1] = (uint64_t)now->tv_usec;
        if (time_answer(TIME_GETTIMEOFDAY, words)) {
            now->tv_sec  = (time_t)words[0];
            now->tv_usec = (suseconds_t)words[1];
        }
    }
    return ret;
}

TIME_EXPORT time_t time(time_t *now_p)
{
    uint64_t words[2] = {0, 0};

    TIME_NEXT(time)
    words[0] = (uint64_t)original(NULL);
    if (time_is_programs(__builtin_return_address(0))) {
        time_answer(TIME_TIME, words);
    }
    if (now_p != NULL) {
        *now_p = (time_t)words[0];
    }
    return (time_t)words[0];
}

TIME_EXPORT ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    uint64_t words[2];
    ssize_t ret, done;
    size_t part;

    TIME_NEXT(getrandom)
    ret = original(buffer, size, flags);
    if (!time_is_programs(__builtin_return_address(0))) {
        return ret;
    }
    for (done = 0; done < ret; done += (ssize_t)part) {
        part     = ((size_t)(ret - done) < sizeof(words)) ? (size_t)(ret - done) : sizeof(words);
        words[0] = words[1] = 0;
        memcpy(words, (char *)buffer + done, part);
        if (time_answer(TIME_RANDOM, words)) {
            memcpy((char *)buffer + done, words, part);
        }
    }
    return ret;
}

static double time_follow(unsigned kind, double now)
{
    uint64_t words[2] = {0, 0};

    memcpy(&words[0], &now, sizeof(now));
    if (time_answer(kind, words)) {
        memcpy(&now, &words[0], sizeof(now));
    }
    return now;
}

TIME_EXPORT double MPI_Wtime(void)
{
    TIME_NEXT(MPI_Wtime)
    if (original == NULL) {
        return 0; /* no MPI: nobody calls this */
    }
    return time_is_programs(__builtin_return_address(0)) ? time_follow(TIME_WTIME, original()) : original();
}

TIME_EXPORT double mpi_wtime_(void)
{
    TIME_NEXT(mpi_wtime_)
    return (original != NULL) ? time_follow(TIME_WTIME_FORTRAN, original()) : 0;
}
