/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * XXH3-64 of at most 128 bytes, inlined where it is called: the pipeline's hottest path is an 8-byte message,
 * where a call costs as much as the digest. Written from the specification (Y. Collet, "XXH3", doc/xxhash_spec.md
 * of xxHash), seed 0 and default secret, so that the copy's stores use the very words that are digested.
 *
 * Others may write to what is copied meanwhile, so each word is loaded once (of those that overlap, each), and the compiler is kept from
 * loading it again for a second use. Overlapping words are digested each by itself: if the digest is right they were alike, and right.
 */
#ifndef UCI_DIGEST_SMALL_H_
#define UCI_DIGEST_SMALL_H_

#include <string.h>
#include "util/types.h"

#define UCI_DIGEST_SMALL_MAX 128 /**< longest input of the functions here */

/* Primes of XXH32 and XXH64, as the specification numbers them */
#define UCI_XXH_PRIME32_1 0x9E3779B1u
#define UCI_XXH_PRIME32_2 0x85EBCA77u
#define UCI_XXH_PRIME32_3 0xC2B2AE3Du
#define UCI_XXH_PRIME64_1 0x9E3779B185EBCA87ull
#define UCI_XXH_PRIME64_2 0xC2B2AE3D27D4EB4Full
#define UCI_XXH_PRIME64_3 0x165667B19E3779F9ull
#define UCI_XXH_PRIME64_4 0x85EBCA77C2B2AE63ull
#define UCI_XXH_PRIME64_5 0x27D4EB2F165667C5ull
#define UCI_XXH3_MIX_1    0x165667919E3779F9ull
#define UCI_XXH3_MIX_2    0x9FB21C651E98DF25ull

#define UCI_XXH3_SECRET_SIZE 192

/** The default secret, as little-endian words: word i is bytes 8*i..8*i+7. */
static const uint64_t uci_xxh3_secret[UCI_XXH3_SECRET_SIZE / 8] __attribute__((aligned(64))) = {
        0xbe4ba423396cfeb8ull, 0x1cad21f72c81017cull, 0xdb979083e96dd4deull, 0x1f67b3b7a4a44072ull,
        0x78e5c0cc4ee679cbull, 0x2172ffcc7dd05a82ull, 0x8e2443f7744608b8ull, 0x4c263a81e69035e0ull,
        0xcb00c391bb52283cull, 0xa32e531b8b65d088ull, 0x4ef90da297486471ull, 0xd8acdea946ef1938ull,
        0x3f349ce33f76faa8ull, 0x1d4f0bc7c7bbdcf9ull, 0x3159b4cd4be0518aull, 0x647378d9c97e9fc8ull,
        0xc3ebd33483acc5eaull, 0xeb6313faffa081c5ull, 0x49daf0b751dd0d17ull, 0x9e68d429265516d3ull,
        0xfca1477d58be162bull, 0xce31d07ad1b8f88full, 0x280416958f3acb45ull, 0x7e404bbbcafbd7afull,
};

UCI_INLINE uint32_t uci_digest_load32(const uint8_t *p)
{
    uint32_t value;

    memcpy(&value, p, sizeof(value));
    return value;
}

UCI_INLINE uint64_t uci_digest_load64(const uint8_t *p)
{
    uint64_t value;

    memcpy(&value, p, sizeof(value));
    return value;
}

/** A word has been loaded, for more than one use: not to be loaded again for any of them. */
#define uci_digest_loaded(_word) __asm__("" : "+r"(_word))

/* Final mixing of XXH64, used below 4 bytes */
UCI_INLINE uint64_t uci_xxh64_avalanche(uint64_t h)
{
    h = (h ^ (h >> 33)) * UCI_XXH_PRIME64_2;
    h = (h ^ (h >> 29)) * UCI_XXH_PRIME64_3;
    return h ^ (h >> 32);
}

/* Final mixing of XXH3 */
UCI_INLINE uint64_t uci_xxh3_avalanche(uint64_t h)
{
    h = (h ^ (h >> 37)) * UCI_XXH3_MIX_1;
    return h ^ (h >> 32);
}

/* Low half xor high half of the 128-bit product */
UCI_INLINE uint64_t uci_xxh3_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Mix 16 bytes with words `secret` and `secret`+1 of the secret; store what was loaded if there is a copy */
UCI_INLINE uint64_t uci_xxh3_mix16(uint8_t *dst, const uint8_t *src, unsigned secret)
{
    uint64_t first = uci_digest_load64(src), second = uci_digest_load64(src + 8);

    if (dst != NULL) {
        uci_digest_loaded(first);
        uci_digest_loaded(second);
        memcpy(dst, &first, 8);
        memcpy(dst + 8, &second, 8);
    }
    return uci_xxh3_fold(first ^ uci_xxh3_secret[secret], second ^ uci_xxh3_secret[secret + 1]);
}

