/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Who writes to the buffer of a send, and when. Once MPI_Send has returned everybody may: the message has to arrive as it was,
 * whatever is damaged on the way or where it lies, so that a repair must not look there. While MPI_Isend is pending nobody may: a
 * program that does so all the same gets what was there at some time, and is told about it if somebody looks again: when a repair does, or
 * when the message is copied. So its counters are not those of a clean run. Run by tests/faults.
 */
#include "check.h"

enum { TAG = 300, TAG_GO = 301, ROUNDS = 4, PENDING = 1 << 20, WRITTEN = 100 };

static const int sizes[] = {4096, 5000, 20000, 32768, 40000, 100000, 262144};

static void go(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG_GO, MPI_COMM_WORLD);
}

static void wait_for_go(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Sent, and written over at once */
static void send_and_scribble(uint64_t round)
{
    check_buffer_t buffer;
    size_t i;

    for (i = 0; i < CHECK_COUNT_OF(sizes); ++i) {
        check_buffer_make(&buffer, (size_t)sizes[i], i);
        check_fill(buffer.data, (size_t)sizes[i], 0, TAG + (int)i, round);
        MPI_Send(buffer.data, sizes[i], MPI_BYTE, 1, TAG + 10 + (int)i, MPI_COMM_WORLD);
        check_scribble(buffer.data, (size_t)sizes[i]);
        check_buffer_free(&buffer);
    }
}

static void receive_scribbled(uint64_t round, bool late)
{
    check_buffer_t buffer;
    size_t i;

    if (late) {
        check_sleep_ms(30);
    }
    for (i = 0; i < CHECK_COUNT_OF(sizes); ++i) {
        check_buffer_make(&buffer, (size_t)sizes[i], i + 1);
        MPI_Recv(buffer.data, sizes[i], MPI_BYTE, 0, TAG + 10 + (int)i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_bytes(buffer.data, (size_t)sizes[i], 0, TAG + (int)i, round);
        check_buffer_free(&buffer);
    }
}

static void send_and_change(uint64_t round)
{
    check_buffer_t buffer;
    MPI_Request request;

    check_buffer_make(&buffer, PENDING, 0);
    check_fill(buffer.data, PENDING, 0, TAG, round);
    MPI_Isend(buffer.data, PENDING, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
    memset(buffer.data, 0, WRITTEN); /* what no program may do */
    go();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_buffer_free(&buffer);
}

/* All of what was written, or nothing of it: the first bytes are in one chunk */
static void receive_changed(uint64_t round)
{
    check_buffer_t buffer, sent;

    check_buffer_make(&buffer, PENDING, 1);
    check_buffer_make(&sent, PENDING, 1);
    wait_for_go();
    MPI_Recv(buffer.data, PENDING, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (check_all(buffer.data, 0, WRITTEN)) {
        check_fill(sent.data, PENDING, 0, TAG, round);
        memcpy(buffer.data, sent.data, WRITTEN);
    }
    check_bytes(buffer.data, PENDING, 0, TAG, round);
    check_buffer_free(&buffer);
    check_buffer_free(&sent);
}

int main(int argc, char **argv)
{
    int round, rounds;

    check_init(&argc, &argv, "changed");
    rounds = check_scaled(ROUNDS);
    for (round = 0; round < rounds; ++round) {
        check.step = round;
        check_phase("written over after MPI_Send");
        if (check.rank == 0) {
            send_and_scribble((uint64_t)round);
        } else {
            receive_scribbled((uint64_t)round, round % 2 == 0);
        }
        check_phase("written to while MPI_Isend is pending");
        if (check.rank == 0) {
            send_and_change((uint64_t)round);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            receive_changed((uint64_t)round);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_GO, MPI_COMM_WORLD);
        }
    }
    check_phase("the answer");
    if (check.rank == 0) {
        check_buffer_t answer;

        check_buffer_make(&answer, WRITTEN, 0);
        MPI_Recv(answer.data, WRITTEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_bytes(answer.data, WRITTEN, 1, TAG, 0);
        check_buffer_free(&answer);
    } else {
        unsigned char answer[WRITTEN];

        check_fill(answer, WRITTEN, 1, TAG, 0);
        MPI_Send(answer, WRITTEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
    return check_finish();
}
