/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The public functions of uci.h over core's trees: names, checks of what programs give, and nothing else.
 */
#include "uci_tree.h"
#include "util/log.h"
#include "tree/merkle_build.h"
#include "util/ranges.h"

#include <omp.h>

_Static_assert(UCI_TREE_MESSAGE_MAX == UCI_MERKLE_MESSAGE_MAX, "uci.h tells how long messages are");

static const uci_tree_params_t uci_tree_defaults = {0, UCI_TREE_DIGEST_DEFAULT, UCI_TREE_CHUNK_SIZE_DEFAULT,
                                                    UCI_TREE_ARITY_DEFAULT, 0};

static uci_tree_params_t uci_tree_params_of(const uci_tree_params_t *given)
{
    uci_tree_params_t params = uci_tree_defaults;
    uint64_t mask            = (given == NULL) ? 0 : given->field_mask;

    if (mask & UCI_TREE_PARAM_FIELD_DIGEST) {
        params.digest = given->digest;
    }
    if (mask & UCI_TREE_PARAM_FIELD_CHUNK_SIZE) {
        params.chunk_size = given->chunk_size;
    }
    if (mask & UCI_TREE_PARAM_FIELD_ARITY) {
        params.arity = given->arity;
    }
    if (mask & UCI_TREE_PARAM_FIELD_THREADS) {
        params.threads = given->threads;
    }
    if (params.threads == 0) {
        params.threads = (unsigned)omp_get_max_threads();
    }
    return params;
}

/* A field that is not known here must not be left out without a word */
static uci_status_t uci_tree_check_mask(const uci_tree_params_t *given)
{
    static const uint64_t known = UCI_TREE_PARAM_FIELD_DIGEST | UCI_TREE_PARAM_FIELD_CHUNK_SIZE |
                                  UCI_TREE_PARAM_FIELD_ARITY | UCI_TREE_PARAM_FIELD_THREADS;

    if ((given != NULL) && (given->field_mask & ~known)) {
        uci_error("field_mask 0x%llx of a tree has fields that this libuci does not know",
                  (unsigned long long)given->field_mask);
        return UCI_ERR_INVALID_PARAM;
    }
    return UCI_OK;
}

static uci_status_t uci_tree_check(const uci_tree_params_t *params, const void *buffer, size_t length)
{
    const uci_digest_ops_t *digest = (params->digest == NULL) ? NULL : uci_digest_find(params->digest);

    if ((digest == NULL) || (digest->id == UCI_DIGEST_NONE)) {
        uci_error("there is no digest '%s' for a tree", (params->digest == NULL) ? "(null)" : params->digest);
        return UCI_ERR_INVALID_PARAM;
    }
    if ((params->chunk_size < UCI_TREE_CHUNK_SIZE_MIN) || (params->chunk_size > UCI_TREE_CHUNK_SIZE_MAX)) {
        uci_error("a tree in chunks of %zu bytes is not possible: %d to %zu", params->chunk_size,
                  UCI_TREE_CHUNK_SIZE_MIN, UCI_TREE_CHUNK_SIZE_MAX);
        return UCI_ERR_INVALID_PARAM;
    }
    if (((buffer == NULL) && (length > 0)) || (length > UCI_MERKLE_LENGTH_MAX)) {
        uci_error("a tree of %zu bytes at %p is not possible", length, buffer);
        return UCI_ERR_INVALID_PARAM;
    }
    return UCI_OK;
}

uci_status_t uci_tree_build(const void *buffer, size_t length, const uci_tree_params_t *given, uci_tree_t **tree_p)
{
    uci_tree_params_t params = uci_tree_params_of(given);
    uci_status_t status      = uci_tree_check_mask(given);
    uci_merkle_side_t side   = {.length = length, .chunk_size = params.chunk_size};
    const uci_digest_ops_t *digest;

    if (status == UCI_OK) {
        status = uci_tree_check(&params, buffer, length);
    }
    if (status != UCI_OK) {
        return status;
    }
    digest      = uci_digest_find(params.digest);
    side.digest = digest->id;
    status      = uci_merkle_build(digest, buffer, length, params.chunk_size, params.arity, params.threads, &side.tree);
    return (status == UCI_OK) ? uci_tree_new(&side, tree_p) : status;
}

uci_status_t uci_tree_update(uci_tree_t *tree, const void *buffer, size_t offset, size_t length)
{
    const uci_merkle_side_t *side  = &tree->side;
    const uci_digest_ops_t *digest = uci_digest_by_id(side->digest);
    size_t chunk, begin;

    if ((offset > side->length) || (length > side->length - offset)) {
        uci_error("%zu bytes at %zu are not within the %llu of this tree", length, offset,
                  (unsigned long long)side->length);
        return UCI_ERR_INVALID_PARAM;
    }
    for (chunk = offset / side->chunk_size; (length > 0) && (chunk * side->chunk_size < offset + length); ++chunk) {
        begin = chunk * side->chunk_size;
        uci_merkle_set_leaf(
                side->tree, chunk,
                digest->digest((const uint8_t *)buffer + begin, uci_min(side->chunk_size, side->length - begin)));
    }
    return UCI_OK;
}

