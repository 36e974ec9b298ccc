/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations of reductions: numbers that are the same in all processes.
 */
#ifndef UCI_MPI_OPERATIONS_H_
#define UCI_MPI_OPERATIONS_H_

#include <mpi.h>

#include "util/types.h"

/** @return its number; those of a program have one: which of them it is can't be told between processes. */
unsigned uci_mpi_operation_code(MPI_Op op);

/** @return its name: a constant. */
const char *uci_mpi_operation_name(unsigned code);

#endif
