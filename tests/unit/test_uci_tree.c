/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * libuci as programs see it: build, compare here and with a peer in another thread, store; and a peer that is damaged or lies.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "uci.h"

#define LENGTH ((size_t)3 << 20)
#define CHUNK  ((size_t)1024)
#define CHUNKS (LENGTH / CHUNK)
#define RANGES 4096

/* A message each way at a time, between two threads */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint8_t message[2][UCI_TREE_MESSAGE_MAX];
    size_t length[2];
    int is_full[2];
    int broken_round; /* of what side 0 receives: a byte is changed; -1: none */
    uint64_t broken_byte;
    int rounds[2];
} wire_t;

typedef struct {
    wire_t *wire;
    int number;
    uci_tree_t *tree;
    uci_tree_result_t result;
    uci_byte_range_t ranges[RANGES];
    uci_exchange_ops_t ops;
    uci_status_t status;
} side_t;

static wire_t *wire_new(void)
{
    wire_t *wire = calloc(1, sizeof(*wire));

    pthread_mutex_init(&wire->lock, NULL);
    pthread_cond_init(&wire->changed, NULL);
    wire->broken_round = -1;
    return wire;
}

static uci_status_t put(void *arg, const void *out, size_t out_length)
{
    side_t *side = arg;
    wire_t *wire = side->wire;
    int to       = !side->number;

    pthread_mutex_lock(&wire->lock);
    while (wire->is_full[to]) {
        pthread_cond_wait(&wire->changed, &wire->lock);
    }
    memcpy(wire->message[to], out, out_length);
    wire->length[to]  = out_length;
    wire->is_full[to] = 1;
    if ((to == 0) && (wire->rounds[1] == wire->broken_round)) {
        wire->message[to][wire->broken_byte % out_length] ^= 0x10;
    }
    ++wire->rounds[side->number];
    pthread_cond_broadcast(&wire->changed);
    pthread_mutex_unlock(&wire->lock);
    return UCI_OK;
}

static uci_status_t take(void *arg, void *in, size_t in_max, size_t *in_length_p)
{
    side_t *side = arg;
    wire_t *wire = side->wire;

    pthread_mutex_lock(&wire->lock);
    while (!wire->is_full[side->number]) {
        pthread_cond_wait(&wire->changed, &wire->lock);
    }
    cr_assert_leq(wire->length[side->number], in_max);
    memcpy(in, wire->message[side->number], wire->length[side->number]);
    *in_length_p                = wire->length[side->number];
    wire->is_full[side->number] = 0;
    pthread_cond_broadcast(&wire->changed);
    pthread_mutex_unlock(&wire->lock);
    return UCI_OK;
}

static uci_status_t exchange(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                             size_t *in_length_p)
{
    put(arg, out, out_length);
    return take(arg, in, in_max, in_length_p);
}

static void *run_side(void *arg)
{
    side_t *side = arg;

    side->result = (uci_tree_result_t){.ranges = side->ranges, .max = RANGES};
    side->status = uci_tree_compare_with(side->tree, &side->ops, side, &side->result);
    return NULL;
}

static void compare_sides(side_t sides[2], wire_t *wire, uci_tree_t *a, uci_tree_t *b, int by_turns)
{
    pthread_t thread;
    int i;

    for (i = 0; i < 2; ++i) {
        sides[i]        = (side_t){.wire = wire, .number = i, .tree = (i == 0) ? a : b};
        sides[i].ops    = (uci_exchange_ops_t){sizeof(uci_exchange_ops_t), by_turns ? NULL : exchange, put, take, i};
        wire->rounds[i] = 0;
    }
    pthread_create(&thread, NULL, run_side, &sides[1]);
    run_side(&sides[0]);
    pthread_join(thread, NULL);
}

static uint8_t *make_data(void)
{
    uint8_t *data = malloc(LENGTH);
    size_t i;

    for (i = 0; i < LENGTH; ++i) {
        data[i] = (uint8_t)((i * 2654435761u) >> 11);
    }
    return data;
}

static uci_tree_t *build(const void *data, size_t length, unsigned arity)
{
    uci_tree_params_t params = {.field_mask = UCI_TREE_PARAM_FIELD_CHUNK_SIZE | UCI_TREE_PARAM_FIELD_ARITY,
                                .chunk_size = CHUNK,
                                .arity      = arity};
    uci_tree_t *tree;

    cr_assert_eq(uci_tree_build(data, length, &params, &tree), UCI_OK);
    return tree;
}

