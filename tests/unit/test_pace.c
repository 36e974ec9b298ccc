/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The pace of a program: what is looked at once in so many turns is looked at in time, however seldom it calls.
 */
#include <criterion/criterion.h>
#include <stdint.h>

#include "turn/pace.h"

#define RARELY 1024u /* turns between two looks */

static uint64_t now = 1000000000;

/* @return whether it is one for a look; all that a turn of progress does to the count */
static bool turn_is_for_a_look(uci_turn_t *turn, uint64_t ns)
{
    now += ns;
    turn->count = ((turn->count + 1) | turn->pace) + 1;
    if (turn->count % (2 * UCI_PACE_TURNS) == 0) {
        uci_pace_measure(turn, now);
    }
    return turn->count % (2 * RARELY) == 0;
}

/* @return in how many turns there is one look, once that has settled */
static unsigned turns_for_a_look(uci_turn_t *turn, uint64_t ns)
{
    unsigned i, looks = 0, turns = 64 * RARELY;

    for (i = 0; i < RARELY; ++i) {
        turn_is_for_a_look(turn, ns);
    }
    for (i = 0; i < turns; ++i) {
        looks += turn_is_for_a_look(turn, ns) ? 1 : 0;
    }
    cr_assert_gt(looks, 0, "no look in %u turns of %lu ns", turns, (unsigned long)ns);
    return turns / looks;
}

Test(pace, a_program_that_polls_looks_rarely)
{
    uci_turn_t turn = {0};

    cr_expect_eq(turns_for_a_look(&turn, 100), RARELY);
    cr_expect_eq(turns_for_a_look(&turn, 15000), RARELY);
}

Test(pace, one_that_sleeps_looks_as_often_by_time)
{
    uci_turn_t turn = {0};
    uint64_t ns;

    for (ns = 20000; ns <= 2560000; ns *= 2) {
        cr_expect_leq(turns_for_a_look(&turn, ns) * ns, RARELY * 20000, "turns of %lu ns", (unsigned long)ns);
    }
    cr_expect_leq(turns_for_a_look(&turn, 1000000000), 4);
}

/* It is noticed within the turns that are measured, in both directions */
Test(pace, follows_the_program)
{
    uci_turn_t turn = {0};
    unsigned i, looks = 0;

    turns_for_a_look(&turn, 100);
    for (i = 0; i < 2 * UCI_PACE_TURNS; ++i) {
        looks += turn_is_for_a_look(&turn, 10000000) ? 1 : 0;
    }
    cr_expect_geq(looks, UCI_PACE_TURNS / 8, "%u looks", looks);
    for (i = 0, looks = 0; i < RARELY; ++i) {
        looks += turn_is_for_a_look(&turn, 100) ? 1 : 0;
    }
    cr_expect_leq(looks, 2, "%u looks", looks);
}
