/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A collective that begins: watched (calls.h), compared (collective.h), or both. Ranks that wait for it to be compared are in it already.
 */
#ifndef UCI_MPI_WATCHED_H_
#define UCI_MPI_WATCHED_H_

#include "calls.h"
#include "collective.h"

/** Is anything to be done? MPI has been initialised. */
#define uci_mpi_looks_at_collectives() uci_unlikely(uci_mpi_compares_collectives() || (uci_calls != NULL))

/** @param watched  to be left by UCI_MPI_LEAVE() at the end; @param request  of one that does not block: where its handle will be. */
void uci_mpi_collective_enter(uci_mpi_call_t *watched, const uci_mpi_collective_t *collective, uci_mpi_manner_t manner,
                              MPI_Request *request);

#endif
