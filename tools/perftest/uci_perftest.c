/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Point-to-point benchmark of two ranks: the job that uci_perftest (uci_perftest.py) starts with and without UCI.
 *
 *     uci_perftest.<mpi> TEST SIZE ITERATIONS [TEST SIZE ITERATIONS]...
 *
 * runs each measurement and prints it. With PERFTEST_TURN=ADDRESS:PORT, every rank instead connects there, says its
 * number, sleeps until it is told "TEST SIZE ITERATIONS", and rank 0 answers with the value; the end of the connection
 * is the end of the program. Several such jobs can thus take turns of milliseconds on the same cores.
 *
 *     lat    ping-pong of blocking sends        microseconds one way
 *     bw     windows of nonblocking sends       MB/s
 *     bibw   the same in both directions        MB/s, both together
 *     rate   the same as bw                     messages/s
 *     send   as many blocking sends             MB/s
 *     vec    ping-pong of a vector: every second double of an array
 *     struct ping-pong of an array of structs with gaps, 20 bytes of 24
 *     blocks ping-pong of 8 blocks in any order
 *     xchg   both ranks send to each other           microseconds
 *     olap   the same, with a computation meanwhile  microseconds, of which it takes 0.5 and 1/8 ns a byte
 *     copy   memcpy of the send buffer          microseconds; no message
 *
 * The windowed tests use one buffer for the whole window, as the OSU benchmarks do. Contents are checked after each
 * measurement, outside the timing.
 */
#include <mpi.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WINDOW = 64, TAG = 1, TAG_ACK = 2, ALIGNMENT = 4096 };

#define TURN_VARIABLE "PERFTEST_TURN"

typedef struct bench {
    int rank, peer;
    size_t size;       /* bytes of the message */
    size_t extent;     /* bytes of each buffer */
    MPI_Datatype type; /* `count` of it are the message */
    int count;
    const struct bench_test *test;
    unsigned char *send, *recv;
} bench_t;

