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
#include "calls.h"

/** Begins the definition of one: under the names that Fortran compilers give a subroutine, and that which Open MPI's f08 module calls. */
#define UCI_MPI_FORTRAN(_name, _params) \
    UCI_MPI_EXPORT void mpi_##_name##_ _params; \
    UCI_MPI_EXPORT void mpi_##_name _params __attribute__((alias("mpi_" #_name "_"))); \
    UCI_MPI_EXPORT void mpi_##_name##__ _params __attribute__((alias("mpi_" #_name "_"))); \
    UCI_MPI_EXPORT void ompi_##_name##_f _params __attribute__((alias("mpi_" #_name "_"))); \
    extern void pmpi_##_name##_ _params __attribute__((weak)); \
    UCI_MPI_EXPORT void mpi_##_name##_ _params

/** UCI_MPI_LEAVE() for Fortran's handle of a request, at @a _request if it is not NULL. Of mpi_f08 @a _ierror may be left out: then there was no error that a
 *  program would survive. */
#define UCI_MPI_FORTRAN_LEAVE(_call, _request, _ierror) \
    do { \
        const MPI_Fint *uci_request = (_request); \
        MPI_Request uci_handle      = MPI_REQUEST_NULL; \
\
        if (uci_unlikely((_call).name != NULL)) { \
            if (uci_request != NULL) { \
                uci_handle = PMPI_Request_f2c(*uci_request); \
            } \
            (_call).request = &uci_handle; \
            uci_mpi_call_leave(&(_call), ((_ierror) != NULL) ? (int)*(_ierror) : MPI_SUCCESS); \
        } \
    } while (0)

/** @return is this what `MPI_IN_PLACE` of Fortran is? */
bool uci_mpi_fortran_is_in_place(const void *buf);

/** @return a buffer as C knows it: what `MPI_BOTTOM` of Fortran is becomes that of C. */
const void *uci_mpi_fortran_buf(const void *buf);

#endif
