/* SPDX-License-Identifier: BSD-3-Clause */
#include "touched.h"

#include <string.h>

static MPI_Aint uci_mpi_side_displ(const uci_mpi_side_t *side, int i)
{
    MPI_Aint lb, extent = 1;

    if ((side->types == NULL) && (side->types_fortran == NULL)) {
        PMPI_Type_get_extent(side->type, &lb, &extent);
    }
#if MPI_VERSION >= 4
    if (side->displs_c != NULL) {
        return side->displs_c[i] * extent;
    }
#endif
    return (side->displs != NULL) ? side->displs[i] * extent : 0;
}

/* Parts for, or of, so many ranks */
static uci_mpi_region_t uci_mpi_side_parts(const uci_mpi_side_t *side, const void *buf, int ranks)
{
    uci_mpi_region_t region, part;
    int i;

    if (!side->is_vector) {
        return uci_mpi_region_create(buf, side->count * (uint64_t)ranks, side->type);
    }
    region = uci_mpi_region_begin(buf);
    for (i = 0; (buf != NULL) && (i < ranks); ++i) {
        part = uci_mpi_region_create((const char *)buf + uci_mpi_side_displ(side, i), uci_mpi_side_count(side, i),
                                     uci_mpi_side_type(side, i));
        uci_mpi_region_join(&region, &part);
        uci_mpi_region_release(&part);
    }
    uci_mpi_region_end(&region);
    return region;
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
    touched.read    = uci_mpi_region_create(collective->send_buf, all, side->type);
    touched.written = uci_mpi_region_create(
            collective->recv_buf, (collective->send_buf != NULL) ? uci_mpi_side_count(side, rank) : all, side->type);
    return touched;
}

static uci_mpi_touched_t uci_mpi_touched_by_rooted(const uci_mpi_collective_t *collective, bool is_root, int size)
{
    uci_mpi_touched_t touched = {0};

    if (collective->flow == UCI_MPI_TO_ROOT) {
        touched.read = uci_mpi_side_parts(&collective->send, collective->send_buf, 1);
        if (is_root) {
            touched.written = uci_mpi_side_parts(&collective->recv, collective->recv_buf,
                                                 collective->has_op ? 1 : size);
        }
    } else if (strstr(collective->call, "cast") != NULL) { /* by one argument for both */
        *(is_root ? &touched.read : &touched.written) = uci_mpi_side_parts(&collective->recv, collective->recv_buf, 1);
    } else {
        touched.written = uci_mpi_side_parts(&collective->recv, collective->recv_buf, 1);
        if (is_root) {
            touched.read = uci_mpi_side_parts(&collective->send, collective->send_buf, size);
        }
    }
    return touched;
}

uci_mpi_touched_t uci_mpi_touched_by_collective(const uci_mpi_collective_t *collective)
{
    uci_mpi_touched_t touched = {0};
    int rank, size, is_inter = 0;
    bool sends_to_each;

    PMPI_Comm_test_inter(collective->comm, &is_inter);
    if (is_inter) {
        return touched;
    }
    PMPI_Comm_rank(collective->comm, &rank);
    PMPI_Comm_size(collective->comm, &size);
    switch (collective->flow) {
    case UCI_MPI_SAME:
        touched.read = uci_mpi_side_parts(&collective->recv, collective->send_buf, 1);
        if ((rank != 0) || (strstr(collective->call, "xscan") == NULL)) { /* which gives the first rank nothing */
            touched.written = uci_mpi_side_parts(&collective->recv, collective->recv_buf, 1);
        }
        return touched;
    case UCI_MPI_SCATTERED:
        return uci_mpi_touched_by_scattered(collective, rank, size);
    case UCI_MPI_TO_ROOT:
    case UCI_MPI_FROM_ROOT:
        return uci_mpi_touched_by_rooted(collective, collective->root == rank, size);
    case UCI_MPI_TO_ALL:
        sends_to_each   = strstr(collective->call, "lltoall") != NULL;
        touched.read    = uci_mpi_side_parts(&collective->send, collective->send_buf, sends_to_each ? size : 1);
        touched.written = uci_mpi_side_parts(&collective->recv, collective->recv_buf, size);
        return touched;
    default:
        return touched;
    }
}

void uci_mpi_touched_release(uci_mpi_touched_t *touched)
{
    uci_mpi_region_release(&touched->read);
    uci_mpi_region_release(&touched->written);
}
