/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies around the caches, with any digest.
 */
#ifndef UCI_DIGEST_FAR_H_
#define UCI_DIGEST_FAR_H_

#include "digest_ops.h"

#define UCI_DIGEST_FAR_SMALL 16384u /**< bytes: less is not worth going around the caches */

/** A fused copy of this many bytes goes around the caches: source and destination together exceed most L3 */
#define UCI_DIGEST_FAR_MIN (16u << 20)

/**
 * ops->copy() for a destination that nobody reads soon, such as one piece of a receive buffer larger than L3: the
 * stores bypass the caches, which saves reading the destination from memory first (measured: 1.2 to 1.5 times
 * memcpy's speed at 128 MiB). Stores are ordered before whatever the caller stores next. Below 16 KiB it is
 * ops->copy().
 */
uint64_t uci_digest_copy_far(const uci_digest_ops_t *ops, void *dst, const void *src, size_t length);

/** Use the stores of @a isa from now on. Not thread safe: for the time when the library is loaded. Values are the same. */
void uci_digest_far_use(uci_digest_isa_t isa);

#endif
