/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms.h"

#include <pthread.h>
#include <stdlib.h>

/* Of a communicator */
typedef struct uci_mpi_known_comm {
    int index;  /* in the file, or UCI_CALLS_NONE */
    int *peers; /* ranks of MPI_COMM_WORLD, of the remote group of an intercommunicator; NULL: there was no memory */
    int count;
} uci_mpi_known_comm_t;

static int uci_mpi_comms_keyval            = MPI_KEYVAL_INVALID;
static pthread_mutex_t uci_mpi_comms_mutex = PTHREAD_MUTEX_INITIALIZER;

static int uci_mpi_comms_on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    uci_mpi_known_comm_t *known = value;

    free(known->peers);
    free(known);
    return MPI_SUCCESS;
}

void uci_mpi_comms_init(void)
{
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, uci_mpi_comms_on_delete, &uci_mpi_comms_keyval, NULL);
}

/* Members of a group as ranks of MPI_COMM_WORLD. @return how many; 0: there is no memory */
static int uci_mpi_comms_members(MPI_Group group, int **members_p)
{
    MPI_Group world;
    int count, i, *ranks;

    PMPI_Group_size(group, &count);
    ranks      = calloc((size_t)count + 1, sizeof(*ranks));
    *members_p = calloc((size_t)count + 1, sizeof(**members_p));
    if ((ranks == NULL) || (*members_p == NULL)) {
        free(ranks);
        free(*members_p);
        *members_p = NULL;
        return 0;
    }
    for (i = 0; i < count; ++i) {
        ranks[i] = i;
    }
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, count, ranks, world, *members_p);
    PMPI_Group_free(&world);
    free(ranks);
    for (i = 0; i < count; ++i) {
        (*members_p)[i] = ((*members_p)[i] == MPI_UNDEFINED) ? UCI_CALLS_FOREIGN : (*members_p)[i];
    }
    return count;
}

static uint64_t uci_mpi_comms_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ul;
    return hash ^ (hash >> 29);
}

static void uci_mpi_comms_write(int index, MPI_Comm comm, const int *members, int count)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    uci_json_t json;
    int length, i;

    PMPI_Comm_get_name(comm, name, &length);
    if (!uci_calls_line_begin(&json)) {
        return;
    }
    uci_json_int(&json, "comm", index);
    uci_json_string(&json, "name", name);
    uci_json_open(&json, "ranks", '[');
    for (i = 0; i < count; ++i) {
        uci_json_int(&json, NULL, members[i]);
    }
    uci_json_close(&json, ']');
    uci_calls_line_end(&json);
}

/* Communicators of the same ranks are told apart by their handles, which all ranks have the same of as long as they make communicators alike */
static int uci_mpi_comms_enter(MPI_Comm comm, const int *members, int count)
{
    int index = uci_calls_take(&uci_calls->head.comms, UCI_CALLS_COMMS), i;
    uci_calls_comm_t *entry;
    uint64_t hash = (uint64_t)count;

    if (index == UCI_CALLS_NONE) {
        return index;
    }
    for (i = 0; i < count; ++i) {
        hash = uci_mpi_comms_mix(hash, (uint64_t)members[i]);
    }
    entry        = &uci_calls->comms[index];
    entry->group = hash;
    entry->id    = uci_mpi_comms_mix(hash, (uint64_t)PMPI_Comm_c2f(comm));
    uci_mpi_comms_write(index, comm, members, count);
    return index;
}

/* All of both groups take part in what is called on an intercommunicator */
static void uci_mpi_comms_look(uci_mpi_known_comm_t *known, MPI_Comm comm)
{
    int *members = NULL, *both = NULL, count, is_inter, i;
    MPI_Group group;

    PMPI_Comm_group(comm, &group);
    count = uci_mpi_comms_members(group, &members);
    PMPI_Group_free(&group);
    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter) {
        PMPI_Comm_remote_group(comm, &group);
        known->count = uci_mpi_comms_members(group, &known->peers);
        PMPI_Group_free(&group);
        both = realloc(members, ((size_t)count + (size_t)known->count + 1) * sizeof(*members));
        if (both == NULL) {
            free(members);
            return;
        }
        for (i = 0; i < known->count; ++i) {
            both[count + i] = known->peers[i];
        }
        known->index = uci_mpi_comms_enter(comm, both, count + known->count);
        free(both);
    } else if (members != NULL) {
        known->count = count;
        known->peers = members;
        known->index = uci_mpi_comms_enter(comm, members, count);
    }
}

static uci_mpi_known_comm_t *uci_mpi_comms_get(MPI_Comm comm)
{
    uci_mpi_known_comm_t *known = NULL;
    int found                   = 0;

    if (comm == MPI_COMM_NULL) {
        return NULL;
    }
    PMPI_Comm_get_attr(comm, uci_mpi_comms_keyval, &known, &found);
    if (found) {
        return known;
    }
    pthread_mutex_lock(&uci_mpi_comms_mutex);
    PMPI_Comm_get_attr(comm, uci_mpi_comms_keyval, &known, &found);
    if (!found && ((known = calloc(1, sizeof(*known))) != NULL)) {
        known->index = UCI_CALLS_NONE;
        uci_mpi_comms_look(known, comm);
        PMPI_Comm_set_attr(comm, uci_mpi_comms_keyval, known);
    }
    pthread_mutex_unlock(&uci_mpi_comms_mutex);
    return known;
}

int uci_mpi_comms_find(MPI_Comm comm)
{
    const uci_mpi_known_comm_t *known = uci_mpi_comms_get(comm);

    return (known != NULL) ? known->index : UCI_CALLS_NONE;
}

int uci_mpi_comms_peer(MPI_Comm comm, int rank)
{
    const uci_mpi_known_comm_t *known;

    if (rank == MPI_ANY_SOURCE) {
        return UCI_CALLS_NONE;
    }
    known = uci_mpi_comms_get(comm);
    return ((known != NULL) && (known->peers != NULL) && (rank >= 0) && (rank < known->count)) ? known->peers[rank]
                                                                                               : UCI_CALLS_FOREIGN;
}
