/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A box: a ring of frames in memory that two processes share, one of them the sender, the other the receiver. It
 * lies in the receiver's memory. What a frame says is not the box's business, but for its first 8 bytes, the mark.
 *
 * Position: counts granules since the epoch began, from 0, and only grows. A frame of `total` bytes at position p
 * lies in the ceil(total / UCI_BOX_GRANULE) consecutive granules from place p mod granules on. No frame is in
 * two pieces: the last one of a lap runs on into the overflow area behind the ring. The next frame's position is
 *
 *     min(p + ceil(total / UCI_BOX_GRANULE), first multiple of granules above p)
 *
 * so both sides know it from the length. The sender may use positions below consumed + granules; as the one
 * frame of a lap that overflows ends at the lap's last position, this keeps the overflow area free as well.
 *
 * When the sender knows that all it has posted has been taken, it may begin a new lap at once, so that the few frames
 * of a quiet conversation stay in the same few lines: the ring is large for windows, and cold for a ping-pong. The
 * receiver looks for the next frame where it should be, and then for the first one of the next lap.
 *
 * Mark: a mix of key and position. It is stored last, so a frame is there as a whole or not at all, and no word tells
 * the receiver where the sender is: it waits for the one mark that comes next. What lies there until then (another
 * lap's mark, the middle of an older frame, anything from another epoch) is not that mark.
 *
 * Trust: any word of the box may be damaged at any time by a process that has nothing to do with it.
 *  - The receiver never reads the box's first line; all it follows is its own position. Damage to a mark hides a frame
 *    for good, as if it had not been posted; with odds of 2^-64 a word written by others passes for a mark. All else in
 *    a frame has to be verified by who takes it, in a copy of its own, since a frame may change while it is read.
 *  - The sender follows nothing but `consumed`, and only if it is intact and lies between what was known and what was
 *    posted. A word that is not is ignored: the next tell replaces it. Should a damaged word pass (odds below 2^-32),
 *    frames that nobody took are written over; the receiver then waits for a mark that is gone, or finds a frame that
 *    fails its verification.
 *  - Neither side follows a length or an offset from the box unchecked, so neither leaves its memory.
 * A lost mark and a lost tell both look like silence. It is the protocol above that notices (it compares positions),
 * tells again, or goes on behind what is hidden.
 *
 * Each of the private halves belongs to one thread at a time. For x86-64 and aarch64.
 */
#ifndef UCI_BOX_H_
#define UCI_BOX_H_

#include "util/types.h"

#define UCI_BOX_GRANULE      64u           /**< bytes that positions are counted in: a cache line */
#define UCI_BOX_GRANULES     4096u         /**< granules of the largest ring: positions of a lap (256 KiB) */
#define UCI_BOX_GRANULES_MIN 256u          /**< of the smallest; a power of two in any case */
#define UCI_BOX_FRAME_MAX    (8192u + 64u) /**< bytes of the largest frame */
#define UCI_BOX_OVERFLOW     (UCI_DIV_UP_CONST(UCI_BOX_FRAME_MAX, UCI_BOX_GRANULE) - 1) /**< granules behind the ring */
#define UCI_BOX_COPY_MAX     512u /**< bytes up to which a frame is copied inline */
#define UCI_BOX_REWIND       64u  /**< granules of a lap that are used before another one is begun early */

/** Untold frames from which on the sender is to be told. */
#define UCI_BOX_TELL_FRAMES 32u /* or a quarter of the ring */

#define UCI_BOX_MARK_STEP 0x9E3779B97F4A7C15ull /**< 2^64 / golden ratio, odd */

/** The memory that is shared. The receiver writes the first line, the sender the ring. Needs no clearing. A box with a smaller ring
 *  has only so much of it: uci_box_size(). */
typedef struct uci_box {
    uint64_t consumed; /**< position the receiver is at, sealed */
    uint64_t acked;    /**< the number it acknowledges, sealed */
    char pad[UCI_CACHE_LINE - 2 * sizeof(uint64_t)];
    char ring[(UCI_BOX_GRANULES + UCI_BOX_OVERFLOW) * UCI_BOX_GRANULE];
} __attribute__((aligned(UCI_CACHE_LINE))) uci_box_t;

/** What an epoch's marks and seals are made from. */
typedef struct uci_box_keys {
    uint64_t mark;
    uint64_t seal;
} uci_box_keys_t;

/** The sender's half, private memory. */
typedef struct uci_box_tx {
    char *place;       /**< of the next frame; from `end` on: the next lap has yet to begin */
    char *clear;       /**< up to here this lap is known to be free */
    uint64_t mark;     /**< of the next frame, not folded */
    char *end;         /**< of the ring, where the overflow begins */
    uint64_t lap;      /**< position of the ring's first granule in this lap */
    uint64_t consumed; /**< last position heard */
    uint64_t heard[2]; /**< the words `consumed` and `acked` that were taken last */
    uint64_t granules; /**< of the ring */
    uci_box_t *box;
    uci_box_keys_t keys;
} uci_box_tx_t;

/** The receiver's half, private memory. */
typedef struct uci_box_rx {
    const char *place; /**< of the next frame */
    uint64_t expected; /**< its mark */
    uint64_t rewound;  /**< mark of the first frame of the next lap */
    uint64_t mark;     /**< the same, not folded */
    size_t granules;   /**< of the frames taken since told */
    const char *end;   /**< of the ring, where the overflow begins */
    uint32_t frames;   /**< taken since told */
    uint64_t lap;      /**< position of the ring's first granule in this lap */
    uint64_t ring;     /**< granules of the ring */
    uint64_t left;     /**< position at which a lap was left early, see uci_box_rx_find(); UINT64_MAX: none */
    uci_box_t *box;
    uci_box_keys_t keys;
} uci_box_rx_t;

/** Bytes of a box whose ring has so many granules. */
UCI_INLINE size_t uci_box_size(uint32_t granules)
{
    return UCI_CACHE_LINE + ((size_t)(granules + UCI_BOX_OVERFLOW) * UCI_BOX_GRANULE);
}

/* The ring as words and 16-byte vectors, whatever its bytes were written as */
typedef uint64_t __attribute__((may_alias)) uci_box_word_t;
typedef long long uci_box_vec_t __attribute__((vector_size(16), may_alias));

/**
 * Begin an epoch at position 0: what was written to the box under another key is not taken, and what was told under
 * another key is not heard. Both sides have to do so, in any order.
 * @param granules  of its ring: a power of two, UCI_BOX_GRANULES_MIN to UCI_BOX_GRANULES; the same on both sides.
 * @param key  any value but the ones of older epochs; the same on both sides. Random bits make it hard to guess.
 */
void uci_box_tx_init(uci_box_tx_t *tx, uci_box_t *box, uint32_t granules, uint64_t key);
void uci_box_rx_init(uci_box_rx_t *rx, uci_box_t *box, uint32_t granules, uint64_t key);

/* The general cases of uci_box_tx_place(), uci_box_tx_post() and uci_box_rx_next() */
char *uci_box_tx_place_slow(uci_box_tx_t *tx, size_t total, uint64_t *mark_p);
void uci_box_tx_post_long(uci_box_tx_t *tx, char *place, const void *wire, size_t total, uint64_t mark);
void uci_box_rx_begin_lap(uci_box_rx_t *rx, uint64_t lap);
void uci_box_rx_leave_lap(uci_box_rx_t *rx);

/* A mark for each position: steps of an odd constant from the key on, so that no two positions of an epoch share one,
 * folded so that laps, which are a power of two apart, differ in the low bits too */
UCI_INLINE uint64_t uci_box_fold(uint64_t mark)
{
    return mark ^ (mark >> 32);
}

UCI_INLINE size_t uci_box_granules(size_t total)
{
    return (total + UCI_BOX_GRANULE - 1) / UCI_BOX_GRANULE;
}

/**
 * A place for the next frame. Nothing is reserved: what is not posted does no harm. Shared memory is read only if what
 * is known of the receiver is not enough.
 * @param total   bytes of the frame, mark included: 8 to UCI_BOX_FRAME_MAX.
 * @param mark_p  its mark, for uci_box_tx_post().
 * @return aligned to UCI_BOX_GRANULE, or NULL if the box is full.
 */
UCI_INLINE char *uci_box_tx_place(uci_box_tx_t *tx, size_t total, uint64_t *mark_p)
{
    char *place = tx->place;

    if (uci_unlikely((uintptr_t)place + total > (uintptr_t)tx->clear)) {
        return uci_box_tx_place_slow(tx, total, mark_p);
    }
    if (place == NULL) {
        __builtin_unreachable(); /* spares the caller's test on this way */
    }
    *mark_p = uci_box_fold(tx->mark);
    return place;
}

/* The next lap, with the whole ring free */
void uci_box_tx_rewind_slow(uci_box_tx_t *tx);

/**
 * All that has been posted has been taken: the caller knows. The next frame may begin a lap. (If it is not true, frames are lost:
 * the receiver finds no mark, or a frame that fails its verification.)
 */
UCI_INLINE void uci_box_tx_rewind(uci_box_tx_t *tx)
{
    if (uci_unlikely(tx->place >= tx->box->ring + UCI_BOX_REWIND * UCI_BOX_GRANULE)) {
        uci_box_tx_rewind_slow(tx);
    }
}

/* No look at the ring's end: who asks for the next place does that */
UCI_INLINE void uci_box_tx_advance(uci_box_tx_t *tx, char *place, size_t total)
{
    size_t granules = uci_box_granules(total);

    tx->mark += granules * UCI_BOX_MARK_STEP;
    tx->place = place + granules * UCI_BOX_GRANULE;
}

/**
 * Post a frame: whenever the sender dies in here, the receiver finds all of it or nothing.
 * @param place  what uci_box_tx_place() returned last, for the same @a total.
 * @param wire   the frame in private memory, aligned to 64 bytes; its first 8 bytes are not used, and it may be read up
 *               to the next multiple of 64 bytes.
 * @param mark   goes in the first 8 bytes.
 */
UCI_INLINE void uci_box_tx_post(uci_box_tx_t *tx, char *place, const void *wire, size_t total, uint64_t mark)
{
    const uci_box_vec_t *src = (const uci_box_vec_t *)wire;
    uci_box_vec_t *dst       = (uci_box_vec_t *)(void *)place;
    size_t i;

    if (uci_unlikely(total > UCI_BOX_GRANULE)) {
        if (total > UCI_BOX_COPY_MAX) {
            uci_box_tx_post_long(tx, place, wire, total, mark);
            return;
        }
#pragma GCC unroll 1 /* or it becomes half a kilobyte of code at each call */
        for (i = 4; i * sizeof(*dst) < total; i += 4) {
            dst[i]     = src[i];
            dst[i + 1] = src[i + 1];
            dst[i + 2] = src[i + 2];
            dst[i + 3] = src[i + 3];
        }
    }
    ((uci_box_word_t *)dst)[1] = ((const uci_box_word_t *)src)[1];
    dst[1]                     = src[1];
    dst[2]                     = src[2];
    dst[3]                     = src[3];
    __atomic_store_n((uci_box_word_t *)dst, mark, __ATOMIC_RELEASE);
    uci_box_tx_advance(tx, place, total);
}

/**
 * Hear what the receiver told last. A word that is damaged, or from another epoch, or a position that can't be, changes
 * nothing.
 * @param acked_p  the number it acknowledges, if true is returned. Intact, but not judged: numbers are the caller's.
 *                 It is at least as new as the position that was heard with it.
 * @return false if there is nothing new since the last time, or damage.
 */
bool uci_box_tx_heard(uci_box_tx_t *tx, uint32_t *acked_p);

/** @return the position of the next frame, in granules: everything below has been posted. */
uint64_t uci_box_tx_position(const uci_box_tx_t *tx);

/** @return the position of the next frame, in granules: everything below has been taken. */
uint64_t uci_box_rx_position(const uci_box_rx_t *rx);

/**
 * @return the frame that lies next, or NULL if there is none. It lies there until the position is told, and
 *         UCI_BOX_FRAME_MAX bytes from here on may be read. Others may write to it: copy, then verify the copy.
 */
UCI_INLINE const char *uci_box_rx_peek(uci_box_rx_t *rx)
{
    const char *place = rx->place, *first = rx->box->ring;

    if (__atomic_load_n((const uci_box_word_t *)(const void *)place, __ATOMIC_ACQUIRE) == rx->expected) {
        return place;
    }
    if (uci_likely(__atomic_load_n((const uci_box_word_t *)(const void *)first, __ATOMIC_ACQUIRE) != rx->rewound)) {
        return NULL;
    }
    /* who posts the first frame of a lap has posted all before it: was there none just now because it was too early to look? */
    if (__atomic_load_n((const uci_box_word_t *)(const void *)place, __ATOMIC_ACQUIRE) == rx->expected) {
        return place;
    }
    uci_box_rx_leave_lap(rx);
    return first;
}

/** @return the mark of the frame that uci_box_rx_peek() found. */
UCI_INLINE uint64_t uci_box_rx_mark(const uci_box_rx_t *rx)
{
    return rx->expected;
}

/**
 * The frame has been taken.
 * @param total  its length from a verified header, 8 to UCI_BOX_FRAME_MAX, as the sender had it.
 */
UCI_INLINE void uci_box_rx_next(uci_box_rx_t *rx, size_t total)
{
    size_t granules   = uci_box_granules(total);
    const char *place = rx->place + granules * UCI_BOX_GRANULE;

    ++rx->frames;
    rx->granules += granules;
    rx->mark += granules * UCI_BOX_MARK_STEP;
    rx->expected = uci_box_fold(rx->mark);
    rx->place    = place;
    if (uci_unlikely(place >= rx->end)) {
        uci_box_rx_begin_lap(rx, rx->lap + rx->ring);
    }
}

/**
 * The frame that comes next is hidden, since its mark is damaged, or does not tell its length, since that is: go on to the next one whose
 * mark is right, of those that may follow it. Unless it has come meanwhile: then nothing is passed by.
 * @return false: there is none (yet), and nothing has changed.
 */
bool uci_box_rx_skip(uci_box_rx_t *rx);

/**
 * Look for frames that were passed by. A lap is left where its next one begins, which a sender does that has all taken; but it looks the
 * same where the lap went on behind a frame that is hidden.
 * @param position_p  from here on (from rx->left on where a lap was left); set behind what was found.
 * @param end         and below here.
 * @param mark_p      set to the mark of the frame.
 * @return as uci_box_rx_peek(), or NULL: there are no more. What has not been told as taken has not been written over.
 */
const char *uci_box_rx_find(const uci_box_rx_t *rx, uint64_t *position_p, uint64_t end, uint64_t *mark_p);

/** @return the position at which the lap of @a position ends, and the next one begins. */
UCI_INLINE uint64_t uci_box_rx_lap_end(const uci_box_rx_t *rx, uint64_t position)
{
    return (position | (rx->ring - 1)) + 1;
}

/**
 * Go on at another position: the one at which the sender says that it will post its next frame, so that none of those behind the hidden ones
 * is missed. Any value leaves all accesses within the box.
 */
void uci_box_rx_resume(uci_box_rx_t *rx, uint64_t position);

/** @return true if the sender should be told by now, lest it finds the box full. */
UCI_INLINE bool uci_box_rx_should_tell(const uci_box_rx_t *rx)
{
    return (rx->granules >= rx->ring / 4) || (rx->frames >= UCI_BOX_TELL_FRAMES);
}

/**
 * Tell the sender how far we are: from now on it may write over every frame that was taken. May be repeated, which
 * also repairs what was told.
 * @param acked_seq  number to be acknowledged; its meaning is the caller's.
 */
void uci_box_rx_tell(uci_box_rx_t *rx, uint32_t acked_seq);

#endif
