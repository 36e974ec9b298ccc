/* SPDX-License-Identifier: BSD-3-Clause */
#include "allreduce.h"

#include <pthread.h>
#include <string.h>

#include "allreduce_comm.h"
#include "allreduce_model.h"
#include "allreduce_types.h"
#include "attach.h"
#include "gpu.h"

#define UCI_MPI_CALLS_BEFORE 1u /* all-reduces of a communicator before it is prepared: many do only one */

/* One at work */
typedef struct uci_mpi_allreduce {
    uci_mpi_comm_t *kept;
    const char *send;
    char *receive;
    size_t length; /* bytes */
    size_t extent;
    MPI_Datatype datatype;
    MPI_Op op;
} uci_mpi_allreduce_t;

static pthread_once_t uci_mpi_allreduce_once = PTHREAD_ONCE_INIT;
static const uci_allreduce_ops_t *uci_mpi_allreduce_ops; /* NULL: all is left to the MPI */

static void uci_mpi_allreduce_attach(void)
{
    uci_allreduce_attach_func_t attach;
    const uci_allreduce_ops_t *ops;
    int is_initialized = 0;

    uci_mpi_check_mpi();
    attach = (uci_allreduce_attach_func_t)uci_mpi_library_find(UCI_ALLREDUCE_ATTACH);
    PMPI_Initialized(&is_initialized); /* not by sessions, which have no MPI_COMM_SELF */
    ops = ((attach != NULL) && is_initialized) ? attach(UCI_ALLREDUCE_VERSION) : NULL;
    if ((ops != NULL) && uci_mpi_comm_init(ops)) {
        uci_mpi_allreduce_ops = ops;
    }
}

/* All that a decision looks at is the same on all ranks */
static uci_mpi_model_t uci_mpi_allreduce_model(const uci_mpi_comm_t *kept)
{
    return (uci_mpi_model_t){.nodes       = kept->nodes,
                             .leaders     = kept->leaders,
                             .local_ranks = kept->local_ranks_max,
                             .ranks       = kept->ranks,
                             .piece_max   = kept->piece_max,
                             .sealed      = kept->sealed};
}

static bool uci_mpi_allreduce_is_faster(const uci_mpi_comm_t *kept, size_t length)
{
    double by_node[UCI_MPI_TERM_LAST], by_mpi[UCI_MPI_TERM_LAST];
    uci_mpi_model_t model = uci_mpi_allreduce_model(kept);

    uci_mpi_model_by_node(&model, length, by_node);
    uci_mpi_model_by_mpi(&model, length, by_mpi);
    return uci_mpi_model_time(by_node) < uci_mpi_model_time(by_mpi);
}

static void uci_mpi_allreduce_prepare(uci_mpi_comm_t *kept, MPI_Comm comm)
{
    uci_mpi_model_t model;

    uci_mpi_comm_prepare(kept, comm, !uci_mpi_has_gpu());
    model                  = uci_mpi_allreduce_model(kept);
    kept->net.doubling_max = uci_mpi_model_doubling_max(&model);
}

/* @return what is kept of @a comm, if this is to be done by node; else NULL */
static uci_mpi_comm_t *uci_mpi_allreduce_wants(const void *send, const void *receive, int64_t count, size_t extent,
                                               MPI_Comm comm)
{
    uci_mpi_comm_t *kept;
    bool is_wanted;

    if ((extent == 0) || (count <= 0) || (receive == NULL) || (send == NULL) || (send == receive)) {
        return NULL;
    }
    kept = uci_mpi_comm_get(comm);
    if ((kept == NULL) || (kept->state == UCI_MPI_COMM_MPI)) {
        return NULL;
    }
    if (kept->state == UCI_MPI_COMM_NEW) {
        if (kept->calls++ < UCI_MPI_CALLS_BEFORE) {
            return NULL;
        }
        uci_mpi_allreduce_prepare(kept, comm);
    }
    is_wanted = (kept->state == UCI_MPI_COMM_READY) && ((uci_mpi_allreduce_ops->use == UCI_ALLREDUCE_ON) ||
                                                        uci_mpi_allreduce_is_faster(kept, (size_t)count * extent));
    return is_wanted ? kept : NULL;
}

