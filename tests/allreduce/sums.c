/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Is each result of MPI_Allreduce, to the last bit, what the order of operations that mpi/README.md describes gives? All of MPI's operations
 * on all of its types they apply to, several communicators, MPI_IN_PLACE, sizes from nothing to MAX bytes; and what is left to the MPI.
 *
 * usage: sums [KIB [few]]    up to KIB KiB (default 1024); few: each operation with one size of each type
 */
#include "../mpi/check.h"

#include <stdint.h>
#include <unistd.h>

typedef enum { INTEGER, REAL, LOGICAL, COMPLEX, BYTES, PAIR } kind_t;

typedef struct typed {
    const char *name;
    MPI_Datatype type;
    kind_t kind;
    int real_size; /* of a REAL, of a part of COMPLEX, of the value of a PAIR if that is real; else 0 */
} typed_t;

typedef struct operation {
    const char *name;
    MPI_Op op;
    unsigned kinds;
} operation_t;

#define KIND(_kind) (1u << (_kind))
#define TYPE(_type, _kind, _real_size) \
    { \
#_type, _type, _kind, _real_size \
    }

static int max_kib = 1024;
static long compared, differences;

/* ---------------------------------------------------------- the right order */

/* Who is on which node: by host name, nodes by their lowest ranks */
typedef struct order {
    int ranks, rank, nodes;
    int *node_begin; /* places of each node's ranks in `by_node`; one more at the end */
    int *by_node;
} order_t;

static void order_make(MPI_Comm comm, order_t *order)
{
    char own[64] = "", (*names)[64];
    int i, j, *seen;

    MPI_Comm_size(comm, &order->ranks);
    MPI_Comm_rank(comm, &order->rank);
    gethostname(own, sizeof(own) - 1);
    names             = calloc((size_t)order->ranks, sizeof(*names));
    seen              = calloc((size_t)order->ranks, sizeof(*seen));
    order->by_node    = calloc((size_t)order->ranks, sizeof(int));
    order->node_begin = calloc((size_t)order->ranks + 1, sizeof(int));
    MPI_Allgather(own, sizeof(own), MPI_CHAR, names, sizeof(own), MPI_CHAR, comm);
    order->nodes = 0;
    for (i = 0, j = 0; i < order->ranks; ++i) {
        int k;

        if (seen[i]) {
            continue;
        }
        order->node_begin[order->nodes++] = j;
        for (k = i; k < order->ranks; ++k) {
            if (strcmp(names[i], names[k]) == 0) {
                seen[k]             = 1;
                order->by_node[j++] = k;
            }
        }
    }
    order->node_begin[order->nodes] = j;
    free(names);
    free(seen);
}

static void order_free(order_t *order)
{
    free(order->by_node);
    free(order->node_begin);
}

typedef void (*make_t)(void *to, const typed_t *typed, size_t count, size_t extent, int rank, unsigned seed);

/* Sums of the leaves [first, last): neighbours first */
static void *leaves_sum(const order_t *order, void **nodes, int first, int last, size_t count, MPI_Datatype type,
                        MPI_Op op)
{
    void *left, *right;

    if (last - first == 1) {
        return nodes[first];
    }
    left  = leaves_sum(order, nodes, first, (first + last) / 2, count, type, op);
    right = leaves_sum(order, nodes, (first + last) / 2, last, count, type, op);
    MPI_Reduce_local(left, right, (int)count, type, op);
    return right;
}

