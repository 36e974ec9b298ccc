/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that the ranks of one node share, for the parts of an all-reduce. Each rank has a slot, which it alone writes, in chunks; beside each
 * chunk is the digest of what was put there. Whoever reads one copies it into memory of its own, digests what it has copied, and uses
 * that. A chunk that is not what it should be is read once more, and then asked for: its writer, which waits in the same all-reduce, puts it
 * there again from its buffers.
 *
 * A large all-reduce is done in pieces, numbered from 1 over the window's life. Slots have two halves, for pieces of odd and of even numbers, so
 * that the next piece can be put there while the last one is read.
 *
 * All functions are for the one thread that is in the all-reduce. Those that wait let MPI go on meanwhile, and return MPI_SUCCESS, or the code
 * of an error that has happened to a rank of this node: then all give up.
 */
#ifndef UCI_MPI_ALLREDUCE_WINDOW_H_
#define UCI_MPI_ALLREDUCE_WINDOW_H_

#include <mpi.h>

#include "digest/digest.h"
#include "uci_allreduce.h"

#define UCI_MPI_CHUNK      ((size_t)32 << 10) /**< bytes: two of them fit into the first cache */
#define UCI_MPI_BLOCK_UNIT ((size_t)64)       /**< blocks are multiples of it: elements are not cut */

/** How a piece is divided: a block for each leader, and chunks within it. */
typedef struct uci_mpi_piece {
    uint32_t number;
    unsigned leaders; /**< blocks */
    size_t offset;    /**< of the piece in the buffers, bytes */
    size_t length;    /**< bytes */
} uci_mpi_piece_t;

/** A rank's place in the window, written by it alone but for `answered`. Private to allreduce_window.c. */
typedef struct uci_mpi_seat uci_mpi_seat_t;

typedef struct uci_mpi_window {
    char *memory;
    size_t length;
    size_t slot;      /**< bytes of half a slot: the longest piece; a multiple of UCI_MPI_CHUNK */
    unsigned ranks;   /**< of this node */
    unsigned rank;    /**< among them */
    unsigned leaders; /**< the first ranks of each node */
    MPI_Comm comm;    /**< own, of these ranks; what is asked so that MPI goes on while this one waits */
    const int *names; /**< their ranks in the communicator, as they are told */
    const uci_digest_ops_t *digest;
    const uci_allreduce_ops_t *ops;

    /* The all-reduce at work */
    const char *send; /**< where the own contribution is ... */
    char *receive;    /**< ... and the sums, as far as they are known; may be the same */
    size_t count;     /**< bytes of both */

    uci_mpi_piece_t piece[2];        /**< the last two, by the parity of their numbers */
    uint32_t number;                 /**< of the last one */
    uint64_t filled, reduced, taken; /**< what the own seat must say */
    uint32_t requests;               /**< that were made */
    uint32_t *served;                /**< last one of each rank */
    unsigned turns;                  /**< of the loop that waits */
} uci_mpi_window_t;

/** @return bytes of the memory that a window needs. */
size_t uci_mpi_window_size(unsigned ranks, unsigned leaders, size_t slot);

/** Fill in what a window is before its first piece. */
void uci_mpi_window_reset(uci_mpi_window_t *window);

/** Prepare memory that is zero: once, before any rank uses it. */
void uci_mpi_window_format(uci_mpi_window_t *window);

/** @return where block @a block of a piece begins; where the last one ends, if @a block is the number of leaders. */
UCI_INLINE size_t uci_mpi_block_begin(const uci_mpi_piece_t *piece, unsigned block)
{
    size_t each = (piece->length + piece->leaders - 1) / piece->leaders;

    each = (each + UCI_MPI_BLOCK_UNIT - 1) & ~(UCI_MPI_BLOCK_UNIT - 1);
    return (block * each < piece->length) ? block * each : piece->length;
}

UCI_INLINE size_t uci_mpi_block_length(const uci_mpi_piece_t *piece, unsigned block)
{
    return uci_mpi_block_begin(piece, block + 1) - uci_mpi_block_begin(piece, block);
}

/** A piece of @a length bytes at @a offset of the buffers begins, all of them in turn on all ranks. Its contents stay valid until the next but one. */
const uci_mpi_piece_t *uci_mpi_window_begin(uci_mpi_window_t *window, size_t offset, size_t length);

/** Put the own contribution to all blocks that others add up into the slot, and say so. */
void uci_mpi_window_fill(uci_mpi_window_t *window, const uci_mpi_piece_t *piece);

/** The same with the sums of the own block, which are at their place in the receive buffer. */
void uci_mpi_window_publish(uci_mpi_window_t *window, const uci_mpi_piece_t *piece);

/** All sums have been read. */
void uci_mpi_window_take(uci_mpi_window_t *window, const uci_mpi_piece_t *piece);

/** Wait until all ranks of the node have filled; until @a rank has published; until all have taken piece @a number. */
int uci_mpi_window_wait_filled(uci_mpi_window_t *window, const uci_mpi_piece_t *piece);
int uci_mpi_window_wait_published(uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned rank);
int uci_mpi_window_wait_taken(uci_mpi_window_t *window, uint32_t number);

/** Copy @a length bytes at @a offset of block @a block, which are one chunk (@a offset is a multiple of UCI_MPI_CHUNK), from the slot of
 *  @a writer to @a to, as they were put there. */
int uci_mpi_window_read(uci_mpi_window_t *window, const uci_mpi_piece_t *piece, unsigned writer, unsigned block,
                        size_t offset, size_t length, void *to);

/** A turn of a loop that waits for a message, and has just let MPI go on: serves the others of this node, and gives the processor away when it
 *  takes long. */
int uci_mpi_window_turn(uci_mpi_window_t *window);

/** The loop of uci_mpi_window_turn() begins. */
UCI_INLINE void uci_mpi_window_wait_begin(uci_mpi_window_t *window)
{
    window->turns = 0;
}

/** An error of MPI's: all ranks of this node give up with it. */
void uci_mpi_window_fail(uci_mpi_window_t *window, int error);

#endif
