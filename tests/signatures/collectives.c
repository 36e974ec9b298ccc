/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives, by all ranks alike, and so that rank 1 has floats where all others have ints: each of them, blocking, not blocking, and persistent where
 * there is that. Rank 0 prints what has to be told, "evidence" of a record a line. With an argument: one call that can't go on, and is to
 * be seen before: root, operation, call, finalize, missing.
 *
 * @ranks 3
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RANKS 3
#define COUNT 4

static int rank;
static int in[RANKS * COUNT], out[RANKS * COUNT];
static int counts[] = {COUNT, COUNT, COUNT}, displs[] = {0, COUNT, 2 * COUNT}, offsets[] = {0, 16, 32};
static MPI_Aint places[] = {0, 16, 32};
static MPI_Datatype types[RANKS];
static MPI_Comm ring;

/* What is to be told of a call all of whose data is the same for all */
static void expect_same(const char *call, const char *rest)
{
    if (rank == 0) {
        printf("rank 0 calls %s of 4 x MPI_INT%s, rank 1 calls %s of 4 x MPI_FLOAT%s\n", call, rest, call, rest);
    }
}

/* Of a message within one */
static void expect_edge(const char *call, int from, int to)
{
    if (rank == 0) {
        printf("rank %d calls %s with 4 x %s for rank %d, rank %d calls %s with 4 x %s from rank %d\n", from, call,
               (from == 1) ? "MPI_FLOAT" : "MPI_INT", to, to, call, (to == 1) ? "MPI_FLOAT" : "MPI_INT", from);
    }
}

static void expect_edges(const char *call, const char *rest)
{
    (void)rest;
    expect_edge(call, 0, 1);
    expect_edge(call, 1, 0);
    expect_edge(call, 1, 2);
    expect_edge(call, 2, 1);
}

static void expect_to_root(const char *call, const char *rest)
{
    (void)rest;
    expect_edge(call, 1, 0);
}

static void expect_from_root(const char *call, const char *rest)
{
    (void)rest;
    expect_edge(call, 0, 1);
}

/* The type of this rank, and what goes with it */
static MPI_Datatype choose(int differs)
{
    int i;

    for (i = 0; i < RANKS; ++i) {
        types[i] = (differs && (rank == 1)) ? MPI_FLOAT : MPI_INT;
    }
    return types[0];
}

