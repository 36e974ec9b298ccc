/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * XXH3-64 and XXH3-128 (Y. Collet, xxHash 0.8; doc/xxhash_spec.md), seed 0, default secret. Up to 128 bytes see
 * digest_small.h; the 128-bit value up to 240, xxhash.h inlined; beyond, the loop over stripes
 * is written here, because only then one load serves both the digest and the copy.
 *
 * XXH3-64 and the low half of XXH3-128 are the same number above 240 bytes, by design of the algorithm.
 */
#include "digest_kernels.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UCI_XXH3_STRIPE          64 /* bytes eaten at once: one per lane of 8 */
#define UCI_XXH3_LANES           8
#define UCI_XXH3_BLOCK_STRIPES   16u /* stripes between two scrambles */
#define UCI_XXH3_BLOCK           (UCI_XXH3_BLOCK_STRIPES * UCI_XXH3_STRIPE)
#define UCI_XXH3_MID_MAX         240 /* up to here there are no stripes */
#define UCI_XXH3_WAITING_MAX     256 /* bytes a stream keeps; > UCI_XXH3_MID_MAX */
#define UCI_XXH3_SCRAMBLE_OFFSET (UCI_XXH3_SECRET_SIZE - UCI_XXH3_STRIPE)
#define UCI_XXH3_LAST_OFFSET     (UCI_XXH3_SCRAMBLE_OFFSET - 7)
#define UCI_XXH3_MERGE_OFFSET    11

/* The secret from byte _offset on */
#define UCI_XXH3_SECRET(_offset) ((const uint8_t *)uci_xxh3_secret + (_offset))

#define UCI_XXH3_GUARANTEE \
    "any damage is missed with odds of about 2^-64, as xxHash's collision tests found; for no kind of damage is " \
    "there a proof"

/* Lanes eat stripes `count` times 64 bytes at `src`, copied to `dst` unless NULL; `index` is the place of the
 * first one in its block. More bytes must follow: the last stripe of a message is not eaten here. */
typedef void (*uci_xxh3_eat_func_t)(uint64_t *lanes, size_t index, uint8_t *dst, const uint8_t *src, size_t count);

static const uint64_t uci_xxh3_lanes_init[UCI_XXH3_LANES] = {
        UCI_XXH_PRIME32_3, UCI_XXH_PRIME64_1, UCI_XXH_PRIME64_2, UCI_XXH_PRIME64_3,
        UCI_XXH_PRIME64_4, UCI_XXH_PRIME32_2, UCI_XXH_PRIME64_5, UCI_XXH_PRIME32_1,
};

/* Stored at `dst` unless that is NULL */
UCI_INLINE void uci_xxh3_stripe(uint64_t *lanes, uint8_t *dst, const uint8_t *src, const uint8_t *secret)
{
    uint64_t data, mixed;
    unsigned i;

    for (i = 0; i < UCI_XXH3_LANES; ++i) {
        data  = uci_digest_move64(uci_digest_advance(dst, 8 * i), src + 8 * i);
        mixed = data ^ uci_digest_load64(secret + 8 * i);
        lanes[i ^ 1] += data;
        lanes[i] += (uint64_t)(uint32_t)mixed * (mixed >> 32);
    }
}

UCI_INLINE void uci_xxh3_scramble(uint64_t *lanes)
{
    unsigned i;

    for (i = 0; i < UCI_XXH3_LANES; ++i) {
        lanes[i] ^= lanes[i] >> 47;
        lanes[i] ^= uci_digest_load64(UCI_XXH3_SECRET(UCI_XXH3_SCRAMBLE_OFFSET + 8 * i));
        lanes[i] *= UCI_XXH_PRIME32_1;
    }
}

static void uci_xxh3_eat_scalar(uint64_t *lanes, size_t index, uint8_t *dst, const uint8_t *src, size_t count)
{
    for (; count > 0; --count) {
        uci_xxh3_stripe(lanes, dst, src, UCI_XXH3_SECRET(8 * index));
        src += UCI_XXH3_STRIPE;
        dst = uci_digest_advance(dst, UCI_XXH3_STRIPE);
        if (++index == UCI_XXH3_BLOCK_STRIPES) {
            uci_xxh3_scramble(lanes);
            index = 0;
        }
    }
}

