/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The program's own active messages, and what must come of them: each is handed out once, in the order in which its sender has sent those to this
 * worker, with its header and its bytes. Handlers do what programs do: look at the data, keep them and look again later, receive those of a
 * rendezvous at once or later, or let them be.
 */
#ifndef UCI_TESTS_RANDOM_ACTIVE_H_
#define UCI_TESTS_RANDOM_ACTIVE_H_

#include "scenario.h"

#define ACTIVE_HEADER_MAX 200u

/** Nothing has been sent. */
void active_begin(const scenario_t *scenario);

/** A worker is there: it has a handler for each other one. */
void active_join(unsigned node);

/** One is about to be sent. @return its number, by which data_write() knows its bytes; 0: there are too many. */
unsigned active_note(unsigned from, unsigned to, uint64_t length, size_t header_length);

/** Bytes of its header. */
void active_header(unsigned number, char *bytes, size_t length);

/** What handlers have put off is done, so many percent of it. */
void active_turn(unsigned node, unsigned percent);

/** Has all that @a from has sent to @a to been handed out, and received? */
bool active_is_received(unsigned from, unsigned to);

/** The same of all. */
bool active_is_over(void);

#endif
