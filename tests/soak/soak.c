/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Traffic of all kinds for as long as is wanted, in rounds that are alike, so that what one takes can be compared with what an earlier one
 * took: messages of 8 bytes in windows, of all sizes in all modes, probed, persistent, of derived types; collectives; one-sided operations;
 * communicators and windows that come and go; and now and then a port that is connected to. No processes are spawned: of Open MPI's, without
 * UCI, every tenth or so waits for PMIx_Lookup() for ever, and its parent's memory grows with each. Every byte is checked. Rank 0 says every few seconds:
 *
 *     soak: SECONDS s, ROUNDS rounds, MESSAGES messages, MICROSECONDS us a round
 *
 * MESSAGES are those of all ranks, and of a round's time it is the median since the last line. Messages of all sizes have the pattern by which
 * attackers from outside find them (tests/faults/foreign).
 *
 * usage: soak SECONDS [SEED]
 */
#define _GNU_SOURCE /* memmem, in pattern.h */
#include "../mpi/check.h"
#include "../faults/foreign/pattern.h"

enum {
    TAG     = 300,
    WINDOW  = 64,
    WINDOWS = 64, /* of a round */
    MIXED   = 16,
    LARGEST = 1 << 20,
    CELLS   = 2,    /* of a window: what is put, and a counter */
    RARELY  = 20,   /* rounds between communicators and windows that are made */
    PORTS   = 4000, /* and between ports */
    SAY_MS  = 5000, /* between two lines */
    TIMES   = 4096
};

typedef struct ring {
    int to, from;
    unsigned char *out, *in;
    MPI_Win win;
    uint64_t *cells; /* of win */
    MPI_Request persistent[2];
    unsigned char steady[2][1000];
    MPI_Datatype comb; /* every second byte of 2,000 */
} ring_t;

static ring_t ring;
static uint64_t round_number, sent;

static void join_ring(void)
{
    ring.to   = (check.rank + 1) % check.size;
    ring.from = (check.rank + check.size - 1) % check.size;
    ring.out  = malloc(LARGEST);
    ring.in   = malloc(LARGEST);
    CHECK((ring.out != NULL) && (ring.in != NULL), "no memory");
    MPI_Win_allocate(CELLS * sizeof(uint64_t), sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &ring.cells, &ring.win);
    MPI_Send_init(ring.steady[0], sizeof(ring.steady[0]), MPI_BYTE, ring.to, TAG + 1, MPI_COMM_WORLD,
                  &ring.persistent[0]);
    MPI_Recv_init(ring.steady[1], sizeof(ring.steady[1]), MPI_BYTE, ring.from, TAG + 1, MPI_COMM_WORLD,
                  &ring.persistent[1]);
    MPI_Type_vector(1000, 1, 2, MPI_BYTE, &ring.comb);
    MPI_Type_commit(&ring.comb);
}

static void leave_ring(void)
{
    MPI_Type_free(&ring.comb);
    MPI_Request_free(&ring.persistent[0]);
    MPI_Request_free(&ring.persistent[1]);
    MPI_Win_free(&ring.win);
    free(ring.out);
    free(ring.in);
}

/* ------------------------------------------------------- point to point */

