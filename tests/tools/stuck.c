/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A job that hangs: rank 1 leaves MPI for ever with a large message half sent, for which rank 0 waits.
 */
#include <mpi.h>
#include <unistd.h>

static char message[64 << 20];

int main(int argc, char **argv)
{
    MPI_Request request;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD); /* what comes now need not wait for a connection */
    if (rank == 1) {
        MPI_Isend(message, sizeof(message), MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
        pause();
    }
    MPI_Recv(message, sizeof(message), MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
