/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages to oneself, small and large, on MPI_COMM_WORLD and MPI_COMM_SELF; messages without a byte; and
 * MPI_PROC_NULL in every call.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 80, WINDOW = 20, EAGER_SURELY = 4096 };

static uint64_t number;

static MPI_Comm communicator;
static int me;

/** Post in either order, complete, check. */
static void test_isend_irecv(size_t length, int receive_first)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    check_buffer_t out, in;

    check_buffer_make(&out, length, 1);
    check_buffer_make(&in, length, 2);
    check_fill(out.data, length, me, TAG, number);
    if (receive_first) {
        MPI_Irecv(in.data, (int)length, MPI_BYTE, MPI_ANY_SOURCE, TAG, communicator, &requests[1]);
        MPI_Isend(out.data, (int)length, MPI_BYTE, me, TAG, communicator, &requests[0]);
    } else {
        MPI_Isend(out.data, (int)length, MPI_BYTE, me, TAG, communicator, &requests[0]);
        MPI_Irecv(in.data, (int)length, MPI_BYTE, me, MPI_ANY_TAG, communicator, &requests[1]);
    }
    MPI_Waitall(2, requests, statuses);
    check_status(&statuses[1], me, TAG, length);
    check_bytes(in.data, length, me, TAG, number++);
    check_buffer_free(&out);
    check_buffer_free(&in);
}

/** Synchronous and ready sends, and blocking ones that find their receive posted. */
static void test_blocking_sends(size_t length)
{
    MPI_Request request;
    MPI_Status status;
    check_buffer_t out, in;
    int mode;

    for (mode = 0; mode < 3; ++mode) {
        check_buffer_make(&out, length, 3);
        check_buffer_make(&in, length, 4);
        check_fill(out.data, length, me, TAG, number);
        MPI_Irecv(in.data, (int)length, MPI_BYTE, me, TAG, communicator, &request);
        if (mode == 0) {
            MPI_Send(out.data, (int)length, MPI_BYTE, me, TAG, communicator);
        } else if (mode == 1) {
            MPI_Ssend(out.data, (int)length, MPI_BYTE, me, TAG, communicator);
        } else {
            MPI_Rsend(out.data, (int)length, MPI_BYTE, me, TAG, communicator);
        }
        check_scribble(out.data, length);
        MPI_Wait(&request, &status);
        check_status(&status, me, TAG, length);
        check_bytes(in.data, length, me, TAG, number++);
        check_buffer_free(&out);
        check_buffer_free(&in);
    }
}

static void test_sendrecv(size_t length)
{
    MPI_Status status;
    check_buffer_t out, in;

    check_buffer_make(&out, length, 5);
    check_buffer_make(&in, length, 6);
    check_fill(out.data, length, me, TAG, number);
    MPI_Sendrecv(out.data, (int)length, MPI_BYTE, me, TAG, in.data, (int)length, MPI_BYTE, me, TAG, communicator,
                 &status);
    check_status(&status, me, TAG, length);
    check_bytes(in.data, length, me, TAG, number++);
    check_fill(in.data, length, me, TAG, number);
    MPI_Sendrecv_replace(in.data, (int)length, MPI_BYTE, me, TAG, me, TAG, communicator, &status);
    check_status(&status, me, TAG, length);
    check_bytes(in.data, length, me, TAG, number++);
    check_buffer_free(&out);
    check_buffer_free(&in);
}

/** Small messages may be sent before they are received, many of them; probes see them. */
static void test_unexpected(size_t length)
{
    unsigned char *data = malloc(length + 1);
    MPI_Message message;
    MPI_Status status;
    int i;

    for (i = 0; i < WINDOW; ++i) {
        check_fill(data, length, me, TAG, number + (uint64_t)i);
        MPI_Send(data, (int)length, MPI_BYTE, me, TAG, communicator);
    }
    for (i = 0; i < WINDOW; ++i) {
        memset(data, CHECK_POISON_BYTE, length);
        if (i % 2) {
            MPI_Mprobe(me, MPI_ANY_TAG, communicator, &message, &status);
            check_status(&status, me, TAG, length);
            MPI_Mrecv(data, (int)length, MPI_BYTE, &message, &status);
        } else {
            MPI_Probe(MPI_ANY_SOURCE, TAG, communicator, &status);
            check_status(&status, me, TAG, length);
            MPI_Recv(data, (int)length, MPI_BYTE, me, TAG, communicator, &status);
        }
        check_status(&status, me, TAG, length);
        check_bytes(data, length, me, TAG, number++);
    }
    free(data);
}

