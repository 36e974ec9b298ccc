/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of all sizes and of derived datatypes around a ring: rows, columns and scattered blocks of a matrix, by frames and by rendezvous. What a rank gets
 * it computes on, and hands to the next one; after as many rounds as there are ranks times some, rank 0 knows what must have come of it.
 *
 *     types [order [rounds]]          order of the matrix of each rank
 */
#include "program.h"

static int order;

static double first_value(int owner, int index)
{
    return (owner + 1) + (0.001 * (index % 997));
}

static void compute(double *matrix)
{
    int i;

    for (i = 0; i < order * order; ++i) {
        matrix[i] = fma(matrix[i], 0.5, 0.25);
    }
}

/* A column, the left half, blocks here and there, all of it */
static void make_types(MPI_Datatype types[4])
{
    int lengths[3] = {3, 1, order}, places[3] = {1, order + 5, order * (order - 1)};
    int i;

    MPI_Type_vector(order, 1, order, MPI_DOUBLE, &types[0]);
    MPI_Type_vector(order, order / 2, order, MPI_DOUBLE, &types[1]);
    MPI_Type_indexed(3, lengths, places, MPI_DOUBLE, &types[2]);
    MPI_Type_contiguous(order * order, MPI_DOUBLE, &types[3]);
    for (i = 0; i < 4; ++i) {
        MPI_Type_commit(&types[i]);
    }
}

/* What a matrix becomes when parts of another one are put in, as a message of @a type does */
static void put(double *matrix, const double *from, MPI_Datatype type)
{
    MPI_Sendrecv(from, 1, type, 0, 9, matrix, 1, type, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/* All ranks' matrices, by one rank alone */
static long compare(const double *got, const MPI_Datatype types[4], int rounds)
{
    size_t cells = (size_t)order * (size_t)order, owner, i;
    double *all = malloc((size_t)ranks * cells * sizeof(*all)), *next = malloc((size_t)ranks * cells * sizeof(*all));
    long wrong = 0;
    int round;

    for (i = 0; i < (size_t)ranks * cells; ++i) {
        all[i] = first_value((int)(i / cells), (int)(i % cells));
    }
    for (round = 0; round < rounds; ++round) {
        memcpy(next, all, (size_t)ranks * cells * sizeof(*all));
        for (owner = 0; owner < (size_t)ranks; ++owner) {
            put(&next[owner * cells], &all[((owner + (size_t)ranks - 1) % (size_t)ranks) * cells], types[round % 4]);
            compute(&next[owner * cells]);
        }
        memcpy(all, next, (size_t)ranks * cells * sizeof(*all));
    }
    for (i = 0; i < (size_t)ranks * cells; ++i) {
        wrong += (all[i] != got[i]);
    }
    free(all);
    free(next);
    return wrong;
}

int main(int argc, char **argv)
{
    double *matrix, *old, *all;
    MPI_Datatype types[4];
    int i, round, rounds;
    long wrong = 0;
    size_t cells;

    begin(&argc, &argv);
    order  = argument(argc, argv, 1, 128);
    rounds = argument(argc, argv, 2, 16);
    cells  = (size_t)order * (size_t)order;
    matrix = malloc(cells * sizeof(*matrix));
    old    = malloc(cells * sizeof(*matrix));
    all    = malloc((size_t)ranks * cells * sizeof(*matrix));
    for (i = 0; i < order * order; ++i) {
        matrix[i] = first_value(rank, i);
    }
    make_types(types);
    for (round = 0; round < rounds; ++round) {
        memcpy(old, matrix, cells * sizeof(*matrix));
        MPI_Sendrecv(old, 1, types[round % 4], (rank + 1) % ranks, round, matrix, 1, types[round % 4],
                     (rank + ranks - 1) % ranks, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(matrix);
    }
    MPI_Gather(matrix, (int)cells, MPI_DOUBLE, all, (int)cells, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        wrong = compare(all, types, rounds);
    }
    for (i = 0; i < 4; ++i) {
        MPI_Type_free(&types[i]);
    }
    free(matrix);
    free(old);
    free(all);
    return end("types", wrong);
}
