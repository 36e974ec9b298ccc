/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One side calls no MPI for a while: a sender that computes between MPI_Isend and MPI_Wait, or after an eager
 * MPI_Send, while the receiver waits; a receiver that computes between MPI_Irecv and MPI_Wait while the sender
 * waits; both. Nothing may hang or be read too early.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 150, LARGEST = 4194304, BUSY_MS = 20 };

static check_buffer_t out, in;
static uint64_t sent, received;

/** Burn time without calling MPI. */
static void compute(int milliseconds)
{
    static volatile double sink __attribute__((unused)); /* gcc 15: set, never read */
    struct timespec start, now;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        sink += 1.0;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds);
}

static void run_sender(size_t length, int partner, int busy)
{
    MPI_Request request;

    check_fill(out.data, length, check.rank, TAG, sent++);
    if (busy && (length <= 4096)) {
        MPI_Send(out.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        check_scribble(out.data, length);
        compute(BUSY_MS);
        return;
    }
    MPI_Isend(out.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &request);
    compute(busy ? BUSY_MS : 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_scribble(out.data, length);
}

static void run_receiver(size_t length, int partner, int busy)
{
    MPI_Request request;
    MPI_Status status;

    memset(in.data, CHECK_POISON_BYTE, length);
    if (busy) {
        MPI_Irecv(in.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &request);
        compute(BUSY_MS);
        MPI_Wait(&request, &status);
    } else {
        MPI_Recv(in.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &status);
    }
    check_status(&status, partner, TAG, length);
    check_bytes(in.data, length, partner, TAG, received++);
}

/** Both post, compute, and complete in different orders. */
static void test_both(size_t length, int partner)
{
    MPI_Request requests[2];

    check_fill(out.data, length, check.rank, TAG, sent++);
    memset(in.data, CHECK_POISON_BYTE, length);
    MPI_Irecv(in.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[check.rank % 2]);
    MPI_Isend(out.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[1 - check.rank % 2]);
    compute(BUSY_MS);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    check_bytes(in.data, length, partner, TAG, received++);
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {8, 4096, 8300, 100000, 1048579, LARGEST};
    int partner, who, sending, repeat;
    unsigned i;

    check_init(&argc, &argv, "overlap");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    check_buffer_make(&out, LARGEST, 0);
    check_buffer_make(&in, LARGEST, 0);
    for (repeat = check_scaled(1); repeat > 0; --repeat) {
        for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
            for (who = 0; who < 4; ++who) { /* bit 0: which side is busy, bit 1: direction */
                sending     = ((check.rank < partner) == who / 2 % 2);
                check.phase = (who % 2) ? "the sender computes" : "the receiver computes";
                check.step  = (long)lengths[i];
                if (sending) {
                    run_sender(lengths[i], partner, who % 2);
                } else {
                    run_receiver(lengths[i], partner, !(who % 2));
                }
            }
            check.phase = "both compute";
            test_both(lengths[i], partner);
        }
    }
    check_buffer_free(&out);
    check_buffer_free(&in);
    return check_finish();
}