static void expect_same_ranges(const uci_tree_result_t *a, const uci_tree_result_t *b)
{
    cr_assert_eq(a->count, b->count);
    cr_assert_leq(a->count, RANGES);
    cr_expect_eq(a->bytes, b->bytes);
    cr_expect_eq(memcmp(a->ranges, b->ranges, a->count * sizeof(*a->ranges)), 0);
}

Test(uci_tree, same_and_changed)
{
    uint8_t *data = make_data();
    uci_tree_t *a = build(data, LENGTH, 16), *b = build(data, LENGTH, 16), *by_default, *of_two;
    uci_byte_range_t ranges[2];
    uci_tree_result_t result = {.ranges = ranges, .max = 2, .count = 9};

    cr_expect_eq(uci_tree_root(a), uci_tree_root(b));
    cr_expect_eq(uci_tree_compare(a, b, &result), UCI_OK);
    cr_expect_eq(result.count, 0);

    data[5000] ^= 1;
    data[LENGTH - 1] ^= 1;
    cr_expect_eq(uci_tree_update(b, data, 5000, 1), UCI_OK);
    cr_expect_eq(uci_tree_update(b, data, LENGTH - 1, 1), UCI_OK);
    cr_expect_neq(uci_tree_root(a), uci_tree_root(b));
    cr_expect_eq(uci_tree_compare(a, b, &result), UCI_OK);
    cr_assert_eq(result.count, 2);
    cr_expect_eq(ranges[0].offset, 4096);
    cr_expect_eq(ranges[0].length, 1024);
    cr_expect_eq(ranges[1].offset, LENGTH - 1024);
    cr_expect_eq(uci_tree_update(b, data, LENGTH, 1), UCI_ERR_INVALID_PARAM);
    cr_expect_eq(uci_tree_update(b, data, 1, SIZE_MAX), UCI_ERR_INVALID_PARAM);

    cr_assert_eq(uci_tree_build(data, LENGTH, NULL, &by_default), UCI_OK);
    cr_expect_eq(uci_tree_chunk_size(by_default), UCI_TREE_CHUNK_SIZE_DEFAULT);
    cr_expect_eq(uci_tree_compare(a, by_default, &result), UCI_ERR_UNSUPPORTED);
    of_two = build(data, LENGTH, 2);
    cr_expect_eq(uci_tree_compare(a, of_two, &result), UCI_ERR_UNSUPPORTED, "of another arity");
    uci_tree_destroy(of_two);
    uci_tree_destroy(by_default);
    uci_tree_destroy(a);
    uci_tree_destroy(b);
    uci_tree_destroy(NULL);
    free(data);
}

Test(uci_tree, bad_parameters)
{
    uci_tree_params_t params = {.field_mask = UCI_TREE_PARAM_FIELD_DIGEST, .digest = "none"};
    uci_tree_t *tree         = NULL;

    cr_expect_eq(uci_tree_build("a", 1, &params, &tree), UCI_ERR_INVALID_PARAM);
    params.digest = NULL;
    cr_expect_eq(uci_tree_build("a", 1, &params, &tree), UCI_ERR_INVALID_PARAM);
    params.field_mask = UCI_TREE_PARAM_FIELD_CHUNK_SIZE;
    cr_expect_eq(uci_tree_build("a", 1, &params, &tree), UCI_ERR_INVALID_PARAM);
    params = (uci_tree_params_t){.field_mask = 1 << 4};
    cr_expect_eq(uci_tree_build("a", 1, &params, &tree), UCI_ERR_INVALID_PARAM, "a field of a later version");
    cr_expect_eq(uci_tree_build(NULL, 1, NULL, &tree), UCI_ERR_INVALID_PARAM);
    cr_expect_null(tree);
    cr_expect_eq(uci_tree_build(NULL, 0, NULL, &tree), UCI_OK, "nothing has a tree as well");
    uci_tree_destroy(tree);
}

