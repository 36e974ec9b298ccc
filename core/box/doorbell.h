/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A doorbell: one cache line in the receiver's shared memory, one byte for each of 64 boxes (box.h). Who polls 64
 * boxes reads one line instead of 64.
 *
 * A sender posts its frame and then stores 1; the receiver stores 0, fences, and then drains the box. Of a ring and a
 * clear that meet, one store is the last:
 *  - the ring: the byte is 1, and the receiver comes again, maybe for nothing;
 *  - the clear: the ring came before it, and the frame's mark before the ring (release). The fence keeps the drain's
 *    loads behind the clear, so they find the mark.
 * Either way the frame is found. Without the fence the drain's load could be done before the clear is seen by others,
 * miss a mark, and the clear would then wipe the only hint at it. (The argument needs that a store, once seen by one
 * other processor, is seen by all: so it is on x86-64 and aarch64.)
 *
 * A bell is a hint. Any process may damage the line: a byte that was set for nothing costs one look, one that was wiped
 * would leave a frame lying there. So look into every box now and then, rung or not.
 */
#ifndef UCI_DOORBELL_H_
#define UCI_DOORBELL_H_

#include "util/types.h"

#define UCI_DOORBELL_BOXES 64u /**< boxes of one line, and bytes of it */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "byte i of a word is bits 8i to 8i+7");

typedef volatile uint64_t __attribute__((may_alias)) uci_doorbell_word_t;

/** Sender, after the post. @param box  below UCI_DOORBELL_BOXES. */
UCI_INLINE void uci_doorbell_ring(volatile uint8_t *line, unsigned box)
{
    __atomic_store_n(&line[box], 1, __ATOMIC_RELEASE);
}

/* Bit i of the result: byte i of the word is not 0 */
UCI_INLINE uint64_t uci_doorbell_bytes(uint64_t word)
{
    const uint64_t low7 = 0x7F7F7F7F7F7F7F7Full;
    uint64_t flags      = ((((word & low7) + low7) | word) & ~low7) >> 7;

    /* one addend for each byte, moved to its bit of the top byte; no two addends meet */
    return (flags * 0x0102040810204080ull) >> 56;
}

/** Receiver. @return a bit for each box whose byte is not 0. @param line  aligned to 64 bytes. */
UCI_INLINE uint64_t uci_doorbell_rung(const volatile uint8_t *line)
{
    const uci_doorbell_word_t *words = (const uci_doorbell_word_t *)(const volatile void *)line;
    uint64_t any = 0, rung = 0;
    unsigned i;

    /* relaxed: what is read after it is read behind the fence of uci_doorbell_clear() */
#pragma GCC unroll 8
    for (i = 0; i < UCI_DOORBELL_BOXES / 8; ++i) {
        any |= __atomic_load_n(&words[i], __ATOMIC_RELAXED);
    }
    if (uci_likely(any == 0)) {
        return 0;
    }
#pragma GCC unroll 1
    for (i = 0; i < UCI_DOORBELL_BOXES / 8; ++i) {
        rung |= uci_doorbell_bytes(__atomic_load_n(&words[i], __ATOMIC_RELAXED)) << (8 * i);
    }
    return rung;
}

/** Receiver, before it drains the box. */
UCI_INLINE void uci_doorbell_clear(volatile uint8_t *line, unsigned box)
{
#ifdef __SANITIZE_THREAD__
    (void)__atomic_exchange_n(&line[box], 0, __ATOMIC_SEQ_CST); /* the sanitizer knows no fences */
#else
    __atomic_store_n(&line[box], 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif
