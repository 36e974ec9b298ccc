/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All-reduce of one block between the leaders that have it, one on each node: recursive doubling (R. Thakur, R. Rabenseifner, W. Gropp,
 * "Optimization of collective communication operations in MPICH", 2005) for short blocks, recursive halving and doubling (R. Rabenseifner, "A new
 * optimized MPI reduce algorithm", 1997) for long ones: the paper's ML-RD and ML-RS.
 *
 * Both add up in the same order, whatever the length: nodes are the leaves of a binary tree, neighbours are added first, left operand left.
 * Where there are N = 2^k + r nodes, the first 2r are added in pairs before, and each pair is one leaf.
 */
#ifndef UCI_MPI_ALLREDUCE_NET_H_
#define UCI_MPI_ALLREDUCE_NET_H_

#include "allreduce_window.h"

#define UCI_MPI_SEGMENTS 32u /**< messages of one exchange that are on the way at once */

typedef struct uci_mpi_net {
    MPI_Comm comm; /**< own: this leader and its like, by node; MPI_COMM_NULL: this is none */
    int nodes, node;
    uci_mpi_window_t *window; /**< its ranks are served while we wait; NULL: there is none */
    size_t doubling_max;      /**< bytes of a block up to which recursive doubling is used; the same on all nodes */

    /* The all-reduce at work */
    MPI_Datatype datatype;
    MPI_Op op;
    size_t extent; /**< bytes of an element */
} uci_mpi_net_t;

/**
 * Add up the block of all nodes.
 * @param sums_p  in: the sums of this node; out: those of all. It is exchanged for the other one as needed.
 * @param spare_p  as large.
 * @param length  bytes; a multiple of the extent.
 * @return MPI_SUCCESS, or an error of MPI's.
 */
int uci_mpi_net_allreduce(uci_mpi_net_t *net, char **sums_p, char **spare_p, size_t length);

/** inout = in op inout, @a length bytes. */
int uci_mpi_reduce_local(MPI_Datatype datatype, MPI_Op op, size_t extent, const void *in, void *inout, size_t length);

#endif
