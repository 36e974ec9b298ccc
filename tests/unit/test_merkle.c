/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Merkle tree: values against the definition in merkle.h, binding of places, incremental roots, and descents that
 * find what changed by reading little.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "chance.h"
#include "tree/merkle.h"
#include "util/zalloc.h"

/* One test asks for more memory than there is, which AddressSanitizer must let fail; unused without it */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#define LEAVES_MAX 5000
#define TAG_LEAF   0x6661656cull
#define TAG_INNER  0x65646f6eull
#define TAG_ROOT   0x746f6f72ull

static uint64_t test_digest(size_t index)
{
    return 1000 + index * index;
}

static uci_merkle_t *test_tree(size_t leaves, unsigned arity)
{
    uci_merkle_t *tree = NULL;
    size_t i, step;

    cr_assert_eq(uci_merkle_create(leaves, arity, &tree), UCI_OK);
    cr_assert_eq(uci_merkle_leaves_set(tree), 0);

    /* in an order of its own: odd ones backwards, then even ones */
    for (step = 0; step < leaves; ++step) {
        i = (step < leaves / 2) ? 2 * (leaves / 2 - step) - 1 : 2 * (step - leaves / 2);
        uci_merkle_set_leaf(tree, i, test_digest(i));
        cr_assert_eq(uci_merkle_leaves_set(tree), step + 1);
    }
    return tree;
}

static uint64_t test_root(uci_merkle_t *tree)
{
    return uci_merkle_root(tree, 42, 1 << 20, 4096);
}

/* The definition, level by level, with a malloc a level */
static uint64_t test_root_oracle(const uint64_t *digests, size_t leaves, unsigned arity)
{
    uint64_t *nodes = malloc(leaves * sizeof(*nodes)), words[3 + 256], root;
    size_t size     = leaves, i, j, count;
    unsigned level;

    for (i = 0; i < leaves; ++i) {
        uint64_t leaf[] = {TAG_LEAF, i, digests[i]};

        nodes[i] = XXH3_64bits(leaf, sizeof(leaf));
    }
    for (level = 1; size > 1; ++level) {
        for (i = 0; i * arity < size; ++i) {
            count    = uci_min((size_t)arity, size - i * arity);
            words[0] = TAG_INNER;
            words[1] = level;
            words[2] = i;
            for (j = 0; j < count; ++j) {
                words[3 + j] = nodes[i * arity + j];
            }
            nodes[i] = XXH3_64bits(words, (3 + count) * 8);
        }
        size = i;
    }
    words[0] = TAG_ROOT;
    words[1] = 42;
    words[2] = 1 << 20;
    words[3] = 4096;
    words[4] = nodes[0];
    root     = XXH3_64bits(words, 40);
    free(nodes);
    return root;
}

static const unsigned test_arities[] = {2, 3, 4, 7, 13, 16, 64, 255, 256};
static const size_t test_leaves[]    = {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 255, 256, 257, 1000, LEAVES_MAX};

#define test_for_each_shape(_leaves, _arity) \
    for (size_t _i = 0, _leaves; _i < uci_array_size(test_leaves); ++_i) \
        for (size_t _j = 0, _arity; \
             _leaves   = test_leaves[_i], _j < uci_array_size(test_arities) && (_arity = test_arities[_j], true); ++_j)

Test(merkle, create)
{
    uci_merkle_t *tree = (uci_merkle_t *)&test_draw;

    cr_assert_eq(uci_merkle_create(0, 4, &tree), UCI_ERR_INVALID_PARAM);
    cr_assert_eq(uci_merkle_create(10, 0, &tree), UCI_ERR_INVALID_PARAM);
    cr_assert_eq(uci_merkle_create(10, 1, &tree), UCI_ERR_INVALID_PARAM);
    cr_assert_eq(uci_merkle_create(10, 257, &tree), UCI_ERR_INVALID_PARAM);
    cr_assert_eq(uci_merkle_create(SIZE_MAX, 2, &tree), UCI_ERR_INVALID_PARAM);
    cr_assert_eq(uci_merkle_create(SIZE_MAX / 64, 256, &tree), UCI_ERR_NO_MEMORY);
    cr_assert_eq(tree, (uci_merkle_t *)&test_draw, "output set only after success");
    uci_merkle_destroy(NULL);
}

