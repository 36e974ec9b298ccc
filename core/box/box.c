/* SPDX-License-Identifier: BSD-3-Clause */
#include "box.h"

#include <string.h>

/* The first line is the receiver's; a frame at the last place ends where the box ends */
_Static_assert(offsetof(uci_box_t, ring) == UCI_CACHE_LINE, "the ring begins at the second line");
_Static_assert(sizeof(uci_box_t) - offsetof(uci_box_t, ring) ==
                       (UCI_BOX_GRANULES - 1) * UCI_BOX_GRANULE + UCI_BOX_FRAME_MAX,
               "the largest frame at the last place fits");
_Static_assert(UCI_BOX_FRAME_MAX % UCI_BOX_GRANULE == 0, "frames are written in whole granules");

enum { UCI_BOX_CONSUMED, UCI_BOX_ACKED };

/* Final mixing of splitmix64 (S. Vigna): a bijection, so different keys stay different */
static uint64_t uci_box_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* Keys may be a counter's values: marks of neighbours must not be neighbours */
static void uci_box_keys_init(uci_box_keys_t *keys, uint64_t key)
{
    keys->mark = uci_box_mix64(key + UCI_BOX_MARK_STEP);
    keys->seal = uci_box_mix64(keys->mark + UCI_BOX_MARK_STEP);
}

/* Value and a mix of it: Murmur3's final mixing, a bijection, so that damage to either half alone never passes. Each
 * word has a key of its own, so that one copied over the other does not pass either. */
static uint64_t uci_box_seal(const uci_box_keys_t *keys, unsigned word, uint32_t value)
{
    uint32_t mix = value ^ (uint32_t)(keys->seal >> (32 * word));

    mix = (mix ^ (mix >> 16)) * 0x85EBCA6Bu;
    mix = (mix ^ (mix >> 13)) * 0xC2B2AE35u;
    mix = mix ^ (mix >> 16);
    return ((uint64_t)mix << 32) | value;
}

static bool uci_box_is_sealed(const uci_box_keys_t *keys, unsigned word, uint64_t sealed)
{
    return uci_box_seal(keys, word, (uint32_t)sealed) == sealed;
}

/* A frame that reached the lap's end took no position beyond it, whatever it has in the overflow area */
static uint64_t uci_box_position(const uci_box_t *box, const char *place, uint64_t lap, uint64_t granules)
{
    return lap + uci_min((uint64_t)(place - box->ring) / UCI_BOX_GRANULE, granules);
}

/* Nothing of the new lap counts as free until a place is asked for: the limit is another one here */
static void uci_box_tx_begin_lap(uci_box_tx_t *tx, uint64_t lap)
{
    tx->lap   = lap;
    tx->mark  = tx->keys.mark + lap * UCI_BOX_MARK_STEP;
    tx->place = tx->box->ring;
    tx->clear = tx->box->ring;
}

void uci_box_rx_begin_lap(uci_box_rx_t *rx, uint64_t lap)
{
    rx->lap      = lap;
    rx->mark     = rx->keys.mark + lap * UCI_BOX_MARK_STEP;
    rx->expected = uci_box_fold(rx->mark);
    rx->rewound  = uci_box_fold(rx->mark + rx->ring * UCI_BOX_MARK_STEP);
    rx->place    = rx->box->ring;
}

void uci_box_rx_leave_lap(uci_box_rx_t *rx)
{
    rx->left = uci_box_rx_position(rx);
    uci_box_rx_begin_lap(rx, rx->lap + rx->ring);
}

void uci_box_tx_init(uci_box_tx_t *tx, uci_box_t *box, uint32_t granules, uint64_t key)
{
    memset(tx, 0, sizeof(*tx));
    tx->granules = granules;
    uci_box_keys_init(&tx->keys, key);
    tx->box = box;
    tx->end = box->ring + tx->granules * UCI_BOX_GRANULE;
    uci_box_tx_begin_lap(tx, 0);
}

void uci_box_rx_init(uci_box_rx_t *rx, uci_box_t *box, uint32_t granules, uint64_t key)
{
    memset(rx, 0, sizeof(*rx));
    rx->left = UINT64_MAX;
    rx->ring = granules;
    uci_box_keys_init(&rx->keys, key);
    rx->box = box;
    rx->end = box->ring + rx->ring * UCI_BOX_GRANULE;
    uci_box_rx_begin_lap(rx, 0);
}

uint64_t uci_box_tx_position(const uci_box_tx_t *tx)
{
    return uci_box_position(tx->box, tx->place, tx->lap, tx->granules);
}

uint64_t uci_box_rx_position(const uci_box_rx_t *rx)
{
    return uci_box_position(rx->box, rx->place, rx->lap, rx->ring);
}

/* Take a position from a word of shared memory. Positions in question are a ring apart at most: 32 bits tell them */
static bool uci_box_tx_take_consumed(uci_box_tx_t *tx, uint64_t sealed)
{
    uint32_t step = (uint32_t)sealed - (uint32_t)tx->consumed;

    if (!uci_box_is_sealed(&tx->keys, UCI_BOX_CONSUMED, sealed) || (step > uci_box_tx_position(tx) - tx->consumed)) {
        return false;
    }
    tx->consumed += step;
    tx->heard[UCI_BOX_CONSUMED] = sealed;
    return true;
}

