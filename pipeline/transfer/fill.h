/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which way the bytes of a chunk go into a bounce slot: through the caches, or around them.
 *
 * Where sender and receiver share a cache, the first is right: what was stored is read from there. Between sockets, or groups of cores
 * with caches of their own, each stored line is fetched from the receiver's cache before it is written, and fetched back
 * when it is read. Stores that bypass the caches spare the first way (measured, 2 cores of different groups: 4.5 GB/s through
 * the caches, 10 to 12 around them; of one group: 20 to 30 and 12). Which it is shows in the time that filling a slot
 * takes, so that is measured for each peer, and the other way is tried again and again: processes move. A trial is twice all slots
 * long: what a slot's lines were written with last decides what the next writing costs.
 *
 *     settled --some while, or the way taken has become faster or slower--> trial of the other way --its end--> settled
 */
#ifndef UCI_FILL_H_
#define UCI_FILL_H_

#include "digest/digest.h"
#include "transfer_part.h"

/** Shorter chunks go through the caches. */
#define UCI_FILL_MIN (16u << 10)

/** Chunks of a trial */
#define UCI_FILL_TRIAL 192

/** Copy @a length bytes, at least UCI_FILL_MIN, into a slot the way that suits this peer. @return their digest. */
uint64_t uci_fill_copy(uci_fill_t *fill, const uci_digest_ops_t *digest, void *dst, const void *src, size_t length);

/** Take into account that chunk `count`, of @a length bytes, took @a ns. */
void uci_fill_learn(uci_fill_t *fill, uint64_t ns, size_t length);

/** Which way does chunk `count` go? */
UCI_INLINE bool uci_fill_is_trial(const uci_fill_t *fill)
{
    return fill->count - fill->trial < UCI_FILL_TRIAL;
}

UCI_INLINE bool uci_fill_is_far(const uci_fill_t *fill)
{
    return fill->far != uci_fill_is_trial(fill);
}

/** Is it measured? */
bool uci_fill_is_measured(const uci_fill_t *fill);

/** On to the next one. */
void uci_fill_next(uci_fill_t *fill);

#endif
