/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "link/bounce.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "turn/worker.h"

static uci_worker_t worker;
static uci_peer_t peer;
static uci_slot_t *slots;

static void set_up(void)
{
    memset(&worker, 0, sizeof(worker));
    memset(&peer, 0, sizeof(peer));
    slots = calloc(UCI_SLOT_COUNT, sizeof(*slots));
    uci_bounce_init(&worker.link.bounce, slots);
    peer.worker = &worker;
}

static void tear_down(void)
{
    free(slots);
}

TestSuite(bounce, .init = set_up, .fini = tear_down, .timeout = 10);

Test(bounce, reserve_keeps_what_it_should)
{
    cr_assert(uci_bounce_reserve(&worker, 8, UCI_SLOT_COUNT - 3) == 3);
    cr_assert(uci_bounce_reserve(&worker, 8, UCI_SLOT_COUNT - 3) == 0);
    cr_assert(uci_bounce_reserve(&worker, 1, 0) == 1);
    uci_bounce_unreserve(&worker, 4);
    cr_assert(uci_bounce_reserve(&worker, 2 * UCI_SLOT_COUNT, 0) == UCI_SLOT_COUNT);
    cr_assert(uci_bounce_reserve(&worker, 1, 0) == 0);
}

/* First in, first out: a slot just given back is used after all others */
Test(bounce, slots_are_used_in_turn)
{
    uint16_t first, second, slot;
    unsigned i;

    cr_assert(uci_bounce_reserve(&worker, 2, 0) == 2);
    first  = uci_bounce_get(&worker);
    second = uci_bounce_get(&worker);
    cr_assert(first != second);
    uci_bounce_put(&worker, second);
    uci_bounce_put(&worker, first);
    for (i = 0; i < UCI_SLOT_COUNT - 2; ++i) {
        slot = uci_bounce_get(&worker);
        cr_assert((slot != first) && (slot != second) && (slot < UCI_SLOT_COUNT));
        uci_bounce_put(&worker, slot);
    }
    cr_assert(uci_bounce_get(&worker) == second);
    cr_assert(uci_bounce_get(&worker) == first);
}

Test(bounce, each_slot_is_handed_out_once)
{
    bool seen[UCI_SLOT_COUNT] = {false};
    uint16_t slot;
    unsigned i;

    cr_assert(uci_bounce_reserve(&worker, UCI_SLOT_COUNT, 0) == UCI_SLOT_COUNT);
    for (i = 0; i < UCI_SLOT_COUNT; ++i) {
        slot = uci_bounce_get(&worker);
        cr_assert((slot < UCI_SLOT_COUNT) && !seen[slot]);
        seen[slot] = true;
    }
}

Test(bounce, marks_differ)
{
    uint64_t mark = uci_slot_mark(1, 2, 3);

    cr_assert(mark == uci_slot_mark(1, 2, 3));
    cr_assert(mark != uci_slot_mark(2, 2, 3));
    cr_assert(mark != uci_slot_mark(1, 3, 3));
    cr_assert(mark != uci_slot_mark(1, 2, 4));
    cr_assert(mark != uci_slot_mark(1, 3, 2));
}

/* Every bit of what a slot says of itself is covered, and so is what it is about */
Test(bounce, check_covers_the_fields)
{
    uci_slot_t *slot = &slots[0];
    uint64_t mark    = uci_slot_mark(1, 2, 3);
    char *first      = (char *)&slot->value;
    size_t length    = (size_t)((char *)&slot->check - first);
    uint32_t check;
    size_t bit;

    slot->value  = 0x0123456789abcdef;
    slot->root   = 42;
    slot->length = UCI_SLOT_SIZE;
    check        = uci_slot_check(slot, mark);
    for (bit = 0; bit < 8 * length; ++bit) {
        first[bit / 8] ^= (char)(1 << (bit % 8));
        cr_assert(uci_slot_check(slot, mark) != check, "bit %zu", bit);
        first[bit / 8] ^= (char)(1 << (bit % 8));
    }
    cr_assert(uci_slot_check(slot, mark) == check);
    cr_assert(uci_slot_check(slot, mark + 1) != check);
}

Test(bounce, acknowledging)
{
    uci_slot_t *slot = &slots[5];
    uint64_t mark    = uci_slot_mark(7, 8, 9);

    slot->mark = mark;
    cr_assert(!uci_slot_is_taken(slot, mark));
    uci_slot_ack(slot, uci_slot_mark(7, 8, 8));
    cr_assert(!uci_slot_is_taken(slot, mark));
    slot->mark = uci_slot_mark(7, 8, 8);
    cr_assert(!uci_slot_is_taken(slot, mark), "what a slot says of itself does not count: its reader can write to it");
    slot->ack = mark;
    cr_assert(!uci_slot_is_taken(slot, mark), "its own mark, copied 64 bytes further on, is no acknowledgement");
    uci_slot_ack(slot, mark);
    cr_assert(slot->ack != mark);
    cr_assert(uci_slot_is_taken(slot, mark));
}

/* What names the next slot is right in its own place alone */
Test(bounce, next_slot)
{
    uint64_t mark = uci_slot_mark(7, 8, 9), other = uci_slot_mark(7, 8, 10);
    uint16_t slot;
    unsigned bit;
    uint32_t word;

    for (slot = 0; slot < UCI_SLOT_COUNT; ++slot) {
        word = uci_slot_next_word(mark, slot);
        cr_assert(word != 0);
        cr_assert_eq(uci_slot_next(mark, word), slot);
        for (bit = 0; bit < 32; ++bit) {
            cr_assert_eq(uci_slot_next(mark, word ^ (1u << bit)), UCI_SLOT_NONE, "slot %u, bit %u", slot, bit);
        }
        cr_assert_eq(uci_slot_next(other, word), UCI_SLOT_NONE);
    }
    cr_assert_eq(uci_slot_next(mark, 0), UCI_SLOT_NONE);
}

Test(bounce, slot_of_a_peer)
{
    cr_assert(uci_bounce_slot_of(&peer, 0) == NULL);
    peer.slots.map.slots = slots;
    cr_assert(uci_bounce_slot_of(&peer, 3) == &slots[3]);
    cr_assert(uci_bounce_slot_of(&peer, UCI_SLOT_COUNT) == NULL);
    cr_assert(uci_bounce_slot_of(&peer, UCI_SLOT_NONE) == NULL);
}
