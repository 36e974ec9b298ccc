/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Every collective of MPI-3.1 on an intracommunicator, blocking or nonblocking, with contents checked. Two
 * programs use it: coll_blocking and coll_nonblocking.
 */
#ifndef UCI_TESTS_MPI_COLL_H_
#define UCI_TESTS_MPI_COLL_H_

#include "check.h"

static int coll_nonblocking;
static uint64_t coll_number; /* collectives so far: the same at all ranks, makes each one's contents its own */

/** Complete one nonblocking collective, now by waiting, now by testing. */
static inline void coll_complete(MPI_Request *request)
{
    int done = 0;

    if (coll_number % 2) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
        return;
    }
    while (!done) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
}

#define COLL(_blocking, _nonblocking, ...) \
    do { \
        ++coll_number; \
        if (coll_nonblocking) { \
            MPI_Request _request; \
            MPI_##_nonblocking(__VA_ARGS__, &_request); \
            coll_complete(&_request); \
        } else { \
            MPI_##_blocking(__VA_ARGS__); \
        } \
    } while (0)

/* ---- moving data: block (from, to) of collective n is message (source from, tag to, index n) ---- */

static inline void fill_block(void *data, size_t length, int from, int to)
{
    check_fill(data, length, from, to, coll_number);
}

/** COLL has advanced the number since the block was filled. */
static inline void check_block(const void *data, size_t length, int from, int to)
{
    check_bytes(data, length, from, to, coll_number - 1);
}

static inline void test_bcast(int length)
{
    check_buffer_t data;
    int root;

    check_phase("bcast");
    for (root = 0; root < check.size; ++root) {
        check_buffer_make(&data, (size_t)length, (size_t)root);
        if (check.rank == root) {
            fill_block(data.data, data.length, root, 0);
        }
        COLL(Bcast, Ibcast, data.data, length, MPI_BYTE, root, MPI_COMM_WORLD);
        check_block(data.data, data.length, root, 0);
        check_buffer_free(&data);
    }
}

static inline void test_gather_scatter(int length, int root, int in_place)
{
    check_buffer_t all, mine;
    size_t n = (size_t)length;
    int r;

    check_phase("gather");
    check_buffer_make(&all, n * (size_t)check.size, 0);
    check_buffer_make(&mine, n, 1);
    fill_block(mine.data, n, check.rank, root);
    in_place = in_place && (check.rank == root);
    if (in_place) {
        memcpy(all.data + n * (size_t)root, mine.data, n);
    }
    COLL(Gather, Igather, in_place ? MPI_IN_PLACE : mine.data, length, MPI_BYTE, all.data, length, MPI_BYTE, root,
         MPI_COMM_WORLD);
    for (r = 0; (r < check.size) && (check.rank == root); ++r) {
        check_block(all.data + n * (size_t)r, n, r, root);
    }

    check_phase("scatter");
    for (r = 0; r < check.size; ++r) {
        fill_block(all.data + n * (size_t)r, n, root, r);
    }
    memset(mine.data, CHECK_POISON_BYTE, n);
    COLL(Scatter, Iscatter, all.data, length, MPI_BYTE, in_place ? MPI_IN_PLACE : mine.data, length, MPI_BYTE, root,
         MPI_COMM_WORLD);
    check_block(in_place ? all.data + n * (size_t)root : mine.data, n, root, check.rank);
    check_buffer_free(&all);
    check_buffer_free(&mine);
}

/** Blocks of rank r have r + 1 parts, some are empty; gaps between them stay untouched. */
typedef struct blocks {
    int counts[16], places[16];
    size_t total;
} blocks_t;

static inline blocks_t make_blocks(int length, int empty)
{
    blocks_t blocks = {.total = 0};
    int r;

    for (r = 0; r < check.size; ++r) {
        blocks.counts[r] = (r == empty) ? 0 : length * (r + 1) / check.size;
        blocks.places[r] = (int)blocks.total;
        blocks.total += (size_t)blocks.counts[r] + 3;
    }
    return blocks;
}

static inline void check_gaps(const check_buffer_t *all, const blocks_t *blocks)
{
    int r;

    for (r = 0; r < check.size; ++r) {
        CHECK(check_all(all->data + blocks->places[r] + blocks->counts[r], CHECK_POISON_BYTE, 3),
              "the gap behind block %d was written", r);
    }
}

