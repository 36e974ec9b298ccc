/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * FNV-1a over rows of 16 words, vectors of UCI_VEC_BYTES: same contract as uci_fnv1a_eat_scalar().
 */
#include "digest_vector.h"

#define UCI_FNV1A_VECS (UCI_FNV1A_ROW / UCI_VEC_BYTES)

UCI_INLINE UCI_VEC(uci_vec) UCI_VEC(uci_fnv1a_step)(UCI_VEC(uci_vec) h, UCI_VEC(uci_vec) data)
{
    h ^= data;
#if UCI_VEC_BYTES == 64
    /* 3 cycles on Zen 4. Intel takes 15, and would do better with what follows */
    return (UCI_VEC(uci_vec))_mm512_mullo_epi64((__m512i)h, _mm512_set1_epi64(UCI_FNV1A_PRIME));
#else
    /* AVX2 and NEON have no 64-bit product: h * (2^40 + 0x1b3) */
    const UCI_VEC(uci_vec) low = UCI_VEC(uci_vec_set)(UCI_FNV1A_PRIME & UINT32_MAX);

    return UCI_VEC(uci_vec_mul32)(h, low) + ((UCI_VEC(uci_vec_mul32)(h >> 32, low) + (h << 8)) << 32);
#endif
}

UCI_INLINE void UCI_VEC(uci_fnv1a_run)(UCI_VEC(uci_vec) * h, uint8_t *dst, const uint8_t *src, size_t rows)
{
    UCI_VEC(uci_vec) data;
    unsigned i;

    for (; rows > 0; --rows) {
#pragma GCC unroll 8
        for (i = 0; i < UCI_FNV1A_VECS; ++i) {
            data = UCI_VEC(uci_vec_move)(uci_digest_advance(dst, i * UCI_VEC_BYTES), src + i * UCI_VEC_BYTES);
            h[i] = UCI_VEC(uci_fnv1a_step)(h[i], data);
        }
        src += UCI_FNV1A_ROW;
        dst = uci_digest_advance(dst, UCI_FNV1A_ROW);
    }
}

static void UCI_VEC(uci_fnv1a_eat)(uint64_t *lanes, uint8_t *dst, const uint8_t *src, size_t rows)
{
    UCI_VEC(uci_vec) h[UCI_FNV1A_VECS];

    memcpy(h, lanes, sizeof(h));
    if (dst == NULL) {
        UCI_VEC(uci_fnv1a_run)(h, NULL, src, rows);
    } else {
        UCI_VEC(uci_fnv1a_run)(h, dst, src, rows);
    }
    memcpy(lanes, h, sizeof(h));
}

/* The first `rows` rows of a message: lanes start in registers */
UCI_INLINE void UCI_VEC(uci_fnv1a_start)(uint64_t *lanes, uint8_t *dst, const uint8_t *src, size_t rows)
{
    UCI_VEC(uci_vec) h[UCI_FNV1A_VECS];
    unsigned i;

    for (i = 0; i < UCI_FNV1A_VECS; ++i) {
        h[i] = UCI_VEC(uci_vec_set)(UCI_FNV1A_BASIS);
    }
    UCI_VEC(uci_fnv1a_run)(h, dst, src, rows);
    memcpy(lanes, h, sizeof(h));
}

UCI_FNV1A_DEFINE(UCI_VEC, UCI_VEC_ISA)

#undef UCI_FNV1A_VECS
