/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "locales.h"
#include "fault/fault.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64

static uci_fault_spec_t parse(const char *text)
{
    uci_fault_spec_t spec;
    char error[256] = "";

    cr_assert(uci_fault_parse(text, &spec, error, sizeof(error)) == UCI_OK, "%s: %s", text, error);
    return spec;
}

static void init(const char *text, uint64_t rank)
{
    uci_fault_spec_t spec = parse(text);

    uci_fault_init(&spec, (int64_t)rank, -1);
}

static uint64_t hits(unsigned draws)
{
    uci_fault_t fault;
    uint64_t count = 0;

    while (draws-- > 0) {
        count += uci_fault_draw(UCI_FAULT_PAYLOAD, 100, 0, &fault);
    }
    return count;
}

Test(fault_parse, nothing_means_no_faults)
{
    cr_expect(parse("").rate == 0);
    cr_expect(parse(NULL).rate == 0);
}

Test(fault_parse, defaults)
{
    uci_fault_spec_t spec = parse("rate=0.5");

    cr_expect(spec.rate == 0.5);
    cr_expect(spec.kinds == 1u << UCI_FAULT_BITFLIP);
    cr_expect(spec.targets == 1u << UCI_FAULT_PAYLOAD);
    cr_expect(spec.seed == 1);
    cr_expect(spec.count == UINT64_MAX);
    cr_expect((spec.min == 0) && (spec.max == UINT64_MAX));
    cr_expect((spec.peer == -1) && (spec.rank == -1) && (spec.twin == -1) && (spec.after == 0));
}

Test(fault_parse, all_keys)
{
    uci_fault_spec_t spec = parse("rate=1e-3,kind=bitflip+burst+SWAP,target=tree+ack,seed=18446744073709551615,"
                                  "count=7,min=4k,max=1M,peer=3,rank=2,twin=1,after=1000");

    cr_expect(spec.rate == 1e-3);
    cr_expect(spec.kinds == ((1u << UCI_FAULT_BITFLIP) | (1u << UCI_FAULT_BURST) | (1u << UCI_FAULT_SWAP)));
    cr_expect(spec.targets == ((1u << UCI_FAULT_TREE) | (1u << UCI_FAULT_ACK)));
    cr_expect(spec.seed == UINT64_MAX);
    cr_expect(spec.count == 7);
    cr_expect((spec.min == 4096) && (spec.max == 1048576));
    cr_expect((spec.peer == 3) && (spec.rank == 2) && (spec.twin == 1) && (spec.after == 1000));
}

Test(fault_parse, any_is_what_a_wire_and_memory_do)
{
    uci_fault_spec_t spec = parse("rate=1,kind=any,target=any");

    cr_expect(spec.kinds == (1u << UCI_FAULT_KIND_LAST) - 1);
    cr_expect(spec.targets == (1u << UCI_FAULT_PAYLOAD | 1u << UCI_FAULT_HEADER | 1u << UCI_FAULT_TREE |
                               1u << UCI_FAULT_ACK | 1u << UCI_FAULT_MEMORY));
    cr_expect(parse("rate=1,target=any+repair+region+leaf+frame+escape").targets == (1u << UCI_FAULT_TARGET_LAST) - 1);
}

Test(fault_parse, names_match_the_enumerations)
{
    cr_expect(strcmp(uci_fault_kind_names[UCI_FAULT_TRUNCATE], "truncate") == 0);
    cr_expect(uci_fault_kind_names[UCI_FAULT_KIND_LAST] == NULL);
    cr_expect(strcmp(uci_fault_target_names[UCI_FAULT_MEMORY], "memory") == 0);
    cr_expect(strcmp(uci_fault_target_names[UCI_FAULT_REPAIR], "repair") == 0);
    cr_expect(strcmp(uci_fault_target_names[UCI_FAULT_REGION], "region") == 0);
    cr_expect(strcmp(uci_fault_target_names[UCI_FAULT_LEAF], "leaf") == 0);
    cr_expect(strcmp(uci_fault_target_names[UCI_FAULT_FRAME], "frame") == 0);
    cr_expect(strcmp(uci_fault_target_names[UCI_FAULT_ESCAPE], "escape") == 0);
    cr_expect(uci_fault_target_names[UCI_FAULT_TARGET_LAST] == NULL);
}

