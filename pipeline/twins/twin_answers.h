/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * UCI_TWINS_TIME: what the system tells the program of twin 0 when it asks for the time, or for random numbers, is told to the programs of the
 * other twins, too. Answer n of a kind of question there is answer n here. (Record and replay of nondeterministic system calls.) Who catches
 * the program's questions: ucx_plugin/attach/twin_time.c, a library of its own.
 *
 * Not thread safe: twin.c's lock holds. Which of two threads asks first is not told.
 */
#ifndef UCI_TWIN_ANSWERS_H_
#define UCI_TWIN_ANSWERS_H_

#include "twin/twin_batch.h"

/** Follower: what the leader was told. @return UCI_OK; UCI_ERR_INVALID_PARAM: not the next of its kind; UCI_ERR_NO_MEMORY. */
uci_status_t uci_twin_answers_add(const uci_twin_answer_t *answer);

/** Follower: is the next answer of @a kind here? Then it is taken. */
bool uci_twin_answers_take(unsigned kind, uint64_t words[2]);

/** Leader: the number of the next answer of @a kind, from 0. */
uint32_t uci_twin_answers_next(unsigned kind);

#endif
