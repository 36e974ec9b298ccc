/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Who is the fastest, with turns made up: machines that stand still, move, or are disturbed.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tune/tune_contest.h"

static const tune_half_t both[] = {TUNE_HALF_CHOICE, TUNE_HALF_JUDGEMENT};

/* Turns of a candidate in all rounds of a sweep */
static void fill(tune_contest_t *contest, unsigned sweep, unsigned candidate, double ns)
{
    unsigned round;

    for (round = 0; round < TUNE_ROUNDS_MAX; ++round) {
        contest->turns[sweep][round][candidate] = (float)ns;
    }
}

Test(tune_contest, median)
{
    double values[] = {5, 1, 3, 2};

    cr_expect_eq(tune_median(values, 4), 2.5);
    cr_expect_eq(tune_median(values, 3), 2, "of 1, 2, 3: they are sorted now");
    cr_expect_eq(tune_median(values, 0), 0);
}

Test(tune_contest, empty)
{
    tune_contest_t contest = {0};
    tune_outcome_t outcome;

    tune_contest_judge(&contest, TUNE_HALF_CHOICE, &outcome);
    cr_expect_eq(outcome.times[0], 0);
    cr_expect_eq(outcome.fastest, 0);
    cr_expect_eq(outcome.slowest, 0);
    cr_expect_eq(tune_contest_close(&contest, 0, 1.15), 0);
}

/* Nothing changes: times are what was measured */
Test(tune_contest, stands_still)
{
    tune_contest_t contest = {0};
    tune_outcome_t outcome;
    unsigned half;

    fill(&contest, 0, 0, 110);
    fill(&contest, 0, 3, 100);
    fill(&contest, 0, 5, 200);
    for (half = 0; half < uci_array_size(both); ++half) {
        tune_contest_judge(&contest, both[half], &outcome);
        cr_expect(fabs(outcome.times[0] - 110) < 0.01);
        cr_expect(fabs(outcome.times[3] - 100) < 0.01);
        cr_expect(fabs(outcome.times[5] - 200) < 0.01);
        cr_expect_eq(outcome.times[1], 0, "took no turn");
        cr_expect(fabs(outcome.fastest - 100) < 0.01);
        cr_expect(fabs(outcome.slowest - 100) < 0.01);
    }
    cr_expect_eq(tune_contest_close(&contest, 0, 1.15), (1u << 0) | (1u << 3));
    cr_expect_eq(tune_contest_close(&contest, 0, 1.05), 1u << 3);
    cr_expect_eq(tune_contest_close(&contest, 1, 1.15), 0);
}

/* The machine becomes three times as slow in the middle of a sweep: comparing medians over all rounds would be luck, comparing
 * within rounds is not */
Test(tune_contest, changes_between_rounds)
{
    tune_contest_t contest = {0};
    tune_outcome_t outcome;
    unsigned round, half;
    double state;

    for (round = 0; round < TUNE_ROUNDS_MAX; ++round) {
        state                       = (round < 11) ? 1 : 3;
        contest.turns[0][round][0]  = (float)(100 * state);
        contest.turns[0][round][1]  = (float)(102 * state);
        contest.turns[0][round][15] = (round < 4) ? (float)(150 * state) : 0; /* not in the finals */
    }
    for (half = 0; half < uci_array_size(both); ++half) {
        tune_contest_judge(&contest, both[half], &outcome);
        cr_expect(fabs(outcome.times[1] / outcome.times[0] - 1.02) < 1e-5);
        cr_expect(fabs(outcome.times[15] / outcome.times[0] - 1.5) < 1e-5);
    }
}

/* A different one is the best in each state: what counts is what is lost on average, and not in which state times are long */
Test(tune_contest, different_bests)
{
    tune_contest_t contest = {0};
    tune_outcome_t outcome;
    unsigned sweep;

    for (sweep = 0; sweep < TUNE_SWEEPS_MAX; ++sweep) {
        fill(&contest, sweep, 0, (sweep < 2) ? 100 : 1000 * 1.4); /* near: the best; far: loses 40 % */
        fill(&contest, sweep, 1, (sweep < 2) ? 140 : 1000 * 1.1);
        fill(&contest, sweep, 2, (sweep < 2) ? 110 : 1000 * 1.1); /* nowhere the best, and the choice */
        fill(&contest, sweep, 3, (sweep < 2) ? 200 : 1000);
    }
    tune_contest_judge(&contest, TUNE_HALF_JUDGEMENT, &outcome);
    cr_expect(fabs(outcome.times[0] / outcome.times[2] - 1.2 / 1.1) < 1e-5);
    cr_expect(fabs(outcome.times[1] / outcome.times[2] - 1.25 / 1.1) < 1e-5);
    cr_expect(fabs(outcome.times[3] / outcome.times[2] - 1.5 / 1.1) < 1e-5);
    cr_expect(fabs(outcome.times[2] / 550 - 1.1) < 1e-5, "the median sweep's best takes 550");
    cr_expect(fabs(outcome.fastest - 100) < 0.01);
    cr_expect(fabs(outcome.slowest - 1000) < 0.01);
}

/* Turns that somebody else's work has made long do not count */
Test(tune_contest, disturbed)
{
    tune_contest_t contest = {0};
    tune_outcome_t outcome;
    unsigned half;

    fill(&contest, 2, 0, 100);
    fill(&contest, 2, 1, 104);
    contest.turns[2][3][0] = contest.turns[2][4][0] = contest.turns[2][10][0] = contest.turns[2][11][0] = 5000;
    for (half = 0; half < uci_array_size(both); ++half) {
        tune_contest_judge(&contest, both[half], &outcome);
        cr_expect(fabs(outcome.times[1] / outcome.times[0] - 1.04) < 1e-5);
    }
}

/* The halves share no turn, and each has some of every sweep */
Test(tune_contest, halves_are_independent)
{
    tune_contest_t contest = {0};
    tune_outcome_t outcome;
    unsigned sweep, round;

    for (sweep = 0; sweep < TUNE_SWEEPS_MAX; ++sweep) {
        for (round = 0; round < TUNE_ROUNDS_MAX; ++round) {
            contest.turns[sweep][round][0] = ((sweep + round) % 2 == TUNE_HALF_CHOICE) ? 100 : 300;
            contest.turns[sweep][round][1] = 200;
        }
    }
    tune_contest_judge(&contest, TUNE_HALF_CHOICE, &outcome);
    cr_expect(fabs(outcome.times[0] - 100) < 0.01);
    cr_expect(fabs(outcome.times[1] - 200) < 0.01);
    tune_contest_judge(&contest, TUNE_HALF_JUDGEMENT, &outcome);
    cr_expect(fabs(outcome.times[0] - 300) < 0.01);
    cr_expect(fabs(outcome.times[1] - 200) < 0.01);
}
