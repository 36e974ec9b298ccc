/* SPDX-License-Identifier: BSD-3-Clause */
#include "merkle_exchange.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

#define UCI_EXCHANGE_MAGIC   0x78494355u /* "UCIx"; reads otherwise where bytes have another order */
#define UCI_EXCHANGE_VERSION 1

typedef enum { UCI_EXCHANGE_HELLO = 1, UCI_EXCHANGE_NODES = 2, UCI_EXCHANGE_END = 3 } uci_exchange_kind_t;

enum {
    UCI_EXCHANGE_HELLO_LENGTH,
    UCI_EXCHANGE_HELLO_CHUNK_SIZE,
    UCI_EXCHANGE_HELLO_FORM, /* digest, arity above it */
    UCI_EXCHANGE_HELLO_ROOT,
    UCI_EXCHANGE_HELLO_WORDS
};

enum { UCI_EXCHANGE_END_STATUS, UCI_EXCHANGE_END_DIFFER, UCI_EXCHANGE_END_FOUND, UCI_EXCHANGE_END_WORDS };

typedef struct uci_exchange_head {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint32_t round; /* messages sent before this one */
    uint32_t words; /* that follow */
    uint64_t seal;  /* digest of the message with 0 here */
} uci_exchange_head_t;

typedef struct uci_exchange_message {
    uci_exchange_head_t head;
    uint64_t words[UCI_MERKLE_MESSAGE_WORDS];
} uci_exchange_message_t;

_Static_assert(sizeof(uci_exchange_message_t) == UCI_MERKLE_MESSAGE_MAX, "messages are as long as the header says");

typedef struct uci_exchange {
    const uci_merkle_side_t *side;
    uci_merkle_t *tree; /* as far as both sides reach: the side's own, or one made for this */
    uint64_t common;    /* leaves of it */
    uint64_t end;       /* length of the longer side */
    uci_merkle_swap_func_t swap;
    void *swap_arg;
    uci_merkle_differ_func_t differ;
    void *differ_arg;
    uci_merkle_exchange_result_t result;
    uint64_t found; /* digest of all ranges found */
    bool is_over;   /* the transport has failed, or the peer has sent its END: no more messages */
    uci_exchange_message_t out, in;
} uci_exchange_t;

static uint64_t uci_exchange_hash(const void *data, size_t length)
{
    return uci_digest_table[UCI_DIGEST_XXH3].digest(data, length);
}

static uint64_t uci_exchange_seal(uci_exchange_message_t *message)
{
    uint64_t kept = message->head.seal, seal;

    message->head.seal = 0;
    seal               = uci_exchange_hash(message, sizeof(message->head) + (message->head.words * sizeof(uint64_t)));
    message->head.seal = kept;
    return seal;
}

static void uci_exchange_differ(uci_exchange_t *exchange, uint64_t offset, uint64_t length)
{
    uint64_t words[3] = {exchange->found, offset, length};

    if (length == 0) {
        return;
    }
    exchange->found = uci_exchange_hash(words, sizeof(words));
    exchange->result.differ += length;
    if (exchange->differ != NULL) {
        exchange->differ(exchange->differ_arg, offset, length);
    }
}

static void uci_exchange_differ_chunk(uci_exchange_t *exchange, uint64_t chunk)
{
    uint64_t offset = chunk * exchange->side->chunk_size;

    uci_exchange_differ(exchange, offset, uci_min(exchange->side->chunk_size, exchange->end - offset));
}

/* What lies behind the chunks that both sides have */
static void uci_exchange_differ_tail(uci_exchange_t *exchange)
{
    uint64_t offset = exchange->common * exchange->side->chunk_size;

    if (exchange->end > offset) {
        uci_exchange_differ(exchange, offset, exchange->end - offset);
    }
}

