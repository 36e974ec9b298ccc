/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fletcher-64 of a block, vectors of UCI_VEC_BYTES: same contract as uci_fletcher_block_scalar(). Word j of every
 * vector has sums of its own, a and b, as if it were alone in the message; even words live in the low halves,
 * odd words in the high halves.
 */
#include "digest_vector.h"

#define UCI_FLETCHER_STRIDE (UCI_VEC_BYTES / 4) /* 32-bit words a vector */

/* With S words a vector, word j of vector t out of T has weight (T-t)*S - j in the second sum, so that
 * second = S * sum(b) - sum(j * a). Nothing overflows: a < 2^(32+12), b < 2^(32+23) for at most 2^12 vectors. */
UCI_INLINE uci_fletcher_t UCI_VEC(uci_fletcher_reduce)(const uint64_t *a_even, const uint64_t *a_odd,
                                                       const uint64_t *b_even, const uint64_t *b_odd)
{
    uint64_t a = 0, b = 0, moved = 0;
    unsigned i;

    for (i = 0; i < UCI_VEC_WORDS; ++i) {
        a += a_even[i] + a_odd[i];
        b += b_even[i] + b_odd[i];
        moved += 2 * i * a_even[i] + (2 * i + 1) * a_odd[i];
    }
    return (uci_fletcher_t){
            .first  = a % UCI_FLETCHER_MODULUS,
            .second = (UCI_FLETCHER_STRIDE * (b % UCI_FLETCHER_MODULUS) + UCI_FLETCHER_MODULUS -
                       moved % UCI_FLETCHER_MODULUS) %
                      UCI_FLETCHER_MODULUS,
    };
}

UCI_INLINE uci_fletcher_t UCI_VEC(uci_fletcher_block_body)(uint8_t *dst, const uint8_t *src, size_t length)
{
    const UCI_VEC(uci_vec) low = UCI_VEC(uci_vec_set)(UINT32_MAX);
    UCI_VEC(uci_vec) a_even = {0}, a_odd = {0}, b_even = {0}, b_odd = {0}, data;
    size_t i;

    for (i = 0; i < length; i += UCI_VEC_BYTES) {
        data = UCI_VEC(uci_vec_move)(uci_digest_advance(dst, i), src + i);
        a_even += data & low;
        a_odd += data >> 32;
        b_even += a_even;
        b_odd += a_odd;
    }
    return UCI_VEC(uci_fletcher_reduce)((uint64_t *)&a_even, (uint64_t *)&a_odd, (uint64_t *)&b_even,
                                        (uint64_t *)&b_odd);
}

static uci_fletcher_t UCI_VEC(uci_fletcher_block)(uint8_t *dst, const uint8_t *src, size_t length)
{
    return (dst == NULL) ? UCI_VEC(uci_fletcher_block_body)(NULL, src, length)
                         : UCI_VEC(uci_fletcher_block_body)(dst, src, length);
}

UCI_FLETCHER_DEFINE(UCI_VEC, UCI_VEC_ISA)

#undef UCI_FLETCHER_STRIDE
