/* SPDX-License-Identifier: BSD-3-Clause
 *
 * usage: mpirun -n 3 cases NAME
 *
 * A program that breaks one rule of MPI's, by name, or none: run_calls.py knows what has to be told of each. Those that hang wait for being ended.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT = 2000, STEPS = 10 };

static int rank, size, other;
static double out[COUNT], in[COUNT];
static MPI_Request requests[4];

/* Ranks 0 and 1 are a pair, for most of these; the others go on to MPI_Finalize */
static int is_of_the_pair(void)
{
    other = !rank;
    return rank < 2;
}

static void irecv(double *to, int count, int tag, MPI_Request *request)
{
    MPI_Irecv(to, count, MPI_DOUBLE, other, tag, MPI_COMM_WORLD, request);
}

static void isend(const double *from, int count, int tag, MPI_Request *request)
{
    MPI_Isend(from, count, MPI_DOUBLE, other, tag, MPI_COMM_WORLD, request);
}

static void wait_for(int count)
{
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* -------------------------------------------------------------- overlap */

static void overlap_receives(void)
{
    irecv(in, 600, 1, &requests[0]);
    irecv(in + 500, 500, 2, &requests[1]);
    isend(out, 600, 1, &requests[2]);
    isend(out, 500, 2, &requests[3]);
    wait_for(4);
}

static void overlap_send(void)
{
    irecv(in, 600, 1, &requests[0]);
    isend(in + 599, 600, 1, &requests[1]);
    wait_for(2);
}

static void overlap_blocking(void)
{
    irecv(in, 600, 1, &requests[0]);
    isend(out, 600, 1, &requests[1]);
    isend(out, 600, 2, &requests[2]);
    MPI_Recv(in, 600, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wait_for(3);
}

static void overlap_sendrecv(void)
{
    MPI_Sendrecv(in, 600, MPI_DOUBLE, other, 1, in + 100, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void overlap_persistent(void)
{
    MPI_Recv_init(in, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Start(&requests[0]);
    isend(in, 600, 1, &requests[1]);
    wait_for(2);
    MPI_Request_free(&requests[0]);
}

/* Columns that lie in each other have 9 numbers in common, of what both reach over */
static void overlap_columns(void)
{
    MPI_Datatype column;

    MPI_Type_vector(10, 1, 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Irecv(in + 1, 1, column, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 3, 1, column, other, 2, MPI_COMM_WORLD, &requests[1]);
    isend(out, 10, 1, &requests[2]);
    isend(out, 10, 2, &requests[3]);
    wait_for(4);
    MPI_Type_free(&column);
}

/* A type that has an address of its own */
static MPI_Datatype absolute_type(double *numbers, int count)
{
    MPI_Datatype absolute;
    MPI_Aint place;

    MPI_Get_address(numbers, &place);
    MPI_Type_create_hindexed(1, &count, &place, MPI_DOUBLE, &absolute);
    MPI_Type_commit(&absolute);
    return absolute;
}

static void overlap_bottom(void)
{
    MPI_Datatype absolute = absolute_type(in + 599, 600);

    irecv(in, 600, 1, &requests[0]);
    MPI_Isend(MPI_BOTTOM, 1, absolute, other, 1, MPI_COMM_WORLD, &requests[1]);
    wait_for(2);
    MPI_Type_free(&absolute);
}

static void overlap_collectives(void)
{
    MPI_Ibcast(in, 10, MPI_DOUBLE, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(out, in + 5, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    wait_for(2);
}

/* What comes from each rank is put where there is a gap of one between it and the next; a send from the gaps and from beside them */
static void overlap_parts(void)
{
    const int counts[] = {3, 3, 3}, displs[] = {8, 0, 4};

    MPI_Iallgatherv(out, 3, MPI_DOUBLE, in, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(in + 3, 2, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv(out + 100, 2, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wait_for(2);
}

/* Collectives side by side, in place, and around what is sent from between their parts; columns of a matrix, which are as wide as one number */
static void no_overlap_of_collectives(void)
{
    const int counts[] = {3, 3, 3}, displs[] = {8, 0, 4};
    MPI_Datatype tall, column;

    MPI_Type_vector(10, 1, 30, MPI_DOUBLE, &tall);
    MPI_Type_create_resized(tall, 0, sizeof(double), &column);
    MPI_Type_commit(&column);
    MPI_Iallgatherv(out, 3, MPI_DOUBLE, in, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 3, 1, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out, 1, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &requests[2]);
    wait_for(3);
    MPI_Iallreduce(MPI_IN_PLACE, in, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ialltoall(out, 2, MPI_DOUBLE, in + 10, 2, MPI_DOUBLE, MPI_COMM_WORLD, &requests[1]);
    MPI_Igather(out, 5, MPI_DOUBLE, in + 20, 5, MPI_DOUBLE, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Iscatter(out, 5, MPI_DOUBLE, in + 40, 5, MPI_DOUBLE, 1, MPI_COMM_WORLD, &requests[3]);
    wait_for(4);
    MPI_Ireduce_scatter_block(out, in, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ireduce(out, in + 2, 2, MPI_DOUBLE, MPI_SUM, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibcast(in + 10, 20, MPI_DOUBLE, 0, MPI_COMM_WORLD, &requests[2]);
    wait_for(3);
    MPI_Iallgather(out, 3, column, in, 3, column, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 9, 21, column, rank, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out, 210, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &requests[2]);
    wait_for(3);
    MPI_Type_free(&column);
    MPI_Type_free(&tall);
}

/* In a line of ranks the first has nobody before it, and the last nobody behind it: one of two parts is not touched there */
static void talk_to_neighbours(double *into)
{
    const int periods = 0, counts[] = {3, 3}, displs[] = {4, 0};
    const MPI_Aint places[]   = {32, 0};
    const MPI_Datatype type[] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Comm line;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 0, &line);
    MPI_Irecv(into, 2, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Ineighbor_alltoallw(out, counts, places, type, in, counts, places, type, line, &requests[1]);
    MPI_Ineighbor_allgatherv(out, 3, MPI_DOUBLE, in + 100, counts, displs, MPI_DOUBLE, line, &requests[2]);
    MPI_Isend(out, 2, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &requests[3]);
    wait_for(4);
    MPI_Comm_free(&line);
}

static void overlap_neighbours(void)
{
    talk_to_neighbours((rank == 0) ? in : in + 4);
}

static void no_overlap_of_neighbours(void)
{
    talk_to_neighbours((rank == 0) ? in + 4 : (rank == 1) ? in + 7 : in);
}

/* Of two groups, of which one is rank 0, each gets what the other one has */
static void talk_to_group(double *into)
{
    MPI_Comm group, both;

    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, (rank == 0) ? 1 : 0, 5, &both);
    MPI_Irecv(into, 1, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallgather(out, 3, MPI_DOUBLE, in, 3, MPI_DOUBLE, both, &requests[1]);
    MPI_Ibcast(in + 20, 5, MPI_DOUBLE, (rank == 0) ? MPI_ROOT : 0, both, &requests[2]);
    MPI_Isend((rank == 0) ? in + 20 : out, 1, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &requests[3]);
    wait_for(4);
    MPI_Comm_free(&both);
    MPI_Comm_free(&group);
}

static void overlap_groups(void)
{
    talk_to_group((rank == 0) ? in + 5 : in + 2);
}

static void no_overlap_of_groups(void)
{
    talk_to_group((rank == 0) ? in + 6 : in + 3);
}

/* So many bytes, behind which memory may not be read */
static void *at_the_edge(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages       = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    mprotect(pages + page, page, PROT_NONE);
    return pages + page - bytes;
}

/* Ranks 0 and 1 are one group, rank 2 is the other one: arrays are as long as the other group is large */
static void groups_of_two_and_one(void)
{
    const int partners = (rank < 2) ? 1 : 2;
    int *counts = at_the_edge(partners * sizeof(int)), *displs = at_the_edge(partners * sizeof(int)), i;
    MPI_Datatype *types = at_the_edge(partners * sizeof(MPI_Datatype));
    MPI_Comm group, both;

    for (i = 0; i < partners; ++i) {
        counts[i] = 5;
        displs[i] = 0;
        types[i]  = MPI_DOUBLE;
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, 0, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, (rank < 2) ? 2 : 0, 5, &both);
    MPI_Alltoallw(out, counts, displs, types, in, counts, displs, types, both);
    for (i = 0; i < partners; ++i) {
        displs[i] = 5 * i;
    }
    MPI_Alltoallv(out, counts, displs, MPI_DOUBLE, in, counts, displs, MPI_DOUBLE, both);
    MPI_Scatter(out, 10, MPI_DOUBLE, in, 10, MPI_DOUBLE, (rank < 2) ? 0 : MPI_ROOT, both);
    MPI_Comm_free(&both);
    MPI_Comm_free(&group);
}

/* Sends from one buffer, receives side by side, columns between each other, and what is over: none of these overlaps */
static void no_overlap(void)
{
    MPI_Datatype column;
    int i;

    MPI_Type_vector(10, 1, 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (i = 0; i < STEPS; ++i) {
        MPI_Irecv(in, 1, column, other, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in + 1, 1, column, other, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out, 1, column, other, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(out, 1, column, other, 2, MPI_COMM_WORLD, &requests[3]);
        wait_for(4);
        irecv(in, 600, 1, &requests[0]);
        irecv(in + 600, 600, 2, &requests[1]);
        isend(out, 600, 1, &requests[2]);
        isend(out, 600, 2, &requests[3]);
        wait_for(4);
        irecv(in, 600, 3, &requests[0]);
        isend(out, 600, 3, &requests[1]);
        wait_for(2);
        MPI_Sendrecv_replace(in, 600, MPI_DOUBLE, other, 4, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&column);
}

/* -------------------------------------------------------------- changed */

static void changed(void)
{
    irecv(in, 600, 1, &requests[0]);
    isend(out, 600, 1, &requests[1]);
    out[599] += 1;
    wait_for(2);
}

static void changed_vector(void)
{
    MPI_Datatype column;

    MPI_Type_vector(10, 1, 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    irecv(in, 10, 1, &requests[0]);
    MPI_Isend(out, 1, column, other, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&column);
    out[18] += 1;
    wait_for(2);
}

static void changed_bottom(void)
{
    MPI_Datatype absolute = absolute_type(out, 600);

    irecv(in, 600, 1, &requests[0]);
    MPI_Isend(MPI_BOTTOM, 1, absolute, other, 1, MPI_COMM_WORLD, &requests[1]);
    out[599] += 1;
    wait_for(2);
    MPI_Type_free(&absolute);
}

static void changed_persistent(void)
{
    int i;

    MPI_Send_init(out, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[0]);
    for (i = 0; i < STEPS; ++i) {
        irecv(in, 600, 1, &requests[1]);
        MPI_Start(&requests[0]);
        out[0] += (i == 5);
        wait_for(2);
        out[0] += 1; /* it may, now */
    }
    MPI_Request_free(&requests[0]);
}

/* What lies between the elements is not sent; and what is complete may be changed */
static void not_changed(void)
{
    MPI_Datatype column;
    int index, done = 0;

    MPI_Type_vector(10, 1, 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    irecv(in, 10, 1, &requests[0]);
    MPI_Isend(out, 1, column, other, 1, MPI_COMM_WORLD, &requests[1]);
    out[17] += 1;
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    out[18] += 1;
    irecv(in, 10, 1, &requests[0]);
    MPI_Isend(out, 1, column, other, 1, MPI_COMM_WORLD, &requests[1]);
    while (!done) {
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    }
    out[18] += 1;
    MPI_Type_free(&column);
}

/* Of several small sends, which MPI may give one handle */
static void several_small(double change, double *into)
{
    irecv(in, 10, 1, &requests[0]);
    irecv(in + 10, 10, 2, &requests[1]);
    isend(out, 10, 1, &requests[2]);
    isend(out + 10, 10, 2, &requests[3]);
    out[0] += change;
    if (into != NULL) {
        MPI_Sendrecv(out + 20, 1, MPI_DOUBLE, other, 3, into, 1, MPI_DOUBLE, other, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    wait_for(4);
}

static void changed_first(void)
{
    several_small(1, NULL);
}

static void overlap_first(void)
{
    several_small(0, out);
}

/* Each is complete when its wait is over, by whichever copy of its request */
static void not_changed_small(void)
{
    MPI_Request copies[2];
    int i;

    for (i = 0; i < STEPS; ++i) {
        irecv(in, 10, 1, &requests[0]);
        irecv(in + 10, 10, 2, &requests[1]);
        isend(out, 10, 1, &copies[0]);
        isend(out + 10, 10, 2, &copies[1]);
        requests[2] = copies[i % 2];
        requests[3] = copies[1 - (i % 2)];
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
        out[(i % 2) ? 10 : 0] += 1;
        MPI_Sendrecv(out + 20, 1, MPI_DOUBLE, other, 3, out + ((i % 2) ? 10 : 0), 1, MPI_DOUBLE, other, 3,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
        out[0] += 1;
        out[10] += 1;
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

/* Complete is what MPI_Request_get_status says is, too, though the request stays */
static void not_changed_status(void)
{
    int done = 0;

    irecv(in, 600, 1, &requests[0]);
    isend(out, 600, 1, &requests[1]);
    while (!done) {
        MPI_Request_get_status(requests[1], &done, MPI_STATUS_IGNORE);
    }
    out[0] += 1;
    wait_for(2);
}

/* Entries that lie in each other: as many bytes as the type reaches over, and a gap */
static void not_changed_gap(void)
{
    static const int lengths[] = {1, 1, 1}, places[] = {0, 0, 2};
    static char bytes[300000], there[sizeof(bytes)];
    MPI_Datatype type;

    MPI_Type_indexed(3, lengths, places, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    MPI_Irecv(there, sizeof(there), MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(bytes, sizeof(bytes) / 3, type, other, 1, MPI_COMM_WORLD, &requests[1]);
    bytes[1] = 1;
    wait_for(2);
    MPI_Type_free(&type);
}

/* What stands for a message from nobody brings nothing */
static void no_overlap_of_nobody(void)
{
    MPI_Message message;
    MPI_Request request;

    irecv(in, 600, 1, &requests[0]);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 600, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, 600, MPI_DOUBLE, &message, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    isend(out, 600, 1, &requests[1]);
    wait_for(2);
}

/* ---------------------------------------------------------------- types */

static int refuse_copy(MPI_Datatype type, int keyval, void *extra, void *in_value, void *out_value, int *flag)
{
    return MPI_ERR_OTHER;
}

/* MPI copies no type to send it */
static void not_copied(void)
{
    MPI_Datatype column;
    int keyval;

    MPI_Type_create_keyval(refuse_copy, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL);
    MPI_Type_vector(100, 1, 10, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Type_set_attr(column, keyval, NULL);
    MPI_Irecv(in, 100, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1, column, other, 1, MPI_COMM_WORLD, &requests[1]);
    wait_for(2);
    MPI_Type_free(&column);
    MPI_Type_free_keyval(&keyval);
}

static void *free_while_in_use(void *arg)
{
    static __thread double there[2 * COUNT], here[2 * COUNT];
    MPI_Request both[2];
    MPI_Datatype column;
    int i, tag = (int)(size_t)arg;

    for (i = 0; i < 1500; ++i) {
        MPI_Type_vector(1 + (i % 20), 1, 2, MPI_DOUBLE, &column);
        MPI_Type_commit(&column);
        MPI_Irecv(there, i % 60, column, other, tag, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(here, i % 60, column, other, tag, MPI_COMM_WORLD, &both[1]);
        MPI_Type_free(&column);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

/* Then MPI lets go of them when that is over: MPICH amid its progress, and other threads come in while it calls what deletes attributes */
static void freed_while_in_use(void)
{
    pthread_t threads[4];
    size_t i;

    for (i = 0; i < 4; ++i) {
        pthread_create(&threads[i], NULL, free_while_in_use, (void *)i);
    }
    for (i = 0; i < 4; ++i) {
        pthread_join(threads[i], NULL);
    }
}

static void *exchange_with_nobody(void *arg)
{
    MPI_Sendrecv(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return arg;
}

/* The first call of a thread */
static void nobody_in_a_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, exchange_with_nobody, NULL);
    pthread_join(thread, NULL);
}

/* ----------------------------------------------------- requests, errors */

static void unfinished(void)
{
    irecv(in, 600, 1, &requests[0]);
    MPI_Send(out, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD);
}

/* A send whose request is freed goes its way; one that is never started, and a receive that is cancelled, are nothing to wait for */
static void finished(void)
{
    MPI_Send_init(out, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Request_free(&requests[0]);
    isend(out, 10, 1, &requests[0]);
    MPI_Request_free(&requests[0]);
    MPI_Recv(in, 10, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    irecv(in, 600, 2, &requests[0]);
    MPI_Cancel(&requests[0]);
    wait_for(1);
}

static void truncated(void)
{
    if (rank == 1) {
        MPI_Send(out, 500, MPI_DOUBLE, other, 1, MPI_COMM_WORLD);
        MPI_Send(out, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 500, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(in, 500, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* The program goes on */
static void truncated_returns(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) {
        MPI_Send(out, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 500, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* The default, set by the program itself */
static void truncated_as_by_default(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    truncated();
}

static void truncated_from_one(void)
{
    if (rank == 1) {
        MPI_Send(out, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 500, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* By requests that are started */
static void truncated_persistent(void)
{
    if (rank == 1) {
        MPI_Send_init(out, 600, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[0]);
    } else {
        MPI_Recv_init(in, 500, MPI_DOUBLE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Recv(in, 500, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Start(&requests[0]);
    wait_for(1);
    MPI_Request_free(&requests[0]);
}

static void no_such_rank(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Send(out, 1, MPI_DOUBLE, size, 1, MPI_COMM_WORLD);
}

static void negative_count(void)
{
    MPI_Datatype type = absolute_type(out, 10);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Send(MPI_BOTTOM, -1, type, other, 1, MPI_COMM_WORLD);
    MPI_Type_free(&type);
}

static void overlap_shifted(void)
{
    MPI_Datatype type = absolute_type(in, 10);

    irecv(in + 59, 60, 1, &requests[0]);
    MPI_Isend(MPI_BOTTOM, 6, type, other, 1, MPI_COMM_WORLD, &requests[1]);
    wait_for(2);
    MPI_Type_free(&type);
}

static void no_communicator(void)
{
    MPI_Barrier(MPI_COMM_NULL);
}

static void no_communicator_returns(void)
{
    static const int count = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Alltoallv(out, &count, &count, MPI_DOUBLE, in, &count, &count, MPI_DOUBLE, MPI_COMM_NULL);
}

/* ---------------------------------------------------------------- hangs */

static void both_receive(void)
{
    MPI_Recv(in, 10, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, 10, MPI_DOUBLE, other, 7, MPI_COMM_WORLD);
}

static void ring(void)
{
    MPI_Ssend(out, 10, MPI_DOUBLE, (rank + 1) % size, 7, MPI_COMM_WORLD);
    MPI_Recv(in, 10, MPI_DOUBLE, (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void both_wait(void)
{
    irecv(in, 10, 7, &requests[0]);
    irecv(in + 10, 10, 8, &requests[1]);
    wait_for(2);
}

static void other_tag(void)
{
    if (rank == 0) {
        MPI_Ssend(out, 10, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 10, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void polls(void)
{
    int done = 0;

    irecv(in, 10, 7, &requests[0]);
    while (!done) {
        MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    }
}

/* The first two requests in turn, from one place */
static void test_each(int count, int between_us)
{
    int done[2] = {0, 0}, i;

    for (i = 0; !done[0] && !done[1]; i = (i + 1) % count) {
        MPI_Test(&requests[i], &done[i], MPI_STATUS_IGNORE);
        if (between_us > 0) {
            usleep(between_us);
        }
    }
}

static void sleep_on(void)
{
    while (1) {
        sleep(1);
    }
}

static void receive_from_both(void)
{
    MPI_Irecv(in, 10, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 10, 10, MPI_DOUBLE, 2, 8, MPI_COMM_WORLD, &requests[1]);
}

static void receive_from_first(void)
{
    MPI_Recv(in, 10, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 has something to do as soon as rank 2 has computed, and rank 1 waits for that: no deadlock */
static void polls_in_turn(void)
{
    if (rank == 0) {
        receive_from_both();
        test_each(2, 0);
    } else if (rank == 1) {
        receive_from_first();
    } else {
        sleep_on();
    }
}

/* The same by MPI_Iprobe, beside a request */
static void polls_and_probes(void)
{
    int done = 0, is_there = 0;

    if (rank == 1) {
        receive_from_first();
    } else if (rank == 2) {
        sleep_on();
    }
    receive_from_both();
    while (!done && !is_there) {
        MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
        MPI_Iprobe(2, 9, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 computes, and lets MPI get on meanwhile; then it will send */
static void computes_and_tests(void)
{
    if (rank == 0) {
        receive_from_both();
        test_each(1, 1000);
    } else {
        receive_from_first();
    }
}

/* Nobody will ever send: from two places, in turn */
static void polls_in_vain(void)
{
    int done[2] = {0, 0};

    if (rank != 0) {
        receive_from_first();
    }
    receive_from_both();
    while (!done[0] && !done[1]) {
        MPI_Test(&requests[0], &done[0], MPI_STATUS_IGNORE);
        MPI_Test(&requests[1], &done[1], MPI_STATUS_IGNORE);
    }
}

static void probes_in_vain(void)
{
    int is_there = 0;

    while (!is_there) {
        MPI_Iprobe(other, 9, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    }
}

/* Of what rank 0 waits for, that of rank 1 is there: who waits for rank 0 then is in no deadlock, since rank 2 computes */
static void waits_for_one_of_both(void)
{
    if (rank == 0) {
        receive_from_both();
        wait_for(2);
    } else if (rank == 1) {
        MPI_Send(out, 10, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
        receive_from_first();
    } else {
        sleep_on();
    }
}

static void *receive_in_thread(void *arg)
{
    MPI_Recv(in, 10, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return arg;
}

/* Another thread of rank 0 will send what rank 1 waits for */
static void another_thread(void)
{
    pthread_t thread;

    if (rank == 1) {
        receive_in_thread(NULL);
    }
    MPI_Barrier(MPI_COMM_SELF);
    pthread_create(&thread, NULL, receive_in_thread, NULL);
    sleep_on();
}

static void *call_in_thread(void *arg)
{
    MPI_Barrier(MPI_COMM_SELF);
    if (arg != NULL) {
        sleep_on();
    }
    return arg;
}

/* The first ones are gone, the last one will send what both wait for */
static void a_thread_of_many(void)
{
    pthread_t thread;
    int i;

    call_in_thread(NULL);
    for (i = 0; i < 70; ++i) {
        pthread_create(&thread, NULL, call_in_thread, NULL);
        pthread_join(thread, NULL);
    }
    pthread_create(&thread, NULL, call_in_thread, &thread);
    receive_in_thread(NULL);
}

/* The one that called MPI before is gone */
static void a_thread_has_ended(void)
{
    pthread_t thread;

    MPI_Isend(out, 10, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &requests[0]);
    pthread_create(&thread, NULL, receive_in_thread, NULL);
    pthread_join(thread, NULL);
    MPI_Recv(in, 10, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Nothing was there, and each computes, before it sends */
static void tests_once(void)
{
    int done = 0;

    irecv(in, 10, 7, &requests[0]);
    MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    while (!done) {
        sleep(1);
    }
}

static void probes(void)
{
    MPI_Probe(other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void computes(void)
{
    while (rank == 2) {
        sleep(1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void crosswise(void)
{
    MPI_Comm first, second;

    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_Comm_set_name(first, "first");
    MPI_Comm_set_name(second, "second");
    MPI_Barrier(first);
    MPI_Barrier(second);
    MPI_Barrier((rank == 0) ? first : second);
    MPI_Barrier((rank == 0) ? second : first);
}

/* A handle is used again and again, and one rank does not come in time */
static void dups(void)
{
    MPI_Comm comm;
    int i;

    for (i = 0; i < STEPS; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        while ((rank == 2) && (i == STEPS - 1)) {
            sleep(1);
        }
        MPI_Barrier(comm);
        MPI_Comm_free(&comm);
    }
}

/* Rank 0 has made one more: what all have then has another handle there */
static void leader(void)
{
    MPI_Comm of_leaders, comm;

    MPI_Comm_split(MPI_COMM_WORLD, (rank == 0) ? 0 : MPI_UNDEFINED, 0, &of_leaders);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "all");
    while (rank == 2) {
        sleep(1);
    }
    MPI_Barrier(comm);
}

static void any_of(void)
{
    if (rank == 0) {
        MPI_Recv(in, 10, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* -------------------------------------------------------------- profile */

static void counted(void)
{
    static char large[1 << 20];
    const int periods = 0;
    MPI_Comm line;
    int i;

    for (i = 0; i < STEPS; ++i) {
        MPI_Sendrecv(out, 125, MPI_DOUBLE, (rank + 1) % size, 1, in, 125, MPI_DOUBLE, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (i = 0; i < 5; ++i) {
        MPI_Bcast(in, 100, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    }
    MPI_Alltoall(out, 10, MPI_DOUBLE, in, 10, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 0, &line);
    MPI_Neighbor_alltoall(out, 10, MPI_DOUBLE, in, 10, MPI_DOUBLE, line);
    MPI_Comm_free(&line);
    if (rank == 0) {
        MPI_Send(large, sizeof(large), MPI_CHAR, 1, 2, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(large, sizeof(large), MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        usleep(300000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each kind of send by requests that are started again and again, in a circle; and to nobody */
static void started(void)
{
    static char room[STEPS * 4096];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request sends[5], receives[4];
    int i, step;

    MPI_Buffer_attach(room, sizeof(room));
    MPI_Send_init(out, 125, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, &sends[0]);
    MPI_Ssend_init(out, 125, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &sends[1]);
    MPI_Bsend_init(out, 125, MPI_DOUBLE, next, 2, MPI_COMM_WORLD, &sends[2]);
    MPI_Rsend_init(out, 125, MPI_DOUBLE, next, 3, MPI_COMM_WORLD, &sends[3]);
    MPI_Send_init(out, 125, MPI_DOUBLE, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &sends[4]);
    for (i = 0; i < 4; ++i) {
        MPI_Recv_init(in + (125 * i), 125, MPI_DOUBLE, before, i, MPI_COMM_WORLD, &receives[i]);
    }
    for (step = 0; step < STEPS; ++step) {
        MPI_Startall(4, receives);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Startall(2, sends);
        for (i = 2; i < 5; ++i) {
            MPI_Start(&sends[i]);
        }
        MPI_Waitall(5, sends, MPI_STATUSES_IGNORE);
        MPI_Waitall(4, receives, MPI_STATUSES_IGNORE);
    }
    for (i = 0; i < 4; ++i) {
        MPI_Request_free(&sends[i]);
        MPI_Request_free(&receives[i]);
    }
    MPI_Request_free(&sends[4]);
    MPI_Send(out, 125, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Buffer_detach(&(char *){NULL}, &i);
}

/* Collectives likewise, where there are such */
static void started_collectives(void)
{
#if MPI_VERSION >= 4
    int i;

    MPI_Allreduce_init(out, in, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (i = 0; i < STEPS; ++i) {
        MPI_Startall(2, requests);
        wait_for(2);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
#endif
}

/* Collectives whose data lie where they are to be */
static void in_place(void)
{
    const int ones[] = {2, 2, 2}, counts[] = {3, 5, 7}, displs[] = {0, 3, 8}, bytes[] = {0, 16, 32};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_DOUBLE, MPI_DOUBLE};
    const int is_root          = (rank == 1);
    const void *from           = is_root ? MPI_IN_PLACE : in;
    void *to                   = is_root ? MPI_IN_PLACE : in;

    MPI_Gather(from, 4, MPI_DOUBLE, in, 4, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Gatherv(from, counts[rank], MPI_DOUBLE, in, counts, displs, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Scatter(in, 4, MPI_DOUBLE, to, 4, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Scatterv(in, counts, displs, MPI_DOUBLE, to, counts[rank], MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 4, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD, &requests[0]);
    wait_for(1);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, ones, displs, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, in, ones, bytes, types, MPI_COMM_WORLD);
    MPI_Reduce(is_root ? MPI_IN_PLACE : out, in, 10, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, in, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter(MPI_IN_PLACE, in, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, in, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(MPI_IN_PLACE, in, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(MPI_IN_PLACE, in, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static volatile int branch;

/* Calls from as many places as NUMBERs up to 4^DEPTH */
static void call_from(int depth, int number)
{
    if (depth == 0) {
        MPI_Barrier(MPI_COMM_SELF);
        return;
    }
    switch (number % 4) {
    case 0:
        call_from(depth - 1, number / 4);
        branch = 0;
        break;
    case 1:
        call_from(depth - 1, number / 4);
        branch = 1;
        break;
    case 2:
        call_from(depth - 1, number / 4);
        branch = 2;
        break;
    default:
        call_from(depth - 1, number / 4);
        branch = 3;
        break;
    }
}

static void call_from_places(int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        call_from(6, i);
    }
}

/* As many as are told apart, nearly, and then something wrong */
static void many_places(void)
{
    call_from_places(2000);
    overlap_send();
}

static void too_many_places(void)
{
    call_from_places(3000);
}

/* Both send before they receive: an MPI that has room for what is small lets them */
static void head_to_head(void)
{
    MPI_Send(out, 1, MPI_DOUBLE, other, 7, MPI_COMM_WORLD);
    MPI_Recv(in, 1, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void add(void *with, void *to, int *count, MPI_Datatype *type)
{
}

/* Of six communicators, three groups, two types and two operations so many stay */
static void make(int comms, int groups, int types, int ops)
{
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Op op;
    int i;

    for (i = 0; i < 6; ++i) {
        MPI_Comm_split(MPI_COMM_WORLD, (rank == 2) ? MPI_UNDEFINED : 1, 0, &comm);
        if ((comm != MPI_COMM_NULL) && (i >= comms)) {
            MPI_Comm_free(&comm);
        }
    }
    for (i = 0; i < 3; ++i) {
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        if (i >= groups) {
            MPI_Group_free(&group);
        }
    }
    for (i = 0; i < 2; ++i) {
        MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        if (i >= types) {
            MPI_Type_free(&type);
        }
        MPI_Op_create(add, 1, &op);
        if (i >= ops) {
            MPI_Op_free(&op);
        }
    }
}

static void kept(void)
{
    make(5, 2, 1, 1);
}

static void freed(void)
{
    MPI_Comm comm;
    MPI_Group group, none;

    make(0, 0, 0, 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_group(comm, &group);
    MPI_Group_difference(group, group, &none); /* MPI_GROUP_EMPTY */
    MPI_Group_free(&group);
    MPI_Comm_disconnect(&comm);
}

static MPI_Comm cleaned;

/* As libraries clean up, within MPI_Finalize */
static int clean_up(MPI_Comm comm, int keyval, void *value, void *extra)
{
    wait_for(1);
    return MPI_Comm_free(&cleaned);
}

static void cleaned_up(void)
{
    int keyval;

    MPI_Comm_dup(MPI_COMM_SELF, &cleaned);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, clean_up, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    MPI_Irecv(in, 10, MPI_DOUBLE, 0, 1, cleaned, &requests[0]);
    MPI_Send(out, 10, MPI_DOUBLE, 0, 1, cleaned);
}

static const struct {
    const char *name;
    void (*run)(void);
    int of_a_pair;
} cases[] = {{"overlap_receives", overlap_receives, 1},
             {"overlap_send", overlap_send, 1},
             {"overlap_blocking", overlap_blocking, 1},
             {"overlap_sendrecv", overlap_sendrecv, 1},
             {"overlap_persistent", overlap_persistent, 1},
             {"overlap_columns", overlap_columns, 1},
             {"overlap_bottom", overlap_bottom, 1},
             {"overlap_collectives", overlap_collectives, 0},
             {"overlap_parts", overlap_parts, 0},
             {"overlap_neighbours", overlap_neighbours, 0},
             {"overlap_groups", overlap_groups, 0},
             {"no_overlap", no_overlap, 1},
             {"no_overlap_of_neighbours", no_overlap_of_neighbours, 0},
             {"no_overlap_of_groups", no_overlap_of_groups, 0},
             {"groups_of_two_and_one", groups_of_two_and_one, 0},
             {"many_places", many_places, 1},
             {"too_many_places", too_many_places, 1},
             {"head_to_head", head_to_head, 1},
             {"no_overlap_of_collectives", no_overlap_of_collectives, 0},
             {"changed", changed, 1},
             {"changed_vector", changed_vector, 1},
             {"changed_first", changed_first, 1},
             {"overlap_first", overlap_first, 1},
             {"not_changed_small", not_changed_small, 1},
             {"changed_bottom", changed_bottom, 1},
             {"changed_persistent", changed_persistent, 1},
             {"not_changed", not_changed, 1},
             {"not_changed_status", not_changed_status, 1},
             {"not_changed_gap", not_changed_gap, 1},
             {"no_overlap_of_nobody", no_overlap_of_nobody, 1},
             {"not_copied", not_copied, 1},
             {"freed_while_in_use", freed_while_in_use, 1},
             {"nobody_in_a_thread", nobody_in_a_thread, 0},
             {"unfinished", unfinished, 1},
             {"finished", finished, 1},
             {"truncated", truncated, 1},
             {"truncated_returns", truncated_returns, 1},
             {"truncated_as_by_default", truncated_as_by_default, 1},
             {"truncated_from_one", truncated_from_one, 1},
             {"truncated_persistent", truncated_persistent, 1},
             {"no_such_rank", no_such_rank, 1},
             {"negative_count", negative_count, 1},
             {"overlap_shifted", overlap_shifted, 1},
             {"no_communicator", no_communicator, 1},
             {"no_communicator_returns", no_communicator_returns, 1},
             {"both_receive", both_receive, 1},
             {"ring", ring, 0},
             {"both_wait", both_wait, 1},
             {"other_tag", other_tag, 1},
             {"polls", polls, 1},
             {"polls_in_turn", polls_in_turn, 0},
             {"polls_and_probes", polls_and_probes, 0},
             {"computes_and_tests", computes_and_tests, 0},
             {"polls_in_vain", polls_in_vain, 0},
             {"probes_in_vain", probes_in_vain, 1},
             {"waits_for_one_of_both", waits_for_one_of_both, 0},
             {"another_thread", another_thread, 1},
             {"a_thread_of_many", a_thread_of_many, 1},
             {"a_thread_has_ended", a_thread_has_ended, 1},
             {"tests_once", tests_once, 1},
             {"probes", probes, 1},
             {"computes", computes, 0},
             {"crosswise", crosswise, 0},
             {"dups", dups, 0},
             {"leader", leader, 0},
             {"any_of", any_of, 1},
             {"kept", kept, 0},
             {"freed", freed, 0},
             {"cleaned_up", cleaned_up, 0},
             {"counted", counted, 0},
             {"started", started, 0},
             {"started_collectives", started_collectives, 0},
             {"in_place", in_place, 0}};

int main(int argc, char **argv)
{
    unsigned i;
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        if ((argc > 1) && (strcmp(cases[i].name, argv[1]) == 0) && (!cases[i].of_a_pair || is_of_the_pair())) {
            cases[i].run();
        }
    }
    MPI_Finalize();
    return 0;
}
