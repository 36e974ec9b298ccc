/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Finalize with messages that nobody received, of several tags, in all directions: it must end, and what was
 * received before must be right. (The standard wants them received; UCX only warns.)
 *
 * MPICH from 4.2 on looks for such messages when it frees MPI_COMM_WORLD, and MPI_Finalize fails if there are any ("being
 * freed has 200 unmatched message(s)"). It finds those that have arrived, so on plain UCX too the program fails in most
 * runs and passes in some; nothing is left to compare.
 *
 * @ranks 2 4
 */
#include "check.h"

enum { TAG = 180, TAG_LEFT = 181, MESSAGES = 200, LARGEST = 4096 };

int main(int argc, char **argv)
{
    unsigned char data[LARGEST];
    MPI_Status status;
    size_t length;
    int i, right, left;

    check_init(&argc, &argv, "finalize_unreceived");
#if defined(MPICH_NUMVERSION) && (MPICH_NUMVERSION >= 40200000)
    return check_skip("this MPICH takes messages that nobody received for an error");
#endif
    right = (check.rank + 1) % check.size;
    left  = (check.rank + check.size - 1) % check.size;
    check_phase("sending what nobody receives");
    for (i = 0; i < MESSAGES; ++i) {
        length = check_sizes[i % 10];
        check_fill(data, length, check.rank, TAG_LEFT, (uint64_t)i);
        MPI_Send(data, (int)length, MPI_BYTE, right, TAG_LEFT + i % 3, MPI_COMM_WORLD);
        check_scribble(data, length);
        if (i % 10 == 0) {
            check_fill(data, 1000, check.rank, TAG, (uint64_t)i);
            MPI_Send(data, 1000, MPI_BYTE, right, TAG, MPI_COMM_WORLD);
            memset(data, CHECK_POISON_BYTE, 1000);
            MPI_Recv(data, LARGEST, MPI_BYTE, left, TAG, MPI_COMM_WORLD, &status);
            check_status(&status, left, TAG, 1000);
            check_bytes(data, 1000, left, TAG, (uint64_t)i);
        }
    }
    return check_finish();
}
