/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The set of message numbers received from one peer: everything below `next`, except some ranges. Messages
 * are matched out of order, and some stay unmatched for ever, so the exceptions are kept exactly: there are
 * as many as there are gaps, usually none.
 */
#ifndef UCI_SEQSET_H_
#define UCI_SEQSET_H_

#include "types.h"

typedef struct uci_seq_range {
    uint64_t first, last; /**< inclusive */
} uci_seq_range_t;

typedef struct uci_seqset {
    uint64_t next;            /**< one above the highest number in the set */
    uci_seq_range_t *missing; /**< ascending, disjoint, all below next */
    size_t count;
    size_t capacity;
} uci_seqset_t;

void uci_seqset_init(uci_seqset_t *set);
void uci_seqset_cleanup(uci_seqset_t *set);

/** The general case of uci_seqset_add(). */
uci_status_t uci_seqset_add_slow(uci_seqset_t *set, uint64_t seq);

/** @return UCI_OK, UCI_ERR_BUSY if @a seq was in the set already, or UCI_ERR_NO_MEMORY (logged). */
UCI_INLINE uci_status_t uci_seqset_add(uci_seqset_t *set, uint64_t seq)
{
    if (uci_likely(seq == set->next)) {
        ++set->next;
        return UCI_OK;
    }
    return uci_seqset_add_slow(set, seq);
}

bool uci_seqset_has(const uci_seqset_t *set, uint64_t seq);

/** @return the lowest number that is not in the set: everything below it is. */
UCI_INLINE uint64_t uci_seqset_first_missing(const uci_seqset_t *set)
{
    return uci_likely(set->count == 0) ? set->next : set->missing[0].first;
}

/** Full number from its low 32 bits, nearest to @a near (RFC 1982 serial number arithmetic). */
UCI_INLINE uint64_t uci_seq_expand(uint32_t low, uint64_t near)
{
    return near + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)near);
}

#endif
