/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A sender that sleeps outside MPI when its message has left, and a receiver that must not have to wait for it: with
 * damaged chunks it has to heal the message by RDMA alone. Run by tests/rdma, which delays the wire by 0.5 s each way
 * when both ranks say that they are connected, so that all chunks are on the wire when the sender falls asleep, and
 * none has arrived:
 *
 *     sender     Issend            CTS comes, chunks leave    sleeps ----------------------------------------> awake
 *     receiver             CTS                                        chunks come, reads leave, bytes come
 *     seconds    0         0.5     1.0                        1.4     1.5                       2.5              6.4
 *
 * usage: asleep SCALE SEED
 */
#include "check.h"

enum { TAG = 290, TAG_TIMES = 291, LENGTH = 600000, AWAKE_MS = 1400, ASLEEP_MS = 5000 };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time); /* both ranks are on one host */
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/** Say to the runner that we are connected; wait, without MPI, until it has made the wire slow. */
static void meet_runner(void)
{
    const char *folder = getenv("CHECK_FOLDER");
    char path[512];
    int tries;

    check_meet_outside("rank", 0);
    snprintf(path, sizeof(path), "%s/slow", folder ? folder : ".");
    for (tries = 0; access(path, F_OK) != 0; ++tries) {
        CHECK(tries < 20000, "nobody makes %s", path);
        check_sleep_ms(1);
    }
}

static void run_sender(int receiver)
{
    MPI_Request request;
    check_buffer_t data;
    double times[2], begin = now();
    int done = 0;

    check_buffer_make(&data, LENGTH, 0);
    check_fill(data.data, LENGTH, check.rank, TAG, 0);
    MPI_Issend(data.data, LENGTH, MPI_BYTE, receiver, TAG, MPI_COMM_WORLD, &request);
    while (!done && (now() - begin < AWAKE_MS * 1e-3)) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    CHECK(!done, "the send was over before its chunks can have arrived");
    times[0] = now();
    check_sleep_ms(ASLEEP_MS);
    times[1] = now();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(times, 2, MPI_DOUBLE, receiver, TAG_TIMES, MPI_COMM_WORLD);
    check_buffer_free(&data);
    ++check.messages;
}

static void run_receiver(int sender)
{
    check_buffer_t data;
    double times[2], end;

    check_buffer_make(&data, LENGTH, 0);
    MPI_Recv(data.data, LENGTH, MPI_BYTE, sender, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    end = now();
    check_bytes(data.data, LENGTH, sender, TAG, 0);
    MPI_Recv(times, 2, MPI_DOUBLE, sender, TAG_TIMES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(end > times[0], "received %.3f s before the sender fell asleep: this shows nothing", times[0] - end);
    CHECK(end < times[1], "received %.3f s after the sender woke up", end - times[1]);
    printf("received %.3f s after the sender fell asleep, %.3f s before it woke up\n", end - times[0], times[1] - end);
    check_buffer_free(&data);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, "asleep");
    CHECK(check.size == 2, "needs 2 ranks");
    check_phase("connect");
    check_connect_all();
    MPI_Barrier(MPI_COMM_WORLD);
    meet_runner();
    check_phase("asleep");
    if (check.rank == 0) {
        run_sender(1);
    } else {
        run_receiver(0);
    }
    return check_finish();
}
