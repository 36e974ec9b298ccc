/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages whose types match, and messages whose types do not: each form of point to point, each constructor. Rank 0 sends, rank 1
 * receives. Rank 1 prints what has to be told: "TAG|CALL|SENT|RECEIVED" of each message that does not match, and "compared N" at the end.
 *
 * @ranks 2
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES 4096

static int rank, tag, compared;
static char buffer[2][BYTES];
static MPI_Datatype struct_type, nested, twice;

/* What rank 1 is to tell, or nothing */
static void expect(const char *call, const char *sent, const char *received)
{
    if ((rank == 1) && (sent != NULL)) {
        printf("%d|%s|%s|%s\n", tag, call, sent, received);
    }
    ++compared;
    ++tag;
}

/* One message, by the plainest calls */
static void plain(int send_count, MPI_Datatype send_type, int recv_count, MPI_Datatype recv_type, const char *sent,
                  const char *received)
{
    if (rank == 0) {
        MPI_Send(buffer[0], send_count, send_type, 1, tag, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buffer[1], recv_count, recv_type, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    expect("MPI_Recv", sent, received);
}

static void basic_types(void)
{
    plain(4, MPI_INT, 4, MPI_INT, NULL, NULL);
    plain(4, MPI_INT, 5, MPI_INT, NULL, NULL); /* shorter: allowed */
    plain(0, MPI_INT, 5, MPI_DOUBLE, NULL, NULL);
    plain(4, MPI_INT, 2, MPI_DOUBLE, "4 x MPI_INT", "2 x MPI_DOUBLE");
    plain(4, MPI_BYTE, 4, MPI_BYTE, NULL, NULL);
    plain(16, MPI_BYTE, 4, MPI_INT, "16 x MPI_BYTE", "4 x MPI_INT"); /* MPI_BYTE matches itself alone */
    plain(4, MPI_INT, 4, MPI_FLOAT, "4 x MPI_INT", "4 x MPI_FLOAT");
    plain(4, MPI_INT, 4, MPI_UNSIGNED, "4 x MPI_INT", "4 x MPI_UNSIGNED");
    plain(16, MPI_PACKED, 4, MPI_INT, NULL, NULL); /* packed matches anything */
    plain(4, MPI_INT, 16, MPI_PACKED, NULL, NULL);
    plain(2, MPI_LONG_LONG, 2, MPI_LONG_LONG_INT, NULL, NULL); /* two names of one type */
    plain(3, MPI_DOUBLE_INT, 3, MPI_DOUBLE_INT, NULL, NULL);
    plain(2, MPI_2INT, 4, MPI_INT, NULL, NULL);
    plain(1, MPI_FLOAT_INT, 1, MPI_2INT, "1 x {MPI_FLOAT, MPI_INT}", "2 x MPI_INT");
    plain(1, MPI_INTEGER, 1, MPI_INT, "1 x MPI_INTEGER", "1 x MPI_INT");
}

/* A derived type of ints is ints, in whatever order and shape they lie */
static void constructor(MPI_Datatype type, int ints)
{
    char text[64], floats[64];

    MPI_Type_commit(&type);
    snprintf(text, sizeof(text), "%d x MPI_INT", ints);
    snprintf(floats, sizeof(floats), "%d x MPI_FLOAT", ints);
    plain(1, type, 1, type, NULL, NULL);
    plain(1, type, ints, MPI_INT, NULL, NULL);
    plain(ints, MPI_INT, 1, type, NULL, NULL);
    plain(ints, MPI_INT, 3, type, NULL, NULL); /* the first part of it */
    plain(1, type, ints, MPI_FLOAT, text, floats);
    plain(ints, MPI_FLOAT, 1, type, floats, text);
    MPI_Type_free(&type);
}

static void constructors(void)
{
    int lengths[] = {1, 2, 3}, places[] = {8, 4, 0}, sizes[] = {4, 6}, part[] = {2, 3}, from[] = {1, 2};
    int distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    int grid[]          = {1, 1};
    MPI_Aint bytes[]    = {32, 16, 0};
    MPI_Datatype ints[] = {MPI_INT, MPI_INT, MPI_INT}, type;

    MPI_Type_contiguous(7, MPI_INT, &type);
    constructor(type, 7);
    MPI_Type_dup(MPI_INT, &type);
    constructor(type, 1);
    MPI_Type_vector(3, 2, 4, MPI_INT, &type);
    constructor(type, 6);
    MPI_Type_create_hvector(3, 2, 20, MPI_INT, &type);
    constructor(type, 6);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
    constructor(type, 6);
    MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &type);
    constructor(type, 6);
    MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &type);
    constructor(type, 6);
    MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &type);
    constructor(type, 6);
    MPI_Type_create_struct(3, lengths, bytes, ints, &type);
    constructor(type, 6);
    MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &type);
    constructor(type, 6);
    MPI_Type_create_darray(1, 0, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type);
    constructor(type, 24);
    MPI_Type_create_resized(MPI_INT, 0, 12, &type);
    constructor(type, 1);
}

