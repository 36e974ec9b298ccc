/* SPDX-License-Identifier: BSD-3-Clause */
#include "kept.h"

#include <stdlib.h>

#define UCI_MPI_KEPT_MAX (1u << 20) /* handles: of any more is not told */

typedef struct uci_mpi_kept {
    uci_mpi_handle_t handle;
    int place;
} uci_mpi_kept_t;

static uci_mpi_handles_t uci_mpi_kept = {.lock = PTHREAD_MUTEX_INITIALIZER};
static unsigned uci_mpi_kept_count[UCI_CALLS_PLACES], uci_mpi_kept_all;

/* Handles of two kinds may be the same number. The upper bits of one are all the same */
static uint64_t uci_mpi_kept_number(uci_mpi_kept_kind_t kind, uint64_t handle)
{
    return (handle << 2) + kind;
}

void uci_mpi_kept_add(uci_mpi_kept_kind_t kind, uint64_t handle, int place)
{
    uint64_t number      = uci_mpi_kept_number(kind, handle);
    uci_mpi_kept_t *kept = NULL;

    pthread_mutex_lock(&uci_mpi_kept.lock);
    if ((place != UCI_CALLS_NONE) && (uci_mpi_kept_all < UCI_MPI_KEPT_MAX)) {
        kept = malloc(sizeof(*kept));
    }
    if (kept != NULL) {
        kept->place = place;
        uci_mpi_handles_put(uci_mpi_handles_find(&uci_mpi_kept, number), &kept->handle, number);
        ++uci_mpi_kept_count[place];
        ++uci_mpi_kept_all;
    }
    pthread_mutex_unlock(&uci_mpi_kept.lock);
}

void uci_mpi_kept_remove(uci_mpi_kept_kind_t kind, uint64_t handle)
{
    uci_mpi_handle_t **link;
    uci_mpi_kept_t *kept;

    pthread_mutex_lock(&uci_mpi_kept.lock);
    link = uci_mpi_handles_find(&uci_mpi_kept, uci_mpi_kept_number(kind, handle));
    kept = (uci_mpi_kept_t *)*link;
    if (kept != NULL) {
        uci_mpi_handles_take(link);
        --uci_mpi_kept_count[kept->place];
        --uci_mpi_kept_all;
    }
    pthread_mutex_unlock(&uci_mpi_kept.lock);
    free(kept);
}

static void uci_mpi_kept_tell(int place, unsigned count)
{
    uci_json_t json;

    if (uci_calls_finding_begin(&json, "kept")) {
        uci_json_int(&json, "place", place);
        uci_json_uint(&json, "count", count);
        uci_calls_line_end(&json);
    }
}

void uci_mpi_kept_finalize(void)
{
    int place;

    pthread_mutex_lock(&uci_mpi_kept.lock);
    for (place = 0; place < (int)UCI_CALLS_PLACES; ++place) {
        if (uci_mpi_kept_count[place] > 0) {
            uci_mpi_kept_tell(place, uci_mpi_kept_count[place]);
        }
    }
    pthread_mutex_unlock(&uci_mpi_kept.lock);
}
