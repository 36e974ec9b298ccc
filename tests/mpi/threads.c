/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_THREAD_MULTIPLE: threads of both ranks send, receive, probe, match, cancel and run collectives at the same
 * time, each on its own tag or communicator, and finally all compete for the messages of one tag.
 *
 * @ranks 2
 */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, WINDOW = 16, LARGEST = 300000, TAG = 250, TAG_SHARED = 300, TAG_NEVER = 400 };

typedef struct worker {
    pthread_t thread;
    int number, partner;
    MPI_Comm comm; /* this thread's own, for its collectives */
    uint64_t sent, received, state;
} worker_t;

static int shared_messages;
static int shared_taken; /* by all threads of this rank */

static void send_one(worker_t *w, size_t length, int tag)
{
    unsigned char *data = malloc(length + 1);

    check_fill(data, length, check.rank, tag, w->sent++);
    if (w->sent % 3) {
        MPI_Send(data, (int)length, MPI_BYTE, w->partner, tag, MPI_COMM_WORLD);
    } else {
        MPI_Ssend(data, (int)length, MPI_BYTE, w->partner, tag, MPI_COMM_WORLD);
    }
    check_scribble(data, length);
    free(data);
}

/** Receive in one of four ways: plain, wildcard source, probed, matched. */
static void receive_one(worker_t *w, size_t length, int tag)
{
    unsigned char *data = malloc(length + 1);
    MPI_Message message;
    MPI_Status status;

    switch (w->received % 4) {
    case 0:
        MPI_Recv(data, (int)length, MPI_BYTE, w->partner, tag, MPI_COMM_WORLD, &status);
        break;
    case 1:
        MPI_Recv(data, (int)length, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
        break;
    case 2:
        MPI_Probe(w->partner, tag, MPI_COMM_WORLD, &status);
        check_status(&status, w->partner, tag, length);
        MPI_Recv(data, (int)length, MPI_BYTE, w->partner, tag, MPI_COMM_WORLD, &status);
        break;
    default:
        MPI_Mprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &message, &status);
        check_status(&status, w->partner, tag, length);
        MPI_Mrecv(data, (int)length, MPI_BYTE, &message, &status);
        break;
    }
    check_status(&status, w->partner, tag, length);
    check_bytes(data, length, w->partner, tag, w->received++);
    free(data);
}

/** Thread n of one rank talks to thread n of the other. */
static void test_pairs(worker_t *w, int rounds)
{
    int tag = TAG + w->number, i;
    size_t length;

    for (i = 0; i < rounds; ++i) {
        length = check_random_size(&w->state, LARGEST);
        if (check.rank < w->partner) {
            send_one(w, length, tag);
            receive_one(w, length, tag);
        } else {
            receive_one(w, length, tag);
            send_one(w, length, tag);
        }
    }
}