/* {2 x MPI_INT, MPI_DOUBLE}, three of these and a char */
static void make_mixed(void)
{
    int lengths[]     = {2, 1};
    MPI_Aint places[] = {0, 8}, behind[] = {0, 48};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE}, types_nested[2] = {0, MPI_CHAR}, vector;
    int lengths_nested[2] = {1, 1};

    MPI_Type_create_struct(2, lengths, places, types, &struct_type);
    MPI_Type_commit(&struct_type);
    MPI_Type_vector(3, 1, 1, struct_type, &vector);
    types_nested[0] = vector;
    MPI_Type_create_struct(2, lengths_nested, behind, types_nested, &nested);
    MPI_Type_commit(&nested);
    MPI_Type_free(&vector);
    MPI_Type_contiguous(2, struct_type, &twice);
    MPI_Type_commit(&twice);
}

static void mixed_types(void)
{
    const char *one = "1 x {2 x MPI_INT, MPI_DOUBLE}";

    plain(3, struct_type, 3, struct_type, NULL, NULL);
    plain(1, struct_type, 3, struct_type, NULL, NULL);
    plain(2, MPI_INT, 1, struct_type, NULL, NULL); /* its first two elements */
    plain(2, struct_type, 1, twice, NULL, NULL);
    plain(1, twice, 3, struct_type, NULL, NULL);
    plain(3, struct_type, 1, nested, NULL, NULL); /* all but its char */
    plain(1, twice, 1, nested, NULL, NULL);
    plain(1, nested, 1, nested, NULL, NULL);
    plain(1, struct_type, 4, MPI_INT, one, "4 x MPI_INT");
    plain(4, MPI_INT, 1, struct_type, "4 x MPI_INT", one);
    plain(2, MPI_DOUBLE, 1, struct_type, "2 x MPI_DOUBLE", one);
    plain(1, nested, 4, struct_type, "1 x {3 x {2 x MPI_INT, MPI_DOUBLE}, MPI_CHAR}", "4 x {2 x MPI_INT, MPI_DOUBLE}");
    plain(6, MPI_INT, 1, nested, "6 x MPI_INT", "1 x {3 x {2 x MPI_INT, MPI_DOUBLE}, MPI_CHAR}");
}

