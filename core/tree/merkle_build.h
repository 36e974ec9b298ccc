/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Merkle tree of a whole buffer at once, on several cores: for tools. The library computes leaves as chunks pass by, in
 * the thread that calls, and is not linked with OpenMP: this file is a library of its own (core_omp_dep).
 */
#ifndef UCI_MERKLE_BUILD_H_
#define UCI_MERKLE_BUILD_H_

#include "digest/digest.h"
#include "merkle.h"

/** Smaller buffers are digested by one thread: starting others costs more than it saves (docs/digests.md). */
#define UCI_MERKLE_PARALLEL_MIN ((size_t)512 << 10)

/**
 * Create the tree of @a length bytes at @a data in chunks of @a chunk_size; the last one may be shorter, and no bytes are
 * one empty chunk. All leaves are set.
 * @param threads  how many to use at most; 0: as many as this process may use cores. Never more than those, nor than
 *                 chunks.
 * @return as uci_merkle_create(); UCI_ERR_INVALID_PARAM (logged) too if @a chunk_size is 0.
 */
uci_status_t uci_merkle_build(const uci_digest_ops_t *digest, const void *data, size_t length, size_t chunk_size,
                              unsigned arity, unsigned threads, uci_merkle_t **tree_p);

/** @return the number of threads uci_merkle_build() uses. */
unsigned uci_merkle_build_threads(size_t length, size_t chunk_size, unsigned threads);

#endif
