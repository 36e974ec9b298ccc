/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a communicator's all-reduces need, made when it is first needed and kept as an attribute of it: who is on which node, communicators of
 * the leaders, the window of this node, buffers.
 *
 * Whether a communicator can have it is agreed by its ranks: each sees the same result, whatever fails on one of them.
 */
#ifndef UCI_MPI_ALLREDUCE_COMM_H_
#define UCI_MPI_ALLREDUCE_COMM_H_

#include "allreduce_net.h"

typedef enum {
    UCI_MPI_COMM_NEW,  /**< nothing is known yet */
    UCI_MPI_COMM_MPI,  /**< its all-reduces are left to the MPI */
    UCI_MPI_COMM_READY /**< it has all below */
} uci_mpi_comm_state_t;

typedef struct uci_mpi_comm {
    uci_mpi_comm_state_t state;
    unsigned calls; /**< all-reduces that could have been done by node while it was new */
    int ranks, rank;
    int nodes, node;        /**< numbered by their lowest ranks */
    int local_ranks, local; /**< on this node */
    int local_ranks_max;    /**< of any node */
    int leaders;            /**< of each node: as many as the smallest one has ranks */
    bool sealed;            /**< as ops->sealed */
    uci_mpi_net_t net;
    uci_mpi_window_t window; /**< memory is NULL where each node has one rank */
    int *members;            /**< of this node, by their rank in the communicator */
    char *buffers;           /**< `sums`, `spare` and `chunk` */
    char *sums, *spare;      /**< a block each */
    char *chunk;             /**< UCI_MPI_CHUNK */
    size_t piece_max;        /**< bytes of a piece; a multiple of UCI_MPI_CHUNK */
} uci_mpi_comm_t;

/** To be called once, after MPI_Init. @return whether it is possible. */
bool uci_mpi_comm_init(const uci_allreduce_ops_t *ops);

/** @return what is kept of @a comm, made if need be; NULL: it is none. Local. */
uci_mpi_comm_t *uci_mpi_comm_get(MPI_Comm comm);

/** Make it ready, or find that it can't be: collective, on one that is new. @param can  this rank has nothing against it. */
void uci_mpi_comm_prepare(uci_mpi_comm_t *kept, MPI_Comm comm, bool can);

#endif
