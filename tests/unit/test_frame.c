/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/frame.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "box/box.h"

#define UID_SENDER   0x1122334455667788ul
#define UID_RECEIVER 0x8877665544332211ul
#define MARK         0xfedcba9876543210ul /* of a place in a mailbox */

static uci_frame_pool_t pool;

static void set_up(void)
{
    uci_frame_pool_init(&pool);
}

static void tear_down(void)
{
    uci_frame_pool_cleanup(&pool);
}

TestSuite(frame, .init = set_up, .fini = tear_down);

static uint64_t am_seed(void)
{
    return uci_frame_am_seed(UID_SENDER, UID_RECEIVER);
}

/* As the link does */
static uci_frame_t *make(size_t length, uint64_t mark, uint64_t seed)
{
    uci_frame_t *frame = uci_frame_get(&pool, sizeof(uci_frame_hdr_t) + length);

    cr_assert(frame != NULL);
    frame->peer  = NULL;
    frame->req   = NULL;
    frame->op    = NULL;
    frame->flags = 0;
    frame->seq   = 42 + (7ul << 32);
    frame->total = (uint32_t)(sizeof(uci_frame_hdr_t) + length);
    memset(uci_frame_payload(frame), 0x5a, length);
    uci_frame_write_hdr(frame, uci_frame_what(UCI_FRAME_EAGER, UCI_DIGEST_XXH3, (uint32_t)length), 17,
                        0x123456789abcdef0ul, 0x0fedcba987654321ul, mark, seed);
    return frame;
}

/* The check as the specification has it, by XXH3's own code */
static uint32_t specified(const uci_frame_hdr_t *hdr, uint64_t seed)
{
    return (uint32_t)XXH3_64bits_withSeed(&hdr->kind, sizeof(*hdr) - offsetof(uci_frame_hdr_t, kind), seed);
}

Test(frame, capacity_is_enough)
{
    size_t total;

    for (total = sizeof(uci_frame_hdr_t); total < 40000; total += 13) {
        uci_frame_t *frame = uci_frame_get(&pool, total);

        cr_assert(frame != NULL);
        cr_assert((frame->cls == UINT8_MAX) || (uci_frame_class_size[frame->cls] >= total), "%zu bytes", total);
        cr_assert((frame->cls == 0) || (frame->cls == UINT8_MAX) || (uci_frame_class_size[frame->cls - 1] < total),
                  "%zu bytes would do with less than class %u", total, frame->cls);
        cr_assert((uintptr_t)frame->wire % UCI_CACHE_LINE == 0);
        memset(frame->wire, 1, total);
        uci_frame_put(&pool, frame);
    }
}

/* The largest that may be is not from the heap, and what a box takes is read up to the next cache line */
Test(frame, classes_fit_what_is_sent)
{
    uci_frame_t *frame = uci_frame_get(&pool, sizeof(uci_frame_hdr_t) + UCI_FRAME_MAX);
    unsigned cls;

    cr_expect(frame->cls < UCI_FRAME_CLASSES);
    uci_frame_put(&pool, frame);
    for (cls = 0; cls < UCI_FRAME_CLASSES; ++cls) {
        cr_expect(uci_frame_class_size[cls] % UCI_BOX_GRANULE == 0);
    }
}

Test(frame, larger_than_all_classes)
{
    size_t total       = 200000;
    uci_frame_t *frame = uci_frame_get(&pool, total);

    cr_assert(frame != NULL);
    cr_expect(frame->cls == UINT8_MAX);
    cr_expect(frame->total == total);
    cr_expect((uintptr_t)frame->wire % UCI_CACHE_LINE == 0);
    memset(frame->wire, 1, total);
    uci_frame_put(&pool, frame);
}

Test(frame, small_frames_are_of_the_smallest_class)
{
    uci_frame_t *frame = uci_frame_get_small(&pool);

    cr_assert(frame != NULL);
    cr_expect(frame->cls == 0);
    memset(frame->wire, 1, uci_frame_class_size[0]);
    uci_frame_put(&pool, frame);
    cr_expect(uci_frame_get(&pool, 1) == frame, "what has been given back is taken first");
    uci_frame_put(&pool, frame);
}

/* -------------------------------------------------------------------- headers */

