/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages longer than 64 KiB - for a bug of UCX, not of ours: with UCX_POSIX_SEG_SIZE=128k UCX_RNDV_THRESH=inf
 * UCX_TLS=posix,self plain UCX (1.13.1 to 1.20.1) keeps the length of a shared memory fragment in 16 bits and
 * silently loses 65,536 bytes of a 100,000-byte MPI_Send. Run by tests/faults/run_faults.sh with these settings,
 * without UCI to see that it fails, and with UCI to see that it does not; without them it is a test like others.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 270, LARGEST = 130000 };

static void one_way(size_t length, int sending, int partner, uint64_t index)
{
    check_buffer_t data;
    static char phase[64];
    MPI_Status status;
    int count;

    check.step = (long)length;
    check_buffer_make(&data, length, 0);
    if (sending) {
        check_fill(data.data, length, check.rank, TAG, index);
        MPI_Send(data.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        snprintf(phase, sizeof(phase), "received %d of %zu bytes", count, length);
        check.phase = phase;
        check_bytes(data.data, length, partner, TAG, index);
        check_status(&status, partner, TAG, length);
    }
    check_buffer_free(&data);
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {100, 100000, 65535, 65536, 65537, 70000, 120000, LARGEST};
    uint64_t index                = 0;
    int partner, repeat;
    unsigned i;

    check_init(&argc, &argv, "lost_bytes");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    for (repeat = check_scaled(10); repeat > 0; --repeat) {
        for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
            one_way(lengths[i], check.rank < partner, partner, index);
            one_way(lengths[i], check.rank > partner, partner, index++);
        }
    }
    return check_finish();
}
