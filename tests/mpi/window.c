/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Many large messages at a time between two ranks: windows that are posted before they are sent, or sent before they are
 * posted; in one direction or both; with other large messages in front of them that nobody receives until the end, so
 * that whatever they hold on to is not there for the window; and windows in which messages are received last first.
 *
 * @ranks 2
 * @args 2: 0.5
 * @expect posix direct_messages + get_messages > 0.6 * rendezvous_messages
 *
 * (With cma those that go both ways at once are fetched. How many find a slot is a matter of time: over 90 % on an idle machine, 84 % were
 * seen on a busy one; the rest streams.)
 */
#include "check.h"

enum { WINDOW = 24, EARLY = 16, LENGTH = 1048576 - 8, TAG = 170, TAG_EARLY = 161, ROUNDS = 6 };

typedef enum { POSTED, LATE, REVERSED, ORDERS } order_t;

static check_buffer_t out[WINDOW], in[WINDOW], early_out[EARLY], early_in[EARLY];

static void make_buffers(check_buffer_t *buffers, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        check_buffer_make(&buffers[i], LENGTH, (size_t)i);
    }
}

static void free_buffers(check_buffer_t *buffers, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        check_buffer_free(&buffers[i]);
    }
}

/* Each message of a window has its own tag: they may be received in any order */
static void post_sends(int partner, uint64_t base, MPI_Request *requests)
{
    int i;

    for (i = 0; i < WINDOW; ++i) {
        check_fill(out[i].data, LENGTH, check.rank, TAG + i, base + (uint64_t)i);
        MPI_Isend(out[i].data, LENGTH, MPI_BYTE, partner, TAG + i, MPI_COMM_WORLD, &requests[i]);
    }
}

static void post_receives(int partner, order_t order, MPI_Request *requests)
{
    int n, i;

    for (n = 0; n < WINDOW; ++n) {
        i = (order == REVERSED) ? WINDOW - 1 - n : n;
        memset(in[i].data, CHECK_POISON_BYTE, LENGTH);
        MPI_Irecv(in[i].data, LENGTH, MPI_BYTE, partner, TAG + i, MPI_COMM_WORLD, &requests[i]);
        if (order == REVERSED) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    }
}

static void check_window(int partner, uint64_t base)
{
    int i;

    for (i = 0; i < WINDOW; ++i) {
        check_bytes(in[i].data, LENGTH, partner, TAG + i, base + (uint64_t)i);
        check_guards(&in[i]);
    }
}

static void run_window(int partner, order_t order, int sends, int receives, uint64_t base)
{
    MPI_Request to[WINDOW], from[WINDOW];

    if (receives && (order == POSTED)) {
        post_receives(partner, order, from);
    }
    if (sends) {
        post_sends(partner, base, to);
    }
    if (receives && (order != POSTED)) {
        post_receives(partner, order, from);
    }
    if (receives) {
        MPI_Waitall(WINDOW, from, MPI_STATUSES_IGNORE);
        check_window(partner, base);
    }
    if (sends) {
        MPI_Waitall(WINDOW, to, MPI_STATUSES_IGNORE);
    }
}

static void run_windows(int partner, int rounds, uint64_t base)
{
    static const char *const names[] = {"posted", "late", "last first"};
    int round, order, first = (check.rank < partner);

    for (round = 0; round < rounds; ++round) {
        for (order = 0; order < ORDERS; ++order, base += 3 * WINDOW) {
            check_phase(names[order]);
            check.step = round;
            run_window(partner, (order_t)order, first, !first, base);
            run_window(partner, (order_t)order, !first, first, base + WINDOW);
            run_window(partner, (order_t)order, 1, 1, base + 2 * WINDOW);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Request early[EARLY];
    int partner, rounds, i;

    check_init(&argc, &argv, "window");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    rounds = check_scaled(ROUNDS);
    make_buffers(out, WINDOW);
    make_buffers(in, WINDOW);
    make_buffers(early_out, EARLY);
    make_buffers(early_in, EARLY);
    run_windows(partner, rounds / 2 + 1, 0);

    for (i = 0; i < EARLY; ++i) {
        check_fill(early_out[i].data, LENGTH, check.rank, TAG_EARLY, (uint64_t)i);
        MPI_Isend(early_out[i].data, LENGTH, MPI_BYTE, partner, TAG_EARLY, MPI_COMM_WORLD, &early[i]);
    }
    run_windows(partner, rounds / 2 + 1, 100000);
    check_phase("early messages at the end");
    for (i = 0; i < EARLY; ++i) {
        MPI_Recv(early_in[i].data, LENGTH, MPI_BYTE, partner, TAG_EARLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_bytes(early_in[i].data, LENGTH, partner, TAG_EARLY, (uint64_t)i);
    }
    MPI_Waitall(EARLY, early, MPI_STATUSES_IGNORE);

    free_buffers(out, WINDOW);
    free_buffers(in, WINDOW);
    free_buffers(early_out, EARLY);
    free_buffers(early_in, EARLY);
    return check_finish();
}
