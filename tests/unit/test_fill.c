/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fill.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SLOT = 32 << 10 };

/* So many measurements of each way */
static void learn(uci_fill_t *fill, unsigned count, uint64_t near_ns, uint64_t far_ns)
{
    while (count-- > 0) {
        uci_fill_learn(fill, false, near_ns, SLOT);
        uci_fill_learn(fill, true, far_ns, SLOT);
    }
}

Test(fill, chooses_the_faster_way_and_changes_its_mind)
{
    uci_fill_t fill = {0};

    cr_expect(!fill.far, "through the caches, until more is known");
    uci_fill_learn(&fill, false, 9000, SLOT);
    cr_expect(!fill.far, "one way only is known");
    learn(&fill, 10, 1200, 2800);
    cr_expect(!fill.far, "cores that share a cache");
    learn(&fill, 30, 9000, 3000);
    cr_expect(fill.far, "cores that do not");
    learn(&fill, 30, 1200, 2800);
    cr_expect(!fill.far, "near again");
}

Test(fill, a_small_gain_is_none)
{
    uci_fill_t fill = {0};

    learn(&fill, 30, 3000, 2500);
    cr_expect(!fill.far, "the receiver would read from memory");
}

Test(fill, one_interruption_changes_nothing)
{
    uci_fill_t fill = {0};

    learn(&fill, 10, 1200, 2800);
    uci_fill_learn(&fill, false, 20000000, SLOT);
    cr_expect(!fill.far);
    learn(&fill, 30, 9000, 3000);
    uci_fill_learn(&fill, true, 20000000, SLOT);
    cr_expect(fill.far);
}

Test(fill, length_does_not_matter)
{
    uci_fill_t fill = {0};

    uci_fill_learn(&fill, true, 1500, SLOT / 2);
    uci_fill_learn(&fill, false, 9000, SLOT);
    cr_expect(fill.far);
    cr_expect((fill.far_ns > 93) && (fill.far_ns < 94) && (fill.near_ns > 281) && (fill.near_ns < 282));
}

/* Both ways, and in between, bytes and digest are right */
Test(fill, copies)
{
    static char src[SLOT], dst[SLOT + 1] __attribute__((aligned(UCI_CACHE_LINE)));
    const uci_digest_ops_t *digest;
    uci_fill_t fill = {0};
    unsigned i, k;

    uci_digest_init();
    digest = &uci_digest_table[UCI_DIGEST_XXH3];
    for (i = 0; i < 1000; ++i) {
        size_t length = UCI_FILL_MIN + ((i * 773) % (SLOT - UCI_FILL_MIN + 1));

        for (k = 0; k < SLOT; k += 509) {
            src[k] = (char)(i + k);
        }
        memset(dst, 0x5a, sizeof(dst));
        fill.far = (i % 3 == 0);
        cr_assert(uci_fill_copy(&fill, digest, dst, src, length) == digest->digest(src, length));
        cr_assert(memcmp(dst, src, length) == 0);
        cr_assert((length == SLOT) || (dst[length] == 0x5a));
    }
    cr_expect(fill.count == 1000);
    cr_expect((fill.near_ns > 0) && (fill.far_ns > 0), "both have been measured");
}
