/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Neighbourhood collectives, blocking and nonblocking, on Cartesian, graph and distributed graph topologies; what
 * stands for a neighbour that does not exist stays untouched.
 *
 * @ranks 2 4
 * @args 4: 0.3
 * @args mpich 4: 0.1
 */
#include "check.h"

enum { MAX_NEIGHBORS = 8 };

typedef struct topology {
    const char *name;
    MPI_Comm comm;
    int in[MAX_NEIGHBORS], out[MAX_NEIGHBORS]; /* who sends to us, whom we send to */
    int num_in, num_out;
    int rank;
    int no_alltoallw;
} topology_t;

static uint64_t number;

#define NEIGHBOR(_nonblocking, _name, _iname, ...) \
    do { \
        if (_nonblocking) { \
            MPI_Request _request; \
            MPI_##_iname(__VA_ARGS__, &_request); \
            MPI_Wait(&_request, MPI_STATUS_IGNORE); \
        } else { \
            MPI_##_name(__VA_ARGS__); \
        } \
    } while (0)

static void check_block(const topology_t *t, int i, const unsigned char *data, size_t length, int tag)
{
    if (t->in[i] == MPI_PROC_NULL) {
        CHECK(check_all(data, CHECK_POISON_BYTE, length), "%s: bytes came from a neighbour that is none", t->name);
    } else {
        check_bytes(data, length, t->in[i], tag, number);
    }
}

/** The same block to all neighbours; plain and with counts that grow with the sender's rank. */
static void test_allgather(const topology_t *t, int length, int nonblocking)
{
    int counts[MAX_NEIGHBORS], places[MAX_NEIGHBORS], i, at = 0, count = length / (t->rank + 1);
    check_buffer_t out, in;

    check_phase("neighbor_allgather");
    check_buffer_make(&out, (size_t)length, 0);
    check_buffer_make(&in, ((size_t)length + 8) * MAX_NEIGHBORS, 1);
    check_fill(out.data, out.length, t->rank, 1, number);
    NEIGHBOR(nonblocking, Neighbor_allgather, Ineighbor_allgather, out.data, length, MPI_BYTE, in.data, length,
             MPI_BYTE, t->comm);
    for (i = 0; i < t->num_in; ++i) {
        check_block(t, i, in.data + (size_t)i * (size_t)length, (size_t)length, 1);
    }

    check_phase("neighbor_allgatherv");
    for (i = 0; i < t->num_in; ++i) {
        counts[i] = (t->in[i] == MPI_PROC_NULL) ? 5 : length / (t->in[i] + 1);
        places[i] = at;
        at += counts[i] + 1;
    }
    memset(in.data, CHECK_POISON_BYTE, in.length);
    NEIGHBOR(nonblocking, Neighbor_allgatherv, Ineighbor_allgatherv, out.data, count, MPI_BYTE, in.data, counts, places,
             MPI_BYTE, t->comm);
    for (i = 0; i < t->num_in; ++i) {
        check_block(t, i, in.data + places[i], (size_t)counts[i], 1);
    }
    ++number;
    check_buffer_free(&out);
    check_buffer_free(&in);
}

/** One block for each neighbour. @a variant 0: equal blocks, 1: v, 2: w with places in bytes. */
static void test_alltoall(const topology_t *t, int length, int variant, int nonblocking)
{
    static const char *const names[] = {"neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw"};
    int out_counts[MAX_NEIGHBORS], in_counts[MAX_NEIGHBORS], out_at[MAX_NEIGHBORS], in_at[MAX_NEIGHBORS], i;
    MPI_Aint out_far[MAX_NEIGHBORS], in_far[MAX_NEIGHBORS];
    MPI_Datatype types[MAX_NEIGHBORS];
    check_buffer_t out, in;

    check_phase(names[variant]);
    check_buffer_make(&out, (size_t)length * MAX_NEIGHBORS, 0);
    check_buffer_make(&in, (size_t)length * MAX_NEIGHBORS, 1);
    for (i = 0; i < MAX_NEIGHBORS; ++i) {
        types[i]   = MPI_BYTE;
        out_far[i] = out_at[i] = i * length;
        in_far[i] = in_at[i] = i * length;
    }
    for (i = 0; i < t->num_out; ++i) {
        out_counts[i] = (variant && (t->out[i] >= 0)) ? length / (1 + t->out[i]) : length;
        if (t->out[i] >= 0) {
            check_fill(out.data + out_at[i], (size_t)out_counts[i], t->rank, 10 + t->out[i], number);
        }
    }
    for (i = 0; i < t->num_in; ++i) {
        in_counts[i] = (variant && (t->in[i] >= 0)) ? length / (1 + t->rank) : length;
    }
    if (variant == 0) {
        NEIGHBOR(nonblocking, Neighbor_alltoall, Ineighbor_alltoall, out.data, length, MPI_BYTE, in.data, length,
                 MPI_BYTE, t->comm);
    } else if (variant == 1) {
        NEIGHBOR(nonblocking, Neighbor_alltoallv, Ineighbor_alltoallv, out.data, out_counts, out_at, MPI_BYTE, in.data,
                 in_counts, in_at, MPI_BYTE, t->comm);
    } else {
        NEIGHBOR(nonblocking, Neighbor_alltoallw, Ineighbor_alltoallw, out.data, out_counts, out_far, types, in.data,
                 in_counts, in_far, types, t->comm);
    }
    for (i = 0; i < t->num_in; ++i) {
        check_block(t, i, in.data + in_at[i], (size_t)in_counts[i], 10 + t->rank);
    }
    ++number;
    check_buffer_free(&out);
    check_buffer_free(&in);
}

