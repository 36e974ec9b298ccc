/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "seqset.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The set against an array of flags, and its own rules */
static void compare(const uci_seqset_t *set, const bool *flags, size_t count)
{
    uint64_t first_missing = 0, seq;
    size_t i;

    while ((first_missing < count) && flags[first_missing]) {
        ++first_missing;
    }
    cr_assert(uci_seqset_first_missing(set) == first_missing, "first missing is %lu, expected %lu",
              (unsigned long)uci_seqset_first_missing(set), (unsigned long)first_missing);
    for (seq = 0; seq < count; ++seq) {
        cr_assert(uci_seqset_has(set, seq) == flags[seq], "number %lu", (unsigned long)seq);
    }
    for (i = 0; i < set->count; ++i) {
        cr_assert(set->missing[i].first <= set->missing[i].last);
        cr_assert(set->missing[i].last + 1 < set->next);
        cr_assert((i == 0) || (set->missing[i - 1].last + 1 < set->missing[i].first), "ranges that touch");
    }
}

Test(seqset, in_order)
{
    uci_seqset_t set;
    uint64_t seq;

    uci_seqset_init(&set);
    cr_expect(!uci_seqset_has(&set, 0));
    for (seq = 0; seq < 1000; ++seq) {
        cr_assert(uci_seqset_add(&set, seq) == UCI_OK);
    }
    cr_expect(set.count == 0);
    cr_expect(set.missing == NULL, "no memory without gaps");
    cr_expect(uci_seqset_first_missing(&set) == 1000);
    cr_expect(uci_seqset_has(&set, 999) && !uci_seqset_has(&set, 1000));
    cr_expect(uci_seqset_add(&set, 0) == UCI_ERR_BUSY);
    cr_expect(uci_seqset_add(&set, 999) == UCI_ERR_BUSY);
    uci_seqset_cleanup(&set);
}

Test(seqset, a_gap_is_filled_from_every_side)
{
    static const uint64_t order[] = {9, 0, 8, 4, 1, 6, 2, 3, 7, 5};
    bool flags[12]                = {false};
    uci_seqset_t set;
    size_t i;

    uci_seqset_init(&set);
    for (i = 0; i < uci_array_size(order); ++i) {
        cr_assert(uci_seqset_add(&set, order[i]) == UCI_OK);
        flags[order[i]] = true;
        compare(&set, flags, uci_array_size(flags));
        cr_assert(uci_seqset_add(&set, order[i]) == UCI_ERR_BUSY);
        compare(&set, flags, uci_array_size(flags));
    }
    cr_expect(set.count == 0);
    uci_seqset_cleanup(&set);
}

Test(seqset, any_order)
{
    enum { COUNT = 400 };
    bool flags[COUNT];
    uci_seqset_t set;
    unsigned round, i, state;

    for (round = 0; round < 20; ++round) {
        uci_seqset_init(&set);
        memset(flags, 0, sizeof(flags));
        state = round + 1;
        for (i = 0; i < 3 * COUNT; ++i) {
            uint64_t seq;

            state = (state * 1103515245u) + 12345u;
            seq   = (state >> 8) % COUNT;
            cr_assert(uci_seqset_add(&set, seq) == (flags[seq] ? UCI_ERR_BUSY : UCI_OK));
            flags[seq] = true;
        }
        compare(&set, flags, COUNT);
        uci_seqset_cleanup(&set);
    }
}

Test(seqset, every_second_number)
{
    enum { COUNT = 2000 };
    uci_seqset_t set;
    uint64_t seq;

    uci_seqset_init(&set);
    for (seq = 1; seq < COUNT; seq += 2) {
        cr_assert(uci_seqset_add(&set, seq) == UCI_OK);
    }
    cr_expect(set.count == COUNT / 2);
    for (seq = 0; seq < COUNT; seq += 2) {
        cr_assert(uci_seqset_add(&set, seq) == UCI_OK);
    }
    cr_expect(set.count == 0);
    cr_expect(uci_seqset_first_missing(&set) == COUNT);
    uci_seqset_cleanup(&set);
}

Test(seqset, beyond_32_bits)
{
    uint64_t base = (1ul << 32) - 2;
    uci_seqset_t set;

    uci_seqset_init(&set);
    cr_expect(uci_seqset_add(&set, base) == UCI_OK);
    cr_expect(uci_seqset_add(&set, base + 4) == UCI_OK);
    cr_expect(set.count == 2);
    cr_expect(uci_seqset_has(&set, base) && !uci_seqset_has(&set, base + 1) && uci_seqset_has(&set, base + 4));
    cr_expect(uci_seqset_first_missing(&set) == 0);
    uci_seqset_cleanup(&set);
    cr_expect((set.next == 0) && (set.missing == NULL));
}

Test(seqset, expand_takes_the_nearest)
{
    static const uint64_t nears[] = {0x80000000ul,  0xfffffffful, 0x100000000ul,
                                     0x180000000ul, 0x1ffffffful, 0x123456789aul};
    uint64_t near, seq;
    size_t i;
    long delta;

    for (i = 0; i < uci_array_size(nears); ++i) {
        near = nears[i];
        for (delta = -300; delta <= 300; ++delta) {
            seq = near + (uint64_t)delta;
            cr_assert(uci_seq_expand((uint32_t)seq, near) == seq, "near 0x%lx, delta %ld", (unsigned long)near, delta);
        }
        seq = near + INT32_MAX;
        cr_assert(uci_seq_expand((uint32_t)seq, near) == seq);
    }
    cr_expect(uci_seq_expand(0, 0) == 0);
    cr_expect(uci_seq_expand(5, 0) == 5);
}
