/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives: do all ranks of a communicator call the same one, with the same root and operation, and with counts and types that match?
 * Asked by one small exchange on a communicator of our own, before a blocking collective begins, and beside one that does not block:
 *
 *     MPI_Bcast(buffer, count, datatype, root, comm)             collectives_table.h: what each argument is
 *         uci_mpi_agree()
 *             statement.h: what this rank says of its call  -->  a number; those of all ranks add up to 0 if they match
 *             shadow.h: the communicator of our own
 *             agree.c: adds them up; if that is not 0, what everybody says is compared in words, and told
 *         PMPI_Bcast()
 */
#ifndef UCI_MPI_COLLECTIVE_H_
#define UCI_MPI_COLLECTIVE_H_

#include <string.h>

#include "attach.h"
#include "util/process.h"

#define UCI_MPI_NO_ROOT (-1000000) /**< a collective that has none */

/** Whose data goes to whom: what has to match what. */
typedef enum {
    UCI_MPI_NO_DATA,
    UCI_MPI_SAME,      /**< all give the same */
    UCI_MPI_SCATTERED, /**< the same, within each group of an intercommunicator */
    UCI_MPI_TO_ROOT,
    UCI_MPI_FROM_ROOT,
    UCI_MPI_TO_ALL,
    UCI_MPI_NEIGHBOURS /**< of a topology */
} uci_mpi_flow_t;

/** What is sent, or received: to or from each rank. */
typedef struct uci_mpi_side {
    bool is_vector; /**< it has one of these arrays, which may be NULL where they are not significant */
    uint64_t count;
    const int *counts; /**< NULL: `count` for all */
#if MPI_VERSION >= 4
    const MPI_Count *counts_c; /**< likewise */
    const MPI_Aint *displs_c;
#endif
    const int *displs; /**< where each part is, in extents of `type`; in bytes, if there are `types`. NULL: not told */
    const MPI_Aint *displs_bytes; /**< the same, in bytes */
    MPI_Datatype type;
    const MPI_Datatype *types;     /**< NULL: `type` for all */
    const MPI_Fint *types_fortran; /**< likewise, as Fortran knows them */
    bool in_place;                 /**< MPI_IN_PLACE: the other side says what */
} uci_mpi_side_t;

/** A call. What is not significant on this rank is not looked at. */
typedef struct uci_mpi_collective {
    const char *call; /**< "MPI_Bcast": a constant */
    uci_mpi_flow_t flow;
    bool blocks;
    MPI_Comm comm;
    int root; /**< or UCI_MPI_NO_ROOT */
    bool has_op;
    MPI_Op op;
    const void *send_buf, *recv_buf; /**< NULL: in place, MPI_BOTTOM, or not told */
    uci_mpi_side_t send;
    uci_mpi_side_t recv;
} uci_mpi_collective_t;

/** @return how many elements go to, or come from, rank @a i. */
UCI_INLINE uint64_t uci_mpi_side_count(const uci_mpi_side_t *side, int i)
{
#if MPI_VERSION >= 4
    if (side->counts_c != NULL) {
        return (uint64_t)side->counts_c[i];
    }
#endif
    return (side->counts != NULL) ? (uint64_t)(int64_t)side->counts[i] : side->count;
}

/** @return whether it sends a part of its own to each of all, or of its neighbours. */
UCI_INLINE bool uci_mpi_sends_to_each(const uci_mpi_collective_t *collective)
{
    return strstr(collective->call, "lltoall") != NULL;
}

/** @return of which type these are. */
UCI_INLINE MPI_Datatype uci_mpi_side_type(const uci_mpi_side_t *side, int i)
{
    return (side->types != NULL)           ? side->types[i]
           : (side->types_fortran != NULL) ? PMPI_Type_f2c(side->types_fortran[i])
                                           : side->type;
}

/**
 * This rank calls a collective. One that blocks waits until what all ranks call has been compared: no longer than for all of them to come to it. One that does
 * not is compared when uci_mpi_agree_poll() finds time. What does not match has been told when this returns.
 * Only if uci_mpi_compares_collectives(). Thread safe.
 */
void uci_mpi_agree(const uci_mpi_collective_t *collective);

/** How many calls are being compared, and communicators of our own are to be freed. */
extern unsigned uci_mpi_agree_pending;

/** Get on with comparing. @param since_ns  this rank waits since then (uci_process_time_ns()), and tells so if it is long; 0: it does not wait. */
void uci_mpi_agree_poll(uint64_t since_ns);

/** Wait by testing, while calls are being compared: what follows sets @a _done, or @a _error. */
#define UCI_MPI_AGREE_WAIT(_done, _error, ...) \
    do { \
        const uint64_t uci_since = uci_process_time_ns(); \
\
        while (!(_done) && ((_error) == MPI_SUCCESS)) { \
            uci_mpi_agree_poll(uci_since); \
            __VA_ARGS__; \
        } \
    } while (0)

/** Before testing. */
UCI_INLINE void uci_mpi_agree_test(void)
{
    if (uci_unlikely(uci_mpi_agree_pending > 0)) {
        uci_mpi_agree_poll(0);
    }
}

/** MPI_Init has been called, which is compared as a collective if these are: the communicator of our own for all ranks is made by it. So is MPI_Finalize,
 *  within it; what is not ended ends there. */
void uci_mpi_agree_init(void);

#endif
