/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What an all-reduce is expected to take, by node and by the MPI (docs/allreduce.md): the slowest rank's time is a sum of terms, each a count of
 * something times what one of it costs. Counts follow from the algorithms, costs were fitted to measurements (tests/bench/allreduce.py). It is
 * asked with what is the same on all ranks, and so says the same on all of them.
 */
#ifndef UCI_MPI_ALLREDUCE_MODEL_H_
#define UCI_MPI_ALLREDUCE_MODEL_H_

#include "util/types.h"

typedef struct uci_mpi_model {
    int nodes;
    int leaders;     /**< of each node */
    int local_ranks; /**< of a node, at most */
    int ranks;
    size_t piece_max; /**< bytes of a piece; 0: as large as it is made where there is memory */
    bool sealed;
} uci_mpi_model_t;

typedef enum {
    UCI_MPI_TERM_PIECE,     /**< ranks of a node wait for each other */
    UCI_MPI_TERM_ROUND,     /**< a message there and one back, at the same time */
    UCI_MPI_TERM_BYTE,      /**< of messages: what sending and receiving it takes of a core's time */
    UCI_MPI_TERM_WIRE,      /**< of messages of all ranks of a node: they share its network */
    UCI_MPI_TERM_COPY,      /**< byte into shared memory, or out of it, digested */
    UCI_MPI_TERM_REDUCE,    /**< byte added up */
    UCI_MPI_TERM_SEAL,      /**< byte sealed or opened */
    UCI_MPI_TERM_RECORD,    /**< round of messages that are */
    UCI_MPI_TERM_MPI_ROUND, /**< the same of the MPI's own algorithm, with what it does around */
    UCI_MPI_TERM_MPI_BYTE,
    UCI_MPI_TERM_LAST
} uci_mpi_term_t;

/** Names of the terms. */
extern const char *const uci_mpi_term_names[UCI_MPI_TERM_LAST];

/** Nanoseconds of one of each. */
extern const double uci_mpi_term_costs[UCI_MPI_TERM_LAST];

/** How many of each, for an all-reduce of @a length bytes by node. */
void uci_mpi_model_by_node(const uci_mpi_model_t *model, size_t length, double counts[UCI_MPI_TERM_LAST]);

/** The same for the MPI's own, as good as it can be without knowing of nodes: recursive halving and doubling among all ranks, of which those of a
 *  node are neighbours. */
void uci_mpi_model_by_mpi(const uci_mpi_model_t *model, size_t length, double counts[UCI_MPI_TERM_LAST]);

/** @return nanoseconds. */
double uci_mpi_model_time(const double counts[UCI_MPI_TERM_LAST]);

/** @return bytes of a leader's block up to which recursive doubling takes less time than halving. */
size_t uci_mpi_model_doubling_max(const uci_mpi_model_t *model);

#endif
