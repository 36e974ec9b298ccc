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

#include "ucp_api.h"
#include "wire.h"
#include "digest.h"
#include "digest_small.h"
#include "pool.h"

struct uci_peer;
struct uci_request;
struct uci_send_op;

enum {
    UCI_FRAME_IN_FLIGHT = 1 << 0, /**< UCX still reads it */
    UCI_FRAME_LOGGED    = 1 << 1  /**< in its peer's log */
};

#define UCI_FRAME_CLASSES 6

typedef struct uci_frame {
    struct uci_peer *peer;   /**< sending: to whom */
    struct uci_request *req; /**< sending: completes when UCX has sent the frame */
    struct uci_send_op *op;  /**< sending: a rendezvous or synchronous send that waits for FIN */
    uint64_t seq;
    uint64_t tag;
    uint32_t total; /**< bytes on the wire */
    uint8_t cls;    /**< size class; UINT8_MAX: from the heap */
    uint8_t flags;
    uint8_t start; /**< sending: offset of its first byte in `wire` */
    char wire[] __attribute__((aligned(UCI_CACHE_LINE)));
} uci_frame_t;

/*
 * While it is being sent, and in the log, a frame of either form has its payload at the same place, and kind, digest, length and
 * value in front of it at the same places, so that only who sends it or describes it to others needs to know:
 *
 *     wire: | check kind digest length | seq ack uid value | payload | header again
 *           |    -                     | uci_small_hdr_t   | payload                   (SMALL; begins at byte 8)
 *
 * One that was received begins at byte 0 in either form.
 */
#define UCI_SMALL_OFFSET (sizeof(uci_frame_hdr_t) - sizeof(uci_small_hdr_t))

_Static_assert(sizeof(uci_frame_t) == UCI_CACHE_LINE, "the wire image starts on the second cache line");

typedef struct uci_frame_pool {
    uci_pool_t cls[UCI_FRAME_CLASSES];
} uci_frame_pool_t;

void uci_frame_pool_init(uci_frame_pool_t *pool);
void uci_frame_pool_cleanup(uci_frame_pool_t *pool);

/** @return true if no frame has ever been taken from it. */
UCI_INLINE bool uci_frame_pool_is_new(const uci_frame_pool_t *pool)
{
    unsigned cls = 0;

    while ((cls < UCI_FRAME_CLASSES) && uci_pool_is_new(&pool->cls[cls])) {
        ++cls;
    }
    return cls == UCI_FRAME_CLASSES;
}

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

/** The same for a small frame, which fits into any class. */
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

/** Bytes this frame may receive. */
UCI_INLINE size_t uci_frame_capacity(const uci_frame_t *frame)
{
    return uci_likely(frame->cls < UCI_FRAME_CLASSES) ? uci_frame_class_size[frame->cls] : frame->total;
}

/** Payload of a frame of ours, of either form. */
UCI_INLINE char *uci_frame_payload(uci_frame_t *frame)
{
    return frame->wire + sizeof(uci_frame_hdr_t);
}

/** Header of a frame of ours; of a small one only kind, digest, length and value are valid. */
UCI_INLINE uci_frame_hdr_t *uci_frame_hdr(uci_frame_t *frame)
{
    return (uci_frame_hdr_t *)(void *)frame->wire;
}

UCI_INLINE bool uci_frame_is_small(const uci_frame_t *frame)
{
    return frame->start == UCI_SMALL_OFFSET;
}

/** First byte on the wire of a frame of ours. */
UCI_INLINE char *uci_frame_start(uci_frame_t *frame)
{
    return frame->wire + frame->start;
}

/** Bytes in front of the payload of a received frame of this kind. */
UCI_INLINE size_t uci_frame_head(unsigned kind)
{
    return (kind == UCI_FRAME_SMALL) ? sizeof(uci_small_hdr_t) : sizeof(uci_frame_hdr_t);
}

/** Bytes of a frame of this kind beside its payload. */
UCI_INLINE size_t uci_frame_overhead(unsigned kind)
{
    return (kind == UCI_FRAME_SMALL) ? sizeof(uci_small_hdr_t) : UCI_FRAME_OVERHEAD;
}

/** Does the sender wait for FIN? */
UCI_INLINE bool uci_frame_wants_fin(unsigned kind)
{
    return (kind == UCI_FRAME_SYNC) || (kind == UCI_FRAME_RNDV);
}

UCI_INLINE uint32_t uci_frame_hdr_check(const uci_frame_hdr_t *hdr, uint64_t tag)
{
    return (uint32_t)XXH3_64bits_withSeed((const char *)hdr + sizeof(hdr->check), sizeof(*hdr) - sizeof(hdr->check),
                                          tag);
}

/* XXH3-64 with a seed of the 20 bytes behind `check`, as the words at 4, 8, 12 and 16: who has just written these in smaller pieces
 * would wait for his own stores if he read them again */
