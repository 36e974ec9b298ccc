/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Costs: points, lines between them, and Hockney's parameters, worked out by hand.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "tune/cost_model.h"

static void expect_near(double value, double expected)
{
    cr_expect(fabs(value - expected) <= 1e-9 * fabs(expected) + 1e-12, "%g is not %g", value, expected);
}

static uci_cost_t make_cost(unsigned count, const uint64_t (*points)[2])
{
    uci_cost_t cost = {0};
    unsigned i;

    for (i = 0; i < count; ++i) {
        cr_assert_eq(uci_cost_add(&cost, points[i][0], (double)points[i][1]), UCI_OK);
    }
    return cost;
}

Test(cost, points_are_sorted_and_replaced)
{
    const uint64_t points[][2] = {{4096, 100}, {64, 10}, {1024, 20}};
    uci_cost_t cost            = make_cost(3, points);

    cr_expect_eq(cost.points[0].size, 64);
    cr_expect_eq(cost.points[1].size, 1024);
    cr_expect_eq(cost.points[2].size, 4096);
    cr_expect_eq(uci_cost_add(&cost, 1024, 30), UCI_OK);
    cr_expect_eq(cost.count, 3);
    expect_near(cost.points[1].ns, 30);
}

Test(cost, bad_points_are_refused)
{
    uci_cost_t cost = {0};
    unsigned i;

    cr_expect_eq(uci_cost_add(&cost, 1, 0), UCI_ERR_INVALID_PARAM);
    cr_expect_eq(uci_cost_add(&cost, 1, -1), UCI_ERR_INVALID_PARAM);
    cr_expect_eq(uci_cost_add(&cost, 1, NAN), UCI_ERR_INVALID_PARAM);
    cr_expect_eq(uci_cost_add(&cost, 1, INFINITY), UCI_ERR_INVALID_PARAM);
    cr_expect_eq(cost.count, 0);
    for (i = 0; i < UCI_COST_POINTS_MAX; ++i) {
        cr_expect_eq(uci_cost_add(&cost, i, 1 + i), UCI_OK);
    }
    cr_expect_eq(uci_cost_add(&cost, i, 1), UCI_ERR_INVALID_PARAM);
    cr_expect_eq(uci_cost_add(&cost, 3, 1), UCI_OK, "replacing needs no room");
}

Test(cost, between_and_beyond_the_points)
{
    const uint64_t points[][2] = {{100, 10}, {200, 30}, {400, 40}};
    uci_cost_t cost = make_cost(3, points), empty = {0}, one = make_cost(1, points);

    expect_near(uci_cost_at(&cost, 0), 10);
    expect_near(uci_cost_at(&cost, 100), 10);
    expect_near(uci_cost_at(&cost, 150), 20);
    expect_near(uci_cost_at(&cost, 200), 30);
    expect_near(uci_cost_at(&cost, 300), 35);
    expect_near(uci_cost_at(&cost, 400), 40);
    expect_near(uci_cost_at(&cost, 800), 60);
    expect_near(uci_cost_at(&empty, 100), 0);
    expect_near(uci_cost_at(&one, 1000), 10);
}

Test(cost, larger_is_never_free)
{
    const uint64_t points[][2] = {{100, 30}, {200, 20}};
    uci_cost_t cost            = make_cost(2, points);

    expect_near(uci_cost_at(&cost, 400), 40);
}

Test(cost, fit_finds_a_line)
{
    uci_cost_t cost = {0}, two = {0};
    uci_cost_line_t line;
    uint64_t size;

    for (size = 64; size <= 1 << 20; size *= 4) {
        uci_cost_add(&cost, size, 500 + (double)size / 8);
    }
    cr_assert_eq(uci_cost_fit(&cost, &line), UCI_OK);
    cr_expect(fabs(line.latency_ns - 500) < 1e-3);
    cr_expect(fabs(line.bytes_per_ns - 8) < 1e-5);

    uci_cost_add(&two, 1, 10);
    cr_expect_eq(uci_cost_fit(&two, &line), UCI_ERR_NO_ELEM);
    uci_cost_add(&two, 2, 5); /* falling: nonsense, but no nonsense comes out */
    cr_assert_eq(uci_cost_fit(&two, &line), UCI_OK);
    cr_expect(line.bytes_per_ns > 0);
    cr_expect(line.latency_ns >= 0);
}
