/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Many receives outstanding between two ranks, of messages so large that most of them wait for their turn: whoever waits hears
 * nothing about his own message while others' chunks come in, or arrive damaged, and must not take that for a sender that has died.
 *
 * @ranks 2
 * @args 2: 0.5
 */
#include "check.h"

enum { COUNT = 32, LENGTH = 10 << 20, TAG = 400 };

static check_buffer_t out[COUNT], in[COUNT];

int main(int argc, char **argv)
{
    MPI_Request to[COUNT], from[COUNT];
    int partner, round, rounds, length, i;

    check_init(&argc, &argv, "outstanding");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    length = check_scaled(LENGTH);
    rounds = 2;
    for (i = 0; i < COUNT; ++i) {
        check_buffer_make(&out[i], (size_t)length, (size_t)i);
        check_buffer_make(&in[i], (size_t)length, (size_t)i);
    }
    for (round = 0; round < rounds; ++round) {
        check.step = round;
        for (i = 0; i < COUNT; ++i) {
            memset(in[i].data, CHECK_POISON_BYTE, (size_t)length);
            MPI_Irecv(in[i].data, length, MPI_BYTE, partner, TAG + i, MPI_COMM_WORLD, &from[i]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (i = 0; i < COUNT; ++i) {
            check_fill(out[i].data, (size_t)length, check.rank, TAG + i, (uint64_t)round);
            MPI_Isend(out[i].data, length, MPI_BYTE, partner, TAG + i, MPI_COMM_WORLD, &to[i]);
        }
        MPI_Waitall(COUNT, from, MPI_STATUSES_IGNORE);
        MPI_Waitall(COUNT, to, MPI_STATUSES_IGNORE);
        for (i = 0; i < COUNT; ++i) {
            check_bytes(in[i].data, (size_t)length, partner, TAG + i, (uint64_t)round);
            check_guards(&in[i]);
        }
    }
    for (i = 0; i < COUNT; ++i) {
        check_buffer_free(&out[i]);
        check_buffer_free(&in[i]);
    }
    return check_finish();
}
