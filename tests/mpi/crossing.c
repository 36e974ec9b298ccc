/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows that cross: two ranks each post 64 receives, then 64 sends, and wait for all of them; one length after the other, from a byte to
 * 512 KiB, as OSU's osu_bibw does. There is always much in flight both ways, of one length, so that what is good lies behind what is not.
 *
 * @ranks 2
 * @args 2: 0.5
 */
#include "check.h"

enum { WINDOW = 64, LONGEST = 524288, TAG = 480, ROUNDS = 20 };

static check_buffer_t out[WINDOW], in[WINDOW];

static void cross(int partner, int length, uint64_t base)
{
    MPI_Request requests[2 * WINDOW];
    int i;

    for (i = 0; i < WINDOW; ++i) {
        check_fill(out[i].data, (size_t)length, check.rank, TAG, base + (uint64_t)i);
        memset(in[i].data, CHECK_POISON_BYTE, (size_t)length);
        MPI_Irecv(in[i].data, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    for (i = 0; i < WINDOW; ++i) {
        MPI_Isend(out[i].data, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[WINDOW + i]);
    }
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < WINDOW; ++i) {
        check_bytes(in[i].data, (size_t)length, partner, TAG, base + (uint64_t)i);
        check_guards(&in[i]);
    }
}

int main(int argc, char **argv)
{
    int partner, rounds, length, i;
    uint64_t base = 0;

    check_init(&argc, &argv, "crossing");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    rounds = check_scaled(ROUNDS);
    for (i = 0; i < WINDOW; ++i) {
        check_buffer_make(&out[i], LONGEST, 0);
        check_buffer_make(&in[i], LONGEST, (size_t)i);
    }
    for (length = 1; length <= LONGEST; length *= 2) {
        for (check.step = 0; check.step < rounds; ++check.step, base += WINDOW) {
            cross(partner, length, base);
        }
    }
    for (i = 0; i < WINDOW; ++i) {
        check_buffer_free(&out[i]);
        check_buffer_free(&in[i]);
    }
    return check_finish();
}
