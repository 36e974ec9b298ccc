/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Trees as bytes, to be stored or sent; and how all trees begin and end.
 */
#include "uci_tree.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

#define UCI_TREE_PACKED_MAGIC 0x3145455254494355ull /* "UCITREE1"; reads otherwise where bytes have another order */

typedef struct uci_tree_packed {
    uint64_t magic;
    uint64_t length; /* of the data */
    uint64_t chunk_size;
    uint32_t digest;
    uint32_t arity;
    uint64_t seal; /* digest of all this with 0 here, and of the leaves that follow */
} uci_tree_packed_t;

uci_status_t uci_tree_new(const uci_merkle_side_t *side, uci_tree_t **tree_p)
{
    uci_tree_t *tree = malloc(sizeof(*tree));

    if (tree == NULL) {
        uci_error("failed to allocate a tree");
        uci_merkle_destroy(side->tree);
        return UCI_ERR_NO_MEMORY;
    }
    tree->side = *side;
    *tree_p    = tree;
    return UCI_OK;
}

void uci_tree_destroy(uci_tree_t *tree)
{
    if (tree != NULL) {
        uci_merkle_destroy(tree->side.tree);
        free(tree);
    }
}

/* Of header and leaves without a copy of these */
static uint64_t uci_tree_seal(const uci_tree_packed_t *head, const void *leaves, size_t length)
{
    const uci_digest_ops_t *digest = &uci_digest_table[UCI_DIGEST_XXH3];
    uci_tree_packed_t unsealed     = *head;
    uint64_t both[2];

    unsealed.seal = 0;
    both[0]       = digest->digest(&unsealed, sizeof(unsealed));
    both[1]       = digest->digest(leaves, length);
    return digest->digest(both, sizeof(both));
}

uci_status_t uci_tree_pack(const uci_tree_t *tree, void *packed, size_t size, size_t *length_p)
{
    const uci_merkle_side_t *side = &tree->side;
    size_t leaves                 = uci_merkle_level_size(side->tree, 0), i;
    uci_tree_packed_t head        = {.magic      = UCI_TREE_PACKED_MAGIC,
                                     .length     = side->length,
                                     .chunk_size = side->chunk_size,
                                     .digest     = side->digest,
                                     .arity      = uci_merkle_arity(side->tree)};
    uint8_t *out                  = (uint8_t *)packed + sizeof(head);
    uint64_t leaf;

    *length_p = sizeof(head) + (leaves * sizeof(leaf));
    if (packed == NULL) {
        return UCI_OK;
    }
    if (size < *length_p) {
        uci_error("a packed tree takes %zu bytes, not %zu", *length_p, size);
        return UCI_ERR_INVALID_PARAM;
    }
    for (i = 0; i < leaves; ++i) {
        leaf = uci_merkle_leaf(side->tree, i);
        memcpy(out + (i * sizeof(leaf)), &leaf, sizeof(leaf));
    }
    head.seal = uci_tree_seal(&head, out, leaves * sizeof(leaf));
    memcpy(packed, &head, sizeof(head));
    return UCI_OK;
}

/* @return whether this is a packed tree, as a whole and undamaged. */
static bool uci_tree_is_packed(const uci_tree_packed_t *head, const void *leaves, size_t leaves_length)
{
    return (head->magic == UCI_TREE_PACKED_MAGIC) && (head->length <= UCI_MERKLE_LENGTH_MAX) &&
           (head->chunk_size >= UCI_TREE_CHUNK_SIZE_MIN) && (head->chunk_size <= UCI_TREE_CHUNK_SIZE_MAX) &&
           (head->arity >= UCI_MERKLE_ARITY_MIN) && (head->arity <= UCI_MERKLE_ARITY_MAX) &&
           (head->digest != UCI_DIGEST_NONE) && (uci_digest_by_id(head->digest) != NULL) &&
           (leaves_length % sizeof(uint64_t) == 0) &&
           (leaves_length / sizeof(uint64_t) == uci_merkle_chunks(head->length, head->chunk_size)) &&
           (uci_tree_seal(head, leaves, leaves_length) == head->seal);
}

uci_status_t uci_tree_unpack(const void *packed, size_t length, uci_tree_t **tree_p)
{
    const uint8_t *in = (const uint8_t *)packed + sizeof(uci_tree_packed_t);
    uci_merkle_side_t side;
    uci_tree_packed_t head;
    uci_status_t status;
    size_t leaves, i;
    uint64_t leaf;

    if (length >= sizeof(head)) {
        memcpy(&head, packed, sizeof(head));
    }
    if ((length < sizeof(head)) || !uci_tree_is_packed(&head, in, length - sizeof(head))) {
        uci_error("these %zu bytes are not a packed tree, or a damaged one", length);
        return UCI_ERR_CORRUPT;
    }
    side = (uci_merkle_side_t){
            .length = head.length, .chunk_size = head.chunk_size, .digest = (uci_digest_id_t)head.digest};
    leaves = (length - sizeof(head)) / sizeof(leaf);
    status = uci_merkle_create(leaves, head.arity, &side.tree);
    if (status != UCI_OK) {
        return status;
    }
    for (i = 0; i < leaves; ++i) {
        memcpy(&leaf, in + (i * sizeof(leaf)), sizeof(leaf));
        uci_merkle_set_leaf(side.tree, i, leaf);
    }
    return uci_tree_new(&side, tree_p);
}
