/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Cancel of receives: a cancelled receive takes no message and touches no memory, a matched one is not
 * cancelled, and the receives around it get the messages in order.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 70, TAG_NEVER = 71, TAG_AFTER = 72, RECEIVES = 12 };

static const size_t lengths[] = {64, 8300, 300000};
static uint64_t sent, received;

static void send_message(size_t length, int dest)
{
    check_buffer_t out;

    check_buffer_make(&out, length, 0);
    check_fill(out.data, length, check.rank, TAG, sent++);
    MPI_Send(out.data, (int)length, MPI_BYTE, dest, TAG, MPI_COMM_WORLD);
    check_buffer_free(&out);
}

/** Every third of the posted receives is cancelled before anything is sent. */
static void test_some_cancelled(size_t length, int partner, int receiving, int any)
{
    MPI_Request requests[RECEIVES];
    check_buffer_t in[RECEIVES];
    MPI_Status status;
    int i, cancelled;

    for (i = 0; (i < RECEIVES) && receiving; ++i) {
        check_buffer_make(&in[i], length, 1);
        MPI_Irecv(in[i].data, (int)length, MPI_BYTE, any ? MPI_ANY_SOURCE : partner, any ? MPI_ANY_TAG : TAG,
                  MPI_COMM_WORLD, &requests[i]);
    }
    for (i = 0; (i < RECEIVES) && receiving; i += 3) {
        MPI_Cancel(&requests[i]);
        MPI_Wait(&requests[i], &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled, "an unmatched receive was not cancelled");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < RECEIVES; ++i) {
        if (i % 3 == 0) {
            continue;
        } else if (!receiving) {
            send_message(length, partner);
            continue;
        }
        MPI_Wait(&requests[i], &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(!cancelled, "a receive that nobody cancelled says it was");
        check_status(&status, partner, TAG, length);
        check_bytes(in[i].data, length, partner, TAG, received++);
    }
    for (i = 0; (i < RECEIVES) && receiving; ++i) {
        CHECK((i % 3 != 0) || check_all(in[i].data, CHECK_POISON_BYTE, length), "a cancelled receive got bytes");
        check_buffer_free(&in[i]);
    }
}

/** The receive is matched or complete already: cancelling it must not lose the message. */
static void test_too_late(size_t length, int partner, int receiving)
{
    MPI_Request request;
    check_buffer_t in;
    MPI_Status status;
    int cancelled;

    if (receiving) {
        check_buffer_make(&in, length, 1);
        MPI_Irecv(in.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        MPI_Probe(partner, TAG_AFTER, MPI_COMM_WORLD, &status); /* comes after the message: that one is matched */
        MPI_Recv(NULL, 0, MPI_BYTE, partner, TAG_AFTER, MPI_COMM_WORLD, &status);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(!cancelled, "a matched receive was cancelled");
        check_status(&status, partner, TAG, length);
        check_bytes(in.data, length, partner, TAG, received++);
        check_buffer_free(&in);
    } else {
        MPI_Request requests[2];
        check_buffer_t out;

        check_buffer_make(&out, length, 0);
        check_fill(out.data, length, check.rank, TAG, sent++);
        MPI_Recv(NULL, 0, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(out.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(NULL, 0, MPI_BYTE, partner, TAG_AFTER, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_buffer_free(&out);
    }
}

/** Cancelling races with the message: either outcome is right, but the message must come exactly once. */
static void test_race(size_t length, int partner, int receiving)
{
    MPI_Request request;
    check_buffer_t in;
    MPI_Status status;
    int cancelled;

    if (!receiving) {
        send_message(length, partner);
        return;
    }
    check_buffer_make(&in, length, 1);
    MPI_Irecv(in.data, (int)length, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled) {
        CHECK(check_all(in.data, CHECK_POISON_BYTE, length), "a cancelled receive got bytes");
        MPI_Recv(in.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &status);
    }
    check_status(&status, partner, TAG, length);
    check_bytes(in.data, length, partner, TAG, received++);
    check_buffer_free(&in);
}

/** A persistent receive survives its cancellation; a cancelled request may be freed without waiting. */
static void test_persistent(size_t length, int partner, int receiving)
{
    MPI_Request request;
    check_buffer_t in, never;
    MPI_Status status;
    int cancelled;

    if (!receiving) {
        MPI_Barrier(MPI_COMM_WORLD);
        send_message(length, partner);
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    check_buffer_make(&in, length, 1);
    check_buffer_make(&never, length, 1);
    MPI_Recv_init(in.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled, "a started persistent receive was not cancelled");
    MPI_Start(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    check_status(&status, partner, TAG, length);
    check_bytes(in.data, length, partner, TAG, received++);
    MPI_Request_free(&request);

    MPI_Irecv(never.data, (int)length, MPI_BYTE, partner, TAG_NEVER, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(check_all(never.data, CHECK_POISON_BYTE, length), "a cancelled and freed receive got bytes");
    check_buffer_free(&never);
    check_buffer_free(&in);
}

static void test_all(int partner, int receiving)
{
    unsigned i;
    int repeat;

    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        for (repeat = check_scaled(40); repeat > 0; --repeat) {
            check.step  = repeat;
            check.phase = "some of many cancelled";
            test_some_cancelled(lengths[i], partner, receiving, repeat % 2);
            check.phase = "cancelled too late";
            test_too_late(lengths[i], partner, receiving);
            check.phase = "cancelled in a race";
            test_race(lengths[i], partner, receiving);
            check.phase = "persistent, and freed";
            test_persistent(lengths[i], partner, receiving);
        }
    }
}

int main(int argc, char **argv)
{
    int partner;

    check_init(&argc, &argv, "cancel");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    test_all(partner, check.rank < partner);
    test_all(partner, check.rank > partner);
    return check_finish();
}
