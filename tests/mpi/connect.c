/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Open_port, Comm_accept, Comm_connect: two halves of a job meet through a port, again and again, as if they
 * did not know each other.
 *
 * @ranks 2
 * @skip mpich * MPICH 4.0 has no ports over its UCX netmod
 */
#include "check.h"

enum { TAG = 240 };

static void exchange(MPI_Comm inter, int round)
{
    static const size_t lengths[] = {0, 100, 8300, 300000};
    check_buffer_t out, in;
    MPI_Status status;
    unsigned i;

    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        check_buffer_make(&out, lengths[i], 0);
        check_buffer_make(&in, lengths[i], 0);
        check_fill(out.data, lengths[i], check.rank, TAG, (uint64_t)round);
        MPI_Sendrecv(out.data, (int)lengths[i], MPI_BYTE, 0, TAG, in.data, (int)lengths[i], MPI_BYTE, 0, TAG, inter,
                     &status);
        check_status(&status, 0, TAG, lengths[i]);
        check_bytes(in.data, lengths[i], 1 - check.rank, TAG, (uint64_t)round);
        check_buffer_free(&out);
        check_buffer_free(&in);
    }
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int round;

    check_init(&argc, &argv, "connect");
    CHECK(check.size == 2, "needs two ranks");
    if (check_is_job_alone()) {
        return check_skip("this Open MPI meets through ports by network only");
    }
    if (check.rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    for (round = 0; round < check_scaled(3); ++round) {
        check_phase("accept and connect");
        check.step = round;
        if (check.rank == 0) {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        } else {
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        }
        check_phase("exchange");
        exchange(inter, round);
        check_phase("disconnect");
        MPI_Comm_disconnect(&inter);
    }
    if (check.rank == 0) {
        MPI_Close_port(port);
    }
    return check_finish();
}
