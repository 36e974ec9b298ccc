/* SPDX-License-Identifier: BSD-3-Clause */
#include "kept.h"

#include <pthread.h>
#include <stdlib.h>

#include "util/json_writer.h"

#define UCI_MPI_KEPT_BUCKETS 4096u      /* a power of two */
#define UCI_MPI_KEPT_MAX     (1u << 20) /* handles: of any more is not told */

typedef struct uci_mpi_kept {
    struct uci_mpi_kept *next; /* of its bucket */
    uint64_t handle;
    uci_mpi_kept_kind_t kind;
    int place;
} uci_mpi_kept_t;

static pthread_mutex_t uci_mpi_kept_lock = PTHREAD_MUTEX_INITIALIZER;
static uci_mpi_kept_t *uci_mpi_kept[UCI_MPI_KEPT_BUCKETS];
static unsigned uci_mpi_kept_count[UCI_CALLS_PLACES], uci_mpi_kept_all;

static uci_mpi_kept_t **uci_mpi_kept_bucket(uci_mpi_kept_kind_t kind, uint64_t handle)
{
    return &uci_mpi_kept[(((handle + kind) * 0x9e3779b97f4a7c15ul) >> 40) % UCI_MPI_KEPT_BUCKETS];
}

void uci_mpi_kept_add(uci_mpi_kept_kind_t kind, uint64_t handle, int place)
{
    uci_mpi_kept_t **bucket = uci_mpi_kept_bucket(kind, handle), *kept = NULL;

    pthread_mutex_lock(&uci_mpi_kept_lock);
    if ((place != UCI_CALLS_NONE) && (uci_mpi_kept_all < UCI_MPI_KEPT_MAX)) {
        kept = malloc(sizeof(*kept));
    }
    if (kept != NULL) {
        *kept   = (uci_mpi_kept_t){.next = *bucket, .handle = handle, .kind = kind, .place = place};
        *bucket = kept;
        ++uci_mpi_kept_count[place];
        ++uci_mpi_kept_all;
    }
    pthread_mutex_unlock(&uci_mpi_kept_lock);
}

void uci_mpi_kept_remove(uci_mpi_kept_kind_t kind, uint64_t handle)
{
    uci_mpi_kept_t **link = uci_mpi_kept_bucket(kind, handle), *kept;

    pthread_mutex_lock(&uci_mpi_kept_lock);
    while ((*link != NULL) && (((*link)->kind != kind) || ((*link)->handle != handle))) {
        link = &(*link)->next;
    }
    kept = *link;
    if (kept != NULL) {
        *link = kept->next;
        --uci_mpi_kept_count[kept->place];
        --uci_mpi_kept_all;
    }
    pthread_mutex_unlock(&uci_mpi_kept_lock);
    free(kept);
}

static void uci_mpi_kept_tell(int place, unsigned count)
{
    FILE *stream = uci_calls_line_begin();
    uci_json_t json;

    if (stream == NULL) {
        return;
    }
    uci_json_begin(&json, stream, ", ");
    uci_json_string(&json, "finding", "kept");
    uci_json_int(&json, "place", place);
    uci_json_uint(&json, "count", count);
    uci_json_end(&json);
    uci_calls_line_end();
}

void uci_mpi_kept_finalize(void)
{
    int place;

    pthread_mutex_lock(&uci_mpi_kept_lock);
    for (place = 0; place < (int)UCI_CALLS_PLACES; ++place) {
        if (uci_mpi_kept_count[place] > 0) {
            uci_mpi_kept_tell(place, uci_mpi_kept_count[place]);
        }
    }
    pthread_mutex_unlock(&uci_mpi_kept_lock);
}
