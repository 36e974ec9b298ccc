/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Testing by Fortran's bindings. Included by fortran_common.h, which says how, and once more where the same has other names.
 */
#define UCI_MPI_FORTRAN_TEST(_name, _call, _params, _args, _any, _count, _requests, _done, _indices) \
    UCI_MPI_FORTRAN(_name, _params) \
    { \
        uci_mpi_waiting_t waiting; \
\
        if (uci_mpi_watches()) { \
            uci_mpi_waiting_enter(&waiting, _call, _any, true, _count, NULL, _requests); \
        } \
        uci_mpi_agree_test(); \
        UCI_MPI_FORTRAN_REAL(_name) _args; \
        if (uci_mpi_watches()) { \
            uci_mpi_waiting_leave(&waiting, (ierror != NULL) ? *ierror : MPI_SUCCESS, _done, _indices, 1); \
        } \
    }

UCI_MPI_FORTRAN_TEST(test, "MPI_Test", (MPI_Fint * request, MPI_Fint *flag, void *status, MPI_Fint *ierror),
                     (request, flag, status, ierror), false, 1, request, *flag ? 1 : 0, NULL)
UCI_MPI_FORTRAN_TEST(testall, "MPI_Testall",
                     (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *flag, void *statuses, MPI_Fint *ierror),
                     (count, requests, flag, statuses, ierror), false, *count, requests, *flag ? *count : 0, NULL)
UCI_MPI_FORTRAN_TEST(testany, "MPI_Testany",
                     (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *flag, void *status,
                      MPI_Fint *ierror),
                     (count, requests, index, flag, status, ierror), true, *count, requests, *flag ? 1 : 0, index)
UCI_MPI_FORTRAN_TEST(testsome, "MPI_Testsome",
                     (MPI_Fint * incount, MPI_Fint *requests, MPI_Fint *outcount, MPI_Fint *indices, void *statuses,
                      MPI_Fint *ierror),
                     (incount, requests, outcount, indices, statuses, ierror), true, *incount, requests, *outcount,
                     indices)

#define UCI_MPI_FORTRAN_PROBE(_name, _call, _params, _args) \
    UCI_MPI_FORTRAN(_name, _params) \
    { \
        uci_mpi_call_t watched; \
\
        UCI_MPI_ENTER(watched, _call, .manner = UCI_MPI_PROBES, .comm = PMPI_Comm_f2c(*comm), \
                      .recv = UCI_MPI_HALF(NULL, 0, MPI_DATATYPE_NULL, *source, *tag)); \
        UCI_MPI_FORTRAN_REAL(_name) _args; \
        watched.found = (*flag != 0); \
        UCI_MPI_LEAVE(watched, (ierror != NULL) ? *ierror : MPI_SUCCESS); \
    }

UCI_MPI_FORTRAN_PROBE(iprobe, "MPI_Iprobe",
                      (MPI_Fint * source, MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *flag, void *status,
                       MPI_Fint *ierror),
                      (source, tag, comm, flag, status, ierror))
UCI_MPI_FORTRAN_PROBE(improbe, "MPI_Improbe",
                      (MPI_Fint * source, MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *flag, MPI_Fint *message,
                       void *status, MPI_Fint *ierror),
                      (source, tag, comm, flag, message, status, ierror))

UCI_MPI_FORTRAN(request_get_status, (MPI_Fint * request, MPI_Fint *flag, void *status, MPI_Fint *ierror))
{
    uci_mpi_waiting_t waiting;

    if (uci_mpi_watches()) {
        uci_mpi_waiting_enter(&waiting, "MPI_Request_get_status", false, true, 1, NULL, request);
    }
    uci_mpi_agree_test();
    UCI_MPI_FORTRAN_REAL(request_get_status)(request, flag, status, ierror);
    if (uci_mpi_watches()) {
        uci_mpi_waiting_leave_status(&waiting, (ierror != NULL) ? *ierror : MPI_SUCCESS, *flag != 0);
    }
}
