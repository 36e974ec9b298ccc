/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Everybody to everybody, as often as is wanted, and nothing else: what twins cost where messages are all there is. Each block tells who has sent it to
 * whom, and in which round. The time is said on standard error.
 *
 *     alltoall [bytes [rounds]]       bytes that each rank sends to each
 */
#include "program.h"

static unsigned char content(int from, int to, int round)
{
    return (unsigned char)((from * 31) + (to * 7) + round);
}

/* The first, the last and one other byte of each block: looking at all would be what takes the time */
static long check_blocks(const unsigned char *blocks, int bytes, int round)
{
    long wrong = 0;
    int from;

    for (from = 0; from < ranks; ++from, blocks += bytes) {
        wrong += (blocks[0] != content(from, rank, round)) || (blocks[bytes - 1] != content(from, rank, round)) ||
                 (blocks[(round * 131) % bytes] != content(from, rank, round));
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int bytes, rounds, round, to;
    unsigned char *sent, *got;
    long wrong = 0, sum = 0;
    double start;

    begin(&argc, &argv);
    bytes  = argument(argc, argv, 1, 1024);
    rounds = argument(argc, argv, 2, 500);
    sent   = malloc((size_t)bytes * (size_t)ranks);
    got    = malloc((size_t)bytes * (size_t)ranks);
    start  = MPI_Wtime();
    for (round = 0; round < rounds; ++round) {
        for (to = 0; to < ranks; ++to) {
            memset(sent + ((size_t)to * (size_t)bytes), content(rank, to, round), (size_t)bytes);
        }
        MPI_Alltoall(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD);
        wrong += check_blocks(got, bytes, round);
    }
    if (rank == 0) {
        fprintf(stderr, "alltoall: %d bytes, %d rounds, %.3f us a round\n", bytes, rounds,
                1e6 * (MPI_Wtime() - start) / rounds);
    }
    MPI_Reduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    free(sent);
    free(got);
    return end("alltoall", sum);
}