/* 16 bytes at `offset` from the start and as many at `offset` before the end */
UCI_INLINE uint64_t uci_xxh3_mix_ends(uint8_t *dst, const uint8_t *src, size_t length, unsigned offset)
{
    size_t end = length - 16 - offset;

    return uci_xxh3_mix16((dst != NULL) ? dst + offset : NULL, src + offset, offset / 4) +
           uci_xxh3_mix16((dst != NULL) ? dst + end : NULL, src + end, offset / 4 + 2);
}

UCI_INLINE uint64_t uci_xxh3_small_0to3(uint8_t *dst, const uint8_t *src, size_t length)
{
    uint8_t first, middle, last;
    uint32_t word;

    if (length == 0) {
        return uci_xxh64_avalanche(uci_xxh3_secret[7] ^ uci_xxh3_secret[8]);
    }

    first  = src[0];
    middle = src[length >> 1];
    last   = src[length - 1];
    if (dst != NULL) {
        uci_digest_loaded(first);
        uci_digest_loaded(middle);
        uci_digest_loaded(last);
        dst[0]           = first;
        dst[length >> 1] = middle;
        dst[length - 1]  = last;
    }
    word = ((uint32_t)first << 16) | ((uint32_t)middle << 24) | last | ((uint32_t)length << 8);
    return uci_xxh64_avalanche(word ^ (uint32_t)(uci_xxh3_secret[0] ^ (uci_xxh3_secret[0] >> 32)));
}

UCI_INLINE uint64_t uci_xxh3_small_4to8(uint8_t *dst, const uint8_t *src, size_t length)
{
    uint32_t first = uci_digest_load32(src);
    uint32_t last  = uci_digest_load32(src + length - 4);
    uint64_t h;

    if (dst != NULL) {
        uci_digest_loaded(first);
        uci_digest_loaded(last);
        memcpy(dst, &first, 4);
        memcpy(dst + length - 4, &last, 4);
    }
    h = (last | ((uint64_t)first << 32)) ^ (uci_xxh3_secret[1] ^ uci_xxh3_secret[2]);
    h ^= ((h << 49) | (h >> 15)) ^ ((h << 24) | (h >> 40));
    h *= UCI_XXH3_MIX_2;
    h ^= (h >> 35) + length;
    h *= UCI_XXH3_MIX_2;
    return h ^ (h >> 28);
}

UCI_INLINE uint64_t uci_xxh3_small_9to16(uint8_t *dst, const uint8_t *src, size_t length)
{
    uint64_t first = uci_digest_load64(src);
    uint64_t last  = uci_digest_load64(src + length - 8);
    uint64_t low, high;

    if (dst != NULL) {
        uci_digest_loaded(first);
        uci_digest_loaded(last);
        memcpy(dst, &first, 8);
        memcpy(dst + length - 8, &last, 8);
    }
    low  = first ^ (uci_xxh3_secret[3] ^ uci_xxh3_secret[4]);
    high = last ^ (uci_xxh3_secret[5] ^ uci_xxh3_secret[6]);
    return uci_xxh3_avalanche(length + __builtin_bswap64(low) + high + uci_xxh3_fold(low, high));
}

UCI_INLINE uint64_t uci_xxh3_small_17to128(uint8_t *dst, const uint8_t *src, size_t length)
{
    uint64_t sum = length * UCI_XXH_PRIME64_1 + uci_xxh3_mix_ends(dst, src, length, 0);

    if (length > 32) {
        sum += uci_xxh3_mix_ends(dst, src, length, 16);
        if (length > 64) {
            sum += uci_xxh3_mix_ends(dst, src, length, 32);
            if (length > 96) {
                sum += uci_xxh3_mix_ends(dst, src, length, 48);
            }
        }
    }
    return uci_xxh3_avalanche(sum);
}

UCI_INLINE uint64_t uci_xxh3_small(uint8_t *dst, const uint8_t *src, size_t length)
{
    if (length > 16) {
        return uci_xxh3_small_17to128(dst, src, length);
    }
    if (length > 8) {
        return uci_xxh3_small_9to16(dst, src, length);
    }
    if (length >= 4) {
        return uci_xxh3_small_4to8(dst, src, length);
    }
    return uci_xxh3_small_0to3(dst, src, length);
}

/**
 * XXH3-64, the value uci_digest_table[UCI_DIGEST_XXH3].digest() has.
 * @param length  at most UCI_DIGEST_SMALL_MAX; with a constant length only that branch is compiled.
 */
UCI_INLINE uint64_t uci_digest_xxh3_small(const void *data, size_t length)
{
    return uci_xxh3_small(NULL, (const uint8_t *)data, length);
}

/**
 * The same, fused with the copy: each byte is loaded once (bytes in the overlap of two words twice), and what
 * was digested is what is stored.
 * @param length  at most UCI_DIGEST_SMALL_MAX. dst and src do not overlap.
 */
UCI_INLINE uint64_t uci_digest_xxh3_small_copy(void *dst, const void *src, size_t length)
{
    return uci_xxh3_small((uint8_t *)dst, (const uint8_t *)src, length);
}

#endif
