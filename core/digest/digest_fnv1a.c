/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * FNV-1a (G. Fowler, L. Noll, K.-P. Vo; RFC 9923) over 64-bit words. Word i, little-endian, the last one
 * zero-padded, goes to lane i mod 16; each lane is an FNV-1a of its own, h = (h ^ word) * prime from the offset
 * basis on. At the end the lanes that were used, in order, and then the length in bytes are words of one more
 * FNV-1a, which is the value. Lanes exist because one FNV-1a waits 4 cycles for every product.
 */
#include "digest_kernels.h"

#define UCI_FNV1A_BASIS 0xcbf29ce484222325ull
#define UCI_FNV1A_PRIME 0x00000100000001b3ull /* 2^40 + 0x1b3 */
#define UCI_FNV1A_LANES 16
#define UCI_FNV1A_ROW   (UCI_FNV1A_LANES * 8) /* bytes that give each lane one word */

#define UCI_FNV1A_GUARANTEE \
    "any damage within one aligned 8-byte word is certain to be detected; but damage to bit 63 only, in an even " \
    "number of words, is never detected, and 2 flipped bits are missed with odds of about 2^-11"

UCI_INLINE uint64_t uci_fnv1a_step(uint64_t h, uint64_t word)
{
    return (h ^ word) * UCI_FNV1A_PRIME;
}

/* Lanes eat `rows` rows of 16 words at `src`, copied to `dst` unless NULL */
typedef void (*uci_fnv1a_eat_func_t)(uint64_t *lanes, uint8_t *dst, const uint8_t *src, size_t rows);

static void uci_fnv1a_eat_scalar(uint64_t *lanes, uint8_t *dst, const uint8_t *src, size_t rows)
{
    unsigned i;

    for (; rows > 0; --rows) {
        for (i = 0; i < UCI_FNV1A_LANES; ++i) {
            lanes[i] = uci_fnv1a_step(lanes[i], uci_digest_move64(uci_digest_advance(dst, 8 * i), src + 8 * i));
        }
        src += UCI_FNV1A_ROW;
        dst = uci_digest_advance(dst, UCI_FNV1A_ROW);
    }
}

UCI_INLINE void uci_fnv1a_lanes_init(uint64_t *lanes)
{
    unsigned i;

    for (i = 0; i < UCI_FNV1A_LANES; ++i) {
        lanes[i] = UCI_FNV1A_BASIS;
    }
}

static void uci_fnv1a_start_scalar(uint64_t *lanes, uint8_t *dst, const uint8_t *src, size_t rows)
{
    uci_fnv1a_lanes_init(lanes);
    uci_fnv1a_eat_scalar(lanes, dst, src, rows);
}

/* Eat, and copy, the last incomplete row, then fold */
UCI_INLINE uint64_t uci_fnv1a_finish(uint64_t *lanes, uint8_t *dst, const uint8_t *src, size_t length)
{
    size_t rest   = length % UCI_FNV1A_ROW;
    unsigned used = (length >= UCI_FNV1A_ROW) ? UCI_FNV1A_LANES : uci_div_up(rest, 8);
    uint64_t h    = UCI_FNV1A_BASIS;
    unsigned i;

    for (i = 0; i < rest / 8; ++i) {
        lanes[i] = uci_fnv1a_step(lanes[i], uci_digest_move64(uci_digest_advance(dst, 8 * i), src + 8 * i));
    }
    if ((rest % 8) != 0) {
        lanes[i] = uci_fnv1a_step(lanes[i],
                                  uci_digest_move_tail(uci_digest_advance(dst, 8 * i), src + 8 * i, rest % 8));
    }
    for (i = 0; i < used; ++i) {
        h = uci_fnv1a_step(h, lanes[i]);
    }
    return uci_fnv1a_step(h, length);
}

UCI_INLINE uint64_t uci_fnv1a_message(uci_fnv1a_eat_func_t start, uint8_t *dst, const uint8_t *src, size_t length)
{
    size_t whole = length - length % UCI_FNV1A_ROW;
    uint64_t lanes[UCI_FNV1A_LANES];

    if (whole > 0) {
        start(lanes, dst, src, whole / UCI_FNV1A_ROW);
        src += whole;
        dst = uci_digest_advance(dst, whole);
    } else {
        uci_fnv1a_lanes_init(lanes);
    }
    return uci_fnv1a_finish(lanes, dst, src, length);
}

