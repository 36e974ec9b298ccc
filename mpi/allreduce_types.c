/* SPDX-License-Identifier: BSD-3-Clause */
#include "allreduce_types.h"

/* Kinds of types, as bits */
enum {
    UCI_MPI_INTEGER  = 1u << 0, /* of C, and the three of both languages */
    UCI_MPI_FINTEGER = 1u << 1, /* of Fortran */
    UCI_MPI_REAL     = 1u << 2,
    UCI_MPI_LOGICAL  = 1u << 3,
    UCI_MPI_COMPLEX  = 1u << 4,
    UCI_MPI_BYTES    = 1u << 5,
    UCI_MPI_PAIR     = 1u << 6,
};

typedef struct uci_mpi_kind {
    MPI_Datatype datatype;
    unsigned kind;
} uci_mpi_kind_t;

typedef struct uci_mpi_applies {
    MPI_Op op;
    unsigned kinds; /* to which it applies */
} uci_mpi_applies_t;

/* @return 0: it is none of MPI's own. Not constant in Open MPI before it is linked */
static unsigned uci_mpi_kind_of(MPI_Datatype datatype)
{
    static const uci_mpi_kind_t kinds[] = {
            {MPI_DOUBLE, UCI_MPI_REAL},
            {MPI_FLOAT, UCI_MPI_REAL},
            {MPI_INT, UCI_MPI_INTEGER},
            {MPI_LONG, UCI_MPI_INTEGER},
            {MPI_LONG_LONG, UCI_MPI_INTEGER},
            {MPI_LONG_LONG_INT, UCI_MPI_INTEGER},
            {MPI_UNSIGNED, UCI_MPI_INTEGER},
            {MPI_UNSIGNED_LONG, UCI_MPI_INTEGER},
            {MPI_UNSIGNED_LONG_LONG, UCI_MPI_INTEGER},
            {MPI_SHORT, UCI_MPI_INTEGER},
            {MPI_UNSIGNED_SHORT, UCI_MPI_INTEGER},
            {MPI_SIGNED_CHAR, UCI_MPI_INTEGER},
            {MPI_UNSIGNED_CHAR, UCI_MPI_INTEGER},
            {MPI_INT8_T, UCI_MPI_INTEGER},
            {MPI_INT16_T, UCI_MPI_INTEGER},
            {MPI_INT32_T, UCI_MPI_INTEGER},
            {MPI_INT64_T, UCI_MPI_INTEGER},
            {MPI_UINT8_T, UCI_MPI_INTEGER},
            {MPI_UINT16_T, UCI_MPI_INTEGER},
            {MPI_UINT32_T, UCI_MPI_INTEGER},
            {MPI_UINT64_T, UCI_MPI_INTEGER},
            {MPI_AINT, UCI_MPI_INTEGER},
            {MPI_OFFSET, UCI_MPI_INTEGER},
            {MPI_COUNT, UCI_MPI_INTEGER},
            {MPI_LONG_DOUBLE, UCI_MPI_REAL},
            {MPI_C_BOOL, UCI_MPI_LOGICAL},
            {MPI_C_COMPLEX, UCI_MPI_COMPLEX},
            {MPI_C_FLOAT_COMPLEX, UCI_MPI_COMPLEX},
            {MPI_C_DOUBLE_COMPLEX, UCI_MPI_COMPLEX},
            {MPI_C_LONG_DOUBLE_COMPLEX, UCI_MPI_COMPLEX},
            {MPI_BYTE, UCI_MPI_BYTES},
            {MPI_INTEGER, UCI_MPI_FINTEGER},
            {MPI_REAL, UCI_MPI_REAL},
            {MPI_DOUBLE_PRECISION, UCI_MPI_REAL},
            {MPI_COMPLEX, UCI_MPI_COMPLEX},
            {MPI_DOUBLE_COMPLEX, UCI_MPI_COMPLEX},
            {MPI_LOGICAL, UCI_MPI_LOGICAL},
#ifdef MPI_INTEGER1
            {MPI_INTEGER1, UCI_MPI_FINTEGER},
#endif
#ifdef MPI_INTEGER2
            {MPI_INTEGER2, UCI_MPI_FINTEGER},
#endif
#ifdef MPI_INTEGER4
            {MPI_INTEGER4, UCI_MPI_FINTEGER},
#endif
#ifdef MPI_INTEGER8
            {MPI_INTEGER8, UCI_MPI_FINTEGER},
#endif
#ifdef MPI_REAL4
            {MPI_REAL4, UCI_MPI_REAL},
#endif
#ifdef MPI_REAL8
            {MPI_REAL8, UCI_MPI_REAL},
#endif
#ifdef MPI_COMPLEX8
            {MPI_COMPLEX8, UCI_MPI_COMPLEX},
#endif
#ifdef MPI_COMPLEX16
            {MPI_COMPLEX16, UCI_MPI_COMPLEX},
#endif
#ifdef MPI_CXX_BOOL
            {MPI_CXX_BOOL, UCI_MPI_LOGICAL},
#endif
#ifdef MPI_CXX_FLOAT_COMPLEX
            {MPI_CXX_FLOAT_COMPLEX, UCI_MPI_COMPLEX},
#endif
#ifdef MPI_CXX_DOUBLE_COMPLEX
            {MPI_CXX_DOUBLE_COMPLEX, UCI_MPI_COMPLEX},
#endif
#ifdef MPI_CXX_LONG_DOUBLE_COMPLEX
            {MPI_CXX_LONG_DOUBLE_COMPLEX, UCI_MPI_COMPLEX},
#endif
            {MPI_FLOAT_INT, UCI_MPI_PAIR},
            {MPI_DOUBLE_INT, UCI_MPI_PAIR},
            {MPI_LONG_INT, UCI_MPI_PAIR},
            {MPI_2INT, UCI_MPI_PAIR},
            {MPI_SHORT_INT, UCI_MPI_PAIR},
            {MPI_LONG_DOUBLE_INT, UCI_MPI_PAIR},
            {MPI_2REAL, UCI_MPI_PAIR},
            {MPI_2DOUBLE_PRECISION, UCI_MPI_PAIR},
            {MPI_2INTEGER, UCI_MPI_PAIR},
    };
    size_t i;

    for (i = 0; (datatype != MPI_DATATYPE_NULL) && (i < uci_array_size(kinds)); ++i) {
        if (kinds[i].datatype == datatype) {
            return kinds[i].kind;
        }
    }
    return 0;
}

