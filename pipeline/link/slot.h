/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a bounce slot looks like, and how its owner and its reader tell each other about it (bounce.h says who they are):
 *
 *     free --uci_bounce_get--> taken --filled, mark--> full --acknowledged--> (the owner sees it) --> free
 */
#ifndef UCI_SLOT_H_
#define UCI_SLOT_H_

#include "bounce_part.h"
#include "ucp/shared_memory.h"
#include "base/wire.h"

/** Owner and reader write to different cache lines. */
typedef struct uci_slot {
    uint64_t mark;  /**< what it holds: uci_slot_mark(); stored last */
    uint64_t value; /**< digest of the data */
    uint64_t root;  /**< with the last chunk of a message: the root of its tree */
    uint32_t length;
    uint32_t cut;   /**< uci_cut_t */
    uint32_t check; /**< over the above */
    uint32_t next;  /**< uci_slot_next_word() of the next chunk's slot, once that is filled; 0 before */
    char owner_pad[UCI_CACHE_LINE - 40];
    uint64_t ack;   /**< the reader's: uci_slot_ack_word() of what it has taken */
    uint64_t claim; /**< where faults are asked for: ~mark, mark from when it is read on */
    char reader_pad[UCI_CACHE_LINE - 16];
    char data[UCI_SLOT_SIZE];
} uci_slot_t;

/** What its owner says of the data, in memory of our own: a slot may be written to at any time by either side, so that what was
 *  checked has to be what is used. */
typedef struct uci_slot_words {
    uint64_t value;
    uint64_t root;
    uint32_t length;
    uint32_t cut;
} uci_slot_words_t;

_Static_assert(sizeof(uci_slot_words_t) == offsetof(uci_slot_t, check) - offsetof(uci_slot_t, value), "no other words");
_Static_assert(sizeof(uci_slot_t) == UCI_SLOT_SIZE + (2 * UCI_CACHE_LINE), "slots lie at cache lines");

/** Names chunk @a index of message @a seq to the worker @a uid. No two that are in use are equal. */
UCI_INLINE uint64_t uci_slot_mark(uint64_t uid, uint64_t seq, uint32_t index)
{
    return uid + ((seq + 1) * 0x9e3779b97f4a7c15ul) + ((uint64_t)(index + 1) * 0xc2b2ae3d27d4eb4ful);
}

/** Where the chunk behind the one of @a mark is: its slot plus 1 in the low half, and a mix of both, which no other place has. Never 0. */
UCI_INLINE uint32_t uci_slot_next_word(uint64_t mark, uint16_t slot)
{
    uint64_t next = slot + 1u;

    return (uint32_t)(next | (((mark + next) * 0x9e3779b97f4a7c15ul >> 48) << 16));
}

/** @return the slot that such a word names, UCI_SLOT_NONE if it is none for this @a mark. */
UCI_INLINE uint16_t uci_slot_next(uint64_t mark, uint32_t word)
{
    uint16_t slot = (uint16_t)(word - 1);

    return (word == uci_slot_next_word(mark, slot)) ? slot : UCI_SLOT_NONE;
}

/** Read each word of a slot once. */
UCI_INLINE void uci_slot_read(const uci_slot_t *slot, uci_slot_words_t *words_p)
{
    words_p->value  = __atomic_load_n(&slot->value, __ATOMIC_RELAXED);
    words_p->root   = __atomic_load_n(&slot->root, __ATOMIC_RELAXED);
    words_p->length = __atomic_load_n(&slot->length, __ATOMIC_RELAXED);
    words_p->cut    = __atomic_load_n(&slot->cut, __ATOMIC_RELAXED);
}

uint32_t uci_slot_words_check(const uci_slot_words_t *words, uint64_t mark);

/** The same of what a slot holds now. */
uint32_t uci_slot_check(const uci_slot_t *slot, uint64_t mark);

/** What acknowledges @a mark. Not the mark itself: that lies 64 bytes away, and copied over the acknowledgement it would pass. */
UCI_INLINE uint64_t uci_slot_ack_word(uint64_t mark)
{
    return mark ^ 0x85ebca77c2b2ae63ul;
}

/** @param mark  what the slot was filled with. */
UCI_INLINE bool uci_slot_is_taken(const uci_slot_t *slot, uint64_t mark)
{
    return __atomic_load_n(&slot->ack, __ATOMIC_ACQUIRE) == uci_slot_ack_word(mark);
}

/** Reader: it has been verified, the owner may use it again. */
UCI_INLINE void uci_slot_ack(uci_slot_t *slot, uint64_t mark)
{
    __atomic_store_n(&slot->ack, uci_slot_ack_word(mark), __ATOMIC_RELEASE);
}

/** All slots of the pool at @a slots (not owned) are free. */
void uci_bounce_init(uci_bounce_t *bounce, uci_slot_t *slots);

#endif