/* @return what the result must be, to be freed with *all_p */
static void *right_result(const order_t *order, const typed_t *typed, MPI_Op op, size_t count, size_t extent,
                          unsigned seed, make_t make, char **all_p)
{
    size_t length = count * extent;
    char *all     = calloc((size_t)order->ranks + 1, length + 1);
    void **nodes  = calloc((size_t)order->nodes, sizeof(*nodes)), *result;
    int i, j, leaves = 1, pairs;

    for (i = 0; i < order->ranks; ++i) {
        make(all + (size_t)i * length, typed, count, extent, order->by_node[i], seed);
    }
    for (i = 0; i < order->nodes; ++i) {
        nodes[i] = all + (size_t)(order->node_begin[i + 1] - 1) * length;
        for (j = order->node_begin[i + 1] - 2; j >= order->node_begin[i]; --j) {
            MPI_Reduce_local(all + (size_t)j * length, nodes[i], (int)count, typed->type, op);
        }
    }
    while (2 * leaves <= order->nodes) {
        leaves *= 2;
    }
    pairs = order->nodes - leaves;
    for (i = 0; i < pairs; ++i) {
        MPI_Reduce_local(nodes[2 * i], nodes[2 * i + 1], (int)count, typed->type, op);
        nodes[i] = nodes[2 * i + 1];
    }
    for (i = pairs; i < leaves; ++i) {
        nodes[i] = nodes[i + pairs];
    }
    result = leaves_sum(order, nodes, 0, leaves, count, typed->type, op);
    free(nodes);
    *all_p = all;
    return result;
}

/* ------------------------------------------------------------------ contents */

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185ull;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44dull;
    return x ^ (x >> 33);
}

/* Numbers of all magnitudes, whose sums depend on their order */
static void make_real(void *to, int size, uint64_t random)
{
    double value = ((double)(random & 0xfffff) - 524288.5) / (double)(1ull << ((random >> 20) % 40));

    if (size == (int)sizeof(float)) {
        *(float *)to = (float)value;
    } else if (size == (int)sizeof(double)) {
        *(double *)to = value;
    } else {
        *(long double *)to = (long double)value;
    }
}

static void make(void *to, const typed_t *typed, size_t count, size_t extent, int rank, unsigned seed)
{
    uint64_t random;
    size_t i;

    memset(to, 0, count * extent);
    for (i = 0; i < count; ++i) {
        char *element = (char *)to + i * extent;

        random = mixed(((uint64_t)seed << 48) ^ ((uint64_t)(rank + 1) << 40) ^ i);
        switch (typed->kind) {
        case REAL:
            make_real(element, typed->real_size, random);
            break;
        case COMPLEX:
            make_real(element, typed->real_size, random);
            make_real(element + typed->real_size, typed->real_size, mixed(random));
            break;
        case LOGICAL:
            element[0] = (char)(random & 1);
            break;
        case PAIR: { /* value and place; places behind the value, as an int, float or double */
            MPI_Aint lower, true_extent;
            int value_size = (typed->real_size != 0) ? typed->real_size : 0, place = (int)(random >> 32) & 0xffff;

            MPI_Type_get_true_extent(typed->type, &lower, &true_extent);
            random %= 7; /* the same value often */
            if (typed->real_size != 0) {
                make_real(element, value_size, random);
                if (2 * value_size == true_extent) {
                    if (typed->type == MPI_FLOAT_INT) {
                        *(int *)(element + value_size) = place;
                    } else {
                        make_real(element + value_size, value_size, (uint64_t)place % 64);
                    }
                } else {
                    *(int *)(element + true_extent - (MPI_Aint)sizeof(int)) = place;
                }
            } else {
                memcpy(element, &random, (size_t)(true_extent - (MPI_Aint)sizeof(int)) >= 8 ? 8 : 2);
                *(int *)(element + true_extent - (MPI_Aint)sizeof(int)) = place;
            }
            break;
        }
        default:
            memcpy(element, &random, (extent < sizeof(random)) ? extent : sizeof(random));
        }
    }
}

/* ------------------------------------------------------------------- looking */

static void compare(const char *what, const typed_t *typed, const operation_t *operation, const order_t *order,
                    const void *have, const void *want, size_t count, size_t extent)
{
    size_t i;

    ++compared;
    for (i = 0; i < count; ++i) {
        if (memcmp((const char *)have + i * extent, (const char *)want + i * extent, extent) != 0) {
            if (++differences < 10) {
                fprintf(stderr, "rank %d of %d: %s, %s, %s, %zu elements: element %zu is wrong\n", order->rank,
                        order->ranks, what, typed->name, operation->name, count, i);
            }
            return;
        }
    }
}

