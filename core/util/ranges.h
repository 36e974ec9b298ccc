/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of byte ranges that is made in ascending order: neighbours become one.
 */
#ifndef UCI_RANGES_H_
#define UCI_RANGES_H_

#include "types.h"

typedef struct uci_ranges {
    uci_byte_range_t *list;
    size_t max;     /**< room in the list */
    size_t count;   /**< ranges found, which may be more than there is room for */
    bool grows;     /**< the list is from malloc() and is made larger when it is full */
    uint64_t bytes; /**< in all ranges found */
    uint64_t end;   /**< where the last one ends */
} uci_ranges_t;

/** A list in the caller's memory, of which @a max ranges are kept and the others counted. */
void uci_ranges_init(uci_ranges_t *ranges, uci_byte_range_t *list, size_t max);

/** A list that grows, to be released with uci_ranges_cleanup(). Where memory is out, it counts as one that is full. */
void uci_ranges_init_growing(uci_ranges_t *ranges);

void uci_ranges_cleanup(uci_ranges_t *ranges);

/** Add @a length bytes at @a offset, which is not before the end of what was added last; 0 bytes are nothing. */
void uci_ranges_add(uci_ranges_t *ranges, uint64_t offset, uint64_t length);

#endif
