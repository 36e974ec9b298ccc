/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which chunks differ between two sides, each of which has the Merkle tree of its own data: found by messages of any transport,
 * O(bad * log n) bytes. Both sides call uci_merkle_exchange() and take turns in lockstep: in each one both send one message and
 * receive one. Both end with the same answer.
 *
 *     HELLO                length, chunk size, digest, arity, root
 *     NODES, as needed     children of the nodes that both have found to differ, a level at a time
 *     END                  status, and what was found: both must have found the same
 *
 * A side that sees damage says so in END in place of its next message, so that nobody is left waiting. Trees of unlike lengths are
 * compared as far as both reach; what only one has differs.
 *
 * Nothing of a message is believed: each is sealed with a digest, and has the length that this side expects, which follows from its
 * own tree. A peer that lies can make the answer wrong, but neither larger than this side's tree (plus one range for what only the
 * peer claims to have) nor endless.
 */
#ifndef UCI_MERKLE_EXCHANGE_H_
#define UCI_MERKLE_EXCHANGE_H_

#include "digest/digest.h"
#include "merkle.h"

#define UCI_MERKLE_MESSAGE_WORDS 4096 /**< at most this many values of nodes in a message */
/** Longest message, in bytes */
#define UCI_MERKLE_MESSAGE_MAX (24 + 8 * UCI_MERKLE_MESSAGE_WORDS)
/** Longest data that can be compared: leaves room to compute with lengths that a peer gives */
#define UCI_MERKLE_LENGTH_MAX ((uint64_t)1 << 62)

/**
 * Send @a out_length bytes to the peer, which calls this too, and receive its message.
 * @param in_max  room at @a in; a longer message is an error.
 * @return UCI_OK, or an error (logged by this function), which ends the exchange.
 */
typedef uci_status_t (*uci_merkle_swap_func_t)(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                                               size_t *in_length_p);

/** Told of ranges that differ, ascending, without overlaps. */
typedef void (*uci_merkle_differ_func_t)(void *arg, uint64_t offset, uint64_t length);

typedef struct uci_merkle_side {
    uci_merkle_t *tree;     /**< all leaves set; has at least one */
    uint64_t length;        /**< of the data, in bytes; at most UCI_MERKLE_LENGTH_MAX */
    uint64_t chunk_size;    /**< in bytes */
    uci_digest_id_t digest; /**< of the chunks */
} uci_merkle_side_t;

typedef struct uci_merkle_exchange_result {
    uint64_t peer_length; /**< of the other side's data */
    uint64_t differ;      /**< bytes in ranges that differ */
    uint64_t sent;        /**< bytes of messages */
    uint64_t received;
    unsigned rounds; /**< messages in each direction */
} uci_merkle_exchange_result_t;

/** @return the chunks that @a length bytes have: one at least. */
UCI_INLINE uint64_t uci_merkle_chunks(uint64_t length, uint64_t chunk_size)
{
    return (length == 0) ? 1 : (((length - 1) / chunk_size) + 1);
}

/** @return root of @a side's tree as it is told to others: bound to digest, length and chunk size. */
UCI_INLINE uint64_t uci_merkle_side_root(const uci_merkle_side_t *side)
{
    return uci_merkle_root(side->tree, side->digest, side->length, side->chunk_size);
}

/** Compare two trees of one process, of the same digest and chunk size, leaf by leaf. */
void uci_merkle_side_compare(const uci_merkle_side_t *a, const uci_merkle_side_t *b, uci_merkle_differ_func_t differ,
                             void *arg);

/**
 * Compare @a side with that of the peer, whose process calls this with its own.
 * @param differ  may be NULL. What it was told is not valid unless UCI_OK is returned.
 * @return UCI_OK, whether they differ or not; UCI_ERR_UNSUPPORTED if chunk size, digest or arity are not the same there;
 *         UCI_ERR_CORRUPT if a message was damaged, or the peer is not one of ours; what @a swap returned; UCI_ERR_NO_MEMORY. Logged.
 */
uci_status_t uci_merkle_exchange(const uci_merkle_side_t *side, uci_merkle_swap_func_t swap, void *swap_arg,
                                 uci_merkle_differ_func_t differ, void *differ_arg,
                                 uci_merkle_exchange_result_t *result_p);

#endif
