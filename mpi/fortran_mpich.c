/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fortran programs on MPICH. Its bindings call C by MPI names, where the wrappers in C see them, all but those of `use mpi_f08` that have no
 * buffer: they call PMPI_Start.
 */
#include "watched.h"

/* Begins the definition of one */
#define UCI_MPI_FORTRAN(_name, _params) \
    UCI_MPI_EXPORT void mpi_##_name##_f08_ _params; \
    extern void pmpir_##_name##_f08_ _params __attribute__((weak)); \
    UCI_MPI_EXPORT void mpi_##_name##_f08_ _params

/* Handles of requests are the same in C and Fortran here */
static void uci_mpi_f08_barrier(uci_mpi_call_t *watched, const char *call, uci_mpi_manner_t manner, MPI_Fint comm,
                                MPI_Fint *request)
{
    watched->name = NULL;
    if (uci_mpi_looks_at_collectives()) {
        uci_mpi_collective_enter(watched,
                                 &(const uci_mpi_collective_t){.call   = call,
                                                               .blocks = (manner == UCI_MPI_BLOCKS),
                                                               .comm   = PMPI_Comm_f2c(comm),
                                                               .root   = UCI_MPI_NO_ROOT},
                                 manner, request);
    }
}

static void uci_mpi_f08_barrier_end(uci_mpi_call_t *watched, const MPI_Fint *ierror)
{
    UCI_MPI_LEAVE(*watched, (ierror != NULL) ? *ierror : MPI_SUCCESS);
}

UCI_MPI_FORTRAN(barrier, (MPI_Fint * comm, MPI_Fint *ierror))
{
    uci_mpi_call_t watched;

    uci_mpi_f08_barrier(&watched, "MPI_Barrier", UCI_MPI_BLOCKS, *comm, NULL);
    pmpir_barrier_f08_(comm, ierror);
    uci_mpi_f08_barrier_end(&watched, ierror);
}

UCI_MPI_FORTRAN(ibarrier, (MPI_Fint * comm, MPI_Fint *request, MPI_Fint *ierror))
{
    uci_mpi_call_t watched;

    uci_mpi_f08_barrier(&watched, "MPI_Ibarrier", UCI_MPI_STARTS, *comm, request);
    pmpir_ibarrier_f08_(comm, request, ierror);
    uci_mpi_f08_barrier_end(&watched, ierror);
}

#if UCI_MPI_HAS_MPI4_CALLS
UCI_MPI_FORTRAN(barrier_init, (MPI_Fint * comm, MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierror))
{
    uci_mpi_call_t watched;

    uci_mpi_f08_barrier(&watched, "MPI_Barrier_init", UCI_MPI_MAKES, *comm, request);
    pmpir_barrier_init_f08_(comm, info, request, ierror);
    uci_mpi_f08_barrier_end(&watched, ierror);
}
#endif

#define UCI_MPI_FORTRAN_REAL(_name) pmpir_##_name##_f08_
#include "fortran_common.h"
