/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Traffic to be attacked from outside: every message is made of lines that say what they are (pattern.h), and every byte of it is
 * checked on arrival. Unlike the programs of tests/mpi this one goes on after a wrong byte: it counts them. Sizes from 0 to
 * 4 MiB, or what is asked for; blocking, nonblocking, synchronous and buffered sends, both directions at once, derived datatypes, probes; receivers that come
 * late, so that messages lie where the sender has left them. A send buffer is overwritten as soon as MPI gives it back.
 *
 * usage: foreign_traffic SECONDS [SEED [SMALLEST [LARGEST [KIND]]]]    sizes of messages in bytes, up to 64 MiB; one kind of traffic only
 *
 * Its line "traffic: N messages, N bytes, N wrong messages, N wrong bytes" counts both ranks. Exit status 5 if any is wrong.
 *
 * @ranks 2
 */
#define _GNU_SOURCE /* memmem, in pattern.h */
#include "tally.h"

enum { TAG = 77, LARGEST = 4 << 20, IN_ALL = 1 << 20, WINDOW = 12, SCRIBBLES = 4096 };

static struct {
    uint64_t next[2]; /* number of the next message by its sender's rank */
    uint64_t random;  /* the same on both ranks: they agree on what comes next */
    size_t smallest, largest;
    unsigned char *out[WINDOW], *in[WINDOW];
    int partner;
} traffic;

/* ---- contents ---- */

/** Fill buffer @a i with my next message. */
static void *make_message(int i, size_t length)
{
    foreign_fill(traffic.out[i], length, tally.key, foreign_number(check.rank, traffic.next[check.rank]++));
    return traffic.out[i];
}

static void check_message(const void *buffer, size_t length)
{
    tally_check(buffer, length, foreign_number(traffic.partner, traffic.next[traffic.partner]++));
}

/** The same, and does the status say what was sent? */
static void check_received(const void *buffer, size_t length, const MPI_Status *status)
{
    check_status(status, traffic.partner, TAG, length);
    check_message(buffer, length);
}

/** The first bytes are enough to be seen, and large messages are what takes the time. */
static void scribble(void *buffer, size_t length)
{
    check_scribble(buffer, (length < SCRIBBLES) ? length : SCRIBBLES);
    check_scribble((unsigned char *)buffer + length - ((length < SCRIBBLES) ? length : SCRIBBLES),
                   (length < SCRIBBLES) ? length : SCRIBBLES);
}

/* ---- drawing lots, the same on both ranks ---- */

static size_t draw_below(size_t limit)
{
    return foreign_below(&traffic.random, limit);
}

/** Sizes at which something changes, and others; the larger, the rarer. */
static size_t draw_size(void)
{
    static const size_t sizes[] = {0,       24,      64,      68,       69,       512,     1000,   4000,   4096,
                                   4097,    6000,    8192,    8193,     8300,     9000,    12288,  16384,  20000,
                                   32768,   32769,   65536,   100000,   131072,   262144,  262145, 500000, 1048576,
                                   1048579, 2000000, LARGEST, 16 << 20, 20000000, 33333333};
    size_t size;

    do {
        size = (draw_below(4) == 0) ? (size_t)1 << draw_below(23) : sizes[draw_below(CHECK_COUNT_OF(sizes))];
        size -= (draw_below(8) == 0) ? draw_below(size + 1) : 0;
    } while ((size < traffic.smallest) || (size > traffic.largest) || ((size > 300000) && (draw_below(6) != 0)));
    return size;
}

/** So many messages of this size in one go: 1 MiB in all, or so. */
static int draw_count(size_t size)
{
    size_t most = IN_ALL / (size + 1);

    most = (most > WINDOW) ? WINDOW : (most < 1) ? 1 : most;
    return 1 + (int)draw_below(most);
}

/** Receivers come late: more often than not, and up to 6 ms. */
static void come_late(bool receiver)
{
    int late_ms = (draw_below(3) == 0) ? 0 : (int)draw_below(7);

    if (receiver) {
        check_sleep_ms(late_ms);
    }
}

/* ---- kinds of traffic: each moves `count` messages of `size` bytes from rank `sender` to the other one ---- */

typedef void (*traffic_func_t)(int sender, size_t size, int count);

