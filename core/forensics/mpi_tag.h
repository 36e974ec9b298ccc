/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a 64-bit tag means to the MPI that made it. Layouts and internal tags are those of Open MPI 4.1 to 6 (pml/ucx; coll_tags.h) and of
 * MPICH 4 and 5 (ch4:ucx; mpir_tags.h, mpir_contextid.h):
 *
 *     Open MPI  | tag, signed: 24 | source: 20 | context: 20 |         internal tags are below 0
 *     MPICH     | context: 16     | source: 16 | unused: 1 | tag: 31 |  collectives have bit 0 of the context set
 */
#ifndef UCI_MPI_TAG_H_
#define UCI_MPI_TAG_H_

#include "util/types.h"

typedef enum { UCI_MPI_UNKNOWN, UCI_MPI_OPEN_MPI, UCI_MPI_MPICH } uci_mpi_t;

typedef struct uci_mpi_tag {
    const char *library; /**< "Open MPI", "MPICH"; NULL: not an MPI that is known, and the rest is 0 */
    int tag;             /**< of MPI_Send, or internal */
    unsigned source;     /**< rank in the communicator */
    unsigned context;    /**< id of the communicator */
    /** "bcast" ... if it is an internal tag; "nonblocking": of a collective, the tag says not which; "internal": not known; or NULL */
    const char *collective;
} uci_mpi_tag_t;

/** Which MPI has started this process, by its launcher's environment. */
uci_mpi_t uci_mpi_here(void);

/** Can a receive with this mask match messages of one sender and tag only? Bits 61 and 62 nobody has in a tag: MPICH has none in its
 *  masks. If not it is a wildcard (MPI_ANY_SOURCE, MPI_ANY_TAG). */
UCI_INLINE bool uci_mpi_mask_is_exact(uint64_t mask)
{
    return (mask | (3ull << 61)) == UINT64_MAX;
}

/** Decode. Thread safe; texts are constants. */
void uci_mpi_tag_decode(uci_mpi_t mpi, uint64_t tag, uci_mpi_tag_t *decoded_p);

#endif
