/* SPDX-License-Identifier: BSD-3-Clause */
#include "operations.h"

typedef struct uci_mpi_operation {
    MPI_Op op;
    const char *name;
} uci_mpi_operation_t;

#define UCI_MPI_OPERATION(_op) \
    { \
        _op, #_op \
    }

/* Not constant in Open MPI before it is linked, and so not static */
static const uci_mpi_operation_t *uci_mpi_operations(unsigned *count_p)
{
    static const uci_mpi_operation_t operations[] = {
            UCI_MPI_OPERATION(MPI_MAX),     UCI_MPI_OPERATION(MPI_MIN),    UCI_MPI_OPERATION(MPI_SUM),
            UCI_MPI_OPERATION(MPI_PROD),    UCI_MPI_OPERATION(MPI_LAND),   UCI_MPI_OPERATION(MPI_BAND),
            UCI_MPI_OPERATION(MPI_LOR),     UCI_MPI_OPERATION(MPI_BOR),    UCI_MPI_OPERATION(MPI_LXOR),
            UCI_MPI_OPERATION(MPI_BXOR),    UCI_MPI_OPERATION(MPI_MINLOC), UCI_MPI_OPERATION(MPI_MAXLOC),
            UCI_MPI_OPERATION(MPI_REPLACE), UCI_MPI_OPERATION(MPI_NO_OP),  UCI_MPI_OPERATION(MPI_OP_NULL)};

    *count_p = (unsigned)uci_array_size(operations);
    return operations;
}

unsigned uci_mpi_operation_code(MPI_Op op)
{
    const uci_mpi_operation_t *operations;
    unsigned code, count;

    operations = uci_mpi_operations(&count);
    for (code = 0; (code < count) && (operations[code].op != op); ++code) {
    }
    return code;
}

const char *uci_mpi_operation_name(unsigned code)
{
    const uci_mpi_operation_t *operations;
    unsigned count;

    operations = uci_mpi_operations(&count);
    return (code < count) ? operations[code].name : "an operation of the program";
}
