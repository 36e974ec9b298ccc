/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages do not overtake each other: small after large, large after small, in every mode, on several tags and
 * communicators, received posted or late, by tag, in another order of tags, and with wildcards.
 *
 * @ranks 2
 */
#include "check.h"

enum { MESSAGES = 60, TAGS = 3, COMMS = 3, LARGEST = 600000 };

typedef enum { SAME_TAG, TAG_BY_TAG, WILD, ORDERS } order_t;

static const char *const order_names[] = {"one tag", "tag by tag", "wildcards"};

static MPI_Comm comms[COMMS];
static int messages = MESSAGES; /* fewer, still of every length, where each is damaged again and again */

/** Sizes jump between the protocols from one message to the next. */
static size_t message_length(int i, uint64_t round)
{
    static const size_t lengths[] = {8, 400000, 0, 8184, 8300, 16, 65537, 1, 4097, 600000, 64, 30000};

    return lengths[((size_t)i + round) % CHECK_COUNT_OF(lengths)];
}

static int message_tag(order_t order, int i)
{
    return (order == SAME_TAG) ? 1 : 1 + i % TAGS;
}

/** Message i of a round on communicator c */
static uint64_t message_index(int c, int i, uint64_t round)
{
    return (round * COMMS + (uint64_t)c) * messages + (uint64_t)i;
}

static void send_all(order_t order, uint64_t round, int partner)
{
    MPI_Request requests[COMMS * MESSAGES];
    check_buffer_t out[COMMS * MESSAGES];
    int i, c, tag, n = 0;

    for (i = 0; i < messages; ++i) {
        for (c = 0; c < COMMS; ++c, ++n) {
            tag = message_tag(order, i);
            check_buffer_make(&out[n], message_length(i, round), (size_t)i % 8);
            check_fill(out[n].data, out[n].length, check.rank, tag, message_index(c, i, round));
            if (i % 5 == 2) {
                MPI_Issend(out[n].data, (int)out[n].length, MPI_BYTE, partner, tag, comms[c], &requests[n]);
            } else {
                MPI_Isend(out[n].data, (int)out[n].length, MPI_BYTE, partner, tag, comms[c], &requests[n]);
            }
        }
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < n; ++i) {
        check_buffer_free(&out[i]);
    }
}

/** The n-th receive on a communicator takes which message? */
static int nth_message(order_t order, int n)
{
    const int per_tag = messages / TAGS;

    /* the last tag first */
    return (order == TAG_BY_TAG) ? (n % per_tag) * TAGS + (TAGS - 1 - n / per_tag) : n;
}

static void receive_all(order_t order, uint64_t round, int partner, int posted)
{
    MPI_Request requests[COMMS * MESSAGES];
    MPI_Status statuses[COMMS * MESSAGES];
    check_buffer_t in[COMMS * MESSAGES];
    int c, i, k, n = 0;

    /* the last communicator first */
    for (c = COMMS - 1; c >= 0; --c) {
        for (k = 0; k < messages; ++k, ++n) {
            int source = ((order == WILD) && (k % 2)) ? MPI_ANY_SOURCE : partner;
            int tag    = (order == WILD) ? MPI_ANY_TAG : message_tag(order, nth_message(order, k));

            check_buffer_make(&in[n], LARGEST, (size_t)k % 8);
            if (posted) {
                MPI_Irecv(in[n].data, LARGEST, MPI_BYTE, source, tag, comms[c], &requests[n]);
            } else {
                MPI_Recv(in[n].data, LARGEST, MPI_BYTE, source, tag, comms[c], &statuses[n]);
            }
        }
    }
    if (posted) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(n, requests, statuses);
    }
    for (n = 0; n < COMMS * messages; ++n) {
        c          = COMMS - 1 - n / messages;
        i          = nth_message(order, n % messages);
        check.step = n;
        check_status(&statuses[n], partner, message_tag(order, i), message_length(i, round));
        check_bytes(in[n].data, message_length(i, round), partner, message_tag(order, i), message_index(c, i, round));
        check_buffer_free(&in[n]);
    }
}

int main(int argc, char **argv)
{
    int partner, order, posted, c, repeat;
    uint64_t round = 0;

    check_init(&argc, &argv, "ordering");
    if (check.scale < 0.2) {
        messages = TAGS * check_scaled(2 * MESSAGES / TAGS);
    }
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    comms[0] = MPI_COMM_WORLD;
    for (c = 1; c < COMMS; ++c) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
    }
    for (repeat = 2 * check_scaled(1); repeat > 0; --repeat) {
        for (order = 0; order < ORDERS; ++order) {
            for (posted = 0; posted < 2; ++posted, ++round) {
                check_phase(order_names[order]);
                if ((check.rank < partner) == (repeat % 2)) {
                    receive_all((order_t)order, round, partner, posted);
                } else {
                    if (posted) {
                        MPI_Barrier(MPI_COMM_WORLD);
                    }
                    send_all((order_t)order, round, partner);
                }
            }
        }
    }
    for (c = 1; c < COMMS; ++c) {
        MPI_Comm_free(&comms[c]);
    }
    return check_finish();
}
