/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided communication, together with messages: MPI_Put, Get, Accumulate,
 * Fetch_and_op, Compare_and_swap with fence, lock and PSCW.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 260, COUNT = 100000 };

static MPI_Win window;
static unsigned char *memory;
static uint64_t number;

/** What the partner put must be what it says. */
static void test_fence(size_t length, int partner)
{
    unsigned char *data = malloc(length + 1);

    check_phase("put and get with fences");
    check_fill(data, length, check.rank, TAG, number);
    MPI_Win_fence(0, window);
    MPI_Put(data, (int)length, MPI_BYTE, partner, 0, (int)length, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    check_bytes(memory, length, partner, TAG, number);
    MPI_Win_fence(0, window);
    memset(data, CHECK_POISON_BYTE, length);
    MPI_Get(data, (int)length, MPI_BYTE, partner, 0, (int)length, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    check_bytes(data, length, check.rank, TAG, number++); /* our own bytes come back */
    free(data);
}

/** Messages flow while a lock epoch is open. */
static void test_lock(size_t length, int partner)
{
    unsigned char *data = malloc(length + 1), in[1000];

    check_phase("lock, with messages in between");
    check_fill(data, length, check.rank, TAG, number);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, partner, 0, window);
    MPI_Put(data, (int)length, MPI_BYTE, partner, 0, (int)length, MPI_BYTE, window);
    MPI_Win_unlock(partner, window);
    check_fill(data, sizeof(in), check.rank, TAG, number + 1);
    MPI_Sendrecv(data, sizeof(in), MPI_BYTE, partner, TAG, in, sizeof(in), MPI_BYTE, partner, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check_bytes(in, sizeof(in), partner, TAG, number + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check.rank, 0, window);
    check_bytes(memory, length, partner, TAG, number);
    MPI_Win_unlock(check.rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    number += 2;
    free(data);
}

static void test_pscw(size_t length, int partner)
{
    unsigned char *data = malloc(length + 1);
    MPI_Group world, group;

    check_phase("post, start, complete, wait");
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &partner, &group);
    check_fill(data, length, check.rank, TAG, number);
    MPI_Win_post(group, 0, window);
    MPI_Win_start(group, 0, window);
    MPI_Put(data, (int)length, MPI_BYTE, partner, 0, (int)length, MPI_BYTE, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    check_bytes(memory, length, partner, TAG, number++);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    free(data);
}

static void test_atomics(void)
{
    int64_t *counters = (int64_t *)memory, one = 1, old, compare = 2;
    int64_t sums[100];
    int i;

    check_phase("atomics");
    memset(memory, 0, 1000);
    for (i = 0; i < 100; ++i) {
        sums[i] = check.rank + i;
    }
    MPI_Win_fence(0, window);
    MPI_Accumulate(sums, 100, MPI_INT64_T, 0, 16, 100, MPI_INT64_T, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    CHECK((old == 0) || (old == 1), "fetch and add gave %lld", (long long)old);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check.rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        one = 77;
        MPI_Compare_and_swap(&one, &compare, &old, MPI_INT64_T, 0, 0, window);
        MPI_Win_unlock(0, window);
        CHECK(old == 2, "compare and swap found %lld", (long long)old);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (check.rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        CHECK(counters[0] == 77, "the counter is %lld", (long long)counters[0]);
        for (i = 0; i < 100; ++i) {
            CHECK(counters[2 + i] == 2 * i + 1, "accumulated %lld in %d", (long long)counters[2 + i], i);
        }
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {1000, 8300, COUNT};
    unsigned i, partner;
    int repeat;

    check_init(&argc, &argv, "rma");
    CHECK(check.size == 2, "needs two ranks");
    partner = 1u - (unsigned)check.rank;
    MPI_Win_allocate(COUNT, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (repeat = check_scaled(10); repeat > 0; --repeat) {
        for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
            test_fence(lengths[i], (int)partner);
            test_lock(lengths[i], (int)partner);
            test_pscw(lengths[i], (int)partner);
        }
        test_atomics();
    }
    MPI_Win_free(&window);
    return check_finish();
}
