/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Matched probes: MPI_Mprobe, Improbe, Mrecv, Imrecv. A matched message is out of reach of other receives, may be
 * received late and in any order, and later messages of its tag do not overtake what is still queued.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 60, TAG_NEVER = 61, BATCH = 24, LARGEST = 1048579 };

static uint64_t sent, received;

static void send_batch(const size_t *lengths, int count, int partner)
{
    MPI_Request requests[BATCH];
    check_buffer_t out[BATCH];
    int i;

    for (i = 0; i < count; ++i) {
        check_buffer_make(&out[i], lengths[i], (size_t)i % 8);
        check_fill(out[i].data, lengths[i], check.rank, TAG, sent++);
        MPI_Isend(out[i].data, (int)lengths[i], MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < count; ++i) {
        check_buffer_free(&out[i]);
    }
}

/** Match the next message in one of eight ways and check what is said of it. */
static void match_next(int way, size_t length, int partner, MPI_Message *message)
{
    int source = (way & 1) ? MPI_ANY_SOURCE : partner;
    int tag    = (way & 2) ? MPI_ANY_TAG : TAG;
    MPI_Status status;
    int flag = 0;

    if (way & 4) {
        while (!flag) {
            MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, message, &status);
        }
    } else {
        MPI_Mprobe(source, tag, MPI_COMM_WORLD, message, &status);
    }
    CHECK(*message != MPI_MESSAGE_NULL, "a match without a message");
    check_status(&status, partner, TAG, length);
    MPI_Improbe(partner, TAG_NEVER, MPI_COMM_WORLD, &flag, message + BATCH, &status);
    CHECK(!flag, "found a message that nobody sent");
}

/** Match the whole batch, then receive it backwards, half of it without blocking. */
static void receive_backwards(const size_t *lengths, int partner)
{
    MPI_Message messages[2 * BATCH];
    MPI_Request requests[BATCH];
    MPI_Status statuses[BATCH];
    check_buffer_t in[BATCH];
    int i;

    for (i = 0; i < BATCH; ++i) {
        check.step = i;
        match_next(i % 8, lengths[i], partner, &messages[i]);
    }
    for (i = BATCH - 1; i >= 0; --i) {
        check_buffer_make(&in[i], lengths[i], (size_t)i % 5);
        if (i % 2) {
            MPI_Imrecv(in[i].data, (int)lengths[i], MPI_BYTE, &messages[i], &requests[i]);
        } else {
            MPI_Mrecv(in[i].data, (int)lengths[i], MPI_BYTE, &messages[i], &statuses[i]);
            requests[i] = MPI_REQUEST_NULL;
        }
        CHECK(messages[i] == MPI_MESSAGE_NULL, "the message handle was not reset");
    }
    for (i = 0; i < BATCH; ++i) {
        if (i % 2) {
            MPI_Wait(&requests[i], &statuses[i]);
        }
        check_status(&statuses[i], partner, TAG, lengths[i]);
        check_bytes(in[i].data, lengths[i], partner, TAG, received++);
        check_buffer_free(&in[i]);
    }
}

/** Every third message is taken by a matched probe and received only after its followers came by plain receives. */
static void receive_mixed(const size_t *lengths, int partner)
{
    MPI_Message messages[BATCH + 1];
    MPI_Status status;
    check_buffer_t in;
    int i, j;

    for (i = 0; i < BATCH; i += 3) {
        match_next(i % 8, lengths[i], partner, &messages[0]);
        for (j = i + 1; j <= i + 3; ++j) {
            size_t length = lengths[(j == i + 3) ? i : j];

            check_buffer_make(&in, length, (size_t)j % 8);
            if (j == i + 3) {
                MPI_Mrecv(in.data, (int)length, MPI_BYTE, &messages[0], &status);
            } else {
                MPI_Recv(in.data, (int)length, MPI_BYTE, (j % 2) ? partner : MPI_ANY_SOURCE,
                         (j % 2) ? MPI_ANY_TAG : TAG, MPI_COMM_WORLD, &status);
            }
            check_status(&status, partner, TAG, length);
            check_bytes(in.data, length, partner, TAG, received + (uint64_t)((j == i + 3) ? i : j));
            check_buffer_free(&in);
        }
    }
    received += BATCH;
}

static void test_batches(int partner, int receiving)
{
    uint64_t state = check.seed;
    size_t lengths[BATCH];
    int repeat, i, mixed;

    for (repeat = check_scaled(60); repeat > 0; --repeat) {
        for (mixed = 0; mixed < 2; ++mixed) {
            for (i = 0; i < BATCH; ++i) {
                lengths[i] = (repeat == 1) ? check_sizes[(i + mixed * 4) % CHECK_SIZES]
                                           : check_random_size(&state, LARGEST);
            }
            check_phase(mixed ? "mixed with plain receives" : "matched first, received backwards");
            if (!receiving) {
                send_batch(lengths, BATCH, partner);
            } else if (mixed) {
                receive_mixed(lengths, partner);
            } else {
                receive_backwards(lengths, partner);
            }
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Nobody's message: matched at once, and empty. */
static void test_proc_null(void)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int flag;

    check_phase("MPI_PROC_NULL");
    MPI_Mprobe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC, "Mprobe of MPI_PROC_NULL");
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI_Improbe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &flag, &message, &status);
    CHECK(flag && (message == MPI_MESSAGE_NO_PROC), "Improbe of MPI_PROC_NULL");
    MPI_Imrecv(NULL, 0, MPI_BYTE, &message, &request);
    MPI_Wait(&request, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

int main(int argc, char **argv)
{
    int partner;

    check_init(&argc, &argv, "mprobe");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    test_batches(partner, check.rank < partner);
    test_batches(partner, check.rank > partner);
    test_proc_null();
    return check_finish();
}
