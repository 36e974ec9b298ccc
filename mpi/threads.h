/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What each thread is in, and waits for: its entry in the file (calls_file.h). One that tests again and again waits for all that it has tested since it found
 * something, or called anything else: several requests in turn, perhaps, from several places. All of it stays in the file meanwhile, so that whoever reads
 * that never finds the thread outside, nor waiting for the last one alone.
 */
#ifndef UCI_MPI_THREADS_H_
#define UCI_MPI_THREADS_H_

#include "calls.h"

/** Calls are watched from now on. */
void uci_mpi_threads_init(void);

/** What who is in @a call waits for, by one of its halves; of a collective both are the same. Its place and communicator have been filled in. */
uci_calls_wait_t uci_mpi_call_wait(const uci_mpi_call_t *call, const uci_mpi_half_t *half);

/** This thread begins a call: it waits for its halves, or looks whether there is a message. */
void uci_mpi_thread_enter(const uci_mpi_call_t *call);

/** Likewise for requests, or tests them. @return whether it is news if any of them is complete: not if none was pending, of a thread that tests others, too. */
bool uci_mpi_thread_waits(const uci_mpi_waiting_t *waiting, bool any);

/** It ends the call. @param goes_on  to something else: not after a test in which nothing was there. */
void uci_mpi_thread_leave(uint64_t now_ns, bool goes_on);

#endif
