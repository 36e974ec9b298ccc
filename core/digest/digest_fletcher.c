/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fletcher-64 (J. G. Fletcher, "An Arithmetic Checksum for Serial Transmissions", IEEE Trans. Comm. 30, 1982)
 * over 32-bit little-endian words, the last one zero-padded, modulo 2^32-1: first = sum of words, second = sum
 * of all values first took; the value is second << 32 | first, both below the modulus.
 */
#include "digest_kernels.h"

#define UCI_FLETCHER_MODULUS    ((uint64_t)UINT32_MAX)
#define UCI_FLETCHER_BLOCK      65536u /* bytes summed before reducing: no sum overflows 64 bits */
#define UCI_FLETCHER_GRAIN      64u    /* kernels take multiples of this */
#define UCI_FLETCHER_SCALAR_MAX 192u   /* below, reducing a vector's sums costs more than it saves */

#define UCI_FLETCHER_GUARANTEE \
    "any damage within one aligned 4-byte word is certain to be detected, except 0x00000000 turned into 0xffffffff " \
    "or back; random damage is missed with odds of 2^-64; zeros added or lost at the end, and blocks of equal " \
    "sums that change places, are not seen"

typedef struct uci_fletcher {
    uint64_t first, second;
} uci_fletcher_t;

/* Sums of `length` bytes at `src`, a multiple of UCI_FLETCHER_GRAIN and at most UCI_FLETCHER_BLOCK, copied to
 * `dst` unless NULL */
typedef uci_fletcher_t (*uci_fletcher_block_func_t)(uint8_t *dst, const uint8_t *src, size_t length);

/* Any length up to UCI_FLETCHER_BLOCK */
UCI_INLINE uci_fletcher_t uci_fletcher_words(uint8_t *dst, const uint8_t *src, size_t length)
{
    uci_fletcher_t sums = {0, 0};
    size_t i;

    for (i = 0; i + 4 <= length; i += 4) {
        sums.first += uci_digest_move32(uci_digest_advance(dst, i), src + i);
        sums.second += sums.first;
    }
    if (i < length) {
        sums.first += uci_digest_move_tail(uci_digest_advance(dst, i), src + i, length - i);
        sums.second += sums.first;
    }
    sums.first %= UCI_FLETCHER_MODULUS;
    sums.second %= UCI_FLETCHER_MODULUS;
    return sums;
}

static uci_fletcher_t uci_fletcher_block_scalar(uint8_t *dst, const uint8_t *src, size_t length)
{
    return uci_fletcher_words(dst, src, length);
}

/* Sums of left and right joined: each word of left weighs right's number of words more */
UCI_INLINE uci_fletcher_t uci_fletcher_join(uci_fletcher_t left, uci_fletcher_t right, size_t right_length)
{
    uint64_t words = uci_div_up(right_length, 4) % UCI_FLETCHER_MODULUS;

    return (uci_fletcher_t){
            .first  = (left.first + right.first) % UCI_FLETCHER_MODULUS,
            .second = ((left.first * words) % UCI_FLETCHER_MODULUS + left.second + right.second) % UCI_FLETCHER_MODULUS,
    };
}

UCI_INLINE uint64_t uci_fletcher_pack(uci_fletcher_t sums)
{
    return (sums.second << 32) | sums.first;
}

UCI_INLINE uci_fletcher_t uci_fletcher_unpack(uint64_t value)
{
    return (uci_fletcher_t){.first = value & UINT32_MAX, .second = value >> 32};
}

UCI_INLINE uci_fletcher_t uci_fletcher_message(uci_fletcher_block_func_t block, uint8_t *dst, const uint8_t *src,
                                               size_t length)
{
    uci_fletcher_t sums = {0, 0};
    size_t piece;

    if (length > UCI_FLETCHER_SCALAR_MAX) {
        for (; length >= UCI_FLETCHER_GRAIN; length -= piece) {
            piece = uci_min(length - length % UCI_FLETCHER_GRAIN, (size_t)UCI_FLETCHER_BLOCK);
            sums  = uci_fletcher_join(sums, block(dst, src, piece), piece);
            src += piece;
            dst = uci_digest_advance(dst, piece);
        }
    }
    if (length > 0) {
        sums = uci_fletcher_join(sums, uci_fletcher_words(dst, src, length), length);
    }
    return sums;
}

