/* SPDX-License-Identifier: BSD-3-Clause */
#include "pace.h"

/* A turn that takes less than twice as long counts as one */
#define UCI_PACE_NS 10000u

/* As how many one may count: all that is rare is looked at once in so many turns, or in a multiple of them, but for what is worth a look in fewer */
#define UCI_PACE_MOST 256u

void uci_pace_measure(uci_turn_t *turn, uint64_t now)
{
    unsigned weight    = (turn->pace / 2) + 1;
    unsigned turns     = (weight < UCI_PACE_TURNS) ? UCI_PACE_TURNS / weight : 1;
    uint64_t intervals = (now - turn->pace_time) / turns / UCI_PACE_NS; /* of one turn */

    for (weight = 1; (weight < UCI_PACE_MOST) && (2 * weight <= intervals); weight *= 2) {
    }
    turn->pace      = (2 * weight) - 1;
    turn->pace_time = now;
}
