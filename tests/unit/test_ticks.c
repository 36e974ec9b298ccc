/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

#include "util/ticks.h"

Test(ticks, they_are_the_time)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    uci_ticks_mark_t begin      = uci_ticks_mark(), middle, end;
    int64_t off;

    nanosleep(&pause, NULL);
    middle = uci_ticks_mark();
    nanosleep(&pause, NULL);
    end = uci_ticks_mark();
    off = (int64_t)(uci_ticks_to_ns(middle.ticks, &begin, &end) - middle.ns);
    cr_expect(llabs(off) < 2000000, "%ld ns off", (long)off); /* this process may lose its core between two readings */
    cr_expect(uci_ticks_to_ns(end.ticks, &begin, &end) == end.ns);
    cr_expect(uci_ticks_to_ns(begin.ticks, &begin, &end) - begin.ns + 10 <= 20, "but for rounding");
}

Test(ticks, no_time_has_passed)
{
    uci_ticks_mark_t begin = {.ticks = 7, .ns = 1000};

    cr_expect(uci_ticks_to_ns(7, &begin, &begin) == 1000);
    cr_expect(uci_ticks_to_ns(5, &begin, &begin) == 1000, "nothing is known");
}