static uint64_t uci_fletcher_combine(uint64_t left, uint64_t right, size_t right_length)
{
    return uci_fletcher_pack(uci_fletcher_join(uci_fletcher_unpack(left), uci_fletcher_unpack(right), right_length));
}

static void uci_fletcher_init(uci_digest_stream_t *stream)
{
    stream->length   = 0;
    stream->waiting  = 0;
    stream->lanes[0] = 0;
}

UCI_INLINE void uci_fletcher_keep(uci_digest_stream_t *stream, uint8_t *dst, const uint8_t *src, size_t length)
{
    if (length > 0) {
        uci_digest_store(dst, uci_digest_own(stream->buffer + stream->waiting, src, length), length);
        stream->waiting += length;
    }
}

/* lanes[0] is the value of all whole words; up to 3 bytes wait for their word to become whole */
UCI_INLINE void uci_fletcher_update(uci_fletcher_block_func_t block, uci_digest_stream_t *stream, uint8_t *dst,
                                    const uint8_t *src, size_t length)
{
    size_t head = uci_min((size_t)(4 - stream->waiting) % 4, length);
    size_t body = (length - head) & ~(size_t)3;
    uci_fletcher_t sums;

    if (length == 0) {
        return; /* src may be NULL */
    }

    stream->length += length;
    uci_fletcher_keep(stream, dst, src, head);
    if (stream->waiting == 4) {
        sums             = uci_fletcher_words(NULL, stream->buffer, 4);
        stream->lanes[0] = uci_fletcher_combine(stream->lanes[0], uci_fletcher_pack(sums), 4);
        stream->waiting  = 0;
    }
    if (body > 0) {
        sums             = uci_fletcher_message(block, uci_digest_advance(dst, head), src + head, body);
        stream->lanes[0] = uci_fletcher_combine(stream->lanes[0], uci_fletcher_pack(sums), body);
    }
    uci_fletcher_keep(stream, uci_digest_advance(dst, head + body), src + head + body, length - head - body);
}

static uint64_t uci_fletcher_final(const uci_digest_stream_t *stream)
{
    uci_fletcher_t rest = uci_fletcher_words(NULL, stream->buffer, stream->waiting);

    return uci_fletcher_combine(stream->lanes[0], uci_fletcher_pack(rest), stream->waiting);
}

/* The functions of the row, on top of uci_fletcher_block_<isa> */
#define UCI_FLETCHER_DEFINE(_isa, _id) \
    static uint64_t _isa(uci_fletcher_digest)(const void *data, size_t length) \
    { \
        return uci_fletcher_pack(uci_fletcher_message(_isa(uci_fletcher_block), NULL, data, length)); \
    } \
\
    static uint64_t _isa(uci_fletcher_copy)(void *dst, const void *src, size_t length) \
    { \
        if (length >= UCI_DIGEST_FAR_MIN) { \
            return uci_digest_copy_far(&uci_digest_fletcher_rows[_id], dst, src, length); \
        } \
        return uci_fletcher_pack(uci_fletcher_message(_isa(uci_fletcher_block), dst, src, length)); \
    } \
\
    static void _isa(uci_fletcher_stream_update)(uci_digest_stream_t * stream, void *dst, const void *src, \
                                                 size_t length) \
    { \
        uci_fletcher_update(_isa(uci_fletcher_block), stream, dst, src, length); \
    }

#define UCI_FLETCHER_ROW(_isa, _kernel) \
    { \
        .name = "fletcher", .title = "Fletcher-64, 32-bit words modulo 2^32-1, " _kernel, .id = UCI_DIGEST_FLETCHER, \
        .width = 64, .digest = _isa(uci_fletcher_digest), .copy = _isa(uci_fletcher_copy), \
        .guarantee = UCI_FLETCHER_GUARANTEE, .init = uci_fletcher_init, .update = _isa(uci_fletcher_stream_update), \
        .final = uci_fletcher_final, .combine = uci_fletcher_combine, .combine_grain = 4, \
    }

UCI_FLETCHER_DEFINE(UCI_ISA_SCALAR, UCI_DIGEST_ISA_SCALAR)

#define UCI_KERNEL_FILE "digest_fletcher.inl"
#include "digest_isas.inl"

const uci_digest_ops_t uci_digest_fletcher_rows[UCI_DIGEST_ISA_LAST] = UCI_DIGEST_ROWS(UCI_FLETCHER_ROW);
