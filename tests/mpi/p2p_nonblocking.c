/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows of many outstanding messages in both directions: MPI_Isend, Issend, Ibsend, Irsend and Irecv; receives
 * posted before the sends, after them (unexpected messages), or half and half, in permuted order; completed by
 * each of the Wait and Test functions, and MPI_Request_get_status.
 *
 * @ranks 2 4
 * @args 4: 0.3
 * @args mpich 4: 0.1
 */
#include "check.h"

enum { WINDOW = 48, LARGEST = 1100000, BSEND_LARGEST = 20000 };

typedef enum { POSTED, UNEXPECTED, MIXED, ORDERS } order_t;
typedef enum { WAIT, WAITALL, WAITANY, WAITSOME, TEST, TESTALL, TESTANY, TESTSOME, COMPLETIONS } completion_t;

static const char *const completion_names[] = {"MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome",
                                               "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome"};

typedef struct window {
    size_t out_length[WINDOW], in_length[WINDOW];
    check_buffer_t out[WINDOW], in[WINDOW];
    MPI_Request requests[2 * WINDOW]; /* receives first */
    MPI_Status statuses[2 * WINDOW];
    int permutation[WINDOW];
    uint64_t round;
} window_t;

/* ---- completion: each stores the status of request i in statuses[i] ---- */

/* Tells of the end, and leaves the request for MPI_Test */
static void await_status(MPI_Request request, MPI_Status *status)
{
    int done = 0;

    while (!done) {
        MPI_Request_get_status(request, &done, status);
    }
}

static void complete_each(window_t *w, int testing)
{
    MPI_Status before;
    int i, done;

    for (i = 2 * WINDOW - 1; i >= 0; --i) {
        if (!testing) {
            MPI_Wait(&w->requests[i], &w->statuses[i]);
            continue;
        }
        if (i % 2 == 0) {
            await_status(w->requests[i], &before);
        }
        for (done = 0; !done;) {
            MPI_Test(&w->requests[i], &done, &w->statuses[i]);
            CHECK(done || (i % 2 != 0), "MPI_Request_get_status says that it is over, MPI_Test that it is not");
        }
        CHECK((i % 2 != 0) || (i >= WINDOW) || (before.MPI_TAG == w->statuses[i].MPI_TAG),
              "MPI_Request_get_status: tag %d, MPI_Test: %d", before.MPI_TAG, w->statuses[i].MPI_TAG);
    }
}

static void complete_all(window_t *w, int testing)
{
    int done = 0;

    if (!testing) {
        MPI_Waitall(2 * WINDOW, w->requests, w->statuses);
    }
    while (testing && !done) {
        MPI_Testall(2 * WINDOW, w->requests, &done, w->statuses);
    }
}

static void complete_any(window_t *w, int testing)
{
    int left, index, done = 1;
    MPI_Status status;

    for (left = 2 * WINDOW; left > 0; left -= done) {
        if (testing) {
            MPI_Testany(2 * WINDOW, w->requests, &index, &done, &status);
        } else {
            MPI_Waitany(2 * WINDOW, w->requests, &index, &status);
        }
        if (done) {
            CHECK((index >= 0) && (index < 2 * WINDOW), "index %d with %d requests left", index, left);
            w->statuses[index] = status;
        }
    }
    MPI_Waitany(2 * WINDOW, w->requests, &index, &status);
    CHECK(index == MPI_UNDEFINED, "nothing is left, but Waitany said %d", index);
}

static void complete_some(window_t *w, int testing)
{
    int indices[2 * WINDOW];
    MPI_Status statuses[2 * WINDOW];
    int i, left, count;

    for (left = 2 * WINDOW; left > 0; left -= count) {
        if (testing) {
            MPI_Testsome(2 * WINDOW, w->requests, &count, indices, statuses);
        } else {
            MPI_Waitsome(2 * WINDOW, w->requests, &count, indices, statuses);
        }
        for (i = 0; i < count; ++i) {
            w->statuses[indices[i]] = statuses[i];
        }
    }
}

static void complete(window_t *w, completion_t how)
{
    static void (*const functions[])(window_t *, int) = {complete_each, complete_all, complete_any, complete_some};

    functions[how % 4](w, how >= TEST);
}

/* ---- one window ---- */

