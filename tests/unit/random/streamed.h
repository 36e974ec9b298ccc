/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams, and what must come of them: the bytes that one worker has sent to another, in order, however they were cut when they were sent and are
 * when they are received. Only as long as neither has closed its first endpoint to the other: the n-th of one side is connected to the n-th of the
 * other, and worlds do not count them.
 */
#ifndef UCI_TESTS_RANDOM_STREAMED_H_
#define UCI_TESTS_RANDOM_STREAMED_H_

#include "scenario.h"

/** Nothing has been sent. */
void streamed_begin(const scenario_t *scenario);

/** Bytes go; a receive of so many is posted, with WAITALL if @a op is `sync`; or what is here is taken as it is. */
void streamed_run(const op_t *op);

/** The program is over: what receives wait for is sent, and what was sent is received. */
void streamed_finish(void);

/** An endpoint of @a node to @a peer is closed: no more streams of these two. */
void streamed_closed(unsigned node, unsigned peer);

/** May @a node close its endpoint to @a peer: has it received all that came from there, and are its sends over? */
bool streamed_is_settled(unsigned node, unsigned peer);

/** The same of all; and all sends are over. */
bool streamed_is_over(void);

#endif
