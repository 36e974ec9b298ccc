/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which bytes of memory an operation reads or writes, gaps of its types left out: do those of two operations meet? Where a type's data lies is found by
 * MPI_Unpack into a map of it, once, and kept as an attribute of the datatype. What reaches over more than UCI_MPI_MAP_MAX bytes, or is in more than
 * UCI_MPI_REGION_BLOCKS_MAX pieces, is not known: it meets nothing.
 */
#ifndef UCI_MPI_REGION_H_
#define UCI_MPI_REGION_H_

#include <mpi.h>

#include "util/types.h"

#define UCI_MPI_MAP_MAX           ((size_t)1 << 30)
#define UCI_MPI_REGION_BLOCKS_MAX ((size_t)1 << 20)

typedef struct uci_mpi_block {
    intptr_t begin, end; /**< bytes from the buffer's address */
} uci_mpi_block_t;

/** Blocks that ascend, and do not touch each other; shared. */
typedef struct uci_mpi_layout uci_mpi_layout_t;

/** One of zeros is empty. */
typedef struct uci_mpi_region {
    uintptr_t buf;
    uci_mpi_block_t bounds;   /**< all of it lies within; empty: nothing, or not known */
    uci_mpi_layout_t *layout; /**< what of that it is; NULL: all */
} uci_mpi_region_t;

/** Do elements of this type follow each other without gaps, from where the buffer begins? */
bool uci_mpi_is_dense(MPI_Datatype type, uint64_t count);

/** As uci_mpi_datatype_forget(). */
void uci_mpi_layout_forget(MPI_Datatype type);

/** @return @a count elements at @a buf (which may be MPI_BOTTOM), for uci_mpi_region_release(). Thread safe, as all here. */
uci_mpi_region_t uci_mpi_region_create(const void *buf, uint64_t count, MPI_Datatype type);

/** One of several parts, which may lie in any order: begin it, join parts to it, which are still to be released, and end it. */
uci_mpi_region_t uci_mpi_region_begin(const void *buf);
void uci_mpi_region_join(uci_mpi_region_t *region, const uci_mpi_region_t *part);
void uci_mpi_region_end(uci_mpi_region_t *region);

/** It is empty then. */
void uci_mpi_region_release(uci_mpi_region_t *region);

/** @return how many bytes are in both. @param offset_p  if there are any: of the first one, from where @a one's buffer begins. */
uint64_t uci_mpi_region_shared(const uci_mpi_region_t *one, const uci_mpi_region_t *other, intptr_t *offset_p);

#endif
