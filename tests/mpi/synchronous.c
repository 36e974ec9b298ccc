/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Many synchronous messages under way at once, from one side to the other, and the end right behind them: a sender that has all its answers
 * closes, while answers to what it has asked again still come. Where they find no room in its queue nobody may wait for that.
 *
 * @ranks 2
 */
#include "check.h"

enum { ROUNDS = 12, WINDOW = 4096, LENGTH = 4, TAG = 495 };

static unsigned char buffers[WINDOW][LENGTH];
static MPI_Request requests[WINDOW];

static void exchange(uint64_t base)
{
    int i;

    for (i = 0; i < WINDOW; ++i) {
        if (check.rank == 0) {
            check_fill(buffers[i], LENGTH, 0, TAG, base + (uint64_t)i);
            MPI_Issend(buffers[i], LENGTH, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
        } else {
            memset(buffers[i], CHECK_POISON_BYTE, LENGTH);
            MPI_Irecv(buffers[i], LENGTH, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    for (i = 0; (check.rank == 1) && (i < WINDOW); ++i) {
        check_bytes(buffers[i], LENGTH, 0, TAG, base + (uint64_t)i);
    }
}

int main(int argc, char **argv)
{
    int rounds;

    check_init(&argc, &argv, "synchronous");
    CHECK(check.size == 2, "needs two ranks");
    rounds = check_scaled(ROUNDS);
    for (check.step = 0; check.step < rounds; ++check.step) {
        exchange((uint64_t)check.step * WINDOW);
    }
    if (check.rank == 1) {
        printf("%llu messages checked\nPASS synchronous\n", (unsigned long long)check.messages);
        fflush(stdout);
    }
    check_finalize(); /* nothing in between, in which answers could be taken */
    return 0;
}
