/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that make communicators, types, groups and operations, or free them (kept.h). Those that make communicators are watched too (calls.h).
 */
#include "calls.h"

#include "attach.h"
#include "comms.h"
#include "datatype.h"
#include "kept.h"
#include "places.h"
#include "region.h"

#define uci_mpi_keeps() (uci_mpi_watches() && uci_calls->head.checks)

static void uci_mpi_keep_comm(const uci_mpi_call_t *call, int ret, const MPI_Comm *made)
{
    if ((ret != MPI_SUCCESS) || (*made == MPI_COMM_NULL) || !uci_mpi_watches()) {
        return;
    }
    uci_mpi_comms_made(*made);
    if (uci_calls->head.checks) {
        uci_mpi_kept_add(UCI_MPI_KEPT_COMM, UCI_MPI_HANDLE(*made), call->place);
    }
}

/* @param _all  all ranks of `comm` call it */
#define UCI_MPI_MAKES_COMM(_name, _all, _params, _args) \
    UCI_MPI_WATCH_AND(uci_mpi_keep_comm(&call, ret, newcomm), _name, _params, _args, .comm = comm, .collective = (_all))

/* What is nobody's to free */
#define UCI_MPI_NONE_TYPE  MPI_DATATYPE_NULL
#define UCI_MPI_NONE_GROUP MPI_GROUP_EMPTY
#define UCI_MPI_NONE_OP    MPI_OP_NULL

#define UCI_MPI_MAKES(_kind, _name, _params, _args, _made) \
    UCI_MPI_EXPORT int MPI_##_name _params \
    { \
        int ret = PMPI_##_name _args; \
\
        if ((ret == MPI_SUCCESS) && uci_mpi_keeps() && (*(_made) != UCI_MPI_NONE_##_kind)) { \
            uci_mpi_kept_add(UCI_MPI_KEPT_##_kind, UCI_MPI_HANDLE(*(_made)), uci_mpi_places_find("MPI_" #_name)); \
        } \
        return ret; \
    }

/* @param _first  what comes before that, may be nothing */
#define UCI_MPI_FREES(_kind, _name, _type, _first) \
    UCI_MPI_EXPORT int MPI_##_name(_type *handle) \
    { \
        _first; \
        if (uci_mpi_keeps()) { \
            uci_mpi_kept_remove(UCI_MPI_KEPT_##_kind, UCI_MPI_HANDLE(*handle)); \
        } \
        return PMPI_##_name(handle); \
    }

UCI_MPI_MAKES_COMM(Comm_dup, true, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm))
UCI_MPI_MAKES_COMM(Comm_dup_with_info, true, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm), (comm, info, newcomm))
UCI_MPI_MAKES_COMM(Comm_create, true, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm), (comm, group, newcomm))
UCI_MPI_MAKES_COMM(Comm_create_group, false, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm),
                   (comm, group, tag, newcomm))
UCI_MPI_MAKES_COMM(Comm_split, true, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm),
                   (comm, color, key, newcomm))
UCI_MPI_MAKES_COMM(Comm_split_type, true, (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm),
                   (comm, split_type, key, info, newcomm))
UCI_MPI_MAKES_COMM(Cart_create, true,
                   (MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *newcomm),
                   (comm, ndims, dims, periods, reorder, newcomm))
UCI_MPI_MAKES_COMM(Cart_sub, true, (MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm),
                   (comm, remain_dims, newcomm))
UCI_MPI_MAKES_COMM(Graph_create, true,
                   (MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder, MPI_Comm *newcomm),
                   (comm, nnodes, index, edges, reorder, newcomm))
UCI_MPI_MAKES_COMM(Dist_graph_create, true,
                   (MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[],
                    const int weights[], MPI_Info info, int reorder, MPI_Comm *newcomm),
                   (comm, n, sources, degrees, destinations, weights, info, reorder, newcomm))
UCI_MPI_MAKES_COMM(Dist_graph_create_adjacent, true,
                   (MPI_Comm comm, int indegree, const int sources[], const int sourceweights[], int outdegree,
                    const int destinations[], const int destweights[], MPI_Info info, int reorder, MPI_Comm *newcomm),
                   (comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder,
                    newcomm))
UCI_MPI_MAKES_COMM(Intercomm_create, true,
                   (MPI_Comm comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag, MPI_Comm *newcomm),
                   (comm, local_leader, peer_comm, remote_leader, tag, newcomm))
