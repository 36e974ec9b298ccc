/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "digest/digest.h"
#include "digest/digest_small.h"
#include "util/log.h"
#include "merkle.h"
#include "util/zalloc.h"

#define UCI_MERKLE_LEVELS_MAX 64 /* arity 2, all of size_t */

/* First words of what is hashed: no two kinds of node can be taken for each other */
enum {
    UCI_MERKLE_TAG_LEAF  = 0x6661656cu, /* "leaf" */
    UCI_MERKLE_TAG_INNER = 0x65646f6eu, /* "node" */
    UCI_MERKLE_TAG_ROOT  = 0x746f6f72u  /* "root" */
};

/* All levels share one array of nodes, and one numbering of bits, level after level. Level 0 holds the chunks'
 * digests: leaf nodes are cheaper to hash again than to store. */
typedef struct uci_merkle_level {
    size_t first; /* number of its first node in the array */
    size_t size;
} uci_merkle_level_t;

struct uci_merkle {
    unsigned arity;
    unsigned levels;
    size_t leaves_set;
    bool stale;       /* some inner nodes are */
    size_t bit_words; /* words of each bit set */
    uint64_t *nodes;
    uint64_t *marks;            /* leaf: is set; inner node: is stale */
    uint64_t *differs;          /* inner nodes whose children are to be compared */
    uci_merkle_level_t level[]; /* then come nodes, marks and differs. Small trees fit into what malloc has at hand */
};

UCI_INLINE bool uci_bit_test(const uint64_t *bits, size_t i)
{
    return (bits[i / 64] >> (i % 64)) & 1;
}

UCI_INLINE void uci_bit_set(uint64_t *bits, size_t i)
{
    bits[i / 64] |= 1ull << (i % 64);
}

UCI_INLINE void uci_bit_clear(uint64_t *bits, size_t i)
{
    bits[i / 64] &= ~(1ull << (i % 64));
}

/* @return the first bit set in i..end-1, or end */
static size_t uci_bit_next(const uint64_t *bits, size_t i, size_t end)
{
    uint64_t word;

    while (i < end) {
        word = bits[i / 64] >> (i % 64);
        if (word != 0) {
            return uci_min(i + (size_t)__builtin_ctzll(word), end);
        }
        i = (i / 64 + 1) * 64;
    }
    return end;
}

static uint64_t uci_merkle_hash(const uint64_t *words, size_t count)
{
    size_t length = count * sizeof(*words);

    return (length <= UCI_DIGEST_SMALL_MAX) ? uci_digest_xxh3_small(words, length)
                                            : uci_digest_table[UCI_DIGEST_XXH3].digest(words, length);
}

static uint64_t uci_merkle_hash_leaf(const uci_merkle_t *tree, size_t index)
{
    const uint64_t words[] = {UCI_MERKLE_TAG_LEAF, index, tree->nodes[index]};

    return uci_merkle_hash(words, uci_array_size(words));
}

size_t uci_merkle_child_count(const uci_merkle_t *tree, unsigned level, size_t index)
{
    if ((level == 0) || (level >= tree->levels) || (index >= tree->level[level].size)) {
        return 0;
    }
    return uci_min(tree->level[level - 1].size - index * tree->arity, (size_t)tree->arity);
}

static uint64_t uci_merkle_hash_inner(const uci_merkle_t *tree, unsigned level, size_t index)
{
    size_t count = uci_merkle_child_count(tree, level, index);
    uint64_t words[3 + UCI_MERKLE_ARITY_MAX];
    size_t i;

    words[0] = UCI_MERKLE_TAG_INNER;
    words[1] = level;
    words[2] = index;
    for (i = 0; i < count; ++i) {
        words[3 + i] = uci_merkle_node(tree, level - 1, index * tree->arity + i);
    }
    return uci_merkle_hash(words, 3 + count);
}

uci_status_t uci_merkle_create(size_t leaves, unsigned arity, uci_merkle_t **tree_p)
{
    uci_merkle_level_t level[UCI_MERKLE_LEVELS_MAX];
    size_t total = 0, size = leaves, bit_words, i;
    unsigned levels = 0;
    uci_merkle_t *tree;

    if ((leaves == 0) || (leaves > SIZE_MAX / 64) || (arity < UCI_MERKLE_ARITY_MIN) || (arity > UCI_MERKLE_ARITY_MAX)) {
        uci_error("merkle tree of %zu leaves and arity %u is not possible: 1 leaf at least, arity %d..%d", leaves,
                  arity, UCI_MERKLE_ARITY_MIN, UCI_MERKLE_ARITY_MAX);
        return UCI_ERR_INVALID_PARAM;
    }

    for (;;) {
        level[levels].first = total;
        level[levels].size  = size;
        total += size;
        ++levels;
        if (size == 1) {
            break;
        }
        size = uci_div_up(size, arity);
    }

    bit_words = uci_div_up(total, 64);
    tree      = uci_zalloc(sizeof(*tree) + (levels * sizeof(*level)) + (total + 2 * bit_words) * sizeof(uint64_t));
    if (tree == NULL) {
        uci_error("failed to allocate a merkle tree of %zu leaves", leaves);
        return UCI_ERR_NO_MEMORY;
    }

    tree->arity      = arity;
    tree->levels     = levels;
    tree->leaves_set = 0;
    tree->stale      = true;
    tree->bit_words  = bit_words;
    tree->nodes      = (uint64_t *)&tree->level[levels];
    tree->marks      = tree->nodes + total;
    tree->differs    = tree->marks + bit_words;
    memcpy(tree->level, level, levels * sizeof(*level));
    for (i = leaves; i < total; ++i) {
        uci_bit_set(tree->marks, i); /* all inner nodes are stale */
    }

    *tree_p = tree;
    return UCI_OK;
}

