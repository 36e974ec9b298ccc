/* SPDX-License-Identifier: BSD-3-Clause
 *
 * OpenSHMEM: puts and gets of all sizes, blocking and not, atomics, locks, waiting, barriers and collectives. Every byte and
 * every sum is checked by the PE that has it; ends with "PASS openshmem", or with exit status 1 and what was wrong.
 */
#include <shmem.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 4 << 20, ROUNDS = 3, COUNT = 1000, ADDS = 200 };

static int me, others, next;
static long sync_reduce[SHMEM_REDUCE_SYNC_SIZE], sync_collect[SHMEM_COLLECT_SYNC_SIZE],
        sync_bcast[SHMEM_BCAST_SYNC_SIZE], sync_alltoall[SHMEM_ALLTOALL_SYNC_SIZE];
static long work[COUNT / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? COUNT / 2 + 1 : SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static void check(int holds, const char *format, ...)
{
    va_list args;

    if (holds) {
        return;
    }
    va_start(args, format);
    fprintf(stderr, "PE %d of %d: ", me, others);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    shmem_global_exit(1);
}

static unsigned char byte_of(int pe, unsigned round, size_t i)
{
    return (unsigned char)((pe * 31) + (round * 7) + i + (i >> 8) + 1);
}

static void fill(unsigned char *data, size_t length, int pe, unsigned round)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        data[i] = byte_of(pe, round, i);
    }
}

static void verify(const unsigned char *data, size_t length, int pe, unsigned round, const char *what)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        check(data[i] == byte_of(pe, round, i), "%s of %zu bytes, round %u: byte %zu is 0x%02x", what, length, round, i,
              data[i]);
    }
}

/* Everybody writes into the next one's memory, then reads back from there */
static void put_and_get(unsigned char *shared, unsigned char *local, size_t length, unsigned round)
{
    int before = (me + others - 1) % others;

    fill(local, length, me, round);
    if (round % 2 == 0) {
        shmem_putmem(shared, local, length, next);
    } else {
        shmem_putmem_nbi(shared, local, length, next);
    }
    shmem_barrier_all();
    verify(shared, length, before, round, "put");
    memset(local, 0, length);
    if (round % 2 == 0) {
        shmem_getmem(local, shared, length, next);
    } else {
        shmem_getmem_nbi(local, shared, length, next);
        shmem_quiet();
    }
    verify(local, length, me, round, "get");
    shmem_barrier_all();
}

static void one_sided(void)
{
    static const size_t sizes[] = {1, 8, 1000, 8192, 65536, 300001, LARGEST};
    unsigned char *shared = shmem_malloc(LARGEST), *local = malloc(LARGEST);
    unsigned round, i;

    check((shared != NULL) && (local != NULL), "no memory");
    for (round = 0; round < ROUNDS; ++round) {
        for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
            put_and_get(shared, local, sizes[i], round);
        }
    }
    shmem_barrier_all();
    shmem_free(shared);
    free(local);
}

static void atomics(void)
{
    static long sum, swapped = -1, lock, guarded, flag;
    long old, i, seen;

    for (i = 0; i < ADDS; ++i) {
        shmem_long_atomic_add(&sum, i, 0);
        old = shmem_long_atomic_fetch_inc(&sum, 0);
        check(old >= 0, "fetched %ld", old);
    }
    if (me == 0) {
        old = shmem_long_atomic_compare_swap(&swapped, -1, 42, next);
        check(old == -1, "compare_swap found %ld", old);
        old = shmem_long_atomic_swap(&swapped, 43, next);
        check(old == 42, "swap found %ld", old);
    }
    for (i = 0; i < ADDS / 10; ++i) {
        shmem_set_lock(&lock);
        shmem_long_get(&seen, &guarded, 1, 0);
        ++seen;
        shmem_long_put(&guarded, &seen, 1, 0);
        shmem_quiet();
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    check((me != 0) || (sum == (long)others * (ADDS * (ADDS - 1) / 2 + ADDS)), "the sum is %ld", sum);
    check((me != 0) || (guarded == (long)others * (ADDS / 10)), "%ld under the lock", guarded);
    check((me != 1 % others) || (swapped == 43), "swapped is %ld", swapped);
    shmem_long_p(&flag, 7, next);
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 7);
    shmem_barrier_all();
}

static void collectives(unsigned round)
{
    static long from[COUNT], to[COUNT];
    long *all  = shmem_malloc(sizeof(long) * COUNT * (size_t)others),
         *mine = shmem_malloc(sizeof(long) * COUNT * (size_t)others);
    int pe, i;

    check((all != NULL) && (mine != NULL), "no memory");
    for (i = 0; i < COUNT; ++i) {
        from[i] = (long)me * COUNT + i + round;
        to[i]   = -1;
    }
    shmem_barrier_all();
    shmem_long_sum_to_all(to, from, COUNT, 0, 0, others, work, sync_reduce);
    for (i = 0; i < COUNT; ++i) {
        check(to[i] == (long)others * (others - 1) / 2 * COUNT + (long)others * (i + (int)round), "sum_to_all: %ld",
              to[i]);
    }
    shmem_barrier_all();
    shmem_broadcast64(to, from, COUNT, 0, 0, 0, others, sync_bcast);
    for (i = 0; (me != 0) && (i < COUNT); ++i) {
        check(to[i] == i + (long)round, "broadcast: %ld", to[i]);
    }
    shmem_barrier_all();
    shmem_fcollect64(all, from, COUNT, 0, 0, others, sync_collect);
    for (i = 0; i < COUNT * others; ++i) {
        check(all[i] == i + (long)round, "fcollect: %ld at %d", all[i], i);
    }
    for (i = 0; i < COUNT * others; ++i) {
        mine[i] = (long)me * COUNT * others + i;
    }
    shmem_barrier_all();
    shmem_alltoall64(all, mine, COUNT, 0, 0, others, sync_alltoall);
    for (pe = 0; pe < others; ++pe) {
        for (i = 0; i < COUNT; ++i) {
            check(all[pe * COUNT + i] == ((long)pe * others + me) * COUNT + i, "alltoall: from %d", pe);
        }
    }
    shmem_barrier_all();
    shmem_free(mine);
    shmem_free(all);
}

static void clear(long *words, size_t count)
{
    while (count-- > 0) {
        words[count] = SHMEM_SYNC_VALUE;
    }
}

int main(void)
{
    unsigned round;

    shmem_init();
    me     = shmem_my_pe();
    others = shmem_n_pes();
    next   = (me + 1) % others;
    clear(sync_reduce, SHMEM_REDUCE_SYNC_SIZE);
    clear(sync_collect, SHMEM_COLLECT_SYNC_SIZE);
    clear(sync_bcast, SHMEM_BCAST_SYNC_SIZE);
    clear(sync_alltoall, SHMEM_ALLTOALL_SYNC_SIZE);
    shmem_barrier_all();
    one_sided();
    atomics();
    for (round = 0; round < ROUNDS; ++round) {
        collectives(round);
    }
    if (me == 0) {
        puts("PASS openshmem");
        fflush(stdout);
    }
    shmem_finalize();
    return 0;
}
