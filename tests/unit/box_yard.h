/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of boxes have in common: boxes between guards, and frames whose content depends on a number.
 */
#ifndef UCI_TESTS_UNIT_BOX_YARD_H_
#define UCI_TESTS_UNIT_BOX_YARD_H_

#include "box/box.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEY    0x0123456789ABCDEFull
#define CANARY 0xA5

/* As long as a frame gets, and aligned as a wire has to be */
typedef struct wire {
    char bytes[UCI_BOX_FRAME_MAX];
} __attribute__((aligned(64))) wire_t;

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = (*state += 0x9E3779B97F4A7C15ull);

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* --- boxes between guards: canaries before them, a page that faults behind them --- */

typedef struct yard {
    char *map;
    size_t slack, size, page;
    uci_box_t *boxes;
} yard_t;

static inline uci_box_t *yard_make(yard_t *yard, unsigned count)
{
    size_t length = count * sizeof(uci_box_t);

    yard->page = (size_t)sysconf(_SC_PAGESIZE);
    yard->size = uci_align_up(length, yard->page) + yard->page;
    yard->map  = mmap(NULL, yard->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(yard->map != MAP_FAILED);
    yard->slack = yard->size - yard->page - length;
    yard->boxes = (uci_box_t *)(void *)(yard->map + yard->slack);
    memset(yard->map, CANARY, yard->slack);
    cr_assert(mprotect(yard->map + yard->size - yard->page, yard->page, PROT_NONE) == 0);
    return yard->boxes;
}

static inline void yard_check(yard_t *yard)
{
    size_t i;

    for (i = 0; i < yard->slack; ++i) {
        cr_assert((uint8_t)yard->map[i] == CANARY, "written to %zu bytes before the box", yard->slack - i);
    }
    munmap(yard->map, yard->size);
}

/* --- frames: whatever follows the mark depends on a number --- */

static inline void frame_fill(wire_t *wire, size_t total, uint64_t number)
{
    uint64_t state = number * 0x100000001B3ull, word;
    size_t offset;

    for (offset = 8; offset < total; offset += sizeof(word)) {
        word = next_random(&state);
        memcpy(wire->bytes + offset, &word, uci_min(sizeof(word), total - offset));
    }
}

static inline bool frame_is(const char *frame, size_t total, uint64_t number)
{
    wire_t wire;

    frame_fill(&wire, total, number);
    return memcmp(frame + 8, wire.bytes + 8, total - 8) == 0;
}

static inline bool send_frame(uci_box_tx_t *tx, size_t total, uint64_t number)
{
    wire_t wire;
    uint64_t mark;
    char *place = uci_box_tx_place(tx, total, &mark);

    if (place == NULL) {
        return false;
    }
    frame_fill(&wire, total, number);
    memset(wire.bytes, 0xEE, 8); /* not what ends up in the frame */
    uci_box_tx_post(tx, place, wire.bytes, total, mark);
    return true;
}

static inline void take_frame(uci_box_rx_t *rx, size_t total, uint64_t number)
{
    const char *frame = uci_box_rx_peek(rx);
    uint64_t mark;

    cr_assert(frame != NULL, "frame %lu of %zu bytes is not there", (unsigned long)number, total);
    memcpy(&mark, frame, sizeof(mark));
    cr_assert(mark == uci_box_rx_mark(rx));
    cr_assert(frame_is(frame, total, number), "frame %lu of %zu bytes", (unsigned long)number, total);
    uci_box_rx_next(rx, total);
}

static inline void both_init(uci_box_tx_t *tx, uci_box_rx_t *rx, uci_box_t *box, uint64_t key)
{
    uci_box_tx_init(tx, box, UCI_BOX_GRANULES, key);
    uci_box_rx_init(rx, box, UCI_BOX_GRANULES, key);
}

/* A little patience before the core is given to the other side, which may have none */
static inline void pause_for(unsigned *turns_p)
{
    if (++*turns_p % 64 == 0) {
        sched_yield();
    }
}

#endif
