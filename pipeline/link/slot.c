/* SPDX-License-Identifier: BSD-3-Clause */
#include "slot.h"

#include "base/frame.h" /* XXH3 in line */

uint32_t uci_slot_words_check(const uci_slot_words_t *words, uint64_t mark)
{
    return (uint32_t)XXH3_64bits_withSeed(words, sizeof(*words), mark);
}

uint32_t uci_slot_check(const uci_slot_t *slot, uint64_t mark)
{
    uci_slot_words_t words;

    uci_slot_read(slot, &words);
    return uci_slot_words_check(&words, mark);
}

void uci_bounce_init(uci_bounce_t *bounce, uci_slot_t *slots)
{
    uint16_t i;

    for (i = 0; i < UCI_SLOT_COUNT; ++i) {
        bounce->free[i] = i;
    }
    bounce->first      = 0;
    bounce->free_count = UCI_SLOT_COUNT;
    bounce->available  = UCI_SLOT_COUNT;
    bounce->slots      = slots;
}
