/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * XXH3 over stripes, vectors of UCI_VEC_BYTES: the loop of digest_xxh3.c's reference, a stripe at a time.
 */
#include "digest_vector.h"

#define UCI_XXH3_VECS (UCI_XXH3_STRIPE / UCI_VEC_BYTES)

UCI_INLINE void UCI_VEC(uci_xxh3_stripe)(UCI_VEC(uci_vec) * acc, uint8_t *dst, const uint8_t *src,
                                         const uint8_t *secret)
{
    UCI_VEC(uci_vec) data, mixed;
    unsigned i;

#pragma GCC unroll 4
    for (i = 0; i < UCI_XXH3_VECS; ++i) {
        data  = UCI_VEC(uci_vec_move)(uci_digest_advance(dst, i * UCI_VEC_BYTES), src + i * UCI_VEC_BYTES);
        mixed = data ^ UCI_VEC(uci_vec_load)(secret + i * UCI_VEC_BYTES);
        acc[i] += UCI_VEC(uci_vec_swap)(data) + UCI_VEC(uci_vec_mul32)(mixed, mixed >> 32);
    }
}

UCI_INLINE void UCI_VEC(uci_xxh3_scramble)(UCI_VEC(uci_vec) * acc)
{
    const UCI_VEC(uci_vec) prime = UCI_VEC(uci_vec_set)(UCI_XXH_PRIME32_1);
    UCI_VEC(uci_vec) v;
    unsigned i;

#pragma GCC unroll 4
    for (i = 0; i < UCI_XXH3_VECS; ++i) {
        v = acc[i] ^ (acc[i] >> 47) ^
            UCI_VEC(uci_vec_load)(UCI_XXH3_SECRET(UCI_XXH3_SCRAMBLE_OFFSET + i * UCI_VEC_BYTES));
        acc[i] = UCI_VEC(uci_vec_mul32)(v, prime) + (UCI_VEC(uci_vec_mul32)(v >> 32, prime) << 32);
    }
}

/* `count` stripes of one block, from stripe `index` on */
UCI_INLINE void UCI_VEC(uci_xxh3_run)(UCI_VEC(uci_vec) * acc, size_t index, uint8_t *dst, const uint8_t *src,
                                      size_t count)
{
    size_t i;

    UCI_VEC_UNROLL
    for (i = 0; i < count; ++i) {
        UCI_VEC(uci_xxh3_stripe)
        (acc, uci_digest_advance(dst, i * UCI_XXH3_STRIPE), src + i * UCI_XXH3_STRIPE,
         UCI_XXH3_SECRET(8 * (index + i)));
    }
}

/* Same contract as uci_xxh3_eat_scalar() */
UCI_INLINE void UCI_VEC(uci_xxh3_eat_body)(uint64_t *lanes, size_t index, uint8_t *dst, const uint8_t *src,
                                           size_t count)
{
    UCI_VEC(uci_vec) acc[UCI_XXH3_VECS];
    size_t run;

    memcpy(acc, lanes, sizeof(acc));
    for (; count > 0; count -= run) {
        run = uci_min(UCI_XXH3_BLOCK_STRIPES - index, count);
        UCI_VEC(uci_xxh3_run)(acc, index, dst, src, run);
        src += run * UCI_XXH3_STRIPE;
        dst = uci_digest_advance(dst, run * UCI_XXH3_STRIPE);
        index += run;
        if (index == UCI_XXH3_BLOCK_STRIPES) {
            UCI_VEC(uci_xxh3_scramble)(acc);
            index = 0;
        }
    }
    memcpy(lanes, acc, sizeof(acc));
}

static void UCI_VEC(uci_xxh3_eat)(uint64_t *lanes, size_t index, uint8_t *dst, const uint8_t *src, size_t count)
{
    if (dst == NULL) {
        UCI_VEC(uci_xxh3_eat_body)(lanes, index, NULL, src, count);
    } else {
        UCI_VEC(uci_xxh3_eat_body)(lanes, index, dst, src, count);
    }
}

/* A whole message of more than UCI_XXH3_MID_MAX bytes: lanes stay in registers from start to end */
UCI_INLINE uint64_t UCI_VEC(uci_xxh3_long)(uint8_t *dst, const uint8_t *src, size_t length)
{
    const uint8_t *src_last = src + length - UCI_XXH3_STRIPE; /* overlaps the stripe before it */
    uint8_t *dst_last       = uci_digest_advance(dst, length - UCI_XXH3_STRIPE);
    size_t blocks           = (length - 1) / UCI_XXH3_BLOCK;
    UCI_VEC(uci_vec) acc[UCI_XXH3_VECS];
    uint64_t lanes[UCI_XXH3_LANES];

    memcpy(acc, uci_xxh3_lanes_init, sizeof(acc));
    for (; blocks > 0; --blocks) {
        UCI_VEC(uci_xxh3_run)(acc, 0, dst, src, UCI_XXH3_BLOCK_STRIPES);
        UCI_VEC(uci_xxh3_scramble)(acc);
        src += UCI_XXH3_BLOCK;
        dst = uci_digest_advance(dst, UCI_XXH3_BLOCK);
    }
    UCI_VEC(uci_xxh3_run)(acc, 0, dst, src, (length - 1) % UCI_XXH3_BLOCK / UCI_XXH3_STRIPE);
    UCI_VEC(uci_xxh3_stripe)(acc, dst_last, src_last, UCI_XXH3_SECRET(UCI_XXH3_LAST_OFFSET));
    memcpy(lanes, acc, sizeof(lanes));
    return uci_xxh3_merge(lanes, UCI_XXH3_MERGE_OFFSET, length * UCI_XXH_PRIME64_1);
}

UCI_XXH3_DEFINE(UCI_VEC, UCI_VEC_ISA)

#undef UCI_XXH3_VECS
