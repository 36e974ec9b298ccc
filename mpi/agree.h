/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What agree.c does for shadow.c; see collective.h for what it is.
 */
#ifndef UCI_MPI_AGREE_H_
#define UCI_MPI_AGREE_H_

#include "shadow.h"

/** A communicator goes: come to an end with what is compared on it. @return whether all is; else it may not be freed. */
bool uci_mpi_agree_end(uci_mpi_shadow_t *shadow);

#endif
