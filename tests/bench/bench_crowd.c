/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Time of MPI_Alltoall, for crowd.py: one line "BYTES,MICROSECONDS" a size, of rank 0's median turn. All sizes are run in
 * turns of a few milliseconds, so that a machine whose speed drifts slows down all of them.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES_MAX = 16, TURNS = 25 };

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

static double run(char *to, char *from, int bytes, int count)
{
    double begin;
    int i;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (i = 0; i < count; ++i) {
        MPI_Alltoall(to, bytes, MPI_BYTE, from, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begin) / count;
}

int main(int argc, char **argv)
{
    static double times[SIZES_MAX][TURNS];
    int ranks, rank, i, turn, count, sizes = argc - 2, largest = 0, bytes[SIZES_MAX];
    char *to, *from;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((sizes < 1) || (sizes > SIZES_MAX)) {
        fprintf(stderr, "usage: bench_crowd COUNT BYTES...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    count = atoi(argv[1]);
    for (i = 0; i < sizes; ++i) {
        bytes[i] = atoi(argv[2 + i]);
        largest  = (bytes[i] > largest) ? bytes[i] : largest;
    }
    to   = malloc((size_t)largest * (size_t)ranks);
    from = malloc((size_t)largest * (size_t)ranks);
    memset(to, rank, (size_t)largest * (size_t)ranks);
    for (turn = -1; turn < TURNS; ++turn) { /* the first one connects */
        for (i = 0; i < sizes; ++i) {
            times[i][(turn < 0) ? 0 : turn] = run(to, from, bytes[i], count);
        }
    }
    for (i = 0; (rank == 0) && (i < sizes); ++i) {
        qsort(times[i], TURNS, sizeof(times[i][0]), compare);
        printf("%d,%.3f\n", bytes[i], times[i][TURNS / 2] * 1e6);
    }
    for (i = 0; i < ranks; ++i) {
        if (from[(size_t)i * (size_t)bytes[sizes - 1]] != (char)i) {
            fprintf(stderr, "bench_crowd: wrong content\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    free(to);
    free(from);
    MPI_Finalize();
    return 0;
}
