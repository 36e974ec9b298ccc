/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which memory a call of MPI reads, and which it writes, on this rank (region.h).
 */
#ifndef UCI_MPI_TOUCHED_H_
#define UCI_MPI_TOUCHED_H_

#include "collective.h"
#include "region.h"

typedef struct uci_mpi_touched {
    uci_mpi_region_t read, written; /**< what is replaced by what comes is written */
} uci_mpi_touched_t;

/** What this rank is in a collective. */
typedef struct uci_mpi_role {
    int rank, size; /**< of its own group */
    int partners;   /**< ranks it gives to, or gets from: of an intercommunicator those of the other group */
    bool is_root;
    bool is_other; /**< it has the part of one that is no root: a root among its own group has both */
} uci_mpi_role_t;

/** @return it; the communicator is not MPI_COMM_NULL. */
uci_mpi_role_t uci_mpi_role_find(const uci_mpi_collective_t *collective);

/** @return for uci_mpi_touched_release(). */
uci_mpi_touched_t uci_mpi_touched_by_collective(const uci_mpi_collective_t *collective, const uci_mpi_role_t *role);

/** It is empty then. */
void uci_mpi_touched_release(uci_mpi_touched_t *touched);

#endif
