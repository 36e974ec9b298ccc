/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that are pending, and what is wrong with them (UCI_CHECK_CALLS): buffers that overlap, of sends that the program changes, requests that are never
 * completed. Findings are lines of the file (calls_file.h), the first few of each kind and place:
 *
 *     {"finding": "overlap", "place": 3, "other": 1, "bytes": 400, "offset": 0}    `place` begins, while `other` is pending
 *     {"finding": "changed", "place": 3, "bytes": 4000, "peer": 1, "tag": 7}       sent at `place`
 *     {"finding": "unfinished", "place": 3, "peer": 1, "tag": 7, "comm": 0}
 *     {"finding": "error", "place": 3, "error": "MPI_ERR_TRUNCATE: message truncated", "peer": 1, "tag": 7, "comm": 0, "bytes": 100}
 */
#ifndef UCI_MPI_PENDING_H_
#define UCI_MPI_PENDING_H_

#include "calls.h"

/** An operation begins: what does it touch, and do others that are under way? Only with checks. */
void uci_mpi_pending_check(uci_mpi_call_t *call);

/** It has a request from now on, with what it touches. */
void uci_mpi_pending_add(uci_mpi_call_t *call, MPI_Request request);

/** One that was made to be started again and again is, by @a call (MPI_Start or MPI_Startall): it is pending, and what it sends is counted there. */
void uci_mpi_pending_start(MPI_Request request, const uci_mpi_call_t *call);

/** What is known of a request, for who waits for it. @return whether it is, or may be, pending. */
bool uci_mpi_pending_find(MPI_Request request, uci_calls_wait_t *wait_p);

/** It is complete; a persistent one, which may be started again, only if @a persistent. */
void uci_mpi_pending_end(MPI_Request request, bool persistent);

/** It is freed. */
void uci_mpi_pending_free(MPI_Request request);

/** At MPI_Finalize: tell of those that are pending. */
void uci_mpi_pending_finalize(void);

/** MPI has returned, or would end the program with, an error. @param ret  its code */
void uci_mpi_pending_error(const uci_mpi_call_t *call, int ret);

#endif
