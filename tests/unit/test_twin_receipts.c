/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <criterion/criterion.h>
#include "twin/twin_receipts.h"

static uci_twin_receipts_t receipts;

Test(twin_receipts, what_was_not_received_is_not_known)
{
    cr_expect(uci_twin_receipts_find(&receipts, 0, 0) == 0);
    cr_expect(uci_twin_receipts_find(&receipts, UINT32_MAX, 7) == 0);
}

Test(twin_receipts, the_last_of_a_channel_are_kept)
{
    uint32_t number, first = UINT32_MAX - 10; /* numbers wrap around */

    for (number = 0; number < 3 * UCI_TWIN_RECEIPTS; ++number) {
        uci_twin_receipts_note(&receipts, 5, first + number, 1 + number);
    }
    for (number = 2 * UCI_TWIN_RECEIPTS; number < 3 * UCI_TWIN_RECEIPTS; ++number) {
        cr_assert(uci_twin_receipts_find(&receipts, 5, first + number) == 1 + number);
    }
    cr_expect(uci_twin_receipts_find(&receipts, 5, first) == 0, "too long ago");
    cr_expect(uci_twin_receipts_find(&receipts, 6, first + number - 1) == 0, "another channel");
}

/* As a halo exchange has them: what is not too old is found */
Test(twin_receipts, channels_side_by_side)
{
    uint32_t channel, number, found = 0;

    for (number = 0; number < 1000; ++number) {
        for (channel = 0; channel < 26; ++channel) {
            uci_twin_receipts_note(&receipts, channel, number, 1 + (100 * number) + channel);
        }
    }
    for (number = 990; number < 1000; ++number) {
        for (channel = 0; channel < 26; ++channel) {
            uint64_t time = uci_twin_receipts_find(&receipts, channel, number);

            cr_assert((time == 0) || (time == 1 + (100 * number) + channel));
            found += (time != 0);
        }
    }
    cr_expect(found == 260, "%u of 260", found);
}