/* The lanes, mixed with secrets from byte `offset` on, folded into one word */
UCI_INLINE uint64_t uci_xxh3_merge(const uint64_t *lanes, unsigned offset, uint64_t start)
{
    uint64_t sum = start;
    unsigned i;

    for (i = 0; i < UCI_XXH3_LANES; i += 2) {
        sum += uci_xxh3_fold(lanes[i] ^ uci_digest_load64(UCI_XXH3_SECRET(offset + 8 * i)),
                             lanes[i + 1] ^ uci_digest_load64(UCI_XXH3_SECRET(offset + 8 * i + 8)));
    }
    return uci_xxh3_avalanche(sum);
}

/* Eat the message's last 64 bytes, copied to `dst` unless NULL, and fold; `last` may overlap what was eaten before */
UCI_INLINE uint64_t uci_xxh3_finish(uint64_t *lanes, uint8_t *dst, const uint8_t *last, size_t length)
{
    uci_xxh3_stripe(lanes, dst, last, UCI_XXH3_SECRET(UCI_XXH3_LAST_OFFSET));
    return uci_xxh3_merge(lanes, UCI_XXH3_MERGE_OFFSET, length * UCI_XXH_PRIME64_1);
}

/* Digest, and copy unless dst is NULL, of more than UCI_XXH3_MID_MAX bytes; the lanes are left as they are at the end */
static uint64_t uci_xxh3_eat_message(uint64_t *lanes, uint8_t *dst, const uint8_t *src, size_t length)
{
    size_t last = length - UCI_XXH3_STRIPE;

    memcpy(lanes, uci_xxh3_lanes_init, sizeof(uci_xxh3_lanes_init));
    uci_xxh3_eat_scalar(lanes, 0, dst, src, (length - 1) / UCI_XXH3_STRIPE);
    return uci_xxh3_finish(lanes, uci_digest_advance(dst, last), src + last, length);
}

static uint64_t uci_xxh3_long_scalar(uint8_t *dst, const uint8_t *src, size_t length)
{
    uint64_t lanes[UCI_XXH3_LANES];

    return uci_xxh3_eat_message(lanes, dst, src, length);
}

static void uci_xxh3_init(uci_digest_stream_t *stream)
{
    stream->length  = 0;
    stream->waiting = 0;
    memcpy(stream->lanes, uci_xxh3_lanes_init, sizeof(uci_xxh3_lanes_init));
}

/* The buffer holds the last stripe eaten, then the bytes that wait: final() may need 64 bytes back */
UCI_INLINE uint8_t *uci_xxh3_waiting(const uci_digest_stream_t *stream)
{
    return (uint8_t *)stream->buffer + UCI_XXH3_STRIPE;
}

static void uci_xxh3_keep(uci_digest_stream_t *stream, uint8_t *dst, const uint8_t *src, size_t length)
{
    uint8_t *waiting = uci_xxh3_waiting(stream) + stream->waiting;

    uci_digest_store(dst, uci_digest_own(waiting, src, length), length);
    stream->waiting += length;
    stream->length += length;
}

/* At least one stripe. The last one is eaten from where it is kept: it is not to be loaded twice either */
UCI_INLINE void uci_xxh3_eat_stream(uci_xxh3_eat_func_t eat, uci_digest_stream_t *stream, uint64_t eaten, uint8_t *dst,
                                    const uint8_t *src, size_t count)
{
    size_t index = eaten / UCI_XXH3_STRIPE, last = count - 1;

    eat(stream->lanes, index % UCI_XXH3_BLOCK_STRIPES, dst, src, last);
    eat(stream->lanes, (index + last) % UCI_XXH3_BLOCK_STRIPES, uci_digest_advance(dst, last * UCI_XXH3_STRIPE),
        uci_digest_own(stream->buffer, src + last * UCI_XXH3_STRIPE, UCI_XXH3_STRIPE), 1);
}

UCI_INLINE void uci_xxh3_update(uci_xxh3_eat_func_t eat, uci_digest_stream_t *stream, uint8_t *dst, const uint8_t *src,
                                size_t length)
{
    size_t head = UCI_XXH3_WAITING_MAX - stream->waiting;
    size_t count;

    if (length > head) {
        if (stream->waiting > 0) {
            uci_xxh3_keep(stream, dst, src, head);
            uci_xxh3_eat_stream(eat, stream, stream->length - UCI_XXH3_WAITING_MAX, NULL, uci_xxh3_waiting(stream),
                                UCI_XXH3_WAITING_MAX / UCI_XXH3_STRIPE);
            stream->waiting = 0;
            src += head;
            dst = uci_digest_advance(dst, head);
            length -= head;
        }

        count = (length - 1) / UCI_XXH3_STRIPE; /* at least one byte stays, for final() */
        if (count > 0) {
            uci_xxh3_eat_stream(eat, stream, stream->length, dst, src, count);
            stream->length += count * UCI_XXH3_STRIPE;
            src += count * UCI_XXH3_STRIPE;
            dst = uci_digest_advance(dst, count * UCI_XXH3_STRIPE);
            length -= count * UCI_XXH3_STRIPE;
        }
    }

    if (length > 0) {
        uci_xxh3_keep(stream, dst, src, length);
    }
}

