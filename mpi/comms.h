/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators in the file (calls_file.h): which of its entries is that of a handle, and which rank of MPI_COMM_WORLD a rank of it is. Kept as an attribute.
 */
#ifndef UCI_MPI_COMMS_H_
#define UCI_MPI_COMMS_H_

#include <mpi.h>

#include "calls_file.h"

/** To be called once, in MPI_Init. */
void uci_mpi_comms_init(void);

/** It has been made by a call that all of its ranks are seen in. */
void uci_mpi_comms_made(MPI_Comm comm);

/** @return its entry, or UCI_CALLS_NONE. Thread safe. */
int uci_mpi_comms_find(MPI_Comm comm);

/** @return the rank of MPI_COMM_WORLD that is @a rank of @a comm (for an intercommunicator of its remote group); UCI_CALLS_NONE for MPI_ANY_SOURCE,
 *  UCI_CALLS_FOREIGN for others. */
int uci_mpi_comms_peer(MPI_Comm comm, int rank);

#endif
