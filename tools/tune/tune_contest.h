/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of several candidates is the fastest, on a machine whose speed changes while it is measured: processors that move
 * apart and together again make a message take 0.2 us in one second and 0.7 us in the next, and change who is the best.
 *
 * Candidates take turns in rounds, and only turns of the same round are compared. Several sweeps go over all sizes, so that
 * the rounds of one size are spread over the whole run. Half of the rounds are for the choice, the others judge it: they have
 * seen the same machine, but not the same noise.
 */
#ifndef UCI_TUNE_CONTEST_H_
#define UCI_TUNE_CONTEST_H_

#include "util/types.h"

#define TUNE_CANDIDATES_MAX 16
#define TUNE_SWEEPS_MAX     4
#define TUNE_ROUNDS_MAX     24 /* of a sweep */

typedef enum { TUNE_HALF_CHOICE, TUNE_HALF_JUDGEMENT } tune_half_t;

/* All turns at one size. All zero is an empty one. */
typedef struct tune_contest {
    float turns[TUNE_SWEEPS_MAX][TUNE_ROUNDS_MAX][TUNE_CANDIDATES_MAX]; /* any unit; 0: took no turn */
} tune_contest_t;

/* What came out, in the turns' unit */
typedef struct tune_outcome {
    double times[TUNE_CANDIDATES_MAX]; /* 0: took no turn */
    double fastest, slowest;           /* what the best of a sweep took, in the sweep where that was least, and most */
} tune_outcome_t;

/** @return the mean of the two in the middle if the count is even; 0 if it is 0. Sorts @a values. */
double tune_median(double *values, unsigned count);

/**
 * A candidate's time is the mean over sweeps of its time relative to the best one of that sweep, times what the best one
 * takes in the median sweep. Within a sweep times relative to each other are medians over rounds. So a candidate is good
 * if it is good in all states of the machine, and the differences between these do not count.
 */
void tune_contest_judge(const tune_contest_t *contest, tune_half_t half, tune_outcome_t *outcome_p);

/**
 * @return bits of the candidates whose median in this sweep, both halves, is at most @a factor times the best one's: who
 *         should take more turns.
 */
unsigned tune_contest_close(const tune_contest_t *contest, unsigned sweep, double factor);

#endif
