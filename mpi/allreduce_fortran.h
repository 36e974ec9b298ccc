/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All-reduces by node for Fortran programs on Open MPI, whose bindings pass by those for C.
 */
#ifndef UCI_MPI_ALLREDUCE_FORTRAN_H_
#define UCI_MPI_ALLREDUCE_FORTRAN_H_

#include <mpi.h>

/** In the place of pmpi_allreduce_. @param ierror  of mpi_f08 it may be left out (NULL). */
void uci_mpi_allreduce_fortran(char *sendbuf, char *recvbuf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op,
                               MPI_Fint *comm, MPI_Fint *ierror);

#endif
