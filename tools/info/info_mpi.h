/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The MPIs of this machine, and whether what is between them and UCX would have UCI.
 */
#ifndef UCI_INFO_MPI_H_
#define UCI_INFO_MPI_H_

#include <limits.h>
#include <stdbool.h>

typedef struct uci_info_mpi {
    const char *name;              /**< "Open MPI" */
    char library[PATH_MAX];        /**< what of it uses UCX */
    bool has_ucx;                  /**< it could be loaded, and brought UCX */
    char ucx_version[64];          /**< that it brought */
    char ucx_library[PATH_MAX];    /**< the same */
    char uci_library[PATH_MAX];    /**< that came with it; "": none */
    char error[256];               /**< why it could not be loaded */
    char note[2 * PATH_MAX + 256]; /**< what keeps its messages from UCX, and how to change that; "": nothing known */
} uci_info_mpi_t;

/**
 * Find the MPIs where the loader looks, and beside the launchers in PATH, and load what of them uses UCX into processes of their own.
 * @param mpis  room for @a max of them, in memory that these processes share.
 * @return how many were found.
 */
unsigned uci_info_find_mpis(uci_info_mpi_t *mpis, unsigned max);

#endif
