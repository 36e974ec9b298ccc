/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Make a failing scenario smaller: leave out operations and faults as long as it fails in the same way (delta debugging: Zeller and
 * Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), then make what remains simpler.
 */
#ifndef UCI_TESTS_RANDOM_SHRINK_H_
#define UCI_TESTS_RANDOM_SHRINK_H_

#include "scenario.h"

/** Ways to end beside those of verdict_t */
#define OUTCOME_HANGS 60
#define OUTCOME_EXIT  200  /**< plus the exit status: a sanitizer has ended it */
#define OUTCOME_CRASH 1000 /**< plus the signal */

/**
 * Run a scenario in a process of its own.
 * @param story    where to tell it, or NULL.
 * @param noted    if not NULL, gets the faults that there were, to be freed with scenario_free(); shape and program are not copied.
 * @return a verdict_t, OUTCOME_HANGS or OUTCOME_CRASH.
 */
int shrink_try(const scenario_t *scenario, FILE *story, scenario_t *noted);

/** What such a number means; good until the next call. */
const char *shrink_outcome(int outcome);

/** @return how often it was tried; @a scenario is listed afterwards. */
unsigned shrink_run(scenario_t *scenario, int outcome, unsigned tries_max);

#endif