static uint64_t uci_xxh3_final(const uci_digest_stream_t *stream)
{
    const uint8_t *waiting = uci_xxh3_waiting(stream);
    uint64_t lanes[UCI_XXH3_LANES];
    size_t index;

    if (stream->length <= UCI_XXH3_MID_MAX) {
        return XXH3_64bits(waiting, stream->length);
    }

    memcpy(lanes, stream->lanes, sizeof(lanes));
    index = ((stream->length - stream->waiting) / UCI_XXH3_STRIPE) % UCI_XXH3_BLOCK_STRIPES;
    uci_xxh3_eat_scalar(lanes, index, NULL, waiting, (stream->waiting - 1) / UCI_XXH3_STRIPE);
    return uci_xxh3_finish(lanes, NULL, waiting + stream->waiting - UCI_XXH3_STRIPE, stream->length);
}

static uint64_t uci_xxh128_final(const uci_digest_stream_t *stream)
{
    return (stream->length <= UCI_XXH3_MID_MAX) ? XXH3_128bits(uci_xxh3_waiting(stream), stream->length).low64
                                                : uci_xxh3_final(stream);
}

/* Mix 16 bytes with the secret from byte `secret` on; store them unless `dst` is NULL */
UCI_INLINE uint64_t uci_xxh3_mix16_at(uint8_t *dst, const uint8_t *src, size_t secret)
{
    uint64_t first  = uci_digest_move64(dst, src);
    uint64_t second = uci_digest_move64(uci_digest_advance(dst, 8), src + 8);

    return uci_xxh3_fold(first ^ uci_digest_load64(UCI_XXH3_SECRET(secret)),
                         second ^ uci_digest_load64(UCI_XXH3_SECRET(secret + 8)));
}

/* 129 to 240 bytes */
UCI_INLINE uint64_t uci_xxh3_mid_body(uint8_t *dst, const uint8_t *src, size_t length)
{
    uint64_t sum = length * UCI_XXH_PRIME64_1;
    size_t i, last = length - 16;

    for (i = 0; i < UCI_DIGEST_SMALL_MAX; i += 16) {
        sum += uci_xxh3_mix16_at(uci_digest_advance(dst, i), src + i, i);
    }
    sum = uci_xxh3_avalanche(sum);
    for (; i <= last; i += 16) {
        sum += uci_xxh3_mix16_at(uci_digest_advance(dst, i), src + i, i - UCI_DIGEST_SMALL_MAX + 3);
    }
    sum += uci_xxh3_mix16_at(uci_digest_advance(dst, last), src + last, 136 - 17);
    return uci_xxh3_avalanche(sum);
}

/* Not worth inlining into every kernel */
static __attribute__((noinline)) uint64_t uci_xxh3_mid_digest(const uint8_t *src, size_t length)
{
    return uci_xxh3_mid_body(NULL, src, length);
}

static __attribute__((noinline)) uint64_t uci_xxh3_mid_copy(uint8_t *dst, const uint8_t *src, size_t length)
{
    uci_digest_is_copy(dst);
    return uci_xxh3_mid_body(dst, src, length);
}

/* Up to 240 bytes. What is copied is digested in memory of our own, which nobody else writes to. */
static __attribute__((noinline)) uint64_t uci_xxh128_mid(void *dst, const void *src, size_t length)
{
    uint8_t own[UCI_XXH3_MID_MAX];

    if ((dst != NULL) && (length > 0)) { /* then they may be NULL */
        src = uci_digest_own(own, src, length);
        memcpy(dst, own, length);
    }
    return XXH3_128bits(src, length).low64;
}

/* The functions of the rows, on top of uci_xxh3_eat_<isa> */
#define UCI_XXH3_DEFINE(_isa, _id) \
    static uint64_t _isa(uci_xxh3_digest)(const void *data, size_t length) \
    { \
        if (length <= UCI_DIGEST_SMALL_MAX) { \
            return uci_digest_xxh3_small(data, length); \
        } \
        return (length <= UCI_XXH3_MID_MAX) ? uci_xxh3_mid_digest(data, length) \
                                            : _isa(uci_xxh3_long)(NULL, data, length); \
    } \
