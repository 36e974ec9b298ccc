/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The few vector operations the digest kernels need, over vectors of UCI_VEC_BYTES bytes. Included once per
 * instruction set, inside its target pragma, hence no include guard. UCI_VEC(_name) appends the instruction
 * set's suffix, so that the copies can live in one file.
 */
#include "digest_kernels.h"

#undef UCI_VEC_WORDS
#define UCI_VEC_WORDS (UCI_VEC_BYTES / 8)

/* Before a loop over 64-byte stripes: left alone, GCC unrolls such loops as far as it can, and spills */
#undef UCI_VEC_UNROLL
#if UCI_VEC_BYTES == 64
#define UCI_VEC_UNROLL _Pragma("GCC unroll 2")
#else
#define UCI_VEC_UNROLL _Pragma("GCC unroll 1")
#endif

/* As uci_digest_loaded() */
#undef UCI_VEC_LOADED
#if UCI_VEC_BYTES == 64
#define UCI_VEC_LOADED(_v) __asm__("" : "+v"(_v))
#elif UCI_DIGEST_HAVE_X86
#define UCI_VEC_LOADED(_v) __asm__("" : "+x"(_v))
#else
#define UCI_VEC_LOADED(_v) __asm__("" : "+w"(_v))
#endif

/** Words of 64 bits */
typedef uint64_t UCI_VEC(uci_vec) __attribute__((vector_size(UCI_VEC_BYTES)));

UCI_INLINE UCI_VEC(uci_vec) UCI_VEC(uci_vec_load)(const void *p)
{
    UCI_VEC(uci_vec) v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/** Load once, though it has more than one use; store unless @a dst is NULL. */
UCI_INLINE UCI_VEC(uci_vec) UCI_VEC(uci_vec_move)(uint8_t *dst, const uint8_t *src)
{
    UCI_VEC(uci_vec) v = UCI_VEC(uci_vec_load)(src);

    if (dst != NULL) {
        UCI_VEC_LOADED(v);
        memcpy(dst, &v, sizeof(v));
    }
    return v;
}

/** Products of the low 32 bits of each word */
UCI_INLINE UCI_VEC(uci_vec) UCI_VEC(uci_vec_mul32)(UCI_VEC(uci_vec) a, UCI_VEC(uci_vec) b)
{
#if UCI_VEC_BYTES == 64
    return (UCI_VEC(uci_vec))_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif UCI_VEC_BYTES == 32
    return (UCI_VEC(uci_vec))_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif UCI_DIGEST_HAVE_X86
    return (UCI_VEC(uci_vec))_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (UCI_VEC(uci_vec))vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#endif
}

/** Words 0 and 1 exchanged, 2 and 3, and so on */
UCI_INLINE UCI_VEC(uci_vec) UCI_VEC(uci_vec_swap)(UCI_VEC(uci_vec) v)
{
#if UCI_VEC_BYTES == 64
    return (UCI_VEC(uci_vec))_mm512_shuffle_epi32((__m512i)v, _MM_PERM_BADC);
#elif UCI_VEC_BYTES == 32
    return (UCI_VEC(uci_vec))_mm256_shuffle_epi32((__m256i)v, _MM_SHUFFLE(1, 0, 3, 2));
#elif UCI_DIGEST_HAVE_X86
    return (UCI_VEC(uci_vec))_mm_shuffle_epi32((__m128i)v, _MM_SHUFFLE(1, 0, 3, 2));
#else
    return (UCI_VEC(uci_vec))vextq_u64((uint64x2_t)v, (uint64x2_t)v, 1);
#endif
}

/** A value in all words */
UCI_INLINE UCI_VEC(uci_vec) UCI_VEC(uci_vec_set)(uint64_t value)
{
    return value - (UCI_VEC(uci_vec)){0};
}
