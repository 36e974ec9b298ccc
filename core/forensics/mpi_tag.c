/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_tag.h"

#include <stdlib.h>
#include <string.h>

typedef struct uci_mpi_internal {
    int tag;
    const char *name;
} uci_mpi_internal_t;

/* MCA_COLL_BASE_TAG_* and OMPI_COMM_*_TAG */
static const uci_mpi_internal_t uci_mpi_open_mpi_tags[] = {{-7, "communicator creation (allgather)"},
                                                           {-8, "communicator creation (barrier)"},
                                                           {-9, "communicator creation (allreduce)"},
                                                           {-10, "allgather"},
                                                           {-11, "allgatherv"},
                                                           {-12, "allreduce"},
                                                           {-13, "alltoall"},
                                                           {-14, "alltoallv"},
                                                           {-15, "alltoallw"},
                                                           {-16, "barrier"},
                                                           {-17, "bcast"},
                                                           {-18, "exscan"},
                                                           {-19, "gather"},
                                                           {-20, "gatherv"},
                                                           {-21, "reduce"},
                                                           {-22, "reduce_scatter"},
                                                           {-23, "reduce_scatter_block"},
                                                           {-24, "scan"},
                                                           {-25, "scatter"},
                                                           {-26, "scatterv"}};

/* Below: those of nonblocking and neighborhood collectives, given out one after the other. (From 5 on the first six are for fault
 * tolerance and UCC: -27 to -32. In 4.1 they are nonblocking ones.) */
#define UCI_MPI_OPEN_MPI_NONBLOCKING (-27)

/* MPIR_*_TAG */
static const uci_mpi_internal_t uci_mpi_mpich_tags[] = {
        {1, "barrier"},         {2, "bcast"},           {3, "gather"},          {4, "gatherv"},
        {5, "scatter"},         {6, "scatterv"},        {7, "allgather"},       {8, "allgatherv"},
        {9, "alltoall"},        {10, "alltoallv"},      {11, "reduce"},         {12, "reduce"},
        {13, "reduce"},         {14, "allreduce"},      {15, "allreduce"},      {16, "allreduce"},
        {17, "reduce_scatter"}, {18, "reduce_scatter"}, {19, "reduce_scatter"}, {20, "scan"},
        {21, "scan"},           {22, "scan"},           {23, "local copy"},     {24, "exscan"},
        {25, "alltoallw"},      {26, "topology"},       {27, "topology"},       {28, "reduce_scatter_block"},
        {29, "shrink"},         {30, "agree"}};

/* MPIR_FIRST_NBC_TAG: behind 256 of hcoll's */
#define UCI_MPI_MPICH_NONBLOCKING (31 + 256)

uci_mpi_t uci_mpi_here(void)
{
    if (getenv("OMPI_COMM_WORLD_RANK") != NULL) {
        return UCI_MPI_OPEN_MPI;
    }
    return (getenv("PMI_RANK") != NULL) ? UCI_MPI_MPICH : UCI_MPI_UNKNOWN;
}

static const char *uci_mpi_find(const uci_mpi_internal_t *table, size_t count, int tag)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if (table[i].tag == tag) {
            return table[i].name;
        }
    }
    return "internal";
}

static const char *uci_mpi_open_mpi_collective(int tag)
{
    if (tag >= 0) {
        return NULL;
    }
    return (tag <= UCI_MPI_OPEN_MPI_NONBLOCKING)
                   ? "nonblocking"
                   : uci_mpi_find(uci_mpi_open_mpi_tags, uci_array_size(uci_mpi_open_mpi_tags), tag);
}

/* Tags of collectives are in a context of their own */
static const char *uci_mpi_mpich_collective(unsigned context, int tag)
{
    if ((context & 1) == 0) {
        return NULL;
    }
    return (tag >= UCI_MPI_MPICH_NONBLOCKING)
                   ? "nonblocking"
                   : uci_mpi_find(uci_mpi_mpich_tags, uci_array_size(uci_mpi_mpich_tags), tag);
}

void uci_mpi_tag_decode(uci_mpi_t mpi, uint64_t tag, uci_mpi_tag_t *decoded_p)
{
    memset(decoded_p, 0, sizeof(*decoded_p));
    switch (mpi) {
    case UCI_MPI_OPEN_MPI:
        decoded_p->library    = "Open MPI";
        decoded_p->tag        = (int)((int64_t)tag >> 40);
        decoded_p->source     = (unsigned)((tag >> 20) & 0xfffff);
        decoded_p->context    = (unsigned)(tag & 0xfffff);
        decoded_p->collective = uci_mpi_open_mpi_collective(decoded_p->tag);
        break;
    case UCI_MPI_MPICH:
        decoded_p->library    = "MPICH";
        decoded_p->tag        = (int)(tag & 0x7fffffff);
        decoded_p->source     = (unsigned)((tag >> 32) & 0xffff);
        decoded_p->context    = (unsigned)((tag >> 48) & 0xffff);
        decoded_p->collective = uci_mpi_mpich_collective(decoded_p->context, decoded_p->tag);
        break;
    default:
        break;
    }
}