static void receive_each(size_t size, int count)
{
    MPI_Status status;
    int i;

    for (i = 0; i < count; ++i) {
        memset(traffic.in[0], CHECK_POISON_BYTE, (size < SCRIBBLES) ? size : SCRIBBLES);
        MPI_Recv(traffic.in[0], (int)size, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD, &status);
        check_received(traffic.in[0], size, &status);
    }
}

/** Sends that are over before the receiver has come, their buffer overwritten. */
static void blocking(int sender, size_t size, int count)
{
    int i;

    come_late(check.rank != sender);
    if (check.rank != sender) {
        receive_each(size, count);
        return;
    }
    for (i = 0; i < count; ++i) {
        MPI_Send(make_message(0, size), (int)size, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD);
        scribble(traffic.out[0], size);
    }
}

static void synchronous(int sender, size_t size, int count)
{
    int i;

    come_late(check.rank != sender);
    if (check.rank != sender) {
        receive_each(size, count);
        return;
    }
    for (i = 0; i < count; ++i) {
        MPI_Ssend(make_message(0, size), (int)size, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD);
        scribble(traffic.out[0], size);
    }
}

static void buffered(int sender, size_t size, int count)
{
    size_t room = (size_t)count * (size + 64 + MPI_BSEND_OVERHEAD); /* MPICH begins each at an aligned place */
    void *attached;
    int i, detached;

    come_late(check.rank != sender);
    if (check.rank != sender) {
        receive_each(size, count);
        return;
    }
    attached = malloc(room);
    CHECK(attached != NULL, "no memory for %zu bytes", room);
    MPI_Buffer_attach(attached, (int)room);
    for (i = 0; i < count; ++i) {
        MPI_Bsend(make_message(0, size), (int)size, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD);
        scribble(traffic.out[0], size);
    }
    MPI_Buffer_detach(&attached, &detached);
    free(attached);
}

