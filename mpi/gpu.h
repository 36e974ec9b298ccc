/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Is there a GPU's runtime in this process?
 */
#ifndef UCI_MPI_GPU_H_
#define UCI_MPI_GPU_H_

#include <stdbool.h>

/** @return whether buffers may be a GPU's, which can't be read here. Asks again only if something has been loaded since. Thread safe. */
bool uci_mpi_has_gpu(void);

#endif
