/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests, and the copies they are fused into. Every digest is a row of one table (uci_digest_ops_t): the
 * pipeline calls through the row, so that a digest is chosen once, by name, and never switched on per call.
 *
 * All functions here are thread safe and allocate nothing. Values are the same on every CPU: a kernel for a
 * wider instruction set differs in speed only.
 */
#ifndef UCI_DIGEST_H_
#define UCI_DIGEST_H_

#include "types.h"

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
     *  READ from src: every byte is loaded once from memory, so a copy that went wrong shows when the
     *  other side digests what it stored. Same value as digest(src, length). From 16 MiB on it is
     *  uci_digest_copy_far(). */
    uint64_t (*copy)(void *dst, const void *src, size_t length);

    const char *guarantee; /**< one line: which corruption is detected for certain, which with what odds */

    /** Start a stream. */
    void (*init)(uci_digest_stream_t *stream);

    /** Add the next @a length bytes at @a src, copying them to @a dst as well unless that is NULL. */
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

/** Rows by id, filled when the library is loaded (uci_digest_init), kernels chosen for this CPU. */
extern uci_digest_ops_t uci_digest_table[UCI_DIGEST_LAST];

/** What UCI_DIGEST=auto is until the tuner chooses: the functions of xxh3 under the name "auto". Not in the table. */
extern uci_digest_ops_t uci_digest_auto;

/** Choose kernels by CPUID. Idempotent, a few microseconds, no file is read. */
void uci_digest_init(void);

/** @return the row called @a name (case ignored), or NULL. */
const uci_digest_ops_t *uci_digest_find(const char *name);

/** @return the row of a wire id, or NULL if this build does not know it. */
const uci_digest_ops_t *uci_digest_by_id(unsigned id);

/** Write the bit set of ids this build knows: what peers compare when they meet. */
uint32_t uci_digest_set(void);

/**
 * ops->copy() for a destination that nobody reads soon, such as one piece of a receive buffer larger than L3: the
 * stores bypass the caches, which saves reading the destination from memory first (measured: 1.2 to 1.5 times
 * memcpy's speed at 128 MiB). Stores are ordered before whatever the caller stores next. Below 16 KiB it is
 * ops->copy().
 */
uint64_t uci_digest_copy_far(const uci_digest_ops_t *ops, void *dst, const void *src, size_t length);

/** How bytes are copied and digested: which is fastest depends on size and machine */
typedef enum {
    UCI_FORM_DIGEST,   /**< digested only */
    UCI_FORM_FUSED,    /**< digested while copied: copy(); with digest none: memcpy */
    UCI_FORM_SEPARATE, /**< a block copied, then digested while it is in L1 */
    UCI_FORM_FAR,      /**< digested while copied around the caches: uci_digest_copy_far() */
    UCI_FORM_KERNEL,   /**< copied between processes by the kernel (process_vm_readv), not digested; digest none */
    UCI_FORM_LAST
} uci_form_t;

/** Names by value, NULL-terminated. */
extern const char *const uci_form_names[];

/** Copy @a length bytes from @a src to @a dst (not overlapping) the way @a form says (FUSED, SEPARATE or FAR).
 *  @return the digest of what was read (SEPARATE: of what was stored, which is the same if the copy went well). */
uint64_t uci_digest_copy_as(const uci_digest_ops_t *ops, uci_form_t form, void *dst, const void *src, size_t length);

/** @return the form that uci_digest_copy_as() really takes at this length: FAR is FUSED where it is not worth it, and FUSED is
 *  FAR from 16 MiB on. What is the same need not be compared. */
uci_form_t uci_digest_form_at(uci_form_t form, size_t length);

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

/** Names by instruction set ("scalar", ...), NULL-terminated. */
extern const char *const uci_digest_isa_names[];

/** @return the widest instruction set this CPU has and this build has kernels for. */
uci_digest_isa_t uci_digest_isa_best(void);

/**
 * Fill @a table with the rows for @a isa, whatever uci_digest_table holds: for tests that compare kernels and
 * for tools that measure them.
 * @param isa  at most uci_digest_isa_best().
 */
void uci_digest_fill(uci_digest_ops_t table[UCI_DIGEST_LAST], uci_digest_isa_t isa);

/** @return the row of digest @a id for @a isa (at most uci_digest_isa_best()), whatever uci_digest_table holds; lives as long
 *  as the process. */
const uci_digest_ops_t *uci_digest_row(uci_digest_id_t id, uci_digest_isa_t isa);

/**
 * Use the kernel for @a isa for digest @a id from now on. Not thread safe: for the time before the first worker is made.
 * @param isa  at most uci_digest_isa_best().
 */
void uci_digest_use(uci_digest_id_t id, uci_digest_isa_t isa);

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