static void try_one(MPI_Comm comm, const order_t *order, const typed_t *typed, const operation_t *operation,
                    size_t count, unsigned seed)
{
    MPI_Aint lower, extent;
    char *send, *receive, *all;
    void *want;

    MPI_Type_get_extent(typed->type, &lower, &extent);
    send    = calloc(1, count * (size_t)extent + 1);
    receive = calloc(1, count * (size_t)extent + 1);
    want    = right_result(order, typed, operation->op, count, (size_t)extent, seed, make, &all);

    make(send, typed, count, (size_t)extent, order->rank, seed);
    memset(receive, 0, count * (size_t)extent + 1);
    receive[count * (size_t)extent] = 77;
    MPI_Allreduce(send, receive, (int)count, typed->type, operation->op, comm);
    compare("two buffers", typed, operation, order, receive, want, count, (size_t)extent);
    CHECK(receive[count * (size_t)extent] == 77, "written beyond the buffer");

    MPI_Allreduce(MPI_IN_PLACE, send, (int)count, typed->type, operation->op, comm);
    compare("in place", typed, operation, order, send, want, count, (size_t)extent);
    free(send);
    free(receive);
    free(all);
}

static void try_types(MPI_Comm comm, const order_t *order, const size_t *counts, size_t number)
{
    const typed_t types[] = {
            TYPE(MPI_INT, INTEGER, 0),
            TYPE(MPI_LONG, INTEGER, 0),
            TYPE(MPI_SHORT, INTEGER, 0),
            TYPE(MPI_UNSIGNED_SHORT, INTEGER, 0),
            TYPE(MPI_UNSIGNED, INTEGER, 0),
            TYPE(MPI_UNSIGNED_LONG, INTEGER, 0),
            TYPE(MPI_LONG_LONG, INTEGER, 0),
            TYPE(MPI_UNSIGNED_LONG_LONG, INTEGER, 0),
            TYPE(MPI_SIGNED_CHAR, INTEGER, 0),
            TYPE(MPI_UNSIGNED_CHAR, INTEGER, 0),
            TYPE(MPI_INT8_T, INTEGER, 0),
            TYPE(MPI_INT16_T, INTEGER, 0),
            TYPE(MPI_INT32_T, INTEGER, 0),
            TYPE(MPI_INT64_T, INTEGER, 0),
            TYPE(MPI_UINT8_T, INTEGER, 0),
            TYPE(MPI_UINT16_T, INTEGER, 0),
            TYPE(MPI_UINT32_T, INTEGER, 0),
            TYPE(MPI_UINT64_T, INTEGER, 0),
            TYPE(MPI_FLOAT, REAL, sizeof(float)),
            TYPE(MPI_DOUBLE, REAL, sizeof(double)),
            TYPE(MPI_LONG_DOUBLE, REAL, sizeof(long double)),
            TYPE(MPI_REAL, REAL, sizeof(float)),
            TYPE(MPI_DOUBLE_PRECISION, REAL, sizeof(double)),
            TYPE(MPI_C_BOOL, LOGICAL, 0),
            TYPE(MPI_LOGICAL, LOGICAL, 0),
            TYPE(MPI_C_FLOAT_COMPLEX, COMPLEX, sizeof(float)),
            TYPE(MPI_C_DOUBLE_COMPLEX, COMPLEX, sizeof(double)),
            TYPE(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, sizeof(long double)),
            TYPE(MPI_COMPLEX, COMPLEX, sizeof(float)),
            TYPE(MPI_DOUBLE_COMPLEX, COMPLEX, sizeof(double)),
            TYPE(MPI_BYTE, BYTES, 0),
            TYPE(MPI_FLOAT_INT, PAIR, sizeof(float)),
            TYPE(MPI_DOUBLE_INT, PAIR, sizeof(double)),
            TYPE(MPI_LONG_INT, PAIR, 0),
            TYPE(MPI_2INT, PAIR, 0),
            TYPE(MPI_SHORT_INT, PAIR, 0),
            TYPE(MPI_LONG_DOUBLE_INT, PAIR, sizeof(long double)),
            TYPE(MPI_2REAL, PAIR, sizeof(float)),
            TYPE(MPI_2DOUBLE_PRECISION, PAIR, sizeof(double)),
    };
    const operation_t operations[] = {
            {"MPI_SUM", MPI_SUM, KIND(INTEGER) | KIND(REAL) | KIND(COMPLEX)},
            {"MPI_PROD", MPI_PROD, KIND(INTEGER) | KIND(REAL) | KIND(COMPLEX)},
            {"MPI_MAX", MPI_MAX, KIND(INTEGER) | KIND(REAL)},
            {"MPI_MIN", MPI_MIN, KIND(INTEGER) | KIND(REAL)},
            {"MPI_LAND", MPI_LAND, KIND(INTEGER) | KIND(LOGICAL)},
            {"MPI_LOR", MPI_LOR, KIND(INTEGER) | KIND(LOGICAL)},
            {"MPI_LXOR", MPI_LXOR, KIND(INTEGER) | KIND(LOGICAL)},
            {"MPI_BAND", MPI_BAND, KIND(INTEGER) | KIND(BYTES)},
            {"MPI_BOR", MPI_BOR, KIND(INTEGER) | KIND(BYTES)},
            {"MPI_BXOR", MPI_BXOR, KIND(INTEGER) | KIND(BYTES)},
            {"MPI_MAXLOC", MPI_MAXLOC, KIND(PAIR)},
            {"MPI_MINLOC", MPI_MINLOC, KIND(PAIR)},
    };
    size_t i, j, k;

    for (i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        for (j = 0; j < sizeof(operations) / sizeof(operations[0]); ++j) {
            for (k = 0; (operations[j].kinds & KIND(types[i].kind)) && (k < number); ++k) {
                try_one(comm, order, &types[i], &operations[j], counts[k], (unsigned)(i * 16 + j));
            }
        }
    }
}