static void test_topology(topology_t *t)
{
    static const int lengths[] = {0, 1, 64, 4096, 8300, 70000, 500000};
    int i, repeat, nonblocking, variant;

    for (i = 0; i < (int)CHECK_COUNT_OF(lengths); ++i) {
        for (repeat = (lengths[i] > 10000) ? 1 : check_scaled(10); repeat > 0; --repeat) {
            for (nonblocking = 0; nonblocking < 2; ++nonblocking) {
                check.step = lengths[i];
                test_allgather(t, lengths[i], nonblocking);
                for (variant = 0; variant < 3 - t->no_alltoallw; ++variant) {
                    test_alltoall(t, lengths[i], variant, nonblocking);
                }
            }
        }
    }
    MPI_Comm_free(&t->comm);
}

/** Two dimensions if there are ranks for it; closed to a torus only where that gives no double edge. */
static void test_cart(void)
{
    topology_t t = {.name = "cart"};
    int dims[2]  = {0, 0}, periods[2], coords[2], i;

    MPI_Dims_create(check.size, 2, dims);
    for (i = 0; i < 2; ++i) {
        periods[i] = (dims[i] > 2);
    }
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &t.comm);
    MPI_Comm_rank(t.comm, &t.rank);
    MPI_Cart_coords(t.comm, t.rank, 2, coords);
    for (i = 0; i < 2; ++i) {
        MPI_Cart_shift(t.comm, i, 1, &t.in[2 * i], &t.in[2 * i + 1]);
    }
    memcpy(t.out, t.in, sizeof(t.in));
    t.num_in = t.num_out = 4;
    test_topology(&t);
}

/** Each one to all, itself included. */
static void test_dist_graph(void)
{
    topology_t t = {.name = "distributed graph", .rank = check.rank};
    int i;

    for (i = 0; (i < check.size) && (i < MAX_NEIGHBORS); ++i) {
        t.in[i]  = (check.rank + i) % check.size;
        t.out[i] = (check.rank + check.size - i) % check.size;
    }
    t.num_in = t.num_out = i;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t.num_in, t.in, MPI_UNWEIGHTED, t.num_out, t.out, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &t.comm);
    test_topology(&t);
}

/** Each one to all, but no rank tells its own edges: those of the next one. The order of neighbors is MPI's to choose. */
static void test_dist_graph_by_others(void)
{
    topology_t t = {.name = "distributed graph by others", .rank = check.rank};
    int source   = (check.rank + 1) % check.size, degree, i, weighted, to[MAX_NEIGHBORS];

    degree = (check.size < MAX_NEIGHBORS) ? check.size : MAX_NEIGHBORS;
    for (i = 0; i < degree; ++i) {
        to[i] = (source + i) % check.size;
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &t.comm);
    MPI_Dist_graph_neighbors_count(t.comm, &t.num_in, &t.num_out, &weighted);
    CHECK((t.num_in == degree) && (t.num_out == degree), "%d to, %d from, not %d", t.num_out, t.num_in, degree);
    MPI_Dist_graph_neighbors(t.comm, t.num_in, t.in, MPI_UNWEIGHTED, t.num_out, t.out, MPI_UNWEIGHTED);
    test_topology(&t);
}

/** A star around rank 0, directed: it hears all the others, they hear nobody. */
static void test_one_way(void)
{
    topology_t t = {.name = "one way", .rank = check.rank};
    int i;

#ifdef MPICH_VERSION
    t.no_alltoallw = 1; /* MPICH 4.0 reads past its arrays there unless both degrees are equal (valgrind shows it) */
#endif
    if (check.rank == 0) {
        for (i = 1; (i < check.size) && (i < MAX_NEIGHBORS); ++i) {
            t.in[t.num_in++] = i;
        }
    } else {
        t.out[t.num_out++] = 0;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t.num_in, t.in, MPI_UNWEIGHTED, t.num_out, t.out, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &t.comm);
    test_topology(&t);
}

/** The old graph call: a ring without double edges. */
static void test_graph(void)
{
    topology_t t = {.name = "graph", .rank = check.rank};
    int index[16], edges[32], r, n = 0;

    for (r = 0; r < check.size; ++r) {
        edges[n++] = (r + 1) % check.size;
        if (check.size > 2) {
            edges[n++] = (r + check.size - 1) % check.size;
        }
        index[r] = n;
    }
    MPI_Graph_create(MPI_COMM_WORLD, check.size, index, edges, 0, &t.comm);
    MPI_Graph_neighbors_count(t.comm, check.rank, &t.num_in);
    MPI_Graph_neighbors(t.comm, check.rank, MAX_NEIGHBORS, t.in);
    memcpy(t.out, t.in, sizeof(t.in));
    t.num_out = t.num_in;
    test_topology(&t);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, "coll_neighbor");
    CHECK(check.size <= MAX_NEIGHBORS, "too many ranks");
    test_cart();
    test_dist_graph();
    test_dist_graph_by_others();
    test_one_way();
    test_graph();
    check.messages += 1;
    return check_finish();
}
