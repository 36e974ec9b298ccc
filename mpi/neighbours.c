/* SPDX-License-Identifier: BSD-3-Clause */
#include "neighbours.h"

#include <stdbool.h>
#include <stdlib.h>

static bool uci_mpi_neighbours_alloc(uci_mpi_neighbours_t *neighbours, int count)
{
    neighbours->ranks = calloc((size_t)count + 1, sizeof(*neighbours->ranks));
    neighbours->count = (neighbours->ranks != NULL) ? count : 0;
    return neighbours->ranks != NULL;
}

/* Both lists are one: below and above, in each dimension */
static void uci_mpi_neighbours_cart(MPI_Comm comm, uci_mpi_neighbours_t *in, uci_mpi_neighbours_t *out)
{
    int i, dims = 0;

    PMPI_Cartdim_get(comm, &dims);
    if (!uci_mpi_neighbours_alloc(in, 2 * dims) || !uci_mpi_neighbours_alloc(out, 2 * dims)) {
        return;
    }
    for (i = 0; i < dims; ++i) {
        PMPI_Cart_shift(comm, i, 1, &in->ranks[2 * i], &in->ranks[(2 * i) + 1]);
        out->ranks[2 * i]       = in->ranks[2 * i];
        out->ranks[(2 * i) + 1] = in->ranks[(2 * i) + 1];
    }
}

static void uci_mpi_neighbours_graph(MPI_Comm comm, uci_mpi_neighbours_t *in, uci_mpi_neighbours_t *out)
{
    int rank, count = 0;

    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
    if (uci_mpi_neighbours_alloc(in, count) && uci_mpi_neighbours_alloc(out, count)) {
        PMPI_Graph_neighbors(comm, rank, count, in->ranks);
        PMPI_Graph_neighbors(comm, rank, count, out->ranks);
    }
}

static void uci_mpi_neighbours_dist(MPI_Comm comm, uci_mpi_neighbours_t *in, uci_mpi_neighbours_t *out)
{
    int sources = 0, destinations = 0, weighted = 0, *weights;

    PMPI_Dist_graph_neighbors_count(comm, &sources, &destinations, &weighted);
    weights = calloc((size_t)sources + (size_t)destinations + 1, sizeof(*weights));
    if ((weights != NULL) && uci_mpi_neighbours_alloc(in, sources) && uci_mpi_neighbours_alloc(out, destinations)) {
        PMPI_Dist_graph_neighbors(comm, sources, in->ranks, weights, destinations, out->ranks, weights + sources);
    }
    free(weights);
}

void uci_mpi_neighbours_find(MPI_Comm comm, uci_mpi_neighbours_t *in, uci_mpi_neighbours_t *out)
{
    int topology = MPI_UNDEFINED;

    *in = *out = (uci_mpi_neighbours_t){.ranks = NULL};
    PMPI_Topo_test(comm, &topology);
    switch (topology) {
    case MPI_CART:
        uci_mpi_neighbours_cart(comm, in, out);
        break;
    case MPI_GRAPH:
        uci_mpi_neighbours_graph(comm, in, out);
        break;
    case MPI_DIST_GRAPH:
        uci_mpi_neighbours_dist(comm, in, out);
        break;
    default: /* an error, which MPI tells */
        break;
    }
}

void uci_mpi_neighbours_release(uci_mpi_neighbours_t *neighbours)
{
    free(neighbours->ranks);
    *neighbours = (uci_mpi_neighbours_t){.ranks = NULL};
}
