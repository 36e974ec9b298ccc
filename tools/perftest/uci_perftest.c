/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Point-to-point benchmark of pairs of ranks: the job that uci_perftest (uci_perftest.py) starts with and without UCI.
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
 * Rank N of the first half sends to rank N of the second: MB/s and messages/s are those of all pairs together, by the slowest
 * one's time.
 *
 * TEST alone has hot buffers, as the OSU benchmarks do: one of each kind, also for a whole window, never written, never read,
 * so that both lie in the caches. TEST/fresh has those of a program: each is written before it is sent, and read when it has
 * been received, within the timing; the windowed tests have as many as messages are under way, 64 MiB at most.
 *
 * Contents are checked after each measurement, outside the timing.
 */
#include <mpi.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WINDOW = 64, TAG = 1, TAG_ACK = 2, ALIGNMENT = 4096, FRESH_ROOM = 64 << 20 };

#define TURN_VARIABLE "PERFTEST_TURN"

typedef struct bench {
    int rank, peer;
    size_t size;       /* bytes of the message */
    size_t extent;     /* bytes of each buffer */
    MPI_Datatype type; /* `count` of it are the message */
    int count;
    const struct bench_test *test;
    int is_fresh;             /* buffers are written before they are sent, and read when they have come */
    int window;               /* messages under way at once in one direction */
    int buffers;              /* of each kind */
    unsigned char *memory[2]; /* what is sent, what is received */
    size_t stride;            /* from one buffer to the next */
    size_t sent, posted, received;
} bench_t;

enum { SEND, RECV };

static unsigned char *buffer_at(const bench_t *bench, int kind, size_t number)
{
    return bench->memory[kind] + bench->stride * (number % bench->buffers);
}

/* Words, so that it takes little more than the stores; no two keys have a word in common at the same place */
static void write_pattern(unsigned char *buffer, size_t size, uint64_t key)
{
    uint64_t word = key * 0x9e3779b97f4a7c15u;
    size_t i;

    for (i = 0; i + sizeof(word) <= size; i += sizeof(word), word += 0x0101010101010103u) {
        memcpy(buffer + i, &word, sizeof(word));
    }
    memcpy(buffer + i, &word, size - i);
}

static void read_all(const unsigned char *buffer, size_t size)
{
    static volatile uint64_t seen; /* the compiler must not leave it out */
    uint64_t word = 0, all = 0;
    size_t i;

    for (i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
        memcpy(&word, buffer + i, sizeof(word));
        all |= word;
    }
    memcpy(&word, buffer + i, size - i);
    seen = all | word;
    (void)seen;
}

/* What message NUMBER of a rank is written with: of hot buffers all are alike */
static uint64_t key_of(const bench_t *bench, int rank, size_t number)
{
    return (uint64_t)rank << 32 | (bench->is_fresh ? (uint32_t)number : 0);
}

static unsigned char *next_to_send(bench_t *bench)
{
    unsigned char *buffer = buffer_at(bench, SEND, bench->sent);

    if (bench->is_fresh) {
        write_pattern(buffer, bench->extent, key_of(bench, bench->rank, bench->sent));
    }
    ++bench->sent;
    return buffer;
}

static unsigned char *next_to_receive(bench_t *bench)
{
    return buffer_at(bench, RECV, bench->posted++);
}

/* The next COUNT messages have come */
static void take_received(bench_t *bench, int count)
{
    for (; count > 0; --count, ++bench->received) {
        if (bench->is_fresh) {
            read_all(buffer_at(bench, RECV, bench->received), bench->extent);
        }
    }
}

static void send_one(bench_t *bench)
{
    MPI_Send(next_to_send(bench), bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD);
}

