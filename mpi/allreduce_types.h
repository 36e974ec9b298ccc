/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which operations of MPI's own apply to which of its own datatypes (MPI 4.1, section 6.9.2). What these are is the same on all ranks by MPI's
 * rules, so what is decided by them is too.
 */
#ifndef UCI_MPI_ALLREDUCE_TYPES_H_
#define UCI_MPI_ALLREDUCE_TYPES_H_

#include <mpi.h>

#include "util/types.h"

/** Elements never lie across a multiple of so many bytes, counted from the first one. */
#define UCI_MPI_ELEMENT_MAX 64u

/**
 * @return bytes from one element of @a datatype to the next: a power of two, at most UCI_MPI_ELEMENT_MAX; 0: one of the two is not MPI's own,
 *         or they do not go together, which is for MPI to tell.
 */
size_t uci_mpi_allreduce_extent(MPI_Datatype datatype, MPI_Op op);

#endif
