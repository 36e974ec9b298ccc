/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Even ranks send to the next one: 20 messages, small and large. Then, as asked for by one argument:
 *
 *     a number    all end with this exit status
 *     kill        rank 1 is ended by a signal, before the others are done
 *     leave       rank 1 ends without a word: by _exit(), after MPI_Finalize()
 */
#include <mpi.h>
#include <signal.h>
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

int main(int argc, char **argv)
{
    const char *ending = (argc > 1) ? argv[1] : "0";
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    communicate(rank, size);
    if (strcmp(ending, "kill") == 0) {
        if (rank == 1) {
            raise(SIGKILL);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    if ((strcmp(ending, "leave") == 0) && (rank == 1)) {
        _exit(0);
    }
    return atoi(ending);
}
