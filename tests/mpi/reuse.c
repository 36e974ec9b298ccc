/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Buffers that come and go: unmapped and mapped anew at the same address between messages, grown, moved, sent from
 * and received into in turn, read-only, shared by several sends at once. What is remembered about old memory
 * (registrations, logs, keys) must not show in new messages.
 *
 * @ranks 2
 */
#include "check.h"
#include <sys/mman.h>

enum { TAG = 160, SHARED = 8 };

static const size_t lengths[] = {4096, 20000, 65536, 300000, 1048579};
static uint64_t sent, received;

static void *map_at(void *address, size_t length)
{
    int fixed    = (address != NULL) ? MAP_FIXED_NOREPLACE : 0;
    void *memory = mmap(address, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);

    return (memory == MAP_FAILED) ? mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                  : memory;
}

static void send_from(void *data, size_t length, int dest)
{
    check_fill(data, length, check.rank, TAG, sent++);
    MPI_Send(data, (int)length, MPI_BYTE, dest, TAG, MPI_COMM_WORLD);
}

static void receive_into(void *data, size_t length, int source)
{
    MPI_Status status;

    MPI_Recv(data, (int)length, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &status);
    check_status(&status, source, TAG, length);
    check_bytes(data, length, source, TAG, received++);
}

/** Map, use, unmap, and map again at the same place: other pages, same address. */
static void test_remapped(size_t length, int partner)
{
    void *place = NULL, *data;
    int i;

    for (i = check_scaled(20); i > 0; --i) {
        data = map_at(place, length);
        if ((check.rank < partner) == i % 2) {
            send_from(data, length, partner);
        } else {
            receive_into(data, length, partner);
        }
        place = data;
        munmap(data, length);
    }
}

/** The heap's way: freed and allocated again, growing and shrinking. */
static void test_reallocated(size_t length, int partner)
{
    unsigned char *data = NULL;
    size_t now;
    int i;

    for (i = check_scaled(20); i > 0; --i) {
        now = length - length / 4 * ((size_t)i % 3);
        if (i % 5 == 0) {
            free(data);
            data = NULL;
        }
        data = realloc(data, now);
        if ((check.rank < partner) == i % 2) {
            send_from(data, now, partner);
        } else {
            receive_into(data, now, partner);
        }
    }
    free(data);
}

/** One buffer, sent several times at once from overlapping places; and from memory that may not be written. */
static void test_shared(size_t length, int partner)
{
    MPI_Request requests[SHARED];
    unsigned char *data  = map_at(NULL, length + SHARED * 8);
    unsigned char *whole = malloc(length + SHARED * 8);
    check_buffer_t in;
    int i;

    if (check.rank < partner) {
        check_fill(data, length + SHARED * 8, check.rank, TAG, sent);
        mprotect(data, length + SHARED * 8, PROT_READ);
        for (i = 0; i < SHARED; ++i) {
            MPI_Isend(data + i * 8, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(SHARED, requests, MPI_STATUSES_IGNORE);
        ++sent;
    } else {
        check_fill(whole, length + SHARED * 8, partner, TAG, received);
        for (i = 0; i < SHARED; ++i) {
            check_buffer_make(&in, length, 0);
            MPI_Recv(in.data, (int)length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(memcmp(in.data, whole + i * 8, length) == 0, "wrong contents: overlapping send %d of %zu bytes", i,
                  length);
            check_buffer_free(&in);
        }
        ++received;
        ++check.messages;
    }
    munmap(data, length + SHARED * 8);
    free(whole);
}

/** The same buffer is received into and sent from in turn, a thousand times. */
static void test_echo(size_t length, int partner)
{
    unsigned char *data = malloc(length);
    int i;

    for (i = check_scaled((int)(20000000 / length)); i > 0; --i) {
        if (check.rank < partner) {
            send_from(data, length, partner);
            receive_into(data, length, partner);
        } else {
            receive_into(data, length, partner);
            send_from(data, length, partner);
        }
    }
    free(data);
}

int main(int argc, char **argv)
{
    int partner;
    unsigned i;

    check_init(&argc, &argv, "reuse");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    for (i = 0; i < CHECK_COUNT_OF(lengths); ++i) {
        check_phase("mapped again at the same place");
        test_remapped(lengths[i], partner);
        check_phase("reallocated");
        test_reallocated(lengths[i], partner);
        check_phase("shared by several sends, read-only");
        test_shared(lengths[i], partner);
        check_phase("echo");
        test_echo(lengths[i], partner);
    }
    return check_finish();
}