Test(fault_parse, errors_say_what_is_allowed)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
            {"rate", "KEY=VALUE"},
            {"kind=any", "rate=R"},
            {"rate=", "from 0 to 1"},
            {"rate=x", "from 0 to 1"},
            {"rate=1.5", "from 0 to 1"},
            {"rate=-0.1", "from 0 to 1"},
            {"rate=nan", "from 0 to 1"},
            {"rate=0,5", "KEY=VALUE"},
            {"rate=1,rate=1", "once"},
            {"rate=1,colour=red", "allowed: rate, kind, target, seed, count, min, max, peer, rank, twin, after"},
            {"rate=1,kind=flip", "bad kind 'flip', allowed: bitflip, burst, zero, stale, swap, truncate"},
            {"rate=1,kind=", "bitflip"},
            {"rate=1,kind=zero+", NULL},
            {"rate=1,kind=zero+bad", "'zero+bad'"},
            {"rate=1,target=data", "payload, header, tree, ack, memory, repair"},
            {"rate=1,seed=-1", "whole number"},
            {"rate=1,seed=18446744073709551616", "whole number"},
            {"rate=1,count=1k", "whole number"},
            {"rate=1,min=4x", "bytes"},
            {"rate=1,max=auto", "bytes"},
            {"rate=1,min=2,max=1", "min <= max"},
            {"rate=1,peer=-1", "a rank"},
            {"rate=1,peer=4294967296", "a rank"},
            {"rate=1,rank=x", "a rank"},
            {"rate=1,twin=-1", "from 0"},
            {"rate=1,after=1.5", "whole number"},
    };
    uci_fault_spec_t spec, before;
    uci_status_t status;
    char error[256];
    size_t i;

    memset(&before, 0x5a, sizeof(before));
    for (i = 0; i < uci_array_size(cases); ++i) {
        spec   = before;
        status = uci_fault_parse(cases[i].text, &spec, error, sizeof(error));
        if (cases[i].error == NULL) {
            cr_expect(status == UCI_OK, "%s", cases[i].text);
            continue;
        }
        cr_expect(status == UCI_ERR_INVALID_PARAM, "%s", cases[i].text);
        cr_expect(strstr(error, cases[i].error) != NULL, "%s: %s", cases[i].text, error);
        cr_expect(memcmp(&spec, &before, sizeof(spec)) == 0, "%s: output set", cases[i].text);
    }
}

Test(fault_parse, overlong_text_is_refused)
{
    uci_fault_spec_t spec;
    char text[2000], error[8]; /* too small for the message as well */

    memset(text, '1', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text, "rate=", 5);
    cr_expect(uci_fault_parse(text, &spec, error, sizeof(error)) == UCI_ERR_INVALID_PARAM);
    cr_expect(strlen(error) == sizeof(error) - 1);
}

Test(fault_parse, the_locale_does_not_matter)
{
    comma_locale_set();
    cr_expect(parse("rate=0.5").rate == 0.5);
}

Test(fault_parse, printed_spec_reads_back)
{
    static const char *const texts[] = {
            "",
            "rate=1",
            "rate=0.1",
            "rate=1e-300",
            "rate=0.3333333333333333",
            "rate=1e-3,kind=any,target=any+repair,seed=9,count=2,min=1,max=5000,peer=0,rank=1,"
            "twin=2,after=3"};
    uci_fault_spec_t spec, again;
    char text[512];
    FILE *stream;
    size_t i;

    for (i = 0; i < uci_array_size(texts); ++i) {
        memset(text, 0, sizeof(text));
        spec   = parse(texts[i]);
        stream = fmemopen(text, sizeof(text), "w");
        uci_fault_print(&spec, stream);
        fclose(stream);
        again = parse(text);
        cr_expect(memcmp(&spec, &again, sizeof(spec)) == 0, "%s -> %s", texts[i], text);
    }
}

