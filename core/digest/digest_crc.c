/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-32C (G. Castagnoli et al., "Optimization of Cyclic Redundancy-Check Codes with 24 and 32 Parity Bits", IEEE
 * Trans. Comm. 41, 1993; RFC 3720 appendix B.4) and CRC-64/XZ (ECMA-182 reflected, as in the .xz file format),
 * computed by ISA-L, which chooses its kernel by CPUID; bit by bit where ISA-L is not installed.
 *
 * ISA-L does not copy. Copying by blocks, to L1, and on from there when it is digested, costs the sum of all three; where the CPU has carry-less
 * products of 512 bits, a fold (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction", Intel, 2009) of the message to 256 bytes with the same CRC costs no more than the copy.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <isa-l/crc.h>
#include <isa-l/crc64.h>
#include "digest_kernels.h"
#include "util/log.h"

#define UCI_CRC_BLOCK    4096u      /* goes through memory of our own, which stays in L1 */
#define UCI_CRC_PIECE    (1u << 30) /* ISA-L's CRC-32C takes its length as an int */
#define UCI_CRC_FOLD     256u       /* bytes a message is folded to: 16 blocks of 128 bits */
#define UCI_CRC_FOLD_MIN 512u       /* below, ISA-L's own end of a fold is cheaper than ours */

/* CRC of what came before joined with `length` bytes at `src` */
typedef uint64_t (*uci_crc_func_t)(uint64_t crc, const uint8_t *src, size_t length);

/* Polynomials are reflected: bit width-1 is x^0 */
typedef struct uci_crc {
    uci_crc_func_t func;
    uint64_t poly;
    uint64_t one;     /* x^0, which is the highest bit */
    uint64_t ones;    /* inverted at both ends */
    uint64_t fold[2]; /* x^(8*UCI_CRC_FOLD + 63) and x^(8*UCI_CRC_FOLD - 1) mod poly, at the top of a word */
} uci_crc_t;

/* ISA-L is loaded when a CRC is first computed: the library that holds this code is preloaded into processes that
 * have no use for it, and Debian has it as a shared library only. Without it the CRCs are right, but slow. */
static __typeof__(crc32_iscsi) *uci_isal_crc32_iscsi;
static __typeof__(crc64_ecma_refl) *uci_isal_crc64_ecma_refl;
static pthread_once_t uci_isal_once = PTHREAD_ONCE_INIT;

#if UCI_DIGEST_HAVE_X86
static bool uci_isal_has_avx;

/* ISA-L (2.30) leaves the upper halves of the vector registers in use. Until somebody clears them, each SSE instruction, which
 * is what programs are made of that run on any x86-64, waits for the one before that wrote the same register: loops of
 * the program took 3.5 times as long after a CRC. Not inlined: nothing may live in those registers. */
static __attribute__((noinline)) void uci_isal_clear_registers(void)
{
    if (uci_isal_has_avx) {
        __asm__ volatile("vzeroupper");
    }
}
#else
static void uci_isal_clear_registers(void)
{
}
#endif

/* One bit at a time */
static uint64_t uci_crc_bitwise(uint64_t poly, uint64_t state, const uint8_t *src, size_t length)
{
    unsigned bit;

    for (; length > 0; --length) {
        state ^= *src++;
        for (bit = 0; bit < 8; ++bit) {
            state = (state >> 1) ^ (poly & -(state & 1));
        }
    }
    return state;
}

static unsigned uci_crc32c_bitwise(unsigned char *src, int length, unsigned state)
{
    return (unsigned)uci_crc_bitwise(0x82f63b78u, state, src, (size_t)length);
}

static uint64_t uci_crc64_bitwise(uint64_t crc, const unsigned char *src, uint64_t length)
{
    return ~uci_crc_bitwise(0xc96c5795d7870f42ull, ~crc, src, length);
}

static void uci_isal_load(void)
{
    void *isal  = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
    void *crc32 = (isal != NULL) ? dlsym(isal, "crc32_iscsi") : NULL;
    void *crc64 = (isal != NULL) ? dlsym(isal, "crc64_ecma_refl") : NULL;

    if ((crc32 == NULL) || (crc64 == NULL)) {
        uci_warn("libisal.so.2 is not installed: CRC digests are slow without it (Debian: apt install libisal2)");
        uci_isal_crc32_iscsi     = uci_crc32c_bitwise;
        uci_isal_crc64_ecma_refl = uci_crc64_bitwise;
        return;
    }
    memcpy(&uci_isal_crc32_iscsi, &crc32, sizeof(crc32));
    memcpy(&uci_isal_crc64_ecma_refl, &crc64, sizeof(crc64));
#if UCI_DIGEST_HAVE_X86
    uci_isal_has_avx = __builtin_cpu_supports("avx");
#endif
}

static uint64_t uci_crc32c_isal(uint64_t crc, const uint8_t *src, size_t length)
{
    uint32_t state = ~(uint32_t)crc; /* ISA-L leaves both inversions to its caller */
    size_t piece;

    pthread_once(&uci_isal_once, uci_isal_load);
    for (; length > 0; length -= piece) {
        piece = uci_min(length, (size_t)UCI_CRC_PIECE);
        state = uci_isal_crc32_iscsi((unsigned char *)src, (int)piece, state);
        src += piece;
    }
    uci_isal_clear_registers();
    return (uint32_t)~state;
}

static uint64_t uci_crc64_isal(uint64_t crc, const uint8_t *src, size_t length)
{
    pthread_once(&uci_isal_once, uci_isal_load);
    if (length > 0) {
        crc = uci_isal_crc64_ecma_refl(crc, src, length);
        uci_isal_clear_registers();
    }
    return crc;
}

static const uci_crc_t uci_crc32c = {
        .func = uci_crc32c_isal,
        .poly = 0x82f63b78u,
        .one  = 1ull << 31,
        .ones = UINT32_MAX,
        .fold = {0xe9a5d8be00000000ull, 0x1426a81500000000ull},
};

static const uci_crc_t uci_crc64 = {
        .func = uci_crc64_isal,
        .poly = 0xc96c5795d7870f42ull,
        .one  = 1ull << 63,
        .ones = UINT64_MAX,
        .fold = {0x8260adf2381ad81cull, 0xf31fd9271e228b79ull},
};

/* CRC of what came before joined with `length` bytes at `src`, copied to `dst` unless NULL. Others may write to either of them
 * meanwhile: what is digested is a copy of our own, and it is what is stored. */
UCI_INLINE uint64_t uci_crc_move_isal(const uci_crc_t *kind, uint64_t crc, uint8_t *dst, const uint8_t *src,
                                      size_t length)
{
    uint8_t own[UCI_CRC_BLOCK];
    size_t piece;

    if (dst == NULL) {
        return kind->func(crc, src, length);
    }
    for (; length > 0; length -= piece) {
        piece = uci_min(length, (size_t)UCI_CRC_BLOCK);
        crc   = kind->func(crc, uci_digest_own(own, src, piece), piece);
        memcpy(dst, own, piece);
        src += piece;
        dst += piece;
    }
    return crc;
}

#if UCI_DIGEST_HAVE_X86
#define UCI_CRC_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,vpclmulqdq")))

static bool uci_crc_can_fold(uci_digest_isa_t isa)
{
    return (isa >= UCI_DIGEST_ISA_AVX512) && __builtin_cpu_supports("vpclmulqdq");
}

/* Copy `length` bytes, a multiple of UCI_CRC_FOLD, and leave in `folded` as many bytes as UCI_CRC_FOLD that have,
 * from state 0 on, the CRC the message has from `state` on. Each 128-bit block is moved on by UCI_CRC_FOLD bytes
 * until it meets the last blocks: its first half times fold[0] plus its second half times fold[1], modulo poly. */
UCI_CRC_TARGET UCI_INLINE void uci_crc_fold(const uci_crc_t *kind, uint64_t state, uint8_t *folded, uint8_t *dst,
                                            const uint8_t *src, size_t length)
{
    const __m512i factors = _mm512_broadcast_i32x4(_mm_set_epi64x(kind->fold[1], kind->fold[0]));
    __m512i sum[4]        = {_mm512_zextsi128_si512(_mm_set_epi64x(0, state))};
    __m512i data;
    size_t offset;
    unsigned i;

    for (offset = 0; offset < length; offset += UCI_CRC_FOLD) {
#pragma GCC unroll 4
        for (i = 0; i < 4; ++i) {
            data = _mm512_loadu_si512(src + offset + 64 * i);
            if (dst != NULL) {
                __asm__("" : "+v"(data)); /* loaded once, as all that is copied */
                _mm512_storeu_si512(dst + offset + 64 * i, data);
            }
            if (offset == 0) {
                sum[i] = _mm512_xor_si512(sum[i], data);
            } else {
                sum[i] = _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum[i], factors, 0x00),
                                                   _mm512_clmulepi64_epi128(sum[i], factors, 0x11), data,
                                                   0x96 /* xor of three */);
            }
        }
    }
    memcpy(folded, sum, sizeof(sum));
}

