/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * libuci: does a buffer hold what it held before, or what another process has? A program builds the Merkle tree of a buffer (digests
 * of its chunks, and digests of these), keeps it, stores it, or compares it with that of a peer: only the nodes that differ are
 * exchanged, and the answer is which bytes differ. Nothing of it needs a fault to be seen first, and nothing needs UCX.
 *
 *     uci_tree_t *tree;
 *     uci_byte_range_t ranges[16];
 *     uci_tree_result_t result = {.ranges = ranges, .max = 16};
 *
 *     uci_tree_build(buffer, length, NULL, &tree);
 *     uci_tree_compare_mpi(tree, peer, tag, comm, &result);       (uci_mpi.h; the peer calls it too)
 *     if (result.count > 0) ...                                    ranges[0].offset, ranges[0].length
 *     uci_tree_destroy(tree);
 *
 * uci_mpi.h does this between two ranks of a communicator, uci_ucp.h between two ucp endpoints; both are written in line over
 * uci_tree_compare_with(), which takes any transport. Compile and link with `pkg-config --cflags --libs uci`.
 *
 * Functions return UCI_OK or a negative status (uci_types.h) and say on stderr why. A tree belongs to one thread at a time; different
 * trees to any. Digests find damage; they are no protection from somebody who makes data to fit.
 */
#ifndef UCI_H_
#define UCI_H_

#include <stddef.h>
#include <stdint.h>

#include "uci_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UCI_TREE_CHUNK_SIZE_DEFAULT 65536
#define UCI_TREE_CHUNK_SIZE_MIN     64
#define UCI_TREE_CHUNK_SIZE_MAX     ((size_t)1 << 30)
#define UCI_TREE_ARITY_DEFAULT      16
#define UCI_TREE_DIGEST_DEFAULT     "xxh3"

/** The digests of a buffer's chunks, and the nodes above them. */
typedef struct uci_tree uci_tree_t;

/** Which fields of uci_tree_params_t are set; what is not has its default. */
enum uci_tree_params_field {
    UCI_TREE_PARAM_FIELD_DIGEST     = 1 << 0,
    UCI_TREE_PARAM_FIELD_CHUNK_SIZE = 1 << 1,
    UCI_TREE_PARAM_FIELD_ARITY      = 1 << 2,
    UCI_TREE_PARAM_FIELD_THREADS    = 1 << 3
};

/** How a tree is made. Digest, chunk size and arity must be the same for trees that are to be compared. */
typedef struct uci_tree_params {
    uint64_t field_mask; /**< bits of enum uci_tree_params_field; all others 0, or UCI_ERR_INVALID_PARAM */
    const char *
            digest; /**< "xxh3", "xxh128", "crc64", "crc32c", "fletcher", "fnv1a"; uci_info -D tells what they detect */
    size_t chunk_size; /**< bytes that have one digest: how fine the answer is; 8 bytes are kept for each */
    unsigned arity;    /**< children of a node, 2 to 256 */
    unsigned
            threads; /**< to build with, at most; 0 (default): as OpenMP says (OMP_NUM_THREADS). Never more than usable cores */
} uci_tree_params_t;

/** What a comparison found. The caller sets ranges and max, the rest is written. */
typedef struct uci_tree_result {
    uci_byte_range_t
            *ranges; /**< in: receives the ranges that differ, ascending, by whole chunks; NULL: none are wanted */
    size_t max;      /**< in: room there */
    size_t count;    /**< ranges that differ; more than max: those that did not fit are counted only. 0: the same */
    uint64_t bytes;  /**< in all these ranges */
    uint64_t peer_length; /**< of the other buffer; what only the longer one has differs */
    uint64_t sent;        /**< bytes of messages */
    uint64_t received;
    uint64_t rounds;      /**< messages in each direction */
    uint64_t reserved[4]; /**< written as 0 */
} uci_tree_result_t;

/**
 * Build the tree of @a length bytes at @a buffer, which is only read, now.
 * @param params  NULL: defaults.
 * @param tree_p  set on success, to be released with uci_tree_destroy(). About 8.5 bytes for each chunk.
 * @return UCI_OK, UCI_ERR_INVALID_PARAM or UCI_ERR_NO_MEMORY.
 */
