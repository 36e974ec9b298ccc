/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * libuci between two ranks of an MPI communicator: in line over MPI_Sendrecv, so that it works with whatever MPI the program is
 * compiled with. See uci.h.
 */
#ifndef UCI_MPI_H_
#define UCI_MPI_H_

#include <mpi.h>

#include "uci.h"

typedef struct uci_mpi_peer {
    MPI_Comm comm;
    int rank;
    int tag;
} uci_mpi_peer_t;

static inline uci_status_t uci_mpi_exchange(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                                            size_t *in_length_p)
{
    const uci_mpi_peer_t *peer = (const uci_mpi_peer_t *)arg;
    MPI_Status status;
    int count = 0;

    if ((MPI_Sendrecv(out, (int)out_length, MPI_BYTE, peer->rank, peer->tag, in, (int)in_max, MPI_BYTE, peer->rank,
                      peer->tag, peer->comm, &status) != MPI_SUCCESS) ||
        (MPI_Get_count(&status, MPI_BYTE, &count) != MPI_SUCCESS) || (count < 0)) {
        return UCI_ERR_IO;
    }
    *in_length_p = (size_t)count;
    return UCI_OK;
}

/**
 * Compare @a tree with that of rank @a rank of @a comm, which calls this at the same time with this rank and the same tag. No other
 * message of this tag may be on its way between the two. Errors of MPI are what the communicator's error handler makes of them;
 * UCI_ERR_IO where it returns. Else as uci_tree_compare_with().
 */
static inline uci_status_t uci_tree_compare_mpi(uci_tree_t *tree, int rank, int tag, MPI_Comm comm,
                                                uci_tree_result_t *result)
{
    uci_mpi_peer_t peer    = {comm, rank, tag};
    uci_exchange_ops_t ops = {sizeof(ops), uci_mpi_exchange, NULL, NULL, 0};

    return uci_tree_compare_with(tree, &ops, &peer, result);
}

#endif