static void test_windows(worker_t *w, int rounds)
{
    MPI_Request requests[2 * WINDOW + 1];
    check_buffer_t out[WINDOW], in[WINDOW];
    MPI_Status status;
    int tag = TAG + w->number, i, cancelled;
    size_t length;

    for (; rounds > 0; --rounds) {
        for (i = 0; i < WINDOW; ++i) {
            length = check_random_size(&w->state, 20000);
            check_buffer_make(&in[i], length, 0);
            check_buffer_make(&out[i], length, 0);
            MPI_Irecv(in[i].data, (int)length, MPI_BYTE, w->partner, tag, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Irecv(NULL, 0, MPI_BYTE, w->partner, TAG_NEVER, MPI_COMM_WORLD, &requests[2 * WINDOW]);
        for (i = 0; i < WINDOW; ++i) {
            check_fill(out[i].data, out[i].length, check.rank, tag, w->sent++);
            MPI_Isend(out[i].data, (int)out[i].length, MPI_BYTE, w->partner, tag, MPI_COMM_WORLD,
                      &requests[WINDOW + i]);
        }
        MPI_Cancel(&requests[2 * WINDOW]);
        MPI_Wait(&requests[2 * WINDOW], &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled, "a receive that nothing can match was not cancelled");
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        for (i = 0; i < WINDOW; ++i) {
            check_bytes(in[i].data, in[i].length, w->partner, tag, w->received++);
            check_buffer_free(&in[i]);
            check_buffer_free(&out[i]);
        }
    }
}

static void test_collectives(worker_t *w, int rounds)
{
    unsigned char data[9000];
    int i, sum;

    for (i = 0; i < rounds; ++i) {
        if (check.rank == i % 2) {
            check_fill(data, sizeof(data), check.rank, TAG + w->number, (uint64_t)i);
        }
        MPI_Bcast(data, sizeof(data), MPI_BYTE, i % 2, w->comm);
        check_bytes(data, sizeof(data), i % 2, TAG + w->number, (uint64_t)i);
        MPI_Allreduce(&check.rank, &sum, 1, MPI_INT, MPI_SUM, w->comm);
        CHECK(sum == 1, "the sum of ranks is %d", sum);
    }
}

/** All threads send on one tag; all threads match whatever comes. The first 8 bytes say which message it is. */
static void test_shared(worker_t *w)
{
    int mine            = shared_messages / THREADS, i, flag, count;
    unsigned char *data = malloc(LARGEST);
    uint64_t index, state = w->state;
    MPI_Message message;
    MPI_Status status;
    size_t length;

    for (i = 0; i < mine; ++i) {
        index  = (uint64_t)(w->number * mine + i);
        length = 8 + check_random_size(&state, 3000);
        memcpy(data, &index, 8);
        check_fill(data + 8, length - 8, check.rank, TAG_SHARED, index);
        MPI_Send(data, (int)length, MPI_BYTE, w->partner, TAG_SHARED, MPI_COMM_WORLD);
    }
    while (__atomic_load_n(&shared_taken, __ATOMIC_ACQUIRE) < mine * THREADS) {
        MPI_Improbe(MPI_ANY_SOURCE, TAG_SHARED, MPI_COMM_WORLD, &flag, &message, &status);
        if (!flag) {
            continue;
        }
        __atomic_add_fetch(&shared_taken, 1, __ATOMIC_ACQ_REL);
        MPI_Get_count(&status, MPI_BYTE, &count);
        MPI_Mrecv(data, count, MPI_BYTE, &message, &status);
        check_status(&status, w->partner, TAG_SHARED, (size_t)count);
        memcpy(&index, data, 8);
        check_bytes(data + 8, (size_t)count - 8, w->partner, TAG_SHARED, index);
    }
    free(data);
}

static void *run(void *argument)
{
    worker_t *w = argument;

    test_pairs(w, check_scaled(100));
    test_windows(w, check_scaled(20));
    test_collectives(w, check_scaled(30));
    test_shared(w);
    return NULL;
}

int main(int argc, char **argv)
{
    static worker_t workers[THREADS];
    int provided, t;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    check_start(argc, argv, "threads");
    if (provided < MPI_THREAD_MULTIPLE) {
        return check_skip("this MPI does not provide MPI_THREAD_MULTIPLE");
    }
    CHECK(check.size == 2, "needs two ranks");
    shared_messages = check_scaled(300) * THREADS;
    check_phase("threads");
    for (t = 0; t < THREADS; ++t) {
        workers[t].number  = t;
        workers[t].partner = 1 - check.rank;
        workers[t].state   = check.seed * 1000 + (uint64_t)t; /* the same at both ends */
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comm);
    }
    for (t = 0; t < THREADS; ++t) {
        pthread_create(&workers[t].thread, NULL, run, &workers[t]);
    }
    for (t = 0; t < THREADS; ++t) {
        pthread_join(workers[t].thread, NULL);
        MPI_Comm_free(&workers[t].comm);
    }
    return check_finish();
}
