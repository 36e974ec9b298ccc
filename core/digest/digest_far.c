/* SPDX-License-Identifier: BSD-3-Clause */
#include "digest_far.h"

#include <string.h>

#include "digest_simd.h"

#define UCI_DIGEST_FAR_BLOCK 4096u /* passes through L1; 2 and 8 KiB are slower */
#define UCI_DIGEST_FAR_LINE  64u

/* Copy `length` bytes, a multiple of UCI_DIGEST_FAR_LINE, `dst` aligned to it, around the caches */
typedef void (*uci_digest_far_func_t)(uint8_t *dst, const uint8_t *src, size_t length);

#if UCI_DIGEST_HAVE_X86
static void uci_digest_far_sse2(uint8_t *dst, const uint8_t *src, size_t length)
{
    size_t i;

    for (i = 0; i < length; i += sizeof(__m128i)) {
        _mm_stream_si128((__m128i *)(dst + i), _mm_loadu_si128((const __m128i *)(src + i)));
    }
}

static __attribute__((target("avx2"))) void uci_digest_far_avx2(uint8_t *dst, const uint8_t *src, size_t length)
{
    __m256i low, high;
    size_t i;

    for (i = 0; i < length; i += UCI_DIGEST_FAR_LINE) {
        low  = _mm256_loadu_si256((const __m256i *)(src + i));
        high = _mm256_loadu_si256((const __m256i *)(src + i + 32));
        _mm256_stream_si256((__m256i *)(dst + i), low);
        _mm256_stream_si256((__m256i *)(dst + i + 32), high);
    }
}

static uci_digest_far_func_t uci_digest_far = uci_digest_far_sse2;
#else
static void uci_digest_far_plain(uint8_t *dst, const uint8_t *src, size_t length)
{
    memcpy(dst, src, length);
}

static uci_digest_far_func_t uci_digest_far = uci_digest_far_plain;
#endif

void uci_digest_far_use(uci_digest_isa_t isa)
{
#if UCI_DIGEST_HAVE_X86
    uci_digest_far = (isa >= UCI_DIGEST_ISA_AVX2) ? uci_digest_far_avx2 : uci_digest_far_sse2;
#endif
}

/* Streamed stores are ordered with nothing else; once a message, because it waits for memory */
UCI_INLINE void uci_digest_far_fence(void)
{
#if UCI_DIGEST_HAVE_X86
    _mm_sfence();
#endif
}

/* Others may write to the source meanwhile: each block is read once, into L1, digested on its way there, and goes on from there. Stores
 * around the caches are of whole lines of dst, so that the end of one block goes with the next. */
uint64_t uci_digest_copy_far(const uci_digest_ops_t *ops, void *dst, const void *src, size_t length)
{
    uint8_t block[UCI_DIGEST_FAR_BLOCK + UCI_DIGEST_FAR_LINE] __attribute__((aligned(UCI_DIGEST_FAR_LINE)));
    size_t head   = -(uintptr_t)dst % UCI_DIGEST_FAR_LINE; /* up to the first whole line of dst */
    size_t carry  = 0, offset, piece, ready;
    uint8_t *next = dst;
    uci_digest_stream_t stream;

    if (length < UCI_DIGEST_FAR_SMALL) {
        return ops->copy(dst, src, length);
    }

    ops->init(&stream);
    for (offset = 0; offset < length; offset += piece) {
        piece = uci_min(length - offset, (offset == 0) ? UCI_DIGEST_FAR_BLOCK - head : (size_t)UCI_DIGEST_FAR_BLOCK);
        ops->update(&stream, block + carry, (const uint8_t *)src + offset, piece);
        carry += piece;
        memcpy(next, block, head);
        ready = (carry - head) & ~(size_t)(UCI_DIGEST_FAR_LINE - 1);
        uci_digest_far(next + head, block + head, ready);
        next += head + ready;
        carry -= head + ready;
        memmove(block, block + head + ready, carry);
        head = 0;
    }
    memcpy(next, block, carry);
    uci_digest_far_fence();
    return ops->final(&stream);
}
