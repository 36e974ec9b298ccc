/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistent requests: what each will send or receive when it is started.
 */
#ifndef UCI_MPI_REQUESTS_H_
#define UCI_MPI_REQUESTS_H_

#include "attach.h"

typedef enum { UCI_MPI_STARTS_SEND, UCI_MPI_STARTS_RECV } uci_mpi_starts_t;

/** A request has been made. Its datatype may be freed. Thread safe, as all of these. */
void uci_mpi_requests_add(MPI_Request request, uci_mpi_starts_t starts, const char *call, uint64_t count,
                          MPI_Datatype datatype, MPI_Comm comm);

/** It is about to be started by this thread: the next send, or receive, is its. To be ended by uci_mpi_done(). */
void uci_mpi_requests_start(MPI_Request request);

/** It goes, if it is one. */
void uci_mpi_requests_remove(MPI_Request request);

#endif
