/* SPDX-License-Identifier: BSD-3-Clause */
#include "watched.h"

#include <string.h>

#include "neighbours.h"

/* Of the part for, or of, a rank or neighbour */
static uint64_t uci_mpi_part_bytes(const uci_mpi_side_t *side, int i)
{
    return uci_mpi_bytes(uci_mpi_side_count(side, i), uci_mpi_side_type(side, i));
}

static uint64_t uci_mpi_parts_bytes(const uci_mpi_side_t *side, int count)
{
    uint64_t bytes = 0;
    int i;

    if (!side->is_vector) {
        return uci_mpi_bytes(side->count, side->type) * (uint64_t)count;
    }
    for (i = 0; i < count; ++i) {
        bytes += uci_mpi_part_bytes(side, i);
    }
    return bytes;
}

/* One for each neighbour that there is */
static uint64_t uci_mpi_neighbours_bytes(const uci_mpi_collective_t *collective)
{
    const uci_mpi_side_t *side = &collective->send;
    uci_mpi_neighbours_t in, out;
    uint64_t bytes = 0;
    int i;

    uci_mpi_neighbours_find(collective->comm, &in, &out);
    for (i = 0; i < out.count; ++i) {
        if (out.ranks[i] != MPI_PROC_NULL) {
            bytes += uci_mpi_part_bytes(side, i);
        }
    }
    uci_mpi_neighbours_release(&in);
    uci_mpi_neighbours_release(&out);
    return bytes;
}

/* What this rank gives: to how many it gives the same is not counted. In place it is what it would give from a buffer of its own, which only the receive side
 * tells then: of MPI_Allgatherv the part of this rank, of MPI_Alltoallv the parts of all */
static uint64_t uci_mpi_collective_bytes(const uci_mpi_collective_t *collective, const uci_mpi_role_t *role)
{
    bool is_one = (collective->flow == UCI_MPI_SAME) || (collective->flow == UCI_MPI_SCATTERED) ||
                  collective->send.in_place;
    const uci_mpi_side_t *side = is_one ? &collective->recv : &collective->send;
    bool for_each              = (strstr(collective->call, "catter") != NULL) || uci_mpi_sends_to_each(collective);

    if (collective->flow == UCI_MPI_NO_DATA) {
        return 0;
    }
    if ((collective->flow == UCI_MPI_NEIGHBOURS) && for_each) {
        return uci_mpi_neighbours_bytes(collective);
    }
    if (!((collective->flow == UCI_MPI_FROM_ROOT) ? role->is_root : role->is_other)) {
        return 0;
    }
    if (!for_each) {
        return uci_mpi_part_bytes(side, role->rank);
    }
    return uci_mpi_parts_bytes(side, (collective->flow == UCI_MPI_SCATTERED) ? role->size : role->partners);
}

/* What it gives and touches: nothing where there is no communicator, an error that MPI tells when the call has been entered */
static void uci_mpi_collective_look(uci_mpi_call_t *watched, const uci_mpi_collective_t *collective)
{
    uci_mpi_role_t role;

    if (collective->comm == MPI_COMM_NULL) {
        return;
    }
    role           = uci_mpi_role_find(collective);
    watched->bytes = uci_mpi_collective_bytes(collective, &role);
    if (uci_calls->head.checks) {
        watched->touched = uci_mpi_touched_by_collective(collective, &role);
    }
}

void uci_mpi_collective_enter(uci_mpi_call_t *watched, const uci_mpi_collective_t *collective, uci_mpi_manner_t manner,
                              MPI_Request *request)
{
    if (uci_mpi_watches()) {
        *watched = (uci_mpi_call_t){.name       = collective->call,
                                    .manner     = manner,
                                    .comm       = collective->comm,
                                    .collective = true,
                                    .request    = request};
        uci_mpi_collective_look(watched, collective);
        uci_mpi_call_enter(watched);
    }
    if (uci_mpi_compares_collectives()) {
        uci_mpi_agree(collective);
    }
}
