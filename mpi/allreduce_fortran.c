/* SPDX-License-Identifier: BSD-3-Clause */
#include "allreduce_fortran.h"

#include "allreduce.h"
#include "fortran_openmpi.h"

extern void pmpi_allreduce_(char *sendbuf, char *recvbuf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op,
                            MPI_Fint *comm, MPI_Fint *ierror) __attribute__((weak));

static const void *uci_mpi_fortran_buffer(const char *buffer)
{
    return uci_mpi_fortran_is_in_place(buffer) ? MPI_IN_PLACE : buffer;
}

void uci_mpi_allreduce_fortran(char *sendbuf, char *recvbuf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op,
                               MPI_Fint *comm, MPI_Fint *ierror)
{
    int ret;

    if (!uci_mpi_allreduce_by_node(uci_mpi_fortran_buffer(sendbuf), recvbuf, *count, PMPI_Type_f2c(*datatype),
                                   PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm), &ret)) {
        pmpi_allreduce_(sendbuf, recvbuf, count, datatype, op, comm, ierror);
    } else if (ierror != NULL) {
        *ierror = ret;
    }
}
