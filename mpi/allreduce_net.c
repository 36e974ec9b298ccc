/* SPDX-License-Identifier: BSD-3-Clause */
#include "allreduce_net.h"

#include <sched.h>

#define UCI_MPI_SEGMENT    ((size_t)256 << 10) /* bytes of a message: one is added up while the next ones travel */
#define UCI_MPI_TAG_DATA   0
#define UCI_MPI_ROUNDS_MAX 32
#define UCI_MPI_TURNS_OWN  64u /* see uci_mpi_net_turn() */

/* Half of a block, or a half of that, as recursive halving goes on */
typedef struct uci_mpi_range {
    size_t begin, length;
} uci_mpi_range_t;

/* What is sent to a leader and received from it at the same time, in messages of one segment each */
typedef struct uci_mpi_exchange {
    MPI_Request sends[UCI_MPI_SEGMENTS];
    MPI_Request receives[UCI_MPI_SEGMENTS];
    size_t segment;
} uci_mpi_exchange_t;

int uci_mpi_reduce_local(MPI_Datatype datatype, MPI_Op op, size_t extent, const void *in, void *inout, size_t length)
{
    return PMPI_Reduce_local(in, inout, (int)(length / extent), datatype, op);
}

static int uci_mpi_net_turn(uci_mpi_net_t *net, unsigned *turns)
{
    if (net->window != NULL) {
        return uci_mpi_window_turn(net->window);
    }
    if (++*turns > UCI_MPI_TURNS_OWN) {
        sched_yield();
    }
    return MPI_SUCCESS;
}

static int uci_mpi_net_wait(uci_mpi_net_t *net, MPI_Request *request)
{
    unsigned turns = 0;
    int ret, flag;

    if (net->window != NULL) {
        uci_mpi_window_wait_begin(net->window);
    }
    for (;;) {
        ret = PMPI_Test(request, &flag, MPI_STATUS_IGNORE);
        if ((ret != MPI_SUCCESS) || flag) {
            return ret;
        }
        ret = uci_mpi_net_turn(net, &turns);
        if (ret != MPI_SUCCESS) {
            return ret;
        }
    }
}

static size_t uci_mpi_segment_of(size_t length)
{
    size_t least = (length + UCI_MPI_SEGMENTS - 1) / UCI_MPI_SEGMENTS;

    least = uci_align_up(least, UCI_MPI_BLOCK_UNIT);
    return uci_max(least, UCI_MPI_SEGMENT);
}

static int uci_mpi_exchange_begin(uci_mpi_net_t *net, uci_mpi_exchange_t *exchange, int peer, const char *send,
                                  size_t send_length, char *receive, size_t receive_length)
{
    size_t offset, segment = uci_mpi_segment_of(uci_max(send_length, receive_length));
    unsigned i;
    int ret = MPI_SUCCESS;

    exchange->segment = segment;
    for (i = 0; i < UCI_MPI_SEGMENTS; ++i) {
        exchange->sends[i] = exchange->receives[i] = MPI_REQUEST_NULL;
    }
    for (i = 0, offset = 0; (ret == MPI_SUCCESS) && (offset < receive_length); ++i, offset += segment) {
        ret = PMPI_Irecv(receive + offset, (int)uci_min(segment, receive_length - offset), MPI_BYTE, peer,
                         UCI_MPI_TAG_DATA, net->comm, &exchange->receives[i]);
    }
    for (i = 0, offset = 0; (ret == MPI_SUCCESS) && (offset < send_length); ++i, offset += segment) {
        ret = PMPI_Isend(send + offset, (int)uci_min(segment, send_length - offset), MPI_BYTE, peer, UCI_MPI_TAG_DATA,
                         net->comm, &exchange->sends[i]);
    }
    return ret;
}

static int uci_mpi_exchange_end(uci_mpi_net_t *net, uci_mpi_exchange_t *exchange)
{
    int ret = MPI_SUCCESS;
    unsigned i;

    for (i = 0; (ret == MPI_SUCCESS) && (i < UCI_MPI_SEGMENTS); ++i) {
        if (exchange->receives[i] != MPI_REQUEST_NULL) {
            ret = uci_mpi_net_wait(net, &exchange->receives[i]);
        }
    }
    for (i = 0; (ret == MPI_SUCCESS) && (i < UCI_MPI_SEGMENTS); ++i) {
        if (exchange->sends[i] != MPI_REQUEST_NULL) {
            ret = uci_mpi_net_wait(net, &exchange->sends[i]);
        }
    }
    return ret;
}

static int uci_mpi_exchange(uci_mpi_net_t *net, int peer, const char *send, size_t send_length, char *receive,
                            size_t receive_length)
{
    uci_mpi_exchange_t exchange;
    int ret = uci_mpi_exchange_begin(net, &exchange, peer, send, send_length, receive, receive_length);

    return (ret == MPI_SUCCESS) ? uci_mpi_exchange_end(net, &exchange) : ret;
}

static void uci_mpi_swap(char **sums_p, char **spare_p)
{
    char *sums = *sums_p;

    *sums_p  = *spare_p;
    *spare_p = sums;
}

/*
 * Receive into the spare, and add: left operand is who is left. MPI's own functions write to the right operand, so that the sums of the left one
 * are in the spare, which takes their place.
 */
