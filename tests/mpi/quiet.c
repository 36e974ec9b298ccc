/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer that is quiet has not died: rank 1 starts to send to the others, and then computes, outside of MPI, while these wait for its
 * messages and exchange others with each other. Whatever the transport makes them ask, and however often, nobody gives up on rank 1.
 * With tests/faults/fast_clock.c, which makes the seconds of this long computation into hours.
 *
 * @ranks 3
 * @args 3: 0.25
 */
#include "check.h"

enum { QUIET_MS = 8000, LENGTH = 64 << 20, TAG_QUIET = 460, TAG = 461, SIZES = 4 };

static const int lengths[SIZES] = {100, 5000, 70000, 1 << 20};

static void exchange(int partner, uint64_t base)
{
    check_buffer_t out, in;
    MPI_Status status;
    int i;

    for (i = 0; i < SIZES; ++i) {
        check_buffer_make(&out, (size_t)lengths[i], 1);
        check_buffer_make(&in, (size_t)lengths[i], 3);
        check_fill(out.data, (size_t)lengths[i], check.rank, TAG, base + (uint64_t)i);
        MPI_Sendrecv(out.data, lengths[i], MPI_BYTE, partner, TAG, in.data, lengths[i], MPI_BYTE, partner, TAG,
                     MPI_COMM_WORLD, &status);
        check_status(&status, partner, TAG, (size_t)lengths[i]);
        check_bytes(in.data, (size_t)lengths[i], partner, TAG, base + (uint64_t)i);
        check_buffer_free(&out);
        check_buffer_free(&in);
    }
}

static void be_quiet(int milliseconds)
{
    check_buffer_t out;
    MPI_Request requests[2];
    int i, flag;

    check_buffer_make(&out, LENGTH, 0);
    check_fill(out.data, LENGTH, 1, TAG_QUIET, 0);
    MPI_Barrier(MPI_COMM_WORLD); /* they have posted their receives */
    MPI_Isend(out.data, LENGTH, MPI_BYTE, 0, TAG_QUIET, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data, LENGTH, MPI_BYTE, 2, TAG_QUIET, MPI_COMM_WORLD, &requests[1]);
    for (i = 0; i < 10; ++i) { /* far enough to be matched, and not to the end */
        MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        check_sleep_ms(2);
    }
    CHECK(!flag, "all of it has been sent already: this shows nothing");
    check_sleep_ms(milliseconds);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check_buffer_free(&out);
    exchange(0, 1000000);
}

static void wait_for_the_quiet(int milliseconds)
{
    check_buffer_t in;
    MPI_Request request;
    uint64_t base;

    check_buffer_make(&in, LENGTH, 5);
    memset(in.data, CHECK_POISON_BYTE, LENGTH);
    MPI_Irecv(in.data, LENGTH, MPI_BYTE, 1, TAG_QUIET, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    for (base = 0; base < (uint64_t)milliseconds / 4; base += SIZES) {
        check.step = (int)base;
        exchange(2 - check.rank, base);
        check_sleep_ms(4);
    }
    check_phase("waiting for rank 1");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_bytes(in.data, LENGTH, 1, TAG_QUIET, 0);
    check_guards(&in);
    check_buffer_free(&in);
}

int main(int argc, char **argv)
{
    int milliseconds;

    check_init(&argc, &argv, "quiet");
    CHECK(check.size == 3, "needs 3 ranks");
    milliseconds = check_scaled(QUIET_MS);
    if (check.rank == 1) {
        be_quiet(milliseconds);
    } else {
        wait_for_the_quiet(milliseconds);
    }
    if (check.rank == 0) {
        exchange(1, 1000000);
    }
    return check_finish();
}
