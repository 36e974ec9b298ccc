/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms.h"

#include <pthread.h>
#include <stdlib.h>

/* Of a communicator */
typedef struct uci_mpi_known_comm {
    int index;  /* in the file, or UCI_CALLS_NONE */
    int *peers; /* ranks of MPI_COMM_WORLD, of the remote group of an intercommunicator; NULL: there was no memory */
    int count;
    int *all; /* both groups of an intercommunicator; else `peers` */
    int all_count;
    bool is_written;
} uci_mpi_known_comm_t;

static int uci_mpi_comms_keyval            = MPI_KEYVAL_INVALID;
static pthread_mutex_t uci_mpi_comms_mutex = PTHREAD_MUTEX_INITIALIZER;

static int uci_mpi_comms_on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    uci_mpi_known_comm_t *known = value;

    if (known->all != known->peers) {
        free(known->all);
    }
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

static uint64_t uci_mpi_comms_hash(const int *members, int count)
{
    uint64_t hash = (uint64_t)count;
    int i;

    for (i = 0; i < count; ++i) {
        hash = uci_mpi_comms_mix(hash, (uint64_t)members[i]);
    }
    return hash;
}

/* As [first, last] of each run of ranks that ascend by one */
static void uci_mpi_comms_write_ranks(uci_json_t *json, const int *ranks, int count)
{
    int first, last;

    for (first = 0; first < count; first = last + 1) {
        for (last = first; (last + 1 < count) && (ranks[last + 1] == ranks[last] + 1); ++last) {
        }
        uci_json_open(json, NULL, '[');
        uci_json_int(json, NULL, ranks[first]);
        uci_json_int(json, NULL, ranks[last]);
        uci_json_close(json, ']');
    }
}

/* When it is used first: by then it has its name */
static void uci_mpi_comms_write(const uci_mpi_known_comm_t *known, MPI_Comm comm)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    uci_json_t json;
    int length;

    PMPI_Comm_get_name(comm, name, &length);
    if (!uci_calls_line_begin(&json)) {
        return;
    }
    uci_json_int(&json, "comm", known->index);
    uci_json_string(&json, "name", name);
    uci_json_open(&json, "ranks", '[');
    uci_mpi_comms_write_ranks(&json, known->all, known->all_count);
    uci_json_close(&json, ']');
    uci_calls_line_end(&json);
}

/* Those of a group are numbered as they are made, which all of its ranks do in the same order: handles are used again, and differ between ranks. The lock is held */
static uint64_t uci_mpi_comms_identify(uint64_t group, int index)
{
    uint64_t before = 0;
    int i;

    for (i = 0; i < index; ++i) {
        before += (uci_calls->comms[i].group == group) && (uci_calls->comms[i].id != 0);
    }
    return uci_mpi_comms_mix(group, before) | 1;
}

static int uci_mpi_comms_enter(uint64_t group, bool is_made)
{
    int index = uci_calls_take(&uci_calls->head.comms, UCI_CALLS_COMMS);

    if (index != UCI_CALLS_NONE) {
        uci_calls->comms[index].group = group;
        uci_calls->comms[index].id    = is_made ? uci_mpi_comms_identify(group, index) : 0;
    }
    return index;
}

/* All of both groups take part in what is called on an intercommunicator, whose groups are the same ones in either order */
static void uci_mpi_comms_look(uci_mpi_known_comm_t *known, MPI_Comm comm, bool is_made)
{
    int *members = NULL, count, is_inter, i;
    MPI_Group group;
    uint64_t hash;

    PMPI_Comm_group(comm, &group);
    count = uci_mpi_comms_members(group, &members);
    PMPI_Group_free(&group);
    hash = uci_mpi_comms_hash(members, count);
    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter) {
        PMPI_Comm_remote_group(comm, &group);
        known->count = uci_mpi_comms_members(group, &known->peers);
        PMPI_Group_free(&group);
        hash += uci_mpi_comms_hash(known->peers, known->count);
        known->all = realloc(members, ((size_t)count + (size_t)known->count + 1) * sizeof(*members));
        if (known->all == NULL) {
            free(members);
            return;
        }
        for (i = 0; i < known->count; ++i) {
            known->all[count + i] = known->peers[i];
        }
    } else if (members != NULL) {
        known->count = count;
        known->peers = members;
        known->all   = members;
    }
    if (known->all != NULL) {
        known->all_count = is_inter ? count + known->count : count;
        known->index     = uci_mpi_comms_enter(hash, is_made);
    }
}

static uci_mpi_known_comm_t *uci_mpi_comms_get(MPI_Comm comm, bool is_made)
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
        uci_mpi_comms_look(known, comm, is_made);
        PMPI_Comm_set_attr(comm, uci_mpi_comms_keyval, known);
    }
    pthread_mutex_unlock(&uci_mpi_comms_mutex);
    return known;
}

void uci_mpi_comms_made(MPI_Comm comm)
{
    (void)uci_mpi_comms_get(comm, true);
}

int uci_mpi_comms_find(MPI_Comm comm)
{
    uci_mpi_known_comm_t *known = uci_mpi_comms_get(comm, false);

    if (known == NULL) {
        return UCI_CALLS_NONE;
    }
    if ((known->index != UCI_CALLS_NONE) && !__atomic_load_n(&known->is_written, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&known->is_written, true, __ATOMIC_RELAXED)) {
        uci_mpi_comms_write(known, comm);
    }
    return known->index;
}

int uci_mpi_comms_peer(MPI_Comm comm, int rank)
{
    const uci_mpi_known_comm_t *known;

    if (rank == MPI_ANY_SOURCE) {
        return UCI_CALLS_NONE;
    }
    known = uci_mpi_comms_get(comm, false);
    return ((known != NULL) && (known->peers != NULL) && (rank >= 0) && (rank < known->count)) ? known->peers[rank]
                                                                                               : UCI_CALLS_FOREIGN;
}
