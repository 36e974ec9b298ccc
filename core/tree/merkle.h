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

#include "util/types.h"

#define UCI_MERKLE_ARITY_MIN 2
#define UCI_MERKLE_ARITY_MAX 256

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

/** @return true if uci_merkle_set_leaf() has been called for chunk @a index. */
bool uci_merkle_has_leaf(const uci_merkle_t *tree, size_t index);

/** @return the digest given for chunk @a index by uci_merkle_set_leaf(). */
uint64_t uci_merkle_leaf(const uci_merkle_t *tree, size_t index);

/** Root over all leaves, which must all be set, bound to the message it belongs to. */
uint64_t uci_merkle_root(uci_merkle_t *tree, uint64_t identity, uint64_t length, uint64_t chunk_size);

/** Levels: 0 holds the leaf nodes, uci_merkle_levels()-1 the single top node. */
unsigned uci_merkle_levels(const uci_merkle_t *tree);
size_t uci_merkle_level_size(const uci_merkle_t *tree, unsigned level);
/** Node value; ancestors must be up to date (call uci_merkle_root first). */
uint64_t uci_merkle_node(const uci_merkle_t *tree, unsigned level, size_t index);

/** @return children a node has, the last one of a level may have fewer. */
unsigned uci_merkle_arity(const uci_merkle_t *tree);

/*
 * Descent: finding the leaves that differ from those of another tree of the same shape, reading only the children of
 * nodes that differ. The top node is taken to differ. The side that looks marks it, and then, until nothing is marked:
 *
 *     marked nodes of one level --uci_merkle_marked()--> asked for: uci_merkle_children() of the other tree
 *         --uci_merkle_compare()--> their children that differ are marked in turn
 *
 * The children of level 1 are the chunks' digests themselves, and it is the caller who compares these. All leaves must
 * be set on both sides. k leaves that differ of n cost no more than k * arity * levels nodes. A tree of one leaf has
 * nothing to be compared.
 */

/** Begin a descent: the top node, and nothing else, is marked. */
void uci_merkle_descend(uci_merkle_t *tree);

/** End a descent early: nothing is marked. */
void uci_merkle_unmark(uci_merkle_t *tree);

/**
 * Which nodes are to be compared next: of the highest level that has any, the first @a max ones.
 * @param indexes  receives them, ascending. @return how many; 0: the descent has ended, and @a level_p is not set.
 */
size_t uci_merkle_marked(const uci_merkle_t *tree, unsigned *level_p, size_t *indexes, size_t max);

/** @return number of children of node @a index of @a level; 0: there is no such inner node. */
size_t uci_merkle_child_count(const uci_merkle_t *tree, unsigned level, size_t index);

/** Write the values of the children of inner node @a index of @a level. @return how many: uci_merkle_child_count(). */
size_t uci_merkle_children(uci_merkle_t *tree, unsigned level, size_t index, uint64_t *values);

/**
 * Compare the children of a marked node with those of the other tree: those that differ are marked in its place (leaves,
 * at level 1, are not).
 * @param values  as uci_merkle_children() of the other tree wrote them.
 * @return false: that node is not marked, and nothing was done.
 */
bool uci_merkle_compare(uci_merkle_t *tree, unsigned level, size_t index, const uint64_t *values);

#endif
