/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocking point-to-point: MPI_Send, Ssend, Bsend, Rsend, Recv, Sendrecv, Sendrecv_replace at every size where a
 * protocol may change, and MPI_Buffer_detach waiting for what was buffered.
 *
 * @ranks 2
 */
#include "check.h"

enum { LARGEST = 4194304, TAG = 7, TAG_READY = 8 };

typedef enum { SEND, SSEND, BSEND, RSEND, MODES } send_mode_t;

static const char *const mode_names[] = {"MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend"};

static check_buffer_t sendbuf, recvbuf;
static uint64_t sent, received;

static void send_one(send_mode_t mode, size_t length, int dest)
{
    check_fill(sendbuf.data, length, check.rank, TAG, sent++);
    switch (mode) {
    case SSEND:
        MPI_Ssend(sendbuf.data, (int)length, MPI_BYTE, dest, TAG, MPI_COMM_WORLD);
        break;
    case BSEND:
        MPI_Bsend(sendbuf.data, (int)length, MPI_BYTE, dest, TAG, MPI_COMM_WORLD);
        break;
    case RSEND:
        MPI_Recv(NULL, 0, MPI_BYTE, dest, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Rsend(sendbuf.data, (int)length, MPI_BYTE, dest, TAG, MPI_COMM_WORLD);
        break;
    default:
        MPI_Send(sendbuf.data, (int)length, MPI_BYTE, dest, TAG, MPI_COMM_WORLD);
        break;
    }
    check_scribble(sendbuf.data, length);
}

static void receive_one(send_mode_t mode, size_t length, int source)
{
    MPI_Request request;
    MPI_Status status;

    memset(recvbuf.data, CHECK_POISON_BYTE, length);
    if (mode == RSEND) {
        MPI_Irecv(recvbuf.data, (int)length, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, source, TAG_READY, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
    } else {
        MPI_Recv(recvbuf.data, (int)length, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &status);
    }
    check_status(&status, source, TAG, length);
    check_bytes(recvbuf.data, length, source, TAG, received++);
}

/** One message each way. */
static void ping_pong(send_mode_t mode, size_t length, int partner)
{
    check.step = (long)length;
    if (check.rank < partner) {
        send_one(mode, length, partner);
        receive_one(mode, length, partner);
    } else {
        receive_one(mode, length, partner);
        send_one(mode, length, partner);
    }
}

static void test_mode(send_mode_t mode, int partner)
{
    size_t length;
    int i, repeat;

    check_phase(mode_names[mode]);
    for (i = 0; i < CHECK_SIZES; ++i) {
        for (repeat = (check_sizes[i] > 100000) ? 1 : check_scaled(8); repeat > 0; --repeat) {
            ping_pong(mode, check_sizes[i], partner);
        }
    }
    for (length = 8100; length <= 8300; length += (mode == SEND) ? 1 : 13) {
        ping_pong(mode, length, partner);
    }
}

/** Both directions at once, of unequal sizes. */
static void test_sendrecv(int partner)
{
    size_t out, in;
    MPI_Status status;
    int i, other;

    check_phase("MPI_Sendrecv");
    for (i = 0; i < CHECK_SIZES; ++i) {
        other = (i * 5 + 3) % CHECK_SIZES;
        out   = check_sizes[(check.rank < partner) ? i : other];
        in    = check_sizes[(check.rank < partner) ? other : i];
        check_fill(sendbuf.data, out, check.rank, TAG, sent++);
        memset(recvbuf.data, CHECK_POISON_BYTE, in);
        MPI_Sendrecv(sendbuf.data, (int)out, MPI_BYTE, partner, TAG, recvbuf.data, LARGEST, MPI_BYTE, partner, TAG,
                     MPI_COMM_WORLD, &status);
        check_scribble(sendbuf.data, out);
        check_status(&status, partner, TAG, in);
        check_bytes(recvbuf.data, in, partner, TAG, received++);
    }
}

static void test_sendrecv_replace(int partner)
{
    MPI_Status status;
    int i;

    check_phase("MPI_Sendrecv_replace");
    for (i = 0; i < CHECK_SIZES; ++i) {
        check_fill(recvbuf.data, check_sizes[i], check.rank, TAG, sent++);
        MPI_Sendrecv_replace(recvbuf.data, (int)check_sizes[i], MPI_BYTE, partner, TAG, partner, TAG, MPI_COMM_WORLD,
                             &status);
        check_status(&status, partner, TAG, check_sizes[i]);
        check_bytes(recvbuf.data, check_sizes[i], partner, TAG, received++);
    }
}

/** MPI_Buffer_detach returns only when the buffered messages have left: the memory is ours again then. */
static void test_detach(int partner)
{
    static const size_t lengths[] = {0, 100, 9000, 70000, 300000};
    enum { COUNT = CHECK_COUNT_OF(lengths) };
    int size       = 500000 + COUNT * MPI_BSEND_OVERHEAD;
    void *attached = malloc((size_t)size);
    MPI_Request requests[COUNT];
    check_buffer_t buffers[COUNT];
    int i;

    check_phase("MPI_Buffer_detach");
    MPI_Buffer_attach(attached, size);
    for (i = 0; i < COUNT; ++i) {
        check_buffer_make(&buffers[i], lengths[i], 0);
        MPI_Irecv(buffers[i].data, (int)lengths[i], MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    for (i = 0; i < COUNT; ++i) {
        check_fill(sendbuf.data, lengths[i], check.rank, TAG, sent++);
        MPI_Bsend(sendbuf.data, (int)lengths[i], MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        check_scribble(sendbuf.data, lengths[i]);
    }
    MPI_Buffer_detach(&attached, &size);
    check_scribble(attached, (size_t)size);
    free(attached);
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < COUNT; ++i) {
        check_bytes(buffers[i].data, lengths[i], partner, TAG, received++);
        check_buffer_free(&buffers[i]);
    }
}

int main(int argc, char **argv)
{
    int size = 3 * (LARGEST + MPI_BSEND_OVERHEAD);
    void *attached;
    int partner, mode;

    check_init(&argc, &argv, "p2p_blocking");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    check_buffer_make(&sendbuf, LARGEST, 3);
    check_buffer_make(&recvbuf, LARGEST, 5);

    attached = malloc((size_t)size);
    MPI_Buffer_attach(attached, size);
    for (mode = 0; mode < MODES; ++mode) {
        test_mode((send_mode_t)mode, partner);
    }
    MPI_Buffer_detach(&attached, &size);
    free(attached);
    test_sendrecv(partner);
    test_sendrecv_replace(partner);
    test_detach(partner);

    check_buffer_free(&sendbuf);
    check_buffer_free(&recvbuf);
    return check_finish();
}