static void try_sizes(MPI_Comm comm, const order_t *order)
{
    const typed_t types[]          = {TYPE(MPI_DOUBLE, REAL, sizeof(double)), TYPE(MPI_UINT8_T, INTEGER, 0)};
    const operation_t operations[] = {{"MPI_SUM", MPI_SUM, 0}};
    size_t bytes;
    int i;

    for (bytes = 64; bytes <= (size_t)max_kib << 10; bytes *= 4) {
        for (i = -1; i <= 1; ++i) {
            try_one(comm, order, &types[0], operations, (bytes / sizeof(double)) + (size_t)i, (unsigned)bytes);
        }
        try_one(comm, order, &types[1], operations, bytes - 1, (unsigned)bytes);
    }
    try_one(comm, order, &types[0], operations, ((size_t)max_kib << 10) / sizeof(double), 7);
}

/* -------------------------------------------------------- what is not by node */

static void add(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int i;

    (void)type;
    for (i = 0; i < *length; ++i) {
        ((int *)inout)[i] += ((int *)in)[i];
    }
}

static void try_others(MPI_Comm comm)
{
    int send[64], receive[64], i, rank, ranks, want, code;
    MPI_Datatype twice;
    MPI_Op own;
    MPI_Comm inter, half;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (i = 0; i < 64; ++i) {
        send[i] = rank + i;
    }
    MPI_Op_create(add, 1, &own);
    MPI_Allreduce(send, receive, 64, MPI_INT, own, comm);
    for (i = 0; i < 64; ++i) {
        want = ranks * (ranks - 1) / 2 + ranks * i;
        CHECK(receive[i] == want, "own operation: element %d is %d, should be %d", i, receive[i], want);
    }
    MPI_Op_free(&own);

    MPI_Type_contiguous(2, MPI_INT, &twice); /* of no operation of MPI's: an error, which MPI tells */
    MPI_Type_commit(&twice);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Allreduce(send, receive, 32, twice, MPI_SUM, comm);
    CHECK(code != MPI_SUCCESS, "a derived type was added up");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&twice);

    if (ranks < 2) {
        return;
    }
    MPI_Comm_split(comm, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, comm, (rank + 1) % 2, 3, &inter);
    for (i = 0; i < 4; ++i) {
        MPI_Allreduce(send, receive, 1, MPI_INT, MPI_SUM, inter);
    }
    for (want = 0, i = (rank + 1) % 2; i < ranks; i += 2) {
        want += i;
    }
    CHECK(receive[0] == want, "over two groups: %d, should be %d", receive[0], want);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* A rank that waits in an all-reduce for others of its node still takes part in messages: one of those others waits for one */