/** The lengths of a round, computed by both sides. */
static void draw_lengths(size_t *lengths, int source, uint64_t round)
{
    uint64_t state = check_key(source, 0, round);
    int i;

    for (i = 0; i < WINDOW; ++i) {
        lengths[i] = check_random_size(&state, (i % 16 == 15) ? LARGEST : 120000);
    }
}

static void permute(int *permutation, uint64_t *state)
{
    int i, j, swap;

    for (i = 0; i < WINDOW; ++i) {
        permutation[i] = i;
    }
    for (i = WINDOW - 1; i > 0; --i) {
        j              = (int)(check_random(state) % (uint64_t)(i + 1));
        swap           = permutation[i];
        permutation[i] = permutation[j];
        permutation[j] = swap;
    }
}

static void post_receives(window_t *w, int from, int to, int partner)
{
    int i, m;

    for (i = from; i < to; ++i) {
        m = w->permutation[i];
        MPI_Irecv(w->in[m].data, (int)w->in_length[m], MPI_BYTE, partner, m, MPI_COMM_WORLD, &w->requests[m]);
    }
}

static void post_sends(window_t *w, int partner, order_t order)
{
    MPI_Request *request;
    int i, length;

    for (i = 0; i < WINDOW; ++i) {
        length  = (int)w->out_length[i];
        request = &w->requests[WINDOW + i];
        check_fill(w->out[i].data, (size_t)length, check.rank, i, w->round);
        if (i % 4 == 1) {
            MPI_Issend(w->out[i].data, length, MPI_BYTE, partner, i, MPI_COMM_WORLD, request);
        } else if ((i % 4 == 2) && (length <= BSEND_LARGEST)) {
            MPI_Ibsend(w->out[i].data, length, MPI_BYTE, partner, i, MPI_COMM_WORLD, request);
        } else if ((i % 4 == 3) && (order == POSTED)) {
            MPI_Irsend(w->out[i].data, length, MPI_BYTE, partner, i, MPI_COMM_WORLD, request);
        } else {
            MPI_Isend(w->out[i].data, length, MPI_BYTE, partner, i, MPI_COMM_WORLD, request);
        }
    }
}

static void test_window(window_t *w, order_t order, completion_t how, int partner)
{
    uint64_t state = check_key(check.rank, 1, w->round);
    int posted     = (order == POSTED) ? WINDOW : (order == MIXED) ? WINDOW / 2 : 0;
    int i;

    draw_lengths(w->out_length, check.rank, w->round);
    draw_lengths(w->in_length, partner, w->round);
    permute(w->permutation, &state);
    for (i = 0; i < WINDOW; ++i) {
        check_buffer_make(&w->out[i], w->out_length[i], (size_t)i % 9);
        check_buffer_make(&w->in[i], w->in_length[i], (size_t)i % 7);
    }

    post_receives(w, 0, posted, partner);
    if (order == POSTED) {
        MPI_Barrier(MPI_COMM_WORLD); /* Irsend needs it */
    }
    post_sends(w, partner, order);
    if (order != POSTED) {
        MPI_Barrier(MPI_COMM_WORLD); /* comes after the messages: they have arrived unexpected */
    }
    post_receives(w, posted, WINDOW, partner);
    complete(w, how);

    for (i = 0; i < WINDOW; ++i) {
        check_status(&w->statuses[i], partner, i, w->in_length[i]);
        check_bytes(w->in[i].data, w->in_length[i], partner, i, w->round);
        check_buffer_free(&w->in[i]);
        check_buffer_free(&w->out[i]);
    }
}

int main(int argc, char **argv)
{
    static window_t w;
    int size = WINDOW * (BSEND_LARGEST + MPI_BSEND_OVERHEAD);
    void *attached;
    int partner, order, how, repeat;

    check_init(&argc, &argv, "p2p_nonblocking");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    attached = malloc((size_t)size);

    for (repeat = check_scaled(8); repeat > 0; --repeat) {
        for (how = 0; how < COMPLETIONS; ++how) {
            check_phase(completion_names[how]);
            for (order = 0; order < ORDERS; ++order, ++w.round) {
                check.step = (long)w.round;
                MPI_Buffer_attach(attached, size);
                test_window(&w, (order_t)order, (completion_t)how, partner);
                MPI_Buffer_detach(&attached, &size);
            }
        }
    }
    free(attached);
    return check_finish();
}
