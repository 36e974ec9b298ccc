/* SPDX-License-Identifier: BSD-3-Clause */
#include "datatype.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "basic_types.h"

__thread uci_mpi_seen_t uci_mpi_seen[UCI_MPI_SEEN];
unsigned uci_mpi_freed;

static int uci_mpi_keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t uci_mpi_derived_lock =
        PTHREAD_MUTEX_INITIALIZER; /* of who gives a datatype what it consists of */

/* Those that are predefined can't have an attribute in every MPI, and are never freed */
static pthread_mutex_t uci_mpi_basic_lock = PTHREAD_MUTEX_INITIALIZER;
static uci_mpi_seen_t uci_mpi_basic_known[256];
static unsigned uci_mpi_basic_count;

static int uci_mpi_on_delete(MPI_Datatype datatype, int keyval, void *value, void *extra)
{
    __atomic_fetch_add(&uci_mpi_freed, 1, __ATOMIC_RELEASE);
    uci_sigtype_release(value);
    return MPI_SUCCESS;
}

int uci_mpi_datatype_init(void)
{
    return PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, uci_mpi_on_delete, &uci_mpi_keyval, NULL) == MPI_SUCCESS;
}

/* What a datatype was made by */
typedef struct uci_mpi_contents {
    int combiner;
    size_t integer_count, count_count, type_count;
    int *integers;
    MPI_Aint *addresses;
#if MPI_VERSION >= 4
    MPI_Count *counts;
#endif
    MPI_Datatype *types;
} uci_mpi_contents_t;

static uci_status_t uci_mpi_type_build(MPI_Datatype datatype, uci_sigtype_t **type_p);

static bool uci_mpi_contents_alloc(uci_mpi_contents_t *contents, size_t addresses)
{
    contents->integers  = calloc(contents->integer_count + 1, sizeof(*contents->integers));
    contents->addresses = calloc(addresses + 1, sizeof(*contents->addresses));
    contents->types     = calloc(contents->type_count + 1, sizeof(MPI_Datatype));
#if MPI_VERSION >= 4
    contents->counts = calloc(contents->count_count + 1, sizeof(*contents->counts));
    if (contents->counts == NULL) {
        return false;
    }
#endif
    return (contents->integers != NULL) && (contents->addresses != NULL) && (contents->types != NULL);
}

bool uci_mpi_is_named(MPI_Datatype datatype)
{
    int integers, addresses, types, combiner = MPI_COMBINER_NAMED;

#if MPI_VERSION >= 4
    MPI_Count integers_c, addresses_c, counts_c, types_c;

    (void)integers, (void)addresses, (void)types;
    PMPI_Type_get_envelope_c(datatype, &integers_c, &addresses_c, &counts_c, &types_c, &combiner);
#else
    PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner);
#endif
    return (combiner == MPI_COMBINER_NAMED) || (combiner == MPI_COMBINER_F90_REAL) ||
           (combiner == MPI_COMBINER_F90_COMPLEX) || (combiner == MPI_COMBINER_F90_INTEGER);
}

static void uci_mpi_contents_free(uci_mpi_contents_t *contents)
{
    size_t i;

    for (i = 0; (contents->types != NULL) && (i < contents->type_count); ++i) {
        if ((contents->types[i] != MPI_DATATYPE_NULL) && !uci_mpi_is_named(contents->types[i])) {
            PMPI_Type_free(&contents->types[i]);
        }
    }
    free(contents->integers);
    free(contents->addresses);
    free(contents->types);
#if MPI_VERSION >= 4
    free(contents->counts);
#endif
}

/* @return UCI_OK, then uci_mpi_contents_free() it; UCI_ERR_IO: MPI doesn't say; UCI_ERR_NO_MEMORY */
static uci_status_t uci_mpi_contents_get(MPI_Datatype datatype, uci_mpi_contents_t *contents)
{
    int wrong;

    *contents = (uci_mpi_contents_t){0};
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, types;

    if (PMPI_Type_get_envelope_c(datatype, &integers, &addresses, &counts, &types, &contents->combiner) !=
        MPI_SUCCESS) {
        return UCI_ERR_IO;
    }
    contents->count_count = (size_t)counts;
#else
    int integers, addresses, types;

    if (PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &contents->combiner) != MPI_SUCCESS) {
        return UCI_ERR_IO;
    }
#endif
    contents->integer_count = (size_t)integers;
    contents->type_count    = (contents->combiner == MPI_COMBINER_NAMED) ? 0 : (size_t)types;
    if (!uci_mpi_contents_alloc(contents, (size_t)addresses)) {
        contents->type_count = 0;
        uci_mpi_contents_free(contents);
        return UCI_ERR_NO_MEMORY;
    }
    if (contents->combiner == MPI_COMBINER_NAMED) {
        return UCI_OK; /* it has none, and may not be asked */
    }
#if MPI_VERSION >= 4
    wrong = PMPI_Type_get_contents_c(datatype, integers, addresses, counts, types, contents->integers,
                                     contents->addresses, contents->counts, contents->types);
