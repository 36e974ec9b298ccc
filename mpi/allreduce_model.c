/* SPDX-License-Identifier: BSD-3-Clause */
#include "allreduce_model.h"

#define UCI_MPI_MODEL_BLOCK    ((double)(4 << 20)) /* bytes of a block where nothing else is said */
#define UCI_MPI_DOUBLING_LIMIT ((size_t)256 << 10) /* bytes: beyond, what was measured does not say */

const char *const uci_mpi_term_names[UCI_MPI_TERM_LAST] = {
        [UCI_MPI_TERM_PIECE] = "piece",       [UCI_MPI_TERM_ROUND] = "round",   [UCI_MPI_TERM_BYTE] = "byte",
        [UCI_MPI_TERM_WIRE] = "wire",         [UCI_MPI_TERM_COPY] = "copy",     [UCI_MPI_TERM_REDUCE] = "reduce",
        [UCI_MPI_TERM_SEAL] = "seal",         [UCI_MPI_TERM_RECORD] = "record", [UCI_MPI_TERM_MPI_ROUND] = "mpi_round",
        [UCI_MPI_TERM_MPI_BYTE] = "mpi_byte",
};

/*
 * As tests/bench/allreduce.py has fitted them: over tcp between network namespaces, on cores that were busy otherwise too, with copying and adding up
 * measured alone. What decides is how they compare. The wire is one of 100 Gbit/s. A record costs no more than its bytes do, as far as can be seen
 */
const double uci_mpi_term_costs[UCI_MPI_TERM_LAST] = {
        [UCI_MPI_TERM_PIECE] = 22000,  [UCI_MPI_TERM_ROUND] = 1600, [UCI_MPI_TERM_BYTE] = 3.7,
        [UCI_MPI_TERM_WIRE] = 0.08,    [UCI_MPI_TERM_COPY] = 0.09,  [UCI_MPI_TERM_REDUCE] = 0.09,
        [UCI_MPI_TERM_SEAL] = 1.07,    [UCI_MPI_TERM_RECORD] = 0,   [UCI_MPI_TERM_MPI_ROUND] = 14000,
        [UCI_MPI_TERM_MPI_BYTE] = 3.1,
};

/* Powers of two up to @a count: rounds of recursive doubling */
static int uci_mpi_rounds(int count)
{
    int rounds = 0;

    while (2 << rounds <= count) {
        ++rounds;
    }
    return rounds;
}

/* One more there and one more back, for those that are beyond a power of two */
static bool uci_mpi_is_odd(int count)
{
    return (1 << uci_mpi_rounds(count)) != count;
}

/* Between the leaders, for a block: as uci_mpi_net_allreduce() does it */
static void uci_mpi_model_net(const uci_mpi_model_t *model, double block, bool by_doubling,
                              double counts[UCI_MPI_TERM_LAST])
{
    int rounds = uci_mpi_rounds(model->nodes), odd = uci_mpi_is_odd(model->nodes);
    double leaves = 1 << rounds, share = (leaves - 1) / leaves;
    double sent    = (by_doubling ? rounds * block : 2 * share * block) + 2 * odd * block;
    double reduced = (by_doubling ? rounds * block : share * block) + odd * block;

    counts[UCI_MPI_TERM_ROUND] += (by_doubling ? rounds : 2 * rounds) + 2 * odd;
    counts[UCI_MPI_TERM_BYTE] += sent;
    counts[UCI_MPI_TERM_WIRE] += sent * model->leaders;
    counts[UCI_MPI_TERM_REDUCE] += reduced;
    if (model->sealed) {
        counts[UCI_MPI_TERM_SEAL] += 2 * sent;
        counts[UCI_MPI_TERM_RECORD] += (by_doubling ? rounds : 2 * rounds) + 2 * odd;
    }
}

static double uci_mpi_model_pieces(const uci_mpi_model_t *model, double length)
{
    double most   = (model->piece_max != 0) ? (double)model->piece_max : UCI_MPI_MODEL_BLOCK * model->leaders;
    double pieces = length / most;

    return (pieces > 1) ? pieces : 1;
}

void uci_mpi_model_by_node(const uci_mpi_model_t *model, size_t length, double counts[UCI_MPI_TERM_LAST])
{
    double pieces = uci_mpi_model_pieces(model, (double)length), block = (double)length / model->leaders;
    double others = model->local_ranks - 1;
    bool doubling = (block / pieces <= (double)uci_mpi_model_doubling_max(model));
    int i;

    for (i = 0; i < UCI_MPI_TERM_LAST; ++i) {
        counts[i] = 0;
    }
    uci_mpi_model_net(model, block, doubling, counts);
    counts[UCI_MPI_TERM_ROUND] *= pieces;
    counts[UCI_MPI_TERM_RECORD] *= pieces;
    if (others > 0) {
        counts[UCI_MPI_TERM_PIECE] = pieces;
        counts[UCI_MPI_TERM_COPY]  = 2 * ((double)length - block) /* into the slot, and the sums out of others' */
                                    + others * block              /* what others have put there for us */
                                    + 2 * block;                  /* our sums, to the program and to the others */
        counts[UCI_MPI_TERM_REDUCE] += others * block;
    } else {
        counts[UCI_MPI_TERM_COPY] = 2 * (double)length;
    }
}

void uci_mpi_model_by_mpi(const uci_mpi_model_t *model, size_t length, double counts[UCI_MPI_TERM_LAST])
{
    int rounds   = uci_mpi_rounds(model->ranks) + uci_mpi_is_odd(model->ranks), i;
    double share = (double)(model->ranks - 1) / model->ranks, sent = 2 * share * (double)length;
    double leaving = 2 * (double)length / model->leaders * (model->nodes - 1) / model->nodes;

    for (i = 0; i < UCI_MPI_TERM_LAST; ++i) {
        counts[i] = 0;
    }
    counts[UCI_MPI_TERM_MPI_ROUND] = 2 * rounds;
    counts[UCI_MPI_TERM_MPI_BYTE]  = sent;
    counts[UCI_MPI_TERM_WIRE]      = leaving * model->leaders;
    counts[UCI_MPI_TERM_REDUCE]    = share * (double)length;
    if (model->sealed) { /* at its best: halving among ranks of which those of a node are neighbours. Those at the ends of a ring seal all */
        counts[UCI_MPI_TERM_SEAL]   = 2 * leaving;
        counts[UCI_MPI_TERM_RECORD] = 2 * rounds;
    }
}

double uci_mpi_model_time(const double counts[UCI_MPI_TERM_LAST])
{
    double time = 0;
    int i;

    for (i = 0; i < UCI_MPI_TERM_LAST; ++i) {
        time += counts[i] * uci_mpi_term_costs[i];
    }
    return time;
}

/* Halving has twice the rounds; doubling sends the whole block in each of them */
size_t uci_mpi_model_doubling_max(const uci_mpi_model_t *model)
{
    size_t block;

    for (block = 1024; block < UCI_MPI_DOUBLING_LIMIT; block *= 2) {
        double doubling[UCI_MPI_TERM_LAST] = {0}, halving[UCI_MPI_TERM_LAST] = {0};

        uci_mpi_model_net(model, (double)block, true, doubling);
        uci_mpi_model_net(model, (double)block, false, halving);
        if (uci_mpi_model_time(doubling) > uci_mpi_model_time(halving)) {
            break;
        }
    }
    return block / 2;
}
