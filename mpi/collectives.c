/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Wrappers of collectives in C: blocking, not blocking, persistent (which are compared when they are made), and with large counts. What carries
 * out a call that has been compared is PMPI_<name>, or what takes its place.
 */
#include "allreduce.h"
#include "watched.h"

#define PMPI_Allreduce   uci_mpi_allreduce
#define PMPI_Allreduce_c uci_mpi_allreduce_c

/* @param _begins  how: with a request, or not */
#define UCI_MPI_COLLECTIVE_ONE(_name, _blocks, _begins, _params, _args, ...) \
    UCI_MPI_EXPORT int MPI_##_name _params \
    { \
        uci_mpi_call_t watched = {.name = NULL}; \
        int ret; \
\
        if (uci_mpi_looks_at_collectives()) { \
            uci_mpi_collective_enter(&watched, \
                                     &(const uci_mpi_collective_t){ \
                                             .call = "MPI_" #_name, .blocks = (_blocks), .comm = comm, __VA_ARGS__}, \
                                     UCI_MPI_UNPACK _begins); \
        } \
        ret = PMPI_##_name _args; \
        UCI_MPI_LEAVE(watched, ret); \
        return ret; \
    }

#define UCI_MPI_BLOCKING(_name, _params, _args, ...) \
    UCI_MPI_COLLECTIVE_ONE(_name, true, (UCI_MPI_BLOCKS, NULL), _params, _args, __VA_ARGS__)

#define UCI_MPI_NONBLOCKING(_name, _params, _args, ...) \
    UCI_MPI_COLLECTIVE_ONE(_name, false, (UCI_MPI_STARTS, request), (UCI_MPI_UNPACK _params, MPI_Request * request), \
                           (UCI_MPI_UNPACK _args, request), __VA_ARGS__)

#if UCI_MPI_HAS_MPI4_CALLS
#define UCI_MPI_PERSISTENT(_name, _params, _args, ...) \
    UCI_MPI_COLLECTIVE_ONE(_name, false, (UCI_MPI_MAKES, request), \
                           (UCI_MPI_UNPACK _params, MPI_Info info, MPI_Request * request), \
                           (UCI_MPI_UNPACK _args, info, request), __VA_ARGS__)
#else
#define UCI_MPI_PERSISTENT(_name, _params, _args, ...)
#endif

/* What the table consists of */
#define P_IN(_name)     const void *_name
#define P_OUT(_name)    void *_name
#define P_COUNT(_name)  UCI_MPI_COUNT_T _name
#define P_COUNTS(_name) const UCI_MPI_COUNT_T *_name
#define P_DISPLS(_name) const UCI_MPI_DISPL_T *_name
#define P_BYTES(_name)  const MPI_Aint *_name
#define P_TYPE(_name)   MPI_Datatype _name
#define P_TYPES(_name)  const MPI_Datatype *_name
#define P_RANK(_name)   int _name
#define P_OP(_name)     MPI_Op _name
#define P_COMM(_name)   MPI_Comm _name
#define V_RANK(_root)   (_root)
#define V_OP(_op)       (_op)

#define UCI_MPI_AT(_buf)           .in_place = ((_buf) == MPI_IN_PLACE)
#define UCI_MPI_ONE(_count, _type) .count = (uint64_t)(_count), .type = (_type)
#define UCI_MPI_MANY(_counts, _displs, _type) \
    .is_vector = true, .UCI_MPI_COUNTS = (_counts), .UCI_MPI_DISPLS = (_displs), .type = (_type)
#define UCI_MPI_TYPES(_counts, _displs, _types) \
    .is_vector = true, .UCI_MPI_COUNTS = (_counts), .UCI_MPI_DISPLS = (_displs), .types = (_types)
#define UCI_MPI_BUF(_buf) (((_buf) != MPI_IN_PLACE) ? (_buf) : NULL)

#define UCI_MPI_COUNT_T int
#define UCI_MPI_DISPL_T int
#define UCI_MPI_COUNTS  counts
#define UCI_MPI_DISPLS  displs
#define UCI_MPI_COLLECTIVE(_name, _lower, _params, _args, ...) \
    UCI_MPI_BLOCKING(_name, _params, _args, __VA_ARGS__) \
    UCI_MPI_NONBLOCKING(I##_lower, _params, _args, __VA_ARGS__) \
    UCI_MPI_PERSISTENT(_name##_init, _params, _args, __VA_ARGS__)
#include "collectives_table.h"

UCI_MPI_BLOCKING(Barrier, (MPI_Comm comm), (comm), .root = UCI_MPI_NO_ROOT)
UCI_MPI_NONBLOCKING(Ibarrier, (MPI_Comm comm), (comm), .root = UCI_MPI_NO_ROOT)
UCI_MPI_PERSISTENT(Barrier_init, (MPI_Comm comm), (comm), .root = UCI_MPI_NO_ROOT)

#if MPI_VERSION >= 4
#undef UCI_MPI_COUNT_T
#undef UCI_MPI_DISPL_T
#undef UCI_MPI_COUNTS
#undef UCI_MPI_DISPLS
#define UCI_MPI_COUNT_T MPI_Count
#define UCI_MPI_DISPL_T MPI_Aint
#define UCI_MPI_COUNTS  counts_c
#define UCI_MPI_DISPLS  displs_c
#define UCI_MPI_COLLECTIVE(_name, _lower, _params, _args, ...) \
    UCI_MPI_BLOCKING(_name##_c, _params, _args, __VA_ARGS__) \
    UCI_MPI_NONBLOCKING(I##_lower##_c, _params, _args, __VA_ARGS__) \
    UCI_MPI_PERSISTENT(_name##_init_c, _params, _args, __VA_ARGS__)
#include "collectives_table.h"
#endif

UCI_MPI_EXPORT int MPI_Init(int *argc, char ***argv)
{
    int ret;

    uci_mpi_check_mpi();
    ret = PMPI_Init(argc, argv);
    uci_mpi_calls_init();
    uci_mpi_agree_init();
    return ret;
}

UCI_MPI_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int ret;

    uci_mpi_check_mpi();
    ret = PMPI_Init_thread(argc, argv, required, provided);
    uci_mpi_calls_init();
    uci_mpi_agree_init();
    return ret;
}

UCI_MPI_EXPORT int MPI_Finalize(void)
{
    uci_mpi_call_t watched;
    int ret;

    uci_mpi_calls_finalize();
    UCI_MPI_ENTER(watched, "MPI_Finalize", .comm = MPI_COMM_WORLD, .collective = true);
    ret = PMPI_Finalize();
    UCI_MPI_LEAVE(watched, ret);
    return ret;
}
