/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a rank says of a collective that it calls: a number, such that those of all ranks add up to 0, modulo 2^64, if all of them say what
 * matches; and words, for the case that they do not.
 *
 *  - What has to be the same everywhere (which collective, root, operation, count and type where these are one for all) is hashed to h. Rank r
 *    adds f(r, h), and subtracts f(r + 1, h), where the last one is followed by the first: nothing is left if all have the same h.
 *  - Where two ranks agree about a message between them (counts and types of MPI_Alltoallw, MPI_Gatherv, of neighbours), its sender adds
 *    f(sender, receiver, signature) and its receiver subtracts that: nothing is left if both have the same in mind.
 *
 * f scatters over 64 bits: numbers that add up to 0 all the same have odds of 2^-64. All ranks see the same sum, and so all take the same way then.
 */
#ifndef UCI_MPI_STATEMENT_H_
#define UCI_MPI_STATEMENT_H_

#include "shadow.h"

#define UCI_MPI_SAYS_MAX 320 /**< bytes of words, their end included */

/** A message that is a part of a collective. */
typedef struct uci_mpi_edge {
    int rank; /**< of the shadow: to whom, or from whom */
    uci_signature_t signature;
} uci_mpi_edge_t;

typedef struct uci_mpi_edges {
    uci_mpi_edge_t *list;
    size_t count;
} uci_mpi_edges_t;

/** What a rank says. */
typedef struct uci_mpi_statement {
    const char *call; /**< "MPI_Ibcast" */
    uint64_t kind;    /**< stands for `call` */
    int root;         /**< or UCI_MPI_NO_ROOT */
    unsigned op;      /**< uci_mpi_operation_code(); 0 if `has_op` is false */
    bool has_op;
    bool has_own;   /**< `own` is the same for all ranks */
    bool has_other; /**< this rank also has the `other` side, which is not the same as `own`, and has to be */
    uci_signature_t own;
    uci_signature_t other;
    uint64_t counts; /**< hash of counts that are the same for all ranks, or 0 */
    uci_mpi_edges_t out, in;
} uci_mpi_statement_t;

/** Say it. @return false: there is no memory; else uci_mpi_statement_clear() it. */
bool uci_mpi_statement_make(uci_mpi_statement_t *statement, const uci_mpi_collective_t *collective,
                            uci_mpi_shadow_t *shadow);
void uci_mpi_statement_clear(uci_mpi_statement_t *statement);

/** @return the number. */
uint64_t uci_mpi_statement_sum(const uci_mpi_statement_t *statement, int rank, int size);

/** The words: "MPI_Bcast of 4 x MPI_INT, root 0". */
void uci_mpi_statement_describe(const uci_mpi_statement_t *statement, char *text, size_t size);

/** Do both have to be taken for the same? Packed data matches anything. Unlike a message, one may not be shorter. */
bool uci_mpi_signatures_match(uint64_t word, uint64_t hash, uint64_t other_word, uint64_t other_hash);

#endif
