/* SPDX-License-Identifier: BSD-3-Clause */
#include "touched.h"

#include <string.h>

#include "neighbours.h"

/* Where a rank's part is, in bytes */
static MPI_Aint uci_mpi_side_displ(const uci_mpi_side_t *side, int i)
{
    MPI_Aint lb, extent = 1;

    if (side->displs_bytes != NULL) {
        return side->displs_bytes[i];
    }
    if ((side->types == NULL) && (side->types_fortran == NULL)) {
        PMPI_Type_get_extent(side->type, &lb, &extent);
    }
#if MPI_VERSION >= 4
    if (side->displs_c != NULL) {
        return side->displs_c[i] * extent;
    }
#endif
    if (side->displs != NULL) {
        return side->displs[i] * extent;
    }
    return side->is_vector ? 0 : (MPI_Aint)side->count * i * extent;
}

/* Parts for, or of, each of these; MPI_PROC_NULL has none. @param ranks  NULL: all */
static uci_mpi_region_t uci_mpi_side_some(const uci_mpi_side_t *side, const void *buf, int count, const int *ranks)
{
    uci_mpi_region_t region = uci_mpi_region_begin(buf), part;
    int i;

    for (i = 0; (buf != NULL) && (i < count); ++i) {
        if ((ranks != NULL) && (ranks[i] == MPI_PROC_NULL)) {
            continue;
        }
        part = uci_mpi_region_create((const char *)buf + uci_mpi_side_displ(side, i), uci_mpi_side_count(side, i),
                                     uci_mpi_side_type(side, i));
        uci_mpi_region_join(&region, &part);
        uci_mpi_region_release(&part);
    }
    uci_mpi_region_end(&region);
    return region;
}

/* NULL is in place here, not MPI_BOTTOM: what collectives touch from there is not known */
static uci_mpi_region_t uci_mpi_buf_region(const void *buf, uint64_t count, MPI_Datatype type)
{
    return (buf != NULL) ? uci_mpi_region_create(buf, count, type) : (uci_mpi_region_t){0};
}

/* Parts for, or of, so many ranks */
static uci_mpi_region_t uci_mpi_side_parts(const uci_mpi_side_t *side, const void *buf, int ranks)
{
    return side->is_vector ? uci_mpi_side_some(side, buf, ranks, NULL)
                           : uci_mpi_buf_region(buf, side->count * (uint64_t)ranks, side->type);
}

/* The same for all, or one for each, of these */
static uci_mpi_touched_t uci_mpi_touched_by_neighbours(const uci_mpi_collective_t *collective)
{
    uci_mpi_touched_t touched;
    uci_mpi_neighbours_t in, out;

    uci_mpi_neighbours_find(collective->comm, &in, &out);
    touched.read    = uci_mpi_sends_to_each(collective)
                              ? uci_mpi_side_some(&collective->send, collective->send_buf, out.count, out.ranks)
                              : uci_mpi_side_parts(&collective->send, collective->send_buf, 1);
    touched.written = uci_mpi_side_some(&collective->recv, collective->recv_buf, in.count, in.ranks);
    uci_mpi_neighbours_release(&in);
    uci_mpi_neighbours_release(&out);
    return touched;
}

/* Each rank gives something for all of them, and gets its part: if in place, from where that was given */
static uci_mpi_touched_t uci_mpi_touched_by_scattered(const uci_mpi_collective_t *collective, int rank, int size)
{
    const uci_mpi_side_t *side = &collective->recv;
    uci_mpi_touched_t touched  = {0};
    uint64_t all               = 0;
    int i;

    for (i = 0; i < size; ++i) {
        all += uci_mpi_side_count(side, i);
    }
    touched.read    = uci_mpi_buf_region(collective->send_buf, all, side->type);
    touched.written = uci_mpi_buf_region(
            collective->recv_buf, (collective->send_buf != NULL) ? uci_mpi_side_count(side, rank) : all, side->type);
    return touched;
}

static uci_mpi_touched_t uci_mpi_touched_by_rooted(const uci_mpi_collective_t *collective, const uci_mpi_role_t *role)
{
    const bool is_root = role->is_root, is_other = role->is_other;
    uci_mpi_touched_t touched = {0};

    if (collective->flow == UCI_MPI_TO_ROOT) {
        if (is_other) {
            touched.read = uci_mpi_side_parts(&collective->send, collective->send_buf, 1);
        }
        if (is_root) {
            touched.written = uci_mpi_side_parts(&collective->recv, collective->recv_buf,
                                                 collective->has_op ? 1 : role->partners);
        }
        return touched;
    }
    if (strstr(collective->call, "cast") != NULL) { /* by one argument for both */
        if (is_root || is_other) {
            *(is_root ? &touched.read : &touched.written) = uci_mpi_side_parts(&collective->recv, collective->recv_buf,
                                                                               1);
        }
        return touched;
    }
    if (is_other) {
        touched.written = uci_mpi_side_parts(&collective->recv, collective->recv_buf, 1);
    }
    if (is_root) {
        touched.read = uci_mpi_side_parts(&collective->send, collective->send_buf, role->partners);
    }
    return touched;
}

uci_mpi_role_t uci_mpi_role_find(const uci_mpi_collective_t *collective)
{
    uci_mpi_role_t role;
    int is_inter = 0;

    PMPI_Comm_test_inter(collective->comm, &is_inter);
    PMPI_Comm_rank(collective->comm, &role.rank);
    PMPI_Comm_size(collective->comm, &role.size);
    role.partners = role.size;
    if (is_inter) {
        PMPI_Comm_remote_size(collective->comm, &role.partners);
    }
    role.is_root  = (collective->root == (is_inter ? MPI_ROOT : role.rank));
    role.is_other = !is_inter || (collective->root == UCI_MPI_NO_ROOT) || (collective->root >= 0);
    return role;
}

uci_mpi_touched_t uci_mpi_touched_by_collective(const uci_mpi_collective_t *collective, const uci_mpi_role_t *role)
{
    uci_mpi_touched_t touched = {0};

    switch (collective->flow) {
    case UCI_MPI_SAME:
        touched.read = uci_mpi_side_parts(&collective->recv, collective->send_buf, 1);
        if ((role->rank != 0) || (strstr(collective->call, "xscan") == NULL)) { /* which gives the first rank nothing */
            touched.written = uci_mpi_side_parts(&collective->recv, collective->recv_buf, 1);
        }
        return touched;
    case UCI_MPI_SCATTERED:
        return uci_mpi_touched_by_scattered(collective, role->rank, role->size);
    case UCI_MPI_TO_ROOT:
    case UCI_MPI_FROM_ROOT:
        return uci_mpi_touched_by_rooted(collective, role);
    case UCI_MPI_TO_ALL:
        touched.read    = uci_mpi_side_parts(&collective->send, collective->send_buf,
                                          uci_mpi_sends_to_each(collective) ? role->partners : 1);
        touched.written = uci_mpi_side_parts(&collective->recv, collective->recv_buf, role->partners);
        return touched;
    case UCI_MPI_NEIGHBOURS:
        return uci_mpi_touched_by_neighbours(collective);
    default:
        return touched;
    }
}

void uci_mpi_touched_release(uci_mpi_touched_t *touched)
{
    uci_mpi_region_release(&touched->read);
    uci_mpi_region_release(&touched->written);
}