static void receive_one(bench_t *bench)
{
    MPI_Recv(next_to_receive(bench), bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    take_received(bench, 1);
}

static int is_first(const bench_t *bench)
{
    return bench->rank < bench->peer;
}

static void ping_pong(bench_t *bench, long iterations)
{
    long i;

    for (i = 0; i < iterations; ++i) {
        if (is_first(bench)) {
            send_one(bench);
            receive_one(bench);
        } else {
            receive_one(bench);
            send_one(bench);
        }
    }
}

static void send_window(bench_t *bench, MPI_Request *requests)
{
    int i;

    for (i = 0; i < bench->window; ++i) {
        MPI_Isend(next_to_send(bench), bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD, &requests[i]);
    }
}

static void recv_window(bench_t *bench, MPI_Request *requests)
{
    int i;

    for (i = 0; i < bench->window; ++i) {
        MPI_Irecv(next_to_receive(bench), bench->count, bench->type, bench->peer, TAG, MPI_COMM_WORLD, &requests[i]);
    }
}

/* The receiver has them all */
static void acknowledge(bench_t *bench)
{
    int ack = 0;

    if (is_first(bench)) {
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
        if (is_first(bench)) {
            send_window(bench, requests);
            MPI_Waitall(bench->window, requests, MPI_STATUSES_IGNORE);
        } else {
            recv_window(bench, requests);
            MPI_Waitall(bench->window, requests, MPI_STATUSES_IGNORE);
            take_received(bench, bench->window);
        }
        acknowledge(bench);
    }
}

/* What a program does that does not think of overlap */
static void stream_blocking(bench_t *bench, long iterations)
{
    long i;
    int n;

    for (i = 0; i < iterations; ++i) {
        for (n = 0; n < bench->window; ++n) {
            if (is_first(bench)) {
                send_one(bench);
            } else {
                receive_one(bench);
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
        send_window(bench, requests + bench->window);
        MPI_Waitall(2 * bench->window, requests, MPI_STATUSES_IGNORE);
        take_received(bench, bench->window);
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
        recv_window(bench, &requests[0]);
        send_window(bench, &requests[1]);
        if (seconds > 0) {
            compute(seconds);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        take_received(bench, 1);
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
        copy(bench->memory[RECV], bench->memory[SEND], bench->size);
    }
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
    int both;   /* do both sides receive the payload? */
    int window; /* messages in one direction of an iteration */
    int apart;  /* buffers in a window that is fresh: one, or one for each message */
    void (*run)(bench_t *bench, long iterations);
    double factor;                    /* of the value: a ping-pong has two messages, both ways twice the bytes */
    void (*describe)(bench_t *bench); /* the message of so many bytes */
} bench_test_t;

static const bench_test_t tests[] = {
        {"lat", "us", 1, 1, 0, ping_pong, 0.5, describe_bytes},
        {"bw", "MB/s", 0, WINDOW, 1, stream_one_way, 1, describe_bytes},
        {"bibw", "MB/s", 1, WINDOW, 1, stream_both_ways, 2, describe_bytes},
        {"rate", "msg/s", 0, WINDOW, 1, stream_one_way, 1, describe_bytes},
        {"send", "MB/s", 0, WINDOW, 0, stream_blocking, 1, describe_bytes},
        {"vec", "us", 1, 1, 0, ping_pong, 0.5, describe_vector},
        {"struct", "us", 1, 1, 0, ping_pong, 0.5, describe_struct},
        {"blocks", "us", 1, 1, 0, ping_pong, 0.5, describe_blocks},
        {"xchg", "us", 1, 1, 0, exchange_alone, 1, describe_bytes},
        {"olap", "us", 1, 1, 0, exchange_and_compute, 1, describe_bytes},
        {"copy", "us", 0, 1, 0, copy_alone, 1, describe_bytes},
};

static void fail(const char *message, const char *detail)
{
    fprintf(stderr, "uci_perftest: %s%s\n", message, detail);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* "bw" or "bw/fresh" */
static const bench_test_t *find_test(const char *name, int *is_fresh_p)
{
    size_t i, length = strcspn(name, "/");

    *is_fresh_p = !strcmp(name + length, "/fresh");
    for (i = 0; (*is_fresh_p || (name[length] == '\0')) && (i < sizeof(tests) / sizeof(tests[0])); ++i) {
        if ((strlen(tests[i].name) == length) && !strncmp(tests[i].name, name, length)) {
            return &tests[i];
        }
    }
    fail("no such test: ", name);
    return NULL;
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
    int kind;

    if ((bench->test != NULL) && (bench->type != MPI_BYTE)) {
        MPI_Type_free(&bench->type);
    }
    for (kind = SEND; kind <= RECV; ++kind) {
        free(bench->memory[kind]);
        bench->memory[kind] = NULL;
    }
    bench->test = NULL;
}

static void count_buffers(bench_t *bench)
{
    int room = FRESH_ROOM / (bench->extent + 1);

    bench->window = bench->test->window;
    if (!bench->is_fresh || !bench->test->apart) {
        bench->buffers = 1;
        return;
    }
    bench->buffers = (room < 2) ? 2 : room;
    if (bench->buffers > bench->window) {
        bench->buffers = bench->window;
    }
    bench->window = bench->buffers;
}

/* Buffers stay for the next measurement of the same kind, as an application's would. */
static void prepare(bench_t *bench, const bench_test_t *test, int is_fresh, size_t size)
{
    int kind;

    bench->sent = bench->posted = bench->received = 0;
    if ((bench->test != NULL) && (bench->test->describe == test->describe) && (bench->test->window == test->window) &&
        (bench->test->apart == test->apart) && (bench->is_fresh == is_fresh) && (bench->size == size)) {
        bench->test = test;
        return;
    }
    forget(bench);
    bench->test     = test;
    bench->is_fresh = is_fresh;
    bench->size     = size;
    test->describe(bench);
    if (bench->type != MPI_BYTE) {
        MPI_Type_commit(&bench->type);
    }
    count_buffers(bench);
    bench->stride = (bench->extent + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (kind = SEND; kind <= RECV; ++kind) {
        bench->memory[kind] = allocate(bench->stride * bench->buffers);
    }
    write_pattern(bench->memory[SEND], bench->extent, key_of(bench, bench->rank, 0));
}

/* All bytes of the last message in BUFFER are the peer's, and no other byte has been touched: unpack over what should be there */
static void check_buffer(const bench_t *bench, size_t message)
{
    unsigned char *expected = allocate(bench->extent), *packed, *sent = allocate(bench->extent);
    int place = 0, room;

    write_pattern(sent, bench->extent, key_of(bench, bench->peer, message));
    MPI_Pack_size(bench->count, bench->type, MPI_COMM_WORLD, &room);
    packed = allocate(room);
    MPI_Pack(sent, bench->count, bench->type, packed, room, &place, MPI_COMM_WORLD);
    room  = place;
    place = 0;
    MPI_Unpack(packed, room, &place, expected, bench->count, bench->type, MPI_COMM_WORLD);
    if (memcmp(expected, buffer_at(bench, RECV, message), bench->extent) != 0) {
        fail("wrong data received", "");
    }
    free(sent);
    free(packed);
    free(expected);
}

static void check(const bench_t *bench)
{
    size_t i;

    for (i = 1; (i <= bench->received) && (i <= (size_t)bench->buffers); ++i) {
        check_buffer(bench, bench->received - i);
    }
}

/* The value counts on rank 0 only. */
static double measure(bench_t *bench, const char *name, size_t size, long iterations)
{
    int is_fresh, ranks;
    const bench_test_t *test = find_test(name, &is_fresh);
    double begin, mine, slowest, messages;

    prepare(bench, test, is_fresh, size);
    test->run(bench, iterations / 10 + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    test->run(bench, iterations);
    mine = MPI_Wtime() - begin;
    if ((!is_first(bench) || test->both) && (test->run != copy_alone)) {
        check(bench);
    }
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (bench->rank != 0) {
        return 0;
    }
    messages = (double)iterations * bench->window;
    slowest  = (ranks == 2) ? mine : slowest;
    if (!strcmp(test->unit, "us")) {
        return test->factor * slowest * 1e6 / messages;
    }
    return test->factor * messages / slowest * ranks / 2 * (strcmp(test->unit, "MB/s") ? 1 : size / 1e6);
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
    char name[32];
    size_t size;
    long iterations;
    double value;

    dprintf(fd, "%d\n", bench->rank);
    while (fscanf(turn, "%31s %zu %ld", name, &size, &iterations) == 3) {
        value = measure(bench, name, size, iterations);
        if (bench->rank == 0) {
            dprintf(fd, "%.9g\n", value);
        }
    }
    fclose(turn);
}

static void run_arguments(bench_t *bench, int argc, char **argv)
{
    double value;
    int i, is_fresh;

    for (i = 1; i + 2 < argc; i += 3) {
        value = measure(bench, argv[i], strtoul(argv[i + 1], NULL, 0), strtol(argv[i + 2], NULL, 0));
        if (bench->rank == 0) {
            printf("%-5s %10s bytes %14.3f %s\n", argv[i], argv[i + 1], value, find_test(argv[i], &is_fresh)->unit);
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
    if (ranks % 2 != 0) {
        fail("needs 2 ranks, or other pairs", "");
    }
    bench.peer = (bench.rank + ranks / 2) % ranks;
    if (turn != NULL) {
        take_turns(&bench, turn);
    } else {
        run_arguments(&bench, argc, argv);
    }
    forget(&bench);
    MPI_Finalize();
    return 0;
}
