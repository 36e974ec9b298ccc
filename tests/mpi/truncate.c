/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A message longer than the receive: MPI_ERR_TRUNCATE at the receiver, success at the sender, no byte beyond the
 * buffer, and everything goes on as before. Eager and large, posted before and after, in every kind of receive.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 90, TAG_GOOD = 91 };

typedef enum { RECV, IRECV_POSTED, IRECV_LATE, WAITALL, MRECV, VECTOR, KINDS } kind_t;

static const char *const kind_names[] = {
        "MPI_Recv", "MPI_Irecv posted before", "MPI_Irecv after", "MPI_Waitall", "MPI_Mrecv", "vector type"};

static uint64_t sent, received;

static int error_class(int error)
{
    int class;

    MPI_Error_class(error, &class);
    return class;
}

static void expect_truncated(int error, size_t length, size_t room)
{
    char text[MPI_MAX_ERROR_STRING];
    int size;

    if (error_class(error) != MPI_ERR_TRUNCATE) {
        MPI_Error_string(error, text, &size);
        check_fail("%zu bytes into %zu: expected MPI_ERR_TRUNCATE, got %d (%s)", length, room, error, text);
    }
}

static void send_checked(size_t length, int dest, int tag)
{
    check_buffer_t out;
    MPI_Request request;
    int error;

    check_buffer_make(&out, length, 1);
    check_fill(out.data, length, check.rank, tag, sent++);
    if (sent % 2) {
        error = MPI_Send(out.data, (int)length, MPI_BYTE, dest, tag, MPI_COMM_WORLD);
    } else {
        MPI_Isend(out.data, (int)length, MPI_BYTE, dest, tag, MPI_COMM_WORLD, &request);
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(error == MPI_SUCCESS, "the sender was told of an error (%d)", error);
    check_buffer_free(&out);
}

static void receive_good(size_t length, int source)
{
    check_buffer_t in;
    MPI_Status status;
    int error;

    check_buffer_make(&in, length, 1);
    error = MPI_Recv(in.data, (int)length, MPI_BYTE, source, TAG_GOOD, MPI_COMM_WORLD, &status);
    CHECK(error == MPI_SUCCESS, "a good message got error %d", error);
    check_status(&status, source, TAG_GOOD, length);
    check_bytes(in.data, length, source, TAG_GOOD, received++);
    check_buffer_free(&in);
}

/** Two receives at once, the second one long enough: only the first has failed. */
static void waitall_truncated(check_buffer_t *in, size_t length, int source)
{
    check_buffer_t good;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int error;

    check_buffer_make(&good, length, 0);
    MPI_Irecv(in->data, (int)in->length, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(good.data, (int)length, MPI_BYTE, source, TAG_GOOD, MPI_COMM_WORLD, &requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    error = MPI_Waitall(2, requests, statuses);
    CHECK(error_class(error) == MPI_ERR_IN_STATUS, "MPI_Waitall returned %d", error);
    expect_truncated(statuses[0].MPI_ERROR, length, in->length);
    if (requests[1] != MPI_REQUEST_NULL) {
        statuses[1].MPI_ERROR = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) {
        /* Open MPI 4.1 frees a pending request here: when it ends, nobody can tell. Keep its memory. */
        ++received;
        return;
    }
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS, "the good one of two got error %d", statuses[1].MPI_ERROR);
    check_bytes(good.data, length, source, TAG_GOOD, received++);
    check_buffer_free(&good);
}

static void receive_truncated(kind_t kind, size_t length, size_t room, int source)
{
    check_buffer_t in;
    MPI_Request request;
    MPI_Message message;
    MPI_Datatype type;
    int error;

    check_buffer_make(&in, room, 3);
    if (kind == WAITALL) {
        waitall_truncated(&in, length, source);
        check_buffer_free(&in);
        return;
    }
    if (kind == IRECV_POSTED) {
        MPI_Irecv(in.data, (int)room, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &request);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    switch (kind) {
    case RECV:
        error = MPI_Recv(in.data, (int)room, MPI_BYTE, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case MRECV:
        MPI_Mprobe(source, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        error = MPI_Mrecv(in.data, (int)room, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        break;
    case VECTOR: /* two of every three bytes of the buffer */
        MPI_Type_vector((int)(room / 3), 2, 3, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        error = MPI_Recv(in.data, 1, type, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
        break;
    case IRECV_LATE:
        check_sleep_ms(1);
        MPI_Irecv(in.data, (int)room, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &request);
        /* fall through */
    default:
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    }
    expect_truncated(error, length, room);
    check_buffer_free(&in); /* looks at the guards */
}

static void test_kind(kind_t kind, size_t length, size_t room, int partner, int receiving)
{
    check.step = (long)length;
    if (receiving) {
        receive_truncated(kind, length, room, partner);
        ++received;
        if (kind == WAITALL) {
            return;
        }
        receive_good(100, partner);
        receive_good(length, partner);
        receive_good(9000, partner);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        if (kind == WAITALL) { /* the good one first, so that it is not pending when the error ends the wait */
            send_checked(length, partner, TAG_GOOD);
            send_checked(length, partner, TAG);
            return;
        }
        send_checked(length, partner, TAG);
        send_checked(100, partner, TAG_GOOD);
        send_checked(length, partner, TAG_GOOD);
        send_checked(9000, partner, TAG_GOOD);
    }
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {1, 100, 4096, 8183, 8300, 20000, 65537, 300000, 1048579, 4194304};
    int partner, kind, direction, repeat;
    size_t length;
    unsigned i;

    check_init(&argc, &argv, "truncate");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    for (direction = 0; direction < 2; ++direction) {
        for (kind = 0; kind < KINDS; ++kind) {
            check_phase(kind_names[kind]);
            for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
                length = lengths[i];
                for (repeat = (length > 70000) ? 1 : check_scaled(4); repeat > 0; --repeat) {
                    /* one byte short, half, almost nothing, nothing */
                    test_kind((kind_t)kind, length, length - 1, partner, (check.rank < partner) == direction);
                    test_kind((kind_t)kind, length, length / 2, partner, (check.rank < partner) == direction);
                    test_kind((kind_t)kind, length, length > 7 ? 7 : 0, partner, (check.rank < partner) == direction);
                    test_kind((kind_t)kind, length, 0, partner, (check.rank < partner) == direction);
                }
            }
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    check.messages += 1; /* the rank that only sent has checked that its sends succeed */
    return check_finish();
}