static inline void test_gatherv_scatterv(int length, int root)
{
    blocks_t blocks = make_blocks(length, (root + 1) % check.size);
    int count       = blocks.counts[check.rank], r;
    check_buffer_t all, mine;

    check_phase("gatherv");
    check_buffer_make(&all, blocks.total, 0);
    check_buffer_make(&mine, (size_t)count, 1);
    fill_block(mine.data, mine.length, check.rank, root);
    COLL(Gatherv, Igatherv, mine.data, count, MPI_BYTE, all.data, blocks.counts, blocks.places, MPI_BYTE, root,
         MPI_COMM_WORLD);
    for (r = 0; (r < check.size) && (check.rank == root); ++r) {
        check_block(all.data + blocks.places[r], (size_t)blocks.counts[r], r, root);
    }
    check_gaps(&all, &blocks);

    check_phase("scatterv");
    for (r = 0; r < check.size; ++r) {
        fill_block(all.data + blocks.places[r], (size_t)blocks.counts[r], root, r);
    }
    memset(mine.data, CHECK_POISON_BYTE, mine.length);
    COLL(Scatterv, Iscatterv, all.data, blocks.counts, blocks.places, MPI_BYTE, mine.data, count, MPI_BYTE, root,
         MPI_COMM_WORLD);
    check_block(mine.data, mine.length, root, check.rank);
    check_buffer_free(&all);
    check_buffer_free(&mine);
}

static inline void test_allgather(int length, int in_place)
{
    blocks_t blocks = make_blocks(length, -1);
    check_buffer_t all, mine;
    size_t n = (size_t)length;
    int r;

    check_phase("allgather");
    check_buffer_make(&all, n * (size_t)check.size, 0);
    check_buffer_make(&mine, n, 1);
    fill_block(in_place ? all.data + n * (size_t)check.rank : mine.data, n, check.rank, 0);
    COLL(Allgather, Iallgather, in_place ? MPI_IN_PLACE : mine.data, length, MPI_BYTE, all.data, length, MPI_BYTE,
         MPI_COMM_WORLD);
    for (r = 0; r < check.size; ++r) {
        check_block(all.data + n * (size_t)r, n, r, 0);
    }
    check_buffer_free(&all);

    check_phase("allgatherv");
    check_buffer_make(&all, blocks.total, 0);
    n = (size_t)blocks.counts[check.rank];
    fill_block(mine.data, n, check.rank, 0);
    COLL(Allgatherv, Iallgatherv, mine.data, (int)n, MPI_BYTE, all.data, blocks.counts, blocks.places, MPI_BYTE,
         MPI_COMM_WORLD);
    for (r = 0; r < check.size; ++r) {
        check_block(all.data + blocks.places[r], (size_t)blocks.counts[r], r, 0);
    }
    check_gaps(&all, &blocks);
    check_buffer_free(&all);
    check_buffer_free(&mine);
}

static inline void test_alltoall(int length, int in_place)
{
    check_buffer_t out, in;
    size_t n = (size_t)length;
    int r;

    check_phase("alltoall");
    check_buffer_make(&out, n * (size_t)check.size, 0);
    check_buffer_make(&in, n * (size_t)check.size, 1);
    for (r = 0; r < check.size; ++r) {
        fill_block((in_place ? in.data : out.data) + n * (size_t)r, n, check.rank, r);
    }
    COLL(Alltoall, Ialltoall, in_place ? MPI_IN_PLACE : out.data, length, MPI_BYTE, in.data, length, MPI_BYTE,
         MPI_COMM_WORLD);
    for (r = 0; r < check.size; ++r) {
        check_block(in.data + n * (size_t)r, n, r, check.rank);
    }
    check_buffer_free(&out);
    check_buffer_free(&in);
}

/** What rank a sends to rank b in the uneven exchanges, in units of 4 bytes. */
static inline int uneven(int a, int b, int length)
{
    return ((a + b) % 3 == 1) ? 0 : length / 4 * (a + 1) / (b + 1) / check.size;
}