UCI_CRC_TARGET UCI_INLINE uint64_t uci_crc_move_fold(const uci_crc_t *kind, uint64_t crc, uint8_t *dst,
                                                     const uint8_t *src, size_t length)
{
    size_t whole = length - length % UCI_CRC_FOLD;
    uint8_t folded[UCI_CRC_FOLD];

    if (length < UCI_CRC_FOLD_MIN) {
        return uci_crc_move_isal(kind, crc, dst, src, length);
    }
    if (dst == NULL) {
        uci_crc_fold(kind, crc ^ kind->ones, folded, NULL, src, whole);
    } else {
        uci_crc_fold(kind, crc ^ kind->ones, folded, dst, src, whole);
    }
    crc = kind->func(kind->ones, folded, sizeof(folded)); /* state 0 */
    return uci_crc_move_isal(kind, crc, uci_digest_advance(dst, whole), src + whole, length - whole);
}
#else
static bool uci_crc_can_fold(uci_digest_isa_t isa)
{
    return false;
}

#define UCI_CRC_TARGET
#define uci_crc_move_fold uci_crc_move_isal
#endif

/* Product of polynomials a and b */
static uint64_t uci_crc_multiply(const uci_crc_t *kind, uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    uint64_t bit;

    for (bit = kind->one; bit != 0; bit >>= 1) {
        product ^= (a & bit) ? b : 0;
        b = (b >> 1) ^ ((b & 1) ? kind->poly : 0);
    }
    return product;
}