/* Every number of bad chunks: both sides know exactly these, for O(bad log n) bytes */
Test(uci_tree, peers_find_what_differs)
{
    static const size_t counts[]    = {0, 1, 2, 10, 100, 1000, CHUNKS};
    static const unsigned arities[] = {2, 16, 256};
    uint8_t *data = make_data(), *other = malloc(LENGTH);
    side_t *sides = malloc(2 * sizeof(*sides));
    uint8_t is_bad[CHUNKS];
    size_t i, j, k, bad;
    uci_tree_t *a, *b;
    wire_t *wire = wire_new();
    double limit;

    srand(1);
    for (i = 0; i < sizeof(counts) / sizeof(*counts); ++i) {
        for (j = 0; j < sizeof(arities) / sizeof(*arities); ++j) {
            memcpy(other, data, LENGTH);
            memset(is_bad, 0, sizeof(is_bad));
            for (k = 0; k < counts[i]; ++k) {
                bad         = (counts[i] == CHUNKS) ? k : (size_t)rand() % CHUNKS;
                is_bad[bad] = 1;
                other[(bad * CHUNK) + ((size_t)rand() % CHUNK)] ^= 1 << (rand() % 8);
                if (memcmp(other + (bad * CHUNK), data + (bad * CHUNK), CHUNK) == 0) {
                    other[bad * CHUNK] ^= 0x80; /* the same bit twice */
                }
            }
            a = build(data, LENGTH, arities[j]);
            b = build(other, LENGTH, arities[j]);
            compare_sides(sides, wire, a, b, (int)(k % 2));
            cr_assert_eq(sides[0].status, UCI_OK);
            cr_assert_eq(sides[1].status, UCI_OK);
            expect_same_ranges(&sides[0].result, &sides[1].result);
            for (k = 0; k < sides[0].result.count; ++k) {
                for (bad = sides[0].ranges[k].offset / CHUNK;
                     bad < (sides[0].ranges[k].offset + sides[0].ranges[k].length) / CHUNK; ++bad) {
                    cr_expect_eq(is_bad[bad], 1, "chunk %zu is not bad", bad);
                    is_bad[bad] = 0;
                }
            }
            cr_expect_null(memchr(is_bad, 1, sizeof(is_bad)), "not found");
            cr_expect_eq(sides[0].result.sent, sides[1].result.received);

            /* nodes of 8 bytes, and messages' headers */
            limit = 8.0 * (double)(counts[i] * arities[j]) * (ceil(log(CHUNKS) / log(arities[j]))) +
                    (24.0 * (double)sides[0].result.rounds) + 64;
            cr_expect_leq((double)sides[0].result.sent, limit, "%zu bad, arity %u: %llu bytes, at most %g", counts[i],
                          arities[j], (unsigned long long)sides[0].result.sent, limit);
            uci_tree_destroy(a);
            uci_tree_destroy(b);
        }
    }
    free(sides);
    free(data);
    free(other);
}

/* One has more than the other: that differs, and all that both have is compared */
Test(uci_tree, peers_of_unlike_lengths)
{
    static const size_t lengths[] = {0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 10 * CHUNK, (10 * CHUNK) + 7, LENGTH};
    uint8_t *data                 = make_data();
    side_t *sides                 = malloc(2 * sizeof(*sides));
    wire_t *wire                  = wire_new();
    size_t i, j, from, end;
    uci_tree_result_t here;
    uci_byte_range_t ranges[8];
    uci_tree_t *a, *b;

    for (i = 0; i < sizeof(lengths) / sizeof(*lengths); ++i) {
        for (j = 0; j < sizeof(lengths) / sizeof(*lengths); ++j) {
            a    = build(data, lengths[i], 16);
            b    = build(data, lengths[j], 16);
            from = ((lengths[i] < lengths[j]) ? lengths[i] : lengths[j]) / CHUNK * CHUNK;
            end  = (lengths[i] < lengths[j]) ? lengths[j] : lengths[i];
            here = (uci_tree_result_t){.ranges = ranges, .max = 8};
            cr_assert_eq(uci_tree_compare(a, b, &here), UCI_OK);
            compare_sides(sides, wire, a, b, 0);
            cr_assert_eq(sides[0].status, UCI_OK);
            cr_assert_eq(sides[1].status, UCI_OK);
            cr_expect_eq(sides[0].result.peer_length, lengths[j]);
            expect_same_ranges(&sides[0].result, &sides[1].result);
            expect_same_ranges(&sides[0].result, &here);
            cr_assert_eq(here.count, lengths[i] != lengths[j]);
            if (here.count > 0) {
                cr_expect_eq(ranges[0].offset, from, "%zu and %zu", lengths[i], lengths[j]);
                cr_expect_eq(ranges[0].length, end - from);
            }
            uci_tree_destroy(a);
            uci_tree_destroy(b);
        }
    }
    free(sides);
    free(data);
}

