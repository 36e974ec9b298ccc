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

#include "digest_far.h"
#include "digest_ops.h"
#include "util/types.h"

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

/** How bytes are copied and digested: which is fastest depends on size and machine */
typedef enum {
    UCI_FORM_DIGEST,   /**< digested only */
    UCI_FORM_FUSED,    /**< digested while copied: copy(); with digest none: memcpy */
    UCI_FORM_SEPARATE, /**< a block copied to L1, digested there, and copied on */
    UCI_FORM_FAR,      /**< digested while copied around the caches: uci_digest_copy_far() */
    UCI_FORM_KERNEL,   /**< copied between processes by the kernel (process_vm_readv), not digested; digest none */
    UCI_FORM_LAST
} uci_form_t;

/** Names by value, NULL-terminated. */
extern const char *const uci_form_names[];

/** Copy @a length bytes from @a src to @a dst (not overlapping) the way @a form says (FUSED, SEPARATE or FAR).
 *  @return the digest of what was read, as copy(): either side may be memory that others write to. */
uint64_t uci_digest_copy_as(const uci_digest_ops_t *ops, uci_form_t form, void *dst, const void *src, size_t length);

/** @return the form that uci_digest_copy_as() really takes at this length: FAR is FUSED where it is not worth it, and FUSED is
 *  FAR from 16 MiB on. What is the same need not be compared. */
uci_form_t uci_digest_form_at(uci_form_t form, size_t length);

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

#endif