static void windows(void)
{
    uint64_t out[WINDOW], in[WINDOW];
    MPI_Request requests[2 * WINDOW];
    int window, i;

    check_phase("windows");
    for (window = 0; window < WINDOWS; ++window) {
        for (i = 0; i < WINDOW; ++i) {
            in[i]  = 0;
            out[i] = check_key(check.rank, TAG, (round_number * WINDOWS + (uint64_t)window) * WINDOW + (uint64_t)i);
            MPI_Irecv(&in[i], sizeof(in[i]), MPI_BYTE, ring.from, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        for (i = 0; i < WINDOW; ++i) {
            MPI_Isend(&out[i], sizeof(out[i]), MPI_BYTE, ring.to, TAG, MPI_COMM_WORLD, &requests[WINDOW + i]);
        }
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        for (i = 0; i < WINDOW; ++i) {
            CHECK(in[i] ==
                          check_key(ring.from, TAG, (round_number * WINDOWS + (uint64_t)window) * WINDOW + (uint64_t)i),
                  "message %d of window %d is wrong", i, window);
        }
    }
    sent += WINDOW * WINDOWS;
}

static size_t mixed_length(int i)
{
    uint64_t state = check_key(0, TAG + 2, round_number * MIXED + (uint64_t)i);

    return check_random_size(&state, (i == 0) ? LARGEST : 65536);
}

static uint64_t mixed_number(int source, int i)
{
    return foreign_number(source, round_number * MIXED + (uint64_t)i);
}

static void mixed_receive(int i, int with_probe)
{
    size_t length = mixed_length(i), first = 0;
    MPI_Message message;
    MPI_Status status;

    if (with_probe) {
        MPI_Mprobe(ring.from, TAG + 2, MPI_COMM_WORLD, &message, &status);
        check_status(&status, ring.from, TAG + 2, length);
        MPI_Mrecv(ring.in, LARGEST, MPI_BYTE, &message, &status);
    } else {
        MPI_Recv(ring.in, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, TAG + 2, MPI_COMM_WORLD, &status);
    }
    check_status(&status, ring.from, TAG + 2, length);
    CHECK(foreign_count_wrong(ring.in, length, foreign_key(), mixed_number(ring.from, i), &first) == 0,
          "byte %zu of %zu is wrong", first, length);
}

static void mixed(void)
{
    MPI_Request request;
    int i;

    check_phase("all sizes and modes");
    for (i = 0; i < MIXED; ++i) {
        check.step = i;
        foreign_fill(ring.out, mixed_length(i), foreign_key(), mixed_number(check.rank, i));
        if (i % 3 == 0) {
            MPI_Issend(ring.out, (int)mixed_length(i), MPI_BYTE, ring.to, TAG + 2, MPI_COMM_WORLD, &request);
        } else {
            MPI_Isend(ring.out, (int)mixed_length(i), MPI_BYTE, ring.to, TAG + 2, MPI_COMM_WORLD, &request);
        }
        mixed_receive(i, i % 2);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    sent += MIXED;
}

static void persistent(void)
{
    check_phase("persistent");
    check_fill(ring.steady[0], sizeof(ring.steady[0]), check.rank, TAG + 1, round_number);
    MPI_Startall(2, ring.persistent);
    MPI_Waitall(2, ring.persistent, MPI_STATUSES_IGNORE);
    check_bytes(ring.steady[1], sizeof(ring.steady[1]), ring.from, TAG + 1, round_number);
    ++sent;
}

static void derived(void)
{
    int i;

    check_phase("derived types");
    check_fill(ring.out, 2000, check.rank, TAG + 3, round_number);
    memset(ring.in, CHECK_POISON_BYTE, 2000);
    MPI_Sendrecv(ring.out, 1, ring.comb, ring.to, TAG + 3, ring.in, 1, ring.comb, ring.from, TAG + 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check_fill(ring.out, 2000, ring.from, TAG + 3, round_number);
    for (i = 0; i < 2000; ++i) {
        CHECK(ring.in[i] == ((i % 2 == 0) ? ring.out[i] : CHECK_POISON_BYTE), "byte %d is wrong", i);
    }
    ++sent;
}

/* ----------------------------------------------------------- collectives */

static void collectives(MPI_Comm comm)
{
    uint64_t sum = 0, mine = (uint64_t)check.rank + round_number;
    int i, root            = (int)(round_number % (uint64_t)check.size);

    check_phase("collectives");
    MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, comm);
    CHECK(sum == (uint64_t)check.size * round_number + (uint64_t)(check.size * (check.size - 1) / 2), "a sum is wrong");
    check_fill(ring.out, 20000, root, TAG + 4, round_number);
    memcpy(ring.in, ring.out, (check.rank == root) ? 20000 : 0);
    MPI_Bcast(ring.in, 20000, MPI_BYTE, root, comm);
    check_bytes(ring.in, 20000, root, TAG + 4, round_number);
    for (i = 0; i < check.size; ++i) {
        check_fill(ring.out + (size_t)i * 1024, 1024, check.rank, TAG + 5 + i, round_number);
    }
    MPI_Alltoall(ring.out, 1024, MPI_BYTE, ring.in, 1024, MPI_BYTE, comm);
    for (i = 0; i < check.size; ++i) {
        check_bytes(ring.in + (size_t)i * 1024, 1024, i, TAG + 5 + check.rank, round_number);
    }
    sent += 3;
}

/* ------------------------------------------------------------- one-sided */

static void onesided(MPI_Win win, uint64_t *cells)
{
    uint64_t words[2] = {check_key(check.rank, TAG + 6, round_number), 1}, got[2] = {0, 0};

    check_phase("one-sided");
    MPI_Win_fence(0, win);
    cells[1] = 0;
    MPI_Win_fence(0, win);
    MPI_Put(&words[0], 1, MPI_UINT64_T, ring.to, 0, 1, MPI_UINT64_T, win);
    MPI_Accumulate(&words[1], 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, MPI_SUM, win);
    MPI_Win_fence(0, win);
    CHECK(cells[0] == check_key(ring.from, TAG + 6, round_number), "what was put is wrong");
    CHECK((check.rank != 0) || (cells[1] == (uint64_t)check.size), "what was accumulated is wrong");
    MPI_Get(&got[0], 1, MPI_UINT64_T, ring.to, 0, 1, MPI_UINT64_T, win);
    MPI_Win_fence(0, win);
    CHECK(got[0] == words[0], "what was gotten is wrong");
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Fetch_and_op(&words[1], &got[1], MPI_UINT64_T, 0, 1, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    CHECK((got[1] >= (uint64_t)check.size) && (got[1] < 2 * (uint64_t)check.size), "what was fetched is wrong");
    MPI_Win_fence(0, win);
    sent += 4;
}

/* ----------------------------------------------------- what comes and goes */

static void new_communicators(void)
{
    uint64_t *cells;
    MPI_Comm comm;
    MPI_Win win;

    check_phase("new communicators and windows");
    MPI_Comm_split(MPI_COMM_WORLD, 0, check.rank, &comm);
    collectives(comm);
    MPI_Win_allocate(CELLS * sizeof(uint64_t), sizeof(uint64_t), MPI_INFO_NULL, comm, &cells, &win);
    onesided(win, cells);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static void exchange_with(MPI_Comm inter, int side)
{
    static const size_t lengths[] = {8, 8300, 300000};
    size_t i;

    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        check_fill(ring.out, lengths[i], side, TAG, i);
        MPI_Sendrecv(ring.out, (int)lengths[i], MPI_BYTE, 0, TAG, ring.in, (int)lengths[i], MPI_BYTE, 0, TAG, inter,
                     MPI_STATUS_IGNORE);
        check_bytes(ring.in, lengths[i], 1 - side, TAG, i);
    }
}

static void meet_by_port(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;

    check_phase("port");
    if (check.rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (check.rank > 1) {
        return;
    }
    if (check.rank == 0) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    }
    exchange_with(inter, check.rank);
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
    if (check.rank == 0) {
        MPI_Close_port(port);
    }
}

/* MPICH 4.0 has no ports over its UCX netmod; and of Open MPI's the last message may not be repaired (docs/protected.md) */
static bool may_join(void)
{
#ifdef MPICH_VERSION
    return false;
#else
    return !check_is_job_alone() && (getenv("UCI_FAULT") == NULL) && (getenv("FOREIGN_KEY") == NULL);
#endif
}

/* --------------------------------------------------------------- rounds */

static void one_round(void)
{
    windows();
    mixed();
    persistent();
    derived();
    collectives(MPI_COMM_WORLD);
    onesided(ring.win, ring.cells);
    if (round_number % RARELY == 0) {
        new_communicators();
    }
    if ((round_number % PORTS == PORTS / 2) && may_join()) {
        meet_by_port();
    }
    ++round_number;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void say(double seconds, double *times, int count)
{
    qsort(times, (size_t)count, sizeof(*times), by_value);
    printf("soak: %.0f s, %llu rounds, %llu messages, %.0f us a round\n", seconds, (unsigned long long)round_number,
           (unsigned long long)(sent * (uint64_t)check.size), times[count / 2] * 1e6);
    fflush(stdout);
}

static void rounds(double limit)
{
    static double times[TIMES];
    double begin = MPI_Wtime(), said = begin, before = begin, now = begin;
    int count = 0, goes_on = 1;

    while (goes_on) {
        one_round();
        now            = MPI_Wtime();
        times[count++] = now - before;
        before         = now;
        if ((check.rank == 0) && ((now - said >= SAY_MS * 1e-3) || (count == TIMES))) {
            say(now - begin, times, count);
            said  = now;
            count = 0;
        }
        count %= TIMES;
        goes_on = (now - begin < limit);
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if ((check.rank == 0) && (count > 0)) {
        say(now - begin, times, count);
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, "soak");
    join_ring();
    rounds(check.scale);
    leave_ring();
    return check_finish();
}