static void ping_pong(bench_t *bench, long iterations)
{
    long i;

    for (i = 0; i < iterations; ++i) {
        if (bench->rank == 0) {
            MPI_Send(bench->send, bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD);
            MPI_Recv(bench->recv, bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(bench->recv, bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(bench->send, bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD);
        }
    }
}

static void send_window(bench_t *bench, MPI_Request *requests)
{
    int i;

    for (i = 0; i < WINDOW; ++i) {
        MPI_Isend(bench->send, bench->size, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD, &requests[i]);
    }
}

static void recv_window(bench_t *bench, MPI_Request *requests)
{
    int i;

    for (i = 0; i < WINDOW; ++i) {
        MPI_Irecv(bench->recv, bench->size, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD, &requests[i]);
    }
}

/* The receiver has them all */
static void acknowledge(bench_t *bench)
{
    int ack = 0;

    if (bench->rank == 0) {
        MPI_Recv(&ack, 1, MPI_INT, bench->peer, TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&ack, 1, MPI_INT, bench->peer, TAG_ACK, MPI_COMM_WORLD);
    }
}

static void stream_one_way(bench_t *bench, long iterations)
{
    MPI_Request requests[WINDOW];
    long i;

    for (i = 0; i < iterations; ++i) {
        if (bench->rank == 0) {
            send_window(bench, requests);
        } else {
            recv_window(bench, requests);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        acknowledge(bench);
    }
}

/* What a program does that does not think of overlap */
static void stream_blocking(bench_t *bench, long iterations)
{
    long i;
    int n;

    for (i = 0; i < iterations; ++i) {
        for (n = 0; n < WINDOW; ++n) {
            if (bench->rank == 0) {
                MPI_Send(bench->send, bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD);
            } else {
                MPI_Recv(bench->recv, bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
        acknowledge(bench);
    }
}

static void stream_both_ways(bench_t *bench, long iterations)
{
    MPI_Request requests[2 * WINDOW];
    long i;

    for (i = 0; i < iterations; ++i) {
        recv_window(bench, requests);
        send_window(bench, requests + WINDOW);
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    }
}

/* A computation that takes so long: it neither calls MPI nor moves memory */
static void compute(double seconds)
{
    double begin = MPI_Wtime();

    while (MPI_Wtime() - begin < seconds) {
    }
}

static void exchange(bench_t *bench, long iterations, double seconds)
{
    MPI_Request requests[2];
    long i;

    for (i = 0; i < iterations; ++i) {
        MPI_Irecv(bench->recv, bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(bench->send, bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD, &requests[1]);
        if (seconds > 0) {
            compute(seconds);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void exchange_alone(bench_t *bench, long iterations)
{
    exchange(bench, iterations, 0);
}

static void exchange_and_compute(bench_t *bench, long iterations)
{
    exchange(bench, iterations, 500e-9 + 125e-12 * bench->size);
}

/* The library's memcpy, with a length the compiler does not know */
static void copy_alone(bench_t *bench, long iterations)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    long i;

    for (i = 0; i < iterations; ++i) {
        copy(bench->recv, bench->send, bench->size);
    }
}

static double microseconds(size_t size, long iterations, double seconds)
{
    return seconds * 1e6 / iterations;
}

static double one_way_microseconds(size_t size, long iterations, double seconds)
{
    return seconds * 1e6 / (2.0 * iterations);
}

static double megabytes_per_second(size_t size, long iterations, double seconds)
{
    return (double)size * WINDOW * iterations / seconds / 1e6;
}

static double megabytes_per_second_twice(size_t size, long iterations, double seconds)
{
    return 2 * megabytes_per_second(size, iterations, seconds);
}

static double messages_per_second(size_t size, long iterations, double seconds)
{
    return (double)WINDOW * iterations / seconds;
}

static void describe_bytes(bench_t *bench)
{
    bench->type   = MPI_BYTE;
    bench->count  = bench->size;
    bench->extent = bench->size;
}

static void describe_vector(bench_t *bench)
{
    MPI_Type_vector(bench->size / sizeof(double), 1, 2, MPI_DOUBLE, &bench->type);
    bench->count  = 1;
    bench->extent = 2 * bench->size;
}

/* An int, a gap, a double and 8 characters */
static void describe_struct(bench_t *bench)
{
    int lengths[]            = {1, 1, 8};
    MPI_Aint places[]        = {0, 8, 16};
    MPI_Datatype types[]     = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    const size_t packed_size = 20;

    MPI_Type_create_struct(3, lengths, places, types, &bench->type);
    bench->count  = bench->size / packed_size;
    bench->extent = 24 * (bench->count + 1);
}

/* Even blocks first, then odd ones */
static void describe_blocks(bench_t *bench)
{
    int i, lengths[8];
    MPI_Aint places[8];

    for (i = 0; i < 8; ++i) {
        lengths[i] = bench->size / 8;
        places[i]  = (MPI_Aint)((2 * i) % 8 + i / 4) * 2 * lengths[i];
    }
    MPI_Type_create_hindexed(8, lengths, places, MPI_BYTE, &bench->type);
    bench->count  = 1;
    bench->extent = 2 * bench->size;
}

typedef struct bench_test {
    const char *name, *unit;
    int both; /* does rank 0 receive the payload, too? */
    void (*run)(bench_t *bench, long iterations);
    double (*value)(size_t size, long iterations, double seconds);
    void (*describe)(bench_t *bench); /* the message of so many bytes */
} bench_test_t;

static const bench_test_t tests[] = {
        {"lat", "us", 1, ping_pong, one_way_microseconds, describe_bytes},
        {"bw", "MB/s", 0, stream_one_way, megabytes_per_second, describe_bytes},
        {"bibw", "MB/s", 1, stream_both_ways, megabytes_per_second_twice, describe_bytes},
        {"rate", "msg/s", 0, stream_one_way, messages_per_second, describe_bytes},
        {"send", "MB/s", 0, stream_blocking, megabytes_per_second, describe_bytes},
        {"vec", "us", 1, ping_pong, one_way_microseconds, describe_vector},
        {"struct", "us", 1, ping_pong, one_way_microseconds, describe_struct},
        {"blocks", "us", 1, ping_pong, one_way_microseconds, describe_blocks},
        {"xchg", "us", 1, exchange_alone, microseconds, describe_bytes},
        {"olap", "us", 1, exchange_and_compute, microseconds, describe_bytes},
        {"copy", "us", 0, copy_alone, microseconds, describe_bytes},
};

static void fail(const char *message, const char *detail)
{
    fprintf(stderr, "uci_perftest: %s%s\n", message, detail);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static const bench_test_t *find_test(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(tests) / sizeof(tests[0]); ++i) {
        if (!strcmp(tests[i].name, name)) {
            return &tests[i];
        }
    }
    fail("no such test: ", name);
    return NULL;
}

static unsigned char pattern(int rank, size_t i)
{
    return (unsigned char)(i * 131 + (i >> 8) + rank);
}

static unsigned char *allocate(size_t size)
{
    void *memory = NULL;

    if (posix_memalign(&memory, ALIGNMENT, size + ALIGNMENT)) {
        fail("out of memory", "");
    }
    memset(memory, 0, size + ALIGNMENT);
    return memory;
}

static void forget(bench_t *bench)
{
    if ((bench->test != NULL) && (bench->type != MPI_BYTE)) {
        MPI_Type_free(&bench->type);
    }
    free(bench->send);
    free(bench->recv);
    bench->test = NULL;
    bench->send = NULL;
    bench->recv = NULL;
}

/* Buffers stay for the next measurement of the same kind, as an application's would. */
static void prepare(bench_t *bench, const bench_test_t *test, size_t size)
{
    size_t i;

    if ((bench->test != NULL) && (bench->test->describe == test->describe) && (bench->size == size)) {
        return;
    }
    forget(bench);
    bench->test = test;
    bench->size = size;
    test->describe(bench);
    if (bench->type != MPI_BYTE) {
        MPI_Type_commit(&bench->type);
    }
    bench->send = allocate(bench->extent);
    bench->recv = allocate(bench->extent);
    for (i = 0; i < bench->extent; ++i) {
        bench->send[i] = pattern(bench->rank, i);
    }
}

/* All bytes of the message are the peer's, and no other byte has been touched: unpack over what should be there */
static void check(const bench_t *bench)
{
    unsigned char *expected = allocate(bench->extent), *packed, *sent = allocate(bench->extent);
    int place = 0, room;
    size_t i;

    for (i = 0; i < bench->extent; ++i) {
        sent[i] = pattern(bench->peer, i);
    }
    MPI_Pack_size(bench->count, bench->type, MPI_COMM_WORLD, &room);
    packed = allocate(room);
    MPI_Pack(sent, bench->count, bench->type, packed, room, &place, MPI_COMM_WORLD);
    room  = place;
    place = 0;
    MPI_Unpack(packed, room, &place, expected, bench->count, bench->type, MPI_COMM_WORLD);
    if (memcmp(expected, bench->recv, bench->extent) != 0) {
        fail("wrong data received", "");
    }
    free(sent);
    free(packed);
    free(expected);
}

/* The value counts on rank 0 only. */
static double measure(bench_t *bench, const bench_test_t *test, size_t size, long iterations)
{
    double begin, end;

    prepare(bench, test, size);
    test->run(bench, iterations / 10 + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    test->run(bench, iterations);
    end = MPI_Wtime();
    if (((bench->rank == 1) || test->both) && (test->run != copy_alone)) {
        check(bench);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return test->value(size, iterations, end - begin);
}

/* @a address is HOST:PORT, the host numeric or a name */
static int connect_turn(const char *address)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL, *info;
    char host[256];
    const char *port = strrchr(address, ':');
    int fd           = -1;

    if ((port == NULL) || ((size_t)(port - address) >= sizeof(host))) {
        fail(TURN_VARIABLE " is not HOST:PORT: ", address);
    }
    snprintf(host, sizeof(host), "%.*s", (int)(port - address), address);
    if (getaddrinfo(host, port + 1, &hints, &found) != 0) {
        fail("cannot find the host that gives the turns: ", address);
    }
    for (info = found; (info != NULL) && (fd < 0); info = info->ai_next) {
        fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);
        if ((fd >= 0) && (connect(fd, info->ai_addr, info->ai_addrlen) != 0)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0) {
        fail("cannot connect to who gives the turns, which a firewall may forbid: ", address);
    }
    return fd;
}

static void take_turns(bench_t *bench, const char *address)
{
    int fd     = connect_turn(address);
    FILE *turn = fdopen(fd, "r");
    char name[16];
    size_t size;
    long iterations;
    double value;

    dprintf(fd, "%d\n", bench->rank);
    while (fscanf(turn, "%15s %zu %ld", name, &size, &iterations) == 3) {
        value = measure(bench, find_test(name), size, iterations);
        if (bench->rank == 0) {
            dprintf(fd, "%.9g\n", value);
        }
    }
    fclose(turn);
}

static void run_arguments(bench_t *bench, int argc, char **argv)
{
    const bench_test_t *test;
    double value;
    int i;

    for (i = 1; i + 2 < argc; i += 3) {
        test  = find_test(argv[i]);
        value = measure(bench, test, strtoul(argv[i + 1], NULL, 0), strtol(argv[i + 2], NULL, 0));
        if (bench->rank == 0) {
            printf("%-5s %10s bytes %14.3f %s\n", test->name, argv[i + 1], value, test->unit);
        }
    }
}

int main(int argc, char **argv)
{
    const char *turn = getenv(TURN_VARIABLE);
    bench_t bench    = {0};
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        fail("needs 2 ranks", "");
    }
    bench.peer = 1 - bench.rank;
    if (turn != NULL) {
        take_turns(&bench, turn);
    } else {
        run_arguments(&bench, argc, argv);
    }
    forget(&bench);
    MPI_Finalize();
    return 0;
}
