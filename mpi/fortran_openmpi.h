/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fortran programs on Open MPI. Its bindings for mpif.h and `use mpi` (mpi_send_) and those for `use mpi_f08` (mpi_send_f08_, which calls
 * ompi_send_f) call C by PMPI names, so that the wrappers in C never see them: these names are wrapped as well, and pass everything on to
 * pmpi_send_. MPICH's bindings call MPI_Send: there nearly nothing of this is needed (fortran_mpich.c).
 */
#ifndef UCI_MPI_FORTRAN_OPENMPI_H_
#define UCI_MPI_FORTRAN_OPENMPI_H_

#include "attach.h"

/** Begins the definition of one: under the names that Fortran compilers give a subroutine, and that which Open MPI's f08 module calls. */
#define UCI_MPI_FORTRAN(_name, _params) \
    UCI_MPI_EXPORT void mpi_##_name##_ _params; \
    UCI_MPI_EXPORT void mpi_##_name _params __attribute__((alias("mpi_" #_name "_"))); \
    UCI_MPI_EXPORT void mpi_##_name##__ _params __attribute__((alias("mpi_" #_name "_"))); \
    UCI_MPI_EXPORT void ompi_##_name##_f _params __attribute__((alias("mpi_" #_name "_"))); \
    extern void pmpi_##_name##_ _params __attribute__((weak)); \
    UCI_MPI_EXPORT void mpi_##_name##_ _params

/** @return is this what `MPI_IN_PLACE` of Fortran is? */
bool uci_mpi_fortran_is_in_place(const void *buf);

#endif