/* Left's CRC moved on by right_length bytes, that is times x^(8 * right_length), plus right's; the inversions at
 * both ends cancel (M. Adler, crc32_combine of zlib) */
static uint64_t uci_crc_combine(const uci_crc_t *kind, uint64_t left, uint64_t right, size_t right_length)
{
    uint64_t power = kind->one >> 8; /* x^8 */

    for (; right_length > 0; right_length >>= 1) {
        if (right_length & 1) {
            left = uci_crc_multiply(kind, left, power);
        }
        power = uci_crc_multiply(kind, power, power);
    }
    return left ^ right;
}

static void uci_crc_init(uci_digest_stream_t *stream)
{
    stream->length   = 0;
    stream->waiting  = 0;
    stream->lanes[0] = 0;
}

static uint64_t uci_crc_final(const uci_digest_stream_t *stream)
{
    return stream->lanes[0];
}

/* The functions of a row and the row, on top of uci_crc_move_<_move> */
#define UCI_CRC_DEFINE(_name, _move, _target, ...) \
    static const uci_digest_ops_t _name##_row_##_move; \
\
    _target static uint64_t _name##_digest_##_move(const void *data, size_t length) \
    { \
        return uci_crc_move_##_move(&_name, 0, NULL, data, length); \
    } \
\
    _target static uint64_t _name##_copy_##_move(void *dst, const void *src, size_t length) \
    { \
        return (length >= UCI_DIGEST_FAR_MIN) ? uci_digest_copy_far(&_name##_row_##_move, dst, src, length) \
                                              : uci_crc_move_##_move(&_name, 0, dst, src, length); \
    } \
\
    _target static void _name##_update_##_move(uci_digest_stream_t *stream, void *dst, const void *src, size_t length) \
    { \
        stream->lanes[0] = uci_crc_move_##_move(&_name, stream->lanes[0], dst, src, length); \
        stream->length += length; \
    } \
\
    static const uci_digest_ops_t _name##_row_##_move = {.digest        = _name##_digest_##_move, \
                                                         .copy          = _name##_copy_##_move, \
                                                         .update        = _name##_update_##_move, \
                                                         .init          = uci_crc_init, \
                                                         .final         = uci_crc_final, \
                                                         .combine       = _name##_combine, \
                                                         .combine_grain = 1, \
                                                         __VA_ARGS__};

static uint64_t uci_crc32c_combine(uint64_t left, uint64_t right, size_t right_length)
{
    return uci_crc_combine(&uci_crc32c, left, right, right_length);
}

static uint64_t uci_crc64_combine(uint64_t left, uint64_t right, size_t right_length)
{
    return uci_crc_combine(&uci_crc64, left, right, right_length);
}

#define UCI_CRC32C_TEXTS(_kernel) \
    .name = "crc32c", .id = UCI_DIGEST_CRC32C, .width = 32, .title = "CRC-32C (Castagnoli), " _kernel, \
    .guarantee = "any burst of up to 32 bits, any odd number of flipped bits, and any 2 within 256 MiB are certain " \
                 "to be detected; anything else is missed with odds of 2^-32"

#define UCI_CRC64_TEXTS(_kernel) \
    .name = "crc64", .id = UCI_DIGEST_CRC64, .width = 64, .title = "CRC-64 (ECMA-182 reflected, \"XZ\"), " _kernel, \
    .guarantee = "any burst of up to 64 bits is certain to be detected; anything else is missed with odds of 2^-64"

UCI_CRC_DEFINE(uci_crc32c, isal, , UCI_CRC32C_TEXTS("ISA-L"))
UCI_CRC_DEFINE(uci_crc64, isal, , UCI_CRC64_TEXTS("ISA-L"))
UCI_CRC_DEFINE(uci_crc32c, fold, UCI_CRC_TARGET, UCI_CRC32C_TEXTS("vpclmulqdq and ISA-L"))
UCI_CRC_DEFINE(uci_crc64, fold, UCI_CRC_TARGET, UCI_CRC64_TEXTS("vpclmulqdq and ISA-L"))

const uci_digest_ops_t *uci_digest_crc32c_row(uci_digest_isa_t isa)
{
    return uci_crc_can_fold(isa) ? &uci_crc32c_row_fold : &uci_crc32c_row_isal;
}

const uci_digest_ops_t *uci_digest_crc64_row(uci_digest_isa_t isa)
{
    return uci_crc_can_fold(isa) ? &uci_crc64_row_fold : &uci_crc64_row_isal;
}
