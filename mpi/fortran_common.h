/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What Fortran's bindings of both MPIs have in common: MPI_Init, MPI_Finalize, requests that are started and freed, waiting and
 * testing (see waits.c). Included once, by who defines
 *
 *     UCI_MPI_FORTRAN(name, params)    begins the definition of a wrapper
 *     UCI_MPI_FORTRAN_REAL(name)       is what it wraps
 */
#include "pending.h"
#include "requests.h"

UCI_MPI_FORTRAN(init, (MPI_Fint * ierror))
{
    UCI_MPI_FORTRAN_REAL(init)(ierror);
    uci_mpi_calls_init();
    uci_mpi_agree_init();
}

UCI_MPI_FORTRAN(init_thread, (MPI_Fint * required, MPI_Fint *provided, MPI_Fint *ierror))
{
    UCI_MPI_FORTRAN_REAL(init_thread)(required, provided, ierror);
    uci_mpi_calls_init();
    uci_mpi_agree_init();
}

UCI_MPI_FORTRAN(finalize, (MPI_Fint * ierror))
{
    uci_mpi_call_t watched;

    uci_mpi_calls_finalize();
    UCI_MPI_ENTER(watched, "MPI_Finalize", .comm = MPI_COMM_WORLD, .collective = true);
    UCI_MPI_FORTRAN_REAL(finalize)(ierror);
    UCI_MPI_LEAVE(watched, MPI_SUCCESS);
}

/* A request is about to be started, by MPI_Start or MPI_Startall */
static void uci_mpi_fortran_starts(const MPI_Fint *request, const uci_mpi_call_t *call)
{
    uci_mpi_requests_start(PMPI_Request_f2c(*request));
    if (uci_mpi_watches()) {
        uci_mpi_pending_start(PMPI_Request_f2c(*request), call);
    }
}

UCI_MPI_FORTRAN(start, (MPI_Fint * request, MPI_Fint *ierror))
{
    MPI_Fint error = MPI_SUCCESS;
    uci_mpi_call_t watched;

    UCI_MPI_ENTER(watched, "MPI_Start", .comm = MPI_COMM_NULL);
    uci_mpi_fortran_starts(request, &watched);
    UCI_MPI_FORTRAN_REAL(start)(request, &error);
    uci_mpi_done();
    UCI_MPI_LEAVE(watched, error);
    if (ierror != NULL) { /* of mpi_f08 it may be left out */
        *ierror = error;
    }
}

UCI_MPI_FORTRAN(startall, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *ierror))
{
    MPI_Fint i, error = MPI_SUCCESS;
    uci_mpi_call_t watched;

    if (!uci_mpi_is_on() && !uci_mpi_watches()) {
        UCI_MPI_FORTRAN_REAL(startall)(count, requests, ierror);
        return;
    }
    UCI_MPI_ENTER(watched, "MPI_Startall", .comm = MPI_COMM_NULL);
    for (i = 0; (i < *count) && (error == MPI_SUCCESS); ++i) {
        uci_mpi_fortran_starts(&requests[i], &watched);
        UCI_MPI_FORTRAN_REAL(start)(&requests[i], &error);
        uci_mpi_done();
    }
    UCI_MPI_LEAVE(watched, error);
    if (ierror != NULL) { /* of mpi_f08 it may be left out */
        *ierror = error;
    }
}

UCI_MPI_FORTRAN(request_free, (MPI_Fint * request, MPI_Fint *ierror))
{
    uci_mpi_requests_remove(PMPI_Request_f2c(*request));
    if (uci_mpi_watches()) {
        uci_mpi_pending_free(PMPI_Request_f2c(*request));
    }
    UCI_MPI_FORTRAN_REAL(request_free)(request, ierror);
}

/* Waits by its relative that tests: what follows ends with `done` set. What it is for who watches calls (_any, _polls, _count, _requests), and how many are done,
 * and which */
#define UCI_MPI_FORTRAN_WAIT(_name, _call, _params, _args, _any, _count, _requests, _done, _indices, ...) \
    UCI_MPI_FORTRAN(_name, _params) \
    { \
        MPI_Fint done = 0, error = MPI_SUCCESS; \
        uci_mpi_waiting_t waiting; \
\
        if (uci_mpi_watches()) { \
            uci_mpi_waiting_enter(&waiting, _call, _any, false, _count, NULL, _requests); \
        } \
        if (uci_likely(uci_mpi_agree_pending == 0)) { \
            UCI_MPI_FORTRAN_REAL(_name) _args; \
            error = (ierror != NULL) ? *ierror : MPI_SUCCESS; \
        } else { \
            UCI_MPI_AGREE_WAIT(done, error, __VA_ARGS__); \
            if (ierror != NULL) { /* of mpi_f08 it may be left out */ \
                *ierror = error; \
            } \
        } \
        if (uci_mpi_watches()) { \
            uci_mpi_waiting_leave(&waiting, error, _done, _indices, 1); \
        } \
    }

#include "fortran_tests.h"

UCI_MPI_FORTRAN_WAIT(wait, "MPI_Wait", (MPI_Fint * request, void *status, MPI_Fint *ierror), (request, status, ierror),
                     false, 1, request, 1, NULL, UCI_MPI_FORTRAN_REAL(test)(request, &done, status, &error))
UCI_MPI_FORTRAN_WAIT(waitall, "MPI_Waitall", (MPI_Fint * count, MPI_Fint *requests, void *statuses, MPI_Fint *ierror),
                     (count, requests, statuses, ierror), false, *count, requests, *count, NULL,
                     UCI_MPI_FORTRAN_REAL(testall)(count, requests, &done, statuses, &error))
UCI_MPI_FORTRAN_WAIT(waitany, "MPI_Waitany",
                     (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *index, void *status, MPI_Fint *ierror),
                     (count, requests, index, status, ierror), true, *count, requests, 1, index,
                     UCI_MPI_FORTRAN_REAL(testany)(count, requests, index, &done, status, &error))
UCI_MPI_FORTRAN_WAIT(waitsome, "MPI_Waitsome",
                     (MPI_Fint * incount, MPI_Fint *requests, MPI_Fint *outcount, MPI_Fint *indices, void *statuses,
                      MPI_Fint *ierror),
                     (incount, requests, outcount, indices, statuses, ierror), true, *incount, requests, *outcount,
                     indices, UCI_MPI_FORTRAN_REAL(testsome)(incount, requests, outcount, indices, statuses, &error);
                     done = (*outcount != 0))