Test(merkle, shape)
{
    test_for_each_shape(leaves, arity)
    {
        uci_merkle_t *tree = test_tree(leaves, arity);
        size_t size        = leaves;
        unsigned level;

        for (level = 0; level < uci_merkle_levels(tree); ++level) {
            cr_assert_eq(uci_merkle_level_size(tree, level), size);
            if (level + 1 < uci_merkle_levels(tree)) {
                cr_assert_gt(size, 1);
            }
            size = uci_div_up(size, arity);
        }
        cr_assert_eq(uci_merkle_level_size(tree, uci_merkle_levels(tree) - 1), 1);
        uci_merkle_destroy(tree);
    }
}

Test(merkle, definition)
{
    uint64_t digests[LEAVES_MAX];
    size_t i;

    for (i = 0; i < LEAVES_MAX; ++i) {
        digests[i] = test_digest(i);
    }
    test_for_each_shape(leaves, arity)
    {
        uci_merkle_t *tree = test_tree(leaves, arity);

        cr_assert_eq(test_root(tree), test_root_oracle(digests, leaves, arity), "%zu leaves, arity %zu", leaves, arity);
        for (i = 0; i < leaves; ++i) {
            cr_assert_eq(uci_merkle_leaf(tree, i), digests[i]);
        }
        uci_merkle_destroy(tree);
    }
}

/* A replaced leaf gives the root a tree built anew would have; taking it back gives the old root */
Test(merkle, incremental)
{
    test_for_each_shape(leaves, arity)
    {
        uci_merkle_t *tree = test_tree(leaves, arity);
        uint64_t digests[LEAVES_MAX], root = test_root(tree);
        size_t i, change;

        for (i = 0; i < leaves; ++i) {
            digests[i] = test_digest(i);
        }
        for (change = 0; change < 20; ++change) {
            i          = test_random() % leaves;
            digests[i] = test_random();
            uci_merkle_set_leaf(tree, i, digests[i]);
            if (change % 3 == 0) {
                cr_assert_eq(test_root(tree), test_root_oracle(digests, leaves, arity));
            }
        }
        cr_assert_eq(uci_merkle_leaves_set(tree), leaves);
        cr_assert_neq(test_root(tree), root);
        for (i = 0; i < leaves; ++i) {
            uci_merkle_set_leaf(tree, i, test_digest(i));
        }
        cr_assert_eq(test_root(tree), root);
        uci_merkle_destroy(tree);
    }
}

Test(merkle, root_binds_message)
{
    uci_merkle_t *tree = test_tree(100, 4);
    uint64_t root      = uci_merkle_root(tree, 1, 2, 3);

    cr_assert_eq(uci_merkle_root(tree, 1, 2, 3), root);
    cr_assert_neq(uci_merkle_root(tree, 2, 2, 3), root);
    cr_assert_neq(uci_merkle_root(tree, 1, 3, 3), root);
    cr_assert_neq(uci_merkle_root(tree, 1, 2, 4), root);
    cr_assert_neq(uci_merkle_root(tree, 2, 1, 3), root);
    uci_merkle_destroy(tree);
}

/* Swapped chunks, and subtrees moved as a whole, change the root although the set of digests is the same */
Test(merkle, root_binds_places)
{
    static const size_t runs[] = {1, 2, 4, 16, 64};
    size_t i, j, run;

    for (i = 0; i < uci_array_size(runs); ++i) {
        uci_merkle_t *tree = test_tree(256, 4);
        uint64_t root      = test_root(tree);

        run = runs[i];
        for (j = 0; j < run; ++j) {
            uci_merkle_set_leaf(tree, j, test_digest(run + j));
            uci_merkle_set_leaf(tree, run + j, test_digest(j));
        }
        cr_assert_neq(test_root(tree), root, "runs of %zu", run);
        uci_merkle_destroy(tree);
    }
}

Test(merkle, equal_chunks_have_distinct_nodes)
{
    uci_merkle_t *tree = NULL;
    size_t i;

    cr_assert_eq(uci_merkle_create(64, 4, &tree), UCI_OK);
    for (i = 0; i < 64; ++i) {
        uci_merkle_set_leaf(tree, i, 7);
    }
    test_root(tree);
    for (i = 1; i < 64; ++i) {
        cr_assert_neq(uci_merkle_node(tree, 0, i), uci_merkle_node(tree, 0, 0));
    }
    cr_assert_neq(uci_merkle_node(tree, 1, 1), uci_merkle_node(tree, 1, 0));
    uci_merkle_destroy(tree);
}

