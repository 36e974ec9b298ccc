/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_ANY_SOURCE and MPI_ANY_TAG, alone and together, blocking and posted before: every rank sends to every rank,
 * itself included. What must hold: each message arrives once, and those that match the same receive from the same
 * source arrive in the order sent.
 *
 * @ranks 2 4
 * @args 4: 0.3
 * @args mpich 4: 0.1
 */
#include "check.h"

enum { TAGS = 4, MAX_MESSAGES = 400, MAX_RANKS = 16, LARGEST = 200000 };

typedef enum { ANY_SOURCE, ANY_TAG, ANY_BOTH, EXACT, STYLES } style_t;

static const char *const style_names[] = {"any source", "any tag", "any source, any tag", "exact and any mixed"};

static MPI_Request requests[MAX_RANKS * MAX_MESSAGES];
static unsigned char *outgoing[MAX_RANKS * MAX_MESSAGES];

/** Message @a i of a round from @a source to @a dest has tag i % TAGS; what it holds names both ends. */
static uint64_t message_index(int dest, int i, uint64_t round)
{
    return (round * MAX_RANKS + (uint64_t)dest) * MAX_MESSAGES + (uint64_t)i;
}

static size_t message_length(int source, int dest, int i, uint64_t round)
{
    uint64_t state = check_key(source, 99, message_index(dest, i, round));

    return check_random_size(&state, LARGEST);
}

static int send_all(int messages, uint64_t round)
{
    int i, dest, n = 0;
    size_t length;

    for (i = 0; i < messages; ++i) {
        for (dest = 0; dest < check.size; ++dest, ++n) {
            length      = message_length(check.rank, dest, i, round);
            outgoing[n] = malloc(length + 1);
            check_fill(outgoing[n], length, check.rank, i % TAGS, message_index(dest, i, round));
            MPI_Isend(outgoing[n], (int)length, MPI_BYTE, dest, i % TAGS, MPI_COMM_WORLD, &requests[n]);
        }
    }
    return n;
}

static void finish_sends(int count)
{
    int i;

    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < count; ++i) {
        free(outgoing[i]);
    }
}

/** Which message of its source is it? Counted by source and tag, which is the order that MPI fixes always. */
static void verify(const void *data, const MPI_Status *status, int seen[MAX_RANKS][TAGS], uint64_t round)
{
    int source = status->MPI_SOURCE, tag = status->MPI_TAG;
    int i;

    CHECK((source >= 0) && (source < check.size), "source %d", source);
    CHECK((tag >= 0) && (tag < TAGS), "tag %d", tag);
    i = seen[source][tag]++ * TAGS + tag;
    check_status(status, source, tag, message_length(source, check.rank, i, round));
    check_bytes(data, message_length(source, check.rank, i, round), source, tag, message_index(check.rank, i, round));
}

/** Receives that match messages of several tags of one source must take them in the order sent, tag after tag. */
static void verify_tag_order(const MPI_Status *status, int next[MAX_RANKS])
{
    CHECK(status->MPI_TAG == next[status->MPI_SOURCE] % TAGS, "tag %d from rank %d overtook", status->MPI_TAG,
          status->MPI_SOURCE);
    ++next[status->MPI_SOURCE];
}

static void receive_blocking(style_t style, int messages, uint64_t round)
{
    int seen[MAX_RANKS][TAGS] = {{0}};
    int next[MAX_RANKS]       = {0};
    check_buffer_t in;
    MPI_Status status;
    int n, source, tag;

    for (n = 0; n < messages * check.size; ++n) {
        source = (style == ANY_TAG) ? n / messages : (style == EXACT) ? n % check.size : MPI_ANY_SOURCE;
        tag    = (style == ANY_SOURCE) ? n / (messages * check.size / TAGS) : MPI_ANY_TAG;
        if (style == EXACT) {
            tag    = (n / check.size) % TAGS;
            source = (n % 3 == 0) ? MPI_ANY_SOURCE : source;
        }
        check.step = n;
        check_buffer_make(&in, LARGEST, (size_t)n % 8);
        if (style == EXACT) {
            /* With a wildcard in between an exact source may run dry: ask first. */
            MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
            source = (source == MPI_ANY_SOURCE) ? source : status.MPI_SOURCE;
        }
        MPI_Recv(in.data, LARGEST, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status);
        verify(in.data, &status, seen, round);
        if ((style == ANY_TAG) || (style == ANY_BOTH)) {
            verify_tag_order(&status, next);
        }
        check_buffer_free(&in);
    }
}

/** All receives are there before the messages are. */
static void test_posted(style_t style, int messages, uint64_t round)
{
    int seen[MAX_RANKS][TAGS] = {{0}};
    int next[MAX_RANKS]       = {0};
    int total                 = messages * check.size;
    MPI_Request *receives     = malloc((size_t)total * sizeof(*receives));
    MPI_Status *statuses      = malloc((size_t)total * sizeof(*statuses));
    check_buffer_t *in        = malloc((size_t)total * sizeof(*in));
    int n, sends;

    for (n = 0; n < total; ++n) {
        check_buffer_make(&in[n], LARGEST, (size_t)n % 8);
        MPI_Irecv(in[n].data, LARGEST, MPI_BYTE, (style == ANY_TAG) ? n % check.size : MPI_ANY_SOURCE,
                  (style == ANY_SOURCE) ? n % TAGS : MPI_ANY_TAG, MPI_COMM_WORLD, &receives[n]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    sends = send_all(messages, round);
    MPI_Waitall(total, receives, statuses);
    finish_sends(sends);
    for (n = 0; n < total; ++n) {
        verify(in[n].data, &statuses[n], seen, round);
        if (style != ANY_SOURCE) {
            verify_tag_order(&statuses[n], next);
        }
        check_buffer_free(&in[n]);
    }
    free(receives);
    free(statuses);
    free(in);
}

int main(int argc, char **argv)
{
    int messages, style, sends;
    uint64_t round = 0;

    check_init(&argc, &argv, "wildcard");
    CHECK(check.size <= MAX_RANKS, "too many ranks");
    messages = check_scaled(100) * TAGS;
    messages = (messages < MAX_MESSAGES) ? messages : MAX_MESSAGES;

    for (style = 0; style < STYLES; ++style, ++round) {
        check_phase(style_names[style]);
        sends = send_all(messages, round);
        receive_blocking((style_t)style, messages, round);
        finish_sends(sends);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (style = 0; style < EXACT; ++style, ++round) {
        check_phase(style_names[style]);
        test_posted((style_t)style, check_scaled(8) * TAGS, round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return check_finish();
}
