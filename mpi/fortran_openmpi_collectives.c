/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fortran programs on Open MPI (fortran_openmpi.h): collectives, and what both MPIs have in common (fortran_common.h).
 */
#include "allreduce_fortran.h"
#include "fortran_openmpi.h"
#include "watched.h"

#define pmpi_allreduce_ uci_mpi_allreduce_fortran

/* MPI_IN_PLACE and MPI_BOTTOM are variables there, whose names are as the compiler's are */
extern MPI_Fint MPI_FORTRAN_IN_PLACE __attribute__((weak));
extern MPI_Fint mpi_fortran_in_place __attribute__((weak));
extern MPI_Fint mpi_fortran_in_place_ __attribute__((weak));
extern MPI_Fint mpi_fortran_in_place__ __attribute__((weak));
extern MPI_Fint MPI_FORTRAN_BOTTOM __attribute__((weak));
extern MPI_Fint mpi_fortran_bottom __attribute__((weak));
extern MPI_Fint mpi_fortran_bottom_ __attribute__((weak));
extern MPI_Fint mpi_fortran_bottom__ __attribute__((weak));

bool uci_mpi_fortran_is_in_place(const void *buf)
{
    return (buf != NULL) && ((buf == &MPI_FORTRAN_IN_PLACE) || (buf == &mpi_fortran_in_place) ||
                             (buf == &mpi_fortran_in_place_) || (buf == &mpi_fortran_in_place__));
}

const void *uci_mpi_fortran_buf(const void *buf)
{
    return ((buf == &MPI_FORTRAN_BOTTOM) || (buf == &mpi_fortran_bottom) || (buf == &mpi_fortran_bottom_) ||
            (buf == &mpi_fortran_bottom__))
                   ? MPI_BOTTOM
                   : buf;
}

/* @param _request  where Fortran's handle will be, or NULL */
#define UCI_MPI_FORTRAN_COLLECTIVE(_name, _call, _blocks, _manner, _request, _params, _args, ...) \
    UCI_MPI_FORTRAN(_name, _params) \
    { \
        uci_mpi_call_t watched = {.name = NULL}; \
\
        if (uci_mpi_looks_at_collectives()) { \
            uci_mpi_collective_enter( \
                    &watched, \
                    &(const uci_mpi_collective_t){ \
                            .call = (_call), .blocks = (_blocks), .comm = PMPI_Comm_f2c(*comm), __VA_ARGS__}, \
                    _manner, NULL); \
        } \
        pmpi_##_name##_ _args; \
        UCI_MPI_FORTRAN_LEAVE(watched, _request, ierror); \
    }

#define UCI_MPI_FORTRAN_BLOCKING(_name, _call, _params, _args, ...) \
    UCI_MPI_FORTRAN_COLLECTIVE(_name, _call, true, UCI_MPI_BLOCKS, NULL, (UCI_MPI_UNPACK _params, MPI_Fint * ierror), \
                               (UCI_MPI_UNPACK _args, ierror), __VA_ARGS__)

#define UCI_MPI_FORTRAN_NONBLOCKING(_name, _call, _params, _args, ...) \
    UCI_MPI_FORTRAN_COLLECTIVE(_name, _call, false, UCI_MPI_STARTS, request, \
                               (UCI_MPI_UNPACK _params, MPI_Fint * request, MPI_Fint * ierror), \
                               (UCI_MPI_UNPACK _args, request, ierror), __VA_ARGS__)

#if UCI_MPI_HAS_MPI4_CALLS
#define UCI_MPI_FORTRAN_PERSISTENT(_name, _call, _params, _args, ...) \
    UCI_MPI_FORTRAN_COLLECTIVE(_name, _call, false, UCI_MPI_MAKES, request, \
                               (UCI_MPI_UNPACK _params, MPI_Fint * info, MPI_Fint * request, MPI_Fint * ierror), \
                               (UCI_MPI_UNPACK _args, info, request, ierror), __VA_ARGS__)
#else
#define UCI_MPI_FORTRAN_PERSISTENT(_name, _call, _params, _args, ...)
#endif

/* What the table consists of */
#define P_IN(_name)     char *_name
#define P_OUT(_name)    char *_name
#define P_COUNT(_name)  MPI_Fint *_name
#define P_COUNTS(_name) MPI_Fint *_name
#define P_DISPLS(_name) MPI_Fint *_name
#define P_BYTES(_name)  MPI_Aint *_name
#define P_TYPE(_name)   MPI_Fint *_name
#define P_TYPES(_name)  MPI_Fint *_name
#define P_RANK(_name)   MPI_Fint *_name
#define P_OP(_name)     MPI_Fint *_name
#define P_COMM(_name)   MPI_Fint *_name
#define V_RANK(_root)   (*(_root))
#define V_OP(_op)       PMPI_Op_f2c(*(_op))

#define UCI_MPI_AT(_buf)           .in_place = uci_mpi_fortran_is_in_place(_buf)
#define UCI_MPI_ONE(_count, _type) .count = (uint64_t)(int64_t) * (_count), .type = PMPI_Type_f2c(*(_type))
#define UCI_MPI_MANY(_counts, _displs, _type) \
    .is_vector = true, .counts = (_counts), .displs = (_displs), .type = PMPI_Type_f2c(*(_type))
#define UCI_MPI_TYPES(_counts, _displs, _types) \
    .is_vector = true, .counts = (_counts), .displs = (_displs), .types_fortran = (_types)
#define UCI_MPI_BUF(_buf) (uci_mpi_fortran_is_in_place(_buf) ? NULL : uci_mpi_fortran_buf(_buf))

#define UCI_MPI_COLLECTIVE(_name, _lower, _params, _args, ...) \
    UCI_MPI_FORTRAN_BLOCKING(_lower, "MPI_" #_name, _params, _args, __VA_ARGS__) \
    UCI_MPI_FORTRAN_NONBLOCKING(i##_lower, "MPI_I" #_lower, _params, _args, __VA_ARGS__) \
    UCI_MPI_FORTRAN_PERSISTENT(_lower##_init, "MPI_" #_name "_init", _params, _args, __VA_ARGS__)
#include "collectives_table.h"

UCI_MPI_FORTRAN_BLOCKING(barrier, "MPI_Barrier", (MPI_Fint * comm), (comm), .root = UCI_MPI_NO_ROOT)
UCI_MPI_FORTRAN_NONBLOCKING(ibarrier, "MPI_Ibarrier", (MPI_Fint * comm), (comm), .root = UCI_MPI_NO_ROOT)
UCI_MPI_FORTRAN_PERSISTENT(barrier_init, "MPI_Barrier_init", (MPI_Fint * comm), (comm), .root = UCI_MPI_NO_ROOT)

#define UCI_MPI_FORTRAN_REAL(_name) pmpi_##_name##_
#include "fortran_common.h"

/* What has logical arguments calls PMPI of mpif.h in `use mpi_f08`, past what is above */
#undef UCI_MPI_FORTRAN
#undef UCI_MPI_FORTRAN_TEST
#undef UCI_MPI_FORTRAN_PROBE
#undef UCI_MPI_FORTRAN_REAL
#define UCI_MPI_FORTRAN_REAL(_name) pmpi_##_name##_f08_
#define UCI_MPI_FORTRAN(_name, _params) \
    UCI_MPI_EXPORT void mpi_##_name##_f08_ _params; \
    extern void pmpi_##_name##_f08_ _params __attribute__((weak)); \
    UCI_MPI_EXPORT void mpi_##_name##_f08_ _params
#include "fortran_tests.h"
