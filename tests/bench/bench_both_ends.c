/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What one message could cost between two cores of a node, by each way in which both know its digests in the end, with nothing of UCX's or of a
 * protocol's around it: the limit of what the paths of that kind can reach on this machine, at this moment.
 *
 *     bench_both_ends [-b BUFFERS] [-m MIB] [BYTES...]
 *
 * GB/s, the median of 5 turns of MIB each (default 512), of messages of BYTES (default 64 KiB to 16 MiB), from BUFFERS in turn to as many
 * (default 1: they stay in the caches).
 *
 *     ring   into 16 slots of 32 KiB, digested while it is copied, and out of them again, on the other core: path direct
 *     one    the receiver has the kernel copy chunk by chunk, and digests each then, as the sender does meanwhile: path get over cma
 *     both   the receiver has it copied from the front and the sender from the back, until they meet; then each digests what is left
 *
 * with no digest, XXH3 and CRC-64. The two are threads: for the kernel (process_vm_readv) it is as far from one to the other as between processes.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "digest/digest.h"
#include "two_cores.h"

enum {
    CHUNK      = 32 << 10,
    SLOTS      = 16,
    CHUNKS_MAX = (64 << 20) / CHUNK,
    TURNS      = 5,
    SIZES_MAX  = 32,
    BACK       = 1u << 16,
    LINE       = 64
};

typedef enum { WAY_RING, WAY_ONE, WAY_BOTH, WAYS } way_t;

static const char *const way_names[WAYS]  = {"ring", "one", "both"};
static const uci_digest_id_t digest_ids[] = {UCI_DIGEST_NONE, UCI_DIGEST_XXH3, UCI_DIGEST_CRC64};
static const unsigned digests             = sizeof(digest_ids) / sizeof(digest_ids[0]);

static struct {
    size_t size;
    unsigned buffers, messages;
    way_t way;
    const uci_digest_ops_t *digest;
    char *source, *target, *slots;
    atomic_ulong wrong;
    atomic_bool ready;                  /* the sender is on its core: a new thread may wait milliseconds for that */
    _Alignas(LINE) atomic_ulong posted; /* messages that the receiver is ready for */
    _Alignas(LINE) atomic_ulong told;   /* and of which the sender has told all digests */
    _Alignas(LINE) atomic_uint claimed; /* chunks of this one: from the front, and from the back (BACK each) */
    _Alignas(LINE) atomic_ulong filled, emptied;     /* slots, since the turn began */
    _Alignas(LINE) uint64_t values[CHUNKS_MAX];      /* the sender's */
    _Alignas(LINE) atomic_ulong written[CHUNKS_MAX]; /* number of the message whose chunk the sender has put there */
} bench;

static size_t chunk_of(size_t size)
{
    return (size < 4 * (size_t)CHUNK) ? size / 4 : CHUNK;
}

/* As process_vm_readv() or process_vm_writev(), of all bytes */
static void copy_by_kernel(__typeof__(process_vm_readv) *copy, char *here, char *there, size_t length)
{
    struct iovec local = {here, length}, remote = {there, length};

    if (copy(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)length) {
        perror("bench_both_ends: process_vm_readv");
        exit(1);
    }
}

static void await(const atomic_ulong *word, unsigned long value)
{
    while (atomic_load_explicit(word, memory_order_acquire) < value) {
    }
}

