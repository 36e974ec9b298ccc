/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Every nonblocking collective with contents checked, one by one; then many of them outstanding at once on two
 * communicators, with point-to-point messages among them.
 *
 * @ranks 2 4
 * @args 4: 0.4
 * @args mpich 4: 0.1
 */
#include <unistd.h>

#include "coll.h"

enum { OUTSTANDING = 8, TAG = 200 };

/** Started in the same order everywhere, completed in another; messages flow in between. */
static void test_outstanding(int length)
{
    MPI_Request requests[3 * OUTSTANDING + 2];
    check_buffer_t bcast[OUTSTANDING], from[OUTSTANDING], to[OUTSTANDING], out, in;
    int sums[OUTSTANDING], ones[OUTSTANDING], i, r, n = 0;
    int right = (check.rank + 1) % check.size, left = (check.rank + check.size - 1) % check.size;
    size_t all = (size_t)length * (size_t)check.size;
    MPI_Comm other;

    check_phase("many outstanding");
    check.step = length;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    check_buffer_make(&out, (size_t)length * 2, 0);
    check_buffer_make(&in, (size_t)length * 2, 0);
    check_fill(out.data, out.length, check.rank, TAG, coll_number);
    MPI_Irecv(in.data, length * 2, MPI_BYTE, left, TAG, MPI_COMM_WORLD, &requests[n++]);
    for (i = 0; i < OUTSTANDING; ++i) {
        MPI_Comm comm = (i % 2) ? other : MPI_COMM_WORLD;

        check_buffer_make(&bcast[i], (size_t)length, 0);
        check_buffer_make(&from[i], all, 0);
        check_buffer_make(&to[i], all, 0);
        if (check.rank == i % check.size) {
            check_fill(bcast[i].data, (size_t)length, i, 1, coll_number);
        }
        for (r = 0; r < check.size; ++r) {
            check_fill(from[i].data + (size_t)(r * length), (size_t)length, check.rank, r, coll_number + (uint64_t)i);
        }
        ones[i] = check.rank + i;
        MPI_Ibcast(bcast[i].data, length, MPI_BYTE, i % check.size, comm, &requests[n++]);
        MPI_Ialltoall(from[i].data, length, MPI_BYTE, to[i].data, length, MPI_BYTE, comm, &requests[n++]);
        MPI_Iallreduce(&ones[i], &sums[i], 1, MPI_INT, MPI_SUM, comm, &requests[n++]);
    }
    MPI_Isend(out.data, length * 2, MPI_BYTE, right, TAG, MPI_COMM_WORLD, &requests[n++]);
    MPI_Wait(&requests[n / 2], MPI_STATUS_IGNORE);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);

    check_bytes(in.data, in.length, left, TAG, coll_number);
    for (i = 0; i < OUTSTANDING; ++i) {
        check_bytes(bcast[i].data, (size_t)length, i, 1, coll_number);
        for (r = 0; r < check.size; ++r) {
            check_bytes(to[i].data + (size_t)(r * length), (size_t)length, r, check.rank, coll_number + (uint64_t)i);
        }
        CHECK(sums[i] == check.size * (check.size - 1) / 2 + check.size * i, "sum %d is %d", i, sums[i]);
        check_buffer_free(&bcast[i]);
        check_buffer_free(&from[i]);
        check_buffer_free(&to[i]);
    }
    coll_number += OUTSTANDING;
    check_buffer_free(&out);
    check_buffer_free(&in);
    MPI_Comm_free(&other);
}

/** At the ends of a line of ranks one half of MPI_Sendrecv is for nobody, while messages of MPI's own are under way. */
static void test_line(void)
{
    enum { COUNT = 200000, TIMES = 5 };
    static double data[COUNT];
    static long ones[COUNT], sums[COUNT];
    int is_first = (check.rank % 2 == 0), peer = is_first ? check.rank + 1 : check.rank - 1, i;
    int numbers[4] = {0};
    float none[4];
    MPI_Request request;

    check_phase("ends of a line");
    for (i = 0; i < TIMES; ++i) {
        check.step = i;
        ones[i]    = 1;
        if (is_first) {
            usleep(10000);
        }
        MPI_Iallreduce(ones, sums, COUNT, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
        if (is_first) {
            MPI_Sendrecv(numbers, 4, MPI_INT, MPI_PROC_NULL, TAG, data, COUNT, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        } else {
            MPI_Sendrecv(data, COUNT, MPI_DOUBLE, peer, TAG, none, 4, MPI_FLOAT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sums[i] == check.size, "sum %d is %ld", i, sums[i]);
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, "coll_nonblocking");
    coll_nonblocking = 1;
    test_all_collectives();
    test_outstanding(8);
    test_outstanding(5000);
    test_outstanding(40000);
    test_outstanding(200000);
    test_line();
    return check_finish();
}
