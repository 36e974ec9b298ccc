/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of handles of MPI's: a table by handle, whose lock its users take.
 */
#ifndef UCI_MPI_HANDLES_H_
#define UCI_MPI_HANDLES_H_

#include <pthread.h>

#include "util/types.h"

#define UCI_MPI_HANDLES_BUCKETS 4096u /* a power of two */

/** A handle as a number: a pointer, or an int. */
#define UCI_MPI_HANDLE(_handle) ((uint64_t)(uintptr_t)(_handle))

/** The first member of what is known of one. */
typedef struct uci_mpi_handle {
    struct uci_mpi_handle *next; /**< of its bucket */
    uint64_t number;
} uci_mpi_handle_t;

typedef struct uci_mpi_handles {
    pthread_mutex_t lock;
    uci_mpi_handle_t *buckets[UCI_MPI_HANDLES_BUCKETS];
} uci_mpi_handles_t;

/** @return the link to the one that was put there last, or to NULL: where one may be put. */
UCI_INLINE uci_mpi_handle_t **uci_mpi_handles_find(uci_mpi_handles_t *handles, uint64_t number)
{
    uci_mpi_handle_t **link = &handles->buckets[((number * 0x9e3779b97f4a7c15ul) >> 40) % UCI_MPI_HANDLES_BUCKETS];

    while ((*link != NULL) && ((*link)->number != number)) {
        link = &(*link)->next;
    }
    return link;
}

UCI_INLINE void uci_mpi_handles_put(uci_mpi_handle_t **link, uci_mpi_handle_t *handle, uint64_t number)
{
    *handle = (uci_mpi_handle_t){.next = *link, .number = number};
    *link   = handle;
}

UCI_INLINE void uci_mpi_handles_take(uci_mpi_handle_t **link)
{
    *link = (*link)->next;
}

#endif
