/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Allreduce by node (docs/allreduce.md; M. Gavahi et al., "Encrypted All-reduce on Multi-core Clusters": many leaders, ML-RD and ML-RS):
 *
 *     allreduce_types.h   MPI's own types and operations?                               else: the MPI's all-reduce
 *     allreduce_comm.h    are there several nodes, and do all ranks agree?
 *     allreduce_model.h   is it expected to be faster?
 *     allreduce_window.h  each rank's buffer into shared memory; leader i adds up block i of all ranks of its node
 *     allreduce_net.h     leader i, and those of the other nodes: all-reduce of that block, by messages that UCI seals
 *     allreduce_window.h  the sums into shared memory; each rank reads all blocks
 */
#ifndef UCI_MPI_ALLREDUCE_H_
#define UCI_MPI_ALLREDUCE_H_

#include <mpi.h>

#include "util/types.h"

/**
 * Do it by node, if that is possible and wanted: the same on all ranks.
 * @param send   may be MPI_IN_PLACE, C's.
 * @param ret_p  what MPI_Allreduce returns then.
 * @return false: it is the MPI's, nothing has been done.
 */
bool uci_mpi_allreduce_by_node(const void *send, void *receive, int64_t count, MPI_Datatype datatype, MPI_Op op,
                               MPI_Comm comm, int *ret_p);

/** MPI_Allreduce */
int uci_mpi_allreduce(const void *send, void *receive, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

#if MPI_VERSION >= 4
/** MPI_Allreduce_c */
int uci_mpi_allreduce_c(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm);
#endif

#endif
