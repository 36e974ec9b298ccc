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
    size_t size;
    unsigned char *send, *recv;
} bench_t;

static void ping_pong(bench_t *bench, long iterations)
{
    long i;

    for (i = 0; i < iterations; ++i) {
        if (bench->rank == 0) {
            MPI_Send(bench->send, bench->size, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD);
            MPI_Recv(bench->recv, bench->size, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(bench->recv, bench->size, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(bench->send, bench->size, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD);
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

static void stream_one_way(bench_t *bench, long iterations)
{
    MPI_Request requests[WINDOW];
    int ack = 0;
    long i;

    for (i = 0; i < iterations; ++i) {
        if (bench->rank == 0) {
            send_window(bench, requests);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            MPI_Recv(&ack, 1, MPI_INT, bench->peer, TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            recv_window(bench, requests);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            MPI_Send(&ack, 1, MPI_INT, bench->peer, TAG_ACK, MPI_COMM_WORLD);
        }
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

typedef struct bench_test {
    const char *name, *unit;
    int both; /* does rank 0 receive the payload, too? */
    void (*run)(bench_t *bench, long iterations);
    double (*value)(size_t size, long iterations, double seconds);
} bench_test_t;

static const bench_test_t tests[] = {
        {"lat", "us", 1, ping_pong, one_way_microseconds},
        {"bw", "MB/s", 0, stream_one_way, megabytes_per_second},
        {"bibw", "MB/s", 1, stream_both_ways, megabytes_per_second_twice},
        {"rate", "msg/s", 0, stream_one_way, messages_per_second},
        {"copy", "us", 0, copy_alone, microseconds},
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

/* Buffers stay for the next measurement of the same size, as an application's would. */
static void prepare(bench_t *bench, size_t size)
{
    size_t i;

    if ((bench->send == NULL) || (bench->size != size)) {
        free(bench->send);
        free(bench->recv);
        bench->size = size;
        bench->send = allocate(size);
        bench->recv = allocate(size);
        for (i = 0; i < size; ++i) {
            bench->send[i] = pattern(bench->rank, i);
        }
    }
}

static void check(const bench_t *bench)
{
    size_t i;

    for (i = 0; i < bench->size; ++i) {
        if (bench->recv[i] != pattern(bench->peer, i)) {
            fail("wrong data received", "");
        }
    }
}

/* The value counts on rank 0 only. */
static double measure(bench_t *bench, const bench_test_t *test, size_t size, long iterations)
{
    double begin, end;

    prepare(bench, size);
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
    free(bench.send);
    free(bench.recv);
    MPI_Finalize();
    return 0;
}
