/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ranks that wait for ever: each receives what the other one does not send. Rank 1 sends what nobody receives.
 */
#include <mpi.h>

static char unwanted[1 << 20];

int main(int argc, char **argv)
{
    MPI_Request request;
    int rank, number;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        MPI_Isend(unwanted, sizeof(unwanted), MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    }
    MPI_Recv(&number, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
