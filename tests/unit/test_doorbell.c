/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "box_yard.h"
#include "box/doorbell.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct bell {
    volatile uint8_t line[UCI_DOORBELL_BOXES] __attribute__((aligned(64)));
} bell_t;

Test(doorbell, each_bell_is_told_from_the_others)
{
    static bell_t bell;
    unsigned box, value;
    uint64_t state = 1, expected;

    cr_expect(uci_doorbell_rung(bell.line) == 0);
    for (box = 0; box < UCI_DOORBELL_BOXES; ++box) {
        uci_doorbell_ring(bell.line, box);
        cr_assert(uci_doorbell_rung(bell.line) == 1ull << box, "box %u", box);
        uci_doorbell_ring(bell.line, box);
        uci_doorbell_clear(bell.line, box);
        cr_assert(uci_doorbell_rung(bell.line) == 0, "box %u", box);
        for (value = 1; value < 256; ++value) { /* damage rings as well */
            bell.line[box] = (uint8_t)value;
            cr_assert(uci_doorbell_rung(bell.line) == 1ull << box, "box %u, value %u", box, value);
        }
        bell.line[box] = 0;
    }
    for (value = 0; value < 10000; ++value) {
        for (box = 0, expected = 0; box < UCI_DOORBELL_BOXES; ++box) {
            bell.line[box] = (uint8_t)(next_random(&state) & next_random(&state) & next_random(&state));
            expected |= (uint64_t)(bell.line[box] != 0) << box;
        }
        cr_assert(uci_doorbell_rung(bell.line) == expected);
    }
}

/* The receiver looks into a box only if it was rung for, and the sender waits: were a bell lost, both would for ever.
 * It is the second frame's bell that meets the clear for the first one. */
#define PAIRS_BOXES 3u

typedef struct pairs {
    volatile uint8_t line[UCI_DOORBELL_BOXES] __attribute__((aligned(64)));
    uci_box_t *boxes;
    uint64_t pairs;
} pairs_t;

static const unsigned pairs_bells[PAIRS_BOXES] = {0, 7, 63};

static void pairs_post(pairs_t *pairs, uci_box_tx_t *tx, unsigned box)
{
    unsigned turns = 0;

    while (!send_frame(tx, 48, 0)) {
        pause_for(&turns);
    }
    uci_doorbell_ring(pairs->line, pairs_bells[box]);
}

static void *pairs_send(void *arg)
{
    pairs_t *pairs = (pairs_t *)arg;
    uci_box_tx_t tx[PAIRS_BOXES];
    unsigned turns = 0, box;
    uint64_t pair, state = 11;
    volatile unsigned delay;
    uint32_t acked;

    for (box = 0; box < PAIRS_BOXES; ++box) {
        uci_box_tx_init(&tx[box], &pairs->boxes[box], UCI_BOX_GRANULES, KEY + box);
    }
    for (pair = 0; pair < pairs->pairs; ++pair) {
        box = pair % PAIRS_BOXES;
        pairs_post(pairs, &tx[box], box);
        for (delay = next_random(&state) % 512; delay > 0; --delay) {
        }
        pairs_post(pairs, &tx[box], box);
        while (tx[box].consumed != uci_box_tx_position(&tx[box])) {
            (void)uci_box_tx_heard(&tx[box], &acked);
            pause_for(&turns);
        }
    }
    return NULL;
}

/* Stores that miss the caches, for the clear to queue behind: without a fence what is loaded after it overtakes it */
#define MISSES_SIZE (64u << 20)

static void pairs_hold_back(char *memory, uint64_t *state)
{
    unsigned i;

    for (i = 0; i < 16; ++i) {
        *(volatile char *)(memory + next_random(state) % MISSES_SIZE) = 1;
    }
}

static void pairs_drain(uci_box_rx_t *rx)
{
    while (uci_box_rx_peek(rx) != NULL) {
        uci_box_rx_next(rx, 48);
        uci_box_rx_tell(rx, 0);
    }
}

Test(doorbell, no_bell_is_lost, .timeout = 120)
{
    static pairs_t pairs;
    yard_t yard;
    uci_box_rx_t rx[PAIRS_BOXES];
    uint64_t taken, rung, state = 12;
    unsigned turns = 0, box;
    char *misses   = calloc(1, MISSES_SIZE);
    pthread_t sender;

    pairs.boxes = yard_make(&yard, PAIRS_BOXES);
    pairs.pairs = 300000;
    for (box = 0; box < PAIRS_BOXES; ++box) {
        uci_box_rx_init(&rx[box], &pairs.boxes[box], UCI_BOX_GRANULES, KEY + box);
    }
    cr_assert(pthread_create(&sender, NULL, pairs_send, &pairs) == 0);
    do {
        rung = uci_doorbell_rung(pairs.line);
        if (rung == 0) {
            pause_for(&turns);
        }
        for (box = 0, taken = 0; box < PAIRS_BOXES; ++box) {
            if (rung >> pairs_bells[box] & 1) {
                pairs_hold_back(misses, &state);
                uci_doorbell_clear(pairs.line, pairs_bells[box]);
                pairs_drain(&rx[box]);
            }
            taken += uci_box_rx_position(&rx[box]);
        }
    } while (taken < 2 * pairs.pairs);
    pthread_join(sender, NULL);
    free(misses);
    cr_expect(taken == 2 * pairs.pairs);
    yard_check(&yard);
}
