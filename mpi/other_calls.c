/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that are wrapped only to be watched (calls.h): those in which, or by which, a rank waits for others, beside messages, requests, and collectives on data. Here and in
 * makers.c Fortran's bindings of Open MPI, and mpi_f08 of MPICH, are not seen: they call PMPI names.
 */
#include "calls.h"

#include "attach.h"

#define UCI_MPI_WATCH(_name, _params, _args, ...) UCI_MPI_WATCH_AND((void)0, _name, _params, _args, __VA_ARGS__)

/* It does not wait: who calls it again and again does */
#define UCI_MPI_WATCH_IPROBE(_name, _params, _args) \
    UCI_MPI_EXPORT int MPI_##_name _params \
    { \
        uci_mpi_call_t call; \
        int ret; \
\
        UCI_MPI_ENTER(call, "MPI_" #_name, .manner = UCI_MPI_PROBES, .comm = comm, .recv = UCI_MPI_PROBED); \
        ret        = PMPI_##_name _args; \
        call.found = (ret == MPI_SUCCESS) && *flag; \
        UCI_MPI_LEAVE(call, ret); \
        return ret; \
    }

/* All ranks of a communicator call it */
#define UCI_MPI_WATCH_ALL(_name, _params, _args) UCI_MPI_WATCH(_name, _params, _args, .comm = comm, .collective = true)

/* All ranks of a window do: which communicator it was made on is not known */
#define UCI_MPI_WATCH_WINDOW(_name, _params, _args) \
    UCI_MPI_WATCH(_name, _params, _args, .comm = MPI_COMM_NULL, .collective = true)

#define UCI_MPI_PROBED UCI_MPI_HALF(NULL, 0, MPI_DATATYPE_NULL, source, tag)

UCI_MPI_WATCH(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status),
              .comm = comm, .recv = UCI_MPI_PROBED)
UCI_MPI_WATCH(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
              (source, tag, comm, message, status), .comm = comm, .recv = UCI_MPI_PROBED)
UCI_MPI_WATCH_IPROBE(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
                     (source, tag, comm, flag, status))
UCI_MPI_WATCH_IPROBE(Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
                     (source, tag, comm, flag, message, status))
UCI_MPI_WATCH_ALL(Win_create, (void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
                  (base, size, disp_unit, info, comm, win))
UCI_MPI_WATCH_ALL(Win_allocate, (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
                  (size, disp_unit, info, comm, base, win))
UCI_MPI_WATCH_ALL(Win_allocate_shared,
                  (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
                  (size, disp_unit, info, comm, base, win))
UCI_MPI_WATCH_WINDOW(Win_fence, (int assert, MPI_Win win), (assert, win))
UCI_MPI_WATCH_WINDOW(Win_free, (MPI_Win * win), (win))
UCI_MPI_WATCH_WINDOW(Win_wait, (MPI_Win win), (win))
UCI_MPI_WATCH_WINDOW(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
UCI_MPI_WATCH_WINDOW(Win_complete, (MPI_Win win), (win))
UCI_MPI_WATCH_WINDOW(Win_lock, (int lock_type, int rank, int assert, MPI_Win win), (lock_type, rank, assert, win))
UCI_MPI_WATCH_WINDOW(Win_unlock, (int rank, MPI_Win win), (rank, win))

/* Programs set what was there before, too: it would take the place of ours */
UCI_MPI_EXPORT int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    int ret = PMPI_Comm_set_errhandler(comm, errhandler);

    if ((ret == MPI_SUCCESS) && uci_mpi_watches() && uci_calls->head.checks) {
        uci_mpi_calls_watch_errors(comm);
    }
    return ret;
}
