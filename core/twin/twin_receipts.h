/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * When the last few thousand messages of a process were received. Twins decide later, in batches, and each process when it comes to it; which
 * of two wrong messages was the cause of the other only the time of their receipt tells. A message is (channel, number), as in
 * twin_votes.h; a later one may take the place of an earlier one. Belongs to one thread at a time. 64 KiB.
 */
#ifndef UCI_CORE_TWIN_RECEIPTS_H_
#define UCI_CORE_TWIN_RECEIPTS_H_

#include "util/types.h"

#define UCI_TWIN_RECEIPTS 4096u /**< a power of two */

typedef struct uci_twin_receipt {
    uint32_t channel, number;
    uint64_t ticks; /**< 0: none */
} uci_twin_receipt_t;

typedef struct uci_twin_receipts {
    uci_twin_receipt_t places[UCI_TWIN_RECEIPTS];
} uci_twin_receipts_t;

/* Messages of one channel that follow each other have places that do, and those of two channels seldom the same */
UCI_INLINE uint32_t uci_twin_receipt_place(uint32_t channel, uint32_t number)
{
    return ((channel * 0x9e3779b1u >> 20) + number) & (UCI_TWIN_RECEIPTS - 1);
}

/** @param ticks  uci_ticks() */
UCI_INLINE void uci_twin_receipts_note(uci_twin_receipts_t *receipts, uint32_t channel, uint32_t number, uint64_t ticks)
{
    receipts->places[uci_twin_receipt_place(channel, number)] = (uci_twin_receipt_t){
            .channel = channel, .number = number, .ticks = ticks};
}

/** @return when, or 0: it was not received, or is not known any more. */
UCI_INLINE uint64_t uci_twin_receipts_find(const uci_twin_receipts_t *receipts, uint32_t channel, uint32_t number)
{
    const uci_twin_receipt_t *receipt = &receipts->places[uci_twin_receipt_place(channel, number)];

    return ((receipt->channel == channel) && (receipt->number == number)) ? receipt->ticks : 0;
}

#endif
