/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames: the memory one lives in, building and checking one. On the sending side a frame is also the log
 * entry: it stays until the receiver has acknowledged it and UCX has let go of it.
 */
#ifndef UCI_FRAME_H_
#define UCI_FRAME_H_

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ucp/ucp_api.h"
#include "wire.h"
#include "digest/digest.h"
#include "digest/digest_small.h"
#include "util/pool.h"

#define UCI_UID_FACTOR 0x9e3779b97f4a7c15ul /* 2^64 divided by the golden ratio */

struct uci_peer;
struct uci_request;
struct uci_send_op;

enum {
    UCI_FRAME_IN_FLIGHT = 1 << 0, /**< UCX still reads it, or it waits for room in a mailbox */
    UCI_FRAME_LOGGED    = 1 << 1, /**< in its peer's log */
    UCI_FRAME_STUB      = 1 << 2  /**< only the header is left of it: UCI_LOG_SIZE */
};

#define UCI_FRAME_CLASSES 6

typedef struct uci_frame {
    struct uci_peer *peer;   /**< sending: to whom */
    struct uci_request *req; /**< sending: completes when the frame has been handed to a carrier */
    struct uci_send_op *op;  /**< sending: a rendezvous or synchronous send that waits for FIN */
    uint64_t seq;
    uint32_t total; /**< bytes on the wire */
    uint8_t cls;    /**< size class; UINT8_MAX: from the heap */
    uint8_t flags;
    struct uci_frame *next; /**< sending: in one of its peer's tx_kept */
    char wire[] __attribute__((aligned(UCI_CACHE_LINE)));
} uci_frame_t;

_Static_assert(sizeof(uci_frame_t) == UCI_CACHE_LINE, "the wire image starts on the second cache line");

typedef struct uci_frame_pool {
    uci_pool_t cls[UCI_FRAME_CLASSES];
} uci_frame_pool_t;

void uci_frame_pool_init(uci_frame_pool_t *pool);
void uci_frame_pool_cleanup(uci_frame_pool_t *pool);

/** Bytes on the wire that a frame of each class holds. */
extern const uint32_t uci_frame_class_size[UCI_FRAME_CLASSES];

/** From the heap, for frames larger than the largest class. */
uci_frame_t *uci_frame_get_large(size_t total);

/** @return a frame with room for @a total bytes on the wire, or NULL. */
UCI_INLINE uci_frame_t *uci_frame_get(uci_frame_pool_t *pool, size_t total)
{
    unsigned cls = 0;
    uci_frame_t *frame;

    while (uci_unlikely(total > uci_frame_class_size[cls])) {
        if (++cls == UCI_FRAME_CLASSES) {
            return uci_frame_get_large(total);
        }
    }
    frame = uci_pool_get(&pool->cls[cls]);
    if (uci_likely(frame != NULL)) {
        frame->cls = cls;
    }
    return frame;
}

/** Payload of a frame that fits into the smallest class. */
#define UCI_FRAME_SMALL_PAYLOAD (128u - sizeof(uci_frame_hdr_t))

/** The same for a small frame. */
UCI_INLINE uci_frame_t *uci_frame_get_small(uci_frame_pool_t *pool)
{
    uci_frame_t *frame = uci_pool_get(&pool->cls[0]);

    if (uci_likely(frame != NULL)) {
        frame->cls = 0;
    }
    return frame;
}

void uci_frame_put_large(uci_frame_t *frame);

UCI_INLINE void uci_frame_put(uci_frame_pool_t *pool, uci_frame_t *frame)
{
    if (uci_unlikely(frame->cls >= UCI_FRAME_CLASSES)) {
        uci_frame_put_large(frame);
    } else {
        uci_pool_put(&pool->cls[frame->cls], frame);
    }
}

UCI_INLINE uci_frame_hdr_t *uci_frame_hdr(uci_frame_t *frame)
{
    return (uci_frame_hdr_t *)(void *)frame->wire;
}

UCI_INLINE char *uci_frame_payload(uci_frame_t *frame)
{
    return frame->wire + sizeof(uci_frame_hdr_t);
}

UCI_INLINE uint64_t uci_frame_tag(const uci_frame_t *frame)
{
    return ((const uci_frame_hdr_t *)(const void *)frame->wire)->tag;
}

/** Does the sender wait for FIN? */
UCI_INLINE bool uci_frame_wants_fin(unsigned kind)
{
    return uci_frame_kind(kind) != UCI_FRAME_EAGER;
}

/** What `check` of an active message is seeded with: it is of this sender for this receiver. */
UCI_INLINE uint64_t uci_frame_am_seed(uint64_t sender_uid, uint64_t receiver_uid)
{
    return sender_uid + (receiver_uid * UCI_UID_FACTOR);
}

/* XXH3-64 with a seed of the 28 bytes behind `check`, as the words at 12, 20, 24 and 32: who has just written these in smaller pieces
 * would wait for his own stores if he read them again */
UCI_INLINE uint32_t uci_frame_check_words(uint64_t what_seq, uint64_t ack_tag, uint64_t tag, uint64_t value,
                                          uint64_t seed)
{
    uint64_t sum = 28 * UCI_XXH_PRIME64_1;

    sum += uci_xxh3_fold(what_seq ^ (uci_xxh3_secret[0] + seed), ack_tag ^ (uci_xxh3_secret[1] - seed));
    sum += uci_xxh3_fold(tag ^ (uci_xxh3_secret[2] + seed), value ^ (uci_xxh3_secret[3] - seed));
    return (uint32_t)uci_xxh3_avalanche(sum);
}

/** The check that a header should have. @param seed  mark of its place in a mailbox, or uci_frame_am_seed(). */
UCI_INLINE uint32_t uci_frame_check(const uci_frame_hdr_t *hdr, uint64_t seed)
{
    const uint8_t *bytes = (const uint8_t *)&hdr->kind;

    return uci_frame_check_words(uci_digest_load64(bytes), uci_digest_load64(bytes + 8), hdr->tag, hdr->value, seed);
}

/** Write all of a header but the mark. @param what  kind, digest and length, see uci_frame_what(). @param seed  as above */
UCI_INLINE void uci_frame_write_hdr(uci_frame_t *frame, uint32_t what, uint32_t ack, uint64_t tag, uint64_t value,
                                    uint64_t mark, uint64_t seed)
{
    uint64_t what_seq = what | (frame->seq << 32);
    uint64_t ack_tag  = ack | (tag << 32);
    uint32_t check    = uci_frame_check_words(what_seq, ack_tag, tag, value, seed);

    memcpy(frame->wire, &mark, sizeof(mark));
    memcpy(frame->wire + 8, &check, sizeof(check));
    memcpy(frame->wire + 12, &what_seq, sizeof(what_seq));
    memcpy(frame->wire + 20, &ack, sizeof(ack));
    memcpy(frame->wire + 24, &tag, sizeof(tag));
    memcpy(frame->wire + 32, &value, sizeof(value));
}

UCI_INLINE uint32_t uci_frame_what(unsigned kind, uint8_t digest, uint32_t length)
{
    return kind | ((uint32_t)digest << 8) | (length << 16);
}

/** @return a copy, which no log knows and a carrier is to give back; NULL: no memory. */
uci_frame_t *uci_frame_clone(uci_frame_pool_t *pool, const uci_frame_t *frame);

#endif
