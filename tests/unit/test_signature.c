/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Signatures of types: random nested types against a list of all their elements.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "signature/signature.h"

#define ELEMENTS_MAX 100000
#define CODES        5u

/* All elements of a type, one by one */
typedef struct flat {
    unsigned *codes;
    size_t count;
} flat_t;

static uint64_t test_state = 1;

static uint64_t test_random(uint64_t limit)
{
    test_state ^= test_state << 13;
    test_state ^= test_state >> 7;
    test_state ^= test_state << 17;
    return test_state % limit;
}

static const char *test_name(unsigned code)
{
    static const char *const names[] = {"A", "B", "C", "D", "E"};

    return names[code];
}

static void flat_append(flat_t *flat, const flat_t *part, uint64_t times)
{
    flat->codes = realloc(flat->codes, ((flat->count + (part->count * times)) * sizeof(*flat->codes)) + 1);
    cr_assert_not_null(flat->codes);
    for (; (times > 0) && (part->count > 0); --times) {
        memcpy(flat->codes + flat->count, part->codes, part->count * sizeof(*flat->codes));
        flat->count += part->count;
    }
}

/* By the definition, a number at a time */
static uint64_t flat_hash(const flat_t *flat, size_t count)
{
    uint64_t step = uci_sighash_element(0).factor, value = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        value = (uint64_t)((((unsigned __int128)value * step) + uci_sighash_element(flat->codes[i]).value) %
                           UCI_SIGHASH_PRIME);
    }
    return value;
}

static bool flat_is_one_code(const flat_t *flat)
{
    size_t i;

    for (i = 1; i < flat->count; ++i) {
        if (flat->codes[i] != flat->codes[0]) {
            return false;
        }
    }
    return flat->count > 0;
}

/* A random type, and all its elements */
static uci_sigtype_t *random_type(unsigned depth, flat_t *flat)
{
    unsigned code = (unsigned)test_random(CODES);
    uci_sigtype_part_t parts[4];
    uci_sigtype_t *type;
    size_t i, count = test_random(5);

    *flat = (flat_t){0};
    if ((depth == 0) || (test_random(4) == 0)) {
        flat_t basic = {.codes = &code, .count = 1};

        count = test_random(4);
        flat_append(flat, &basic, count);
        cr_assert_eq(uci_sigtype_create_basic(code, count, &type), UCI_OK);
        return type;
    }
    for (i = 0; i < count; ++i) {
        flat_t part;
        bool again = (i > 0) && (test_random(3) == 0);

        if (again) { /* the same neighbour */
            parts[i] = (uci_sigtype_part_t){parts[i - 1].type, test_random(3)};
            uci_sigtype_hold(parts[i].type);
            part = (flat_t){0};
            cr_assert_eq(uci_sigtype_elements(parts[i].type) * parts[i - 1].count <= flat->count, true);
            if (parts[i - 1].count > 0) {
                size_t unit = uci_sigtype_elements(parts[i].type);

                part.count = unit;
                part.codes = malloc((unit * sizeof(*part.codes)) + 1);
                memcpy(part.codes, flat->codes + flat->count - unit, unit * sizeof(*part.codes));
            } else {
                parts[i].count = 0;
            }
        } else {
            parts[i].type  = random_type(depth - 1, &part);
            parts[i].count = test_random(4);
        }
        flat_append(flat, &part, parts[i].count);
        free(part.codes);
    }
    cr_assert_eq(uci_sigtype_create(parts, count, &type), UCI_OK);
    for (i = 0; i < count; ++i) {
        uci_sigtype_release(parts[i].type);
    }
    return type;
}