/** A window of nonblocking operations; the receiver posts at once or late. */
/** As fast as it can be: only if it is asked for by its name. */
static void storm(int sender, size_t size, int count)
{
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    int i;

    for (i = 0; i < count; ++i) {
        if (check.rank == sender) {
            MPI_Isend(make_message(i, size), (int)size, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(traffic.in[i], (int)size, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Waitall(count, requests, statuses);
    for (i = 0; i < count; ++i) {
        if (check.rank == sender) {
            scribble(traffic.out[i], size);
        } else {
            check_received(traffic.in[i], size, &statuses[i]);
        }
    }
}

static void window(int sender, size_t size, int count)
{
    come_late(check.rank != sender);
    storm(sender, size, count);
}

/** The sender computes while its sends are pending, the receiver waits in MPI. */
static void busy(int sender, size_t size, int count)
{
    MPI_Request requests[WINDOW];
    int i;

    if (check.rank != sender) {
        receive_each(size, count);
        return;
    }
    for (i = 0; i < count; ++i) {
        MPI_Isend(make_message(i, size), (int)size, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    check_sleep_ms(2);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < count; ++i) {
        scribble(traffic.out[i], size);
    }
}

static void exchange(int sender, size_t size, int count)
{
    MPI_Status status;
    int i;

    come_late(check.rank != sender);
    for (i = 0; i < count; ++i) {
        MPI_Sendrecv(make_message(0, size), (int)size, MPI_BYTE, traffic.partner, TAG, traffic.in[0], (int)size,
                     MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD, &status);
        scribble(traffic.out[0], size);
        check_received(traffic.in[0], size, &status);
    }
}

/** Blocks of 40 bytes, 24 apart: packed they are the message, and the last block may be shorter, so whole blocks only. */
static void derived(int sender, size_t size, int count)
{
    enum { BLOCK = 40, STRIDE = 64 };
    int blocks    = (int)((size < LARGEST / 2 ? size : LARGEST / 2) / BLOCK), position, i;
    size_t packed = (size_t)blocks * BLOCK, spread = (size_t)blocks * STRIDE;
    unsigned char *layout;
    MPI_Datatype type;
    MPI_Status status;
    bool contiguous_end = (draw_below(2) == 0); /* on the receiving side */

    layout = malloc(spread + STRIDE);
    CHECK(layout != NULL, "no memory for %zu bytes", spread);
    MPI_Type_vector(blocks, BLOCK, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    come_late(check.rank != sender);
    for (i = 0; i < count; ++i) {
        position = 0;
        if (check.rank == sender) {
            make_message(0, packed);
            MPI_Unpack(traffic.out[0], (int)packed, &position, layout, 1, type, MPI_COMM_SELF);
            MPI_Send(layout, 1, type, traffic.partner, TAG, MPI_COMM_WORLD);
            scribble(layout, spread);
        } else if (contiguous_end) {
            MPI_Recv(traffic.in[0], (int)packed, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD, &status);
            check_received(traffic.in[0], packed, &status);
        } else {
            MPI_Recv(layout, 1, type, traffic.partner, TAG, MPI_COMM_WORLD, &status);
            MPI_Pack(layout, 1, type, traffic.in[0], LARGEST, &position, MPI_COMM_SELF);
            check_received(traffic.in[0], packed, &status);
        }
    }
    MPI_Type_free(&type);
    free(layout);
}

/** The receiver looks first, and may take its time before it receives. */
static void probed(int sender, size_t size, int count)
{
    MPI_Status status;
    int i;

    if (check.rank == sender) {
        for (i = 0; i < count; ++i) {
            MPI_Send(make_message(0, size), (int)size, MPI_BYTE, traffic.partner, TAG, MPI_COMM_WORLD);
            scribble(traffic.out[0], size);
        }
        come_late(false);
        return;
    }
    MPI_Probe(traffic.partner, TAG, MPI_COMM_WORLD, &status);
    check_status(&status, traffic.partner, TAG, size);
    come_late(true);
    receive_each(size, count);
}

/* ---- the whole ---- */

static void set_up(int argc, char **argv)
{
    size_t length;
    int i;

    check_init(&argc, &argv, "foreign_traffic");
    CHECK(check.size == 2, "needs 2 ranks");
    traffic.partner  = 1 - check.rank;
    traffic.random   = check.seed;
    traffic.smallest = (argc > 3) ? strtoull(argv[3], NULL, 0) : 0;
    traffic.largest  = (argc > 4) ? strtoull(argv[4], NULL, 0) : LARGEST;
    tally_begin();
    CHECK((traffic.smallest <= traffic.largest) && (traffic.largest <= FOREIGN_LENGTH_MAX), "bad sizes");
    for (i = 0; i < WINDOW; ++i) {
        length         = (i > 0) ? IN_ALL : (traffic.largest > LARGEST) ? traffic.largest : LARGEST;
        traffic.out[i] = malloc(length);
        traffic.in[i]  = malloc(length);
        CHECK((traffic.out[i] != NULL) && (traffic.in[i] != NULL), "no memory");
    }
}

static const struct {
    const char *name;
    traffic_func_t func;
} kinds[] = {
        {"blocking", blocking},       {"window", window},     {"buffered", buffered}, {"blocking", blocking},
        {"synchronous", synchronous}, {"exchange", exchange}, {"derived", derived},   {"busy", busy},
        {"probed", probed},           {"storm", storm},
};

/** @return the kind of that name, or a random one for NULL. */
static size_t choose_kind(const char *only)
{
    size_t kind;

    if (only == NULL) {
        return draw_below(CHECK_COUNT_OF(kinds) - 1); /* all but the storm */
    }
    for (kind = 0; kind < CHECK_COUNT_OF(kinds); ++kind) {
        if (strcmp(only, kinds[kind].name) == 0) {
            return kind;
        }
    }
    check_fail("no kind of traffic is called '%s'", only);
}

int main(int argc, char **argv)
{
    int sender = 0, status;
    size_t kind, size;
    double end;

    set_up(argc, argv);
    MPI_Barrier(MPI_COMM_WORLD);
    for (end = MPI_Wtime() + check.scale; tally_time_is_left(end); sender = 1 - sender) {
        kind = choose_kind((argc > 5) ? argv[5] : NULL);
        check_phase(kinds[kind].name);
        size = draw_size();
        kinds[kind].func(sender, size, draw_count(size));
    }
    status = tally_report("foreign_traffic");
    check_finalize();
    return status;
}