void uci_merkle_destroy(uci_merkle_t *tree)
{
    free(tree);
}

void uci_merkle_set_leaf(uci_merkle_t *tree, size_t index, uint64_t digest)
{
    unsigned level;
    size_t node;

    assert(index < tree->level[0].size);
    tree->leaves_set += !uci_bit_test(tree->marks, index);
    tree->nodes[index] = digest;
    tree->stale        = true;
    uci_bit_set(tree->marks, index);

    /* the ancestors of a stale node are stale already */
    for (level = 1; level < tree->levels; ++level) {
        index /= tree->arity;
        node = tree->level[level].first + index;
        if (uci_bit_test(tree->marks, node)) {
            return;
        }
        uci_bit_set(tree->marks, node);
    }
}

size_t uci_merkle_leaves_set(const uci_merkle_t *tree)
{
    return tree->leaves_set;
}

bool uci_merkle_has_leaf(const uci_merkle_t *tree, size_t index)
{
    assert(index < tree->level[0].size);
    return uci_bit_test(tree->marks, index);
}

uint64_t uci_merkle_leaf(const uci_merkle_t *tree, size_t index)
{
    assert(uci_merkle_has_leaf(tree, index));
    return tree->nodes[index];
}

/* Compute the stale inner nodes, children first */
static void uci_merkle_refresh(uci_merkle_t *tree)
{
    unsigned level;
    size_t first, end, node;

    assert(tree->leaves_set == tree->level[0].size);
    if (!tree->stale) {
        return;
    }
    tree->stale = false;
    for (level = 1; level < tree->levels; ++level) {
        first = tree->level[level].first;
        end   = first + tree->level[level].size;
        for (node = uci_bit_next(tree->marks, first, end); node < end; node = uci_bit_next(tree->marks, node, end)) {
            tree->nodes[node] = uci_merkle_hash_inner(tree, level, node - first);
            uci_bit_clear(tree->marks, node);
        }
    }
}

uint64_t uci_merkle_root(uci_merkle_t *tree, uint64_t identity, uint64_t length, uint64_t chunk_size)
{
    uint64_t words[5];

    uci_merkle_refresh(tree);
    words[0] = UCI_MERKLE_TAG_ROOT;
    words[1] = identity;
    words[2] = length;
    words[3] = chunk_size;
    words[4] = uci_merkle_node(tree, tree->levels - 1, 0);
    return uci_merkle_hash(words, uci_array_size(words));
}

unsigned uci_merkle_levels(const uci_merkle_t *tree)
{
    return tree->levels;
}

size_t uci_merkle_level_size(const uci_merkle_t *tree, unsigned level)
{
    assert(level < tree->levels);
    return tree->level[level].size;
}

uint64_t uci_merkle_node(const uci_merkle_t *tree, unsigned level, size_t index)
{
    assert((level < tree->levels) && (index < tree->level[level].size));
    return (level == 0) ? uci_merkle_hash_leaf(tree, index) : tree->nodes[tree->level[level].first + index];
}

unsigned uci_merkle_arity(const uci_merkle_t *tree)
{
    return tree->arity;
}

void uci_merkle_unmark(uci_merkle_t *tree)
{
    memset(tree->differs, 0, tree->bit_words * sizeof(uint64_t));
}

void uci_merkle_descend(uci_merkle_t *tree)
{
    uci_merkle_unmark(tree);
    if (tree->levels > 1) {
        uci_bit_set(tree->differs, tree->level[tree->levels - 1].first);
    }
}

size_t uci_merkle_marked(const uci_merkle_t *tree, unsigned *level_p, size_t *indexes, size_t max)
{
    unsigned level = tree->levels;
    size_t count   = 0;
    size_t first, end, node;

    while ((count == 0) && (--level > 0)) {
        first = tree->level[level].first;
        end   = first + tree->level[level].size;
        for (node = uci_bit_next(tree->differs, first, end); (node < end) && (count < max);
             node = uci_bit_next(tree->differs, node + 1, end)) {
            indexes[count++] = node - first;
        }
    }
    if (count > 0) {
        *level_p = level;
    }
    return count;
}

/* As it is told to the other side */
static uint64_t uci_merkle_child(const uci_merkle_t *tree, unsigned level, size_t index)
{
    return tree->nodes[tree->level[level].first + index];
}

size_t uci_merkle_children(uci_merkle_t *tree, unsigned level, size_t index, uint64_t *values)
{
    size_t i, count = uci_merkle_child_count(tree, level, index);

    uci_merkle_refresh(tree);
    for (i = 0; i < count; ++i) {
        values[i] = uci_merkle_child(tree, level - 1, (index * tree->arity) + i);
    }
    return count;
}

bool uci_merkle_compare(uci_merkle_t *tree, unsigned level, size_t index, const uint64_t *values)
{
    size_t i, child, count = uci_merkle_child_count(tree, level, index);

    if ((count == 0) || !uci_bit_test(tree->differs, tree->level[level].first + index)) {
        return false;
    }
    uci_merkle_refresh(tree);
    uci_bit_clear(tree->differs, tree->level[level].first + index);
    for (i = 0; (level > 1) && (i < count); ++i) {
        child = (index * tree->arity) + i;
        if (values[i] != uci_merkle_child(tree, level - 1, child)) {
            uci_bit_set(tree->differs, tree->level[level - 1].first + child);
        }
    }
    return true;
}
