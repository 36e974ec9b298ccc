/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "forensics/mpi_tag.h"

typedef struct tag_case {
    uci_mpi_t mpi;
    uint64_t tag;
    uci_mpi_tag_t wanted;
} tag_case_t;

/* As Open MPI 4.1.4 and MPICH 4.0.2 send them; what each was is known from the program */
static const tag_case_t cases[] = {
        {UCI_MPI_OPEN_MPI, 0x0000050000100000, {"Open MPI", 5, 1, 0, NULL}},
        {UCI_MPI_OPEN_MPI, 0x00012c0000300002, {"Open MPI", 300, 3, 2, NULL}},
        {UCI_MPI_OPEN_MPI, 0xffffef0000000000, {"Open MPI", -17, 0, 0, "bcast"}},
        {UCI_MPI_OPEN_MPI, 0xfffff60000200003, {"Open MPI", -10, 2, 3, "allgather"}},
        {UCI_MPI_OPEN_MPI, 0xfffff00000100000, {"Open MPI", -16, 1, 0, "barrier"}},
        {UCI_MPI_OPEN_MPI, 0xffffe60000100000, {"Open MPI", -26, 1, 0, "scatterv"}},
        {UCI_MPI_OPEN_MPI, 0xffffe50000100000, {"Open MPI", -27, 1, 0, "nonblocking"}},
        {UCI_MPI_OPEN_MPI, 0xfff0000000100000, {"Open MPI", -4096, 1, 0, "nonblocking"}},
        {UCI_MPI_OPEN_MPI, 0xffffff0000100000, {"Open MPI", -1, 1, 0, "internal"}},
        {UCI_MPI_MPICH, 0x0000000100000005, {"MPICH", 5, 1, 0, NULL}},
        {UCI_MPI_MPICH, 0x0001000200000002, {"MPICH", 2, 2, 1, "bcast"}},
        {UCI_MPI_MPICH, 0x0001000200000001, {"MPICH", 1, 2, 1, "barrier"}},
        {UCI_MPI_MPICH, 0x000100020000001c, {"MPICH", 28, 2, 1, "reduce_scatter_block"}},
        {UCI_MPI_MPICH, 0x0011000200000120, {"MPICH", 288, 2, 17, "nonblocking"}},
        {UCI_MPI_MPICH, 0x0001000200000030, {"MPICH", 48, 2, 1, "internal"}},
        {UCI_MPI_UNKNOWN, 0x0001000200000030, {NULL, 0, 0, 0, NULL}},
};

Test(mpi_tag, decoded_as_the_mpi_made_it)
{
    const tag_case_t *one;
    uci_mpi_tag_t tag;

    for (one = cases; one < cases + uci_array_size(cases); ++one) {
        uci_mpi_tag_decode(one->mpi, one->tag, &tag);
        cr_expect((tag.library == one->wanted.library) ||
                          ((tag.library != NULL) && (strcmp(tag.library, one->wanted.library) == 0)),
                  "0x%lx: %s", (unsigned long)one->tag, tag.library);
        cr_expect((tag.tag == one->wanted.tag) && (tag.source == one->wanted.source) &&
                          (tag.context == one->wanted.context),
                  "0x%lx: tag %d, source %u, context %u", (unsigned long)one->tag, tag.tag, tag.source, tag.context);
        cr_expect(((tag.collective == NULL) == (one->wanted.collective == NULL)) &&
                          ((tag.collective == NULL) || (strcmp(tag.collective, one->wanted.collective) == 0)),
                  "0x%lx: %s", (unsigned long)one->tag, tag.collective);
    }
}

Test(mpi_tag, known_by_its_launcher)
{
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("PMI_RANK");
    cr_expect(uci_mpi_here() == UCI_MPI_UNKNOWN);
    setenv("PMI_RANK", "0", 1);
    cr_expect(uci_mpi_here() == UCI_MPI_MPICH);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    cr_expect(uci_mpi_here() == UCI_MPI_OPEN_MPI);
}