static int uci_mpi_exchange_reduce(uci_mpi_net_t *net, int peer, bool is_left, uci_mpi_range_t send,
                                   uci_mpi_range_t keep, char **sums_p, char **spare_p)
{
    bool is_sent_too = (send.length > 0) && (send.begin == keep.begin); /* or the two do not overlap */
    char *sums = *sums_p + keep.begin, *spare = *spare_p + keep.begin;
    uci_mpi_exchange_t exchange;
    size_t offset, length;
    unsigned i;
    int ret = uci_mpi_exchange_begin(net, &exchange, peer, *sums_p + send.begin, send.length, spare, keep.length);

    if ((ret == MPI_SUCCESS) && is_sent_too && !is_left) { /* what is on its way may not be written to */
        ret = uci_mpi_exchange_end(net, &exchange);
    }
    for (i = 0, offset = 0; (ret == MPI_SUCCESS) && (offset < keep.length); ++i, offset += length) {
        length = uci_min(exchange.segment, keep.length - offset);
        ret    = uci_mpi_net_wait(net, &exchange.receives[i]);
        if (ret == MPI_SUCCESS) {
            ret = is_left ? uci_mpi_reduce_local(net->datatype, net->op, net->extent, sums + offset, spare + offset,
                                                 length)
                          : uci_mpi_reduce_local(net->datatype, net->op, net->extent, spare + offset, sums + offset,
                                                 length);
        }
    }
    if (ret == MPI_SUCCESS) {
        ret = uci_mpi_exchange_end(net, &exchange);
    }
    if (is_left) {
        uci_mpi_swap(sums_p, spare_p);
    }
    return ret;
}

/* The node of leaf @a leaf, of which the first @a pairs are pairs of nodes */
static int uci_mpi_node_of(int leaf, int pairs)
{
    return (leaf < pairs) ? 2 * leaf : leaf + pairs;
}

static int uci_mpi_net_doubling(uci_mpi_net_t *net, int leaf, int leaves, char **sums_p, char **spare_p, size_t length)
{
    uci_mpi_range_t all = {0, length};
    int ret = MPI_SUCCESS, bit, pairs = net->nodes - leaves;

    for (bit = 1; (ret == MPI_SUCCESS) && (bit < leaves); bit <<= 1) {
        ret = uci_mpi_exchange_reduce(net, uci_mpi_node_of(leaf ^ bit, pairs), !(leaf & bit), all, all, sums_p,
                                      spare_p);
    }
    return ret;
}

static int uci_mpi_net_halving(uci_mpi_net_t *net, int leaf, int leaves, char **sums_p, char **spare_p, size_t length)
{
    uci_mpi_range_t mine[UCI_MPI_ROUNDS_MAX], theirs[UCI_MPI_ROUNDS_MAX], range = {0, length}, low, high;
    int ret = MPI_SUCCESS, round, bit, pairs = net->nodes - leaves;

    for (round = 0, bit = 1; (ret == MPI_SUCCESS) && (bit < leaves); ++round, bit <<= 1) {
        low = (uci_mpi_range_t){range.begin, uci_min(uci_align_up(range.length / 2, UCI_MPI_BLOCK_UNIT), range.length)};
        high          = (uci_mpi_range_t){range.begin + low.length, range.length - low.length};
        mine[round]   = (leaf & bit) ? high : low;
        theirs[round] = (leaf & bit) ? low : high;
        range         = mine[round];
        ret = uci_mpi_exchange_reduce(net, uci_mpi_node_of(leaf ^ bit, pairs), !(leaf & bit), theirs[round], range,
                                      sums_p, spare_p);
    }
    while ((ret == MPI_SUCCESS) && (round-- > 0)) {
        bit >>= 1;
        ret = uci_mpi_exchange(net, uci_mpi_node_of(leaf ^ bit, pairs), *sums_p + mine[round].begin, mine[round].length,
                               *sums_p + theirs[round].begin, theirs[round].length);
    }
    return ret;
}

int uci_mpi_net_allreduce(uci_mpi_net_t *net, char **sums_p, char **spare_p, size_t length)
{
    uci_mpi_range_t all = {0, length}, none = {0, 0};
    int leaves = 1, pairs, ret = MPI_SUCCESS;

    while (2 * leaves <= net->nodes) {
        leaves *= 2;
    }
    pairs = net->nodes - leaves;
    if ((net->node < 2 * pairs) && (net->node % 2 == 1)) { /* its left neighbour does it for both */
        ret = uci_mpi_exchange(net, net->node - 1, *sums_p, length, NULL, 0);
        return (ret == MPI_SUCCESS) ? uci_mpi_exchange(net, net->node - 1, NULL, 0, *sums_p, length) : ret;
    }
    if (net->node < 2 * pairs) {
        ret = uci_mpi_exchange_reduce(net, net->node + 1, true, none, all, sums_p, spare_p);
    }
    if (ret == MPI_SUCCESS) {
        ret = ((length <= net->doubling_max) ? uci_mpi_net_doubling : uci_mpi_net_halving)(
                net, (net->node < 2 * pairs) ? net->node / 2 : net->node - pairs, leaves, sums_p, spare_p, length);
    }
    if ((ret == MPI_SUCCESS) && (net->node < 2 * pairs)) {
        ret = uci_mpi_exchange(net, net->node + 1, *sums_p, length, NULL, 0);
    }
    return ret;
}