bool uci_box_tx_heard(uci_box_tx_t *tx, uint32_t *acked_p)
{
    /* in this order: the receiver writes them the other way round. The acquire pairs with its release: what it read of
     * frames it read before we write over them */
    uint64_t consumed = __atomic_load_n(&tx->box->consumed, __ATOMIC_ACQUIRE);
    uint64_t acked    = __atomic_load_n(&tx->box->acked, __ATOMIC_ACQUIRE);

    if (((consumed == tx->heard[UCI_BOX_CONSUMED]) && (acked == tx->heard[UCI_BOX_ACKED])) ||
        !uci_box_is_sealed(&tx->keys, UCI_BOX_ACKED, acked) || !uci_box_tx_take_consumed(tx, consumed)) {
        return false;
    }
    tx->heard[UCI_BOX_ACKED] = acked;
    *acked_p                 = (uint32_t)acked;
    return true;
}

/* As above: what is over lies in the overflow area, and that is free if the rest of this lap is */
static bool uci_box_tx_has_room(const uci_box_tx_t *tx, size_t total)
{
    uint64_t next  = uci_box_tx_position(tx) + uci_box_granules(total);
    uint64_t limit = tx->consumed + tx->granules;

    return uci_min(next, tx->lap + tx->granules) <= limit;
}

char *uci_box_tx_place_slow(uci_box_tx_t *tx, size_t total, uint64_t *mark_p)
{
    uint64_t limit;

    if (tx->place >= tx->end) {
        uci_box_tx_begin_lap(tx, tx->lap + tx->granules);
    }
    if (!uci_box_tx_has_room(tx, total) &&
        (!uci_box_tx_take_consumed(tx, __atomic_load_n(&tx->box->consumed, __ATOMIC_ACQUIRE)) ||
         !uci_box_tx_has_room(tx, total))) {
        return NULL;
    }
    limit     = uci_min(tx->consumed + tx->granules, tx->lap + tx->granules);
    tx->clear = tx->box->ring + (limit - tx->lap) * UCI_BOX_GRANULE;
    *mark_p   = uci_box_fold(tx->mark);
    return tx->place;
}

void uci_box_tx_rewind_slow(uci_box_tx_t *tx)
{
    uci_box_tx_begin_lap(tx, tx->lap + tx->granules);
    tx->consumed = tx->lap;
    tx->clear    = tx->end;
}

void uci_box_tx_post_long(uci_box_tx_t *tx, char *place, const void *wire, size_t total, uint64_t mark)
{
    const size_t head = sizeof(mark);

    memcpy(place + head, (const char *)wire + head, total - head);
    __atomic_store_n((uci_box_word_t *)(void *)place, mark, __ATOMIC_RELEASE);
    uci_box_tx_advance(tx, place, total);
}

static bool uci_box_is_marked(const char *place, uint64_t mark)
{
    return __atomic_load_n((const uci_box_word_t *)(const void *)place, __ATOMIC_ACQUIRE) == mark;
}

/* @return granules from the next place to the first frame behind it, in this lap; 0: there is none */
static unsigned uci_box_rx_look(const uci_box_rx_t *rx)
{
    const char *place = rx->place;
    uint64_t mark     = rx->mark;
    unsigned i;

    for (i = 1; i <= UCI_BOX_FRAME_MAX / UCI_BOX_GRANULE; ++i) {
        place += UCI_BOX_GRANULE;
        mark += UCI_BOX_MARK_STEP;
        if (place >= rx->end) {
            break;
        }
        if (uci_box_is_marked(place, uci_box_fold(mark))) {
            return i;
        }
    }
    return 0;
}

bool uci_box_rx_skip(uci_box_rx_t *rx)
{
    bool is_left   = false;
    unsigned first = uci_box_rx_look(rx);

    if (first == 0) {
        is_left = uci_box_is_marked(rx->box->ring, rx->rewound);
    }
    if ((first > 0) || is_left) { /* the sender may be faster than we look: what is before that one is there by now */
        if (uci_box_is_marked(rx->place, rx->expected)) {
            return true;
        }
        first = uci_box_rx_look(rx);
    }
    if (first > 0) {
        rx->granules += first;
        rx->mark += first * UCI_BOX_MARK_STEP;
        rx->expected = uci_box_fold(rx->mark);
        rx->place += first * UCI_BOX_GRANULE;
        return true;
    }
    if (is_left) {
        uci_box_rx_leave_lap(rx);
    }
    return is_left;
}

const char *uci_box_rx_find(const uci_box_rx_t *rx, uint64_t *position_p, uint64_t end, uint64_t *mark_p)
{
    uint64_t position = *position_p;
    const char *place;

    for (; position < end; ++position) {
        place   = rx->box->ring + (position & (rx->ring - 1)) * UCI_BOX_GRANULE;
        *mark_p = uci_box_fold(rx->keys.mark + position * UCI_BOX_MARK_STEP);
        if (uci_box_is_marked(place, *mark_p)) {
            *position_p = position + 1;
            return place;
        }
    }
    return NULL;
}

void uci_box_rx_resume(uci_box_rx_t *rx, uint64_t position)
{
    uint64_t step = position & (rx->ring - 1);

    rx->granules += position - uci_box_rx_position(rx);
    uci_box_rx_begin_lap(rx, position - step);
    rx->mark += step * UCI_BOX_MARK_STEP;
    rx->expected = uci_box_fold(rx->mark);
    rx->place += step * UCI_BOX_GRANULE;
}

void uci_box_rx_tell(uci_box_rx_t *rx, uint32_t acked_seq)
{
    uint32_t position = (uint32_t)uci_box_rx_position(rx);

    __atomic_store_n(&rx->box->acked, uci_box_seal(&rx->keys, UCI_BOX_ACKED, acked_seq), __ATOMIC_RELEASE);
    __atomic_store_n(&rx->box->consumed, uci_box_seal(&rx->keys, UCI_BOX_CONSUMED, position), __ATOMIC_RELEASE);
    rx->frames   = 0;
    rx->granules = 0;
}