Test(signature, random_types_are_what_a_list_of_their_elements_is)
{
    unsigned mixed = 0, prefixes = 0, round;

    for (round = 0; round < 3000; ++round) {
        flat_t flat;
        uci_sigtype_t *type = random_type(1 + (round % 5), &flat);
        unsigned code       = uci_sigtype_code(type);
        size_t i;

        cr_assert_eq(uci_sigtype_elements(type), flat.count);
        cr_assert_eq(uci_sigtype_hash(type, 1).value, flat_hash(&flat, flat.count));
        if (flat_is_one_code(&flat)) {
            cr_assert_eq(code, flat.codes[0]);
        } else {
            cr_assert_eq(code, UCI_SIGNATURE_MIXED);
            mixed += (flat.count > 0);
        }
        if (flat.count > 0) {
            flat_t three = {0};

            flat_append(&three, &flat, 3);
            cr_assert_eq(uci_sigtype_hash(type, 3).value, flat_hash(&three, three.count));
            for (i = 0; i < 20; ++i) {
                size_t length = test_random(three.count + 1);

                cr_assert_eq(uci_sigtype_prefix(type, length).value, flat_hash(&three, length), "round %u, %zu", round,
                             length);
                ++prefixes;
            }
            free(three.codes);
        }
        free(flat.codes);
        uci_sigtype_release(type);
    }
    cr_expect_gt(mixed, 500);
    cr_expect_gt(prefixes, 10000);
}

Test(signature, concatenation_is_associative)
{
    unsigned i;

    for (i = 0; i < 1000; ++i) {
        uci_sighash_t a     = uci_sighash_repeat(uci_sighash_element((unsigned)test_random(50)), test_random(1000));
        uci_sighash_t b     = uci_sighash_repeat(uci_sighash_element((unsigned)test_random(50)), test_random(1000));
        uci_sighash_t c     = uci_sighash_element((unsigned)test_random(50));
        uci_sighash_t left  = uci_sighash_concat(uci_sighash_concat(a, b), c);
        uci_sighash_t right = uci_sighash_concat(a, uci_sighash_concat(b, c));

        cr_assert_eq(left.value, right.value);
        cr_assert_eq(left.factor, right.factor);
    }
}

/* So many of a, and a b */
static uci_sigtype_t *pair_of(uci_sigtype_t *a, uint64_t as, uci_sigtype_t *b)
{
    uci_sigtype_part_t parts[] = {{a, as}, {b, 1}};
    uci_sigtype_t *pair;

    cr_assert_eq(uci_sigtype_create(parts, 2, &pair), UCI_OK);
    return pair;
}

/* A million of something is as many steps as their number has digits, and what it was made of does not matter */
Test(signature, counts)
{
    uci_sigtype_t *a, *b, *pair, *many, *other;
    uci_sigtype_part_t parts[2];

    cr_assert_eq(uci_sigtype_create_basic(0, 1, &a), UCI_OK);
    cr_assert_eq(uci_sigtype_create_basic(1, 1, &b), UCI_OK);
    pair     = pair_of(a, 1, b);
    parts[0] = (uci_sigtype_part_t){pair, 999999};
    parts[1] = (uci_sigtype_part_t){pair, 1};
    cr_assert_eq(uci_sigtype_create(parts, 2, &many), UCI_OK);
    cr_expect_eq(uci_sigtype_hash(many, 1).value, uci_sigtype_hash(pair, 1000000).value);
    cr_expect_eq(uci_sigtype_elements(many), 2000000);
    parts[0] = (uci_sigtype_part_t){b, 1};
    parts[1] = (uci_sigtype_part_t){a, 1};
    cr_assert_eq(uci_sigtype_create(parts, 2, &other), UCI_OK);
    cr_expect_neq(uci_sigtype_hash(pair, 1000000).value, uci_sigtype_hash(other, 1000000).value);
    cr_expect_eq(uci_sigtype_prefix(pair, 1).value, uci_sigtype_hash(a, 1).value);

    parts[0].count = UCI_SIGNATURE_ELEMENTS_MAX;
    cr_expect_eq(uci_sigtype_create(parts, 2, &other), UCI_ERR_INVALID_PARAM);
}

/* What a signature of it says, for people */
static const char *text_of(const uci_sigtype_t *type)
{
    uci_signature_t signature;

    uci_sigtype_sign(type, 1, &signature);
    return signature.text;
}

