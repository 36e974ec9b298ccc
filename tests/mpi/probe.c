/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Probe and MPI_Iprobe: the length is the user's, the probed message is the one the next matching receive
 * gets, a probe takes nothing away, and what a posted receive has matched is not seen.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 50, TAG_OTHER = 51, TAG_NEVER = 52, LARGEST = 1048579 };

static check_buffer_t out, in;
static uint64_t sent, received; /* per direction; all messages of a pair are numbered in the order sent */

static void send_message(size_t length, int dest, int tag)
{
    check_fill(out.data, length, check.rank, tag, sent++);
    MPI_Send(out.data, (int)length, MPI_BYTE, dest, tag, MPI_COMM_WORLD);
    check_scribble(out.data, length);
}

static void receive_message(size_t length, int source, int tag, uint64_t index)
{
    MPI_Status status;

    memset(in.data, CHECK_POISON_BYTE, length);
    MPI_Recv(in.data, (int)length, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status);
    check_status(&status, source, tag, length);
    check_bytes(in.data, length, source, tag, index);
}

/** Poll until there is something; what must not be there is looked for too. */
static void iprobe_until(int source, int tag, MPI_Status *status)
{
    int flag = 0, never;

    while (!flag) {
        MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, status);
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_NEVER, MPI_COMM_WORLD, &never, MPI_STATUS_IGNORE);
        CHECK(!never, "found a message that nobody sent");
    }
}

/** Every size, each way of asking, asked twice; then received into exactly that much room. */
static void test_lengths(int partner, int receiving)
{
    const int sources[] = {partner, MPI_ANY_SOURCE, partner, MPI_ANY_SOURCE};
    const int tags[]    = {TAG, TAG, MPI_ANY_TAG, MPI_ANY_TAG};
    MPI_Status status;
    int i, way, count;

    check_phase("lengths");
    for (i = 0; i < CHECK_SIZES - 1; ++i) {
        for (way = 0; way < 8; ++way) {
            check.step = i * 8 + way;
            if (!receiving) {
                send_message(check_sizes[i], partner, TAG);
                continue;
            }
            if (way < 4) {
                MPI_Probe(sources[way], tags[way], MPI_COMM_WORLD, &status);
                check_status(&status, partner, TAG, check_sizes[i]);
                MPI_Probe(partner, TAG, MPI_COMM_WORLD, &status);
            } else {
                iprobe_until(sources[way % 4], tags[way % 4], &status);
                check_status(&status, partner, TAG, check_sizes[i]);
                iprobe_until(MPI_ANY_SOURCE, TAG, &status);
            }
            check_status(&status, partner, TAG, check_sizes[i]);
            MPI_Get_count(&status, MPI_INT, &count);
            CHECK(count == ((check_sizes[i] % sizeof(int)) ? MPI_UNDEFINED : (int)(check_sizes[i] / sizeof(int))),
                  "MPI_Get_count said %d ints in %zu bytes", count, check_sizes[i]);
            receive_message(check_sizes[i], partner, TAG, received++);
        }
    }
}

/** A message that was probed stays first for plain receives; another tag passes it. */
static void test_order(int partner, int receiving)
{
    static const size_t lengths[] = {100, 8300, 300000};
    MPI_Status status;
    unsigned i, j;
    int repeat;

    check_phase("order");
    for (repeat = check_scaled(30); repeat > 0; --repeat) {
        for (i = 0; i < 9; ++i) {
            j          = i / 3;
            check.step = repeat * 9 + (long)i;
            if (!receiving) {
                MPI_Request requests[3];
                check_buffer_t data[3];
                int m;

                for (m = 0; m < 3; ++m) {
                    check_buffer_make(&data[m], lengths[(m == 0) ? i % 3 : j], 0);
                    check_fill(data[m].data, data[m].length, check.rank, (m == 1) ? TAG_OTHER : TAG, sent++);
                    MPI_Isend(data[m].data, (int)data[m].length, MPI_BYTE, partner, (m == 1) ? TAG_OTHER : TAG,
                              MPI_COMM_WORLD, &requests[m]);
                }
                MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
                for (m = 0; m < 3; ++m) {
                    check_buffer_free(&data[m]);
                }
                continue;
            }
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status); /* sees the first */
            check_status(&status, partner, TAG, lengths[i % 3]);
            MPI_Probe(partner, TAG_OTHER, MPI_COMM_WORLD, &status); /* looks past it */
            check_status(&status, partner, TAG_OTHER, lengths[j]);
            receive_message(lengths[j], partner, TAG_OTHER, received + 1);
            iprobe_until(MPI_ANY_SOURCE, MPI_ANY_TAG, &status); /* still the first */
            check_status(&status, partner, TAG, lengths[i % 3]);
            receive_message(lengths[i % 3], partner, TAG, received);
            receive_message(lengths[j], partner, TAG, received + 2);
            received += 3;
        }
    }
}

/** A posted receive takes the first message; a probe for the same tag sees the second. */
static void test_posted(int partner, int receiving)
{
    static const size_t lengths[] = {10, 5000, 9000, 200000};
    MPI_Request request;
    MPI_Status status;
    check_buffer_t first;
    unsigned i;

    check_phase("posted receive and probe");
    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        check_buffer_make(&first, lengths[i], 1);
        if (receiving) {
            MPI_Irecv(first.data, (int)first.length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &request);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (receiving) {
            MPI_Probe(partner, TAG, MPI_COMM_WORLD, &status);
            check_status(&status, partner, TAG, 2 * lengths[i]);
            receive_message(2 * lengths[i], partner, TAG, received + 1);
            MPI_Wait(&request, &status);
            check_status(&status, partner, TAG, lengths[i]);
            check_bytes(first.data, first.length, partner, TAG, received);
            received += 2;
        } else {
            send_message(lengths[i], partner, TAG);
            send_message(2 * lengths[i], partner, TAG);
        }
        check_buffer_free(&first);
    }
}

/** Many lengths unknown to the receiver, from an MPI_Ssend that waits for the match. */
static void test_unknown_lengths(int partner, int receiving)
{
    uint64_t state = check.seed;
    MPI_Status status;
    size_t length;
    int i, count;

    check_phase("unknown lengths");
    for (i = check_scaled(400); i > 0; --i) {
        check.step = i;
        length     = check_random_size(&state, LARGEST);
        if (!receiving) {
            check_fill(out.data, length, check.rank, TAG, sent++);
            MPI_Ssend(out.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
            check_scribble(out.data, length);
            continue;
        }
        if (i % 2) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        } else {
            iprobe_until(MPI_ANY_SOURCE, MPI_ANY_TAG, &status);
        }
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK((size_t)count == length, "probed %d bytes of %zu", count, length);
        receive_message((size_t)count, status.MPI_SOURCE, status.MPI_TAG, received++);
    }
}

static void test_all(int partner, int receiving)
{
    test_lengths(partner, receiving);
    test_order(partner, receiving);
    test_posted(partner, receiving);
    test_unknown_lengths(partner, receiving);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int partner;

    check_init(&argc, &argv, "probe");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    check_buffer_make(&out, 4194304, 1);
    check_buffer_make(&in, 4194304, 3);
    test_all(partner, check.rank < partner);
    test_all(partner, check.rank > partner);
    check_buffer_free(&out);
    check_buffer_free(&in);
    return check_finish();
}