Test(frame, says_what_was_meant)
{
    uci_frame_t *frame         = make(100, UID_SENDER, am_seed());
    const uci_frame_hdr_t *hdr = uci_frame_hdr(frame);

    cr_expect(hdr->mark == UID_SENDER);
    cr_expect(hdr->kind == UCI_FRAME_EAGER);
    cr_expect(hdr->digest == UCI_DIGEST_XXH3);
    cr_expect(hdr->length == 100);
    cr_expect(hdr->seq == 42, "the low half");
    cr_expect(hdr->ack == 17);
    cr_expect(hdr->tag == 0x123456789abcdef0ul);
    cr_expect(hdr->value == 0x0fedcba987654321ul);
    cr_expect(uci_frame_tag(frame) == hdr->tag);
    cr_expect(uci_frame_payload(frame) == frame->wire + 40);
    uci_frame_put(&pool, frame);
}

/* Fields of all bits, and of one */
Test(frame, fields_do_not_touch)
{
    static const uint64_t values[] = {0, UINT64_MAX, 1, 1ul << 63, 1ul << 31, 1ul << 32};
    uci_frame_t *frame             = uci_frame_get(&pool, sizeof(uci_frame_hdr_t));
    const uci_frame_hdr_t *hdr     = uci_frame_hdr(frame);
    size_t n, i;

    for (n = 0; n < 1ul << 6; ++n) {
        for (i = 0; i < uci_array_size(values); ++i) {
            uint64_t seq = (n & 1) ? values[i] : 0, tag = (n & 2) ? values[i] : 0, value = (n & 4) ? values[i] : 0;
            uint32_t ack = (n & 8) ? (uint32_t)values[i] : 0, length = (n & 16) ? UINT16_MAX : 0;
            uint64_t mark = (n & 32) ? values[i] : 0;

            frame->seq = seq;
            uci_frame_write_hdr(frame, uci_frame_what(UCI_FRAME_RNDV, 0xff, length), ack, tag, value, mark, n);
            cr_assert((hdr->mark == mark) && (hdr->kind == UCI_FRAME_RNDV) && (hdr->digest == 0xff) &&
                      (hdr->length == length) && (hdr->seq == (uint32_t)seq) && (hdr->ack == ack) &&
                      (hdr->tag == tag) && (hdr->value == value));
            cr_assert(hdr->check == uci_frame_check(hdr, n));
        }
    }
    uci_frame_put(&pool, frame);
}

/* What is written at once from words is what is checked over bytes, and both are XXH3 */
Test(frame, check_is_xxh3)
{
    uci_frame_hdr_t hdr;
    uci_frame_t *frame = uci_frame_get(&pool, sizeof(hdr));
    uint64_t seed;
    unsigned i, k;

    for (i = 0; i < 1000; ++i) {
        for (k = 0; k < sizeof(hdr); ++k) {
            ((uint8_t *)&hdr)[k] = (uint8_t)rand();
        }
        seed = ((uint64_t)rand() << 33) ^ (uint64_t)rand();
        cr_assert(uci_frame_check(&hdr, seed) == specified(&hdr, seed));

        frame->seq = hdr.seq + ((uint64_t)rand() << 32);
        uci_frame_write_hdr(frame, uci_frame_what((uci_frame_kind_t)hdr.kind, hdr.digest, hdr.length), hdr.ack, hdr.tag,
                            hdr.value, hdr.mark, seed);
        hdr.check = specified(&hdr, seed);
        cr_assert(memcmp(frame->wire, &hdr, sizeof(hdr)) == 0, "written at once, it is another one");
    }
    uci_frame_put(&pool, frame);
}

/* Any one bit, and any two of them */
static void flip_all(uint64_t mark, uint64_t seed)
{
    uci_frame_t *frame   = make(100, mark, seed);
    uci_frame_hdr_t *hdr = uci_frame_hdr(frame);
    size_t first         = 8 * offsetof(uci_frame_hdr_t, check), bit, other;

    cr_assert(hdr->check == uci_frame_check(hdr, seed));
    for (bit = first; bit < 8 * sizeof(*hdr); ++bit) {
        frame->wire[bit / 8] ^= (char)(1 << (bit % 8));
        cr_assert(hdr->check != uci_frame_check(hdr, seed), "bit %zu", bit);
        for (other = first; other < bit; ++other) {
            frame->wire[other / 8] ^= (char)(1 << (other % 8));
            cr_assert(hdr->check != uci_frame_check(hdr, seed), "bits %zu and %zu", bit, other);
            frame->wire[other / 8] ^= (char)(1 << (other % 8));
        }
        frame->wire[bit / 8] ^= (char)(1 << (bit % 8));
    }
    cr_assert(hdr->check == uci_frame_check(hdr, seed));
    uci_frame_put(&pool, frame);
}

Test(frame, flips_are_found_in_active_messages)
{
    flip_all(UID_SENDER, am_seed());
}

Test(frame, flips_are_found_in_a_mailbox)
{
    flip_all(MARK, MARK);
}

