/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A rank whose MPI_Send has returned leaves MPI, and does not come back before its message has been received, by a rank that posts its receive
 * late. On plain UCX a send that returns has left all that its receiver needs: so it has to be with UCI.
 *
 * @ranks 2
 * @faultless 2 a message that arrives damaged is repaired by its sender, who is not there (docs/protected.md)
 */
#include "check.h"

enum { TAG = 520, LATE_MS = 60, LIMIT_S = 10 };

static const size_t lengths[] = {0, 8, 4096, 8192, 20000, 60000, 100000, 250000, 262144, 400000, 1000000, 3000000};

static void send_and_leave(const void *data, size_t length, int index, const char *place)
{
    double begin;

    MPI_Send(data, (int)length, MPI_BYTE, 1 - check.rank, TAG + index, MPI_COMM_WORLD);
    begin = MPI_Wtime();
    check_meet_outside(place, 0);
    CHECK(MPI_Wtime() - begin < LIMIT_S, "%zu bytes have not been received for %d s, since their sender has left MPI",
          length, LIMIT_S);
}

static void receive_late(check_buffer_t *in, size_t length, int index, const char *place)
{
    MPI_Status status;

    check_sleep_ms(LATE_MS);
    MPI_Recv(in->data, (int)length, MPI_BYTE, 1 - check.rank, TAG + index, MPI_COMM_WORLD, &status);
    check_status(&status, 1 - check.rank, TAG + index, length);
    check_bytes(in->data, length, 1 - check.rank, TAG + index, (uint64_t)index);
    check_guards(in);
    check_meet_outside(place, 0);
}

/* The first message of a size, and of a job, takes another way than those that follow */
static void play(int sender, int round)
{
    size_t i;

    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        check_buffer_t buffer;
        char place[64];

        check_where((int)i);
        snprintf(place, sizeof(place), "left.%d.%d.%zu", sender, round, i);
        check_buffer_make(&buffer, lengths[i], 0);
        if (check.rank == sender) {
            check_fill(buffer.data, lengths[i], sender, TAG + (int)i, i);
            send_and_leave(buffer.data, lengths[i], (int)i, place);
        } else {
            receive_late(&buffer, lengths[i], (int)i, place);
        }
        check_buffer_free(&buffer);
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, "left");
    if (getenv("CHECK_FOLDER") == NULL) {
        return check_skip("ranks meet outside of MPI, in a folder of the runner's");
    }
    check_phase("cold");
    play(0, 0);
    check_phase("the other way");
    play(1, 0);
    check_phase("warm");
    play(0, 1);
    return check_finish();
}