UCI_MPI_MAKES_COMM(Intercomm_merge, true, (MPI_Comm comm, int high, MPI_Comm *newcomm), (comm, high, newcomm))
UCI_MPI_FREES(COMM, Comm_free, MPI_Comm, )
UCI_MPI_FREES(COMM, Comm_disconnect, MPI_Comm, )

UCI_MPI_MAKES(TYPE, Type_contiguous, (int count, MPI_Datatype oldtype, MPI_Datatype *newtype),
              (count, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_vector, (int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
              (count, blocklength, stride, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_create_hvector,
              (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
              (count, blocklength, stride, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_indexed,
              (int count, const int lengths[], const int places[], MPI_Datatype oldtype, MPI_Datatype *newtype),
              (count, lengths, places, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_create_hindexed,
              (int count, const int lengths[], const MPI_Aint places[], MPI_Datatype oldtype, MPI_Datatype *newtype),
              (count, lengths, places, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_create_indexed_block,
              (int count, int length, const int places[], MPI_Datatype oldtype, MPI_Datatype *newtype),
              (count, length, places, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_create_hindexed_block,
              (int count, int length, const MPI_Aint places[], MPI_Datatype oldtype, MPI_Datatype *newtype),
              (count, length, places, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_create_struct,
              (int count, const int lengths[], const MPI_Aint places[], const MPI_Datatype types[],
               MPI_Datatype *newtype),
              (count, lengths, places, types, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_create_subarray,
              (int ndims, const int sizes[], const int subsizes[], const int starts[], int order, MPI_Datatype oldtype,
               MPI_Datatype *newtype),
              (ndims, sizes, subsizes, starts, order, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_create_darray,
              (int size, int rank, int ndims, const int sizes[], const int distribs[], const int args[],
               const int procs[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype),
              (size, rank, ndims, sizes, distribs, args, procs, order, oldtype, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_create_resized, (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype),
              (oldtype, lb, extent, newtype), newtype)
UCI_MPI_MAKES(TYPE, Type_dup, (MPI_Datatype oldtype, MPI_Datatype *newtype), (oldtype, newtype), newtype)

static void uci_mpi_type_forget(MPI_Datatype type)
{
    if ((type != MPI_DATATYPE_NULL) && !uci_mpi_is_named(type)) { /* else an error, which MPI tells */
        uci_mpi_datatype_forget(type);
        uci_mpi_layout_forget(type);
    }
}

UCI_MPI_FREES(TYPE, Type_free, MPI_Datatype, uci_mpi_type_forget(*handle))

UCI_MPI_MAKES(GROUP, Comm_group, (MPI_Comm comm, MPI_Group *group), (comm, group), group)
UCI_MPI_MAKES(GROUP, Comm_remote_group, (MPI_Comm comm, MPI_Group *group), (comm, group), group)
UCI_MPI_MAKES(GROUP, Group_union, (MPI_Group one, MPI_Group other, MPI_Group *group), (one, other, group), group)
UCI_MPI_MAKES(GROUP, Group_intersection, (MPI_Group one, MPI_Group other, MPI_Group *group), (one, other, group), group)
UCI_MPI_MAKES(GROUP, Group_difference, (MPI_Group one, MPI_Group other, MPI_Group *group), (one, other, group), group)
UCI_MPI_MAKES(GROUP, Group_incl, (MPI_Group of, int n, const int ranks[], MPI_Group *group), (of, n, ranks, group),
              group)
UCI_MPI_MAKES(GROUP, Group_excl, (MPI_Group of, int n, const int ranks[], MPI_Group *group), (of, n, ranks, group),
              group)
UCI_MPI_MAKES(GROUP, Group_range_incl, (MPI_Group of, int n, int ranges[][3], MPI_Group *group), (of, n, ranges, group),
              group)
UCI_MPI_MAKES(GROUP, Group_range_excl, (MPI_Group of, int n, int ranges[][3], MPI_Group *group), (of, n, ranges, group),
              group)
UCI_MPI_FREES(GROUP, Group_free, MPI_Group, )

UCI_MPI_MAKES(OP, Op_create, (MPI_User_function * function, int commute, MPI_Op *op), (function, commute, op), op)
UCI_MPI_FREES(OP, Op_free, MPI_Op, )
