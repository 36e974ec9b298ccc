/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What Fortran's bindings of both MPIs have in common: MPI_Init, MPI_Finalize, waiting and testing (see waits.c). Included once, by who defines
 *
 *     UCI_MPI_FORTRAN(name, params)    begins the definition of a wrapper
 *     UCI_MPI_FORTRAN_REAL(name)       is what it wraps
 */
UCI_MPI_FORTRAN(init, (MPI_Fint * ierror))
{
    UCI_MPI_FORTRAN_REAL(init)(ierror);
    uci_mpi_agree_init();
}

UCI_MPI_FORTRAN(init_thread, (MPI_Fint * required, MPI_Fint *provided, MPI_Fint *ierror))
{
    UCI_MPI_FORTRAN_REAL(init_thread)(required, provided, ierror);
    uci_mpi_agree_init();
}

UCI_MPI_FORTRAN(finalize, (MPI_Fint * ierror))
{
    uci_mpi_agree_finalize();
    UCI_MPI_FORTRAN_REAL(finalize)(ierror);
}

#define UCI_MPI_FORTRAN_WAIT(_name, _params, _args, ...) \
    UCI_MPI_FORTRAN(_name, _params) \
    { \
        MPI_Fint done = 0, error = MPI_SUCCESS; \
\
        if (uci_likely(uci_mpi_agree_pending == 0)) { \
            UCI_MPI_FORTRAN_REAL(_name) _args; \
            return; \
        } \
        UCI_MPI_AGREE_WAIT(done, error, __VA_ARGS__); \
        if (ierror != NULL) { /* of mpi_f08 it may be left out */ \
            *ierror = error; \
        } \
    }

#define UCI_MPI_FORTRAN_TEST(_name, _params, _args) \
    UCI_MPI_FORTRAN(_name, _params) \
    { \
        uci_mpi_agree_test(); \
        UCI_MPI_FORTRAN_REAL(_name) _args; \
    }

UCI_MPI_FORTRAN_TEST(test, (MPI_Fint * request, MPI_Fint *flag, void *status, MPI_Fint *ierror),
                     (request, flag, status, ierror))
UCI_MPI_FORTRAN_TEST(testall, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *flag, void *statuses, MPI_Fint *ierror),
                     (count, requests, flag, statuses, ierror))
UCI_MPI_FORTRAN_TEST(testany,
                     (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *flag, void *status,
                      MPI_Fint *ierror),
                     (count, requests, index, flag, status, ierror))
UCI_MPI_FORTRAN_TEST(testsome,
                     (MPI_Fint * incount, MPI_Fint *requests, MPI_Fint *outcount, MPI_Fint *indices, void *statuses,
                      MPI_Fint *ierror),
                     (incount, requests, outcount, indices, statuses, ierror))
UCI_MPI_FORTRAN_WAIT(wait, (MPI_Fint * request, void *status, MPI_Fint *ierror), (request, status, ierror),
                     UCI_MPI_FORTRAN_REAL(test)(request, &done, status, &error))
UCI_MPI_FORTRAN_WAIT(waitall, (MPI_Fint * count, MPI_Fint *requests, void *statuses, MPI_Fint *ierror),
                     (count, requests, statuses, ierror),
                     UCI_MPI_FORTRAN_REAL(testall)(count, requests, &done, statuses, &error))
UCI_MPI_FORTRAN_WAIT(waitany, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *index, void *status, MPI_Fint *ierror),
                     (count, requests, index, status, ierror),
                     UCI_MPI_FORTRAN_REAL(testany)(count, requests, index, &done, status, &error))
UCI_MPI_FORTRAN_WAIT(waitsome,
                     (MPI_Fint * incount, MPI_Fint *requests, MPI_Fint *outcount, MPI_Fint *indices, void *statuses,
                      MPI_Fint *ierror),
                     (incount, requests, outcount, indices, statuses, ierror),
                     UCI_MPI_FORTRAN_REAL(testsome)(incount, requests, outcount, indices, statuses, &error);
                     done = (*outcount != 0))