#else
    wrong = PMPI_Type_get_contents(datatype, integers, addresses, types, contents->integers, contents->addresses,
                                   contents->types);
#endif
    if (wrong != MPI_SUCCESS) {
        contents->type_count = 0;
        uci_mpi_contents_free(contents);
        return UCI_ERR_IO;
    }
    return UCI_OK;
}

/* How often member @a i of a struct is in it: behind their number */
static uint64_t uci_mpi_block_length(const uci_mpi_contents_t *contents, size_t i)
{
#if MPI_VERSION >= 4
    if (contents->count_count > 0) {
        return (uint64_t)contents->counts[i + 1];
    }
#endif
    return (uint64_t)contents->integers[i + 1];
}

static uci_status_t uci_mpi_build_struct(const uci_mpi_contents_t *contents, bool is_pair, uci_sigtype_t **type_p)
{
    uci_sigtype_part_t *parts = calloc(contents->type_count + 1, sizeof(*parts));
    uci_status_t status       = (parts != NULL) ? UCI_OK : UCI_ERR_NO_MEMORY;
    uci_sigtype_t *type;
    size_t i, count = 0;

    for (i = 0; (status == UCI_OK) && (i < contents->type_count); ++i) {
        status = uci_mpi_type_build(contents->types[i], &type);
        if (status == UCI_OK) {
            parts[count++] = (uci_sigtype_part_t){type, is_pair ? 1 : uci_mpi_block_length(contents, i)};
        }
    }
    if (status == UCI_OK) {
        status = uci_sigtype_create(parts, count, type_p);
    }
    for (i = 0; i < count; ++i) {
        uci_sigtype_release(parts[i].type);
    }
    free(parts);
    return status;
}

/* MPI 4.1 deprecates the older one */
static int uci_mpi_type_size(MPI_Datatype datatype, MPI_Count *size_p)
{
#if MPI_VERSION >= 4
    return PMPI_Type_size_c(datatype, size_p);
#else
    return PMPI_Type_size_x(datatype, size_p);
#endif
}

/* All other constructors repeat one datatype: as often as sizes tell. One of no size has no elements, wherever it is put */
static uci_status_t uci_mpi_build_repeated(MPI_Datatype datatype, MPI_Datatype old, uci_sigtype_t **type_p)
{
    uci_sigtype_part_t part = {NULL, 0};
    MPI_Count size, old_size;
    uci_sigtype_t *type;
    uci_status_t status;

    if ((uci_mpi_type_size(datatype, &size) != MPI_SUCCESS) || (uci_mpi_type_size(old, &old_size) != MPI_SUCCESS)) {
        return UCI_ERR_IO;
    }
    if ((old_size <= 0) || (size <= 0)) {
        return uci_sigtype_create(&part, 0, type_p);
    }
    status = uci_mpi_type_build(old, &type);
    if (status != UCI_OK) {
        return status;
    }
    part   = (uci_sigtype_part_t){type, (uint64_t)(size / old_size)};
    status = uci_sigtype_create(&part, 1, type_p);
    uci_sigtype_release(type);
    return status;
}

static uci_status_t uci_mpi_build_f90(unsigned code, int precision, uci_sigtype_t **type_p)
{
    precision = ((precision < 0) || (precision > UCI_MPI_F90_MAX)) ? UCI_MPI_F90_MAX : precision; /* not given: < 0 */
    return uci_sigtype_create_basic(code + (unsigned)precision, 1, type_p);
}

static uci_status_t uci_mpi_build_derived(MPI_Datatype datatype, const uci_mpi_contents_t *contents,
                                          uci_sigtype_t **type_p)
{
    switch (contents->combiner) {
    case MPI_COMBINER_NAMED: { /* none that is known: MPI_UB, MPI_LB, or an MPI's own */
        MPI_Count size;

        return ((uci_mpi_type_size(datatype, &size) == MPI_SUCCESS) && (size == 0))
                       ? uci_sigtype_create(NULL, 0, type_p)
                       : UCI_ERR_UNSUPPORTED;
    }
    case MPI_COMBINER_F90_REAL:
        return uci_mpi_build_f90(UCI_MPI_F90_REAL, contents->integers[0], type_p);
    case MPI_COMBINER_F90_COMPLEX:
        return uci_mpi_build_f90(UCI_MPI_F90_COMPLEX, contents->integers[0], type_p);
    case MPI_COMBINER_F90_INTEGER:
        return uci_mpi_build_f90(UCI_MPI_F90_INTEGER, contents->integers[0], type_p);
    case MPI_COMBINER_STRUCT:
        return uci_mpi_build_struct(contents, false, type_p);
#ifdef MPI_COMBINER_VALUE_INDEX
    case MPI_COMBINER_VALUE_INDEX:
        return uci_mpi_build_struct(contents, true, type_p);
#endif
    default:
        return (contents->type_count == 1) ? uci_mpi_build_repeated(datatype, contents->types[0], type_p)
                                           : UCI_ERR_UNSUPPORTED;
    }
}

