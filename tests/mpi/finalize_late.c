/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks send eager messages and go straight to MPI_Finalize; rank 0 sleeps without calling MPI and receives late.
 *
 * @ranks 2 4
 * @skip mpich tcp MPICH 4.0 with plain UCX hangs: who closed first waits in a PMI barrier and answers no more
 */
#include "check.h"

enum { TAG = 170, MESSAGES = 60, LARGEST = 4096 };

static size_t message_length(int i)
{
    static const size_t lengths[] = {0, 8, 64, 1000, 2048, LARGEST};

    return lengths[(size_t)i % CHECK_COUNT_OF(lengths)];
}

static void send_all(void)
{
    unsigned char data[LARGEST];
    int i;

    check_phase("sending");
    for (i = 0; i < MESSAGES; ++i) {
        check_fill(data, message_length(i), check.rank, TAG, (uint64_t)i);
        MPI_Send(data, (int)message_length(i), MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        check_scribble(data, message_length(i));
    }
}

static void receive_late(void)
{
    unsigned char data[LARGEST];
    MPI_Status status;
    int i, source;

    check_phase("receiving late");
    check_sleep_ms(300);
    for (i = 0; i < MESSAGES; ++i) {
        for (source = check.size - 1; source > 0; --source) {
            memset(data, CHECK_POISON_BYTE, sizeof(data));
            MPI_Recv(data, LARGEST, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &status);
            check_status(&status, source, TAG, message_length(i));
            check_bytes(data, message_length(i), source, TAG, (uint64_t)i);
        }
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, "finalize_late");
    MPI_Barrier(MPI_COMM_WORLD); /* only to have all started */
    if (check.rank == 0) {
        receive_late();
        /* no reduction: the others are in MPI_Finalize, and rank 0 has checked everything there is */
        printf("PASS %s\n", check.name);
        fflush(stdout);
    } else {
        send_all();
    }
    check_phase("MPI_Finalize");
    MPI_Finalize();
    return 0;
}