Test(fault_draw, nothing_before_init)
{
    uci_fault_t fault;

    cr_expect(!uci_fault_targets(UCI_FAULT_PAYLOAD));
    cr_expect(!uci_fault_draw(UCI_FAULT_PAYLOAD, 1, 0, &fault));
    cr_expect(uci_fault_count() == 0);
}

Test(fault_draw, rate_0_never_and_rate_1_always)
{
    init("rate=0", 0);
    cr_expect(!uci_fault_targets(UCI_FAULT_PAYLOAD));
    cr_expect(hits(100000) == 0);

    init("rate=1", 0);
    cr_expect(hits(100000) == 100000);
    cr_expect(uci_fault_count() == 100000);
}

Test(fault_draw, rate_is_kept)
{
    static const double rates[] = {0.001, 0.01, 0.5, 0.99};
    const unsigned draws        = 1000000;
    double expected, sigma;
    char text[64];
    size_t i;

    for (i = 0; i < uci_array_size(rates); ++i) {
        snprintf(text, sizeof(text), "rate=%g,seed=42", rates[i]);
        init(text, i);
        expected = rates[i] * draws;
        sigma    = sqrt(expected * (1 - rates[i]));
        cr_expect(fabs((double)hits(draws) - expected) < 5 * sigma, "%s: %lu", text, uci_fault_count());
    }
}

static void record(const char *text, uint64_t rank, uci_fault_t *faults, size_t count)
{
    size_t i;

    init(text, rank);
    memset(faults, 0, count * sizeof(*faults));
    for (i = 0; i < count; ++i) {
        uci_fault_draw(UCI_FAULT_PAYLOAD, 100, 0, &faults[i]);
    }
}

Test(fault_draw, repeatable_by_seed_and_rank)
{
    enum { COUNT = 200 };
    uci_fault_t first[COUNT], other[COUNT];

    record("rate=0.3,kind=any,seed=5", 1, first, COUNT);
    record("rate=0.3,kind=any,seed=5", 1, other, COUNT);
    cr_expect(memcmp(first, other, sizeof(first)) == 0);
    record("rate=0.3,kind=any,seed=5", 2, other, COUNT);
    cr_expect(memcmp(first, other, sizeof(first)) != 0);
    record("rate=0.3,kind=any,seed=6", 1, other, COUNT);
    cr_expect(memcmp(first, other, sizeof(first)) != 0);
}

/* What a filter passes over is no decision: it must not shift those that follow. */
Test(fault_draw, filtered_units_do_not_count)
{
    enum { COUNT = 100 };
    uci_fault_t plain[COUNT], mixed[COUNT], ignored;
    size_t i;

    record("rate=0.3,max=1000", 0, plain, COUNT);
    init("rate=0.3,max=1000", 0);
    memset(mixed, 0, sizeof(mixed));
    for (i = 0; i < COUNT; ++i) {
        cr_assert(!uci_fault_draw(UCI_FAULT_PAYLOAD, 1001, 0, &ignored));
        cr_assert(!uci_fault_draw(UCI_FAULT_ACK, 100, 0, &ignored));
        uci_fault_draw(UCI_FAULT_PAYLOAD, 100, 0, &mixed[i]);
    }
    cr_expect(memcmp(plain, mixed, sizeof(plain)) == 0);
}

Test(fault_draw, filters)
{
    uci_fault_t fault;

    init("rate=1,min=10,max=20,peer=3,target=header", 0);
    cr_expect(uci_fault_targets(UCI_FAULT_HEADER) && !uci_fault_targets(UCI_FAULT_PAYLOAD));
    cr_expect(uci_fault_draw(UCI_FAULT_HEADER, 10, 3, &fault));
    cr_expect(uci_fault_draw(UCI_FAULT_HEADER, 20, 3, &fault));
    cr_expect(!uci_fault_draw(UCI_FAULT_HEADER, 9, 3, &fault));
    cr_expect(!uci_fault_draw(UCI_FAULT_HEADER, 21, 3, &fault));
    cr_expect(!uci_fault_draw(UCI_FAULT_HEADER, 15, 2, &fault));
    cr_expect(!uci_fault_draw(UCI_FAULT_HEADER, 15, -1, &fault));
    cr_expect(!uci_fault_draw(UCI_FAULT_PAYLOAD, 15, 3, &fault));

    init("rate=1", 0);
    cr_expect(uci_fault_draw(UCI_FAULT_PAYLOAD, 0, -1, &fault));
}

