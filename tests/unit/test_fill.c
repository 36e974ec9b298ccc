/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "transfer/fill.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SLOT = 32 << 10 };

/* So many chunks, if each way takes so long */
static void fill_slots(uci_fill_t *fill, unsigned count, uint64_t near_ns, uint64_t far_ns)
{
    while (count-- > 0) {
        if (uci_fill_is_measured(fill)) {
            uci_fill_learn(fill, uci_fill_is_far(fill) ? far_ns : near_ns, SLOT);
        }
        uci_fill_next(fill);
    }
}

Test(fill, chooses_the_faster_way_and_changes_its_mind)
{
    uci_fill_t fill;

    uci_fill_init(&fill);
    cr_expect(!uci_fill_is_far(&fill), "through the caches, until more is known");
    fill_slots(&fill, 10000, 1200, 2800);
    cr_expect(!fill.far && (fill.settled > 0), "cores that share a cache");
    fill_slots(&fill, 20000, 9000, 3000);
    cr_expect(fill.far, "cores that do not: the change is seen before its time");
    fill_slots(&fill, 40000, 1200, 2800);
    cr_expect(!fill.far, "near again: seen by the next trial");
}

/* Brought forward once, not with each measurement, wherever the count is */
Test(fill, a_change_brings_one_trial_forward)
{
    unsigned far = 0, i;
    uci_fill_t fill;

    uci_fill_init(&fill);
    fill_slots(&fill, 100000, 1200, 2800);
    for (i = 0; i < 20000; ++i) {
        far += uci_fill_is_far(&fill);
        fill_slots(&fill, 1, 3600, 2800);
    }
    cr_expect((far > 0) && (far <= 2 * UCI_FILL_TRIAL), "%u chunks went the other way", far);
    cr_expect(!fill.far);
}

Test(fill, far_from_the_start)
{
    uci_fill_t fill;

    uci_fill_init(&fill);
    fill_slots(&fill, 2000, 9000, 3000);
    cr_expect(fill.far);
}

Test(fill, a_small_gain_is_none)
{
    uci_fill_t fill;

    uci_fill_init(&fill);
    fill_slots(&fill, 100000, 3000, 2500);
    cr_expect(!fill.far, "the receiver would read from memory");
}

Test(fill, trials_are_rare)
{
    unsigned far = 0, i;
    uci_fill_t fill;

    uci_fill_init(&fill);
    for (i = 0; i < 200000; ++i) {
        far += uci_fill_is_far(&fill);
        fill_slots(&fill, 1, 1200, 2800);
    }
    cr_expect((far > 0) && (far <= 7 * UCI_FILL_TRIAL), "%u chunks went the wrong way", far);
}

Test(fill, one_interruption_changes_nothing)
{
    uci_fill_t fill;
    uint32_t trial;

    uci_fill_init(&fill);
    fill_slots(&fill, 4000, 1200, 2800);
    trial = fill.trial;
    fill_slots(&fill, 32, 20000000, 2800);
    fill_slots(&fill, 10000, 1200, 2800);
    cr_expect(!fill.far && (fill.trial == trial), "no trial is brought forward");
}

Test(fill, length_does_not_matter)
{
    uci_fill_t fill;

    uci_fill_init(&fill);
    uci_fill_learn(&fill, 1500, SLOT / 2);
    cr_expect((fill.ns[false] > 93) && (fill.ns[false] < 94));
}

/* Both ways, and in between, bytes and digest are right */
Test(fill, copies)
{
    static char src[SLOT], dst[SLOT + 1] __attribute__((aligned(UCI_CACHE_LINE)));
    const uci_digest_ops_t *digest;
    uci_fill_t fill;
    unsigned i, k;

    uci_fill_init(&fill);
    uci_digest_init();
    digest = &uci_digest_table[UCI_DIGEST_XXH3];
    for (i = 0; i < 3000; ++i) {
        size_t length = UCI_FILL_MIN + ((i * 773) % (SLOT - UCI_FILL_MIN + 1));

        for (k = 0; k < SLOT; k += 509) {
            src[k] = (char)(i + k);
        }
        memset(dst, 0x5a, sizeof(dst));
        cr_assert(uci_fill_copy(&fill, digest, dst, src, length) == digest->digest(src, length));
        cr_assert(memcmp(dst, src, length) == 0);
        cr_assert((length == SLOT) || (dst[length] == 0x5a));
    }
    cr_expect(fill.count == 3000);
    cr_expect((fill.ns[false] > 0) && (fill.ns[true] > 0), "both have been measured");
}
