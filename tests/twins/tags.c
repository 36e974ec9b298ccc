/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A new tag for each message, as collectives that do not block have: neighbours in a ring add up what they get.
 *
 *     tags [messages]
 */
#include "program.h"

int main(int argc, char **argv)
{
    int count, tag, left, right;
    double got, sum = 0;

    begin(&argc, &argv);
    count = argument(argc, argv, 1, 100);
    left  = (rank + ranks - 1) % ranks;
    right = (rank + 1) % ranks;
    for (tag = 0; tag < count; ++tag) {
        double mine = tag;

        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, right, tag, &got, 1, MPI_DOUBLE, left, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        sum += got;
    }
    return end("tags", sum != (double)count * (count - 1) / 2);
}
