/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Places in the file (calls_file.h): a call and the stack that it was made from, which is looked at in each call; some microseconds.
 */
#ifndef UCI_MPI_PLACES_H_
#define UCI_MPI_PLACES_H_

#include "calls_file.h"

/** @return the place of this thread's call of @a name, a constant; or UCI_CALLS_NONE. Thread safe. */
int uci_mpi_places_find(const char *name);

#endif
