/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fortran programs on MPICH. Its bindings call C by MPI names, where the wrappers in C see them, all but those of `use mpi_f08` that have no
 * buffer: they call PMPI_Start.
 */
#include "collective.h"
#include "requests.h"

/* Begins the definition of one */
#define UCI_MPI_FORTRAN(_name, _params) \
    UCI_MPI_EXPORT void mpi_##_name##_f08_ _params; \
    extern void pmpir_##_name##_f08_ _params __attribute__((weak)); \
    UCI_MPI_EXPORT void mpi_##_name##_f08_ _params

UCI_MPI_FORTRAN(start, (MPI_Fint * request, MPI_Fint *ierror))
{
    uci_mpi_requests_start(*request);
    pmpir_start_f08_(request, ierror);
    uci_mpi_done();
}

UCI_MPI_FORTRAN(startall, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *ierror))
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

UCI_MPI_FORTRAN(request_free, (MPI_Fint * request, MPI_Fint *ierror))
{
    uci_mpi_requests_remove(*request);
    pmpir_request_free_f08_(request, ierror);
}

static void uci_mpi_f08_barrier(const char *call, bool blocks, MPI_Fint comm)
{
    if (uci_mpi_compares_collectives()) {
        uci_mpi_agree(&(const uci_mpi_collective_t){
                .call = call, .blocks = blocks, .comm = PMPI_Comm_f2c(comm), .root = UCI_MPI_NO_ROOT});
    }
}

UCI_MPI_FORTRAN(barrier, (MPI_Fint * comm, MPI_Fint *ierror))
{
    uci_mpi_f08_barrier("MPI_Barrier", true, *comm);
    pmpir_barrier_f08_(comm, ierror);
}

UCI_MPI_FORTRAN(ibarrier, (MPI_Fint * comm, MPI_Fint *request, MPI_Fint *ierror))
{
    uci_mpi_f08_barrier("MPI_Ibarrier", false, *comm);
    pmpir_ibarrier_f08_(comm, request, ierror);
}

#if UCI_MPI_HAS_MPI4_CALLS
UCI_MPI_FORTRAN(barrier_init, (MPI_Fint * comm, MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierror))
{
    uci_mpi_f08_barrier("MPI_Barrier_init", false, *comm);
    pmpir_barrier_init_f08_(comm, info, request, ierror);
}
#endif

#define UCI_MPI_FORTRAN_REAL(_name) pmpir_##_name##_f08_
#include "fortran_common.h"
