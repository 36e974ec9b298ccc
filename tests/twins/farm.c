/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Master and workers: who is done first gets the next task, so that the order is another one in each run. Rank 0 asks in one of five ways, and has
 * computed all results itself.
 *
 *     farm [way [tasks]]      way: any, iprobe, probe, mprobe, improbe, or all of them one after the other (default)
 */
#include "program.h"

#include <time.h>

enum { TASK = 1, RESULT = 2, STOP = 3, VALUES = 40 };

typedef struct result {
    int task;
    int pad;
    double values[VALUES];
} result_t;

static void compute(int task, result_t *result)
{
    double value = task + 1;
    int i;

    memset(result, 0, sizeof(*result));
    result->task = task;
    for (i = 0; i < VALUES; ++i) {
        value             = fma(value, 0.75, (task % 13) + (0.1 * i));
        result->values[i] = value;
    }
}

/* Of no length that could be known: by the clock */
static void take_some_time(void)
{
    struct timespec now, pause = {0, 0};

    clock_gettime(CLOCK_REALTIME, &now);
    pause.tv_nsec = (long)((now.tv_nsec ^ (now.tv_nsec >> 9)) % 300000);
    nanosleep(&pause, NULL);
}

static void work(void)
{
    MPI_Status status;
    result_t result;
    int task;

    for (;;) {
        MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == STOP) {
            return;
        }
        take_some_time();
        compute(task, &result);
        MPI_Send(&result, sizeof(result), MPI_BYTE, 0, RESULT, MPI_COMM_WORLD);
    }
}

static void recv_from(int source, result_t *result)
{
    MPI_Recv(result, sizeof(*result), MPI_BYTE, source, RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void recv_matched(MPI_Message *message, result_t *result)
{
    MPI_Mrecv(result, sizeof(*result), MPI_BYTE, message, MPI_STATUS_IGNORE);
}

/* @return who has sent it */
static int recv_next(const char *way, result_t *result)
{
    MPI_Message message;
    MPI_Status status;
    int flag = 0;

    if (strcmp(way, "iprobe") == 0) {
        while (!flag) {
            MPI_Iprobe(MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &flag, &status);
        }
        recv_from(status.MPI_SOURCE, result);
    } else if (strcmp(way, "probe") == 0) {
        MPI_Probe(MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &status);
        recv_from(status.MPI_SOURCE, result);
    } else if (strcmp(way, "mprobe") == 0) {
        MPI_Mprobe(MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &message, &status);
        recv_matched(&message, result);
    } else if (strcmp(way, "improbe") == 0) {
        while (!flag) {
            MPI_Improbe(MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &flag, &message, &status);
        }
        recv_matched(&message, result);
    } else {
        MPI_Recv(result, sizeof(*result), MPI_BYTE, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &status);
    }
    return status.MPI_SOURCE;
}

static long lead(const char *way, int tasks)
{
    int i, source, given = 0, open = 0;
    result_t result, right;
    long wrong = 0;

    for (i = 1; (i < ranks) && (given < tasks); ++i, ++open) {
        MPI_Send(&given, 1, MPI_INT, i, TASK, MPI_COMM_WORLD);
        ++given;
    }
    for (; open > 0; --open) {
        source = recv_next(way, &result);
        if (given < tasks) {
            MPI_Send(&given, 1, MPI_INT, source, TASK, MPI_COMM_WORLD);
            ++given;
            ++open;
        }
        compute(result.task, &right);
        wrong += (memcmp(&result, &right, sizeof(right)) != 0);
    }
    for (i = 1; i < ranks; ++i) {
        MPI_Send(&given, 1, MPI_INT, i, STOP, MPI_COMM_WORLD);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    static const char *const ways[] = {"any", "iprobe", "probe", "mprobe", "improbe"};
    const char *way;
    long wrong = 0;
    size_t i;

    begin(&argc, &argv);
    way = (argc > 1) ? argv[1] : "all";
    for (i = 0; i < sizeof(ways) / sizeof(*ways); ++i) {
        if ((strcmp(way, "all") != 0) && (strcmp(way, ways[i]) != 0)) {
            continue;
        }
        if (rank == 0) {
            wrong += lead(ways[i], argument(argc, argv, 2, 60));
        } else {
            work();
        }
    }
    return end("farm", wrong);
}
