/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Trees of whole buffers: the same with any number of threads as leaf by leaf.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>

#include "util/machine.h"
#include "tree/merkle_build.h"

#define LARGE ((size_t)3 << 20)

static uint8_t *make_data(void)
{
    uint8_t *data = malloc(LARGE);
    size_t i;

    cr_assert_not_null(data);
    for (i = 0; i < LARGE; ++i) {
        data[i] = (uint8_t)((i * 2654435761u) >> 11);
    }
    return data;
}

static uint64_t root_by_leaves(const uint8_t *data, size_t length, size_t chunk)
{
    size_t leaves = (length == 0) ? 1 : (length + chunk - 1) / chunk, i;
    uci_merkle_t *tree;
    uint64_t root;

    cr_assert_eq(uci_merkle_create(leaves, 16, &tree), UCI_OK);
    for (i = 0; i < leaves; ++i) {
        uci_merkle_set_leaf(
                tree, i,
                uci_digest_table[UCI_DIGEST_XXH3].digest(data + i * chunk, uci_min(chunk, length - i * chunk)));
    }
    root = uci_merkle_root(tree, 7, length, chunk);
    uci_merkle_destroy(tree);
    return root;
}

Test(merkle_build, same_as_leaf_by_leaf)
{
    static const size_t lengths[] = {
            0, 1, 100, 65536, 65537, UCI_MERKLE_PARALLEL_MIN - 1, UCI_MERKLE_PARALLEL_MIN, LARGE - 1, LARGE};
    static const size_t chunks[] = {256, 4096, 65536, 2 * LARGE};
    uint8_t *data                = make_data();
    uci_merkle_t *tree;
    unsigned threads;
    size_t i, j;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        for (j = 0; j < uci_array_size(chunks); ++j) {
            for (threads = 0; threads <= 3; ++threads) {
                cr_assert_eq(uci_merkle_build(&uci_digest_table[UCI_DIGEST_XXH3], data, lengths[i], chunks[j], 16,
                                              threads, &tree),
                             UCI_OK);
                cr_expect_eq(uci_merkle_root(tree, 7, lengths[i], chunks[j]),
                             root_by_leaves(data, lengths[i], chunks[j]), "%zu bytes in %zu, %u threads", lengths[i],
                             chunks[j], threads);
                uci_merkle_destroy(tree);
            }
        }
    }
    free(data);
}

Test(merkle_build, bad_parameters)
{
    uci_merkle_t *tree = NULL;

    cr_expect_eq(uci_merkle_build(&uci_digest_table[UCI_DIGEST_XXH3], "a", 1, 0, 16, 0, &tree), UCI_ERR_INVALID_PARAM);
    cr_expect_eq(uci_merkle_build(&uci_digest_table[UCI_DIGEST_XXH3], "a", 1, 1, 1, 0, &tree), UCI_ERR_INVALID_PARAM);
    cr_expect_null(tree);
}

Test(merkle_build, never_more_threads_than_cores)
{
    cpu_set_t one;
    unsigned cpu = 0;

    cr_expect_eq(uci_merkle_build_threads(UCI_MERKLE_PARALLEL_MIN - 1, 4096, 0), 1);
    cr_expect_eq(uci_merkle_build_threads(1 << 30, 4096, 0), uci_machine_cores_usable());
    cr_expect_eq(uci_merkle_build_threads(1 << 30, 4096, 100000), uci_machine_cores_usable());
    cr_expect_eq(uci_merkle_build_threads(1 << 30, 4096, 1), 1);
    cr_expect_eq(uci_merkle_build_threads(1 << 30, 1 << 30, 0), 1, "one chunk");

    cr_assert_eq(sched_getaffinity(0, sizeof(one), &one), 0);
    while (!CPU_ISSET(cpu, &one)) {
        ++cpu;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    cr_expect_eq(uci_merkle_build_threads(1 << 30, 4096, 0), 1);
}
