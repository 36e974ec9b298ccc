/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Waiting and testing: while collectives that do not block are being compared (collective.h), each of these gets on with that. Waiting is testing then,
 * so that what does not match, or does not come, is told though the program waits for ever.
 */
#include "calls.h"
#include "collective.h"

/* Waits by its relative that tests: what follows ends with `done` set */
#define UCI_MPI_WAIT(_name, _params, _args, ...) \
    static int uci_mpi_##_name _params \
    { \
        int done = 0, ret = MPI_SUCCESS; \
\
        if (uci_likely(uci_mpi_agree_pending == 0)) { \
            return PMPI_##_name _args; \
        } \
        UCI_MPI_AGREE_WAIT(done, ret, ret = __VA_ARGS__); \
        return ret; \
    }

#define UCI_MPI_TEST(_name, _params, _args) \
    static int uci_mpi_##_name _params \
    { \
        uci_mpi_agree_test(); \
        return PMPI_##_name _args; \
    }

UCI_MPI_WAIT(Wait, (MPI_Request * request, MPI_Status *status), (request, status), PMPI_Test(request, &done, status))
UCI_MPI_WAIT(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses),
             PMPI_Testall(count, requests, &done, statuses))
UCI_MPI_WAIT(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
             (count, requests, index, status), PMPI_Testany(count, requests, index, &done, status))
UCI_MPI_WAIT(Waitsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
             (incount, requests, outcount, indices, statuses),
             PMPI_Testsome(incount, requests, outcount, indices, statuses);
             done = (*outcount != 0))
UCI_MPI_TEST(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
UCI_MPI_TEST(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
             (count, requests, flag, statuses))
UCI_MPI_TEST(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
             (count, requests, index, flag, status))
UCI_MPI_TEST(Testsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
             (incount, requests, outcount, indices, statuses))

/* What the program calls: the same, for who watches calls as well. Then it has to be known how many are done, and which */
#define UCI_MPI_WAITING(_name, _params, _args, _any, _polls, _count, _requests, _done, _indices) \
    UCI_MPI_EXPORT int MPI_##_name _params \
    { \
        uci_mpi_waiting_t waiting; \
        int ret; \
\
        if (!uci_mpi_watches()) { \
            return uci_mpi_##_name _args; \
        } \
        uci_mpi_waiting_enter(&waiting, "MPI_" #_name, _any, _polls, _count, _requests, NULL); \
        ret = uci_mpi_##_name _args; \
        uci_mpi_waiting_leave(&waiting, ret, _done, _indices, 0); \
        return ret; \
    }

UCI_MPI_WAITING(Wait, (MPI_Request * request, MPI_Status *status), (request, status), false, false, 1, request, 1, NULL)
UCI_MPI_WAITING(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses), false,
                false, count, requests, count, NULL)
UCI_MPI_WAITING(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
                (count, requests, index, status), true, false, count, requests, 1, index)
UCI_MPI_WAITING(Waitsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
                (incount, requests, outcount, indices, statuses), true, false, incount, requests, *outcount, indices)
UCI_MPI_WAITING(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), false, true, 1,
                request, *flag ? 1 : 0, NULL)
UCI_MPI_WAITING(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
                (count, requests, flag, statuses), false, true, count, requests, *flag ? count : 0, NULL)
UCI_MPI_WAITING(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
                (count, requests, index, flag, status), true, true, count, requests, *flag ? 1 : 0, index)
UCI_MPI_WAITING(Testsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
                (incount, requests, outcount, indices, statuses), true, true, incount, requests, *outcount, indices)

/* What is complete may be changed, though its request stays */
UCI_MPI_EXPORT int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    uci_mpi_waiting_t waiting;
    int ret;

    uci_mpi_agree_test();
    if (!uci_mpi_watches()) {
        return PMPI_Request_get_status(request, flag, status);
    }
    uci_mpi_waiting_enter(&waiting, "MPI_Request_get_status", false, true, 1, &request, NULL);
    ret = PMPI_Request_get_status(request, flag, status);
    uci_mpi_waiting_leave_status(&waiting, ret, *flag);
    return ret;
}
