/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "seal/seal_window.h"

static bool take(uci_seal_window_t *window, uint64_t counter)
{
    if (!uci_seal_window_is_new(window, counter)) {
        return false;
    }
    uci_seal_window_take(window, counter);
    return true;
}

Test(seal_window, in_order)
{
    uci_seal_window_t window = {0};
    uint64_t i;

    for (i = 0; i < 3 * UCI_SEAL_WINDOW; ++i) {
        cr_assert(take(&window, i));
        cr_assert_not(take(&window, i));
    }
}

Test(seal_window, edges)
{
    uci_seal_window_t window = {0};

    cr_expect(take(&window, 100000));
    cr_expect_not(take(&window, 100000));
    cr_expect(take(&window, 100000 - UCI_SEAL_WINDOW + 1), "the oldest that is promised");
    cr_expect_not(take(&window, 100000 - UCI_SEAL_WINDOW + 1));
    cr_expect_not(take(&window, 100000 - UCI_SEAL_WINDOW), "older");
    cr_expect_not(take(&window, 0));
    cr_expect(take(&window, UINT64_MAX - 1));
    cr_expect_not(take(&window, UINT64_MAX), "it has no successor");
    cr_expect_not(take(&window, 100001));
    cr_expect(take(&window, UINT64_MAX - 2));
}

/* Beside a model that remembers everything */
Test(seal_window, against_a_model)
{
    enum { COUNTERS = 200000 };
    uci_seal_window_t window = {0};
    bool *seen               = calloc(COUNTERS, 1);
    uint64_t counter, top = 0;
    bool expected;
    unsigned i;

    srand48(3);
    for (i = 0; i < 2000000; ++i) {
        counter = top + (uint64_t)(lrand48() % (2 * (int)UCI_SEAL_WINDOW)) % ((i % 1000 == 0) ? 20000 : 8000);
        counter = (counter > UCI_SEAL_WINDOW) ? counter - UCI_SEAL_WINDOW + ((i % 5) == 0) : 0;
        if (lrand48() % 2000 == 0) {
            counter += (uint64_t)lrand48() % 5000;
        }
        if (counter >= COUNTERS) {
            break;
        }
        expected = !seen[counter] && (top - uci_min(counter, top) < UCI_SEAL_WINDOW || counter >= top);
        cr_assert_eq(take(&window, counter), expected, "counter %lu, highest %lu", counter, top);
        seen[counter] = seen[counter] || expected;
        top           = (counter > top) ? counter : top;
    }
    cr_expect(top > 50000, "the test got no further than %lu", top);
    free(seen);
}
