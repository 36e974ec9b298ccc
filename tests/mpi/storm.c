/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Random traffic from all to all: in each round every rank sends a number of messages, itself included, of random
 * size, tag and mode, and receives in a randomly chosen style (posted with exact or wild tags, late, probed,
 * matched). Every rank computes the whole plan from the seed, so each byte is known.
 *
 * @ranks 2 4
 * @args 4: 0.2
 * @args mpich 4: 0.1
 */
#include "check.h"

enum { MAX_MESSAGES = 96, TAGS = 5, LARGEST = 1048576, BSEND_LARGEST = 4096 };

/** How a rank receives in a round */
typedef enum { POSTED_EXACT, POSTED_ANY_TAG, POSTED_ANY, LATE_EXACT, PROBED, MATCHED, STYLES } style_t;

static const char *const style_names[] = {"posted, exact", "posted, any tag",     "posted, any source, any tag",
                                          "late, exact",   "probed and received", "matched and received"};

typedef struct message {
    int source, dest, tag, mode;
    size_t length;
    uint64_t index;
    int taken;
} message_t;

static message_t *plan;
static int num_messages;
static uint64_t round_number;

static void draw_plan(int messages)
{
    uint64_t state = check_key(0, 0, round_number);
    int i;

    num_messages = messages * check.size;
    for (i = 0; i < num_messages; ++i) {
        plan[i].source = (int)(check_random(&state) % (uint64_t)check.size);
        plan[i].dest   = (int)(check_random(&state) % (uint64_t)check.size);
        plan[i].tag    = (int)(check_random(&state) % TAGS);
        plan[i].mode   = (int)(check_random(&state) % 5);
        plan[i].length = check_random_size(&state, LARGEST);
        plan[i].index  = round_number * 1000 + (uint64_t)i;
        plan[i].taken  = 0;
    }
}

/** The first message for us not yet taken that fits; -1 as source or tag fits all. */
static message_t *next_message(int source, int tag)
{
    int i;

    for (i = 0; i < num_messages; ++i) {
        if ((plan[i].dest == check.rank) && !plan[i].taken && ((source < 0) || (plan[i].source == source)) &&
            ((tag < 0) || (plan[i].tag == tag))) {
            plan[i].taken = 1;
            return &plan[i];
        }
    }
    return NULL;
}

static void verify(const unsigned char *data, const MPI_Status *status, const message_t *message)
{
    CHECK(message != NULL, "a message that is not in the plan: source %d tag %d", status->MPI_SOURCE, status->MPI_TAG);
    check_status(status, message->source, message->tag, message->length);
    check_bytes(data, message->length, message->source, message->tag, message->index);
}

typedef struct sends {
    MPI_Request requests[MAX_MESSAGES * 16];
    unsigned char *data[MAX_MESSAGES * 16];
    int count;
} sends_t;

/** @a may_block: this rank's receives are posted. */
static void send_all(sends_t *sends, int may_block)
{
    int i, length, n = 0;
    unsigned char *data;

    for (i = 0; i < num_messages; ++i) {
        const message_t *m = &plan[i];

        if (m->source != check.rank) {
            continue;
        }
        length = (int)m->length;
        data   = malloc(m->length + 1);
        check_fill(data, m->length, m->source, m->tag, m->index);
        sends->data[n]     = data;
        sends->requests[n] = MPI_REQUEST_NULL;
        if ((m->mode == 0) && may_block) {
            MPI_Send(data, length, MPI_BYTE, m->dest, m->tag, MPI_COMM_WORLD);
            check_scribble(data, m->length);
        } else if (m->mode == 1) {
            MPI_Issend(data, length, MPI_BYTE, m->dest, m->tag, MPI_COMM_WORLD, &sends->requests[n]);
        } else if ((m->mode == 2) && (m->length <= BSEND_LARGEST)) {
            MPI_Bsend(data, length, MPI_BYTE, m->dest, m->tag, MPI_COMM_WORLD);
            check_scribble(data, m->length);
        } else {
            MPI_Isend(data, length, MPI_BYTE, m->dest, m->tag, MPI_COMM_WORLD, &sends->requests[n]);
        }
        ++n;
    }
    sends->count = n;
}

