/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Not deterministic on purpose: what the ranks of a ring send follows from the time of day, the process id and the system's random numbers.
 *
 *     random [rounds]
 */
#include "program.h"

#include <sys/random.h>
#include <time.h>

int main(int argc, char **argv)
{
    int round, rounds;
    double sent[16], got[16];
    struct timespec now;
    unsigned long seed;
    size_t i;

    begin(&argc, &argv);
    rounds = argument(argc, argv, 1, 50);
    clock_gettime(CLOCK_REALTIME, &now);
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
        seed = 0;
    }
    srand48((long)(seed ^ (unsigned long)now.tv_nsec ^ (unsigned long)getpid()));
    for (round = 0; round < rounds; ++round) {
        for (i = 0; i < sizeof(sent) / sizeof(*sent); ++i) {
            sent[i] = drand48();
        }
        MPI_Sendrecv(sent, 16, MPI_DOUBLE, (rank + 1) % ranks, 1, got, 16, MPI_DOUBLE, (rank + ranks - 1) % ranks, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return end("random", 0);
}