/* A frame, a large frame, and what goes by rendezvous; each with a word, and with more */
static void sizes(void)
{
    const int counts[] = {1, 3, 200, 900, 2000, 70000, 1000000};
    char *large        = calloc(2, 16000000), sent[64], received[64];
    size_t i;

    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        int differs;

        for (differs = 0; differs < 2; ++differs) {
            MPI_Datatype other = differs ? MPI_FLOAT : MPI_INT;

            snprintf(sent, sizeof(sent), "%d x MPI_INT", counts[i]);
            snprintf(received, sizeof(received), "%d x MPI_FLOAT", counts[i]);
            if (rank == 0) {
                MPI_Send(large, counts[i], MPI_INT, 1, tag, MPI_COMM_WORLD);
            } else {
                MPI_Recv(large, counts[i], other, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            expect("MPI_Recv", differs ? sent : NULL, received);
            snprintf(sent, sizeof(sent), "%d x {2 x MPI_INT, MPI_DOUBLE}", counts[i]);
            snprintf(received, sizeof(received), "%d x MPI_DOUBLE", 2 * counts[i]);
            if (rank == 0) {
                MPI_Ssend(large, counts[i], struct_type, 1, tag, MPI_COMM_WORLD);
            } else {
                MPI_Recv(large, differs ? 2 * counts[i] : counts[i], differs ? MPI_DOUBLE : struct_type, 0, tag,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            expect("MPI_Recv", differs ? sent : NULL, received);
        }
    }
    free(large);
}

typedef int (*send_func_t)(const void *buf, int count, MPI_Datatype type, int dest, int t, MPI_Comm comm);
typedef int (*isend_func_t)(const void *buf, int count, MPI_Datatype type, int dest, int t, MPI_Comm comm,
                            MPI_Request *request);

/* The receive is there before the send if @a posted, as ready sends want it; else after it */
static void one_send(send_func_t send, isend_func_t isend, isend_func_t init, MPI_Datatype type, int posted)
{
    MPI_Request request = MPI_REQUEST_NULL;

    if (rank == 1) {
        if (posted) {
            MPI_Irecv(buffer[1], 8, MPI_INT, 0, tag, MPI_COMM_WORLD, &request);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (!posted) {
            MPI_Irecv(buffer[1], 8, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
        }
    } else {
        if (posted) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (send != NULL) {
            send(buffer[0], 4, type, 1, tag, MPI_COMM_WORLD);
        } else if (isend != NULL) {
            isend(buffer[0], 4, type, 1, tag, MPI_COMM_WORLD, &request);
        } else {
            init(buffer[0], 4, type, 1, tag, MPI_COMM_WORLD, &request);
            MPI_Start(&request);
        }
        if (!posted) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    if ((rank == 0) && (init != NULL)) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    } else {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    expect("MPI_Irecv", (type == MPI_INT) ? NULL : "4 x MPI_FLOAT", "8 x MPI_INT");
}

static void send_modes(void)
{
    static const send_func_t sends[]   = {MPI_Send, MPI_Bsend, MPI_Rsend, MPI_Ssend};
    static const isend_func_t isends[] = {MPI_Isend, MPI_Ibsend, MPI_Irsend, MPI_Issend};
    static const isend_func_t inits[]  = {MPI_Send_init, MPI_Bsend_init, MPI_Rsend_init, MPI_Ssend_init};
    static char attached[65536];
    void *detached;
    int i, size, posted;

    MPI_Buffer_attach(attached, sizeof(attached));
    for (i = 0; i < 4; ++i) {
        for (posted = (i >= 2) ? 1 : 0; posted < 2; ++posted) { /* a synchronous send waits, a ready one needs it */
            one_send(sends[i], NULL, NULL, MPI_INT, posted);
            one_send(sends[i], NULL, NULL, MPI_FLOAT, posted);
            one_send(NULL, isends[i], NULL, MPI_INT, posted);
            one_send(NULL, isends[i], NULL, MPI_FLOAT, posted);
            one_send(NULL, NULL, inits[i], MPI_INT, posted);
            one_send(NULL, NULL, inits[i], MPI_FLOAT, posted);
        }
    }
    MPI_Buffer_detach(&detached, &size);
}

static void matched_probe(void)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int i;

    for (i = 0; i < 4; ++i) {
        if (rank == 0) {
            MPI_Send(buffer[0], 4, (i % 2) ? MPI_FLOAT : MPI_INT, 1, tag, MPI_COMM_WORLD);
        } else {
            MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, &status);
            if (i < 2) {
                MPI_Mrecv(buffer[1], 4, MPI_INT, &message, &status);
            } else {
                MPI_Imrecv(buffer[1], 4, MPI_INT, &message, &request);
                MPI_Wait(&request, &status);
            }
        }
        expect((i < 2) ? "MPI_Mrecv" : "MPI_Imrecv", (i % 2) ? "4 x MPI_FLOAT" : NULL, "4 x MPI_INT");
    }
}

/* Rank 0 sends floats for ints the second time; both send and receive, and only rank 1's are counted and told */
static void both_at_once(void)
{
    int other = 1 - rank, i;

    for (i = 0; i < 2; ++i) {
        MPI_Sendrecv(buffer[0], 2, (i && (rank == 0)) ? MPI_FLOAT : MPI_INT, other, tag, buffer[1], 2, MPI_INT, other,
                     tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("MPI_Sendrecv", i ? "2 x MPI_FLOAT" : NULL, "2 x MPI_INT");
        MPI_Sendrecv_replace(buffer[0], 2, (i && (rank == 1)) ? MPI_FLOAT : MPI_INT, other, tag, other, tag,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("MPI_Sendrecv_replace", i ? "2 x MPI_INT" : NULL, "2 x MPI_FLOAT");
    }
}

static void persistent(void)
{
    MPI_Request requests[2];
    int round, i;

    for (i = 0; i < 2; ++i) {
        if (rank == 0) {
            MPI_Send_init(buffer[0], 4, MPI_INT, 1, tag + i, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Datatype type;

            MPI_Type_contiguous(4, i ? MPI_FLOAT : MPI_INT, &type);
            MPI_Type_commit(&type);
            MPI_Recv_init(buffer[i], 1, type, 0, tag + i, MPI_COMM_WORLD, &requests[i]);
            MPI_Type_free(&type); /* the request keeps what it is */
        }
    }
    for (round = 0; round < 3; ++round) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            printf("%d|MPI_Recv_init|4 x MPI_INT|4 x MPI_FLOAT\n", tag + 1);
        }
        compared += 2;
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    tag += 2;
}

/* Nothing is received: what was to be told of these is nobody else's */
static void nobody(void)
{
    MPI_Request request;
    MPI_Comm other;
    int flag;

    MPI_Send(buffer[0], 4, MPI_DOUBLE, MPI_PROC_NULL, tag, MPI_COMM_WORLD);
    MPI_Recv(buffer[1], 4, MPI_DOUBLE, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    plain(4, MPI_INT, 4, MPI_INT, NULL, NULL);
    MPI_Irecv(buffer[1], 4, MPI_DOUBLE, MPI_ANY_SOURCE, tag + 1000, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(buffer[1], 4, struct_type, MPI_ANY_SOURCE, tag + 1000, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    plain(4, MPI_INT, 4, MPI_INT, NULL, NULL);
    MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Allreduce(MPI_IN_PLACE, buffer[0], 16, MPI_INT, MPI_SUM, other);
    MPI_Comm_free(&other);
}

/* A type is freed while it is in use, and its handle is another one's then */
static void freed_types(void)
{
    MPI_Datatype type;
    MPI_Request request;
    int i;

    for (i = 0; i < 20; ++i) {
        MPI_Type_contiguous(i + 1, (i % 2) ? MPI_FLOAT : MPI_INT, &type);
        MPI_Type_commit(&type);
        if (rank == 0) {
            MPI_Isend(buffer[0], 1, type, 1, tag, MPI_COMM_WORLD, &request);
        } else {
            MPI_Irecv(buffer[1], 1, type, 0, tag, MPI_COMM_WORLD, &request);
        }
        MPI_Type_free(&type);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(NULL, NULL, NULL);
        MPI_Type_dup(struct_type, &type);
        if (rank == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Send(buffer[0], 4, MPI_INT, 1, tag, MPI_COMM_WORLD);
        } else {
            MPI_Irecv(buffer[1], 2, type, 0, tag, MPI_COMM_WORLD, &request);
        }
        MPI_Type_free(&type);
        if (rank == 1) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        expect("MPI_Irecv", "4 x MPI_INT", "2 x {2 x MPI_INT, MPI_DOUBLE}");
    }
}

int main(int argc, char **argv)
{
    int threads;

    MPI_Init_thread(&argc, &argv, (argc > 1) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    make_mixed();
    basic_types();
    constructors();
    mixed_types();
    sizes();
    send_modes();
    matched_probe();
    persistent();
    nobody();
    freed_types();
    both_at_once();
    if (rank == 1) {
        printf("compared %d\nPASS cases\n", compared);
    }
    MPI_Type_free(&struct_type);
    MPI_Type_free(&nested);
    MPI_Type_free(&twice);
    MPI_Finalize();
    return 0;
}
