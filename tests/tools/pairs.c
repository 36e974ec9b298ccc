/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Even ranks send to the next one: 20 messages, small and large. Then, as asked for by arguments:
 *
 *     a number    all end with this exit status
 *     kill        rank 1 is ended by a signal, before the others are done
 *     leave       rank 1 ends without a word: by _exit(), after MPI_Finalize()
 *     abort       rank 1 calls MPI_Abort()
 *     error       rank 1 makes an error that MPI ends the job for
 *     hang        rank 0 waits for a message that nobody sends
 *     absent      rank 1 never comes to a barrier
 *     unheard     rank 1 never comes to a broadcast, which does not wait for it
 *     types       rank 0 sends integers, and rank 1 receives them as doubles
 *     N FILE      with status N, when they have written to FILE until the disk is full
 *     overwrite   rank 0 writes to the buffer of a send that is pending, over and over
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 20, SMALL = 100, MESSAGES = 20 };

static void communicate(int rank, int size)
{
    char *buffer = calloc(1, LARGE);
    int i, length;

    for (i = 0; i < MESSAGES; ++i) {
        length = (i % 2 != 0) ? SMALL : LARGE;
        if ((rank % 2 == 0) && (rank + 1 < size)) {
            MPI_Send(buffer, length, MPI_BYTE, rank + 1, i, MPI_COMM_WORLD);
        } else if (rank % 2 != 0) {
            MPI_Recv(buffer, length, MPI_BYTE, rank - 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    free(buffer);
}

/* What rank 1 does wrong while the others wait for it */
static void end_early(const char *ending, int rank)
{
    int one = 1;

    if (rank != 1) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(ending, "kill") == 0) {
        raise(SIGKILL);
    } else if (strcmp(ending, "abort") == 0) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    } else if (strcmp(ending, "error") == 0) {
        MPI_Send(&one, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    }
}

static void mistype(int rank)
{
    int sent[4]        = {1, 2, 3, 4};
    double received[2] = {0};

    if (rank == 0) {
        MPI_Send(sent, 4, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(received, 2, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void overwrite(int rank)
{
    char *buffer = calloc(1, LARGE);
    int done = 0, value = 0;
    MPI_Request request;

    if (rank == 0) {
        MPI_Isend(buffer, LARGE, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        while (!done) {
            memset(buffer, ++value, LARGE);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
    } else if (rank == 1) {
        sleep(1);
        MPI_Recv(buffer, LARGE, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(buffer);
}

static void end_as(const char *ending, int rank)
{
    int word = 0;

    if ((strcmp(ending, "kill") == 0) || (strcmp(ending, "abort") == 0) || (strcmp(ending, "error") == 0) ||
        (strcmp(ending, "absent") == 0)) {
        end_early(ending, rank);
    } else if ((strcmp(ending, "hang") == 0) && (rank == 0)) {
        MPI_Recv(&word, 1, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if ((strcmp(ending, "unheard") == 0) && (rank != 1)) {
        MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } else if (strcmp(ending, "types") == 0) {
        mistype(rank);
    } else if (strcmp(ending, "overwrite") == 0) {
        overwrite(rank);
    }
}

static void fill_disk(const char *path)
{
    static char zeros[4096];
    FILE *file = fopen(path, "a");

    while ((fwrite(zeros, sizeof(zeros), 1, file) == 1) && (fflush(file) == 0)) {
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    const char *ending = (argc > 1) ? argv[1] : "0";
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d\n", rank, size);
    communicate(rank, size);
    end_as(ending, rank);
    MPI_Finalize();
    if ((strcmp(ending, "leave") == 0) && (rank == 1)) {
        _exit(0);
    }
    if (argc > 2) {
        fill_disk(argv[2]);
    }
    return atoi(ending);
}
