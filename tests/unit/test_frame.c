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
    hdr->kind    = UCI_FRAME_EAGER;
    hdr->digest  = 0;
    hdr->length  = (uint16_t)length;
    hdr->seq     = 42;
    hdr->ack     = 0;
    hdr->uid     = 0x1122334455667788ul;
    hdr->value   = 99;
    frame->tag   = tag;
    frame->start = 0;
    memset(uci_frame_payload(frame), 0x5a, length);
    uci_frame_seal(frame, 0);
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

/* A frame that UCI_SMALL_MAX bytes fit in, from the worker with this uid; as it arrives */
static uci_frame_t *make_small(size_t length, uint64_t tag, uint64_t uid, uci_frame_t **sent_p)
{
    uci_frame_t *sent      = uci_frame_get(&pool, UCI_SMALL_MAX + sizeof(uci_small_hdr_t));
    uci_frame_t *received  = uci_frame_get(&pool, UCI_SMALL_MAX + sizeof(uci_small_hdr_t));
    uci_small_hdr_t *small = (uci_small_hdr_t *)(void *)(sent->wire + UCI_SMALL_OFFSET);

    sent->tag   = tag;
    sent->seq   = 42;
    sent->start = UCI_SMALL_OFFSET;
    memset(uci_frame_payload(sent), 0x5a, length);
    uci_frame_hdr(sent)->kind   = UCI_FRAME_SMALL;
    uci_frame_hdr(sent)->digest = UCI_DIGEST_XXH3;
    uci_frame_hdr(sent)->length = (uint16_t)length;
    uci_frame_hdr(sent)->value  = 99;
    small->kind                 = UCI_FRAME_SMALL;
    small->length               = (uint8_t)length;
    small->who                  = uci_uid_short(uid);
    small->seq                  = 42;
    small->ack                  = 17;
    uci_frame_seal(sent, uid);
    cr_assert((sent != NULL) && (received != NULL));
    memcpy(received->wire, uci_frame_start(sent), sizeof(*small) + length);
    *sent_p = sent;
    return received;
}

Test(frame, small_frame)
{
    uint64_t uid = 0x1122334455667788ul;
    uci_frame_hdr_t hdr, described;
    uci_frame_t *frame, *sent;
    size_t length, total, bit;

    for (length = 0; length <= UCI_SMALL_MAX; ++length) {
        uci_small_hdr_t *small;

        frame = make_small(length, 7, uid, &sent);
        small = (uci_small_hdr_t *)(void *)frame->wire;
        total = length + uci_frame_overhead(UCI_FRAME_SMALL);
        cr_assert(uci_small_hdr_is_present(small, total));
        cr_expect(!uci_small_hdr_is_present(small, total + 1) && !uci_small_hdr_is_present(small, total - 1));
        cr_expect(small->check == uci_small_hdr_check(small, 7, uid));
        cr_expect(small->check != uci_small_hdr_check(small, 8, uid), "tag is bound");
        cr_expect(small->check != uci_small_hdr_check(small, 7, uid + 1), "uid is bound");
        uci_small_hdr_expand(small, uid, &hdr);
        uci_frame_describe(sent, 17, uid, &described);
        described.check = hdr.check;
        cr_expect(memcmp(&hdr, &described, sizeof(hdr)) == 0, "who receives it and who kept it say the same");
        cr_expect(uci_frame_is_whole(&hdr, total) && (hdr.seq == 42) && (hdr.ack == 17) && (hdr.value == 99));
        cr_expect(memcmp(frame->wire + uci_frame_head(hdr.kind), uci_frame_payload(sent), length) == 0);
        cr_expect(!uci_frame_recover_hdr(frame, 7, total, &hdr), "it is not one of the other form");
        for (bit = 0; bit < 8 * sizeof(*small); ++bit) {
            frame->wire[bit / 8] ^= (char)(1 << (bit % 8));
            cr_assert(!uci_small_hdr_is_present(small, total) || (small->check != uci_small_hdr_check(small, 7, uid)),
                      "bit %zu", bit);
            frame->wire[bit / 8] ^= (char)(1 << (bit % 8));
        }
        uci_frame_put(&pool, frame);
        uci_frame_put(&pool, sent);
    }
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

/* The check by words is that of the specification */
Test(frame, small_check_is_xxh3)
{
    uci_small_hdr_t hdr;
    unsigned i, k;

    for (i = 0; i < 1000; ++i) {
        for (k = 0; k < sizeof(hdr); ++k) {
            ((uint8_t *)&hdr)[k] = (uint8_t)rand();
        }
        cr_assert(uci_small_hdr_check(&hdr, i, 3 * i) == (uint32_t)XXH3_64bits_withSeed(&hdr.kind,
                                                                                        sizeof(hdr) - sizeof(hdr.check),
                                                                                        i + 3 * i * UCI_UID_FACTOR));
    }
}

/* Written at once, a small frame is the one that is put together piece by piece */
Test(frame, small_frame_at_once)
{
    uint64_t uid = 0x8877665544332211ul;
    char payload[UCI_SMALL_MAX];
    uci_frame_t *frame, *pieces, *arrived;
    size_t length;

    memset(payload, 0x5a, sizeof(payload));
    for (length = 0; length <= UCI_SMALL_MAX; ++length) {
        frame        = uci_frame_get_small(&pool);
        frame->tag   = 7;
        frame->seq   = 42 + (1ul << 32);
        frame->start = UCI_SMALL_OFFSET;
        uci_frame_write_small(frame, payload, length, 17, uci_uid_short(uid), uid);

        arrived                      = make_small(length, 7, uid, &pieces);
        uci_frame_hdr(pieces)->value = uci_digest_xxh3_small(payload, length);
        uci_frame_seal(pieces, uid);
        memset(pieces->wire, 0, 4); /* in front of a small frame's first byte: not sent, not used */
        cr_assert(memcmp(frame->wire, pieces->wire, uci_frame_payload(pieces) + length - pieces->wire) == 0,
                  "%zu bytes", length);
        uci_frame_put(&pool, frame);
        uci_frame_put(&pool, pieces);
        uci_frame_put(&pool, arrived);
    }
}
