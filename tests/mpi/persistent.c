/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistent requests of every mode, started one by one and all at once, with contents that change at each start.
 *
 * @ranks 2
 */
#include "check.h"

enum { MODES = 4, TAG = 30, TAG_READY = 40, LARGEST = 1048579 };

static const size_t lengths[] = {0, 1, 64, 4097, 8184, 8300, 65537, 262144, LARGEST};

static void make_send(int mode, const void *data, size_t length, int dest, int tag, MPI_Request *request)
{
    switch (mode) {
    case 0:
        MPI_Send_init(data, (int)length, MPI_BYTE, dest, tag, MPI_COMM_WORLD, request);
        break;
    case 1:
        MPI_Ssend_init(data, (int)length, MPI_BYTE, dest, tag, MPI_COMM_WORLD, request);
        break;
    case 2:
        MPI_Bsend_init(data, (int)length, MPI_BYTE, dest, tag, MPI_COMM_WORLD, request);
        break;
    default:
        MPI_Rsend_init(data, (int)length, MPI_BYTE, dest, tag, MPI_COMM_WORLD, request);
        break;
    }
}

/** One length: a receive and a send of each mode, started @a rounds times. */
static void test_length(size_t length, int partner, int rounds)
{
    MPI_Request receives[MODES], sends[MODES];
    MPI_Status statuses[MODES];
    check_buffer_t in[MODES], out[MODES];
    int mode, round, flag;

    for (mode = 0; mode < MODES; ++mode) {
        check_buffer_make(&in[mode], length, (size_t)mode);
        check_buffer_make(&out[mode], length, (size_t)mode * 3);
        /* one of them takes its tag from anyone */
        MPI_Recv_init(in[mode].data, (int)length, MPI_BYTE, (mode == 1) ? MPI_ANY_SOURCE : partner, TAG + mode,
                      MPI_COMM_WORLD, &receives[mode]);
        make_send(mode, out[mode].data, length, partner, TAG + mode, &sends[mode]);
    }
    for (round = 0; round < rounds; ++round) {
        check.step = round;
        for (mode = 0; mode < MODES; ++mode) {
            memset(in[mode].data, CHECK_POISON_BYTE, length);
            check_fill(out[mode].data, length, check.rank, TAG + mode, (uint64_t)round);
        }
        MPI_Startall(MODES, receives);
        MPI_Barrier(MPI_COMM_WORLD); /* the ready send needs the receive */
        if (round % 2) {
            MPI_Startall(MODES, sends);
        } else {
            for (mode = MODES - 1; mode >= 0; --mode) {
                MPI_Start(&sends[mode]);
            }
        }
        if (round % 3) {
            MPI_Waitall(MODES, receives, statuses);
        } else {
            for (flag = 0; !flag;) {
                MPI_Testall(MODES, receives, &flag, statuses);
            }
        }
        MPI_Waitall(MODES, sends, MPI_STATUSES_IGNORE);
        for (mode = 0; mode < MODES; ++mode) {
            check_status(&statuses[mode], partner, TAG + mode, length);
            check_bytes(in[mode].data, length, partner, TAG + mode, (uint64_t)round);
            CHECK(receives[mode] != MPI_REQUEST_NULL, "a persistent request vanished");
        }
    }
    for (mode = 0; mode < MODES; ++mode) {
        MPI_Request_free(&receives[mode]);
        MPI_Request_free(&sends[mode]);
        check_buffer_free(&in[mode]);
        check_buffer_free(&out[mode]);
    }
}

/** The message is there before the persistent receive is started. */
static void test_unexpected(int partner)
{
    MPI_Request send, receive;
    MPI_Status status;
    check_buffer_t in, out;
    unsigned i, round;

    check_phase("unexpected");
    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        check_buffer_make(&in, lengths[i], 1);
        check_buffer_make(&out, lengths[i], 2);
        MPI_Send_init(out.data, (int)lengths[i], MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &send);
        MPI_Recv_init(in.data, (int)lengths[i], MPI_BYTE, partner, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
        for (round = 0; round < 3; ++round) {
            memset(in.data, CHECK_POISON_BYTE, in.length);
            check_fill(out.data, out.length, check.rank, TAG, round);
            MPI_Start(&send);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Start(&receive);
            MPI_Wait(&receive, &status);
            MPI_Wait(&send, MPI_STATUS_IGNORE);
            check_status(&status, partner, TAG, lengths[i]);
            check_bytes(in.data, in.length, partner, TAG, round);
        }
        MPI_Request_free(&send);
        MPI_Request_free(&receive);
        check_buffer_free(&in);
        check_buffer_free(&out);
    }
}

/** Inactive requests complete at once with an empty status; PROC_NULL ones start and complete. */
static void test_inactive(void)
{
    MPI_Request request;
    MPI_Status status;
    int flag, count;

    check_phase("inactive");
    MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &request);
    MPI_Test(&request, &flag, &status);
    CHECK(flag && (status.MPI_SOURCE == MPI_ANY_SOURCE), "an inactive request is not complete and empty");
    MPI_Start(&request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == 0, "%d bytes came from nobody", count); /* MPICH 4.0 sets MPI_SOURCE wrongly here */
    MPI_Request_free(&request);
    MPI_Send_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    int size = 2 * (LARGEST + MPI_BSEND_OVERHEAD);
    void *attached;
    int partner, rounds;
    unsigned i;

    check_init(&argc, &argv, "persistent");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    attached = malloc((size_t)size);

    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        check_phase("started again and again");
        rounds = check_scaled((lengths[i] > 100000) ? 6 : 40);
        MPI_Buffer_attach(attached, size);
        test_length(lengths[i], partner, rounds);
        MPI_Buffer_detach(&attached, &size);
    }
    free(attached);
    test_unexpected(partner);
    test_inactive();
    return check_finish();
}