/* @return UCI_OK; UCI_ERR_NO_MEMORY; UCI_ERR_IO: MPI doesn't say; UCI_ERR_UNSUPPORTED: nobody knows such a constructor;
 *         UCI_ERR_INVALID_PARAM: there are too many elements */
static uci_status_t uci_mpi_type_build(MPI_Datatype datatype, uci_sigtype_t **type_p)
{
    uci_status_t status = uci_mpi_basic_type(datatype, type_p);
    uci_mpi_contents_t contents;

    if (status != UCI_ERR_NO_ELEM) {
        return status;
    }
    status = uci_mpi_contents_get(datatype, &contents);
    if (status == UCI_OK) {
        status = uci_mpi_build_derived(datatype, &contents, type_p);
        uci_mpi_contents_free(&contents);
    }
    return status;
}

static uci_sigtype_t *uci_mpi_type_create(MPI_Datatype datatype)
{
    static bool said;
    uci_sigtype_t *type;
    uci_status_t status = uci_mpi_type_build(datatype, &type);

    if (status != UCI_OK) {
        if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
            fprintf(stderr,
                    "libuci_mpi: types of some messages are not compared: what a datatype consists of can't be told (%s)\n",
                    uci_status_string(status));
        }
        return NULL;
    }
    uci_sigtype_set_text(type, uci_mpi_code_name);
    return type;
}

static const uci_sigtype_t *uci_mpi_basic_find(MPI_Datatype datatype)
{
    const uci_sigtype_t *type = NULL;
    uci_sigtype_t *made;
    unsigned i;

    pthread_mutex_lock(&uci_mpi_basic_lock);
    for (i = 0; i < uci_mpi_basic_count; ++i) {
        if (uci_mpi_basic_known[i].datatype == datatype) {
            type = uci_mpi_basic_known[i].type;
            goto out;
        }
    }
    if (i < uci_array_size(uci_mpi_basic_known)) {
        made = uci_mpi_type_create(datatype);
        if (made != NULL) {
            uci_mpi_basic_known[i] = (uci_mpi_seen_t){.datatype = datatype, .type = made};
            uci_mpi_basic_count    = i + 1;
            type                   = made;
        }
    }
out:
    pthread_mutex_unlock(&uci_mpi_basic_lock);
    return type;
}

static const uci_sigtype_t *uci_mpi_derived_get(MPI_Datatype datatype)
{
    void *value;
    int found = 0;

    return ((PMPI_Type_get_attr(datatype, uci_mpi_keyval, &value, &found) == MPI_SUCCESS) && found) ? value : NULL;
}

void uci_mpi_datatype_drop(MPI_Datatype datatype, int keyval)
{
    int found = 0;
    void *value;

    if ((keyval != MPI_KEYVAL_INVALID) && (PMPI_Type_get_attr(datatype, keyval, &value, &found) == MPI_SUCCESS) &&
        found) {
        PMPI_Type_delete_attr(datatype, keyval);
    }
}

void uci_mpi_datatype_forget(MPI_Datatype datatype)
{
    uci_mpi_datatype_drop(datatype, uci_mpi_keyval);
}

/* The lock is held: it is given once, for a second one would delete the first, which others use */
static const uci_sigtype_t *uci_mpi_derived_give(MPI_Datatype datatype)
{
    const uci_sigtype_t *known = uci_mpi_derived_get(datatype);
    uci_sigtype_t *type;

    if (known != NULL) {
        return known;
    }
    type = uci_mpi_type_create(datatype);
    if ((type != NULL) && (PMPI_Type_set_attr(datatype, uci_mpi_keyval, type) != MPI_SUCCESS)) {
        uci_sigtype_release(type);
        return NULL;
    }
    return type;
}

static const uci_sigtype_t *uci_mpi_derived_find(MPI_Datatype datatype)
{
    const uci_sigtype_t *type = uci_mpi_derived_get(datatype);

    if (type == NULL) {
        pthread_mutex_lock(&uci_mpi_derived_lock);
        type = uci_mpi_derived_give(datatype);
        pthread_mutex_unlock(&uci_mpi_derived_lock);
    }
    return type;
}

const uci_mpi_seen_t *uci_mpi_datatype_slow(MPI_Datatype datatype)
{
    uci_mpi_seen_t *seen = &uci_mpi_seen[uci_mpi_seen_place(datatype)];
    unsigned freed       = __atomic_load_n(&uci_mpi_freed, __ATOMIC_ACQUIRE);
    const uci_sigtype_t *type;

    if (datatype == MPI_DATATYPE_NULL) {
        return NULL; /* an error, which MPI tells */
    }
    type = uci_mpi_is_named(datatype) ? uci_mpi_basic_find(datatype) : uci_mpi_derived_find(datatype);
    if (type == NULL) {
        return NULL;
    }
    *seen = (uci_mpi_seen_t){.datatype = datatype,
                             .freed    = freed,
                             .type     = type,
                             .code     = uci_signature_word(uci_sigtype_code(type), 0),
                             .elements = uci_sigtype_elements(type)};
    return seen;
}
