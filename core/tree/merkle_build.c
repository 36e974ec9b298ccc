/* SPDX-License-Identifier: BSD-3-Clause */
#include "merkle_build.h"
#include "util/log.h"
#include "util/machine.h"

#include <stdlib.h>

unsigned uci_merkle_build_threads(size_t length, size_t chunk_size, unsigned threads)
{
    unsigned usable = uci_machine_cores_usable();

    if (length < UCI_MERKLE_PARALLEL_MIN) {
        return 1;
    }
    threads = ((threads == 0) || (threads > usable)) ? usable : threads;
    return (unsigned)uci_min((size_t)threads, uci_div_up(length, chunk_size));
}

uci_status_t uci_merkle_build(const uci_digest_ops_t *digest, const void *data, size_t length, size_t chunk_size,
                              unsigned arity, unsigned threads, uci_merkle_t **tree_p)
{
    uci_merkle_t *tree;
    uci_status_t status;
    uint64_t *values;
    size_t leaves, i;

    if (chunk_size == 0) {
        uci_error("merkle tree in chunks of 0 bytes is not possible");
        return UCI_ERR_INVALID_PARAM;
    }

    leaves = uci_max(uci_div_up(length, chunk_size), (size_t)1);
    status = uci_merkle_create(leaves, arity, &tree);
    if (status != UCI_OK) {
        return status;
    }
    values = malloc(leaves * sizeof(*values));
    if (values == NULL) {
        uci_error("failed to allocate the digests of %zu chunks", leaves);
        uci_merkle_destroy(tree);
        return UCI_ERR_NO_MEMORY;
    }

    threads = uci_merkle_build_threads(length, chunk_size, threads);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (i = 0; i < leaves; ++i) {
        values[i] = digest->digest((const uint8_t *)data + i * chunk_size,
                                   uci_min(chunk_size, length - i * chunk_size));
    }
    for (i = 0; i < leaves; ++i) {
        uci_merkle_set_leaf(tree, i, values[i]); /* leaves share words of bits: one thread */
    }
    free(values);
    *tree_p = tree;
    return UCI_OK;
}