/* One byte of one message is changed: neither side waits for ever, none has a wrong answer */
Test(uci_tree, damaged_messages)
{
    uint8_t *data = make_data();
    side_t *sides = malloc(2 * sizeof(*sides));
    wire_t *wire  = wire_new();
    uci_tree_t *a = build(data, LENGTH, 16), *b;
    int round, rounds;
    uint64_t byte;

    data[12345] ^= 1;
    b = build(data, LENGTH, 16);
    compare_sides(sides, wire, a, b, 0);
    rounds = (int)sides[0].result.rounds;
    cr_expect_geq(rounds, 5);
    for (round = 0; round < rounds; ++round) {
        for (byte = 0; byte < 80; ++byte) {
            wire->broken_round = round;
            wire->broken_byte  = byte;
            compare_sides(sides, wire, a, b, 0);
            cr_expect_eq(sides[0].status, UCI_ERR_CORRUPT, "byte %d of message %d", (int)byte, round);
            if (round < rounds - 1) { /* the last one has no answer */
                cr_expect_eq(sides[1].status, UCI_ERR_CORRUPT, "byte %d of message %d", (int)byte, round);
            }
        }
    }
    uci_tree_destroy(a);
    uci_tree_destroy(b);
    free(sides);
    free(data);
}

Test(uci_tree, peers_with_other_parameters)
{
    uint8_t *data = make_data();
    side_t *sides = malloc(2 * sizeof(*sides));
    uci_tree_t *a = build(data, LENGTH, 16), *b = build(data, LENGTH, 8);

    compare_sides(sides, wire_new(), a, b, 0);
    cr_expect_eq(sides[0].status, UCI_ERR_UNSUPPORTED);
    cr_expect_eq(sides[1].status, UCI_ERR_UNSUPPORTED);
    uci_tree_destroy(a);
    uci_tree_destroy(b);
    free(sides);
    free(data);
}

static uci_status_t refuse(void *arg, const void *out, size_t out_length, void *in, size_t in_max, size_t *in_length_p)
{
    return UCI_ERR_BUSY;
}

static uci_status_t say_nothing(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                                size_t *in_length_p)
{
    *in_length_p = *(size_t *)arg;
    return UCI_OK;
}

Test(uci_tree, transports_that_fail)
{
    uci_exchange_ops_t ops   = {sizeof(ops), refuse, NULL, NULL, 0};
    size_t lengths[]         = {0, 1, 23, 24, 32, UCI_TREE_MESSAGE_MAX, UCI_TREE_MESSAGE_MAX + 1, SIZE_MAX}, i;
    uci_tree_result_t result = {0};
    uci_tree_t *tree         = build("abc", 3, 16);

    cr_expect_eq(uci_tree_compare_with(tree, &ops, NULL, &result), UCI_ERR_BUSY);
    ops.exchange = say_nothing;
    for (i = 0; i < sizeof(lengths) / sizeof(*lengths); ++i) {
        cr_expect_eq(uci_tree_compare_with(tree, &ops, &lengths[i], &result), UCI_ERR_CORRUPT);
    }
    ops.exchange = NULL;
    cr_expect_eq(uci_tree_compare_with(tree, &ops, NULL, &result), UCI_ERR_INVALID_PARAM);
    uci_tree_destroy(tree);
}

Test(uci_tree, packed)
{
    uint8_t *data    = make_data(), *packed;
    uci_tree_t *tree = build(data, 10000, 16), *again = NULL;
    size_t length, i, same;

    cr_assert_eq(uci_tree_pack(tree, NULL, 0, &length), UCI_OK);
    packed = malloc(length);
    cr_expect_eq(uci_tree_pack(tree, packed, length - 1, &same), UCI_ERR_INVALID_PARAM);
    cr_expect_eq(same, length);
    cr_assert_eq(uci_tree_pack(tree, packed, length, &length), UCI_OK);
    cr_assert_eq(uci_tree_unpack(packed, length, &again), UCI_OK);
    cr_expect_eq(uci_tree_root(again), uci_tree_root(tree));
    cr_expect_eq(uci_tree_length(again), 10000);
    uci_tree_destroy(again);

    for (i = 0; i < length; ++i) {
        cr_expect_eq(uci_tree_unpack(packed, i, &again), UCI_ERR_CORRUPT, "cut at %zu", i);
        packed[i] ^= 4;
        cr_expect_eq(uci_tree_unpack(packed, length, &again), UCI_ERR_CORRUPT, "byte %zu", i);
        packed[i] ^= 4;
    }
    uci_tree_destroy(tree);
    free(packed);
    free(data);
}
