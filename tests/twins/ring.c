/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Heat in a ring that the ranks share, by the two cells at the borders of each: neighbours only, as in most codes with a grid. Rank 0 collects the
 * ring, and compares it with the one that it has computed alone.
 *
 *     ring [cells [steps [twin rank step]]]     cells of each rank; the last three: that process kills itself before that step
 */
#include "program.h"

static double step_of(const double *cells, int i)
{
    return fma(0.25, (cells[i - 1] - cells[i]) + (cells[i + 1] - cells[i]), cells[i]);
}

static double first_value(int index)
{
    return sin(0.01 * index) + ((index % 7 == 0) ? 1 : 0);
}

/* cells[0] and cells[count + 1] are the neighbours' */
static void exchange(double *cells, int count)
{
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    MPI_Request requests[4];

    MPI_Irecv(&cells[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&cells[count + 1], 1, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&cells[count], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&cells[1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void wrap(double *cells, int count)
{
    cells[0]         = cells[count];
    cells[count + 1] = cells[1];
}

static void advance(double *cells, double *next, int count)
{
    int i;

    for (i = 1; i <= count; ++i) {
        next[i] = step_of(cells, i);
    }
    memcpy(&cells[1], &next[1], (size_t)count * sizeof(*cells));
}

static double *new_cells(int count)
{
    return calloc((size_t)count + 2, sizeof(double));
}

static long compare(const double *ring, int count, int steps)
{
    double *cells = new_cells(count), *next = new_cells(count);
    long wrong = 0;
    int i;

    for (i = 0; i < count; ++i) {
        cells[i + 1] = first_value(i);
    }
    for (i = 0; i < steps; ++i) {
        wrap(cells, count);
        advance(cells, next, count);
    }
    for (i = 0; i < count; ++i) {
        wrong += (cells[i + 1] != ring[i]);
    }
    free(cells);
    free(next);
    return wrong;
}

int main(int argc, char **argv)
{
    int count, steps, i, dies;
    double *cells, *next, *ring;
    long wrong = 0;

    begin(&argc, &argv);
    count = argument(argc, argv, 1, 500);
    steps = argument(argc, argv, 2, 200);
    dies  = (argument(argc, argv, 3, -2) == twin_of()) && (argument(argc, argv, 4, -1) == rank);
    cells = new_cells(count);
    next  = new_cells(count);
    ring  = new_cells(count * ranks);
    for (i = 0; i < count; ++i) {
        cells[i + 1] = first_value((rank * count) + i);
    }
    for (i = 0; i < steps; ++i) {
        if (dies && (i == argument(argc, argv, 5, 0))) {
            raise(SIGKILL);
        }
        exchange(cells, count);
        advance(cells, next, count);
    }
    MPI_Gather(&cells[1], count, MPI_DOUBLE, ring, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        wrong = compare(ring, count * ranks, steps);
    }
    free(cells);
    free(next);
    free(ring);
    return end("ring", wrong);
}