uci_status_t uci_tree_build(const void *buffer, size_t length, const uci_tree_params_t *params, uci_tree_t **tree_p);

/** Release @a tree, which may be NULL. */
void uci_tree_destroy(uci_tree_t *tree);

/**
 * The buffer was written to at @a offset: digest the chunks of these @a length bytes again.
 * @param buffer  the whole buffer, of the length the tree was built with.
 * @return UCI_OK, or UCI_ERR_INVALID_PARAM if the range is not within the buffer.
 */
uci_status_t uci_tree_update(uci_tree_t *tree, const void *buffer, size_t offset, size_t length);

/** @return the root: equal for equal contents, and bound to their length, the chunk size and the digest. */
uint64_t uci_tree_root(uci_tree_t *tree);

/** @return length of the buffer in bytes. */
uint64_t uci_tree_length(const uci_tree_t *tree);

/** @return bytes of a chunk. */
size_t uci_tree_chunk_size(const uci_tree_t *tree);

/**
 * Compare two trees of this process.
 * @return UCI_OK, whether they differ (result->count > 0) or not; UCI_ERR_UNSUPPORTED if their parameters are not the same.
 */
uci_status_t uci_tree_compare(const uci_tree_t *tree, const uci_tree_t *other, uci_tree_result_t *result);

/**
 * Write @a tree into @a packed, to be stored or sent: uci_tree_unpack() reads it on machines with the same order of bytes.
 * @param packed      NULL: only *length_p is wanted.
 * @param size        room there, in bytes.
 * @param length_p    receives how many bytes it takes, also if there is no room.
 * @return UCI_OK, or UCI_ERR_INVALID_PARAM if @a size is too small.
 */
uci_status_t uci_tree_pack(const uci_tree_t *tree, void *packed, size_t size, size_t *length_p);

/** Make a tree of what uci_tree_pack() wrote. @return UCI_OK, UCI_ERR_CORRUPT if it is anything else or damaged, UCI_ERR_NO_MEMORY. */
uci_status_t uci_tree_unpack(const void *packed, size_t length, uci_tree_t **tree_p);

/** Longest message of uci_tree_compare_with(), in bytes: a transport needs room for one. */
#define UCI_TREE_MESSAGE_MAX 32792

/**
 * How messages reach the peer: the caller's functions. Each returns UCI_OK, or a negative status, which ends the comparison here and
 * is what it returns; the peer is then to be freed by the same means (a connection that closes, MPI_Abort).
 * Either exchange is given, or send and recv.
 */
typedef struct uci_exchange_ops {
    size_t size; /**< sizeof(uci_exchange_ops_t) */
    /** Send @a out_length bytes, and receive a message of at most @a in_max at the same time: both sides are in this call together. */
    uci_status_t (*exchange)(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                             size_t *in_length_p);
    /** Send one message. */
    uci_status_t (*send)(void *arg, const void *out, size_t out_length);
    /** Receive one message, of at most @a in_max bytes. */
    uci_status_t (*recv)(void *arg, void *in, size_t in_max, size_t *in_length_p);
    int sends_first; /**< with send and recv: not 0 at one of the two sides, 0 at the other one */
} uci_exchange_ops_t;

/**
 * Compare @a tree with that of a peer, which calls this too, with its own: O(differing chunks * log(chunks)) bytes, and a message
 * each way for each level of the tree, two more, and more where thousands of chunks differ. Blocks until both know.
 * The peer is not trusted: a message that is damaged, too long or not the one expected ends with an error at both sides, and memory is
 * bounded by this side's own tree.
 * @return UCI_OK, whether they differ (result->count > 0) or not; UCI_ERR_UNSUPPORTED if their parameters are not the same;
 *         UCI_ERR_CORRUPT if messages were; what a function of @a ops returned; UCI_ERR_NO_MEMORY. After an error only the counters of
 *         messages mean something.
 */
uci_status_t uci_tree_compare_with(uci_tree_t *tree, const uci_exchange_ops_t *ops, void *arg,
                                   uci_tree_result_t *result);

/** @return a constant English text for @a status. */
const char *uci_tree_status_string(uci_status_t status);

#ifdef __cplusplus
}
#endif

#endif