\
    static uint64_t _isa(uci_xxh3_copy)(void *dst, const void *src, size_t length) \
    { \
        if (length <= UCI_DIGEST_SMALL_MAX) { \
            return uci_digest_xxh3_small_copy(dst, src, length); \
        } \
        if (length >= UCI_DIGEST_FAR_MIN) { \
            return uci_digest_copy_far(&uci_digest_xxh3_rows[_id], dst, src, length); \
        } \
        uci_digest_is_copy(dst); \
        return (length <= UCI_XXH3_MID_MAX) ? uci_xxh3_mid_copy(dst, src, length) \
                                            : _isa(uci_xxh3_long)(dst, src, length); \
    } \
\
    static uint64_t _isa(uci_xxh128_digest)(const void *data, size_t length) \
    { \
        return (length <= UCI_XXH3_MID_MAX) ? uci_xxh128_mid(NULL, data, length) \
                                            : _isa(uci_xxh3_long)(NULL, data, length); \
    } \
\
    static uint64_t _isa(uci_xxh128_copy)(void *dst, const void *src, size_t length) \
    { \
        if (length >= UCI_DIGEST_FAR_MIN) { \
            return uci_digest_copy_far(&uci_digest_xxh128_rows[_id], dst, src, length); \
        } \
        return (length <= UCI_XXH3_MID_MAX) ? uci_xxh128_mid(dst, src, length) \
                                            : _isa(uci_xxh3_long)(dst, src, length); \
    } \
\
    static void _isa(uci_xxh3_stream_update)(uci_digest_stream_t * stream, void *dst, const void *src, size_t length) \
    { \
        uci_xxh3_update(_isa(uci_xxh3_eat), stream, dst, src, length); \
    }

#define UCI_XXH3_ROW(_isa, _kernel) \
    { \
        .name = "xxh3", .title = "XXH3-64 (xxHash 0.8), " _kernel, .id = UCI_DIGEST_XXH3, .width = 64, \
        .digest = _isa(uci_xxh3_digest), .copy = _isa(uci_xxh3_copy), .guarantee = UCI_XXH3_GUARANTEE, \
        .init = uci_xxh3_init, .update = _isa(uci_xxh3_stream_update), .final = uci_xxh3_final, \
    }

#define UCI_XXH128_ROW(_isa, _kernel) \
    { \
        .name = "xxh128", .title = "XXH3-128 (xxHash 0.8), low 64 bits, " _kernel, .id = UCI_DIGEST_XXH128, \
        .width = 64, .digest = _isa(uci_xxh128_digest), .copy = _isa(uci_xxh128_copy), \
        .guarantee = UCI_XXH3_GUARANTEE, .init = uci_xxh3_init, .update = _isa(uci_xxh3_stream_update), \
        .final = uci_xxh128_final, \
    }

UCI_XXH3_DEFINE(UCI_ISA_SCALAR, UCI_DIGEST_ISA_SCALAR)

#define UCI_KERNEL_FILE "digest_xxh3.inl"
#include "digest_isas.inl"

const uci_digest_ops_t uci_digest_xxh3_rows[UCI_DIGEST_ISA_LAST] = UCI_DIGEST_ROWS(UCI_XXH3_ROW);

const uci_digest_ops_t uci_digest_xxh128_rows[UCI_DIGEST_ISA_LAST] = UCI_DIGEST_ROWS(UCI_XXH128_ROW);

uci_digest128_t uci_digest_xxh128(const void *data, size_t length)
{
    const uint8_t *src = data;
    uint64_t lanes[UCI_XXH3_LANES];
    uci_digest128_t value;
    XXH128_hash_t hash;

    if (length <= UCI_XXH3_MID_MAX) {
        hash       = XXH3_128bits(data, length);
        value.low  = hash.low64;
        value.high = hash.high64;
        return value;
    }

    /* the scalar loop: nothing hot needs the high half yet */
    value.low  = uci_xxh3_eat_message(lanes, NULL, src, length);
    value.high = uci_xxh3_merge(lanes, UCI_XXH3_SECRET_SIZE - UCI_XXH3_STRIPE - UCI_XXH3_MERGE_OFFSET,
                                ~(length * UCI_XXH_PRIME64_2));
    return value;
}
