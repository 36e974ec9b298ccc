/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ranks that talk for so many seconds: each sends words that say which they are, in messages of 8 bytes to 1 MiB, and looks at all it gets. WORDS_PID names files
 * for their process ids. usage: mpirun -n 2 words SECONDS
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 131072 };

static uint64_t out[WORDS], in[WORDS];

static void tell_pid(int rank)
{
    const char *path = getenv("WORDS_PID");
    char name[4096];
    FILE *file;

    if (path != NULL) {
        snprintf(name, sizeof(name), "%s.%d", path, rank);
        file = fopen(name, "w");
        if (file != NULL) {
            fprintf(file, "%d\n", (int)getpid());
            fclose(file);
        }
    }
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 100, 2000, 20000, WORDS};
    double seconds             = (argc > 1) ? atof(argv[1]) : 1, begin;
    int rank, wrong = 0, i, round, goes_on = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    tell_pid(rank);
    begin = MPI_Wtime();
    for (round = 0; goes_on; ++round) {
        int length = lengths[round % 5];

        for (i = 0; i < length; ++i) {
            out[i] = ((uint64_t)round << 32) + ((uint64_t)rank << 31) + (uint64_t)i;
            in[i]  = 0;
        }
        MPI_Sendrecv(out, length, MPI_UINT64_T, 1 - rank, round, in, length, MPI_UINT64_T, 1 - rank, round,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (i = 0; i < length; ++i) {
            wrong += in[i] != ((uint64_t)round << 32) + ((uint64_t)(1 - rank) << 31) + (uint64_t)i;
        }
        goes_on = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (wrong > 0) {
        printf("rank %d: %d words are wrong\n", rank, wrong);
    }
    MPI_Finalize();
    return wrong > 0;
}
