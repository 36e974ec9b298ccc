/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 has sent a buffer to rank 1; do both have the same now? Rank 1 damages two bytes, and both ranks learn where.
 *
 *     mpicc mpi_ranks.c $(pkg-config --cflags --libs uci) -o mpi_ranks && mpirun -n 2 ./mpi_ranks
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <uci_mpi.h>

#define LENGTH ((size_t)32 << 20)
#define TAG    7

/* Compare this rank's buffer with the peer's. Returns how many ranges differ. */
static size_t validate(const void *buffer, size_t length, int peer, MPI_Comm comm)
{
    int rank;
    uci_byte_range_t ranges[8];
    uci_tree_result_t result = {.ranges = ranges, .max = 8};
    uci_tree_t *tree;
    size_t i;

    MPI_Comm_rank(comm, &rank);
    if ((uci_tree_build(buffer, length, NULL, &tree) != UCI_OK) ||
        (uci_tree_compare_mpi(tree, peer, TAG, comm, &result) != UCI_OK)) {
        MPI_Abort(comm, 2);
    }
    printf("rank %d: %zu ranges differ; %llu bytes moved in %llu rounds\n", rank, result.count,
           (unsigned long long)(result.sent + result.received), (unsigned long long)result.rounds);
    for (i = 0; (i < result.count) && (i < result.max); ++i) {
        printf("rank %d: bytes %llu..%llu\n", rank, (unsigned long long)ranges[i].offset,
               (unsigned long long)(ranges[i].offset + ranges[i].length - 1));
    }
    uci_tree_destroy(tree);
    return result.count;
}

int main(int argc, char **argv)
{
    unsigned char *data = malloc(LENGTH);
    size_t before, after;
    int rank, size, wrong;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((size != 2) || (data == NULL)) {
        fprintf(stderr, "two ranks are wanted, and %zu bytes\n", LENGTH);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(data, (rank == 0) ? 0x5a : 0, LENGTH);
    MPI_Bcast(data, (int)LENGTH, MPI_BYTE, 0, MPI_COMM_WORLD);

    before = validate(data, LENGTH, !rank, MPI_COMM_WORLD);
    if (rank == 1) {
        data[100] ^= 1;
        data[LENGTH / 2] ^= 1;
    }
    after = validate(data, LENGTH, !rank, MPI_COMM_WORLD);

    free(data);
    wrong = (before != 0) || (after != 2);
    MPI_Finalize();
    return wrong;
}
