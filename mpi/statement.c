/* SPDX-License-Identifier: BSD-3-Clause */
#include "statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basic_types.h"
#include "operations.h"

/* Of what goes to, or comes from, rank @a i. What can't be told matches anything; it is kept until it is compared */
static uci_signature_t uci_mpi_side_sign(const uci_mpi_collective_t *call, const uci_mpi_side_t *side, int i)
{
    uci_signature_t signature;

    if (uci_mpi_sign(&signature, call->call, uci_mpi_side_count(side, i), uci_mpi_side_type(side, i), call->comm) ==
        NULL) {
        return (uci_signature_t){.word = uci_signature_word(UCI_SIGNATURE_PACKED, 1)};
    }
    if (uci_signature_code(signature.word) == UCI_SIGNATURE_MIXED) {
        uci_sigtype_hold(signature.type);
    } else {
        signature.type = NULL;
    }
    return signature;
}

static void uci_mpi_signature_drop(uci_signature_t *signature)
{
    if (signature->type != NULL) {
        uci_sigtype_release(signature->type);
    }
}

bool uci_mpi_signatures_match(uint64_t word, uint64_t hash, uint64_t other_word, uint64_t other_hash)
{
    unsigned code = uci_signature_code(word), other_code = uci_signature_code(other_word);

    return (code == UCI_SIGNATURE_PACKED) || (other_code == UCI_SIGNATURE_PACKED) ||
           ((uci_signature_elements(word) == 0) && (uci_signature_elements(other_word) == 0)) ||
           ((word == other_word) && ((code != UCI_SIGNATURE_MIXED) || (hash == other_hash)));
}

/* A call that is being put into words, and by whom */
typedef struct uci_mpi_telling {
    const uci_mpi_collective_t *call;
    uci_mpi_shadow_t *shadow;
    uci_mpi_statement_t *statement;
} uci_mpi_telling_t;

static bool uci_mpi_edges_alloc(uci_mpi_edges_t *edges, int count)
{
    edges->list = calloc((size_t)count + 1, sizeof(*edges->list));
    return edges->list != NULL;
}

static void uci_mpi_edges_clear(uci_mpi_edges_t *edges)
{
    size_t i;

    for (i = 0; i < edges->count; ++i) {
        uci_mpi_signature_drop(&edges->list[i].signature);
    }
    free(edges->list);
}

/* One more: as @a side says for its @a i-th one */
static void uci_mpi_edges_add(const uci_mpi_telling_t *telling, uci_mpi_edges_t *edges, int rank,
                              const uci_mpi_side_t *side, int i)
{
    edges->list[edges->count++] = (uci_mpi_edge_t){rank, uci_mpi_side_sign(telling->call, side, i)};
}

/* Those who may send to, or receive from, this rank: all, or the other group */
static int uci_mpi_partners(const uci_mpi_shadow_t *shadow)
{
    return shadow->is_inter ? shadow->remote_size : shadow->size;
}

static int uci_mpi_partner(const uci_mpi_shadow_t *shadow, int i)
{
    return shadow->is_inter ? shadow->remote[i] : i;
}

/* Of @a side, to or from all; not this rank itself, if what it has is in its place */
static void uci_mpi_edges_add_all(const uci_mpi_telling_t *telling, uci_mpi_edges_t *edges, const uci_mpi_side_t *side,
                                  bool without_me)
{
    int i;

    for (i = 0; i < uci_mpi_partners(telling->shadow); ++i) {
        if (!without_me || (i != telling->shadow->rank)) {
            uci_mpi_edges_add(telling, edges, uci_mpi_partner(telling->shadow, i), side, i);
        }
    }
}

/* All have the same, as @a own says; if this rank has another side too, it must be that as well */
static void uci_mpi_tell_own(const uci_mpi_telling_t *telling, const uci_mpi_side_t *own, const uci_mpi_side_t *other)
{
    uci_mpi_statement_t *statement = telling->statement;

    statement->has_own = true;
    statement->own     = uci_mpi_side_sign(telling->call, own, 0);
    if (other != NULL) {
        statement->other     = uci_mpi_side_sign(telling->call, other, 0);
        statement->has_other = !uci_mpi_signatures_match(statement->own.word, statement->own.hash,
                                                         statement->other.word, statement->other.hash);
    }
}

/* Counts of MPI_Reduce_scatter: each must be the same for all */
static void uci_mpi_tell_counts(const uci_mpi_telling_t *telling)
{
    const uci_mpi_side_t *side     = &telling->call->recv;
    uci_mpi_statement_t *statement = telling->statement;
    uci_mpi_side_t sum             = {.type = side->type};
    int i;

    for (i = 0; i < telling->shadow->size; ++i) {
        sum.count += uci_mpi_side_count(side, i);
        statement->counts = uci_sighash_scatter(statement->counts ^ uci_mpi_side_count(side, i));
    }
    uci_mpi_tell_own(telling, &sum, NULL);
}

