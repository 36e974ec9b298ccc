/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Twins (UCI_TWINS): a program is run two or three times, and each rank compares the digests of what it receives with what the same rank of
 * the other runs has received. What arrives intact, and differs, was computed differently. (RedMPI: Fiala et al., SC 2012.)
 *
 *     message verified --received()--> a value: (channel, number), digest, length --> votes (twin_votes.h) <-- values of the twins
 *                                         |                                             |
 *                                         v                                          verdict: told (twin_report.h), and with
 *                                      batch --> twins (twin_link.h)                 UCI_TWINS_MODE=correct acted upon (twin_hold.h)
 *
 * Values travel in batches, when one is full and in some of the turns of progress: nobody waits for them. With correct, a receive completes
 * after the vote, and values are sent in the next turn.
 *
 * A process takes part from its first worker until its last one goes. There it waits, UCI_TWINS_WAIT seconds at most, for what its twins
 * still have to say.
 *
 * Thread safe: one lock for all, which is taken within the lock of a worker, never the other way round.
 */
#ifndef UCI_TWIN_H_
#define UCI_TWIN_H_

#include "base/worker_state.h"

/** Makes a context of UCX's for the worker that talks to twins. @return NULL: it can't be had (logged). */
typedef uci_context_t *(*uci_twin_open_context_t)(void);
typedef void (*uci_twin_close_context_t)(uci_context_t *context);

/** The program has made a worker: compare what it receives, if UCI_TWINS is set. Ends the job if that is not possible. */
void uci_twin_attach(uci_worker_t *worker, uci_twin_open_context_t open_context);

/**
 * The system has told the program @a words, the answer to a question of this @a kind (UCI_TWINS_TIME): twin 0 tells it to the others, which get
 * what twin 0 was told, and wait for it.
 * @return whether @a words are another twin's now.
 */
bool uci_twin_answer(unsigned kind, uint64_t words[2]);

/** It is about to go. With the last one everything ends, and the report is written. */
void uci_twin_detach(uci_worker_t *worker, uci_twin_close_context_t close_context);

#endif
