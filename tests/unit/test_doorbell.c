/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "box_yard.h"
#include "doorbell.h"

#include <pthread.h>

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

/* The receiver looks into a box only if it was rung for, and the sender waits: were a bell lost, both would for ever */
typedef struct visit {
    bell_t bell;
    uci_box_t *boxes;
    uint64_t frames;
} visit_t;

#define VISIT_BOXES 3u

static void *visit_send(void *arg)
{
    static const unsigned bells[VISIT_BOXES] = {0, 7, 63};
    visit_t *visit                           = (visit_t *)arg;
    uci_box_tx_t tx[VISIT_BOXES];
    unsigned turns = 0, box;
    uint64_t number, burst;
    uint32_t acked = 0;

    for (box = 0; box < VISIT_BOXES; ++box) {
        uci_box_tx_init(&tx[box], &visit->boxes[box], KEY + box);
    }
    for (number = 0; number < visit->frames;) {
        box = number % VISIT_BOXES;
        for (burst = 1 + number % 4; burst > 0; --burst) {
            while (!send_frame(&tx[box], 48, number)) {
                pause_for(&turns);
            }
            uci_doorbell_ring(visit->bell.line, bells[box]);
        }
        ++number;
        /* until all is taken, now and then */
        while ((number % 5 == 0) && (tx[box].consumed != uci_box_tx_position(&tx[box]))) {
            (void)uci_box_tx_heard(&tx[box], &acked);
            pause_for(&turns);
        }
    }
    return NULL;
}

static void visit_drain(uci_box_rx_t *rx)
{
    while (uci_box_rx_peek(rx) != NULL) {
        uci_box_rx_next(rx, 48);
    }
    uci_box_rx_tell(rx, 0);
}

Test(doorbell, no_bell_is_lost, .timeout = 120)
{
    static visit_t visit;
    yard_t yard;
    uci_box_rx_t rx[VISIT_BOXES];
    uint64_t rung, expected = 0, number;
    unsigned turns = 0, box;
    pthread_t sender;

    visit.boxes  = yard_make(&yard, VISIT_BOXES);
    visit.frames = 300000;
    for (box = 0; box < VISIT_BOXES; ++box) {
        uci_box_rx_init(&rx[box], &visit.boxes[box], KEY + box);
    }
    for (number = 0; number < visit.frames; ++number) {
        expected += 1 + number % 4;
    }
    cr_assert(pthread_create(&sender, NULL, visit_send, &visit) == 0);
    for (number = 0; number < expected;) {
        rung = uci_doorbell_rung(visit.bell.line);
        if (rung == 0) {
            pause_for(&turns);
            continue;
        }
        for (; rung != 0; rung &= rung - 1) {
            box = (unsigned)__builtin_ctzll(rung);
            uci_doorbell_clear(visit.bell.line, box);
            visit_drain(&rx[(box == 0) ? 0 : (box == 7) ? 1 : 2]);
        }
        for (box = 0, number = 0; box < VISIT_BOXES; ++box) {
            number += uci_box_rx_position(&rx[box]);
        }
    }
    pthread_join(sender, NULL);
    cr_expect(number == expected);
    yard_check(&yard);
}