/** Alltoallv with ints; Alltoallw with bytes to even ranks and a vector of ints (every second one) to odd ranks. */
static inline void test_alltoallv(int length, int each_own_type)
{
    int out_counts[16], out_places[16], in_counts[16], in_places[16], ones[16], r;
    size_t out_total = 0, in_total = 0, units;
    MPI_Datatype out_types[16], in_types[16];
    check_buffer_t out, in;
    unsigned char *stream;

    check_phase(each_own_type ? "alltoallw" : "alltoallv");
    for (r = 0; r < check.size; ++r) {
        out_counts[r] = uneven(check.rank, r, length);
        in_counts[r]  = uneven(r, check.rank, length);
        out_places[r] = (int)(out_total * (each_own_type ? 4 : 1));
        in_places[r]  = (int)(in_total * (each_own_type ? 4 : 1));
        out_total += (size_t)out_counts[r] + 1;
        /* a vector takes twice the room */
        in_total += (size_t)in_counts[r] * ((each_own_type && (check.rank % 2)) ? 2 : 1) + 1;
        ones[r] = 1;
        MPI_Type_contiguous(out_counts[r], MPI_INT, &out_types[r]);
        MPI_Type_vector(in_counts[r], 1, (check.rank % 2) ? 2 : 1, MPI_INT, &in_types[r]);
        MPI_Type_commit(&out_types[r]);
        MPI_Type_commit(&in_types[r]);
    }
    check_buffer_make(&out, out_total * 4, 0);
    check_buffer_make(&in, in_total * 4, 0);
    stream = malloc(in_total * 4);
    for (r = 0; r < check.size; ++r) {
        fill_block(out.data + out_places[r] * (each_own_type ? 1 : 4), (size_t)out_counts[r] * 4, check.rank, r);
    }
    if (each_own_type) {
        COLL(Alltoallw, Ialltoallw, out.data, ones, out_places, out_types, in.data, ones, in_places, in_types,
             MPI_COMM_WORLD);
    } else {
        COLL(Alltoallv, Ialltoallv, out.data, out_counts, out_places, MPI_INT, in.data, in_counts, in_places, MPI_INT,
             MPI_COMM_WORLD);
    }
    for (r = 0; r < check.size; ++r) {
        const unsigned char *block = in.data + in_places[r] * (each_own_type ? 1 : 4);

        for (units = 0; units < (size_t)in_counts[r]; ++units) {
            memcpy(stream + units * 4, block + units * ((each_own_type && (check.rank % 2)) ? 8 : 4), 4);
        }
        check_block(stream, (size_t)in_counts[r] * 4, r, check.rank);
        MPI_Type_free(&out_types[r]);
        MPI_Type_free(&in_types[r]);
    }
    free(stream);
    check_buffer_free(&out);
    check_buffer_free(&in);
}

/* ---- reductions: small numbers, so that sums and products are exact in every type ---- */

static inline int number_of(int rank, int i)
{
    return 1 + (int)(check_mix(coll_number * 1000003u + (uint64_t)rank * 7919u + (uint64_t)i) % 3);
}

typedef enum { ARITHMETIC, LOGICAL, BITWISE, LOCATION, USER } op_class_t;

/** An element type: how to write contributions and how to fold them, rank @a from to @a to. */
typedef struct kind {
    const char *name;
    MPI_Datatype type;
    size_t size;  /* of an element */
    size_t width; /* bytes of it that mean something */
    unsigned ops; /* classes, bits */
    void (*fill)(void *data, int count, int rank);
    void (*fold)(void *data, int count, int from, int to, MPI_Op op);
} kind_t;

#define DEFINE_KIND(_suffix, _type, _int_fold) \
    static inline void fill_##_suffix(void *data, int count, int rank) \
    { \
        _type *out = data; \
        int i; \
        for (i = 0; i < count; ++i) { \
            out[i] = (_type)number_of(rank, i); \
        } \
    } \
    static inline void fold_##_suffix(void *data, int count, int from, int to, MPI_Op op) \
    { \
        _type *out = data; \
        int i, r; \
        for (i = 0; i < count; ++i) { \
            _type a = (_type)number_of(from, i); \
            for (r = from + 1; r <= to; ++r) { \
                _type b = (_type)number_of(r, i); \
                if (op == MPI_SUM) { \
                    a = (_type)(a + b); \
                } else if (op == MPI_PROD) { \
                    a = (_type)(a * b); \
                } else if (op == MPI_MAX) { \
                    a = (a > b) ? a : b; \
                } else if (op == MPI_MIN) { \
                    a = (a < b) ? a : b; \
                } else { \
                    _int_fold; \
                } \
            } \
            out[i] = a; \
        } \
    }