static void uci_fnv1a_init(uci_digest_stream_t *stream)
{
    stream->length  = 0;
    stream->waiting = 0;
    uci_fnv1a_lanes_init(stream->lanes);
}

UCI_INLINE void uci_fnv1a_keep(uci_digest_stream_t *stream, uint8_t *dst, const uint8_t *src, size_t length)
{
    uci_digest_store(dst, uci_digest_own(stream->buffer + stream->waiting, src, length), length);
    stream->waiting += length;
}

UCI_INLINE void uci_fnv1a_update(uci_fnv1a_eat_func_t eat, uci_digest_stream_t *stream, uint8_t *dst,
                                 const uint8_t *src, size_t length)
{
    size_t head = uci_min((size_t)(UCI_FNV1A_ROW - stream->waiting) % UCI_FNV1A_ROW, length);
    size_t body;

    stream->length += length;
    if (head > 0) {
        uci_fnv1a_keep(stream, dst, src, head);
        if (stream->waiting == UCI_FNV1A_ROW) {
            eat(stream->lanes, NULL, stream->buffer, 1);
            stream->waiting = 0;
        }
        src += head;
        dst = uci_digest_advance(dst, head);
        length -= head;
    }

    if (length > 0) { /* then nothing waits */
        body = length - length % UCI_FNV1A_ROW;
        eat(stream->lanes, dst, src, body / UCI_FNV1A_ROW);
        uci_fnv1a_keep(stream, uci_digest_advance(dst, body), src + body, length - body);
    }
}

static uint64_t uci_fnv1a_final(const uci_digest_stream_t *stream)
{
    uint64_t lanes[UCI_FNV1A_LANES];

    memcpy(lanes, stream->lanes, sizeof(lanes));
    return uci_fnv1a_finish(lanes, NULL, stream->buffer, stream->length);
}

uint64_t uci_fnv1a_bytes(const void *data, size_t length)
{
    const uint8_t *p = data;
    uint64_t h       = UCI_FNV1A_BASIS;
    size_t i;

    for (i = 0; i < length; ++i) {
        h = uci_fnv1a_step(h, p[i]);
    }
    return h;
}

/* The functions of the row, on top of uci_fnv1a_eat_<isa> */
#define UCI_FNV1A_DEFINE(_isa, _id) \
    static uint64_t _isa(uci_fnv1a_digest)(const void *data, size_t length) \
    { \
        return uci_fnv1a_message(_isa(uci_fnv1a_start), NULL, data, length); \
    } \
\
    static uint64_t _isa(uci_fnv1a_copy)(void *dst, const void *src, size_t length) \
    { \
        if (length >= UCI_DIGEST_FAR_MIN) { \
            return uci_digest_copy_far(&uci_digest_fnv1a_rows[_id], dst, src, length); \
        } \
        return uci_fnv1a_message(_isa(uci_fnv1a_start), dst, src, length); \
    } \
\
    static void _isa(uci_fnv1a_stream_update)(uci_digest_stream_t * stream, void *dst, const void *src, size_t length) \
    { \
        uci_fnv1a_update(_isa(uci_fnv1a_eat), stream, dst, src, length); \
    }

#define UCI_FNV1A_ROW_OF(_isa, _kernel) \
    { \
        .name = "fnv1a", .title = "FNV-1a, 64-bit words in 16 lanes, " _kernel, .id = UCI_DIGEST_FNV1A, .width = 64, \
        .digest = _isa(uci_fnv1a_digest), .copy = _isa(uci_fnv1a_copy), .guarantee = UCI_FNV1A_GUARANTEE, \
        .init = uci_fnv1a_init, .update = _isa(uci_fnv1a_stream_update), .final = uci_fnv1a_final, \
    }

UCI_FNV1A_DEFINE(UCI_ISA_SCALAR, UCI_DIGEST_ISA_SCALAR)

#define UCI_KERNEL_FILE "digest_fnv1a.inl"
#include "digest_isas.inl"

const uci_digest_ops_t uci_digest_fnv1a_rows[UCI_DIGEST_ISA_LAST] = UCI_DIGEST_ROWS(UCI_FNV1A_ROW_OF);