/* @return the number of a chunk that is this side's now, or -1: all are taken. @param end  1: from the front, BACK: from the back */
static int claim(unsigned end, unsigned count)
{
    unsigned old = atomic_load_explicit(&bench.claimed, memory_order_relaxed);

    do {
        if ((old % BACK) + (old / BACK) >= count) {
            return -1;
        }
    } while (!atomic_compare_exchange_weak_explicit(&bench.claimed, &old, old + end, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return (end == BACK) ? (int)(count - 1 - (old / BACK)) : (int)(old % BACK);
}

static void send_by_ring(char *from, size_t chunk, unsigned count, unsigned long *slot)
{
    unsigned i;

    for (i = 0; i < count; ++i, ++*slot) {
        if (*slot >= SLOTS) {
            await(&bench.emptied, *slot - SLOTS + 1);
        }
        bench.values[i] = bench.digest->copy(bench.slots + (*slot % SLOTS) * CHUNK, from + i * chunk, chunk);
        atomic_store_explicit(&bench.filled, *slot + 1, memory_order_release);
    }
}

static void receive_by_ring(char *to, size_t chunk, unsigned count, unsigned long *slot, uint64_t *values)
{
    unsigned i;

    for (i = 0; i < count; ++i, ++*slot) {
        await(&bench.filled, *slot + 1);
        values[i] = bench.digest->copy(to + i * chunk, bench.slots + (*slot % SLOTS) * CHUNK, chunk);
        atomic_store_explicit(&bench.emptied, *slot + 1, memory_order_release);
    }
}

static void send_by_kernel(char *from, char *to, size_t chunk, unsigned count, unsigned long message)
{
    unsigned i, front = count;
    int own;

    while ((bench.way == WAY_BOTH) && ((own = claim(BACK, count)) >= 0)) {
        copy_by_kernel(process_vm_writev, from + own * chunk, to + own * chunk, chunk);
        bench.values[own] = bench.digest->digest(from + own * chunk, chunk);
        atomic_store_explicit(&bench.written[own], message + 1, memory_order_release);
        front = (unsigned)own;
    }
    for (i = 0; i < front; ++i) {
        bench.values[i] = bench.digest->digest(from + i * chunk, chunk);
    }
}

static void receive_by_kernel(char *from, char *to, size_t chunk, unsigned count, unsigned long message,
                              uint64_t *values)
{
    unsigned front = 0, i;
    int own;

    while ((own = claim(1, count)) >= 0) {
        copy_by_kernel(process_vm_readv, to + own * chunk, from + own * chunk, chunk);
        values[own] = bench.digest->digest(to + own * chunk, chunk);
        front       = (unsigned)own + 1;
    }
    for (i = count; i > front; --i) {
        await(&bench.written[i - 1], message + 1);
        values[i - 1] = bench.digest->digest(to + (i - 1) * chunk, chunk);
    }
}

static void *sender(void *arg)
{
    size_t chunk   = chunk_of(bench.size);
    unsigned count = (unsigned)(bench.size / chunk);
    unsigned long message, slot = 0;
    size_t offset;

    bind_to(cores[1]);
    bench.ready = true;
    for (message = 0; message < bench.messages; ++message) {
        offset = (message % bench.buffers) * bench.size;
        await(&bench.posted, message + 1);
        if (bench.way == WAY_RING) {
            send_by_ring(bench.source + offset, chunk, count, &slot);
        } else {
            send_by_kernel(bench.source + offset, bench.target + offset, chunk, count, message);
        }
        atomic_store_explicit(&bench.told, message + 1, memory_order_release);
    }
    return arg;
}

static void receive(void)
{
    static uint64_t values[CHUNKS_MAX];
    size_t offset, chunk = chunk_of(bench.size);
    unsigned count = (unsigned)(bench.size / chunk);
    unsigned long message, slot = 0;

    for (message = 0; message < bench.messages; ++message) {
        offset = (message % bench.buffers) * bench.size;
        atomic_store_explicit(&bench.claimed, 0, memory_order_relaxed);
        atomic_store_explicit(&bench.posted, message + 1, memory_order_release);
        if (bench.way == WAY_RING) {
            receive_by_ring(bench.target + offset, chunk, count, &slot, values);
        } else {
            receive_by_kernel(bench.source + offset, bench.target + offset, chunk, count, message, values);
        }
        await(&bench.told, message + 1);
        bench.wrong += (memcmp(values, bench.values, count * sizeof(*values)) != 0);
    }
}

/* @return GB/s */
static double measure_turn(void)
{
    pthread_t other;
    double begin, passed;

    bench.ready  = false;
    bench.posted = bench.told = bench.filled = bench.emptied = 0;
    memset((void *)bench.written, 0, sizeof(bench.written));
    memset(bench.values, 0, sizeof(bench.values));
    if (pthread_create(&other, NULL, sender, NULL) != 0) {
        perror("bench_both_ends: thread");
        exit(1);
    }
    while (!bench.ready) {
    }
    begin = now();
    receive();
    passed = now() - begin;
    pthread_join(other, NULL);
    return 1e-9 * (double)bench.size * bench.messages / passed;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double measure(way_t way, uci_digest_id_t id)
{
    double turns[TURNS];
    unsigned i;

    bench.way    = way;
    bench.digest = uci_digest_by_id(id);
    for (i = 0; i < TURNS; ++i) {
        turns[i] = measure_turn();
    }
    qsort(turns, TURNS, sizeof(turns[0]), compare);
    return turns[TURNS / 2];
}

static void measure_size(size_t size, size_t bytes)
{
    unsigned way, i;

    bench.size     = size;
    bench.messages = (unsigned)(bytes / size) + 1;
    printf("%8zu", size);
    for (way = 0; way < WAYS; ++way) {
        for (i = 0; i < digests; ++i) {
            printf("  %12.1f", measure((way_t)way, digest_ids[i]));
        }
    }
    printf("\n");
    fflush(stdout);
}

static char *get_memory(size_t size)
{
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t i;

    if (memory == MAP_FAILED) {
        perror("bench_both_ends: memory");
        exit(1);
    }
    for (i = 0; i < size; ++i) {
        memory[i] = (char)(i * 7 + (i >> 9));
    }
    return memory;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_both_ends [-b BUFFERS] [-m MIB] [BYTES...]; BYTES a multiple of 64 KiB, up to 64 MiB\n");
    return 2;
}

static void print_head(void)
{
    unsigned way, i;

    printf("%8s", "GB/s");
    for (way = 0; way < WAYS; ++way) {
        for (i = 0; i < digests; ++i) {
            printf("  %6s %5s", way_names[way], (i == 0) ? "" : uci_digest_by_id(digest_ids[i])->name);
        }
    }
    printf("\n");
}

/* @return false if they are no sizes. @param largest_p  the largest */
static bool read_sizes(char **words, unsigned count, size_t *sizes, size_t *largest_p)
{
    unsigned i;

    for (i = 0, *largest_p = 0; i < count; ++i) {
        sizes[i] = strtoul(words[i], NULL, 0);
        if ((sizes[i] == 0) || (sizes[i] % (64 << 10) != 0) || (sizes[i] > (size_t)CHUNKS_MAX * CHUNK)) {
            return false;
        }
        *largest_p = (sizes[i] > *largest_p) ? sizes[i] : *largest_p;
    }
    return true;
}

int main(int argc, char **argv)
{
    static char *default_sizes[] = {"65536", "262144", "1048576", "4194304", "16777216"};
    size_t sizes[SIZES_MAX], largest, mib = 512;
    char **words   = default_sizes;
    unsigned count = sizeof(default_sizes) / sizeof(default_sizes[0]), i;
    int option;

    bench.buffers = 1;
    while ((option = getopt(argc, argv, "b:m:")) != -1) {
        if (option == 'b') {
            bench.buffers = (unsigned)strtoul(optarg, NULL, 0);
        } else if (option == 'm') {
            mib = strtoul(optarg, NULL, 0);
        } else {
            return usage();
        }
    }
    if (optind < argc) {
        words = argv + optind;
        count = (unsigned)(argc - optind);
    }
    if ((bench.buffers == 0) || (mib == 0) || (count > SIZES_MAX) || !read_sizes(words, count, sizes, &largest)) {
        return usage();
    }
    bench.source = get_memory(largest * bench.buffers);
    bench.target = get_memory(largest * bench.buffers);
    bench.slots  = get_memory((size_t)SLOTS * CHUNK);
    find_cores("bench_both_ends");
    bind_to(cores[0]);
    print_head();
    for (i = 0; i < count; ++i) {
        measure_size(sizes[i], mib << 20);
    }
    if (bench.wrong > 0) {
        fprintf(stderr, "bench_both_ends: %lu messages of which the digests differ\n", (unsigned long)bench.wrong);
        return 1;
    }
    return 0;
}
