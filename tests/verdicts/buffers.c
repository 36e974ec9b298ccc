/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 sends one buffer again and again, filled anew each time, and rank 1 receives it into one buffer and checks every byte. Behind the
 * sender's buffer is another one of the same size with something else in it: what a wrong address or key brings. For bugs of UCX that
 * bad_ucx.c has; run_cases.sh.
 *
 * usage: buffers BYTES ROUNDS [vector]
 *   vector   as MPI_Type_vector, 96 of 128 bytes: a datatype that the MPI packs and unpacks
 */
#include <sys/mman.h>

#include "../mpi/check.h"

enum { TAG = 11, TAG_OTHER = 12, BLOCK = 96, STRIDE = 128, ANSWER = 100 };

static unsigned char *map_two(size_t length)
{
    void *memory = mmap(NULL, 2 * length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED, "no memory for two buffers of %zu bytes", length);
    return memory;
}

/** The blocks of a vector hold the same bytes as all of a buffer would; between them is nothing to look at. */
static void check_blocks(const unsigned char *data, size_t length, uint64_t round)
{
    unsigned char *want = malloc(length);
    size_t at;

    check_fill(want, length, 0, TAG, round);
    for (at = 0; at + STRIDE <= length; at += STRIDE) {
        CHECK(memcmp(data + at, want + at, BLOCK) == 0, "wrong contents: block at %zu of message %llu", at,
              (unsigned long long)round);
    }
    free(want);
}

/** What was received has been checked; and rank 0 has something to check as well. */
static void answer(uint64_t round)
{
    unsigned char bytes[ANSWER];

    if (check.rank == 1) {
        check_fill(bytes, ANSWER, 1, TAG, round);
        MPI_Send(bytes, ANSWER, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(bytes, ANSWER, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_bytes(bytes, ANSWER, 1, TAG, round);
    }
}

static MPI_Datatype make_type(size_t length, int vector)
{
    MPI_Datatype type;

    if (vector) {
        MPI_Type_vector((int)(length / STRIDE), BLOCK, STRIDE, MPI_BYTE, &type);
    } else {
        MPI_Type_contiguous((int)length, MPI_BYTE, &type);
    }
    MPI_Type_commit(&type);
    return type;
}

int main(int argc, char **argv)
{
    const size_t length = (argc > 1) ? strtoul(argv[1], NULL, 10) : 1ul << 20;
    const int rounds    = (argc > 2) ? atoi(argv[2]) : 4;
    const int vector    = (argc > 3) && (strcmp(argv[3], "vector") == 0);
    unsigned char *data;
    MPI_Datatype type;
    int round;

    check_init(&(int){1}, &argv, "buffers");
    check_phase(vector ? "vector" : "contiguous");
    type = make_type(length, vector);
    data = map_two(length);
    check_fill(data + length, length, 0, TAG_OTHER, 0);
    for (round = 0; round < rounds; ++round) {
        check.step = round;
        if (check.rank == 0) {
            check_fill(data, length, 0, TAG, (uint64_t)round);
            MPI_Send(data, 1, type, 1, TAG, MPI_COMM_WORLD);
        } else if (check.rank == 1) {
            MPI_Recv(data, 1, type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (vector) {
                check_blocks(data, length, (uint64_t)round);
                ++check.messages;
            } else {
                check_bytes(data, length, 0, TAG, (uint64_t)round);
            }
        }
        answer((uint64_t)round);
    }
    munmap(data, 2 * length);
    MPI_Type_free(&type);
    return check_finish();
}
