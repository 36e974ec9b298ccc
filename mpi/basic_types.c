/* SPDX-License-Identifier: BSD-3-Clause */
#include "basic_types.h"

/* Code, handle, name. What MPI says are two names of one type have one code; pairs for MPI_MINLOC have two elements, below */
typedef struct uci_mpi_basic {
    unsigned code;
    MPI_Datatype datatype;
    const char *name;
} uci_mpi_basic_t;

#define UCI_MPI_BASIC(_code, _name) \
    { \
        _code, _name, #_name \
    }

/* Not constant in Open MPI before it is linked, and so not static */
static const uci_mpi_basic_t *uci_mpi_basics(size_t *count_p)
{
    static const uci_mpi_basic_t basics[] = {
            UCI_MPI_BASIC(1, MPI_CHAR),
            UCI_MPI_BASIC(2, MPI_SIGNED_CHAR),
            UCI_MPI_BASIC(3, MPI_UNSIGNED_CHAR),
            UCI_MPI_BASIC(4, MPI_SHORT),
            UCI_MPI_BASIC(5, MPI_UNSIGNED_SHORT),
            UCI_MPI_BASIC(6, MPI_INT),
            UCI_MPI_BASIC(7, MPI_UNSIGNED),
            UCI_MPI_BASIC(8, MPI_LONG),
            UCI_MPI_BASIC(9, MPI_UNSIGNED_LONG),
            UCI_MPI_BASIC(10, MPI_LONG_LONG),
            UCI_MPI_BASIC(10, MPI_LONG_LONG_INT),
            UCI_MPI_BASIC(11, MPI_UNSIGNED_LONG_LONG),
            UCI_MPI_BASIC(12, MPI_FLOAT),
            UCI_MPI_BASIC(13, MPI_DOUBLE),
            UCI_MPI_BASIC(14, MPI_LONG_DOUBLE),
            UCI_MPI_BASIC(15, MPI_WCHAR),
            UCI_MPI_BASIC(16, MPI_BYTE),
            UCI_MPI_BASIC(UCI_SIGNATURE_PACKED, MPI_PACKED),
            UCI_MPI_BASIC(17, MPI_C_BOOL),
            UCI_MPI_BASIC(18, MPI_INT8_T),
            UCI_MPI_BASIC(19, MPI_INT16_T),
            UCI_MPI_BASIC(20, MPI_INT32_T),
            UCI_MPI_BASIC(21, MPI_INT64_T),
            UCI_MPI_BASIC(22, MPI_UINT8_T),
            UCI_MPI_BASIC(23, MPI_UINT16_T),
            UCI_MPI_BASIC(24, MPI_UINT32_T),
            UCI_MPI_BASIC(25, MPI_UINT64_T),
            UCI_MPI_BASIC(26, MPI_AINT),
            UCI_MPI_BASIC(27, MPI_OFFSET),
            UCI_MPI_BASIC(28, MPI_COUNT),
            UCI_MPI_BASIC(29, MPI_C_FLOAT_COMPLEX),
            UCI_MPI_BASIC(29, MPI_C_COMPLEX),
            UCI_MPI_BASIC(30, MPI_C_DOUBLE_COMPLEX),
            UCI_MPI_BASIC(31, MPI_C_LONG_DOUBLE_COMPLEX),
            UCI_MPI_BASIC(32, MPI_INTEGER),
            UCI_MPI_BASIC(33, MPI_REAL),
            UCI_MPI_BASIC(34, MPI_DOUBLE_PRECISION),
            UCI_MPI_BASIC(35, MPI_COMPLEX),
            UCI_MPI_BASIC(36, MPI_DOUBLE_COMPLEX),
            UCI_MPI_BASIC(37, MPI_LOGICAL),
            UCI_MPI_BASIC(38, MPI_CHARACTER),
#ifdef MPI_INTEGER1
            UCI_MPI_BASIC(39, MPI_INTEGER1),
#endif
#ifdef MPI_INTEGER2
            UCI_MPI_BASIC(40, MPI_INTEGER2),
#endif
#ifdef MPI_INTEGER4
            UCI_MPI_BASIC(41, MPI_INTEGER4),
#endif
#ifdef MPI_INTEGER8
            UCI_MPI_BASIC(42, MPI_INTEGER8),
#endif
#ifdef MPI_INTEGER16
            UCI_MPI_BASIC(43, MPI_INTEGER16),
#endif
#ifdef MPI_REAL2
            UCI_MPI_BASIC(44, MPI_REAL2),
#endif
#ifdef MPI_REAL4
            UCI_MPI_BASIC(45, MPI_REAL4),
#endif
#ifdef MPI_REAL8
            UCI_MPI_BASIC(46, MPI_REAL8),
#endif
#ifdef MPI_REAL16
            UCI_MPI_BASIC(47, MPI_REAL16),
#endif
#ifdef MPI_COMPLEX8
            UCI_MPI_BASIC(48, MPI_COMPLEX8),
#endif
#ifdef MPI_COMPLEX16
            UCI_MPI_BASIC(49, MPI_COMPLEX16),
#endif
#ifdef MPI_COMPLEX32
            UCI_MPI_BASIC(50, MPI_COMPLEX32),
#endif
#ifdef MPI_LOGICAL1
            UCI_MPI_BASIC(51, MPI_LOGICAL1),
#endif
#ifdef MPI_LOGICAL2
            UCI_MPI_BASIC(52, MPI_LOGICAL2),
#endif
#ifdef MPI_LOGICAL4
            UCI_MPI_BASIC(53, MPI_LOGICAL4),
#endif
#ifdef MPI_LOGICAL8
            UCI_MPI_BASIC(54, MPI_LOGICAL8),
#endif
#ifdef MPI_CXX_BOOL
            UCI_MPI_BASIC(55, MPI_CXX_BOOL),
#endif
#ifdef MPI_CXX_FLOAT_COMPLEX
            UCI_MPI_BASIC(56, MPI_CXX_FLOAT_COMPLEX),
#endif
#ifdef MPI_CXX_DOUBLE_COMPLEX
            UCI_MPI_BASIC(57, MPI_CXX_DOUBLE_COMPLEX),
#endif
#ifdef MPI_CXX_LONG_DOUBLE_COMPLEX
            UCI_MPI_BASIC(58, MPI_CXX_LONG_DOUBLE_COMPLEX),
#endif
    };

    *count_p = uci_array_size(basics);
    return basics;
}