static void finish_sends(sends_t *sends)
{
    int i;

    MPI_Waitall(sends->count, sends->requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < sends->count; ++i) {
        free(sends->data[i]);
    }
}

static int count_mine(void)
{
    int i, n = 0;

    for (i = 0; i < num_messages; ++i) {
        n += (plan[i].dest == check.rank);
    }
    return n;
}

/** Nonblocking receives, one per message for us; exact ones in a random order of (source, tag). */
static void receive_requests(style_t style, sends_t *sends)
{
    int mine = count_mine(), i, k, n = 0,
        start             = (int)(check_key(check.rank, 2, round_number) % (uint64_t)num_messages);
    MPI_Request *requests = malloc((size_t)mine * sizeof(*requests) + 1);
    MPI_Status *statuses  = malloc((size_t)mine * sizeof(*statuses) + 1);
    unsigned char **data  = malloc((size_t)mine * sizeof(*data) + 1);
    int *sources = malloc((size_t)mine * sizeof(int) + 1), *tags = malloc((size_t)mine * sizeof(int) + 1);

    if (style == LATE_EXACT) {
        send_all(sends, 0);
        check_sleep_ms(1);
    }
    for (k = 0; k < num_messages; ++k) {
        i = (k + start) % num_messages;
        if (plan[i].dest != check.rank) {
            continue;
        }
        sources[n] = (style == POSTED_ANY) ? MPI_ANY_SOURCE : plan[i].source;
        tags[n]    = ((style == POSTED_ANY) || (style == POSTED_ANY_TAG)) ? MPI_ANY_TAG : plan[i].tag;
        data[n]    = malloc(LARGEST);
        MPI_Irecv(data[n], LARGEST, MPI_BYTE, sources[n], tags[n], MPI_COMM_WORLD, &requests[n]);
        ++n;
    }
    if (style != LATE_EXACT) {
        send_all(sends, 1);
    }
    MPI_Waitall(mine, requests, statuses);
    for (n = 0; n < mine; ++n) {
        verify(data[n], &statuses[n],
               next_message(statuses[n].MPI_SOURCE, (style == POSTED_ANY_TAG) || (style == POSTED_ANY) ? -1 : tags[n]));
        free(data[n]);
    }
    free(requests);
    free(statuses);
    free(data);
    free(sources);
    free(tags);
}

/** Whatever comes, found by a probe. */
static void receive_probed(style_t style, sends_t *sends)
{
    unsigned char *data = malloc(LARGEST);
    MPI_Message message;
    MPI_Status status;
    int left, flag, count;

    send_all(sends, 0);
    for (left = count_mine(); left > 0;) {
        if (style == MATCHED) {
            MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
        } else {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        }
        if (!flag) {
            continue;
        }
        MPI_Get_count(&status, MPI_BYTE, &count);
        if (style == MATCHED) {
            MPI_Mrecv(data, count, MPI_BYTE, &message, &status);
        } else {
            MPI_Recv(data, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        }
        verify(data, &status, next_message(status.MPI_SOURCE, -1));
        --left;
    }
    free(data);
}

int main(int argc, char **argv)
{
    static sends_t sends;
    int size       = MAX_MESSAGES * 16 * (BSEND_LARGEST + MPI_BSEND_OVERHEAD), rounds;
    void *attached = malloc((size_t)size);
    style_t style;

    check_init(&argc, &argv, "storm");
    CHECK(check.size <= 16, "too many ranks");
    plan = malloc(sizeof(*plan) * MAX_MESSAGES * 16);
    for (rounds = check_scaled(80); rounds > 0; --rounds, ++round_number) {
        draw_plan((int)(8 + check_key(1, 1, round_number) % (MAX_MESSAGES - 8)));
        style = (style_t)((round_number + (uint64_t)check.rank * (1 + round_number / STYLES)) % STYLES);
        check_phase(style_names[style]);
        check.step = (long)round_number;
        MPI_Buffer_attach(attached, size);
        if ((style == PROBED) || (style == MATCHED)) {
            receive_probed(style, &sends);
        } else {
            receive_requests(style, &sends);
        }
        finish_sends(&sends);
        MPI_Buffer_detach(&attached, &size);
        MPI_Barrier(MPI_COMM_WORLD); /* a wildcard must not take the next round's messages */
    }
    free(plan);
    free(attached);
    return check_finish();
}
