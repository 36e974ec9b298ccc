/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators: dup, idup, dup_with_info, split, split_type, create, create_group. Messages of the same tag on
 * different communicators do not meet, ranks are translated, and collectives work on each.
 *
 * @ranks 2 4
 * @args 4: 0.2
 * @args mpich 4: 0.05
 */
#include "check.h"

enum { TAG = 210, COMMS = 12 };

static const size_t lengths[] = {0, 64, 8300, 200000};

/** World ranks of a communicator's members, learnt without messages. */
static int world_rank(MPI_Comm comm, int rank)
{
    MPI_Group group, world;
    int translated;

    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, 1, &rank, world, &translated);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return translated;
}

/** A ring in @a comm, then a broadcast and a sum; contents name world ranks and the communicator's number. */
static void use(MPI_Comm comm, int number, int members)
{
    int rank, size, i, sum = 0, right, left;
    check_buffer_t out, in;
    MPI_Status status;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    CHECK(size == members, "communicator %d has %d members, not %d", number, size, members);
    right = (rank + 1) % size;
    left  = (rank + size - 1) % size;
    for (i = 0; i < (int)CHECK_COUNT_OF(lengths); ++i) {
        check_buffer_make(&out, lengths[i], 0);
        check_buffer_make(&in, lengths[i], 0);
        check_fill(out.data, lengths[i], check.rank, TAG, (uint64_t)number);
        MPI_Sendrecv(out.data, (int)lengths[i], MPI_BYTE, right, TAG, in.data, (int)lengths[i], MPI_BYTE, left, TAG,
                     comm, &status);
        check_status(&status, left, TAG, lengths[i]);
        check_bytes(in.data, lengths[i], world_rank(comm, left), TAG, (uint64_t)number);
        memcpy(in.data, out.data, lengths[i]);
        MPI_Bcast(in.data, (int)lengths[i], MPI_BYTE, size - 1, comm);
        check_bytes(in.data, lengths[i], world_rank(comm, size - 1), TAG, (uint64_t)number);
        check_buffer_free(&out);
        check_buffer_free(&in);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * (size - 1) / 2, "sum of ranks on communicator %d is %d", number, sum);
}

/** The same tag on many communicators at once, received from the last one to the first, with wildcards. */
static void test_apart(void)
{
    MPI_Comm comms[COMMS];
    MPI_Request requests[COMMS];
    unsigned char out[COMMS][100], in[100];
    MPI_Status status;
    int i, flag, right = (check.rank + 1) % check.size, left = (check.rank + check.size - 1) % check.size;

    check_phase("kept apart");
    for (i = 0; i < COMMS; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        check_fill(out[i], sizeof(out[i]), check.rank, TAG, (uint64_t)i);
        MPI_Isend(out[i], sizeof(out[i]), MPI_BYTE, right, TAG, comms[i], &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = COMMS - 1; i >= 0; --i) {
        memset(in, CHECK_POISON_BYTE, sizeof(in));
        MPI_Recv(in, sizeof(in), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &status);
        check_status(&status, left, TAG, sizeof(in));
        check_bytes(in, sizeof(in), left, TAG, (uint64_t)i);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &flag, &status);
        CHECK(!flag, "a second message on communicator %d", i);
    }
    MPI_Waitall(COMMS, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < COMMS; ++i) {
        MPI_Comm_free(&comms[i]);
    }
}

static void test_dup(int number)
{
    MPI_Comm comm;
    MPI_Request request;

    check_phase("dup");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    use(comm, number, check.size);
    MPI_Comm_free(&comm);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
    use(comm, number + 1, check.size);
    MPI_Comm_free(&comm);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use(comm, number + 2, check.size);
    MPI_Comm_free(&comm);
}

static void test_split(int number)
{
    MPI_Comm comm;
    int even = (check.rank % 2 == 0), evens = (check.size + 1) / 2, members;

    check_phase("split");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check.rank, &comm); /* all, backwards */
    use(comm, number, check.size);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, even, check.rank, &comm);
    use(comm, number + 1, even ? evens : check.size - evens);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, even ? 3 : MPI_UNDEFINED, 0, &comm);
    CHECK(even == (comm != MPI_COMM_NULL), "MPI_UNDEFINED gave a communicator, or a colour none");
    if (even) {
        use(comm, number + 2, evens);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    MPI_Comm_size(comm, &members); /* all on one machine, but MPICH may be told to forget that (NOLOCAL) */
    use(comm, number + 3, members);
    MPI_Comm_free(&comm);
}

/** All but the first rank, made by all, and then by the members alone. */
static void test_create(int number)
{
    MPI_Group world, group;
    MPI_Comm comm;
    int first = 0;

    check_phase("create");
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, &first, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
    if (comm != MPI_COMM_NULL) {
        use(comm, number, check.size - 1);
        MPI_Comm_free(&comm);
    }
    if (check.rank != first) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 77, &comm);
        use(comm, number + 1, check.size - 1);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
    int i;

    check_init(&argc, &argv, "comms");
    for (i = 0; i < check_scaled(20); ++i) {
        test_apart();
        test_dup(i * 100);
        test_split(i * 100 + 10);
        test_create(i * 100 + 20);
    }
    return check_finish();
}
