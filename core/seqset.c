/* SPDX-License-Identifier: BSD-3-Clause */
#include "seqset.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"

void uci_seqset_init(uci_seqset_t *set)
{
    memset(set, 0, sizeof(*set));
}

void uci_seqset_cleanup(uci_seqset_t *set)
{
    free(set->missing);
    uci_seqset_init(set);
}

static uci_status_t uci_seqset_reserve(uci_seqset_t *set)
{
    size_t capacity = uci_max(2 * set->capacity, 8);
    uci_seq_range_t *missing;

    if (set->count < set->capacity) {
        return UCI_OK;
    }
    missing = realloc(set->missing, capacity * sizeof(*missing));
    if (missing == NULL) {
        uci_error("failed to allocate %zu ranges of message numbers", capacity);
        return UCI_ERR_NO_MEMORY;
    }
    set->missing  = missing;
    set->capacity = capacity;
    return UCI_OK;
}

/* Index of the first range that ends at or above seq */
static size_t uci_seqset_lower_bound(const uci_seqset_t *set, uint64_t seq)
{
    size_t low = 0, high = set->count, middle;

    while (low < high) {
        middle = (low + high) / 2;
        if (set->missing[middle].last < seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void uci_seqset_remove_range(uci_seqset_t *set, size_t index)
{
    --set->count;
    memmove(&set->missing[index], &set->missing[index + 1], (set->count - index) * sizeof(*set->missing));
}

/* Take seq out of the missing range at index; it is inside it */
static uci_status_t uci_seqset_fill(uci_seqset_t *set, size_t index, uint64_t seq)
{
    uci_seq_range_t *range = &set->missing[index];
    uci_status_t status;

    if (range->first == range->last) {
        uci_seqset_remove_range(set, index);
    } else if (seq == range->first) {
        ++range->first;
    } else if (seq == range->last) {
        --range->last;
    } else {
        status = uci_seqset_reserve(set);
        if (status != UCI_OK) {
            return status;
        }
        range = &set->missing[index];
        memmove(range + 1, range, (set->count - index) * sizeof(*range));
        ++set->count;
        range[0].last  = seq - 1;
        range[1].first = seq + 1;
    }
    return UCI_OK;
}

uci_status_t uci_seqset_add_slow(uci_seqset_t *set, uint64_t seq)
{
    uci_status_t status;
    size_t index;

    if (seq >= set->next) {
        if (seq > set->next) {
            status = uci_seqset_reserve(set);
            if (status != UCI_OK) {
                return status;
            }
            set->missing[set->count].first = set->next;
            set->missing[set->count].last  = seq - 1;
            ++set->count;
        }
        set->next = seq + 1;
        return UCI_OK;
    }

    index = uci_seqset_lower_bound(set, seq);
    if ((index == set->count) || (set->missing[index].first > seq)) {
        return UCI_ERR_BUSY;
    }
    return uci_seqset_fill(set, index, seq);
}

bool uci_seqset_has(const uci_seqset_t *set, uint64_t seq)
{
    size_t index;

    if (seq >= set->next) {
        return false;
    }
    index = uci_seqset_lower_bound(set, seq);
    return (index == set->count) || (set->missing[index].first > seq);
}
