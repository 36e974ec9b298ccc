/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * From a datatype of MPI to what it consists of: computed once, by MPI_Type_get_envelope and MPI_Type_get_contents, and kept as an attribute of
 * the datatype; a small table in each thread tells those that it used last.
 */
#ifndef UCI_MPI_DATATYPE_H_
#define UCI_MPI_DATATYPE_H_

#include <mpi.h>

#include "signature/signature.h"

#define UCI_MPI_SEEN 64u /**< entries of a thread's table, a power of two */

typedef struct uci_mpi_seen {
    MPI_Datatype datatype;
    unsigned freed;            /**< uci_mpi_freed when it was looked up */
    const uci_sigtype_t *type; /**< NULL: the entry is empty */
    uint64_t code;             /**< of all its elements, shifted to its place in a signature's word */
    uint64_t elements;
} uci_mpi_seen_t;

extern __thread uci_mpi_seen_t uci_mpi_seen[UCI_MPI_SEEN];

/** Datatypes that have been freed: what was known by its handle may be another one's. */
extern unsigned uci_mpi_freed;

/** To be called once, before anything else here, after MPI_Init. @return whether it is possible. */
int uci_mpi_datatype_init(void);

/** It is about to be freed by the program: MPICH deletes attributes of one that is in use within its progress, where it lets other threads in. */
void uci_mpi_datatype_forget(MPI_Datatype datatype);

/** Take away an attribute, if it has it. */
void uci_mpi_datatype_drop(MPI_Datatype datatype, int keyval);

/** Is it predefined? Then it is never freed, and can't have an attribute in every MPI. */
bool uci_mpi_is_named(MPI_Datatype datatype);

/** The same as uci_mpi_datatype(), of one that this thread's table does not tell. */
const uci_mpi_seen_t *uci_mpi_datatype_slow(MPI_Datatype datatype);

UCI_INLINE size_t uci_mpi_seen_place(MPI_Datatype datatype)
{
    return (size_t)(((uint64_t)(uintptr_t)datatype * 0x9e3779b97f4a7c15ul) >> 58);
}

/** @return what @a datatype consists of, until this thread asks about another one; NULL: that can't be told, which has been said. */
UCI_INLINE const uci_mpi_seen_t *uci_mpi_datatype(MPI_Datatype datatype)
{
    const uci_mpi_seen_t *seen = &uci_mpi_seen[uci_mpi_seen_place(datatype)];

    return uci_likely((seen->datatype == datatype) && (seen->type != NULL) &&
                      (seen->freed == __atomic_load_n(&uci_mpi_freed, __ATOMIC_ACQUIRE)))
                   ? seen
                   : uci_mpi_datatype_slow(datatype);
}

_Static_assert(UCI_MPI_SEEN == 1u << (64 - 58), "uci_mpi_seen_place()");

#endif