#define FOLD_INTEGER(_type) \
    a = (_type)((op == MPI_LAND)   ? (a && b) \
                : (op == MPI_LOR)  ? (a || b) \
                : (op == MPI_LXOR) ? (!a != !b) \
                : (op == MPI_BAND) ? (a & b) \
                : (op == MPI_BOR)  ? (a | b) \
                                   : (a ^ b))

DEFINE_KIND(int, int, FOLD_INTEGER(int))
DEFINE_KIND(byte, unsigned char, FOLD_INTEGER(unsigned char))
DEFINE_KIND(int64, int64_t, FOLD_INTEGER(int64_t))
DEFINE_KIND(float, float, a = 0)
DEFINE_KIND(double, double, a = 0)

/** value and place, as MPI_2INT, MPI_FLOAT_INT and MPI_DOUBLE_INT have them */
#define DEFINE_LOCATION(_suffix, _type) \
    typedef struct { \
        _type value; \
        int place; \
    } location_##_suffix; \
    static inline void fill_loc_##_suffix(void *data, int count, int rank) \
    { \
        location_##_suffix *out = data; \
        int i; \
        for (i = 0; i < count; ++i) { \
            out[i].value = (_type)number_of(rank, i); \
            out[i].place = rank * 10 + i % 10; \
        } \
    } \
    static inline void fold_loc_##_suffix(void *data, int count, int from, int to, MPI_Op op) \
    { \
        location_##_suffix *out = data; \
        int i, r; \
        for (i = 0; i < count; ++i) { \
            _type a   = (_type)number_of(from, i); \
            int place = from * 10 + i % 10; \
            for (r = from + 1; r <= to; ++r) { \
                _type b = (_type)number_of(r, i); \
                if ((op == MPI_MAXLOC) ? (b > a) : (b < a)) { \
                    a     = b; \
                    place = r * 10 + i % 10; \
                } \
            } \
            out[i].value = a; \
            out[i].place = place; \
        } \
    }

DEFINE_LOCATION(int, int)
DEFINE_LOCATION(float, float)
DEFINE_LOCATION(double, double)

/** Composition of x -> ax + b: associative, not commutative, so the order of ranks shows. */
typedef struct affine {
    uint32_t a, b;
} affine_t;

static inline affine_t affine_of(int rank, int i)
{
    affine_t affine = {(uint32_t)number_of(rank, i) * 2 + 1, (uint32_t)(rank * 131 + i)};

    return affine;
}

static inline affine_t affine_then(affine_t f, affine_t g)
{
    affine_t both = {g.a * f.a, g.a * f.b + g.b};

    return both;
}

static inline void affine_op(void *in, void *inout, int *count, MPI_Datatype *type)
{
    affine_t *left = in, *right = inout;
    int i;

    (void)type;
    for (i = 0; i < *count; ++i) {
        right[i] = affine_then(left[i], right[i]);
    }
}

static inline void fill_affine(void *data, int count, int rank)
{
    affine_t *out = data;
    int i;

    for (i = 0; i < count; ++i) {
        out[i] = affine_of(rank, i);
    }
}

static inline void fold_affine(void *data, int count, int from, int to, MPI_Op op)
{
    affine_t *out = data;
    int i, r;

    (void)op;
    for (i = 0; i < count; ++i) {
        out[i] = affine_of(from, i);
        for (r = from + 1; r <= to; ++r) {
            out[i] = affine_then(out[i], affine_of(r, i));
        }
    }
}

static inline void check_numbers(const char *what, const kind_t *kind, const unsigned char *got, int count, int from,
                                 int to, MPI_Op op, const char *op_name)
{
    unsigned char *want = calloc((size_t)count + 1, kind->size);
    int i;

    --coll_number; /* the contributions were made before COLL counted */
    kind->fold(want, count, from, to, op);
    ++coll_number;
    for (i = 0; i < count; ++i) {
        CHECK(memcmp(got + (size_t)i * kind->size, want + (size_t)i * kind->size, kind->width) == 0,
              "%s of %d %s with %s: wrong contents at element %d", what, count, kind->name, op_name, i);
    }
    check.messages += 1;
    check.bytes += (uint64_t)count * kind->size;
    free(want);
}

