/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Manifests of uci_check and their leaves, and packed trees of libuci: whatever is read can be used. The first byte says what the rest is,
 * and whether its digest is made right, so that what lies behind that is reached.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_manifest.h"
#include "util/log.h"
#include "uci_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_manifest(const uci_check_manifest_t *manifest)
{
    size_t i;
    char *name;

    for (i = 0; i < manifest->list.count; ++i) {
        name = uci_check_escape(manifest->list.entries[i].name);
        if (!uci_check_unescape(name) || (strcmp(name, manifest->list.entries[i].name) != 0)) {
            abort();
        }
        free(name);
    }
    if (!uci_check_list_sort((uci_check_list_t *)&manifest->list) || (manifest->paths[manifest->paths_count] != NULL)) {
        abort();
    }
}

/* What follows a byte 0 are leaves */
static void try_manifest(const uint8_t *data, size_t size, int is_ended)
{
    const uint8_t *leaves = memchr(data, 0, size);
    size_t length = (leaves == NULL) ? size : (size_t)(leaves - data), words = 0;
    char *text = malloc(length + 64);
    uci_check_manifest_t manifest;
    uint64_t *copy;

    memcpy(text, data, length);
    text[length] = '\0';
    if (is_ended) {
        sprintf(text + length, "end %zu %016" PRIx64 "\n", (size_t)data[0] % 8,
                uci_digest_table[UCI_DIGEST_XXH3].digest(text, length));
        length = strlen(text);
    }
    if (uci_check_manifest_parse(text, length, &manifest) == NULL) {
        use_manifest(&manifest);
        words = (leaves == NULL) ? 0 : (size - (size_t)(leaves - data) - 1) / 8;
        copy  = calloc(words + 1, 8);
        if (words > 0) {
            memcpy(copy, leaves + 1, words * 8);
        }
        if (is_ended && (words > 2)) {
            copy[1] = words - 3;
            copy[2] = manifest.digest;
        }
        uci_check_manifest_take_leaves(&manifest, copy, words);
        free(copy);
    }
    uci_check_manifest_cleanup(&manifest);
}

static void try_tree(const uint8_t *data, size_t size)
{
    uci_tree_t *tree;
    size_t length;
    uint8_t *again;

    if (uci_tree_unpack(data, size, &tree) != UCI_OK) {
        return;
    }
    if ((uci_tree_pack(tree, NULL, 0, &length) != UCI_OK) || (length != size)) {
        abort();
    }
    again = malloc(length);
    if ((uci_tree_pack(tree, again, length, &length) != UCI_OK) || (memcmp(again, data, size) != 0)) {
        abort();
    }
    free(again);
    uci_tree_destroy(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uci_log_level = UCI_LOG_FATAL;
    if (size < 2) {
        return 0;
    }
    if (data[0] % 4 == 0) {
        try_tree(data + 1, size - 1);
    } else {
        try_manifest(data + 1, size - 1, data[0] & 1);
    }
    return 0;
}