static unsigned uci_mpi_kinds_for(MPI_Op op)
{
    enum {
        ORDERED = UCI_MPI_INTEGER | UCI_MPI_FINTEGER | UCI_MPI_REAL,
        NUMBERS = ORDERED | UCI_MPI_COMPLEX,
        TRUTHS  = UCI_MPI_INTEGER | UCI_MPI_LOGICAL,
        BITS    = UCI_MPI_INTEGER | UCI_MPI_FINTEGER | UCI_MPI_BYTES,
    };
    static const uci_mpi_applies_t applies[] = {
            {MPI_SUM, NUMBERS}, {MPI_MAX, ORDERED}, {MPI_MIN, ORDERED},         {MPI_PROD, NUMBERS},
            {MPI_LAND, TRUTHS}, {MPI_LOR, TRUTHS},  {MPI_LXOR, TRUTHS},         {MPI_BAND, BITS},
            {MPI_BOR, BITS},    {MPI_BXOR, BITS},   {MPI_MAXLOC, UCI_MPI_PAIR}, {MPI_MINLOC, UCI_MPI_PAIR},
    };
    size_t i;

    for (i = 0; i < uci_array_size(applies); ++i) {
        if (applies[i].op == op) {
            return applies[i].kinds;
        }
    }
    return 0;
}

size_t uci_mpi_allreduce_extent(MPI_Datatype datatype, MPI_Op op)
{
    MPI_Aint lower, extent;

    if ((uci_mpi_kind_of(datatype) & uci_mpi_kinds_for(op)) == 0) {
        return 0;
    }
    if ((PMPI_Type_get_extent(datatype, &lower, &extent) != MPI_SUCCESS) || (lower != 0) || (extent <= 0) ||
        (extent > (MPI_Aint)UCI_MPI_ELEMENT_MAX) || ((extent & (extent - 1)) != 0)) {
        return 0;
    }
    return (size_t)extent;
}
