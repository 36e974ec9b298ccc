/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "frame.h"

#include <criterion/criterion.h>
#include <stdlib.h>

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

static uci_frame_t *make(size_t length, uint64_t tag)
{
    uci_frame_t *frame   = uci_frame_get(&pool, length + UCI_FRAME_OVERHEAD);
    uci_frame_hdr_t *hdr = (uci_frame_hdr_t *)(void *)frame->wire;

    cr_assert(frame != NULL);
    hdr->kind   = UCI_FRAME_EAGER;
    hdr->digest = 0;
    hdr->length = (uint16_t)length;
    hdr->seq    = 42;
    hdr->ack    = 0;
    hdr->uid    = 0x1122334455667788ul;
    hdr->value  = 99;
    frame->tag  = tag;
    memset(uci_frame_payload(frame), 0x5a, length);
    uci_frame_seal(frame);
    return frame;
}

Test(frame, capacity_is_enough)
{
    size_t total;

    for (total = UCI_FRAME_OVERHEAD; total < 40000; total += 13) {
        uci_frame_t *frame = uci_frame_get(&pool, total);

        cr_assert(frame != NULL);
        cr_assert(uci_frame_capacity(frame) >= total, "%zu bytes for %zu", uci_frame_capacity(frame), total);
        cr_assert((uintptr_t)frame->wire % UCI_CACHE_LINE == 0);
        memset(frame->wire, 1, total);
        uci_frame_put(&pool, frame);
    }
}

Test(frame, sealed_frame_is_valid)
{
    static const size_t lengths[] = {0, 1, 8, 64, 100, 8192, 32768};
    uci_frame_hdr_t hdr;
    size_t i;

    for (i = 0; i < uci_array_size(lengths); ++i) {
        uci_frame_t *frame = make(lengths[i], 7);
        size_t total       = lengths[i] + UCI_FRAME_OVERHEAD;

        cr_expect(uci_frame_hdr_is_valid((const uci_frame_hdr_t *)(const void *)frame->wire, 7));
        cr_expect(!uci_frame_hdr_is_valid((const uci_frame_hdr_t *)(const void *)frame->wire, 8), "tag is bound");
        cr_expect(memcmp(frame->wire, frame->wire + total - sizeof(hdr), sizeof(hdr)) == 0);
        cr_expect(uci_frame_is_whole((const uci_frame_hdr_t *)(const void *)frame->wire, total));
        cr_expect(!uci_frame_is_whole((const uci_frame_hdr_t *)(const void *)frame->wire, total - 1));
        cr_expect(uci_frame_recover_hdr(frame, 7, total, &hdr) && (hdr.seq == 42));
        cr_expect(!uci_frame_recover_hdr(frame, 8, total, &hdr));
        uci_frame_put(&pool, frame);
    }
}

/* Any one bit of either header may be wrong: the other one is taken */
Test(frame, one_header_is_enough)
{
    size_t length = 100, total = length + UCI_FRAME_OVERHEAD, bit;
    uci_frame_hdr_t expected, hdr;

    for (bit = 0; bit < 2 * 8 * sizeof(hdr); ++bit) {
        uci_frame_t *frame = make(length, 7);
        size_t place       = (bit < 8 * sizeof(hdr)) ? bit / 8 : total - (2 * sizeof(hdr)) + (bit / 8);

        memcpy(&expected, frame->wire, sizeof(expected));
        frame->wire[place] ^= (char)(1 << (bit % 8));
        cr_assert(uci_frame_recover_hdr(frame, 7, total, &hdr), "bit %zu", bit);
        cr_assert(memcmp(&hdr, &expected, sizeof(hdr)) == 0, "bit %zu", bit);
        frame->wire[place ^ 1] ^= 4;
        frame->wire[total - 1] ^= 4;
        frame->wire[sizeof(hdr) - 1] ^= 4;
        cr_assert(!uci_frame_recover_hdr(frame, 7, total, &hdr), "both are damaged, bit %zu", bit);
        uci_frame_put(&pool, frame);
    }
}

Test(frame, lost_tail)
{
    uci_frame_t *frame = make(100, 7);
    uci_frame_hdr_t hdr;
    size_t total;

    for (total = 0; total < 100 + UCI_FRAME_OVERHEAD; ++total) {
        bool found = uci_frame_recover_hdr(frame, 7, total, &hdr);

        cr_assert(found == (total >= sizeof(hdr)), "%zu bytes arrived", total);
        cr_assert(!found || !uci_frame_is_whole(&hdr, total));
    }
    uci_frame_put(&pool, frame);
}

Test(frame, larger_than_all_classes)
{
    size_t total       = 200000;
    uci_frame_t *frame = uci_frame_get(&pool, total);

    cr_assert(frame != NULL);
    cr_expect(uci_frame_capacity(frame) >= total);
    memset(frame->wire, 1, total);
    uci_frame_put(&pool, frame);
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
