/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers of frames: 64 bits are kept, 32 are sent.
 */
#ifndef UCI_SEQ_H_
#define UCI_SEQ_H_

#include "types.h"

typedef struct uci_seq_range {
    uint64_t first, last; /**< inclusive */
} uci_seq_range_t;

/** Full number from its low 32 bits, nearest to @a near (RFC 1982 serial number arithmetic). */
UCI_INLINE uint64_t uci_seq_expand(uint32_t low, uint64_t near)
{
    return near + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)near);
}

#endif