/* The mark is not under the check: it is what the check is seeded with, or made from */
Test(frame, flips_of_the_mark_are_found)
{
    uci_frame_t *frame = make(100, UID_SENDER, am_seed()), *placed = make(100, MARK, MARK);
    uci_frame_hdr_t *hdr = uci_frame_hdr(frame), *in_box = uci_frame_hdr(placed);
    unsigned bit;

    for (bit = 0; bit < 64; ++bit) {
        cr_expect(hdr->check != uci_frame_check(hdr, uci_frame_am_seed(UID_SENDER ^ (1ul << bit), UID_RECEIVER)),
                  "from another one, bit %u", bit);
        cr_expect(hdr->check != uci_frame_check(hdr, uci_frame_am_seed(UID_SENDER, UID_RECEIVER ^ (1ul << bit))),
                  "for another one, bit %u", bit);
        cr_expect(in_box->check != uci_frame_check(in_box, MARK ^ (1ul << bit)), "of another place, bit %u", bit);
    }
    uci_frame_put(&pool, frame);
    uci_frame_put(&pool, placed);
}

/* Who sends to whom: not the other way round, which a sum would be, nor by the other carrier */
Test(frame, seed_binds_the_pair)
{
    uci_frame_t *frame         = make(100, UID_SENDER, am_seed());
    const uci_frame_hdr_t *hdr = uci_frame_hdr(frame);

    cr_expect(hdr->check != uci_frame_check(hdr, uci_frame_am_seed(UID_RECEIVER, UID_SENDER)));
    cr_expect(hdr->check != uci_frame_check(hdr, UID_SENDER), "it is in no mailbox");
    cr_expect(hdr->check != uci_frame_check(hdr, MARK));
    cr_expect(hdr->check != uci_frame_check(hdr, 0));
    uci_frame_put(&pool, frame);
}

/* Pairs of workers of one job have seeds of their own: uids of UCX's differ in few bits */
Test(frame, seeds_of_pairs_differ)
{
    uint64_t seeds[16 * 16];
    unsigned i, k, n = 0;

    for (i = 0; i < 16; ++i) {
        for (k = 0; k < 16; ++k) {
            seeds[n++] = uci_frame_am_seed(UID_SENDER + i, UID_SENDER + k);
        }
    }
    for (i = 0; i < n; ++i) {
        for (k = 0; k < i; ++k) {
            cr_assert(seeds[i] != seeds[k], "%u and %u", i, k);
        }
    }
}

/* ----------------------------------------------------------------- the rest */

Test(frame, clone)
{
    static const size_t lengths[] = {0, 1, 88, 89, 100, 8192, 32768, 100000};
    uci_frame_t *frame, *clone;
    size_t i;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        frame        = make(lengths[i] % UINT16_MAX, UID_SENDER, am_seed());
        frame->req   = (struct uci_request *)(void *)&pool; /* never looked into */
        frame->op    = (struct uci_send_op *)(void *)&pool;
        frame->peer  = (struct uci_peer *)(void *)&pool;
        frame->flags = UCI_FRAME_LOGGED;
        clone        = uci_frame_clone(&pool, frame);
        cr_assert((clone != NULL) && (clone != frame));
        cr_expect((clone->peer == frame->peer) && (clone->seq == frame->seq) && (clone->total == frame->total));
        cr_expect((clone->req == NULL) && (clone->op == NULL), "nobody waits for it");
        cr_expect(clone->flags == UCI_FRAME_IN_FLIGHT, "no log knows it, and a carrier is to give it back");
        cr_expect(memcmp(clone->wire, frame->wire, frame->total) == 0);
        cr_expect(frame->flags == UCI_FRAME_LOGGED);
        uci_frame_put(&pool, clone);
        uci_frame_put(&pool, frame);
    }
}

Test(frame, who_waits_for_fin)
{
    cr_expect(!uci_frame_wants_fin(UCI_FRAME_EAGER));
    cr_expect(uci_frame_wants_fin(UCI_FRAME_SYNC));
    cr_expect(uci_frame_wants_fin(UCI_FRAME_RNDV));
}

Test(frame, chunk_lengths)
{
    cr_expect(uci_chunk_length(10, 4, 0) == 4);
    cr_expect(uci_chunk_length(10, 4, 1) == 4);
    cr_expect(uci_chunk_length(10, 4, 2) == 2);
    cr_expect(uci_chunk_length(8, 4, 1) == 4);
    cr_expect(uci_chunk_length(0, 4, 0) == 0);
    cr_expect(uci_chunk_length(5ul << 32, 1u << 20, 5u << 12) == 0);
    cr_expect(uci_chunk_length((5ul << 32) + 3, 1u << 20, 5u << 12) == 3);
}
