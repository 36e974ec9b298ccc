/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What agree.c does for shadow.c; see collective.h for what it is.
 */
#ifndef UCI_MPI_AGREE_H_
#define UCI_MPI_AGREE_H_

#include "shadow.h"

/** A communicator is gone: its shadow is freed (uci_mpi_shadow_free()) as soon as nothing is compared on it, which may be now. */
void uci_mpi_agree_end(uci_mpi_shadow_t *shadow);

#endif
