/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * usage: patterns ROUNDS [BYTES]
 *
 * Every rank sends to every other one, in each round one message of each size, up to BYTES (1 MiB), at once. All that is sent is readable: blocks
 * that begin with the text that mitm.py looks for, and then say whose they are, so that a byte that is wrong, or in the wrong place,
 * message or round, shows. Each rank judges by itself, and says "WRONG" before it aborts. Rank 0 ends with "PASS patterns".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK     48
#define NEEDLE    "UCI-MITM-PLAINTEXT" /* as in mitm.py */
#define RANKS_MAX 16
#define SIZES     10

static const int sizes[SIZES] = {8, 100, 1000, 4000, 8000, 20000, 60000, 150000, 400000, 1 << 20};

static void fill(char *buffer, int size, int from, int to, int round, int which)
{
    char block[2 * BLOCK];
    int done;

    for (done = 0; done < size; done += BLOCK) {
        snprintf(block, sizeof(block), NEEDLE "%02d>%02d r%06d s%02d %09d.", from, to, round, which, done);
        memcpy(buffer + done, block, (size_t)(size - done < BLOCK ? size - done : BLOCK));
    }
}

static void check(const char *buffer, const char *expected, int size, int from, int round)
{
    int i;

    if (memcmp(buffer, expected, (size_t)size) == 0) {
        return;
    }
    for (i = 0; buffer[i] == expected[i]; ++i) {
    }
    printf("WRONG: round %d, message of %d bytes from rank %d: byte %d is 0x%02x instead of 0x%02x\n", round, size,
           from, i, (unsigned char)buffer[i], (unsigned char)expected[i]);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void *allocate(size_t size)
{
    void *ptr = malloc(size);

    if (ptr == NULL) {
        printf("no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    return ptr;
}

int main(int argc, char **argv)
{
    char *out[RANKS_MAX][SIZES], *in[RANKS_MAX][SIZES], *expected;
    int rounds = (argc > 1) ? atoi(argv[1]) : 10, most = (argc > 2) ? atoi(argv[2]) : 1 << 20;
    MPI_Request requests[2 * RANKS_MAX * SIZES];
    int rank, ranks, round, peer, i, used, messages = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS_MAX) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    expected = allocate(1 << 20);
    for (peer = 0; peer < ranks; ++peer) {
        for (i = 0; i < SIZES; ++i) {
            out[peer][i] = allocate((size_t)sizes[i]);
            in[peer][i]  = allocate((size_t)sizes[i]);
        }
    }

    for (round = 0; round < rounds; ++round) {
        used = 0;
        for (peer = 0; peer < ranks; ++peer) {
            for (i = 0; (peer != rank) && (i < SIZES) && (sizes[i] <= most); ++i) {
                memset(in[peer][i], '?', (size_t)sizes[i]);
                MPI_Irecv(in[peer][i], sizes[i], MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[used++]);
            }
        }
        for (peer = 0; peer < ranks; ++peer) {
            for (i = 0; (peer != rank) && (i < SIZES) && (sizes[i] <= most); ++i) {
                fill(out[peer][i], sizes[i], rank, peer, round, i);
                MPI_Isend(out[peer][i], sizes[i], MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[used++]);
            }
        }
        MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
        for (peer = 0; peer < ranks; ++peer) {
            for (i = 0; (peer != rank) && (i < SIZES) && (sizes[i] <= most); ++i, ++messages) {
                fill(expected, sizes[i], peer, rank, round, i);
                check(in[peer][i], expected, sizes[i], peer, round);
            }
        }
    }

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("PASS patterns: %d messages right at rank 0\n", messages);
    }
    for (peer = 0; peer < ranks; ++peer) {
        for (i = 0; i < SIZES; ++i) {
            free(out[peer][i]);
            free(in[peer][i]);
        }
    }
    free(expected);
    MPI_Finalize();
    return 0;
}