Test(fault_draw, only_this_rank_and_twin)
{
    uci_fault_spec_t spec = parse("rate=1,rank=2,twin=1");

    cr_expect(uci_fault_init(&spec, 2, 1) && (hits(1) == 1));
    cr_expect(!uci_fault_init(&spec, 2, 0) && (hits(1) == 0));
    cr_expect(!uci_fault_init(&spec, 1, 1) && (hits(1) == 0));
    cr_expect(!uci_fault_init(&spec, 2, -1) && (hits(1) == 0));
    cr_expect(!uci_fault_init(&spec, -1, 1) && (hits(1) == 0));
}

Test(fault_draw, the_first_are_passed_over_and_shift_nothing)
{
    enum { COUNT = 200, AFTER = 50 };
    uci_fault_t plain[COUNT], late[COUNT], none = {0};
    size_t i;

    record("rate=0.5,kind=any", 0, plain, COUNT);
    record("rate=0.5,kind=any,after=50", 0, late, COUNT);
    for (i = 0; i < COUNT; ++i) {
        cr_assert(memcmp(&late[i], (i < AFTER) ? &none : &plain[i], sizeof(none)) == 0, "decision %zu", i);
    }
}

/* Equal damage in all twins would be none to them */
Test(fault_draw, twins_differ)
{
    enum { COUNT = 200 };
    uci_fault_spec_t spec = parse("rate=0.5,kind=any");
    uci_fault_t faults[4][COUNT];
    int64_t twin;
    size_t i;

    memset(faults, 0, sizeof(faults));
    for (twin = -1; twin < 3; ++twin) {
        uci_fault_init(&spec, 0, twin);
        for (i = 0; i < COUNT; ++i) {
            uci_fault_draw(UCI_FAULT_PAYLOAD, 100, 0, &faults[twin + 1][i]);
        }
    }
    cr_expect(memcmp(faults[0], faults[1], sizeof(faults[0])) == 0, "the first is as one without twins");
    cr_expect(memcmp(faults[1], faults[2], sizeof(faults[0])) != 0);
    cr_expect(memcmp(faults[2], faults[3], sizeof(faults[0])) != 0);
}

Test(fault_draw, kinds_are_mixed_evenly)
{
    unsigned counts[UCI_FAULT_KIND_LAST] = {0}, i;
    uci_fault_t fault;

    init("rate=1,kind=burst+stale+truncate", 0);
    for (i = 0; i < 30000; ++i) {
        cr_assert(uci_fault_draw(UCI_FAULT_PAYLOAD, 1, 0, &fault));
        ++counts[fault.kind];
    }
    cr_expect(!counts[UCI_FAULT_BITFLIP] && !counts[UCI_FAULT_ZERO] && !counts[UCI_FAULT_SWAP]);
    cr_expect((counts[UCI_FAULT_BURST] > 9000) && (counts[UCI_FAULT_STALE] > 9000) &&
              (counts[UCI_FAULT_TRUNCATE] > 9000));
}

Test(fault_draw, count_limits_and_undo_gives_back)
{
    init("rate=1,count=3", 0);
    uci_fault_undo(); /* nothing to take back */
    cr_expect(uci_fault_count() == 0);
    cr_expect(hits(10) == 3);
    cr_expect(uci_fault_count() == 3);
    uci_fault_undo();
    cr_expect(uci_fault_count() == 2);
    cr_expect(hits(10) == 1);
    init("rate=1,count=0", 0);
    cr_expect(hits(10) == 0);
}

static void *draw_many(void *arg)
{
    *(uint64_t *)arg = hits(100000);
    return NULL;
}

Test(fault_draw, count_holds_among_threads)
{
    pthread_t threads[4];
    uint64_t counts[4], total = 0;
    size_t i;

    init("rate=0.5,count=1000", 0);
    for (i = 0; i < uci_array_size(threads); ++i) {
        cr_assert(pthread_create(&threads[i], NULL, draw_many, &counts[i]) == 0);
    }
    for (i = 0; i < uci_array_size(threads); ++i) {
        pthread_join(threads[i], NULL);
        total += counts[i];
    }
    cr_expect(total == 1000);
    cr_expect(uci_fault_count() == 1000);
}