Test(signature, text)
{
    uci_sigtype_t *a, *b, *pair, *nested, *longer;
    uci_sigtype_part_t parts[4];

    cr_assert_eq(uci_sigtype_create_basic(0, 2, &a), UCI_OK);
    cr_assert_eq(uci_sigtype_create_basic(1, 1, &b), UCI_OK);
    parts[0] = (uci_sigtype_part_t){a, 1};
    parts[1] = (uci_sigtype_part_t){b, 1};
    cr_assert_eq(uci_sigtype_create(parts, 2, &pair), UCI_OK);
    uci_sigtype_set_text(pair, test_name);
    cr_expect_str_eq(text_of(pair), "{2 x A, B}");
    parts[0] = (uci_sigtype_part_t){pair, 7};
    cr_assert_eq(uci_sigtype_create(parts, 2, &nested), UCI_OK);
    uci_sigtype_set_text(nested, test_name);
    cr_expect_str_eq(text_of(nested), "{7 x {2 x A, B}, B}");
    parts[1] = (uci_sigtype_part_t){nested, 5};
    cr_assert_eq(uci_sigtype_create(parts + 1, 1, &longer), UCI_OK);
    uci_sigtype_set_text(longer, test_name);
    cr_expect_str_eq(text_of(longer), "{7 x {2 x A, B}, B}", "several of one type are no type of their own");
    cr_expect_eq(uci_sigtype_elements(longer), 5 * uci_sigtype_elements(nested));
    uci_sigtype_release(longer);
    parts[1] = (uci_sigtype_part_t){nested, 11};
    parts[2] = (uci_sigtype_part_t){pair, 12};
    parts[3] = (uci_sigtype_part_t){nested, 13};
    cr_assert_eq(uci_sigtype_create(parts, 4, &longer), UCI_OK);
    uci_sigtype_set_text(longer, test_name);
    cr_expect_eq(strlen(text_of(longer)), UCI_SIGNATURE_TEXT_MAX - 1);
    cr_expect_not_null(strstr(text_of(longer), "...}"), "%s", text_of(longer));
}

static uci_signature_t signature_of(const uci_sigtype_t *type, uint64_t count)
{
    uci_signature_t signature;

    uci_sigtype_sign(type, count, &signature);
    return signature;
}

Test(signature, matching)
{
    uci_sigtype_t *a, *b, *pair, *packed;
    uci_signature_t sent, posted;

    cr_assert_eq(uci_sigtype_create_basic(0, 1, &a), UCI_OK);
    cr_assert_eq(uci_sigtype_create_basic(1, 1, &b), UCI_OK);
    cr_assert_eq(uci_sigtype_create_basic(UCI_SIGNATURE_PACKED, 1, &packed), UCI_OK);
    pair = pair_of(a, 2, b);

    const struct {
        const uci_sigtype_t *sent;
        uint64_t sent_count;
        const uci_sigtype_t *posted;
        uint64_t posted_count;
        bool matches;
    } cases[] = {
            {a, 4, a, 4, true},         {a, 4, a, 5, true},        {a, 4, b, 4, false},    {a, 0, b, 1, true},
            {pair, 3, pair, 3, true},   {pair, 2, pair, 3, true},  {a, 2, pair, 1, true},  {a, 3, pair, 1, false},
            {a, 3, pair, 2, false},     {pair, 1, a, 3, false},    {b, 1, pair, 1, false}, {packed, 5, a, 1, true},
            {pair, 1, packed, 9, true}, {pair, 3, pair, 2, false},
    };
    size_t i;

    for (i = 0; i < uci_array_size(cases); ++i) {
        sent      = signature_of(cases[i].sent, cases[i].sent_count);
        posted    = signature_of(cases[i].posted, cases[i].posted_count);
        sent.type = NULL; /* as it comes from elsewhere */
        cr_expect_eq(uci_signature_matches(&sent, &posted), cases[i].matches, "case %zu", i);
    }
}

/* A receive holds the type of MIXED elements alone (uci_signed_set()): its program may have freed any other one */
Test(signature, matching_when_the_type_has_been_freed)
{
    uci_sigtype_t *a, *b, *pair;
    uci_signature_t posted, mixed, other, same;

    cr_assert_eq(uci_sigtype_create_basic(0, 1, &a), UCI_OK);
    cr_assert_eq(uci_sigtype_create_basic(1, 1, &b), UCI_OK);
    pair        = pair_of(a, 1, b);
    mixed       = signature_of(pair, 1);
    other       = signature_of(b, 3);
    same        = signature_of(a, 3);
    posted      = signature_of(a, 8);
    posted.type = NULL;
    cr_expect_not(uci_signature_matches(&mixed, &posted));
    cr_expect_not(uci_signature_matches(&other, &posted));
    cr_expect(uci_signature_matches(&same, &posted));
    uci_sigtype_release(pair);
    uci_sigtype_release(b);
    uci_sigtype_release(a);
}
