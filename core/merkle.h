/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * k-ary Merkle tree over the chunk digests of one message (Merkle 1987; used for MPI messages by
 * Kratochvil et al., "Merkle tree validation in Open MPI"). Leaves arrive in any order.
 *
 *     leaf node i  = H(tag LEAF,  i, digest of chunk i)
 *     inner node   = H(tag INNER, level, index, children...)        at most `arity` children
 *     root         = H(tag ROOT,  identity, message length, chunk size, top node)
 *
 * H is XXH3-64 whatever the chunks' digest is. Binding index and level to each node means that equal chunks
 * in another order, or a subtree moved elsewhere, change the root.
 *
 * A tree belongs to one thread at a time.
 */
#ifndef UCI_MERKLE_H_
#define UCI_MERKLE_H_

#include "types.h"

typedef struct uci_merkle uci_merkle_t;

/**
 * Create a tree for @a leaves chunks (>= 1) with @a arity children a node (2..256).
 * Memory: about 8 * leaves * (1 + 1/(arity-1)) bytes in one block.
 * @return UCI_OK, UCI_ERR_INVALID_PARAM (logged) or UCI_ERR_NO_MEMORY (logged).
 */
uci_status_t uci_merkle_create(size_t leaves, unsigned arity, uci_merkle_t **tree_p);

void uci_merkle_destroy(uci_merkle_t *tree);

/** Set (or replace) the digest of chunk @a index. A replaced leaf makes its ancestors stale until the next
 *  uci_merkle_root(); only those are computed again. */
void uci_merkle_set_leaf(uci_merkle_t *tree, size_t index, uint64_t digest);

/** @return number of distinct leaves set so far. */
size_t uci_merkle_leaves_set(const uci_merkle_t *tree);

/** @return the digest given for chunk @a index by uci_merkle_set_leaf(). */
uint64_t uci_merkle_leaf(const uci_merkle_t *tree, size_t index);

/** Root over all leaves, which must all be set, bound to the message it belongs to. */
uint64_t uci_merkle_root(uci_merkle_t *tree, uint64_t identity, uint64_t length, uint64_t chunk_size);

/** Levels: 0 holds the leaf nodes, uci_merkle_levels()-1 the single top node. */
unsigned uci_merkle_levels(const uci_merkle_t *tree);
size_t uci_merkle_level_size(const uci_merkle_t *tree, unsigned level);
/** Node value; ancestors must be up to date (call uci_merkle_root first). */
uint64_t uci_merkle_node(const uci_merkle_t *tree, unsigned level, size_t index);

/** Read @a count sibling nodes of the other tree at @a level from @a first into @a nodes.
 *  @return UCI_OK or an error, which ends the diff. */
typedef uci_status_t (*uci_merkle_read_func_t)(void *arg, unsigned level, size_t first, size_t count, uint64_t *nodes);

/**
 * Find the chunks whose leaf nodes differ from those of another tree of the same shape, reading only the
 * children of nodes that differ, one read a node.
 * @param bad        receives at most @a max indexes, ascending.
 * @param bad_count_p  how many differ in all (may exceed max).
 * @param nodes_read_p how many nodes, of 8 bytes each, were read through @a read (may be NULL).
 */
uci_status_t uci_merkle_diff(uci_merkle_t *tree, uci_merkle_read_func_t read, void *arg, size_t *bad, size_t max,
                             size_t *bad_count_p, size_t *nodes_read_p);

#endif
