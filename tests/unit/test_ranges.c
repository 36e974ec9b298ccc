/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists of ranges: neighbours become one, what does not fit is counted.
 */
#include <criterion/criterion.h>

#include "util/ranges.h"

Test(ranges, neighbours_become_one)
{
    uci_byte_range_t list[4];
    uci_ranges_t ranges;

    uci_ranges_init(&ranges, list, 4);
    uci_ranges_add(&ranges, 0, 10);
    uci_ranges_add(&ranges, 10, 5);
    uci_ranges_add(&ranges, 15, 0);
    uci_ranges_add(&ranges, 20, 1);
    cr_assert_eq(ranges.count, 2);
    cr_expect_eq(ranges.bytes, 16);
    cr_expect_eq(list[0].length, 15);
    cr_expect_eq(list[1].offset, 20);
    cr_expect_eq(list[1].length, 1);
}

Test(ranges, what_does_not_fit_is_counted)
{
    uci_byte_range_t list[2] = {{0}};
    uci_ranges_t ranges;
    unsigned i;

    uci_ranges_init(&ranges, list, 1);
    for (i = 0; i < 5; ++i) {
        uci_ranges_add(&ranges, 10 * i, 2);
        uci_ranges_add(&ranges, (10 * i) + 2, 1); /* of a range that was not kept, too */
    }
    cr_expect_eq(ranges.count, 5);
    cr_expect_eq(ranges.bytes, 15);
    cr_expect_eq(list[0].length, 3);
    cr_expect_eq(list[1].length, 0, "behind the list");

    uci_ranges_init(&ranges, NULL, 10);
    uci_ranges_add(&ranges, 7, 2);
    cr_expect_eq(ranges.count, 1);
}

Test(ranges, grows)
{
    uci_ranges_t ranges;
    unsigned i;

    uci_ranges_init_growing(&ranges);
    for (i = 0; i < 1000; ++i) {
        uci_ranges_add(&ranges, 3 * i, 1);
    }
    cr_assert_eq(ranges.count, 1000);
    for (i = 0; i < 1000; ++i) {
        cr_assert_eq(ranges.list[i].offset, 3 * i);
    }
    uci_ranges_cleanup(&ranges);
}
