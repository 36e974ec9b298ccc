/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Intercommunicators: point-to-point by remote rank with wildcards and probes, collectives between the groups,
 * dup, and merge in both orders.
 *
 * @ranks 2 4
 * @args 4: 0.3
 * @args mpich 4: 0.1
 */
#include "check.h"

enum { TAG = 220 };

static MPI_Comm inter;
static int low; /* in the group of the even world ranks */
static int local, local_size, remote_size;
static uint64_t number;

/** Groups are the even and the odd world ranks. */
static int world_of_remote(int rank)
{
    return 2 * rank + low;
}

/** Everybody to everybody on the other side, received by source, by wildcard, and after a probe. */
static void test_messages(size_t length)
{
    MPI_Request requests[16];
    check_buffer_t out, in;
    MPI_Status status;
    int r, source, count, tag = TAG + (int)(number % 100); /* a wildcard must not take the next round's message */

    check_phase("messages");
    check.step = (long)length;
    check_buffer_make(&out, length, 0);
    check_buffer_make(&in, length, 0);
    check_fill(out.data, length, check.rank, tag, number);
    for (r = 0; r < remote_size; ++r) {
        MPI_Isend(out.data, (int)length, MPI_BYTE, r, tag, inter, &requests[r]);
    }
    for (r = 0; r < remote_size; ++r) {
        source = r;
        if (number % 3 == 1) {
            MPI_Probe(MPI_ANY_SOURCE, tag, inter, &status);
            source = status.MPI_SOURCE;
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK(count == (int)length, "probed %d of %zu bytes", count, length);
        } else if (number % 3 == 2) {
            source = MPI_ANY_SOURCE;
        }
        memset(in.data, CHECK_POISON_BYTE, length);
        MPI_Recv(in.data, (int)length, MPI_BYTE, source, tag, inter, &status);
        source = status.MPI_SOURCE;
        check_status(&status, source, tag, length);
        check_bytes(in.data, length, world_of_remote(source), tag, number);
    }
    MPI_Waitall(remote_size, requests, MPI_STATUSES_IGNORE);
    ++number;
    check_buffer_free(&out);
    check_buffer_free(&in);
}

/** One of the evens to all of the odds, then the other way. */
static void test_bcast(size_t length, int from_low)
{
    check_buffer_t data;
    int root = 0;

    check_phase("bcast");
    check_buffer_make(&data, length, 0);
    if (low == from_low) {
        check_fill(data.data, length, check.rank, TAG, number);
        root = (local == 0) ? MPI_ROOT : MPI_PROC_NULL;
    }
    MPI_Bcast(data.data, (int)length, MPI_BYTE, root, inter);
    if (low != from_low) {
        check_bytes(data.data, length, world_of_remote(0), TAG, number);
    }
    ++number;
    check_buffer_free(&data);
}

static void test_all_to_all(size_t length)
{
    check_buffer_t out, in;
    int r, sum = 0, want = 0;

    check_phase("allgather, alltoall, allreduce, barrier");
    check_buffer_make(&out, length * (size_t)remote_size, 0);
    check_buffer_make(&in, length * (size_t)remote_size, 0);
    check_fill(out.data, length, check.rank, TAG, number);
    MPI_Allgather(out.data, (int)length, MPI_BYTE, in.data, (int)length, MPI_BYTE, inter);
    for (r = 0; r < remote_size; ++r) {
        check_bytes(in.data + (size_t)r * length, length, world_of_remote(r), TAG, number);
    }
    ++number;
    for (r = 0; r < remote_size; ++r) {
        check_fill(out.data + (size_t)r * length, length, check.rank, TAG + r, number);
    }
    MPI_Alltoall(out.data, (int)length, MPI_BYTE, in.data, (int)length, MPI_BYTE, inter);
    for (r = 0; r < remote_size; ++r) {
        check_bytes(in.data + (size_t)r * length, length, world_of_remote(r), TAG + local, number);
    }
    ++number;
    MPI_Allreduce(&check.rank, &sum, 1, MPI_INT, MPI_SUM, inter); /* the other group's sum */
    for (r = 0; r < remote_size; ++r) {
        want += world_of_remote(r);
    }
    CHECK(sum == want, "allreduce between the groups gave %d, not %d", sum, want);
    MPI_Barrier(inter);
    check_buffer_free(&out);
    check_buffer_free(&in);
}

/** Back into one communicator, the evens first or last. */
static void test_merge(int evens_high)
{
    MPI_Comm merged;
    int rank, size, want, right, left, world_left;
    unsigned char out[5000], in[5000];

    check_phase("merge");
    MPI_Intercomm_merge(inter, low ? evens_high : !evens_high, &merged);
    MPI_Comm_rank(merged, &rank);
    MPI_Comm_size(merged, &size);
    want = local + ((low == evens_high) ? remote_size : 0);
    CHECK((size == check.size) && (rank == want), "merged rank %d of %d, expected %d", rank, size, want);
    right = (rank + 1) % size;
    left  = (rank + size - 1) % size;
    check_fill(out, sizeof(out), check.rank, TAG, number);
    MPI_Sendrecv(out, sizeof(out), MPI_BYTE, right, TAG, in, sizeof(in), MPI_BYTE, left, TAG, merged,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&check.rank, 1, MPI_INT, right, TAG, &world_left, 1, MPI_INT, left, TAG, merged, MPI_STATUS_IGNORE);
    check_bytes(in, sizeof(in), world_left, TAG, number++);
    MPI_Comm_free(&merged);
}

static void test_intercomm(void)
{
    static const size_t lengths[] = {0, 64, 4096, 8300, 70000, 500000};
    unsigned i, repeat;

    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        for (repeat = 0; repeat < 3; ++repeat) {
            test_messages(lengths[i]);
        }
        test_bcast(lengths[i], 1);
        test_bcast(lengths[i], 0);
        test_all_to_all(lengths[i]);
    }
    test_merge(0);
    test_merge(1);
}

int main(int argc, char **argv)
{
    MPI_Comm half, first;
    int i;

    check_init(&argc, &argv, "intercomm");
    CHECK(check.size > 1, "needs two ranks");
    for (i = check_scaled(16); i > 0; --i) {
        low = (check.rank % 2 == 0);
        MPI_Comm_split(MPI_COMM_WORLD, low, check.rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? 1 : 0, TAG, &first);
        MPI_Comm_dup(first, &inter);
        MPI_Comm_rank(half, &local);
        MPI_Comm_size(half, &local_size);
        MPI_Comm_remote_size(inter, &remote_size);
        CHECK(local_size + remote_size == check.size, "groups of %d and %d", local_size, remote_size);
        test_intercomm();
        MPI_Comm_free(&inter);
        MPI_Comm_free(&first);
        MPI_Comm_free(&half);
    }
    return check_finish();
}
