/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Pack, MPI_Unpack, MPI_Pack_external and MPI_PACKED messages: packed here and received as a datatype there,
 * sent as a datatype and unpacked there, several pieces in one message.
 *
 * @ranks 2
 */
#include "check.h"

enum { TAG = 110 };

static uint64_t number;

/** Rows of 5 ints of which 3 are meant. */
static MPI_Datatype make_vector(int rows)
{
    MPI_Datatype type;

    MPI_Type_vector(rows, 3, 5, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/** The 3 of 5, copied by hand: independent of MPI's own packing. */
static void gather_by_hand(unsigned char *stream, const unsigned char *rows, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        memcpy(stream + i * 12, rows + i * 20, 12);
    }
}

/** @a packed_out: pack, send as MPI_PACKED, receive as the vector; else the other way. */
static void test_vector(int rows, int packed_out, int sending, int partner)
{
    size_t length = (size_t)rows * 12, room = (size_t)rows * 20;
    unsigned char *data = malloc(room), *stream = malloc(length);
    MPI_Datatype type = make_vector(rows);
    MPI_Status status;
    int size, position = 0, i;
    void *packed;

    MPI_Pack_size(1, type, MPI_COMM_WORLD, &size);
    packed = malloc((size_t)size);
    memset(data, CHECK_POISON_BYTE, room);
    if (sending) {
        check_fill(stream, length, check.rank, TAG, number);
        for (i = 0; i < rows; ++i) {
            memcpy(data + i * 20, stream + i * 12, 12);
        }
        if (packed_out) {
            MPI_Pack(data, 1, type, packed, size, &position, MPI_COMM_WORLD);
            MPI_Send(packed, position, MPI_PACKED, partner, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Send(data, 1, type, partner, TAG, MPI_COMM_WORLD);
        }
    } else {
        if (packed_out) {
            MPI_Recv(data, 1, type, partner, TAG, MPI_COMM_WORLD, &status);
        } else {
            MPI_Recv(packed, size, MPI_PACKED, partner, TAG, MPI_COMM_WORLD, &status);
            MPI_Unpack(packed, size, &position, data, 1, type, MPI_COMM_WORLD);
        }
        gather_by_hand(stream, data, rows);
        check_bytes(stream, length, partner, TAG, number);
        for (i = 0; i < rows - 1; ++i) {
            CHECK(check_all(data + i * 20 + 12, CHECK_POISON_BYTE, 8), "the gap in row %d was written", i);
        }
    }
    ++number;
    MPI_Type_free(&type);
    free(packed);
    free(data);
    free(stream);
}

/** A count, then that many doubles, then a vector, then bytes: one message, unpacked piece by piece. */
static void test_pieces(int count, int sending, int partner)
{
    int size = 64 + count * (8 + 5) + 3 * count * 4, position = 0, told = -1;
    unsigned char *buffer = malloc((size_t)size);
    unsigned char *data = malloc((size_t)count * 20 + 20), *stream = malloc((size_t)count * 12);
    MPI_Datatype type = make_vector(count);
    MPI_Status status;
    int i;

    if (sending) {
        MPI_Pack(&count, 1, MPI_INT, buffer, size, &position, MPI_COMM_WORLD);
        check_fill(data, (size_t)count * 8, check.rank, TAG, number);
        MPI_Pack(data, count, MPI_DOUBLE, buffer, size, &position, MPI_COMM_WORLD);
        check_fill(stream, (size_t)count * 12, check.rank, TAG, number + 1);
        for (i = 0; i < count; ++i) {
            memcpy(data + i * 20, stream + i * 12, 12);
        }
        MPI_Pack(data, 1, type, buffer, size, &position, MPI_COMM_WORLD);
        check_fill(data, (size_t)count * 5, check.rank, TAG, number + 2);
        MPI_Pack(data, count * 5, MPI_BYTE, buffer, size, &position, MPI_COMM_WORLD);
        MPI_Send(buffer, position, MPI_PACKED, partner, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Probe(partner, TAG, MPI_COMM_WORLD, &status);
        MPI_Recv(buffer, size, MPI_PACKED, partner, TAG, MPI_COMM_WORLD, &status);
        MPI_Unpack(buffer, size, &position, &told, 1, MPI_INT, MPI_COMM_WORLD);
        CHECK(told == count, "the packed count is %d, not %d", told, count);
        MPI_Unpack(buffer, size, &position, data, count, MPI_DOUBLE, MPI_COMM_WORLD);
        check_bytes(data, (size_t)count * 8, partner, TAG, number);
        MPI_Unpack(buffer, size, &position, data, 1, type, MPI_COMM_WORLD);
        gather_by_hand(stream, data, count);
        check_bytes(stream, (size_t)count * 12, partner, TAG, number + 1);
        MPI_Unpack(buffer, size, &position, data, count * 5, MPI_BYTE, MPI_COMM_WORLD);
        check_bytes(data, (size_t)count * 5, partner, TAG, number + 2);
    }
    number += 3;
    MPI_Type_free(&type);
    free(buffer);
    free(data);
    free(stream);
}

/** The machine-independent format, which is bytes on the way. */
static void test_external(int count, int sending, int partner)
{
    MPI_Aint size, position = 0;
    unsigned char *data = malloc((size_t)count * 4), *buffer;

    MPI_Pack_external_size("external32", count, MPI_INT, &size);
    CHECK(size == (MPI_Aint)count * 4, "external32 of %d ints takes %ld bytes", count, (long)size);
    buffer = malloc((size_t)size);
    if (sending) {
        check_fill(data, (size_t)count * 4, check.rank, TAG, number);
        MPI_Pack_external("external32", data, count, MPI_INT, buffer, size, &position);
        MPI_Send(buffer, (int)position, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buffer, (int)size, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Unpack_external("external32", buffer, size, &position, data, count, MPI_INT);
        check_bytes(data, (size_t)count * 4, partner, TAG, number);
    }
    ++number;
    free(buffer);
    free(data);
}

int main(int argc, char **argv)
{
    static const int counts[] = {1, 2, 30, 341, 342, 680, 700, 5000, 22000, 90000};
    int partner, i, repeat, sending;

    check_init(&argc, &argv, "pack");
    partner = check_partner();
    CHECK(partner != MPI_PROC_NULL, "needs an even number of ranks");
    for (i = 0; i < (int)CHECK_COUNT_OF(counts); ++i) {
        for (repeat = (counts[i] > 1000) ? 2 : 2 * check_scaled(20); repeat > 0; --repeat) {
            check.step  = counts[i];
            sending     = ((check.rank < partner) == repeat % 2);
            check.phase = "packed, then a vector";
            test_vector(counts[i], 1, sending, partner);
            check.phase = "a vector, then unpacked";
            test_vector(counts[i], 0, sending, partner);
            check.phase = "several pieces";
            test_pieces(counts[i], sending, partner);
            check.phase = "external32";
            test_external(counts[i], sending, partner);
        }
    }
    return check_finish();
}