/** MPICH matches MPI_COMM_SELF by itself, without UCX, and its sends there wait for the receive. */
static int buffers_sends(MPI_Comm comm)
{
#ifdef MPICH_VERSION
    return comm != MPI_COMM_SELF;
#else
    return comm != MPI_COMM_NULL;
#endif
}

static void test_communicator(MPI_Comm comm)
{
    int i, repeat;

    communicator = comm;
    MPI_Comm_rank(comm, &me);
    for (i = 0; i < CHECK_SIZES; ++i) {
        check.step = (long)check_sizes[i];
        for (repeat = (check_sizes[i] > 70000) ? 1 : check_scaled(10); repeat > 0; --repeat) {
            test_isend_irecv(check_sizes[i], 0);
            test_isend_irecv(check_sizes[i], 1);
            test_blocking_sends(check_sizes[i]);
            test_sendrecv(check_sizes[i]);
            if ((check_sizes[i] <= EAGER_SURELY) && buffers_sends(comm)) {
                test_unexpected(check_sizes[i]);
            }
        }
    }
}

/** No bytes, but a message all the same: order, tags and counts hold. */
static void test_zero_length(void)
{
    int partner = check_partner();
    MPI_Request requests[WINDOW];
    MPI_Status status;
    int i, repeat, count;

    check_phase("zero length");
    for (repeat = check_scaled(50); repeat > 0; --repeat) {
        for (i = 0; i < WINDOW; ++i) {
            MPI_Isend(NULL, 0, (i % 2) ? MPI_BYTE : MPI_DOUBLE, partner, TAG + i, MPI_COMM_WORLD, &requests[i]);
        }
        for (i = 0; i < WINDOW; ++i) {
            if (i % 3 == 0) {
                MPI_Probe(partner, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                check_status(&status, partner, TAG + i, 0);
            }
            MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            check_status(&status, partner, TAG + i, 0);
            MPI_Get_count(&status, MPI_DOUBLE, &count);
            CHECK(count == 0, "%d doubles in no bytes", count);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
}

static void check_null_status(const MPI_Status *status)
{
    check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

static void test_proc_null(void)
{
    const int null = MPI_PROC_NULL;
    MPI_Request requests[5];
    MPI_Status status, statuses[5];
    char byte = 17, in = 18;
    int i, flag;

    check_phase("MPI_PROC_NULL");
    for (i = check_scaled(200); i > 0; --i) {
        MPI_Send(&byte, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD);
        MPI_Ssend(&byte, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD);
        MPI_Rsend(&byte, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD);
        MPI_Bsend(&byte, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD);
        MPI_Recv(&in, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD, &status);
        check_null_status(&status);
        MPI_Sendrecv(&byte, 1, MPI_BYTE, null, TAG, &in, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD, &status);
        check_null_status(&status);
        MPI_Sendrecv_replace(&in, 1, MPI_BYTE, null, TAG, null, TAG, MPI_COMM_WORLD, &status);
        check_null_status(&status);
        MPI_Probe(null, TAG, MPI_COMM_WORLD, &status);
        check_null_status(&status);
        MPI_Iprobe(null, TAG, MPI_COMM_WORLD, &flag, &status);
        CHECK(flag, "Iprobe of MPI_PROC_NULL found nothing");
        check_null_status(&status);
        MPI_Isend(&byte, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Issend(&byte, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Irsend(&byte, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD, &requests[2]);
        MPI_Ibsend(&byte, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD, &requests[3]);
        MPI_Irecv(&in, 1, MPI_BYTE, null, TAG, MPI_COMM_WORLD, &requests[4]);
        MPI_Waitall(5, requests, statuses);
        check_null_status(&statuses[4]);
    }
    CHECK((byte == 17) && (in == 18), "a byte came from nobody");
}

int main(int argc, char **argv)
{
    char attached[1024 + MPI_BSEND_OVERHEAD];
    void *detached;
    int size;

    check_init(&argc, &argv, "self");
    check_phase("to self on MPI_COMM_WORLD");
    test_communicator(MPI_COMM_WORLD);
    check_phase("to self on MPI_COMM_SELF");
    test_communicator(MPI_COMM_SELF);
    MPI_Barrier(MPI_COMM_WORLD); /* what follows is to the other rank, which may still receive from whomever */
    test_zero_length();
    MPI_Buffer_attach(attached, sizeof(attached));
    test_proc_null();
    MPI_Buffer_detach(&detached, &size);
    return check_finish();
}