uint64_t uci_tree_root(uci_tree_t *tree)
{
    return uci_merkle_side_root(&tree->side);
}

uint64_t uci_tree_length(const uci_tree_t *tree)
{
    return tree->side.length;
}

size_t uci_tree_chunk_size(const uci_tree_t *tree)
{
    return tree->side.chunk_size;
}

static void uci_tree_differ(void *arg, uint64_t offset, uint64_t length)
{
    uci_ranges_add(arg, offset, length);
}

/* What the caller gave is kept, all else is written */
static void uci_tree_set_result(uci_tree_result_t *result, const uci_ranges_t *found,
                                const uci_merkle_exchange_result_t *exchanged)
{
    *result = (uci_tree_result_t){.ranges      = result->ranges,
                                  .max         = result->max,
                                  .count       = found->count,
                                  .bytes       = found->bytes,
                                  .peer_length = exchanged->peer_length,
                                  .sent        = exchanged->sent,
                                  .received    = exchanged->received,
                                  .rounds      = exchanged->rounds};
}

uci_status_t uci_tree_compare(const uci_tree_t *tree, const uci_tree_t *other, uci_tree_result_t *result)
{
    uci_merkle_exchange_result_t exchanged = {.peer_length = other->side.length};
    unsigned arity = uci_merkle_arity(tree->side.tree), other_arity = uci_merkle_arity(other->side.tree);
    uci_ranges_t found;

    if ((tree->side.chunk_size != other->side.chunk_size) || (tree->side.digest != other->side.digest) ||
        (arity != other_arity)) {
        uci_error(
                "trees with chunks of %llu and %llu bytes, digests %u and %u, %u and %u children a node, can't be compared",
                (unsigned long long)tree->side.chunk_size, (unsigned long long)other->side.chunk_size,
                (unsigned)tree->side.digest, (unsigned)other->side.digest, arity, other_arity);
        return UCI_ERR_UNSUPPORTED;
    }
    uci_ranges_init(&found, result->ranges, result->max);
    uci_merkle_side_compare(&tree->side, &other->side, uci_tree_differ, &found);
    uci_tree_set_result(result, &found, &exchanged);
    return UCI_OK;
}

typedef struct uci_tree_transport {
    const uci_exchange_ops_t *ops;
    void *arg;
} uci_tree_transport_t;

static uci_status_t uci_tree_move(const uci_tree_transport_t *transport, const void *out, size_t out_length, void *in,
                                  size_t in_max, size_t *in_length_p)
{
    const uci_exchange_ops_t *ops = transport->ops;
    uci_status_t status;

    if (ops->exchange != NULL) {
        return ops->exchange(transport->arg, out, out_length, in, in_max, in_length_p);
    }
    if (ops->sends_first) {
        status = ops->send(transport->arg, out, out_length);
        return (status == UCI_OK) ? ops->recv(transport->arg, in, in_max, in_length_p) : status;
    }
    status = ops->recv(transport->arg, in, in_max, in_length_p);
    return (status == UCI_OK) ? ops->send(transport->arg, out, out_length) : status;
}

static uci_status_t uci_tree_swap(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                                  size_t *in_length_p)
{
    uci_status_t status = uci_tree_move(arg, out, out_length, in, in_max, in_length_p);

    if (status != UCI_OK) {
        uci_error("comparison of trees: the program's transport has failed: %s", uci_status_string(status));
    }
    return (status > 0) ? UCI_ERR_IO : status;
}

uci_status_t uci_tree_compare_with(uci_tree_t *tree, const uci_exchange_ops_t *ops, void *arg,
                                   uci_tree_result_t *result)
{
    uci_tree_transport_t transport = {ops, arg};
    uci_merkle_exchange_result_t exchanged;
    uci_ranges_t found;
    uci_status_t status;

    if ((ops->size < sizeof(*ops)) || ((ops->exchange == NULL) && ((ops->send == NULL) || (ops->recv == NULL)))) {
        uci_error(
                "comparison of trees: neither exchange nor send and recv are given, or size is not that of uci_exchange_ops_t");
        return UCI_ERR_INVALID_PARAM;
    }
    uci_ranges_init(&found, result->ranges, result->max);
    status = uci_merkle_exchange(&tree->side, uci_tree_swap, &transport, uci_tree_differ, &found, &exchanged);
    uci_tree_set_result(result, &found, &exchanged);
    return status;
}

const char *uci_tree_status_string(uci_status_t status)
{
    return uci_status_string(status);
}
