/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The other workers of this process: who waits in one of them serves all.
 *
 * On plain UCX a small message needs nothing more of its sender. With UCI it does if it arrives damaged: its sender must
 * answer the question for it. A program that has sent it by one worker and then waits in another one would never do so, and
 * what it waits for may depend on that message: MPI_Win_start of Open MPI's osc/ucx makes progress in osc's own worker only,
 * while the other rank is still in a barrier of pml/ucx. So each worker's progress looks now and then after the others, also
 * that of workers UCI has nothing else to do with. A worker that its program has left alone for a while gets some turns.
 *
 * No code of the program's may notice. It may take for granted that its callbacks run in progress of their own worker:
 *
 *   - Completions of UCI's requests that have a callback stay queued until the worker's next own turn (uci_request_deliver()).
 *     Only functions of generic datatypes may be called, for a receive that was posted.
 *   - A worker for which UCX itself calls the program (callbacks of operations that pass through, error
 *     handlers) is left alone.
 *   - A worker of mode MULTI is served if its lock is free. Another one only by the thread that uses it: a thread that comes new
 *     to it says so under the lock of this file first, and waits there for one who serves (uci_siblings_take_over()). So two
 *     threads are never in it. After the second change of threads it is left alone.
 *   - A worker of which somebody is inside, a callback further up say, is left alone.
 *
 * What cannot be served: who sleeps (ucp_worker_wait(), or in the system) or waits outside of UCX.
 */
#ifndef UCI_SIBLINGS_H_
#define UCI_SIBLINGS_H_

#include "worker_state.h"

/** Calls of progress between two looks. Power of two. */
#define UCI_SIBLINGS_TURNS 1024

void uci_siblings_join(uci_worker_t *worker);

/** Nobody serves it from now on: its end begins. Waits until nobody is in it. For the others it lives until uci_siblings_leave(). */
void uci_siblings_stop(uci_worker_t *worker);

/** With uci_siblings_stop(), if that has not been. */
void uci_siblings_leave(uci_worker_t *worker);

/** Serve those that need it, as a thread that makes progress in @a self, or NULL: in a worker that is not UCI's. */
void uci_siblings_help(const uci_worker_t *self);

/** Is that a peer of this process's whose worker is destroyed? */
bool uci_siblings_lack(const uci_peer_t *peer);

/** For a debugger: call @a func for each worker of this process, without a lock. @return how many there are. */
size_t uci_siblings_visit(void (*func)(uci_worker_t *worker, void *arg), void *arg);

/** This thread, which is not the one that has used the worker so far, is about to. Not for mode MULTI. */
void uci_siblings_take_over(uci_worker_t *worker);

#endif