/* Sums of this node: from its last rank to its first, since MPI's functions write to the right operand */
static int uci_mpi_allreduce_chunk(uci_mpi_allreduce_t *work, const uci_mpi_piece_t *piece, size_t offset,
                                   size_t length)
{
    uci_mpi_comm_t *kept = work->kept;
    const char *own      = work->send + piece->offset + uci_mpi_block_begin(piece, (unsigned)kept->local) + offset;
    char *sums           = kept->sums + offset;
    int ret              = MPI_SUCCESS, rank;

    for (rank = kept->local_ranks - 1; (ret == MPI_SUCCESS) && (rank >= 0); --rank) {
        bool is_last   = (rank == kept->local_ranks - 1);
        const void *in = kept->chunk;

        if (rank == kept->local) {
            in = own;
            if (is_last) {
                memcpy(sums, own, length);
            }
        } else {
            ret = uci_mpi_window_read(&kept->window, piece, (unsigned)rank, (unsigned)kept->local, offset, length,
                                      is_last ? sums : kept->chunk);
        }
        if (!is_last && (ret == MPI_SUCCESS)) {
            ret = uci_mpi_reduce_local(work->datatype, work->op, work->extent, in, sums, length);
        }
    }
    return ret;
}

static int uci_mpi_allreduce_lead(uci_mpi_allreduce_t *work, const uci_mpi_piece_t *piece)
{
    uci_mpi_comm_t *kept = work->kept;
    size_t block         = uci_mpi_block_length(piece, (unsigned)kept->local), offset;
    int ret              = uci_mpi_window_wait_filled(&kept->window, piece);

    for (offset = 0; (ret == MPI_SUCCESS) && (offset < block); offset += UCI_MPI_CHUNK) {
        ret = uci_mpi_allreduce_chunk(work, piece, offset, uci_min(UCI_MPI_CHUNK, block - offset));
    }
    if (ret == MPI_SUCCESS) {
        ret = uci_mpi_net_allreduce(&kept->net, &kept->sums, &kept->spare, block);
    }
    if (ret == MPI_SUCCESS) {
        memcpy(work->receive + piece->offset + uci_mpi_block_begin(piece, (unsigned)kept->local), kept->sums, block);
        uci_mpi_window_publish(&kept->window, piece);
    }
    return ret;
}

static int uci_mpi_allreduce_collect(uci_mpi_allreduce_t *work, const uci_mpi_piece_t *piece, unsigned block)
{
    uci_mpi_comm_t *kept = work->kept;
    char *to             = work->receive + piece->offset + uci_mpi_block_begin(piece, block);
    size_t length        = uci_mpi_block_length(piece, block), offset;
    int ret              = uci_mpi_window_wait_published(&kept->window, piece, block);

    for (offset = 0; (ret == MPI_SUCCESS) && (offset < length); offset += UCI_MPI_CHUNK) {
        ret = uci_mpi_window_read(&kept->window, piece, block, block, offset, uci_min(UCI_MPI_CHUNK, length - offset),
                                  to + offset);
    }
    return ret;
}

static int uci_mpi_allreduce_piece(uci_mpi_allreduce_t *work, size_t offset, size_t length)
{
    uci_mpi_comm_t *kept         = work->kept;
    const uci_mpi_piece_t *piece = uci_mpi_window_begin(&kept->window, offset, length);
    unsigned leaders             = (unsigned)kept->leaders, i;
    int ret                      = uci_mpi_window_wait_taken(&kept->window, piece->number - 2);

    if (ret != MPI_SUCCESS) {
        return ret;
    }
    uci_mpi_window_fill(&kept->window, piece);
    if (kept->local < kept->leaders) {
        ret = uci_mpi_allreduce_lead(work, piece);
    }
    for (i = 1; (ret == MPI_SUCCESS) && (i <= leaders);
         ++i) { /* those behind this one first, so that not all read the same one */
        unsigned block = ((unsigned)kept->local + i) % leaders;

        if (block != (unsigned)kept->local) {
            ret = uci_mpi_allreduce_collect(work, piece, block);
        }
    }
    if (ret == MPI_SUCCESS) {
        uci_mpi_window_take(&kept->window, piece);
    }
    return ret;
}

