/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a digest is: a row of functions (uci_digest_ops_t). Users take digest.h, which has the rows; this is what those who make them
 * know. All functions are thread safe and allocate nothing.
 */
#ifndef UCI_DIGEST_OPS_H_
#define UCI_DIGEST_OPS_H_

#include "util/types.h"

/** Ids are on the wire (one byte): never renumber, only add. */
typedef enum {
    UCI_DIGEST_NONE     = 0, /**< always 0; for measurements and UCI_MODE=off */
    UCI_DIGEST_XXH3     = 1, /**< XXH3-64 (xxHash 0.8) */
    UCI_DIGEST_XXH128   = 2, /**< XXH3-128, low 64 bits on the wire where only 64 fit */
    UCI_DIGEST_FNV1A    = 3, /**< FNV-1a, 64-bit words in parallel lanes */
    UCI_DIGEST_FLETCHER = 4, /**< Fletcher-64, 32-bit words modulo 2^32-1 */
    UCI_DIGEST_CRC32C   = 5, /**< CRC-32C (Castagnoli), ISA-L or the CPU's instruction */
    UCI_DIGEST_CRC64    = 6, /**< CRC-64 (ECMA-182, reflected: "XZ"), ISA-L */
    UCI_DIGEST_LAST
} uci_digest_id_t;

/** A digest being computed piece by piece; the caller's storage, nothing to release. Fields are private. */
typedef struct uci_digest_stream {
    uint64_t length;     /**< bytes given so far */
    uint64_t lanes[16];  /**< what the digest carries from piece to piece */
    uint32_t waiting;    /**< bytes in buffer that wait for more */
    uint8_t buffer[320]; /**< largest user: XXH3, the last stripe eaten and 256 bytes that wait */
} uci_digest_stream_t;

typedef struct uci_digest_ops {
    const char *name;  /**< "xxh3": what UCI_DIGEST takes */
    const char *title; /**< one line for uci_info: algorithm, kernel in use */
    uci_digest_id_t id;
    unsigned width; /**< significant bits of the value */

    /** Digest of @a length bytes at @a data. length 0 is allowed (data may be NULL). */
    uint64_t (*digest)(const void *data, size_t length);

    /** Copy @a length bytes from @a src to @a dst (not overlapping) and return the digest of what was
     *  READ from src. Either may be memory that others write to meanwhile: nothing is loaded from dst, and
     *  every byte of src is loaded once (where words overlap, in each of them), digested and stored. So what a
     *  sender's digest certifies nobody has touched yet, and where a receiver's digest is the right one, so is
     *  what was stored. Same value as digest(src, length). From 16 MiB on it is uci_digest_copy_far(). */
    uint64_t (*copy)(void *dst, const void *src, size_t length);

    const char *guarantee; /**< one line: which corruption is detected for certain, which with what odds */

    /** Start a stream. */
    void (*init)(uci_digest_stream_t *stream);

    /** Add the next @a length bytes at @a src, copying them to @a dst as well unless that is NULL; of both the same
     *  holds as with copy(). */
    void (*update)(uci_digest_stream_t *stream, void *dst, const void *src, size_t length);

    /** @return the digest of all bytes given so far, the value digest() has for them in one piece. The stream
     *  is left as it is and can go on. */
    uint64_t (*final)(const uci_digest_stream_t *stream);

    /** @return the digest of left and right joined, from the digest of each: costs O(log right_length), no
     *  byte is read. NULL where the algebra does not allow it. The left part's length must be a multiple of
     *  @a combine_grain. */
    uint64_t (*combine)(uint64_t left, uint64_t right, size_t right_length);
    size_t combine_grain;
} uci_digest_ops_t;

/** Instruction sets there are kernels for, each including the ones before it. */
typedef enum {
    UCI_DIGEST_ISA_SCALAR, /**< plain C: the reference all others are tested against */
#ifdef __aarch64__
    UCI_DIGEST_ISA_NEON, /**< every CPU of this architecture has it */
#elif defined(__x86_64__)
    UCI_DIGEST_ISA_SSE2, /**< every CPU of this architecture has it */
    UCI_DIGEST_ISA_AVX2,
    UCI_DIGEST_ISA_AVX512, /**< F, DQ, BW and VL: servers since Skylake-SP and Zen 4 */
#endif
    UCI_DIGEST_ISA_LAST
} uci_digest_isa_t;

/** A 128-bit value. */
typedef struct uci_digest128 {
    uint64_t low, high;
} uci_digest128_t;

/** XXH3-128 of @a length bytes at @a data; low is what the row UCI_DIGEST_XXH128 returns. */
uci_digest128_t uci_digest_xxh128(const void *data, size_t length);

/**
 * FNV-1a, 64 bit, byte by byte: the canonical form (G. Fowler, L. Noll, K.-P. Vo; RFC 9923, "The FNV
 * Non-Cryptographic Hash Algorithm"), for tools and published vectors. About 1 byte every 4 cycles; the row
 * UCI_DIGEST_FNV1A takes words instead and has other values.
 */
uint64_t uci_fnv1a_bytes(const void *data, size_t length);

#endif
