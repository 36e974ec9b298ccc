/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fortran programs on MPICH. Its bindings call C by MPI names, where p2p.c sees them, all but those of `use mpi_f08` that have no buffer: they
 * call PMPI_Start.
 */
#include "attach.h"
#include "requests.h"

UCI_MPI_EXPORT void mpi_start_f08_(MPI_Fint *request, MPI_Fint *ierror);
UCI_MPI_EXPORT void mpi_startall_f08_(MPI_Fint *count, MPI_Fint *requests, MPI_Fint *ierror);
UCI_MPI_EXPORT void mpi_request_free_f08_(MPI_Fint *request, MPI_Fint *ierror);

extern void pmpir_start_f08_(MPI_Fint *request, MPI_Fint *ierror) __attribute__((weak));
extern void pmpir_startall_f08_(MPI_Fint *count, MPI_Fint *requests, MPI_Fint *ierror) __attribute__((weak));
extern void pmpir_request_free_f08_(MPI_Fint *request, MPI_Fint *ierror) __attribute__((weak));

UCI_MPI_EXPORT void mpi_start_f08_(MPI_Fint *request, MPI_Fint *ierror)
{
    uci_mpi_requests_start(*request);
    pmpir_start_f08_(request, ierror);
    uci_mpi_done();
}

UCI_MPI_EXPORT void mpi_startall_f08_(MPI_Fint *count, MPI_Fint *requests, MPI_Fint *ierror)
{
    MPI_Fint i, error = MPI_SUCCESS;

    if (!uci_mpi_is_on()) {
        pmpir_startall_f08_(count, requests, ierror);
        return;
    }
    for (i = 0; (i < *count) && (error == MPI_SUCCESS); ++i) {
        mpi_start_f08_(&requests[i], &error);
    }
    if (ierror != NULL) { /* it may be left out */
        *ierror = error;
    }
}

UCI_MPI_EXPORT void mpi_request_free_f08_(MPI_Fint *request, MPI_Fint *ierror)
{
    uci_mpi_requests_remove(*request);
    pmpir_request_free_f08_(request, ierror);
}
