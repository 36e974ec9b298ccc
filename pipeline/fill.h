/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which way the bytes of a chunk go into a bounce slot: through the caches, or around them.
 *
 * Where sender and receiver share a cache, the first is right: what was stored is read from there. Between sockets, or groups of cores
 * with caches of their own, each stored line is fetched from the receiver's cache before it is written, and fetched back
 * when it is read. Stores that bypass the caches spare the first way (measured, 2 cores of different groups: 4.5 GB/s through
 * the caches, 10 to 12 around them; of one group: 20 to 26 and 12). Which it is shows in the time that filling a slot
 * takes, so that is measured, for each peer, now and then for either way: processes move.
 */
#ifndef UCI_FILL_H_
#define UCI_FILL_H_

#include "digest.h"

/** Shorter chunks go through the caches. */
#define UCI_FILL_MIN (16u << 10)

/** What is known of a peer; zero at the start. Of one thread at a time. */
typedef struct uci_fill {
    uint32_t count; /**< chunks so far */
    bool far;       /**< around the caches is the better way */
    float near_ns;  /**< for a KiB, smoothed; 0: not measured yet */
    float far_ns;
} uci_fill_t;

/** Copy @a length bytes, at least UCI_FILL_MIN, into a slot the way that suits this peer. @return their digest. */
uint64_t uci_fill_copy(uci_fill_t *fill, const uci_digest_ops_t *digest, void *dst, const void *src, size_t length);

/** Take a measurement into account: @a far says of which way, @a ns how long @a length bytes took. */
void uci_fill_learn(uci_fill_t *fill, bool far, uint64_t ns, size_t length);

#endif
