/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the digests share among themselves; private to core/digest*.c.
 *
 * A digest has a file digest_<name>.c with its reference in plain C and, where vectors pay, a kernel
 * digest_<name>.inl. The kernel is included once per instruction set, inside a target pragma (digest_isas.inl), with
 * UCI_VEC_BYTES (16, 32 or 64), UCI_VEC_ISA (its row) and UCI_VEC(_name), the name with its suffix, defined.
 */
#ifndef UCI_DIGEST_KERNELS_H_
#define UCI_DIGEST_KERNELS_H_

#include <string.h>
#include "digest_far.h"
#include "digest_ops.h"
#include "digest_simd.h"
#include "digest_small.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "digest values are defined on little-endian words; add byte swaps before building here"
#endif

/** Functions from UCI_KERNEL_BEGIN to UCI_KERNEL_END are compiled for the instruction set named, which is what
 *  uci_digest_isa_best() asks the CPU for. */
/* clang-format off: a pragma's string can't be split */
#ifdef __clang__
#define UCI_KERNEL_BEGIN_AVX2 _Pragma("clang attribute push(__attribute__((target(\"avx2\"))), apply_to = function)")
#define UCI_KERNEL_BEGIN_AVX512 \
    _Pragma("clang attribute push(__attribute__((target(\"avx512f,avx512dq,avx512bw,avx512vl\"))), apply_to = function)")
#define UCI_KERNEL_END _Pragma("clang attribute pop")
#else
#define UCI_KERNEL_BEGIN_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"avx2\")")
#define UCI_KERNEL_BEGIN_AVX512 \
    _Pragma("GCC push_options") _Pragma("GCC target(\"avx512f,avx512dq,avx512bw,avx512vl\")")
#define UCI_KERNEL_END _Pragma("GCC pop_options")
#endif
/* clang-format on */

/** Rows by instruction set; entries beyond what this build has kernels for are empty. */
extern const uci_digest_ops_t uci_digest_xxh3_rows[UCI_DIGEST_ISA_LAST];
extern const uci_digest_ops_t uci_digest_xxh128_rows[UCI_DIGEST_ISA_LAST];
extern const uci_digest_ops_t uci_digest_fnv1a_rows[UCI_DIGEST_ISA_LAST];
extern const uci_digest_ops_t uci_digest_fletcher_rows[UCI_DIGEST_ISA_LAST];

/** Rows for @a isa; CRC kernels need instructions of their own, which are asked for here. */
const uci_digest_ops_t *uci_digest_crc32c_row(uci_digest_isa_t isa);
const uci_digest_ops_t *uci_digest_crc64_row(uci_digest_isa_t isa);

#define UCI_ISA_SCALAR(_name) _name##_scalar
#define UCI_ISA_SSE2(_name)   _name##_sse2
#define UCI_ISA_AVX2(_name)   _name##_avx2
#define UCI_ISA_AVX512(_name) _name##_avx512
#define UCI_ISA_NEON(_name)   _name##_neon

/** Rows by instruction set: @a _row is a macro of the suffix above, and of the kernel's name for people. */
#if UCI_DIGEST_HAVE_X86
#define UCI_DIGEST_ROWS(_row) \
    { \
        [UCI_DIGEST_ISA_SCALAR] = _row(UCI_ISA_SCALAR, "scalar"), [UCI_DIGEST_ISA_SSE2] = _row(UCI_ISA_SSE2, "sse2"), \
        [UCI_DIGEST_ISA_AVX2] = _row(UCI_ISA_AVX2, "avx2"), [UCI_DIGEST_ISA_AVX512] = _row(UCI_ISA_AVX512, "avx512"), \
    }
#elif UCI_DIGEST_HAVE_NEON
#define UCI_DIGEST_ROWS(_row) \
    { \
        [UCI_DIGEST_ISA_SCALAR] = _row(UCI_ISA_SCALAR, "scalar"), [UCI_DIGEST_ISA_NEON] = _row(UCI_ISA_NEON, "neon"), \
    }
#else
#define UCI_DIGEST_ROWS(_row) \
    { \
        [UCI_DIGEST_ISA_SCALAR] = _row(UCI_ISA_SCALAR, "scalar"), \
    }
#endif

/** The word at @a src, loaded once; stored at @a dst unless that is NULL, and so are the ones below. */
UCI_INLINE uint64_t uci_digest_move64(uint8_t *dst, const uint8_t *src)
{
    uint64_t word = uci_digest_load64(src);

    if (dst != NULL) {
        uci_digest_loaded(word);
        memcpy(dst, &word, sizeof(word));
    }
    return word;
}

UCI_INLINE uint32_t uci_digest_move32(uint8_t *dst, const uint8_t *src)
{
    uint32_t word = uci_digest_load32(src);

    if (dst != NULL) {
        uci_digest_loaded(word);
        memcpy(dst, &word, sizeof(word));
    }
    return word;
}

/** The @a length (1..7) bytes at @a src as a word, zero-padded; touches nothing beyond them. Where loads overlap, both are in the word,
 *  and it is the word that is stored. */
UCI_INLINE uint64_t uci_digest_move_tail(uint8_t *dst, const uint8_t *src, size_t length)
{
    size_t last = length - 1, middle = length / 2;
    uint64_t word;
    uint32_t end;

    if (length >= 4) {
        word = uci_digest_load32(src) | ((uint64_t)uci_digest_load32(src + length - 4) << (8 * (length - 4)));
        if (dst != NULL) {
            uci_digest_loaded(word);
            end = (uint32_t)(word >> (8 * (length - 4)));
            memcpy(dst, &word, sizeof(end));
            memcpy(dst + length - 4, &end, sizeof(end));
        }
        return word;
    }

    word = src[0] | ((uint64_t)src[middle] << (8 * middle)) | ((uint64_t)src[last] << (8 * last));
    if (dst != NULL) {
        uci_digest_loaded(word);
        dst[0]      = word;
        dst[middle] = word >> (8 * middle);
        dst[last]   = word >> (8 * last);
    }
    return word;
}

/** Copy to memory of our own, which is what is used from here on: the compiler must not read the source instead. @return @a own */
UCI_INLINE uint8_t *uci_digest_own(uint8_t *own, const void *src, size_t length)
{
    memcpy(own, src, length);
    __asm__ volatile("" : "+r"(own) : : "memory");
    return own;
}

/** Copy where source, destination or both may be NULL if length is 0, and dst NULL means "do not copy". */
UCI_INLINE void uci_digest_store(void *dst, const void *src, size_t length)
{
    if ((dst != NULL) && (length > 0)) {
        memcpy(dst, src, length);
    }
}

/** There is a copy: nobody has to ask again. */
UCI_INLINE void uci_digest_is_copy(const void *dst)
{
    if (dst == NULL) {
        __builtin_unreachable();
    }
}

/** @return @a dst advanced, or NULL if there is no copy. */
UCI_INLINE uint8_t *uci_digest_advance(uint8_t *dst, size_t length)
{
    return (dst != NULL) ? dst + length : NULL;
}

#endif