UCI_INLINE uint32_t uci_small_check_words(const uint64_t word[4], uint64_t seed)
{
    uint64_t sum = 20 * UCI_XXH_PRIME64_1;

    sum += uci_xxh3_fold(word[0] ^ (uci_xxh3_secret[0] + seed), word[2] ^ (uci_xxh3_secret[1] - seed));
    sum += uci_xxh3_fold(word[1] ^ (uci_xxh3_secret[2] + seed), word[3] ^ (uci_xxh3_secret[3] - seed));
    return (uint32_t)uci_xxh3_avalanche(sum);
}

UCI_INLINE uint32_t uci_small_hdr_check(const uci_small_hdr_t *hdr, uint64_t tag, uint64_t uid)
{
    const uint8_t *bytes = (const uint8_t *)hdr;
    uint64_t word[4]     = {uci_digest_load64(bytes + 4), uci_digest_load64(bytes + 8), uci_digest_load64(bytes + 12),
                            uci_digest_load64(bytes + 16)};

    return uci_small_check_words(word, tag + uid * UCI_UID_FACTOR);
}

/** Write the header's check and, unless it is a small frame, the header again behind the payload.
 *  @param uid  of the sending worker. */
UCI_INLINE void uci_frame_seal(uci_frame_t *frame, uint64_t uid)
{
    uci_frame_hdr_t *hdr   = uci_frame_hdr(frame);
    uci_small_hdr_t *small = (uci_small_hdr_t *)(void *)(frame->wire + UCI_SMALL_OFFSET);

    if (uci_frame_is_small(frame)) {
        small->check = uci_small_hdr_check(small, frame->tag, uid);
        return;
    }
    hdr->check = uci_frame_hdr_check(hdr, frame->tag);
    memcpy(uci_frame_payload(frame) + hdr->length, hdr, sizeof(*hdr));
}

/** All of a small frame at once: what uci_frame_seal() would make of it once kind, digest, length, who, seq, ack, payload and value are
 *  set. By words, which the header's check is made of while they are in registers. @param uid  of the sending worker, whose short form
 *  is @a who. */
UCI_INLINE void uci_frame_write_small(uci_frame_t *frame, const void *data, size_t length, uint32_t ack, uint16_t who,
                                      uint64_t uid)
{
    uint64_t kind    = UCI_FRAME_SMALL | ((uint64_t)UCI_DIGEST_XXH3 << 8) | ((uint64_t)length << 16);
    uint64_t what    = UCI_FRAME_SMALL | (length << 8) | ((uint64_t)who << 16);
    uint64_t numbers = (uint32_t)frame->seq | ((uint64_t)ack << 32);
    uint64_t value   = uci_digest_xxh3_small_copy(uci_frame_payload(frame), data, length);
    uint64_t word[4] = {what | (numbers << 32), numbers, ack | (value << 32), value};
    uint64_t first   = (what << 32) | uci_small_check_words(word, frame->tag + uid * UCI_UID_FACTOR);

    kind <<= 32;
    memcpy(frame->wire, &kind, sizeof(kind));
    memcpy(frame->wire + 8, &first, sizeof(first));
    memcpy(frame->wire + 16, &numbers, sizeof(numbers));
    memcpy(frame->wire + 24, &value, sizeof(value));
}

UCI_INLINE bool uci_frame_hdr_is_valid(const uci_frame_hdr_t *hdr, uint64_t tag)
{
    return hdr->check == uci_frame_hdr_check(hdr, tag);
}

/** Does the length that was received agree with the header? If not, bytes were lost or added on the way. */
UCI_INLINE bool uci_frame_is_whole(const uci_frame_hdr_t *hdr, size_t total)
{
    return hdr->length + uci_frame_overhead(hdr->kind) == total;
}

/** Do these @a total bytes say that they are a small frame? Whether it is true its check tells. */
UCI_INLINE bool uci_small_hdr_is_present(const uci_small_hdr_t *hdr, size_t total)
{
    return (total - sizeof(*hdr) <= UCI_SMALL_MAX) && (hdr->kind == UCI_FRAME_SMALL) &&
           (hdr->length + sizeof(*hdr) == total);
}

/** The same in the form of the others. */
UCI_INLINE void uci_small_hdr_expand(const uci_small_hdr_t *hdr, uint64_t uid, uci_frame_hdr_t *hdr_p)
{
    hdr_p->kind   = UCI_FRAME_SMALL;
    hdr_p->digest = UCI_DIGEST_XXH3;
    hdr_p->length = hdr->length;
    hdr_p->seq    = hdr->seq;
    hdr_p->ack    = hdr->ack;
    hdr_p->uid    = uid;
    hdr_p->value  = hdr->value;
}

/** What a receiver has to know of a frame of ours that it has lost. @param ack, uid  of the sending worker. */
void uci_frame_describe(uci_frame_t *frame, uint32_t ack, uint64_t uid, uci_frame_hdr_t *hdr_p);

/** Bytes of the user's message that a frame with this payload announces. */
uint64_t uci_frame_user_length(uci_frame_kind_t kind, const void *payload, size_t length);

/**
 * Find the header that can be trusted in a received frame that is not a small one: the front one, else the one at the end.
 * @param total bytes received.  @return true and a copy in @a hdr_p, or false: neither can be trusted.
 */
bool uci_frame_recover_hdr(const uci_frame_t *frame, uint64_t tag, size_t total, uci_frame_hdr_t *hdr_p);

#endif