/* What a descent has cost */
typedef struct test_cost {
    size_t requests; /* of `batch` nodes at most */
    size_t nodes;
    size_t bad;
} test_cost_t;

/* Ask `other` for the children of the marked nodes, `batch` at a time, until none is left */
static test_cost_t test_descend(uci_merkle_t *tree, uci_merkle_t *other, size_t batch, size_t *bad)
{
    size_t indexes[LEAVES_MAX], i, j, count;
    uint64_t values[UCI_MERKLE_ARITY_MAX];
    test_cost_t cost = {0, 0, 0};
    unsigned level = 12345, before = UINT_MAX;

    uci_merkle_descend(tree);
    while ((count = uci_merkle_marked(tree, &level, indexes, batch)) > 0) {
        cr_assert_leq(level, before, "downwards");
        before = level;
        ++cost.requests;
        for (i = 0; i < count; ++i) {
            j = uci_merkle_children(other, level, indexes[i], values);
            cr_assert_eq(j, uci_merkle_child_count(tree, level, indexes[i]));
            cr_assert(uci_merkle_compare(tree, level, indexes[i], values));
            cr_assert_not(uci_merkle_compare(tree, level, indexes[i], values), "its mark is gone");
            cost.nodes += j;
            for (j = 0; (level == 1) && (j < uci_merkle_child_count(tree, 1, indexes[i])); ++j) {
                if (values[j] != uci_merkle_leaf(tree, (indexes[i] * uci_merkle_arity(tree)) + j)) {
                    bad[cost.bad++] = (indexes[i] * uci_merkle_arity(tree)) + j;
                }
            }
        }
    }
    return cost;
}