typedef struct block {
    unsigned char before[GUARD + 10000 + GUARD], after[GUARD + 10000 + GUARD], stale[10000];
    size_t length, new_length;
} block_t;

static block_t block;

/* Damage a block of @a length bytes and check what holds for every kind. */
static void apply(uci_fault_kind_t kind, uint64_t random, size_t length, bool with_stale)
{
    uci_fault_t fault = {kind, random};

    memcpy(block.after, block.before, sizeof(block.after));
    block.length     = length;
    block.new_length = uci_fault_apply(&fault, block.after + GUARD, length, with_stale ? block.stale : NULL);

    cr_assert(memcmp(block.before, block.after, GUARD) == 0);
    cr_assert(memcmp(block.before + GUARD + length, block.after + GUARD + length,
                     sizeof(block.after) - GUARD - length) == 0);
    if (kind == UCI_FAULT_TRUNCATE) {
        cr_assert(block.new_length < length);
        cr_assert(memcmp(block.before, block.after, sizeof(block.after)) == 0);
    } else {
        cr_assert(block.new_length == length);
        cr_assert(memcmp(block.before, block.after, sizeof(block.after)) != 0, "%s of %zu bytes changed nothing",
                  uci_fault_kind_names[kind], length);
    }
}

static void fill(unsigned seed)
{
    size_t i;

    srand(seed);
    for (i = 0; i < sizeof(block.before); ++i) {
        block.before[i] = (unsigned char)rand();
    }
    for (i = 0; i < sizeof(block.stale); ++i) {
        block.stale[i] = (unsigned char)rand();
    }
}

/* Bits that differ, first and last byte that does */
static unsigned difference(size_t *first_p, size_t *last_p)
{
    unsigned bits = 0;
    size_t i;

    *first_p = SIZE_MAX;
    *last_p  = 0;
    for (i = 0; i < block.length; ++i) {
        unsigned char changed = block.before[GUARD + i] ^ block.after[GUARD + i];

        if (changed != 0) {
            *first_p = uci_min(*first_p, i);
            *last_p  = i;
            bits += (unsigned)__builtin_popcount(changed);
        }
    }
    return bits;
}

Test(fault_apply, every_kind_changes_every_block)
{
    static const size_t lengths[] = {1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 4095, 4096, 4097, 10000};
    unsigned kind, content;
    uint64_t random;
    size_t i;

    for (content = 0; content < 3; ++content) {
        fill(content);
        if (content == 1) { /* all zero, older content too */
            memset(&block, 0, sizeof(block));
        } else if (content == 2) { /* older content is the same */
            memcpy(block.stale, block.before + GUARD, sizeof(block.stale));
        }
        for (kind = 0; kind < UCI_FAULT_KIND_LAST; ++kind) {
            for (i = 0; i < uci_array_size(lengths); ++i) {
                for (random = 0; random < 100; ++random) {
                    apply(kind, random * 0x123456789abcdeful, lengths[i], random & 1);
                }
            }
        }
    }
}

Test(fault_apply, repeatable)
{
    unsigned char first[sizeof(block.after)];
    unsigned kind;

    fill(7);
    for (kind = 0; kind < UCI_FAULT_KIND_LAST; ++kind) {
        size_t new_length;

        apply(kind, 1234567, 5000, true);
        memcpy(first, block.after, sizeof(first));
        new_length = block.new_length;
        apply(kind, 1234567, 5000, true);
        cr_expect(memcmp(first, block.after, sizeof(first)) == 0);
        cr_expect(new_length == block.new_length);
    }
}

Test(fault_apply, bitflip_is_one_bit_anywhere)
{
    bool seen[3 * 8] = {false};
    size_t first, last;
    uint64_t random;
    unsigned i;

    fill(1);
    for (random = 0; random < 2000; ++random) {
        apply(UCI_FAULT_BITFLIP, random, 3, false);
        cr_assert(difference(&first, &last) == 1);
        seen[(first * 8) + (unsigned)__builtin_ctz(block.before[GUARD + first] ^ block.after[GUARD + first])] = true;
    }
    for (i = 0; i < uci_array_size(seen); ++i) {
        cr_expect(seen[i], "bit %u never flipped", i);
    }
}

