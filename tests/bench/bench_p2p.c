/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Point-to-point benchmark of two ranks, made to be interleaved with another copy of itself.
 *
 *     bench_p2p TEST SIZE ITERATIONS [TEST SIZE ITERATIONS]...
 *
 * runs each measurement and prints it. With BENCH_TURN=PATH, every rank instead sleeps reading the FIFO PATH.<rank>,
 * runs the measurement of each line "TEST SIZE ITERATIONS" and rank 0 answers its value on PATH.reply; the end of the
 * FIFO is the end of the program. Two such jobs can thus take turns of milliseconds on the same cores.
 *
 *     lat    ping-pong of blocking sends        microseconds one way
 *     bw     windows of nonblocking sends       MB/s
 *     bibw   the same in both directions        MB/s, both together
 *     rate   the same as bw                     messages/s
 *
 * The windowed tests use one buffer for the whole window, as the OSU benchmarks do. Contents are checked after each
 * measurement, outside the timing.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, TAG = 1, TAG_ACK = 2, ALIGNMENT = 4096 };

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
    int replies; /* does rank 0 receive the payload, too? */
    void (*run)(bench_t *bench, long iterations);
    double (*value)(size_t size, long iterations, double seconds);
} bench_test_t;

static const bench_test_t tests[] = {
        {"lat", "us", 1, ping_pong, one_way_microseconds},
        {"bw", "MB/s", 0, stream_one_way, megabytes_per_second},
        {"bibw", "MB/s", 1, stream_both_ways, megabytes_per_second_twice},
        {"rate", "msg/s", 0, stream_one_way, messages_per_second},
};

static void fail(const char *message, const char *detail)
{
    fprintf(stderr, "bench_p2p: %s%s\n", message, detail);
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
    if ((bench->rank == 1) || test->replies) {
        check(bench);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return test->value(size, iterations, end - begin);
}

static FILE *open_turn(const char *path, const char *suffix, const char *mode)
{
    char name[4096];
    FILE *stream;

    snprintf(name, sizeof(name), "%s.%s", path, suffix);
    stream = fopen(name, mode);
    if (stream == NULL) {
        fail("cannot open ", name);
    }
    return stream;
}

static void take_turns(bench_t *bench, const char *path)
{
    FILE *turn  = open_turn(path, (bench->rank == 0) ? "0" : "1", "r");
    FILE *reply = (bench->rank == 0) ? open_turn(path, "reply", "w") : NULL;
    char name[16];
    size_t size;
    long iterations;
    double value;

    while (fscanf(turn, "%15s %zu %ld", name, &size, &iterations) == 3) {
        value = measure(bench, find_test(name), size, iterations);
        if (reply != NULL) {
            fprintf(reply, "%.9g\n", value);
            fflush(reply);
        }
    }
    fclose(turn);
    if (reply != NULL) {
        fclose(reply);
    }
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
    const char *turn = getenv("BENCH_TURN");
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