static int test_compare(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

/* Change `count` distinct leaves of tree; their indexes, ascending, in `changed` */
static size_t test_damage(uci_merkle_t *tree, size_t leaves, size_t count, size_t *changed)
{
    size_t done = 0, i;

    count = uci_min(count, leaves);
    while (done < count) {
        i = test_random() % leaves;
        if (uci_merkle_leaf(tree, i) == test_digest(i)) {
            uci_merkle_set_leaf(tree, i, ~test_digest(i));
            changed[done++] = i;
        }
    }
    qsort(changed, count, sizeof(*changed), test_compare);
    return count;
}

/* The leaves that differ are found, and no more is read than their paths need */
Test(merkle, descent)
{
    static const size_t counts[] = {0, 1, 2, 3, 10, 100, LEAVES_MAX};
    static size_t changed[LEAVES_MAX], bad[LEAVES_MAX];
    size_t c;

    test_for_each_shape(leaves, arity)
    {
        for (c = 0; (leaves > 1) && (c < uci_array_size(counts)); ++c) {
            uci_merkle_t *tree = test_tree(leaves, arity), *other = test_tree(leaves, arity);
            size_t count = test_damage(tree, leaves, counts[c], changed);
            test_cost_t cost;

            cost = test_descend(tree, other, LEAVES_MAX, bad);
            cr_assert_eq(cost.bad, count);
            cr_assert_eq(memcmp(bad, changed, count * sizeof(*bad)), 0, "%zu leaves, arity %zu, %zu bad", leaves, arity,
                         count);
            cr_assert_leq(cost.nodes, uci_max(count, (size_t)1) * arity * (uci_merkle_levels(tree) - 1));
            cr_assert_leq(cost.requests, uci_merkle_levels(tree) - 1);

            /* a few at a time: as much is read, by more requests */
            cr_assert_eq(test_descend(tree, other, 3, bad).nodes, cost.nodes);
            cr_assert_eq(memcmp(bad, changed, count * sizeof(*bad)), 0);
            uci_merkle_destroy(tree);
            uci_merkle_destroy(other);
        }
    }
}

Test(merkle, a_descent_ends_early)
{
    uci_merkle_t *tree = test_tree(5000, 16);
    unsigned level;
    size_t index;

    uci_merkle_descend(tree);
    cr_assert_eq(uci_merkle_marked(tree, &level, &index, 1), 1);
    uci_merkle_unmark(tree);
    cr_assert_eq(uci_merkle_marked(tree, &level, &index, 1), 0, "nothing stays marked");
    uci_merkle_destroy(tree);
}

/* One of 100,000: 5 levels of 16 nodes */
Test(merkle, descent_is_short)
{
    uci_merkle_t *tree = test_tree(100000, 16), *other = test_tree(100000, 16);
    size_t bad[1];
    test_cost_t cost;

    uci_merkle_set_leaf(tree, 77777, 0);
    cost = test_descend(tree, other, 30, bad);
    cr_assert_eq(cost.bad, 1);
    cr_assert_eq(bad[0], 77777);
    cr_assert_eq(cost.requests, 5);
    cr_assert_leq(cost.nodes, 5 * 16);
    uci_merkle_destroy(tree);
    uci_merkle_destroy(other);
}

/* A tree that says other things whenever it is asked: the descent ends, having asked for every node at most once */
Test(merkle, descent_into_lies)
{
    uci_merkle_t *tree = test_tree(1000, 4);
    size_t indexes[4], i, count, asked = 0;
    uint64_t values[4];
    unsigned level;

    uci_merkle_descend(tree);
    while ((count = uci_merkle_marked(tree, &level, indexes, 4)) > 0) {
        for (i = 0; i < count; ++i, ++asked) {
            values[0] = test_random();
            values[1] = test_random();
            values[2] = test_random();
            values[3] = test_random();
            cr_assert(uci_merkle_compare(tree, level, indexes[i], values));
        }
    }
    cr_assert_eq(asked, 250 + 63 + 16 + 4 + 1);
    uci_merkle_destroy(tree);
}

Test(merkle, descent_of_nodes_that_are_not)
{
    uci_merkle_t *tree = test_tree(10, 4), *leaf = test_tree(1, 4);
    uint64_t values[4] = {0};
    size_t indexes[4];
    unsigned level = 12345;

    cr_assert_eq(uci_merkle_arity(tree), 4);
    cr_assert_eq(uci_merkle_marked(tree, &level, indexes, 4), 0);
    cr_assert_eq(level, 12345, "output set only after success");
    cr_assert_not(uci_merkle_compare(tree, 2, 0, values), "not marked");
    uci_merkle_descend(tree);
    cr_assert_eq(uci_merkle_child_count(tree, 2, 0), 3);
    cr_assert_eq(uci_merkle_child_count(tree, 1, 2), 2);
    cr_assert_eq(uci_merkle_child_count(tree, 1, 3), 0);
    cr_assert_eq(uci_merkle_child_count(tree, 0, 0), 0);
    cr_assert_eq(uci_merkle_child_count(tree, 3, 0), 0);
    cr_assert_eq(uci_merkle_children(tree, 1, 3, values), 0);
    cr_assert_not(uci_merkle_compare(tree, 2, 1, values));
    cr_assert_not(uci_merkle_compare(tree, UINT_MAX, 0, values));
    cr_assert_not(uci_merkle_compare(tree, 0, 0, values));
    cr_assert_eq(uci_merkle_marked(tree, &level, indexes, 4), 1);
    cr_assert((level == 2) && (indexes[0] == 0));
    uci_merkle_unmark(tree);
    cr_assert_eq(uci_merkle_marked(tree, &level, indexes, 4), 0);

    uci_merkle_descend(leaf);
    cr_assert_eq(uci_merkle_marked(leaf, &level, indexes, 4), 0, "one leaf has no inner nodes");
    uci_merkle_destroy(tree);
    uci_merkle_destroy(leaf);
}

static size_t resident(void)
{
    unsigned long size, pages;
    FILE *file = fopen("/proc/self/statm", "r");

    cr_assert((file != NULL) && (fscanf(file, "%lu %lu", &size, &pages) == 2));
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* What a receive of a message of 2 GiB in chunks of 256 bytes has, of which nothing but its descriptor has come, and may be a lie */
Test(merkle, memory_that_is_not_used)
{
    const size_t leaves = (2ul << 30) / 256, before = resident();
    uci_merkle_t *tree;
    char *state;

    (void)mallopt(M_PERTURB, 0); /* which Meson sets: all would be written to */
    state = uci_zalloc(leaves * 9);
    cr_assert(state != NULL);
    cr_assert(uci_merkle_create(leaves, 2, &tree) == UCI_OK);
    cr_expect((state[0] == 0) && (state[(leaves * 9) - 1] == 0));
    cr_expect(resident() - before < 3ul << 20, "%zu bytes for what has not come", resident() - before);
    uci_merkle_destroy(tree);
    free(state);
}
