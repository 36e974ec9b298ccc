/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * For each communicator of the program on which there are collectives, a communicator of our own: made at the first of them, without
 * blocking (MPI_Comm_idup), kept as an attribute, and freed with it. That of an intercommunicator is both groups in one.
 */
#ifndef UCI_MPI_SHADOW_H_
#define UCI_MPI_SHADOW_H_

#include "collective.h"
#include "neighbours.h"

typedef struct uci_mpi_shadow {
    MPI_Comm comm; /**< MPI_COMM_NULL: not made yet */
    MPI_Request making;
    bool is_made;
    int rank, size;
    bool is_inter;
    int remote_size;
    int *remote; /**< of an intercommunicator: the remote group's ranks, as they are here */
    bool has_neighbours;
    uci_mpi_neighbours_t in, out;
    struct uci_mpi_shadow *next_ended; /**< of those whose communicators are gone (agree.c) */
    unsigned started;                  /**< calls that are, or have been, compared */
    char name[MPI_MAX_OBJECT_NAME];    /**< of the program's communicator */
} uci_mpi_shadow_t;

/**
 * @return the shadow of @a comm, which may be being made; NULL: it has none (no memory; an intercommunicator where none can be made without blocking).
 * @param may_block  this is within a blocking collective of it.
 */
uci_mpi_shadow_t *uci_mpi_shadow_get(MPI_Comm comm, bool may_block);

/**
 * Begin to make it, as all ranks do in their first call on it: where MPI_Comm_idup() is not safe beside other calls that do not block, their first one that
 * blocks. The first 64 that are called before that are compared then (agree.c).
 * @param may_block  this is within a blocking collective of @a comm.
 */
void uci_mpi_shadow_make(uci_mpi_shadow_t *shadow, MPI_Comm comm, bool may_block);

/** @return whether it is made. */
bool uci_mpi_shadow_is_made(uci_mpi_shadow_t *shadow);

/** The program's communicator is gone, and nothing is compared on this one. */
void uci_mpi_shadow_free(uci_mpi_shadow_t *shadow);

/** Look up who its neighbours are, once. */
void uci_mpi_shadow_find_neighbours(uci_mpi_shadow_t *shadow, MPI_Comm comm);

/** Free that of MPI_COMM_WORLD, while MPI can still be used. Within a callback of MPI_COMM_SELF's attributes, which are not to be looked at there. */
void uci_mpi_shadow_finalize(void);

#endif