#if MPI_VERSION >= 4
#define PERSISTENT(_name, _expect, _rest, ...) \
    do { \
        MPI_##_name##_init(__VA_ARGS__, MPI_INFO_NULL, &request); \
        MPI_Start(&request); \
        MPI_Wait(&request, MPI_STATUS_IGNORE); \
        MPI_Request_free(&request); \
        if (differs) { \
            _expect("MPI_" #_name "_init", _rest); \
        } \
    } while (0)
#else
#define PERSISTENT(_name, _expect, _rest, ...)
#endif

#define ALL_WAYS(_name, _lower, _expect, _rest, ...) \
    do { \
        MPI_##_name(__VA_ARGS__); \
        MPI_I##_lower(__VA_ARGS__, &request); \
        MPI_Wait(&request, MPI_STATUS_IGNORE); \
        if (differs) { \
            _expect("MPI_" #_name, _rest); \
            _expect("MPI_I" #_lower, _rest); \
        } \
        PERSISTENT(_name, _expect, _rest, __VA_ARGS__); \
    } while (0)

static void rooted(int differs)
{
    MPI_Datatype type = choose(differs);
    MPI_Request request;

    ALL_WAYS(Bcast, bcast, expect_same, ", root 0", in, COUNT, type, 0, MPI_COMM_WORLD);
    ALL_WAYS(Gather, gather, expect_same, ", root 0", in, COUNT, type, out, COUNT, type, 0, MPI_COMM_WORLD);
    ALL_WAYS(Scatter, scatter, expect_same, ", root 0", out, COUNT, type, in, COUNT, type, 0, MPI_COMM_WORLD);
    ALL_WAYS(Reduce, reduce, expect_same, ", MPI_SUM, root 0", in, out, COUNT, type, MPI_SUM, 0, MPI_COMM_WORLD);
    ALL_WAYS(Gatherv, gatherv, expect_to_root, "", in, COUNT, type, (rank == 0) ? out : NULL,
             (rank == 0) ? counts : NULL, (rank == 0) ? displs : NULL, (rank == 0) ? type : MPI_DATATYPE_NULL, 0,
             MPI_COMM_WORLD);
    ALL_WAYS(Scatterv, scatterv, expect_from_root, "", (rank == 0) ? out : NULL, (rank == 0) ? counts : NULL,
             (rank == 0) ? displs : NULL, (rank == 0) ? type : MPI_DATATYPE_NULL, in, COUNT, type, 0, MPI_COMM_WORLD);
}

static void to_all(int differs)
{
    MPI_Datatype type = choose(differs);
    MPI_Request request;

    ALL_WAYS(Allgather, allgather, expect_same, "", in, COUNT, type, out, COUNT, type, MPI_COMM_WORLD);
    ALL_WAYS(Alltoall, alltoall, expect_same, "", in, COUNT, type, out, COUNT, type, MPI_COMM_WORLD);
    ALL_WAYS(Allgatherv, allgatherv, expect_edges, "", in, COUNT, type, out, counts, displs, type, MPI_COMM_WORLD);
    ALL_WAYS(Alltoallv, alltoallv, expect_edges, "", in, counts, displs, type, out, counts, displs, type,
             MPI_COMM_WORLD);
    ALL_WAYS(Alltoallw, alltoallw, expect_edges, "", in, counts, offsets, types, out, counts, offsets, types,
             MPI_COMM_WORLD);
}

static void reductions(int differs)
{
    MPI_Datatype type = choose(differs);
    MPI_Request request;

    ALL_WAYS(Allreduce, allreduce, expect_same, ", MPI_MAX", in, out, COUNT, type, MPI_MAX, MPI_COMM_WORLD);
    ALL_WAYS(Scan, scan, expect_same, ", MPI_SUM", in, out, COUNT, type, MPI_SUM, MPI_COMM_WORLD);
    ALL_WAYS(Exscan, exscan, expect_same, ", MPI_SUM", in, out, COUNT, type, MPI_SUM, MPI_COMM_WORLD);
    ALL_WAYS(Reduce_scatter_block, reduce_scatter_block, expect_same, ", MPI_SUM", in, out, COUNT, type, MPI_SUM,
             MPI_COMM_WORLD);
}

static void neighbours(int differs)
{
    MPI_Datatype type = choose(differs);
    MPI_Request request;

    ALL_WAYS(Neighbor_allgather, neighbor_allgather, expect_edges, "", in, COUNT, type, out, COUNT, type, ring);
    ALL_WAYS(Neighbor_allgatherv, neighbor_allgatherv, expect_edges, "", in, COUNT, type, out, counts, displs, type,
             ring);
    ALL_WAYS(Neighbor_alltoall, neighbor_alltoall, expect_edges, "", in, COUNT, type, out, COUNT, type, ring);
    ALL_WAYS(Neighbor_alltoallv, neighbor_alltoallv, expect_edges, "", in, counts, displs, type, out, counts, displs,
             type, ring);
    ALL_WAYS(Neighbor_alltoallw, neighbor_alltoallw, expect_edges, "", in, counts, places, types, out, counts, places,
             types, ring);
}

static void multiply(void *a, void *b, int *length, MPI_Datatype *type)
{
    (void)a, (void)b, (void)length, (void)type;
}

/* Other calls, other operations, other counts: of the same length, so that they go on all the same */
static void arguments(void)
{
    static double doubles[RANKS * COUNT];
    int two[] = {4, 4, 4}, other[] = {2, 4, 6};
    MPI_Op op;

    MPI_Bcast((rank == 2) ? (void *)doubles : in, (rank == 2) ? 2 : 4, (rank == 2) ? MPI_DOUBLE : MPI_INT, 0,
              MPI_COMM_WORLD);
    MPI_Allreduce(in, out, COUNT, MPI_INT, (rank == 2) ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
    MPI_Op_create(multiply, 1, &op);
    MPI_Allreduce(in, out, COUNT, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    MPI_Reduce_scatter(in, out, two, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter(in, out, other, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(in, 4, MPI_INT, out, (rank == 0) ? 4 : 77, (rank == 0) ? MPI_FLOAT : MPI_DATATYPE_NULL, 0,
               MPI_COMM_WORLD);
    if (rank == 0) {
        puts("rank 0 calls MPI_Bcast of 4 x MPI_INT, root 0, rank 2 calls MPI_Bcast of 2 x MPI_DOUBLE, root 0");
        puts("rank 0 calls MPI_Allreduce of 4 x MPI_INT, MPI_SUM, rank 2 calls MPI_Allreduce of 4 x MPI_INT, MPI_MAX");
        puts("rank 0 calls MPI_Gather of 4 x MPI_INT (and of 4 x MPI_FLOAT on the other side), root 0, rank 1 calls "
             "MPI_Gather of 4 x MPI_INT, root 0");
    }
}

/* All of this is right, though not all ranks say the same words */
static void lenient(void)
{
    int zeros[RANKS] = {0, 0, 0}, i, length = RANKS;
    MPI_Datatype vector, packed = (rank == 0) ? MPI_PACKED : MPI_INT;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Comm copy;

    MPI_Type_vector(2, 2, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Bcast(in, rank ? 4 : 1, rank ? MPI_INT : vector, 0, MPI_COMM_WORLD);
    MPI_Type_free(&vector);
    MPI_Bcast(in, 0, rank ? MPI_INT : MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Bcast(in, rank ? 4 : 16, packed, 0, MPI_COMM_WORLD);
    MPI_Alltoallv(in, zeros, displs, MPI_INT, out, zeros, displs, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(rank ? out : MPI_IN_PLACE, out, COUNT, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Gather((rank == 2) ? MPI_IN_PLACE : in, 4, (rank == 2) ? MPI_DATATYPE_NULL : MPI_INT, out, 4, MPI_INT, 2,
               MPI_COMM_WORLD);
    MPI_Gatherv((rank == 2) ? MPI_IN_PLACE : in, 4, MPI_INT, out, counts, displs, MPI_INT, 2, MPI_COMM_WORLD);
    MPI_Scatter(out, 4, MPI_INT, (rank == 2) ? MPI_IN_PLACE : in, 4, (rank == 2) ? MPI_DATATYPE_NULL : MPI_INT, 2,
                MPI_COMM_WORLD);
    MPI_Scatterv(out, counts, displs, MPI_INT, (rank == 2) ? MPI_IN_PLACE : in, 4, MPI_INT, 2, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 4, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 4, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
    MPI_Bcast(in, 4, MPI_INT, 0, MPI_COMM_SELF);
    MPI_Allgather(in, 4, MPI_INT, out, 4, MPI_INT, MPI_COMM_SELF);

    /* the first on a communicator does not block, and nobody waits for it before others need what they get from this rank */
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (rank == 0) {
        MPI_Ibarrier(copy, &requests[0]);
        for (i = 1; i < length; ++i) {
            MPI_Send(in, 1, MPI_INT, i, 5, copy);
        }
    } else {
        MPI_Recv(in, 1, MPI_INT, 0, 5, copy, MPI_STATUS_IGNORE);
        MPI_Ibarrier(copy, &requests[0]);
    }
    MPI_Ibcast(in, 4, MPI_INT, 1, copy, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Comm_free(&copy);
}

/* Freed while others are still busy with it: it goes for good when what is under way on it has ended, within whatever call that is */
static void freed_early(void)
{
    MPI_Request requests[2];
    MPI_Comm copy;
    int i;

    for (i = 0; i < 20; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Ibarrier(copy, &requests[0]);
        MPI_Ibcast(in, 4, MPI_INT, 1, copy, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (i % RANKS == rank) {
            usleep(2000);
        }
        MPI_Comm_free(&copy);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Freed while others have it to compare still, and are in a call that waits for all ranks: it is not waited for (40 times 2 s once) */
static void freed_unwaited(void)
{
    double begin = MPI_Wtime();
    MPI_Request request;
    MPI_Comm copy;
    int i;

    for (i = 0; i < 40; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Ibcast(in, 4, MPI_INT, 0, copy, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&copy);
        if (MPI_Wtime() - begin > 30) {
            printf("rank %d is at communicator %d after 30 s\n", rank, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static long most_memory(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* A communicator that never has one that blocks: what is kept of its calls does not grow */
static void __attribute__((unused)) never_blocks(void)
{
    MPI_Request request;
    MPI_Comm copy;
    long before = 0;
    int i;

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (i = 0; i < 5000; ++i) {
        if (i == 1000) {
            before = most_memory();
        }
        MPI_Ibarrier(copy, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (most_memory() > before + 512) {
        printf("rank %d has grown by %ld KiB\n", rank, most_memory() - before);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_free(&copy);
}

/* Two groups: rank 0 in one, all others in the other */
static void groups(int differs)
{
    int root = (rank == 0) ? MPI_ROOT : 0, everybody[] = {COUNT, COUNT, COUNT};
    MPI_Datatype type = choose(differs);
    MPI_Comm half, inter;

    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, (rank == 0) ? 1 : 0, 9, &inter);
    MPI_Comm_set_name(inter, "two groups");
    MPI_Barrier(inter);
    MPI_Bcast(in, COUNT, type, root, inter);
    MPI_Bcast(in, COUNT, MPI_INT, (rank == 0) ? 1 : (rank == 2) ? MPI_ROOT : MPI_PROC_NULL, inter);
    MPI_Allreduce(in, out, COUNT, type, MPI_SUM, inter);
    MPI_Gather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, root, inter);
    MPI_Scatter(in, COUNT, MPI_INT, out, COUNT, MPI_INT, root, inter);
    MPI_Reduce(in, out, COUNT, MPI_INT, MPI_SUM, root, inter);
    MPI_Allgather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, inter);
    MPI_Allgatherv(in, COUNT, MPI_INT, out, everybody, displs, MPI_INT, inter);
    MPI_Alltoall(in, COUNT, MPI_INT, out, COUNT, MPI_INT, inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Until whoever runs the test has written it */
static void await_file(const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", getenv("CHECK_FOLDER"), name);
    while (access(path, F_OK) != 0) {
        usleep(20000);
    }
}

/* What can't go on, or not yet */
static void stop(const char *what)
{
    MPI_Op op;

    if (strcmp(what, "operation") == 0) {
        MPI_Op_create(multiply, 1, &op);
        MPI_Allreduce(in, out, COUNT, MPI_INT, (rank == 2) ? op : MPI_SUM, MPI_COMM_WORLD);
        MPI_Op_free(&op);
    } else if (strcmp(what, "root") == 0) {
        MPI_Bcast(in, COUNT, MPI_INT, rank == 1, MPI_COMM_WORLD);
    } else if ((strcmp(what, "call") == 0) && (rank == 1)) {
        MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if ((strcmp(what, "finalize") != 0) || (rank != 1)) {
        if ((strcmp(what, "missing") == 0) && (rank == 1)) {
            await_file("come");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void all_that_can(void)
{
    int size = RANKS, is_periodic = 1, differs;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_periodic, 0, &ring);
    for (differs = 0; differs < 2; ++differs) {
        rooted(differs);
        to_all(differs);
        reductions(differs);
        neighbours(differs);
    }
    arguments();
    lenient();
    freed_early();
    freed_unwaited();
#ifdef OPEN_MPI
    never_blocks(); /* with MPICH nothing waits for one, and three ranks on two cores take long */
#endif
    groups(0);
    MPI_Comm_free(&ring);
}

static int send_at_end(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    MPI_Send(in, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
    return MPI_SUCCESS;
}

/* Libraries clean up in a callback of an attribute of MPI_COMM_SELF, which MPI_Finalize does first: rank 1 waits for that before it ends */
static void end_by_attribute(void)
{
    int key;

    if (rank == 0) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, send_at_end, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    } else if (rank == 1) {
        MPI_Recv(in, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int threads;

    setvbuf(stdout, NULL, _IOLBF, 0); /* lines of ranks are not to be mixed */
    MPI_Init_thread(&argc, &argv, (argc > 2) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((argc > 1) && (strcmp(argv[1], "all") != 0)) {
        stop(argv[1]);
    } else {
        all_that_can();
        end_by_attribute();
    }
    if (rank == 1) {
        puts("PASS collectives");
    }
    MPI_Finalize();
    return 0;
}