/** All the reductions of one type, operation and count. */
static inline void test_reductions(const kind_t *kind, MPI_Op op, const char *op_name, int count, int root)
{
    int counts[16], places[16], total = 0, last = check.size - 1, me = check.rank, in_place, r;
    unsigned char *mine, *got;

    for (r = 0; r < check.size; ++r) {
        counts[r] = count / check.size + (r < count % check.size);
        places[r] = total;
        total += counts[r];
    }
    mine = calloc((size_t)count * (size_t)check.size + 1, kind->size);
    got  = calloc((size_t)count * (size_t)check.size + 1, kind->size);

    check_phase("allreduce");
    kind->fill(mine, count, me);
    COLL(Allreduce, Iallreduce, mine, got, count, kind->type, op, MPI_COMM_WORLD);
    check_numbers("allreduce", kind, got, count, 0, last, op, op_name);
    kind->fill(got, count, me);
    COLL(Allreduce, Iallreduce, MPI_IN_PLACE, got, count, kind->type, op, MPI_COMM_WORLD);
    check_numbers("allreduce in place", kind, got, count, 0, last, op, op_name);

    check_phase("reduce");
    in_place = (me == root) && (root == 0); /* MPICH 4.0 crashes in place at other roots */
    kind->fill(in_place ? got : mine, count, me);
    COLL(Reduce, Ireduce, in_place ? MPI_IN_PLACE : (void *)mine, got, count, kind->type, op, root, MPI_COMM_WORLD);
    if (me == root) {
        check_numbers("reduce", kind, got, count, 0, last, op, op_name);
    }
    check_phase("scan");
    kind->fill(mine, count, me);
    COLL(Scan, Iscan, mine, got, count, kind->type, op, MPI_COMM_WORLD);
    check_numbers("scan", kind, got, count, 0, me, op, op_name);
    check_phase("exscan");
    kind->fill(mine, count, me);
    COLL(Exscan, Iexscan, mine, got, count, kind->type, op, MPI_COMM_WORLD);
    if (me > 0) {
        check_numbers("exscan", kind, got, count, 0, me - 1, op, op_name);
    }

    /* element i of the whole vector goes to one rank: fold the whole and look at that part */
    check_phase("reduce_scatter");
    kind->fill(mine, count, me);
    COLL(Reduce_scatter, Ireduce_scatter, mine, got + (size_t)places[me] * kind->size, counts, kind->type, op,
         MPI_COMM_WORLD);
    {
        unsigned char *want = calloc((size_t)count + 1, kind->size);

        --coll_number;
        kind->fold(want, count, 0, last, op);
        ++coll_number;
        for (r = places[me]; r < places[me] + counts[me]; ++r) {
            CHECK(memcmp(got + (size_t)r * kind->size, want + (size_t)r * kind->size, kind->width) == 0,
                  "reduce_scatter of %d %s with %s: wrong contents at element %d", count, kind->name, op_name, r);
        }
        free(want);
    }
    check_phase("reduce_scatter_block");
    kind->fill(mine, count * check.size, me);
    COLL(Reduce_scatter_block, Ireduce_scatter_block, mine, got, count, kind->type, op, MPI_COMM_WORLD);
    {
        unsigned char *want = calloc((size_t)count * (size_t)check.size + 1, kind->size);

        --coll_number;
        kind->fold(want, count * check.size, 0, last, op);
        ++coll_number;
        for (r = 0; r < count; ++r) {
            CHECK(memcmp(got + (size_t)r * kind->size, want + (size_t)(me * count + r) * kind->size, kind->width) == 0,
                  "reduce_scatter_block of %d %s with %s: wrong contents at element %d", count, kind->name, op_name, r);
        }
        free(want);
    }
    free(mine);
    free(got);
}