/* The only rank of its node: nobody to share with */
static int uci_mpi_allreduce_alone(uci_mpi_allreduce_t *work, size_t offset, size_t length)
{
    uci_mpi_piece_t piece = {.leaders = (unsigned)work->kept->leaders, .length = length};
    int ret;

    memcpy(work->kept->sums, work->send + offset, uci_mpi_block_length(&piece, 0));
    ret = uci_mpi_net_allreduce(&work->kept->net, &work->kept->sums, &work->kept->spare, length);
    if (ret == MPI_SUCCESS) {
        memcpy(work->receive + offset, work->kept->sums, length);
    }
    return ret;
}

static int uci_mpi_allreduce_pieces(uci_mpi_allreduce_t *work)
{
    uci_mpi_comm_t *kept = work->kept;
    bool is_shared       = (kept->window.memory != NULL);
    size_t offset;
    int ret = MPI_SUCCESS;

    for (offset = 0; (ret == MPI_SUCCESS) && (offset < work->length); offset += kept->piece_max) {
        ret = (is_shared ? uci_mpi_allreduce_piece
                         : uci_mpi_allreduce_alone)(work, offset, uci_min(kept->piece_max, work->length - offset));
    }
    if (is_shared && (ret == MPI_SUCCESS)) { /* until then a rank may want a chunk of our buffers again */
        ret = uci_mpi_window_wait_taken(&kept->window, kept->window.number);
    }
    if (is_shared && (ret != MPI_SUCCESS)) {
        uci_mpi_window_fail(&kept->window, ret);
    }
    return ret;
}

bool uci_mpi_allreduce_by_node(const void *send, void *receive, int64_t count, MPI_Datatype datatype, MPI_Op op,
                               MPI_Comm comm, int *ret_p)
{
    uci_mpi_allreduce_t work = {.receive = receive, .datatype = datatype, .op = op};
    int ret;

    pthread_once(&uci_mpi_allreduce_once, uci_mpi_allreduce_attach);
    if (uci_mpi_allreduce_ops == NULL) {
        return false;
    }
    work.extent = uci_mpi_allreduce_extent(datatype, op);
    work.kept   = uci_mpi_allreduce_wants(send, receive, count, work.extent, comm);
    if (work.kept == NULL) {
        return false;
    }
    work.send                 = (send == MPI_IN_PLACE) ? receive : send;
    work.length               = (size_t)count * work.extent;
    work.kept->window.send    = work.send;
    work.kept->window.receive = receive;
    work.kept->window.count   = work.length;
    work.kept->net.datatype   = datatype;
    work.kept->net.op         = op;
    work.kept->net.extent     = work.extent;

    ret = uci_mpi_allreduce_pieces(&work);
    if (ret == MPI_SUCCESS) {
        uci_mpi_allreduce_ops->count();
    } else {
        work.kept->state = UCI_MPI_COMM_MPI; /* what is on the way no longer fits together */
        PMPI_Comm_call_errhandler(comm, ret);
    }
    *ret_p = ret;
    return true;
}

int uci_mpi_allreduce(const void *send, void *receive, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    int ret;

    return uci_mpi_allreduce_by_node(send, receive, count, datatype, op, comm, &ret)
                   ? ret
                   : PMPI_Allreduce(send, receive, count, datatype, op, comm);
}

#if MPI_VERSION >= 4
int uci_mpi_allreduce_c(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm)
{
    int ret;

    return uci_mpi_allreduce_by_node(send, receive, count, datatype, op, comm, &ret)
                   ? ret
                   : PMPI_Allreduce_c(send, receive, count, datatype, op, comm);
}
#endif
