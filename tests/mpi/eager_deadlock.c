/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is unsafe by the standard but works on plain UCX, so programs do it: all ranks MPI_Send small messages
 * before any of them receives, in pairs, in a ring and in bunches.
 *
 * @ranks 2 4
 * @args 4: 0.2
 */
#include "check.h"

enum { TAG = 120, BUNCH = 100, LARGEST = 4096 };

static const size_t lengths[] = {0, 1, 8, 64, 1000, 2048, LARGEST};
static uint64_t number;

/** Send @a count messages to @a dest, then receive as many from @a source. */
static void send_then_receive(int dest, int source, size_t length, int count)
{
    unsigned char data[LARGEST];
    MPI_Status status;
    int i;

    for (i = 0; i < count; ++i) {
        check_fill(data, length, check.rank, TAG, number + (uint64_t)i);
        MPI_Send(data, (int)length, MPI_BYTE, dest, TAG, MPI_COMM_WORLD);
        check_scribble(data, length);
    }
    for (i = 0; i < count; ++i) {
        memset(data, CHECK_POISON_BYTE, length);
        MPI_Recv(data, (int)length, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &status);
        check_status(&status, source, TAG, length);
        check_bytes(data, length, source, TAG, number++);
    }
}

int main(int argc, char **argv)
{
    int right, left, repeat;
    unsigned i;

    check_init(&argc, &argv, "eager_deadlock");
    CHECK(check_partner() != MPI_PROC_NULL, "needs an even number of ranks");
    right = (check.rank + 1) % check.size;
    left  = (check.rank + check.size - 1) % check.size;

    for (repeat = check_scaled(20); repeat > 0; --repeat) {
        for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
            check.step  = (long)lengths[i];
            check.phase = "pairs";
            send_then_receive(check_partner(), check_partner(), lengths[i], 1);
            check.phase = "ring";
            send_then_receive(right, left, lengths[i], 1);
            check.phase = "bunches in pairs";
            send_then_receive(check_partner(), check_partner(), lengths[i], BUNCH);
            check.phase = "bunches in a ring";
            send_then_receive(right, left, lengths[i], BUNCH);
        }
    }
    return check_finish();
}
