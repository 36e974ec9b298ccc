/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Allreduce, which libuci_mpi may do by node, against PMPI_Allreduce, which is the MPI's own over the same messages, in turns.
 *
 * usage: bench_allreduce ROUNDS MILLISECONDS SIZE...    sizes in bytes of doubles; each turn takes about so long
 * Prints, for each size, a line "SIZE,MPI_US,PMPI_US,RATIO,RATIO_MIN,RATIO_MAX": medians over the rounds of what the slowest rank took, and the
 * ratio of both in a round.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*allreduce_t)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

static double *send_buffer, *receive_buffer;

/* Seconds for one, of the slowest rank */
static double turn(allreduce_t allreduce, int count, int times)
{
    double begin, own, slowest;
    int i;

    PMPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (i = 0; i < times; ++i) {
        allreduce(send_buffer, receive_buffer, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    own = (MPI_Wtime() - begin) / times;
    PMPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_value);
    return (count % 2) ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void measure(size_t size, int rounds, double seconds, int rank)
{
    int count    = (int)(size / sizeof(double)), round, times;
    double *ours = calloc((size_t)rounds, sizeof(double)), *theirs = calloc((size_t)rounds, sizeof(double)),
           *ratios = calloc((size_t)rounds, sizeof(double)), once;

    turn(MPI_Allreduce, count, 1);
    once   = turn(PMPI_Allreduce, count, 1);
    times  = (once * 1000 > seconds) ? (int)(seconds / once) : 1000;
    times  = (times < 1) ? 1 : times;
    rounds = ((once > 0.5) && (rounds > 3)) ? 3 : rounds;
    for (round = 0; round < rounds; ++round) {
        if (round % 2 == 0) {
            ours[round]   = turn(MPI_Allreduce, count, times);
            theirs[round] = turn(PMPI_Allreduce, count, times);
        } else {
            theirs[round] = turn(PMPI_Allreduce, count, times);
            ours[round]   = turn(MPI_Allreduce, count, times);
        }
        ratios[round] = ours[round] / theirs[round];
    }
    if (rank == 0) {
        double ratio = median(ratios, rounds);

        printf("%zu,%.2f,%.2f,%.3f,%.3f,%.3f\n", size, median(ours, rounds) * 1e6, median(theirs, rounds) * 1e6, ratio,
               ratios[0], ratios[rounds - 1]);
        fflush(stdout);
    }
    free(ours);
    free(theirs);
    free(ratios);
}

int main(int argc, char **argv)
{
    size_t max = 8;
    int rank, i;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4) {
        fprintf(stderr, "usage: bench_allreduce ROUNDS MILLISECONDS SIZE...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (i = 3; i < argc; ++i) {
        size_t size = strtoull(argv[i], NULL, 10);

        max = (size > max) ? size : max;
    }
    send_buffer    = malloc(max);
    receive_buffer = malloc(max);
    for (i = 0; (size_t)i < max / sizeof(double); ++i) {
        send_buffer[i]    = rank + i * 0.5;
        receive_buffer[i] = 0;
    }
    turn(MPI_Allreduce, 1, 3); /* so that it is prepared */
    for (i = 3; i < argc; ++i) {
        measure(strtoull(argv[i], NULL, 10), atoi(argv[1]), atof(argv[2]) / 1000, rank);
    }
    free(send_buffer);
    free(receive_buffer);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
