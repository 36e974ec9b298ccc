/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Comm_spawn and MPI_Comm_spawn_multiple: children join a running job (new peers for every rank), exchange messages of all sizes with
 * their parents over the intercommunicator and over the merged one, and disconnect.
 *
 * @ranks 1 2
 * @faultless 1 the last message before PMIx_Fence, in MPI_Comm_disconnect, where its sender waits outside of MPI for who lacks it (docs/protected.md)
 * @faultless 2 the last message before PMIx_Connect, where its sender waits outside of MPI for who lacks it (docs/protected.md)
 * @skip mpich * MPICH 4.0 cannot spawn over its UCX netmod
 */
#include "check.h"

enum { TAG = 230, CHILDREN = 2 };

static const size_t lengths[] = {0, 8, 4096, 8300, 65537, 1048579};

/** Contents are numbered by merged ranks, which both sides know. */
static void exchange(MPI_Comm merged)
{
    int rank, size, i, peer;
    check_buffer_t out, in;
    MPI_Request request;
    MPI_Status status;

    MPI_Comm_rank(merged, &rank);
    MPI_Comm_size(merged, &size);
    for (i = 0; i < (int)CHECK_COUNT_OF(lengths); ++i) {
        check.step = (long)lengths[i];
        for (peer = 0; peer < size; ++peer) {
            int to = (rank + peer) % size, from = (rank + size - peer) % size;

            check_buffer_make(&out, lengths[i], 0);
            check_buffer_make(&in, lengths[i], 0);
            check_fill(out.data, lengths[i], rank, TAG, (uint64_t)i);
            MPI_Isend(out.data, (int)lengths[i], MPI_BYTE, to, TAG, merged, &request);
            MPI_Recv(in.data, (int)lengths[i], MPI_BYTE, from, TAG, merged, &status);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check_status(&status, from, TAG, lengths[i]);
            check_bytes(in.data, lengths[i], from, TAG, (uint64_t)i);
            check_buffer_free(&out);
            check_buffer_free(&in);
        }
    }
}

static void talk(MPI_Comm inter, int is_child)
{
    MPI_Comm merged;

    check_phase("merge");
    MPI_Intercomm_merge(inter, is_child, &merged);
    check_phase("exchange");
    exchange(merged);
    check_phase("disconnect");
    MPI_Barrier(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
}

/** One child of each of two commands. */
static inline void spawn_two(char *program, char **child_argv, MPI_Comm *inter_p)
{
    char *commands[] = {program, program}, **argvs[] = {child_argv, child_argv};
    int counts[]     = {1, 1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};

    MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, 0, MPI_COMM_WORLD, inter_p, MPI_ERRCODES_IGNORE);
}

int main(int argc, char **argv)
{
    char scale[32];
    char *child_argv[] = {scale, NULL};
    MPI_Comm parent, inter;

    check_init(&argc, &argv, "spawn");
    if (check_is_job_alone()) {
        return check_skip("this Open MPI reaches spawned processes by network only");
    }
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        check.name = "spawn (child)";
        talk(parent, 1);
        check_finalize();
        return 0;
    }
    check_phase("spawn");
    snprintf(scale, sizeof(scale), "%g", check.scale);
    MPI_Comm_spawn(argv[0], child_argv, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    talk(inter, 0);
#if !defined(OMPI_MAJOR_VERSION) || (OMPI_MAJOR_VERSION != 5) /* mpirun of Open MPI 5.0.7 crashes, on plain UCX too */
    check_phase("spawn multiple");
    spawn_two(argv[0], child_argv, &inter);
    talk(inter, 0);
#endif
    return check_finish();
}