/* @return NULL, or what is wrong with the message received. */
static const char *uci_exchange_wrong(uci_exchange_message_t *in, size_t length)
{
    if ((length < sizeof(in->head)) || (length > sizeof(*in))) {
        return "its length is wrong";
    }
    if (in->head.magic != UCI_EXCHANGE_MAGIC) {
        return "it is not a message of this protocol, or of a machine with another order of bytes";
    }
    if (in->head.version != UCI_EXCHANGE_VERSION) {
        return "it is of another version of this protocol";
    }
    if (length != sizeof(in->head) + ((size_t)in->head.words * sizeof(uint64_t))) {
        return "its length is not what its header says";
    }
    return (uci_exchange_seal(in) == in->head.seal) ? NULL : "it is damaged";
}

static uci_status_t uci_exchange_peer_ended(uci_exchange_t *exchange)
{
    const uci_exchange_message_t *in = &exchange->in;

    exchange->is_over = true;
    uci_error("comparison of trees: the other side has given up: %s",
              (in->head.words != UCI_EXCHANGE_END_WORDS)
                      ? "it does not say why"
                      : uci_status_string((uci_status_t)(int64_t)in->words[UCI_EXCHANGE_END_STATUS]));
    return UCI_ERR_CORRUPT;
}

/* Send @a words words of exchange->out, and receive as many into exchange->in */
static uci_status_t uci_exchange_swap(uci_exchange_t *exchange, uci_exchange_kind_t kind, size_t words)
{
    size_t out_length           = sizeof(exchange->out.head) + (words * sizeof(uint64_t));
    size_t in_length            = 0;
    uci_exchange_message_t *out = &exchange->out, *in = &exchange->in;
    uci_status_t status;
    const char *wrong;

    out->head      = (uci_exchange_head_t){.magic   = UCI_EXCHANGE_MAGIC,
                                           .version = UCI_EXCHANGE_VERSION,
                                           .kind    = (uint16_t)kind,
                                           .round   = exchange->result.rounds,
                                           .words   = (uint32_t)words};
    out->head.seal = uci_exchange_seal(out);
    status         = exchange->swap(exchange->swap_arg, out, out_length, in, sizeof(*in), &in_length);
    if (status != UCI_OK) {
        exchange->is_over = true;
        return status;
    }
    exchange->result.sent += out_length;
    exchange->result.received += in_length;

    wrong = uci_exchange_wrong(in, in_length);
    if ((wrong == NULL) && (in->head.kind == UCI_EXCHANGE_END) && (kind != UCI_EXCHANGE_END)) {
        return uci_exchange_peer_ended(exchange);
    }
    if ((wrong == NULL) &&
        ((in->head.kind != kind) || (in->head.round != out->head.round) || (in->head.words != words))) {
        wrong = "it is not the one that comes next";
    }
    ++exchange->result.rounds;
    if (wrong != NULL) {
        uci_error("comparison of trees: message %u of the other side is not taken: %s", out->head.round, wrong);
        return UCI_ERR_CORRUPT;
    }
    return UCI_OK;
}

static uint64_t uci_exchange_form(const uci_merkle_side_t *side)
{
    return (uint64_t)side->digest | ((uint64_t)uci_merkle_arity(side->tree) << 32);
}

