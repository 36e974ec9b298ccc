/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators, types, groups and operations that the program has made and not freed (UCI_CHECK_CALLS). At MPI_Finalize, for each place that has made some:
 *
 *     {"finding": "kept", "place": 3, "count": 20}
 *
 * Nothing of MPI's forbids that. What a binding makes that passes by those for C (Open MPI's for Fortran) is not known, nor is that it is freed.
 */
#ifndef UCI_MPI_KEPT_H_
#define UCI_MPI_KEPT_H_

#include <mpi.h>

#include "calls_file.h"
#include "handles.h"

/** Kinds of handles: two of different kinds may be the same number. */
typedef enum { UCI_MPI_KEPT_COMM, UCI_MPI_KEPT_TYPE, UCI_MPI_KEPT_GROUP, UCI_MPI_KEPT_OP } uci_mpi_kept_kind_t;

/** It was made at @a place. Some MPIs give the same handle to several owners: it is freed as often as it was made. Thread safe, as all of these. */
void uci_mpi_kept_add(uci_mpi_kept_kind_t kind, uint64_t handle, int place);

/** It is freed. */
void uci_mpi_kept_remove(uci_mpi_kept_kind_t kind, uint64_t handle);

/** MPI_Finalize will be called: tell of what is left. */
void uci_mpi_kept_finalize(void);

#endif