static void try_progress(MPI_Comm comm, const order_t *order)
{
    enum { LENGTH = 4 << 20 };
    int last         = order->ranks - 1, i;
    char *big        = calloc(1, LENGTH);
    double sum[4096] = {0}, zero[4096] = {0};
    MPI_Request request = MPI_REQUEST_NULL;

    for (i = 0; i < 3; ++i) {
        if (order->rank == 0) {
            MPI_Irecv(big, LENGTH, MPI_CHAR, last, 5, comm, &request);
        } else if (order->rank == last) {
            MPI_Ssend(big, LENGTH, MPI_CHAR, 0, 5, comm);
        }
        MPI_Allreduce(zero, sum, 4096, MPI_DOUBLE, MPI_SUM, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(big);
}

/* And in those that it has begun itself, whichever rank it is: who receives one comes to the all-reduce when it has it */
static void try_begun(MPI_Comm comm, const order_t *order)
{
    enum { LENGTH = 2 << 20 };
    char *big        = calloc(1, LENGTH);
    double sum[4096] = {0}, zero[4096] = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    int from, to;

    for (from = 0; from < order->ranks; ++from) {
        to = (from + order->ranks / 2) % order->ranks;
        if (order->rank == from) {
            MPI_Isend(big, LENGTH, MPI_CHAR, to, 5, comm, &request);
        } else if (order->rank == to) {
            MPI_Recv(big, LENGTH, MPI_CHAR, from, 5, comm, MPI_STATUS_IGNORE);
        }
        MPI_Allreduce(zero, sum, 4096, MPI_DOUBLE, MPI_SUM, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(big);
}

/* ---------------------------------------------------------------------- main */

static void try_comm(MPI_Comm comm, int all_types)
{
    static const size_t small[] = {0, 1, 7, 1000}, one[] = {33};
    order_t order;
    int i, x = 1, y;

    order_make(comm, &order);
    for (i = 0; i < 2; ++i) { /* the first ones are the MPI's in any case */
        MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_MAX, comm);
    }
    try_types(comm, &order, all_types ? small : one, all_types ? 4 : 1);
    try_sizes(comm, &order);
    try_others(comm);
    if (order.ranks > 1) {
        try_progress(comm, &order);
        try_begun(comm, &order);
    }
    order_free(&order);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    int rank, ranks;

    check_init(&argc, &argv, "sums");
    max_kib = (argc > 1) ? atoi(argv[1]) : max_kib; /* and not a scale */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    try_comm(MPI_COMM_WORLD, argc <= 2);

    max_kib = (max_kib < 256) ? max_kib : 256;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    try_comm(comm, 0);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm); /* the other way round */
    try_comm(comm, 0);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank == ranks / 2, rank, &comm); /* one is alone */
    try_comm(comm, 0);
    MPI_Comm_free(&comm);

    check.messages = (uint64_t)compared;
    CHECK(differences == 0, "%ld of %ld results differ", differences, compared);
    check_pass();
    MPI_Finalize();
    return 0;
}