/* @param same_p  the roots, which bind all else, are equal */
static uci_status_t uci_exchange_hello(uci_exchange_t *exchange, bool *same_p)
{
    const uci_merkle_side_t *side = exchange->side;
    uint64_t *out = exchange->out.words, *in = exchange->in.words;
    uci_status_t status;

    out[UCI_EXCHANGE_HELLO_LENGTH]     = side->length;
    out[UCI_EXCHANGE_HELLO_CHUNK_SIZE] = side->chunk_size;
    out[UCI_EXCHANGE_HELLO_FORM]       = uci_exchange_form(side);
    out[UCI_EXCHANGE_HELLO_ROOT]       = uci_merkle_side_root(side);
    status                             = uci_exchange_swap(exchange, UCI_EXCHANGE_HELLO, UCI_EXCHANGE_HELLO_WORDS);
    if (status != UCI_OK) {
        return status;
    }
    if ((in[UCI_EXCHANGE_HELLO_CHUNK_SIZE] != out[UCI_EXCHANGE_HELLO_CHUNK_SIZE]) ||
        (in[UCI_EXCHANGE_HELLO_FORM] != out[UCI_EXCHANGE_HELLO_FORM])) {
        uci_error(
                "comparison of trees: the other side's has chunks of %llu bytes, digest %u, arity %u; here %llu, %u, %u: "
                "they must be the same",
                (unsigned long long)in[UCI_EXCHANGE_HELLO_CHUNK_SIZE], (unsigned)in[UCI_EXCHANGE_HELLO_FORM],
                (unsigned)(in[UCI_EXCHANGE_HELLO_FORM] >> 32), (unsigned long long)side->chunk_size,
                (unsigned)side->digest, uci_merkle_arity(side->tree));
        return UCI_ERR_UNSUPPORTED;
    }
    if (in[UCI_EXCHANGE_HELLO_LENGTH] > UCI_MERKLE_LENGTH_MAX) {
        uci_error("comparison of trees: the other side claims to have %llu bytes",
                  (unsigned long long)in[UCI_EXCHANGE_HELLO_LENGTH]);
        return UCI_ERR_CORRUPT;
    }
    exchange->result.peer_length = in[UCI_EXCHANGE_HELLO_LENGTH];
    exchange->end                = uci_max(side->length, exchange->result.peer_length);
    *same_p                      = (in[UCI_EXCHANGE_HELLO_ROOT] == out[UCI_EXCHANGE_HELLO_ROOT]) &&
              (exchange->result.peer_length == side->length);
    return UCI_OK;
}

/* The tree of the chunks that both sides have */
static uci_status_t uci_exchange_make_common(uci_exchange_t *exchange)
{
    const uci_merkle_side_t *side = exchange->side;
    uint64_t own                  = uci_merkle_level_size(side->tree, 0), i;
    uci_status_t status;

    exchange->common = uci_min(own, uci_merkle_chunks(exchange->result.peer_length, side->chunk_size));
    if (exchange->common == own) {
        exchange->tree = side->tree;
        return UCI_OK;
    }
    status = uci_merkle_create(exchange->common, uci_merkle_arity(side->tree), &exchange->tree);
    for (i = 0; (status == UCI_OK) && (i < exchange->common); ++i) {
        uci_merkle_set_leaf(exchange->tree, i, uci_merkle_leaf(side->tree, i));
    }
    return status;
}

/* A tree of one leaf has no inner node to begin with */
static uci_status_t uci_exchange_only_leaf(uci_exchange_t *exchange)
{
    uci_status_t status;

    exchange->out.words[0] = uci_merkle_leaf(exchange->tree, 0);
    status                 = uci_exchange_swap(exchange, UCI_EXCHANGE_NODES, 1);
    if ((status == UCI_OK) && (exchange->in.words[0] != exchange->out.words[0])) {
        uci_exchange_differ_chunk(exchange, 0);
    }
    return status;
}

static void uci_exchange_compare_node(uci_exchange_t *exchange, unsigned level, size_t index, const uint64_t *own,
                                      const uint64_t *values)
{
    size_t count = uci_merkle_child_count(exchange->tree, level, index), i;

    uci_merkle_compare(exchange->tree, level, index, values);
    for (i = 0; (level == 1) && (i < count); ++i) {
        if (values[i] != own[i]) {
            uci_exchange_differ_chunk(exchange, (index * uci_merkle_arity(exchange->tree)) + i);
        }
    }
}

static uci_status_t uci_exchange_descend(uci_exchange_t *exchange)
{
    size_t indexes[UCI_MERKLE_MESSAGE_WORDS / UCI_MERKLE_ARITY_MIN];
    size_t max = UCI_MERKLE_MESSAGE_WORDS / uci_merkle_arity(exchange->tree), count, words, i;
    uci_status_t status;
    unsigned level;

    uci_merkle_descend(exchange->tree);
    while ((count = uci_merkle_marked(exchange->tree, &level, indexes, max)) > 0) {
        for (words = 0, i = 0; i < count; ++i) {
            words += uci_merkle_children(exchange->tree, level, indexes[i], exchange->out.words + words);
        }
        status = uci_exchange_swap(exchange, UCI_EXCHANGE_NODES, words);
        if (status != UCI_OK) {
            uci_merkle_unmark(exchange->tree);
            return status;
        }
        for (words = 0, i = 0; i < count; ++i) {
            uci_exchange_compare_node(exchange, level, indexes[i], exchange->out.words + words,
                                      exchange->in.words + words);
            words += uci_merkle_child_count(exchange->tree, level, indexes[i]);
        }
    }
    return UCI_OK;
}