/* Between the root, which has the side @a of_root, and all, who have @a of_all */
static void uci_mpi_tell_rooted(const uci_mpi_telling_t *telling, const uci_mpi_side_t *of_all,
                                const uci_mpi_side_t *of_root, uci_mpi_edges_t *edges_of_all,
                                uci_mpi_edges_t *edges_of_root)
{
    const uci_mpi_shadow_t *shadow = telling->shadow;
    int root                       = telling->call->root;
    bool is_root                   = shadow->is_inter ? (root == MPI_ROOT) : (root == shadow->rank);

    if (!shadow->is_inter && ((root < 0) || (root >= shadow->size))) {
        return; /* an error, which MPI tells */
    }
    if (is_root) {
        uci_mpi_edges_add_all(telling, edges_of_root, of_root, !shadow->is_inter && of_all->in_place);
    }
    if (shadow->is_inter ? ((root >= 0) && (root < shadow->remote_size)) : !(is_root && of_all->in_place)) {
        uci_mpi_edges_add(telling, edges_of_all, uci_mpi_partner(shadow, root), of_all, 0);
    }
}

/* All know how much each of them has only at the root (MPI_Gatherv), or they are two groups: then each message is told; else what is the same for all */
static void uci_mpi_tell_root(const uci_mpi_telling_t *telling)
{
    const uci_mpi_collective_t *call = telling->call;
    const uci_mpi_shadow_t *shadow   = telling->shadow;
    bool is_to = (call->flow == UCI_MPI_TO_ROOT), is_root = (call->root == shadow->rank);
    const uci_mpi_side_t *of_all = is_to ? &call->send : &call->recv, *of_root = is_to ? &call->recv : &call->send;

    if (shadow->is_inter || of_root->is_vector) {
        uci_mpi_tell_rooted(telling, of_all, of_root, is_to ? &telling->statement->out : &telling->statement->in,
                            is_to ? &telling->statement->in : &telling->statement->out);
    } else if (is_root && of_all->in_place) {
        uci_mpi_tell_own(telling, of_root, NULL);
    } else {
        uci_mpi_tell_own(telling, of_all, is_root ? of_root : NULL);
    }
}

static void uci_mpi_tell_all(const uci_mpi_telling_t *telling)
{
    const uci_mpi_collective_t *call = telling->call;
    const uci_mpi_side_t *send = &call->send, *recv = &call->recv;
    int i;

    if (!telling->shadow->is_inter && !send->is_vector && !recv->is_vector) {
        uci_mpi_tell_own(telling, recv, send->in_place ? NULL : send);
        return;
    }
    uci_mpi_edges_add_all(telling, &telling->statement->in, recv, false);
    if (!send->in_place) {
        uci_mpi_edges_add_all(telling, &telling->statement->out, send, false);
    } else if (send->is_vector) { /* MPI_Alltoallv: as much as comes from each */
        uci_mpi_edges_add_all(telling, &telling->statement->out, recv, false);
    } else { /* MPI_Allgatherv: what has its place there */
        for (i = 0; i < uci_mpi_partners(telling->shadow); ++i) {
            uci_mpi_edges_add(telling, &telling->statement->out, i, recv, telling->shadow->rank);
        }
    }
}

static void uci_mpi_tell_neighbours(const uci_mpi_telling_t *telling, const uci_mpi_neighbours_t *neighbours,
                                    uci_mpi_edges_t *edges, const uci_mpi_side_t *side)
{
    int i;

    for (i = 0; i < neighbours->count; ++i) {
        if (neighbours->ranks[i] != MPI_PROC_NULL) {
            uci_mpi_edges_add(telling, edges, neighbours->ranks[i], side, i);
        }
    }
}

static bool uci_mpi_statement_alloc(const uci_mpi_telling_t *telling)
{
    const uci_mpi_shadow_t *shadow = telling->shadow;
    uci_mpi_flow_t flow            = telling->call->flow;
    int in                         = (flow == UCI_MPI_NEIGHBOURS) ? shadow->in.count : uci_mpi_partners(shadow);
    int out                        = (flow == UCI_MPI_NEIGHBOURS) ? shadow->out.count : uci_mpi_partners(shadow);

    if (!shadow->is_inter && (flow != UCI_MPI_NEIGHBOURS) && !telling->call->send.is_vector &&
        !telling->call->recv.is_vector) {
        return true; /* none is needed */
    }
    return uci_mpi_edges_alloc(&telling->statement->in, in) && uci_mpi_edges_alloc(&telling->statement->out, out);
}

/* MPI_Bcast_c is MPI_Bcast */
static uint64_t uci_mpi_call_number(const char *call)
{
    uint64_t number = 0;

    for (; (*call != '\0') && (strcmp(call, "_c") != 0); ++call) {
        number = (number * 0x100000001b3ull) + (unsigned char)*call;
    }
    return number;
}

