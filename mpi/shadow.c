/* SPDX-License-Identifier: BSD-3-Clause */
#include "shadow.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "agree.h"

static int uci_mpi_shadow_keyval          = MPI_KEYVAL_INVALID;
static pthread_once_t uci_mpi_shadow_once = PTHREAD_ONCE_INIT;

static void uci_mpi_shadow_destroy(uci_mpi_shadow_t *shadow)
{
    free(shadow->remote);
    uci_mpi_neighbours_release(&shadow->in);
    uci_mpi_neighbours_release(&shadow->out);
    free(shadow);
}

void uci_mpi_shadow_free(uci_mpi_shadow_t *shadow)
{
    if (shadow->comm != MPI_COMM_NULL) {
        PMPI_Comm_free(&shadow->comm);
    }
    uci_mpi_shadow_destroy(shadow);
}

/* The program's communicator is freed, by all of its ranks */
static int uci_mpi_shadow_on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    uci_mpi_agree_end(value);
    return MPI_SUCCESS;
}

static void uci_mpi_shadow_init(void)
{
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, uci_mpi_shadow_on_delete, &uci_mpi_shadow_keyval, NULL);
}

/* One of both groups: where are those of the remote one? */
static bool uci_mpi_shadow_merge(uci_mpi_shadow_t *shadow, MPI_Comm comm)
{
    MPI_Group remote, all;
    int *ranks, i;

    PMPI_Comm_remote_size(comm, &shadow->remote_size);
    ranks          = calloc((size_t)shadow->remote_size, sizeof(*ranks));
    shadow->remote = calloc((size_t)shadow->remote_size, sizeof(*shadow->remote));
    if ((ranks == NULL) || (shadow->remote == NULL) || (PMPI_Intercomm_merge(comm, 0, &shadow->comm) != MPI_SUCCESS)) {
        free(ranks);
        return false;
    }
    for (i = 0; i < shadow->remote_size; ++i) {
        ranks[i] = i;
    }
    PMPI_Comm_remote_group(comm, &remote);
    PMPI_Comm_group(shadow->comm, &all);
    PMPI_Group_translate_ranks(remote, shadow->remote_size, ranks, all, shadow->remote);
    PMPI_Group_free(&remote);
    PMPI_Group_free(&all);
    PMPI_Comm_rank(shadow->comm, &shadow->rank);
    PMPI_Comm_size(shadow->comm, &shadow->size);
    shadow->is_made = true;
    free(ranks);
    return true;
}

static void uci_mpi_shadow_name(uci_mpi_shadow_t *shadow, MPI_Comm comm)
{
    int length;

    if ((PMPI_Comm_get_name(comm, shadow->name, &length) != MPI_SUCCESS) || (length == 0)) {
        snprintf(shadow->name, sizeof(shadow->name), "a communicator of %d ranks", shadow->size);
    }
}

static uci_mpi_shadow_t *uci_mpi_shadow_create(MPI_Comm comm, bool may_block)
{
    uci_mpi_shadow_t *shadow;
    int is_inter = 0;

    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter && !may_block) {
        return NULL;
    }
    shadow = calloc(1, sizeof(*shadow));
    if (shadow == NULL) {
        return NULL;
    }
    shadow->comm     = MPI_COMM_NULL;
    shadow->making   = MPI_REQUEST_NULL;
    shadow->is_inter = is_inter;
    if (is_inter && !uci_mpi_shadow_merge(shadow, comm)) {
        uci_mpi_shadow_destroy(shadow);
        return NULL;
    }
    if (!is_inter) {
        PMPI_Comm_rank(comm, &shadow->rank);
        PMPI_Comm_size(comm, &shadow->size);
    }
    uci_mpi_shadow_name(shadow, comm);
    PMPI_Comm_set_attr(comm, uci_mpi_shadow_keyval, shadow);
    return shadow;
}

uci_mpi_shadow_t *uci_mpi_shadow_get(MPI_Comm comm, bool may_block)
{
    void *value;
    int found = 0;

    pthread_once(&uci_mpi_shadow_once, uci_mpi_shadow_init);
    if ((PMPI_Comm_get_attr(comm, uci_mpi_shadow_keyval, &value, &found) == MPI_SUCCESS) && found) {
        return value;
    }
    return uci_mpi_shadow_create(comm, may_block);
}

void uci_mpi_shadow_make(uci_mpi_shadow_t *shadow, MPI_Comm comm, bool may_block)
{
#ifdef OPEN_MPI
    /* its steps take the communicator's numbers for collectives as they come to be done, which other calls do in between */
    const bool is_time = may_block;
#else
    const bool is_time = true;
#endif

    if (is_time && !shadow->is_made && (shadow->making == MPI_REQUEST_NULL)) {
        PMPI_Comm_idup(comm, &shadow->comm, &shadow->making);
    }
}

bool uci_mpi_shadow_is_made(uci_mpi_shadow_t *shadow)
{
    int done = 0;

    if (!shadow->is_made && (shadow->making != MPI_REQUEST_NULL)) {
        PMPI_Test(&shadow->making, &done, MPI_STATUS_IGNORE);
        shadow->is_made = done;
    }
    return shadow->is_made;
}

void uci_mpi_shadow_finalize(void)
{
    void *value;
    int found;

    if ((PMPI_Comm_get_attr(MPI_COMM_WORLD, uci_mpi_shadow_keyval, &value, &found) == MPI_SUCCESS) && found) {
        PMPI_Comm_delete_attr(MPI_COMM_WORLD, uci_mpi_shadow_keyval);
    }
}

void uci_mpi_shadow_find_neighbours(uci_mpi_shadow_t *shadow, MPI_Comm comm)
{
    if (!shadow->has_neighbours && !shadow->is_inter) {
        shadow->has_neighbours = true;
        uci_mpi_neighbours_find(comm, &shadow->in, &shadow->out);
    }
}
