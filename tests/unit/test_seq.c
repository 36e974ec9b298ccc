/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "util/seq.h"

Test(seq, expand_takes_the_nearest)
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
