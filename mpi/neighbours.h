/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Who are this rank's neighbours in a topology?
 */
#ifndef UCI_MPI_NEIGHBOURS_H_
#define UCI_MPI_NEIGHBOURS_H_

#include <mpi.h>

/** Edges of a topology, in its order; MPI_PROC_NULL where there is none. */
typedef struct uci_mpi_neighbours {
    int *ranks;
    int count;
} uci_mpi_neighbours_t;

/** From whom, and to whom, collectives of neighbours on @a comm go; none, if it has no topology, or there is no memory. For uci_mpi_neighbours_release(). */
void uci_mpi_neighbours_find(MPI_Comm comm, uci_mpi_neighbours_t *in, uci_mpi_neighbours_t *out);

void uci_mpi_neighbours_release(uci_mpi_neighbours_t *neighbours);

#endif
