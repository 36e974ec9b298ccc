/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How long messages take to arrive, for heal.py: two ranks exchange windows of messages, each written before it is sent and compared when it
 * has come. Prints one line "MESSAGES,SECONDS,STALL": of both ranks, from the first send on; STALL is the longest time, in seconds, in which
 * a rank that waits for messages got none.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW_MAX = 256 };

static double longest;

/* Bytes that tell the message, and the place in it */
static unsigned char content(int rank, int round, int index, int place)
{
    return (unsigned char)(rank + 3 * round + 5 * index + 7 * place + place / 251);
}

static void fill(unsigned char *bytes, int size, int rank, int round, int index)
{
    for (int place = 0; place < size; ++place) {
        bytes[place] = content(rank, round, index, place);
    }
}

static void compare(const unsigned char *bytes, int size, int rank, int round, int index)
{
    for (int place = 0; place < size; ++place) {
        if (bytes[place] != content(rank, round, index, place)) {
            fprintf(stderr, "bench_heal: round %d, message %d: wrong byte at %d\n", round, index, place);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
}

static void wait_all(MPI_Request *requests, int count)
{
    double now, before = MPI_Wtime();
    int i, index;

    for (i = 0; i < count; ++i) {
        MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        now     = MPI_Wtime();
        longest = (now - before > longest) ? now - before : longest;
        before  = now;
    }
}

static void exchange(unsigned char *buffers, int rank, int round, int window, int size)
{
    MPI_Request requests[2 * WINDOW_MAX];
    unsigned char *from = buffers, *to = buffers + (size_t)window * (size_t)size;

    for (int i = 0; i < window; ++i) {
        MPI_Irecv(from + (size_t)i * (size_t)size, size, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < window; ++i) {
        fill(to + (size_t)i * (size_t)size, size, rank, round, i);
        MPI_Isend(to + (size_t)i * (size_t)size, size, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[window + i]);
    }
    wait_all(requests, 2 * window);
    for (int i = 0; i < window; ++i) {
        compare(from + (size_t)i * (size_t)size, size, 1 - rank, round, i);
    }
}

int main(int argc, char **argv)
{
    int rank, rounds, window, size;
    double begin, seconds, stall;
    unsigned char *buffers;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rounds = (argc == 4) ? atoi(argv[1]) : 0;
    window = (argc == 4) ? atoi(argv[2]) : 0;
    size   = (argc == 4) ? atoi(argv[3]) : 0;
    if ((rounds < 1) || (window < 1) || (window > WINDOW_MAX) || (size < 1)) {
        fprintf(stderr, "usage: bench_heal ROUNDS WINDOW BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    buffers = malloc(2 * (size_t)window * (size_t)size);
    begin   = MPI_Wtime();
    for (int round = 0; round < rounds; ++round) {
        exchange(buffers, rank, round, window, size);
    }
    seconds = MPI_Wtime() - begin;
    MPI_Reduce(&longest, &stall, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d,%.6f,%.6f\n", 2 * rounds * window, seconds, stall);
    }
    free(buffers);
    MPI_Finalize();
    return 0;
}
