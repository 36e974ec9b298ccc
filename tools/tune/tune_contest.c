/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune_contest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounds of a sweep that count. Which half has the even ones changes, since the order of turns depends on the round. */
typedef struct tune_rounds {
    const float (*turns)[TUNE_CANDIDATES_MAX];
    unsigned first, step;
} tune_rounds_t;

static tune_rounds_t tune_rounds_of(const tune_contest_t *contest, unsigned sweep, tune_half_t half)
{
    return (tune_rounds_t){.turns = contest->turns[sweep], .first = (sweep + (unsigned)half) % 2, .step = 2};
}

static int tune_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double tune_median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), tune_compare);
    return (count > 0) ? (values[(count - 1) / 2] + values[count / 2]) / 2 : 0;
}

/* Median of one candidate's turns, or of their ratios to another's in the same round. @param other  or -1. */
static double tune_typical(const tune_rounds_t *rounds, unsigned candidate, int other, unsigned *count_p)
{
    double values[TUNE_ROUNDS_MAX];
    unsigned count = 0, round;
    float turn, base;

    for (round = rounds->first; round < TUNE_ROUNDS_MAX; round += rounds->step) {
        turn = rounds->turns[round][candidate];
        base = (other < 0) ? 1 : rounds->turns[round][other];
        if ((turn > 0) && (base > 0)) {
            values[count++] = (double)turn / base;
        }
    }
    *count_p = count;
    return tune_median(values, count);
}

/* Whom the others are compared with: of those with the most turns, the fastest. @return -1 if there were no turns. */
static int tune_find_reference(const tune_rounds_t *rounds, double *time_p)
{
    unsigned most = 0, candidate, count;
    int found     = -1;
    double time;

    for (candidate = 0; candidate < TUNE_CANDIDATES_MAX; ++candidate) {
        time = tune_typical(rounds, candidate, -1, &count);
        if ((count > most) || ((count == most) && (count > 0) && (time < *time_p))) {
            most    = count;
            found   = (int)candidate;
            *time_p = time;
        }
    }
    return found;
}

/* Times relative to the best one's in these rounds, 0 of those without a turn. @return the best one's time, 0: no turns. */
static double tune_relate(const tune_rounds_t *rounds, double ratios[TUNE_CANDIDATES_MAX])
{
    double time = 0, best = INFINITY;
    int reference = tune_find_reference(rounds, &time);
    unsigned candidate, count;

    if (reference < 0) {
        return 0;
    }
    for (candidate = 0; candidate < TUNE_CANDIDATES_MAX; ++candidate) {
        ratios[candidate] = tune_typical(rounds, candidate, reference, &count);
        best              = (count > 0) ? fmin(best, ratios[candidate]) : best;
    }
    for (candidate = 0; candidate < TUNE_CANDIDATES_MAX; ++candidate) {
        ratios[candidate] /= best;
    }
    return time * best;
}

void tune_contest_judge(const tune_contest_t *contest, tune_half_t half, tune_outcome_t *outcome_p)
{
    double ratios[TUNE_CANDIDATES_MAX], bests[TUNE_SWEEPS_MAX], typical;
    unsigned counts[TUNE_CANDIDATES_MAX] = {0}, sweeps = 0, sweep, candidate;
    tune_rounds_t rounds;

    memset(outcome_p, 0, sizeof(*outcome_p));
    for (sweep = 0; sweep < TUNE_SWEEPS_MAX; ++sweep) {
        rounds        = tune_rounds_of(contest, sweep, half);
        bests[sweeps] = tune_relate(&rounds, ratios);
        if (bests[sweeps] == 0) {
            continue;
        }
        ++sweeps;
        for (candidate = 0; candidate < TUNE_CANDIDATES_MAX; ++candidate) {
            outcome_p->times[candidate] += ratios[candidate];
            counts[candidate] += ratios[candidate] > 0;
        }
    }
    typical            = tune_median(bests, sweeps); /* sorts them */
    outcome_p->fastest = (sweeps > 0) ? bests[0] : 0;
    outcome_p->slowest = (sweeps > 0) ? bests[sweeps - 1] : 0;
    for (candidate = 0; candidate < TUNE_CANDIDATES_MAX; ++candidate) {
        outcome_p->times[candidate] *= (counts[candidate] > 0) ? typical / counts[candidate] : 0;
    }
}

unsigned tune_contest_close(const tune_contest_t *contest, unsigned sweep, double factor)
{
    tune_rounds_t rounds               = {.turns = contest->turns[sweep], .first = 0, .step = 1};
    double ratios[TUNE_CANDIDATES_MAX] = {0};
    unsigned close                     = 0, candidate;

    if (tune_relate(&rounds, ratios) == 0) {
        return 0;
    }
    for (candidate = 0; candidate < TUNE_CANDIDATES_MAX; ++candidate) {
        close |= ((ratios[candidate] > 0) && (ratios[candidate] <= factor)) ? 1u << candidate : 0;
    }
    return close;
}
