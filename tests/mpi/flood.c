/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Floods of messages that nobody waits for yet: 20000 small ones before the first receive begins, taken in order
 * or by the last tag first; and one early message of another tag that stays unmatched until the very end.
 *
 * @ranks 2
 */
#include "check.h"

enum { MESSAGES = 20000, TAG = 130, TAG_EARLY = 140, TAG_EARLY_LARGE = 141, TAG_END = 142, TAGS = 4, LARGEST = 2048 };

static size_t message_length(int i)
{
    return (i % 97 == 5) ? LARGEST : (size_t)(i * 7) % 64;
}

static void send_flood(int count, uint64_t base, int dest)
{
    unsigned char data[LARGEST];
    int i;

    for (i = 0; i < count; ++i) {
        check.step = i;
        check_fill(data, message_length(i), check.rank, TAG + i % TAGS, base + (uint64_t)i);
        MPI_Send(data, (int)message_length(i), MPI_BYTE, dest, TAG + i % TAGS, MPI_COMM_WORLD);
    }
    MPI_Send(NULL, 0, MPI_BYTE, dest, TAG_END, MPI_COMM_WORLD);
}

/** @a by_tag: all of the last tag first, and so on. Else in order, with a wildcard if @a any. */
static void receive_flood(int count, uint64_t base, int source, int by_tag, int any)
{
    unsigned char data[LARGEST];
    MPI_Status status;
    int n, i, tag;

    MPI_Recv(NULL, 0, MPI_BYTE, source, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the last one: all are here */
    for (n = 0; n < count; ++n) {
        check.step = n;
        i          = by_tag ? (n % (count / TAGS)) * TAGS + (TAGS - 1 - n / (count / TAGS)) : n;
        tag        = TAG + i % TAGS;
        memset(data, CHECK_POISON_BYTE, message_length(i));
        MPI_Recv(data, LARGEST, MPI_BYTE, any ? MPI_ANY_SOURCE : source, tag, MPI_COMM_WORLD, &status);
        check_status(&status, source, tag, message_length(i));
        check_bytes(data, message_length(i), source, tag, base + (uint64_t)i);
    }
}

/** Both at once, each sending before it receives. */
static void test_both_ways(int count, uint64_t base, int partner)
{
    check_phase("both ways");
    send_flood(count, base, partner);
    receive_flood(count, base, partner, 0, 0);
}

int main(int argc, char **argv)
{
    enum { EARLY_LARGE = 500000 };
    unsigned char early[100];
    check_buffer_t large, in;
    MPI_Request request;
    MPI_Status status;
    int partner, round, count;

    check_init(&argc, &argv, "flood");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    count = check_scaled(MESSAGES / TAGS) * TAGS;

    check_phase("early messages");
    check_buffer_make(&large, EARLY_LARGE, 0);
    check_buffer_make(&in, EARLY_LARGE, 0);
    check_fill(early, sizeof(early), check.rank, TAG_EARLY, 0);
    MPI_Send(early, sizeof(early), MPI_BYTE, partner, TAG_EARLY, MPI_COMM_WORLD);
    check_fill(large.data, EARLY_LARGE, check.rank, TAG_EARLY_LARGE, 0);
    MPI_Isend(large.data, EARLY_LARGE, MPI_BYTE, partner, TAG_EARLY_LARGE, MPI_COMM_WORLD, &request);

    for (round = 0; round < 4; ++round) {
        check_phase((round / 2) ? "by tag" : "in order");
        if ((check.rank < partner) == round % 2) {
            send_flood(count, (uint64_t)round * MESSAGES * 2, partner);
        } else {
            receive_flood(count, (uint64_t)round * MESSAGES * 2, partner, round / 2, round == 1);
        }
    }
    test_both_ways(count / 10 / TAGS * TAGS, (uint64_t)round * MESSAGES * 2, partner);

    check_phase("early messages at the end");
    memset(early, CHECK_POISON_BYTE, sizeof(early));
    MPI_Recv(in.data, EARLY_LARGE, MPI_BYTE, partner, TAG_EARLY_LARGE, MPI_COMM_WORLD, &status);
    check_status(&status, partner, TAG_EARLY_LARGE, EARLY_LARGE);
    check_bytes(in.data, EARLY_LARGE, partner, TAG_EARLY_LARGE, 0);
    MPI_Recv(early, sizeof(early), MPI_BYTE, partner, TAG_EARLY, MPI_COMM_WORLD, &status);
    check_status(&status, partner, TAG_EARLY, sizeof(early));
    check_bytes(early, sizeof(early), partner, TAG_EARLY, 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_buffer_free(&large);
    check_buffer_free(&in);
    return check_finish();
}