/* A value and its place: two elements, which MPI has as one predefined datatype */
typedef struct uci_mpi_pair {
    MPI_Datatype datatype;
    MPI_Datatype value, place;
} uci_mpi_pair_t;

const char *uci_mpi_code_name(unsigned code)
{
    const uci_mpi_basic_t *basics;
    size_t i, count;

    basics = uci_mpi_basics(&count);
    for (i = 0; i < count; ++i) {
        if (basics[i].code == code) {
            return basics[i].name;
        }
    }
    return ((code < UCI_MPI_F90_REAL) || (code > UCI_MPI_F90_LAST)) ? "a datatype of another version of libuci_mpi"
           : (code >= UCI_MPI_F90_INTEGER)                          ? "a type of MPI_Type_create_f90_integer"
           : (code >= UCI_MPI_F90_COMPLEX)                          ? "a type of MPI_Type_create_f90_complex"
                                                                    : "a type of MPI_Type_create_f90_real";
}

static uci_status_t uci_mpi_basic_one(MPI_Datatype datatype, uci_sigtype_t **type_p)
{
    const uci_mpi_basic_t *basics;
    size_t i, count;

    basics = uci_mpi_basics(&count);
    for (i = 0; i < count; ++i) {
        if ((basics[i].datatype == datatype) && (datatype != MPI_DATATYPE_NULL)) {
            return uci_sigtype_create_basic(basics[i].code, 1, type_p);
        }
    }
    return UCI_ERR_NO_ELEM;
}

static uci_status_t uci_mpi_basic_pair(const uci_mpi_pair_t *pair, uci_sigtype_t **type_p)
{
    uci_sigtype_t *value, *place;
    uci_sigtype_part_t parts[2];
    uci_status_t status;

    status = uci_mpi_basic_one(pair->value, &value);
    if (status != UCI_OK) {
        return status;
    }
    status = uci_mpi_basic_one(pair->place, &place);
    if (status != UCI_OK) {
        goto out_release_value;
    }
    parts[0] = (uci_sigtype_part_t){value, 1};
    parts[1] = (uci_sigtype_part_t){place, 1};
    status   = uci_sigtype_create(parts, 2, type_p);
    uci_sigtype_release(place);
out_release_value:
    uci_sigtype_release(value);
    return status;
}

uci_status_t uci_mpi_basic_type(MPI_Datatype datatype, uci_sigtype_t **type_p)
{
    static const uci_mpi_pair_t pairs[] = {
            {MPI_FLOAT_INT, MPI_FLOAT, MPI_INT},
            {MPI_DOUBLE_INT, MPI_DOUBLE, MPI_INT},
            {MPI_LONG_INT, MPI_LONG, MPI_INT},
            {MPI_2INT, MPI_INT, MPI_INT},
            {MPI_SHORT_INT, MPI_SHORT, MPI_INT},
            {MPI_LONG_DOUBLE_INT, MPI_LONG_DOUBLE, MPI_INT},
            {MPI_2REAL, MPI_REAL, MPI_REAL},
            {MPI_2DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION},
            {MPI_2INTEGER, MPI_INTEGER, MPI_INTEGER},
    };
    uci_status_t status = uci_mpi_basic_one(datatype, type_p);
    size_t i;

    for (i = 0; (status == UCI_ERR_NO_ELEM) && (i < uci_array_size(pairs)); ++i) {
        if ((pairs[i].datatype == datatype) && (datatype != MPI_DATATYPE_NULL)) {
            return uci_mpi_basic_pair(&pairs[i], type_p);
        }
    }
    return status;
}
