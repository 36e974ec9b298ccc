/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that writes to the buffer of a send that is pending, which MPI forbids: rank 0 does so, rank 1 receives. Or that receives two
 * messages into one buffer at a time. What arrives is not looked at, for MPI promises nothing about it. What UCI says about it is:
 * run_verdicts.sh reads the records.
 *
 * usage: overwrite HOW BYTES ROUNDS
 *   never   it doesn't: there must be nothing to say
 *   once    the first bytes, right after MPI_Isend
 *   steady  the whole buffer, over and over, as long as the send is pending
 *   thread  the same by a thread, so that it happens inside of MPI, too
 *   bcast   no send at all: MPI_Bcast of 750 bytes
 *   asleep  as once, while rank 1 sleeps, so that UCI copies what plain UCX would have copied; rank 1 then says what came: the bytes as they
 *           were when they were sent, or as they are now ("delivered: 5 as sent, 3 as now"); nothing else may come
 *   undone  a thread writes to the first bytes and puts back what was there, over and over
 *   overlap four messages of their own buffers, which rank 1 receives into one, all at a time
 */
#include <pthread.h>
#include <stdatomic.h>
#include <wchar.h>

#include "../mpi/check.h"

enum { TAG = 7, TAG_ANSWER = 8, WRITTEN = 1000, BROADCAST = 750, AT_A_TIME = 4 };

static struct {
    unsigned char *data;
    size_t length;
    atomic_bool stop;
} target;

static void *write_until_stopped(void *arg)
{
    size_t i;

    while (!atomic_load(&target.stop)) {
        for (i = 0; i < target.length; i += 64) {
            target.data[i] += 1;
        }
    }
    return arg;
}

static void *write_and_undo(void *arg)
{
    unsigned char kept[WRITTEN];

    memcpy(kept, target.data, WRITTEN);
    while (!atomic_load(&target.stop)) {
        memset(target.data, 0, WRITTEN);
        check_sleep_ms(1);
        memcpy(target.data, kept, WRITTEN);
        check_sleep_ms(1);
    }
    return arg;
}

static void send_while_thread_writes(const check_buffer_t *buffer, size_t length, MPI_Request *request,
                                     void *(*write)(void *arg))
{
    pthread_t thread;

    target.data   = buffer->data;
    target.length = length;
    atomic_store(&target.stop, false);
    pthread_create(&thread, NULL, write, NULL);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    atomic_store(&target.stop, true);
    pthread_join(thread, NULL);
}

static void send_and_rewrite(const check_buffer_t *buffer, size_t length, MPI_Request *request)
{
    int done = 0, value = 0;

    while (!done) {
        wmemset((wchar_t *)buffer->data, ++value,
                length / sizeof(wchar_t)); /* of bytes there are 256: a chunk would be what it was */
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
}

static void broadcast(uint64_t round)
{
    unsigned char bytes[BROADCAST];

    check_fill(bytes, BROADCAST, 0, TAG, (check.rank == 0) ? round : round + 1);
    MPI_Bcast(bytes, BROADCAST, MPI_BYTE, 0, MPI_COMM_WORLD);
    check_bytes(bytes, BROADCAST, 0, TAG, round);
}

static void overlap(const check_buffer_t *buffer, size_t length, uint64_t round)
{
    check_buffer_t buffers[AT_A_TIME];
    MPI_Request requests[AT_A_TIME];
    int i;

    for (i = 0; i < AT_A_TIME; ++i) {
        if (check.rank == 0) {
            check_buffer_make(&buffers[i], length, 0);
            check_fill(buffers[i].data, length, 0, TAG, (round * AT_A_TIME) + (uint64_t)i);
            MPI_Isend(buffers[i].data, (int)length, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(buffer->data, (int)length, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Waitall(AT_A_TIME, requests, MPI_STATUSES_IGNORE);
    for (i = 0; (check.rank == 0) && (i < AT_A_TIME); ++i) {
        check_buffer_free(&buffers[i]);
    }
}

static void send_one(const char *how, const check_buffer_t *buffer, size_t length)
{
    MPI_Request request;

    MPI_Isend(buffer->data, (int)length, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
    if (strcmp(how, "steady") == 0) {
        send_and_rewrite(buffer, length, &request);
    } else if (strcmp(how, "thread") == 0) {
        send_while_thread_writes(buffer, length, &request, write_until_stopped);
    } else if (strcmp(how, "undone") == 0) {
        send_while_thread_writes(buffer, length, &request, write_and_undo);
    } else if ((strcmp(how, "once") == 0) || (strcmp(how, "asleep") == 0)) {
        memset(buffer->data, 0, WRITTEN);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* What was sent properly has to arrive */
static void answer(int to_or_from, bool sends, uint64_t round)
{
    unsigned char bytes[WRITTEN];

    if (sends) {
        check_fill(bytes, WRITTEN, check.rank, TAG_ANSWER, round);
        MPI_Send(bytes, WRITTEN, MPI_BYTE, to_or_from, TAG_ANSWER, MPI_COMM_WORLD);
    } else {
        MPI_Recv(bytes, WRITTEN, MPI_BYTE, to_or_from, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_bytes(bytes, WRITTEN, to_or_from, TAG_ANSWER, round);
    }
}

/* Is it what was sent, or what the sender has made of it? */
static void look_at(const check_buffer_t *buffer, size_t length, uint64_t round, int *as_sent_p, int *as_now_p)
{
    unsigned char *sent = malloc(length);

    check_fill(sent, length, 0, TAG, round);
    if (memcmp(buffer->data, sent, length) == 0) {
        ++*as_sent_p;
    } else {
        memset(sent, 0, WRITTEN);
        *as_now_p += memcmp(buffer->data, sent, length) == 0;
    }
    free(sent);
}

int main(int argc, char **argv)
{
    const char *how     = (argc > 1) ? argv[1] : "once";
    const size_t length = (argc > 2) ? strtoul(argv[2], NULL, 10) : 1ul << 20;
    const int rounds    = (argc > 3) ? atoi(argv[3]) : 4;
    int round, as_sent = 0, as_now = 0;
    check_buffer_t buffer;

    check_init(&(int){1}, &argv, "overwrite");
    for (round = 0; round < rounds; ++round) {
        check.step = round;
        check_phase(how);
        check_buffer_make(&buffer, length, 0);
        if (strcmp(how, "bcast") == 0) {
            broadcast((uint64_t)round);
        } else if (strcmp(how, "overlap") == 0) {
            overlap(&buffer, length, (uint64_t)round);
        } else if (check.rank == 0) {
            check_fill(buffer.data, length, 0, TAG, (uint64_t)round);
            send_one(how, &buffer, length);
        } else {
            if (strcmp(how, "asleep") == 0) {
                check_sleep_ms(20);
            }
            MPI_Recv(buffer.data, (int)length, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            look_at(&buffer, length, (uint64_t)round, &as_sent, &as_now);
        }
        answer(1 - check.rank, check.rank == 1, (uint64_t)round);
        answer(1 - check.rank, check.rank == 0, (uint64_t)round);
        check_buffer_free(&buffer);
    }
    if ((check.rank == 1) && (strcmp(how, "asleep") == 0)) {
        printf("delivered: %d as sent, %d as now, of %d\n", as_sent, as_now, rounds);
    }
    return check_finish();
}
