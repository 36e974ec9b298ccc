/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The pace of a program. What is rare is looked at once in so many turns of progress, which costs a program nothing that polls all the time. One that
 * sleeps between its turns would look after seconds: there each turn counts as many.
 */
#ifndef UCI_PACE_H_
#define UCI_PACE_H_

#include "turn_part.h"

/** How many counted turns are measured together */
#define UCI_PACE_TURNS 64u

/** @param now  Time in ns. Called whenever so many turns have been counted: sets how much the next ones count. */
void uci_pace_measure(uci_turn_t *turn, uint64_t now);

#endif