/** Every type with every operation that is meant for it; @a brief: one operation of each class will do. */
static inline void test_all_reductions(const int *counts, int num_counts, int brief)
{
    enum { INTEGER = (1 << ARITHMETIC) | (1 << LOGICAL) | (1 << BITWISE) };
    MPI_Datatype affine_type;
    MPI_Op user;
    const struct {
        MPI_Op op;
        const char *name;
        op_class_t class;
    } ops[]        = {{MPI_SUM, "sum", ARITHMETIC}, {MPI_PROD, "prod", ARITHMETIC},   {MPI_MAX, "max", ARITHMETIC},
                      {MPI_MIN, "min", ARITHMETIC}, {MPI_LAND, "land", LOGICAL},      {MPI_LOR, "lor", LOGICAL},
                      {MPI_LXOR, "lxor", LOGICAL},  {MPI_BAND, "band", BITWISE},      {MPI_BOR, "bor", BITWISE},
                      {MPI_BXOR, "bxor", BITWISE},  {MPI_MAXLOC, "maxloc", LOCATION}, {MPI_MINLOC, "minloc", LOCATION},
                      {MPI_OP_NULL, "user's", USER}};
    kind_t kinds[] = {
            {"int", MPI_INT, 4, 4, INTEGER, fill_int, fold_int},
            {"unsigned char", MPI_UNSIGNED_CHAR, 1, 1, INTEGER, fill_byte, fold_byte},
            {"int64", MPI_INT64_T, 8, 8, INTEGER, fill_int64, fold_int64},
            {"float", MPI_FLOAT, 4, 4, 1 << ARITHMETIC, fill_float, fold_float},
            {"double", MPI_DOUBLE, 8, 8, 1 << ARITHMETIC, fill_double, fold_double},
            {"2int", MPI_2INT, 8, 8, 1 << LOCATION, fill_loc_int, fold_loc_int},
            {"float_int", MPI_FLOAT_INT, 8, 8, 1 << LOCATION, fill_loc_float, fold_loc_float},
            {"double_int", MPI_DOUBLE_INT, 16, 12, 1 << LOCATION, fill_loc_double, fold_loc_double},
            {"affine", MPI_DATATYPE_NULL, 8, 8, 1 << USER, fill_affine, fold_affine},
    };
    unsigned k, o;
    int c;

    MPI_Type_contiguous(2, MPI_UINT32_T, &affine_type);
    MPI_Type_commit(&affine_type);
    MPI_Op_create(affine_op, 0, &user);
    for (c = 0; c < num_counts; c += 1 + brief) {
        for (k = 0; k < CHECK_COUNT_OF(kinds); ++k) {
            for (o = 0; o < CHECK_COUNT_OF(ops); ++o) {
                if (!(kinds[k].ops & (1u << ops[o].class)) ||
                    ((brief || (counts[c] > 5000)) && (o > 0) && (ops[o].class == ops[o - 1].class))) {
                    continue;
                }
                check.step = counts[c];
                if (ops[o].class == USER) {
                    kinds[k].type = affine_type;
                }
                test_reductions(&kinds[k], (ops[o].class == USER) ? user : ops[o].op, ops[o].name, counts[c],
                                (int)(o % (unsigned)check.size));
            }
        }
    }
    MPI_Op_free(&user);
    MPI_Type_free(&affine_type);
}

static inline void test_barrier(void)
{
    int i;

    check_phase("barrier");
    for (i = check_scaled(10); i > 0; --i) {
        ++coll_number;
        if (coll_nonblocking) {
            MPI_Request request;

            MPI_Ibarrier(MPI_COMM_WORLD, &request);
            coll_complete(&request);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/** Everything, @a repeats times for small sizes. */
static inline void test_all_collectives(void)
{
    static const int lengths[] = {0, 1, 8, 64, 1000, 8184, 8300, 70000, 1048576};
    static const int counts[]  = {1, 17, 1100, 9000, 131072};
    int i, repeat, root, brief = (check.scale < 0.5);

    CHECK(check.size <= 16, "too many ranks");
    for (i = 0; i < (int)CHECK_COUNT_OF(lengths) - brief; i += 1 + brief) {
        for (repeat = (lengths[i] > 10000) ? 1 : check_scaled(3); repeat > 0; --repeat) {
            check.step = lengths[i];
            root       = (i + repeat) % check.size;
            test_barrier();
            test_bcast(lengths[i]);
            test_gather_scatter(lengths[i], root, 0);
            test_gather_scatter(lengths[i], root, 1);
            test_gatherv_scatterv(lengths[i], root);
            test_allgather(lengths[i], 0);
            test_allgather(lengths[i], 1);
            test_alltoall(lengths[i], 0);
            test_alltoall(lengths[i], 1);
            test_alltoallv(lengths[i], 0);
            test_alltoallv(lengths[i], 1);
        }
    }
    test_all_reductions(counts, (int)CHECK_COUNT_OF(counts) - brief, brief);
}

#endif