static uci_status_t uci_exchange_find(uci_exchange_t *exchange)
{
    bool same           = false;
    uci_status_t status = uci_exchange_hello(exchange, &same);

    if ((status != UCI_OK) || same) {
        return status;
    }
    status = uci_exchange_make_common(exchange);
    if (status != UCI_OK) {
        return status;
    }
    status = (exchange->common == 1) ? uci_exchange_only_leaf(exchange) : uci_exchange_descend(exchange);
    if (status == UCI_OK) {
        uci_exchange_differ_tail(exchange);
    }
    return status;
}

/* Both sides tell how it went, so that none believes what the other one does not */
static uci_status_t uci_exchange_end(uci_exchange_t *exchange, uci_status_t status)
{
    uint64_t *out = exchange->out.words, *in = exchange->in.words;
    uci_status_t end_status;

    if (exchange->is_over) {
        return status;
    }
    out[UCI_EXCHANGE_END_STATUS] = (uint64_t)(int64_t)status;
    out[UCI_EXCHANGE_END_DIFFER] = exchange->result.differ;
    out[UCI_EXCHANGE_END_FOUND]  = exchange->found;
    end_status                   = uci_exchange_swap(exchange, UCI_EXCHANGE_END, UCI_EXCHANGE_END_WORDS);
    if (status != UCI_OK) {
        return status;
    }
    if ((end_status == UCI_OK) && (memcmp(out, in, UCI_EXCHANGE_END_WORDS * sizeof(*out)) != 0)) {
        uci_error("comparison of trees: the other side has found something else, or nothing (%s)",
                  uci_status_string((uci_status_t)(int64_t)in[UCI_EXCHANGE_END_STATUS]));
        return UCI_ERR_CORRUPT;
    }
    return end_status;
}

uci_status_t uci_merkle_exchange(const uci_merkle_side_t *side, uci_merkle_swap_func_t swap, void *swap_arg,
                                 uci_merkle_differ_func_t differ, void *differ_arg,
                                 uci_merkle_exchange_result_t *result_p)
{
    uci_exchange_t *exchange = calloc(1, sizeof(*exchange));
    uci_status_t status;

    if (exchange == NULL) {
        uci_error("failed to allocate the messages of a comparison of trees");
        return UCI_ERR_NO_MEMORY;
    }
    exchange->side       = side;
    exchange->swap       = swap;
    exchange->swap_arg   = swap_arg;
    exchange->differ     = differ;
    exchange->differ_arg = differ_arg;

    status    = uci_exchange_end(exchange, uci_exchange_find(exchange));
    *result_p = exchange->result;
    if (exchange->tree != side->tree) {
        uci_merkle_destroy(exchange->tree);
    }
    free(exchange);
    return status;
}

void uci_merkle_side_compare(const uci_merkle_side_t *a, const uci_merkle_side_t *b, uci_merkle_differ_func_t differ,
                             void *arg)
{
    uint64_t common = uci_min(uci_merkle_level_size(a->tree, 0), uci_merkle_level_size(b->tree, 0));
    uint64_t end = uci_max(a->length, b->length), offset = 0, i;

    for (i = 0; i < common; ++i, offset += a->chunk_size) {
        if (uci_merkle_leaf(a->tree, i) != uci_merkle_leaf(b->tree, i)) {
            differ(arg, offset, uci_min(a->chunk_size, end - offset));
        }
    }
    if (end > offset) {
        differ(arg, offset, end - offset);
    }
}
