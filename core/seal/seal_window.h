/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which counters of a peer have been seen: a ring of bits that slides with the highest one, in the manner of RFC 6479. Bits are cleared a
 * word at a time, so the ring holds one word more than the window promises.
 */
#ifndef UCI_SEAL_WINDOW_H_
#define UCI_SEAL_WINDOW_H_

#include "settings/seal_spec.h"

/** Counters below the highest one of a peer that are still taken, once each: what UCX may reorder between lanes and protocols. */
#define UCI_SEAL_WINDOW 4096u

#define UCI_SEAL_WINDOW_WORDS (UCI_SEAL_WINDOW / 64 + 1)

typedef struct uci_seal_window {
    uint64_t next;                        /* the highest counter that was taken, and one; 0: none was */
    uint64_t seen[UCI_SEAL_WINDOW_WORDS]; /* bit counter % 64 of word counter / 64, modulo their number */
} uci_seal_window_t;

/** @return may @a counter be taken? */
UCI_INLINE bool uci_seal_window_is_new(const uci_seal_window_t *window, uint64_t counter)
{
    if (counter >= window->next) {
        return counter != UINT64_MAX; /* whose successor is no number: no worker gets there */
    }
    if (window->next - counter > UCI_SEAL_WINDOW) {
        return false;
    }
    return !((window->seen[(counter / 64) % UCI_SEAL_WINDOW_WORDS] >> (counter % 64)) & 1);
}

/** Take @a counter, which is new, and whose record is authentic. */
UCI_INLINE void uci_seal_window_take(uci_seal_window_t *window, uint64_t counter)
{
    uint64_t last = counter / 64, word = (window->next == 0) ? 1 : (window->next - 1) / 64 + 1;

    if (counter >= window->next) {
        /* from the word behind that of the highest counter so far to that of this one; each word once at most */
        for (word = uci_max(word, last - uci_min(last, UCI_SEAL_WINDOW_WORDS - 1)); word <= last; ++word) {
            window->seen[word % UCI_SEAL_WINDOW_WORDS] = 0;
        }
        window->next = counter + 1;
    }
    window->seen[last % UCI_SEAL_WINDOW_WORDS] |= 1ull << (counter % 64);
}

#endif
