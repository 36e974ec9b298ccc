/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the wire does to messages. Each place where it could do something asks for a decision, which follows from the seed, the place, and
 * its number there; or from the list of a scenario. It is fair: the same thing is not hit more often than the scenario says, so that what
 * is repeated gets through at last.
 */
#ifndef UCI_TESTS_RANDOM_FAULTS_H_
#define UCI_TESTS_RANDOM_FAULTS_H_

#include "conversation/conversation.h"
#include "protocol.h"
#include "scenario.h"

/** Begin a world; sets the hooks of the fake UCX. @param story  where to tell what happens, or NULL. */
void faults_begin(scenario_t *scenario, FILE *stream);

/** None from now on, or again. */
void faults_pause(bool paused);

/** The world is over. */
void faults_end(void);

/** Before a turn of this node: what lies in its shared memory may be hit. */
void faults_hit_memory(unsigned node);

/** Messages so far, and those hit, by what was in them. */
typedef struct faults_counts {
    uint64_t messages;
    uint64_t turns;
    uint64_t faults;
    uint64_t trace; /**< of all that was sent, in order: equal for equal runs */
    uint64_t by_kind[FAULT_LAST];
    uint64_t reached[PROTOCOL_STATES][PROTOCOL_TYPES]; /**< by protocol_state() and protocol_type() */
    uint64_t conversations[UCI_CONVERSATION_STATES][UCI_CONVERSATION_EVENTS]; /**< cells of their table */
} faults_counts_t;

extern faults_counts_t *faults_counts;

#endif
