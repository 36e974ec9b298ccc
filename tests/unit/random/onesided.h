/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations, and what must come of them. Each worker has memory, a slice of it for each other one, which alone works on it: so what lies
 * there at any time follows from what was begun before, since UCI executes in order. Words are all worker's, which add to them.
 *
 *     - a get brings what lay there after all that its origin had begun before, and an atomic operation likewise
 *     - when a flush ends, all that was begun before it has been executed; at the end everything
 *     - nothing else of that memory changes, and words have the sum of all that was added
 */
#ifndef UCI_TESTS_RANDOM_ONESIDED_H_
#define UCI_TESTS_RANDOM_ONESIDED_H_

#include "data.h"
#include "scenario.h"

/** Workers are there, with memory and keys for it. */
void onesided_begin(const scenario_t *scenario);

/** They are gone. */
void onesided_end(void);

/** What an operation needs until it has ended; of the caller, who zeroes it. */
typedef struct onesided {
    data_buffer_t buffer; /**< of a put, a get */
    char *wanted;         /**< of a get */
    uint64_t operand, reply, wanted_reply;
    unsigned begun; /**< of a flush: operations before it */
} onesided_t;

/** Begin it. @param param  with what its end is told by. */
ucs_status_ptr_t onesided_run(const op_t *op, onesided_t *this, ucp_request_param_t *param);

/** It has ended well: judge it. */
void onesided_ended(const op_t *op, onesided_t *this);

void onesided_free(onesided_t *this);

/** Has all that @a from has begun on @a to's memory been executed? */
bool onesided_is_executed(unsigned from, unsigned to);

/** At the end: is everything as it has to be? */
void onesided_judge(void);

#endif
