/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Counts of the model of all-reduces, against table II of M. Gavahi et al., "Encrypted All-reduce on Multi-core Clusters": rounds, bytes that are
 * sent, sealed and opened, and bytes that are added up.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "allreduce_model.h"

enum { NODES = 8, RANKS = 16 };

static const uci_mpi_model_t cluster = {.nodes       = NODES,
                                        .leaders     = RANKS,
                                        .local_ranks = RANKS,
                                        .ranks       = NODES * RANKS,
                                        .piece_max   = (size_t)64 << 20,
                                        .sealed      = true};

static void expect_near(double value, double expected)
{
    cr_expect(fabs(value - expected) <= 1e-9 * fabs(expected), "%g is not %g", value, expected);
}

/* ML-RS: 2 log2 N rounds, 2 m/l (N-1)/N bytes, which are sealed and opened; (l-1) m/l + m/l (N-1)/N are added up */
Test(allreduce_model, long_blocks_go_by_halving)
{
    double counts[UCI_MPI_TERM_LAST], length = 32 << 20, block = length / RANKS;

    uci_mpi_model_by_node(&cluster, (size_t)length, counts);
    expect_near(counts[UCI_MPI_TERM_ROUND], 6);
    expect_near(counts[UCI_MPI_TERM_BYTE], 2 * block * 7 / 8);
    expect_near(counts[UCI_MPI_TERM_WIRE], 2 * length * 7 / 8);
    expect_near(counts[UCI_MPI_TERM_SEAL], 4 * block * 7 / 8);
    expect_near(counts[UCI_MPI_TERM_REDUCE], 15 * block + block * 7 / 8);
    expect_near(counts[UCI_MPI_TERM_MPI_BYTE], 0);
}

/* ML-RD: log2 N rounds, the block in each */
Test(allreduce_model, short_blocks_go_by_doubling)
{
    double counts[UCI_MPI_TERM_LAST], length = 8192, block = length / RANKS;

    uci_mpi_model_by_node(&cluster, (size_t)length, counts);
    expect_near(counts[UCI_MPI_TERM_ROUND], 3);
    expect_near(counts[UCI_MPI_TERM_BYTE], 3 * block);
    expect_near(counts[UCI_MPI_TERM_SEAL], 6 * block);
    expect_near(counts[UCI_MPI_TERM_REDUCE], 15 * block + 3 * block);
}

/* RS: 2 m (p-1)/p bytes of each rank, of which 2 m/l (N-1)/N leave the node if neighbours are on one */
Test(allreduce_model, the_mpi_sends_nearly_twice_the_buffer)
{
    double counts[UCI_MPI_TERM_LAST], length = 1 << 20;

    uci_mpi_model_by_mpi(&cluster, (size_t)length, counts);
    expect_near(counts[UCI_MPI_TERM_MPI_ROUND], 14);
    expect_near(counts[UCI_MPI_TERM_MPI_BYTE], 2 * length * 127 / 128);
    expect_near(counts[UCI_MPI_TERM_SEAL], 4 * length / RANKS * 7 / 8);
    expect_near(counts[UCI_MPI_TERM_WIRE], 2 * length * 7 / 8);
}

Test(allreduce_model, what_is_not_sealed_costs_no_seal)
{
    double counts[UCI_MPI_TERM_LAST];
    uci_mpi_model_t model = cluster;

    model.sealed = false;
    uci_mpi_model_by_node(&model, 1 << 20, counts);
    expect_near(counts[UCI_MPI_TERM_SEAL] + counts[UCI_MPI_TERM_RECORD], 0);
    uci_mpi_model_by_mpi(&model, 1 << 20, counts);
    expect_near(counts[UCI_MPI_TERM_SEAL] + counts[UCI_MPI_TERM_RECORD], 0);
}

/* Beyond a power of two, one exchange more at each end, with the whole block */
Test(allreduce_model, other_numbers_of_nodes_cost_two_rounds_more)
{
    double counts[UCI_MPI_TERM_LAST], length = 32 << 20, block = length / RANKS;
    uci_mpi_model_t model = cluster;

    model.nodes = 9;
    model.ranks = 9 * RANKS;
    uci_mpi_model_by_node(&model, (size_t)length, counts);
    expect_near(counts[UCI_MPI_TERM_ROUND], 8);
    expect_near(counts[UCI_MPI_TERM_BYTE], 2 * block * 7 / 8 + 2 * block);
}

/* A time is the sum of its terms, and grows with the length */
Test(allreduce_model, longer_takes_longer)
{
    double counts[UCI_MPI_TERM_LAST], last = 0;
    size_t length;

    for (length = 64; length <= ((size_t)1 << 30); length *= 2) {
        uci_mpi_model_by_node(&cluster, length, counts);
        cr_expect(uci_mpi_model_time(counts) > last, "%zu bytes", length);
        last = uci_mpi_model_time(counts);
    }
}
