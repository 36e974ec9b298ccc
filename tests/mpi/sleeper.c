/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 waits for 4 MB of rank 2, who has begun to send them and then computes, outside of MPI, while rank 0 and rank 1 exchange
 * messages. Damage to these is no reason to ask rank 2 more and more often: when it comes back it answers what was asked, not as often as
 * it was asked, and the job takes as long as it computes and hardly more; with memory for the message, not for a thousand of them.
 *
 * @ranks 3
 * @args 3: 0.25
 */
#include "check.h"

#include <sys/resource.h>

enum { ASLEEP_MS = 8000, LENGTH = 4 << 20, TAG_ASLEEP = 490, TAG = 491, SHORT = 1000, LATE_S = 5, RESIDENT_MB = 400 };

static double now(void)
{
    return MPI_Wtime();
}

static void sleep_while_sending(int milliseconds)
{
    check_buffer_t out;
    MPI_Request request;
    double back;
    int i, flag;

    check_buffer_make(&out, LENGTH, 0);
    check_fill(out.data, LENGTH, 2, TAG_ASLEEP, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out.data, LENGTH, MPI_BYTE, 0, TAG_ASLEEP, MPI_COMM_WORLD, &request);
    for (i = 0; i < 3; ++i) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    check_sleep_ms(milliseconds);
    back = now();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(now() - back < LATE_S, "back for %.1f s, and only now it is over", now() - back);
    check_buffer_free(&out);
}

/* Rank 0 says when it is over: both have to agree */
static void chat(int partner, int milliseconds)
{
    unsigned char out[SHORT], in[SHORT];
    double end     = now() + milliseconds / 1e3;
    uint64_t count = 0;
    int more       = 1;

    while (more) {
        check_fill(out, SHORT, check.rank, TAG, count);
        MPI_Sendrecv(out, SHORT, MPI_BYTE, partner, TAG, in, SHORT, MPI_BYTE, partner, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check_bytes(in, SHORT, partner, TAG, count++);
        if (check.rank == 0) {
            more = now() < end;
            MPI_Send(&more, 1, MPI_INT, partner, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&more, 1, MPI_INT, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static void chat_and_wait(int milliseconds)
{
    check_buffer_t in;
    MPI_Request request;
    double end;

    check_buffer_make(&in, LENGTH, 5);
    memset(in.data, CHECK_POISON_BYTE, LENGTH);
    MPI_Irecv(in.data, LENGTH, MPI_BYTE, 2, TAG_ASLEEP, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    chat(1, milliseconds);
    end = now();
    check_phase("waiting for rank 2");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(now() - end < LATE_S, "%.1f s later", now() - end);
    check_bytes(in.data, LENGTH, 2, TAG_ASLEEP, 0);
    check_guards(&in);
    check_buffer_free(&in);
}

static void expect_small(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    CHECK(usage.ru_maxrss < RESIDENT_MB * 1024l, "%ld MiB of memory for one message of 4", usage.ru_maxrss / 1024);
}

/* Each rank has checked something */
static void say_good_bye(void)
{
    unsigned char in[SHORT], out[SHORT];
    int next = (check.rank + 1) % check.size, last = (check.rank + 2) % check.size;

    check_fill(out, SHORT, check.rank, TAG, UINT32_MAX);
    MPI_Sendrecv(out, SHORT, MPI_BYTE, next, TAG, in, SHORT, MPI_BYTE, last, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_bytes(in, SHORT, last, TAG, UINT32_MAX);
}

int main(int argc, char **argv)
{
    int milliseconds;

    check_init(&argc, &argv, "sleeper");
    CHECK(check.size == 3, "needs 3 ranks");
    milliseconds = check_scaled(ASLEEP_MS);
    switch (check.rank) {
    case 0:
        chat_and_wait(milliseconds);
        break;
    case 1:
        MPI_Barrier(MPI_COMM_WORLD);
        chat(0, milliseconds);
        break;
    default:
        sleep_while_sending(milliseconds);
        break;
    }
    expect_small();
    say_good_bye();
    return check_finish();
}
