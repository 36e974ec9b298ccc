/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer that lies to a comparison of trees, or to uci_check over two hosts: every message comes from the fuzzer, with its seal made right
 * (a peer can do that), and as often with headers that fit what this side sent. Whatever it says, the comparison ends, and tells of
 * no range that is not this side's or the one that only the peer claims to have.
 */
#include <stdlib.h>
#include <string.h>

#include "check/check_peer.h"
#include "util/log.h"

#define CHUNKS 300
#define CHUNK  4096
#define FILES  20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    const uint8_t *data;
    size_t left;
    unsigned rounds;
} liar_t;

static uint8_t next_byte(liar_t *liar)
{
    if (liar->left == 0) {
        return 0;
    }
    --liar->left;
    return *liar->data++;
}

static uint64_t hash(const void *data, size_t length)
{
    return uci_digest_table[UCI_DIGEST_XXH3].digest(data, length);
}

/* The seals of core/tree/merkle_exchange.c (24 bytes of header, seal last) and of check_peer.c (seal first) */
static void seal(uint8_t *message, size_t length, int is_hail)
{
    uint64_t value = 0;

    if (is_hail && (length > 8)) {
        value = hash(message + 8, length - 8);
        memcpy(message, &value, 8);
    } else if (!is_hail && (length >= 24)) {
        memcpy(message + 16, &value, 8);
        value = hash(message, length);
        memcpy(message + 16, &value, 8);
    }
}

/* An echo of what was sent, with some bytes changed, longer or shorter; nothing left to say: a plain echo */
static uci_status_t lie(void *arg, const void *out, size_t out_length, void *in, size_t in_max, size_t *in_length_p)
{
    liar_t *liar   = arg;
    uint8_t how    = next_byte(liar);
    size_t length  = out_length, i, place;
    uint8_t *bytes = in;

    if (++liar->rounds > 10000) {
        abort(); /* it must end */
    }
    if (how & 0x40) {
        length = next_byte(liar) | ((size_t)next_byte(liar) << 8);
    }
    if (length > in_max) {
        length = in_max;
    }
    memset(bytes, 0, length);
    memcpy(bytes, out, (length < out_length) ? length : out_length);
    for (i = 0; i < (how & 7u); ++i) {
        place = next_byte(liar) | ((how & 8) ? (size_t)next_byte(liar) << 8 : 0);
        if (place < length) {
            bytes[place] = next_byte(liar);
        }
    }
    if (how & 0x10) {
        seal(bytes, length, how & 0x20);
    }
    *in_length_p = length;
    return ((how & 0x87) == 0x87) ? UCI_ERR_IO : UCI_OK;
}

typedef struct {
    uint64_t end;
    unsigned count;
} ranges_t;

static void differ(void *arg, uint64_t offset, uint64_t length)
{
    ranges_t *ranges = arg;

    if ((offset < ranges->end) || (length == 0) || (++ranges->count > CHUNKS + 1)) {
        abort();
    }
    ranges->end = offset + length;
}

static void try_trees(liar_t *liar, unsigned arity)
{
    uci_merkle_side_t side = {.length = (CHUNKS * CHUNK) - 5, .chunk_size = CHUNK, .digest = UCI_DIGEST_XXH3};
    uci_merkle_exchange_result_t result;
    ranges_t ranges = {0};
    size_t i;

    if (uci_merkle_create(CHUNKS, arity, &side.tree) != UCI_OK) {
        abort();
    }
    for (i = 0; i < CHUNKS; ++i) {
        uci_merkle_set_leaf(side.tree, i, hash(&i, sizeof(i)));
    }
    uci_merkle_exchange(&side, lie, liar, differ, &ranges, &result);
    uci_merkle_destroy(side.tree);
}

static void make_list(uci_check_list_t *list)
{
    uci_check_entry_t *entry;
    size_t i;

    for (i = 0; i < FILES; ++i) {
        entry          = uci_check_list_add(list);
        entry->type    = (i % 5 == 4) ? UCI_CHECK_FOLDER : UCI_CHECK_FILE;
        entry->length  = (entry->type == UCI_CHECK_FILE) ? i * 10000 : 0;
        entry->root    = hash(&i, sizeof(i));
        entry->path    = calloc(1, 8);
        entry->name    = entry->path;
        entry->name[0] = (char)('a' + i);
    }
    if (!uci_check_list_sort(list)) {
        abort();
    }
    uci_check_list_make_leaves(list);
}

static void try_lists(liar_t *liar, int is_asker)
{
    uci_check_form_t form   = {uci_digest_by_id(UCI_DIGEST_XXH3), CHUNK, 16};
    uci_check_wire_t wire   = {lie, liar};
    uci_check_diffs_t diffs = {0};
    uci_check_list_t own, subset, theirs;

    uci_check_list_init(&own, &form);
    uci_check_list_init(&subset, &form);
    uci_check_list_init(&theirs, &form);
    make_list(&own);
    uci_check_peer_compare(&wire, &own, is_asker, is_asker, &subset, &theirs, &diffs);
    uci_check_diffs_cleanup(&diffs);
    uci_check_list_cleanup(&subset);
    uci_check_list_cleanup(&theirs);
    uci_check_list_cleanup(&own);
}

static void try_request(liar_t *liar)
{
    static uci_check_request_t request;
    uci_check_wire_t wire = {lie, liar};

    if ((uci_check_be_asked(&wire, &request) == UCI_OK) &&
        ((memchr(request.path, '\0', sizeof(request.path)) == NULL) || (request.path[0] == '\0') ||
         (request.form.chunk_size < UCI_CHECK_CHUNK_SIZE_MIN) || (request.form.digest == NULL))) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    liar_t liar  = {data, size, 0};
    uint8_t what = next_byte(&liar);

    uci_log_level = UCI_LOG_FATAL;
    if (what % 4 == 0) {
        try_trees(&liar, 2 + (what / 4));
    } else if (what % 4 == 1) {
        try_request(&liar);
    } else {
        try_lists(&liar, what & 1);
    }
    return 0;
}
