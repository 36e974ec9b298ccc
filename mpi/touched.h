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

/** @return for uci_mpi_touched_release(). */
uci_mpi_touched_t uci_mpi_touched_by_collective(const uci_mpi_collective_t *collective);

/** It is empty then. */
void uci_mpi_touched_release(uci_mpi_touched_t *touched);

#endif
