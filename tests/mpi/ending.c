/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A conversation ends in every way: the last message of pairs of ranks, and straight into MPI_Finalize. Rank 0 (and 2, ...)
 * sends, its partner receives; with kinds `pingpong` and `cross` both do. Run by run_ending.sh, a job for each ending:
 *
 *     ending SCALE SEED [kind=K] [bytes=N] [count=N] [before=MS,MS] [after=MS,MS] [left=N]
 *
 *   kind    send, ssend, isend (all at once), cross (both send, then receive), pingpong (nonblocking, both ways)
 *   bytes   of each message; several sizes with commas between are taken in turn
 *   count   of messages
 *   before  milliseconds that sender and receiver sleep without calling MPI before the conversation
 *   after   and between its end and MPI_Finalize
 *   left    so many messages of 100 bytes are sent as well that nobody receives
 */
#include "check.h"

enum { TAG = 190, TAG_LEFT = 191, MESSAGES_MAX = 64, SIZES_MAX = 8 };

static struct {
    char kind[16];
    size_t sizes[SIZES_MAX];
    int size_count;
    int count;
    int before[2], after[2];
    int left;
} plan = {.kind = "send", .sizes = {100}, .size_count = 1, .count = 1};

static unsigned char *outgoing[MESSAGES_MAX], *incoming[MESSAGES_MAX];
static MPI_Request requests[2 * MESSAGES_MAX];

static void parse_sizes(const char *text)
{
    char *end;

    for (plan.size_count = 0; plan.size_count < SIZES_MAX; ++plan.size_count) {
        plan.sizes[plan.size_count] = strtoul(text, &end, 10);
        if (*end != ',') {
            ++plan.size_count;
            return;
        }
        text = end + 1;
    }
}

static void parse_word(const char *word)
{
    if (strncmp(word, "bytes=", 6) == 0) {
        parse_sizes(word + 6);
    } else {
        CHECK((sscanf(word, "kind=%15s", plan.kind) == 1) || (sscanf(word, "count=%d", &plan.count) == 1) ||
                      (sscanf(word, "before=%d,%d", &plan.before[0], &plan.before[1]) == 2) ||
                      (sscanf(word, "after=%d,%d", &plan.after[0], &plan.after[1]) == 2) ||
                      (sscanf(word, "left=%d", &plan.left) == 1),
              "what is '%s'?", word);
    }
}

static size_t size_of(int i)
{
    return plan.sizes[i % plan.size_count];
}

static void prepare(void)
{
    int i;

    CHECK((plan.count >= 0) && (plan.count <= MESSAGES_MAX), "%d messages", plan.count);
    for (i = 0; i < plan.count; ++i) {
        outgoing[i] = malloc(size_of(i) + 1);
        incoming[i] = malloc(size_of(i) + 1);
        CHECK((outgoing[i] != NULL) && (incoming[i] != NULL), "out of memory");
        check_fill(outgoing[i], size_of(i), check.rank, TAG, (uint64_t)i);
        memset(incoming[i], CHECK_POISON_BYTE, size_of(i));
    }
}

static void leave_some(int to)
{
    unsigned char data[100];
    int i;

    for (i = 0; i < plan.left; ++i) {
        check_fill(data, sizeof(data), check.rank, TAG_LEFT, (uint64_t)i);
        MPI_Send(data, sizeof(data), MPI_BYTE, to, TAG_LEFT, MPI_COMM_WORLD);
    }
}

static void send_all(int to, bool sync)
{
    int i;

    check_phase("sending");
    for (i = 0; i < plan.count; ++i) {
        if (sync) {
            MPI_Ssend(outgoing[i], (int)size_of(i), MPI_BYTE, to, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Send(outgoing[i], (int)size_of(i), MPI_BYTE, to, TAG, MPI_COMM_WORLD);
        }
        check_scribble(outgoing[i], size_of(i));
        ++check.step;
    }
}

static void check_received(int from)
{
    int i;

    for (i = 0; i < plan.count; ++i) {
        check_bytes(incoming[i], size_of(i), from, TAG, (uint64_t)i);
    }
}

static void receive_all(int from)
{
    MPI_Status status;
    int i;

    check_phase("receiving");
    for (i = 0; i < plan.count; ++i) {
        MPI_Recv(incoming[i], (int)size_of(i), MPI_BYTE, from, TAG, MPI_COMM_WORLD, &status);
        check_status(&status, from, TAG, size_of(i));
        ++check.step;
    }
    check_received(from);
}

static void isend_all(int to)
{
    int i;

    check_phase("sending at once");
    for (i = 0; i < plan.count; ++i) {
        MPI_Isend(outgoing[i], (int)size_of(i), MPI_BYTE, to, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(plan.count, requests, MPI_STATUSES_IGNORE);
}

static void pingpong(int partner)
{
    int i;

    check_phase("both ways");
    for (i = 0; i < plan.count; ++i) {
        MPI_Irecv(incoming[i], (int)size_of(i), MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(outgoing[i], (int)size_of(i), MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        ++check.step;
    }
    check_received(partner);
}

static void converse(int partner, bool sender)
{
    if (strcmp(plan.kind, "pingpong") == 0) {
        pingpong(partner);
    } else if (strcmp(plan.kind, "cross") == 0) {
        send_all(partner, false);
        receive_all(partner);
    } else if (!sender) {
        receive_all(partner);
    } else if (strcmp(plan.kind, "isend") == 0) {
        isend_all(partner);
    } else {
        send_all(partner, strcmp(plan.kind, "ssend") == 0);
    }
}

int main(int argc, char **argv)
{
    int i, partner, role;

    check_init(&argc, &argv, "ending");
    for (i = 3; i < argc; ++i) {
        parse_word(argv[i]);
    }
    prepare();
    partner = check_partner();
    role    = check.rank % 2;
    check_connect_all();
    MPI_Barrier(MPI_COMM_WORLD);
    check_sleep_ms(plan.before[role]);
    if (partner != MPI_PROC_NULL) {
        leave_some(partner);
        converse(partner, role == 0);
    }
    check_sleep_ms(plan.after[role]);
    /* no reduction, which would be another conversation: a rank that finds something wrong ends the job with an error */
    if (check.rank == 0) {
        printf("PASS %s\n", check.name);
        fflush(stdout);
    }
    check_phase("MPI_Finalize");
    MPI_Finalize();
    return 0;
}
