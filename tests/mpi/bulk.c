/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Many bytes one way, in messages of one size, a few in flight, from and to unaligned addresses: traffic whose bytes on
 * the wire can be foreseen. Run by tests/rdma, which counts them.
 *
 * usage: bulk SCALE SEED BYTES COUNT      COUNT messages (times SCALE) of BYTES
 */
#include "check.h"

enum { TAG = 280, WINDOW = 4, UNALIGNED = 3 };

typedef struct slot {
    check_buffer_t data;
    MPI_Request request;
} slot_t;

static void send_next(slot_t *slot, size_t length, int dest, int i)
{
    MPI_Wait(&slot->request, MPI_STATUS_IGNORE);
    check_fill(slot->data.data, length, check.rank, TAG, (uint64_t)i);
    MPI_Isend(slot->data.data, (int)length, MPI_BYTE, dest, TAG, MPI_COMM_WORLD, &slot->request);
}

static void receive_next(slot_t *slot, size_t length, int source, int i)
{
    MPI_Status status;

    MPI_Wait(&slot->request, &status);
    check_status(&status, source, TAG, length);
    check_bytes(slot->data.data, length, source, TAG, (uint64_t)i);
}

static void receive_all(slot_t *slots, size_t length, int count, int source)
{
    int i;

    for (i = 0; i < count + WINDOW; ++i) {
        check.step = i;
        if ((i >= WINDOW) && (i - WINDOW < count)) {
            receive_next(&slots[i % WINDOW], length, source, i - WINDOW);
        }
        if (i < count) {
            MPI_Irecv(slots[i % WINDOW].data.data, (int)length, MPI_BYTE, source, TAG, MPI_COMM_WORLD,
                      &slots[i % WINDOW].request);
        }
    }
}

static void send_all(slot_t *slots, size_t length, int count, int dest)
{
    int i;

    for (i = 0; i < count; ++i) {
        check.step = i;
        send_next(&slots[i % WINDOW], length, dest, i);
    }
    for (i = 0; i < WINDOW; ++i) {
        MPI_Wait(&slots[i].request, MPI_STATUS_IGNORE);
    }
    check.messages += (uint64_t)count;
}

int main(int argc, char **argv)
{
    slot_t slots[WINDOW];
    size_t length;
    int i, count;

    check_init(&argc, &argv, "bulk");
    CHECK((argc > 4) && (check.size == 2), "usage: 2 ranks, bulk SCALE SEED BYTES COUNT");
    length = strtoull(argv[3], NULL, 0);
    count  = check_scaled(atoi(argv[4]));
    check_phase("bulk");
    for (i = 0; i < WINDOW; ++i) {
        check_buffer_make(&slots[i].data, length, UNALIGNED);
        slots[i].request = MPI_REQUEST_NULL;
    }
    if (check.rank == 0) {
        send_all(slots, length, count, 1);
    } else {
        receive_all(slots, length, count, 0);
    }
    for (i = 0; i < WINDOW; ++i) {
        check_buffer_free(&slots[i].data);
    }
    return check_finish();
}