Test(fault_apply, burst_is_2_to_32_adjacent_bytes)
{
    size_t first, last, longest = 0, i;
    uint64_t random;

    fill(2);
    for (random = 0; random < 2000; ++random) {
        apply(UCI_FAULT_BURST, random, 1000, false);
        difference(&first, &last);
        cr_assert((last > first) && (last - first < 32));
        for (i = first; i <= last; ++i) {
            cr_assert(block.before[GUARD + i] != block.after[GUARD + i]);
        }
        longest = uci_max(longest, last - first + 1);
    }
    cr_expect(longest == 32);
}

Test(fault_apply, zero_is_an_aligned_block)
{
    size_t first, last, longest = 0, i;
    uint64_t random;

    memset(block.before, 0xff, sizeof(block.before));
    for (random = 0; random < 2000; ++random) {
        apply(UCI_FAULT_ZERO, random, 10000, false);
        difference(&first, &last);
        for (i = first; i <= last; ++i) {
            cr_assert(block.after[GUARD + i] == 0);
        }
        longest = uci_max(longest, last - first + 1);
        cr_assert(first % (last - first + 1) == 0);
    }
    cr_expect(longest == 4096);
}

Test(fault_apply, stale_shows_older_content)
{
    size_t first, last;
    uint64_t random;

    fill(3);
    for (random = 0; random < 500; ++random) {
        apply(UCI_FAULT_STALE, random, 10000, true);
        difference(&first, &last);
        cr_assert(last - first < 4096);
        /* a one-byte block may be equal by chance, and is flipped then */
        cr_assert((first == last) || (memcmp(block.after + GUARD + first, block.stale + first, last - first + 1) == 0));
    }
}

Test(fault_apply, stale_without_older_content_rotates)
{
    fill(4);
    apply(UCI_FAULT_STALE, 1, 1000, false);
    cr_expect(memcmp(block.after + GUARD + 1, block.before + GUARD, 999) == 0);
    cr_expect(block.after[GUARD] == block.before[GUARD + 999]);
}

static int compare_bytes(const void *one, const void *other)
{
    return *(const unsigned char *)one - *(const unsigned char *)other;
}

Test(fault_apply, swap_keeps_all_bytes)
{
    unsigned char before[1000], after[1000];
    uint64_t random;

    for (random = 0; random < 500; ++random) {
        size_t i;

        for (i = 0; i < sizeof(before); ++i) { /* neighbours differ at every block size */
            block.before[GUARD + i] = (unsigned char)(i ^ (i >> 8) * 37);
        }
        apply(UCI_FAULT_SWAP, random, 1000, false);
        memcpy(before, block.before + GUARD, sizeof(before));
        memcpy(after, block.after + GUARD, sizeof(after));
        qsort(before, sizeof(before), 1, compare_bytes);
        qsort(after, sizeof(after), 1, compare_bytes);
        if (memcmp(before, after, sizeof(before)) != 0) { /* two equal blocks: a bit was flipped */
            size_t first, last;

            cr_assert(difference(&first, &last) == 1);
        }
    }
}

Test(fault_apply, truncate_reaches_every_length)
{
    bool seen[4] = {false};
    uint64_t random;

    fill(5);
    for (random = 0; random < 200; ++random) {
        apply(UCI_FAULT_TRUNCATE, random, 4, false);
        seen[block.new_length] = true;
    }
    cr_expect(seen[0] && seen[1] && seen[2] && seen[3]);
}

Test(fault_apply, an_empty_block_stays)
{
    uci_fault_t fault = {UCI_FAULT_BITFLIP, 1};
    unsigned kind;

    for (kind = 0; kind < UCI_FAULT_KIND_LAST; ++kind) {
        fault.kind = kind;
        cr_expect(uci_fault_apply(&fault, NULL, 0, NULL) == 0);
    }
}