bool uci_mpi_statement_make(uci_mpi_statement_t *statement, const uci_mpi_collective_t *collective,
                            uci_mpi_shadow_t *shadow)
{
    const uci_mpi_telling_t telling = {collective, shadow, statement};

    *statement = (uci_mpi_statement_t){.call   = collective->call,
                                       .kind   = uci_mpi_call_number(collective->call),
                                       .root   = shadow->is_inter ? UCI_MPI_NO_ROOT : collective->root,
                                       .has_op = collective->has_op,
                                       .op     = collective->has_op ? uci_mpi_operation_code(collective->op) : 0};
    if (collective->flow == UCI_MPI_NEIGHBOURS) {
        uci_mpi_shadow_find_neighbours(shadow, collective->comm);
    }
    if (!uci_mpi_statement_alloc(&telling)) {
        uci_mpi_statement_clear(statement);
        return false;
    }
    switch (collective->flow) {
    case UCI_MPI_NO_DATA:
        break;
    case UCI_MPI_SAME:
        uci_mpi_tell_own(&telling, &collective->recv, NULL);
        break;
    case UCI_MPI_SCATTERED:
        if (!shadow->is_inter && collective->recv.is_vector) {
            uci_mpi_tell_counts(&telling);
        } else if (!shadow->is_inter) {
            uci_mpi_tell_own(&telling, &collective->recv, NULL);
        }
        break;
    case UCI_MPI_TO_ROOT:
    case UCI_MPI_FROM_ROOT:
        uci_mpi_tell_root(&telling);
        break;
    case UCI_MPI_TO_ALL:
        uci_mpi_tell_all(&telling);
        break;
    case UCI_MPI_NEIGHBOURS:
        uci_mpi_tell_neighbours(&telling, &shadow->out, &statement->out, &collective->send);
        uci_mpi_tell_neighbours(&telling, &shadow->in, &statement->in, &collective->recv);
        break;
    }
    return true;
}

void uci_mpi_statement_clear(uci_mpi_statement_t *statement)
{
    uci_mpi_signature_drop(&statement->own);
    uci_mpi_signature_drop(&statement->other);
    uci_mpi_edges_clear(&statement->out);
    uci_mpi_edges_clear(&statement->in);
}

static uint64_t uci_mpi_mix(uint64_t first, uint64_t second)
{
    return uci_sighash_scatter(uci_sighash_scatter(first) ^ second);
}

/* No elements are the same, whatever their type */
static uint64_t uci_mpi_signature_number(const uci_signature_t *signature)
{
    return (uci_signature_elements(signature->word) == 0) ? 0
           : (uci_signature_code(signature->word) == UCI_SIGNATURE_MIXED)
                   ? uci_mpi_mix(signature->word, signature->hash)
                   : signature->word;
}

static uint64_t uci_mpi_edge_number(int from, int to, const uci_signature_t *signature)
{
    return uci_mpi_mix(((uint64_t)(unsigned)from << 32) | (unsigned)to, uci_mpi_signature_number(signature));
}

uint64_t uci_mpi_statement_sum(const uci_mpi_statement_t *statement, int rank, int size)
{
    uint64_t same = uci_mpi_mix(statement->kind, ((uint64_t)(unsigned)statement->root << 32) | statement->op);
    uint64_t sum;
    size_t i;

    if (statement->has_own) {
        same = uci_mpi_mix(same, uci_mpi_signature_number(&statement->own) ^ statement->counts);
    }
    sum = uci_mpi_mix((unsigned)rank, same) - uci_mpi_mix((unsigned)((rank + 1) % size), same);
    if (statement->has_other) {
        sum += uci_mpi_mix((unsigned)rank, 1);
    }
    for (i = 0; i < statement->out.count; ++i) {
        sum += uci_mpi_edge_number(rank, statement->out.list[i].rank, &statement->out.list[i].signature);
    }
    for (i = 0; i < statement->in.count; ++i) {
        sum -= uci_mpi_edge_number(statement->in.list[i].rank, rank, &statement->in.list[i].signature);
    }
    return sum;
}

void uci_mpi_statement_describe(const uci_mpi_statement_t *statement, char *text, size_t size)
{
    char own[UCI_SIGNATURE_DESCRIPTION_MAX], other[UCI_SIGNATURE_DESCRIPTION_MAX];
    size_t length = (size_t)snprintf(text, size, "%s", statement->call);

    if (statement->has_own) {
        uci_signature_describe(&statement->own, uci_mpi_code_name, own, sizeof(own));
        length += (size_t)snprintf(text + length, size - length, " of %s", own);
    }
    if (statement->has_other) {
        uci_signature_describe(&statement->other, uci_mpi_code_name, other, sizeof(other));
        length += (size_t)snprintf(text + length, size - length, " (and of %s on the other side)", other);
    }
    if (statement->has_op) {
        length += (size_t)snprintf(text + length, size - length, ", %s", uci_mpi_operation_name(statement->op));
    }
    if (statement->counts != 0) {
        length += (size_t)snprintf(text + length, size - length, " in all, counts %08x", (unsigned)statement->counts);
    }
    if (statement->root != UCI_MPI_NO_ROOT) {
        snprintf(text + length, size - length, ", root %d", statement->root);
    }
}
