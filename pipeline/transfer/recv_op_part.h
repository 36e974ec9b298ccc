/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A receive that takes more than one frame: where it goes, its chunks, the way they come, and their repair. Files of this room write it, each
 * what its comment names.
 */
#ifndef UCI_RECV_OP_PART_H_
#define UCI_RECV_OP_PART_H_

#include "base/ask_part.h"
#include "base/damage_part.h"
#include "data/buffer.h"
#include "data/ordered.h"
#include "digest/digest.h"
#include "tree/merkle.h"
#include "ucp/ucp_api.h"
#include "util/list.h"

struct uci_path_ops;
struct uci_peer;
struct uci_request;
struct uci_repair_ahead;

typedef enum {
    UCI_CHUNK_MISSING,
    UCI_CHUNK_LANDED, /**< fetched, `expected` is its own digest: the sender's is not known yet */
    UCI_CHUNK_GOOD,
    UCI_CHUNK_BAD
} uci_chunk_state_t;

typedef enum {
    UCI_RUNG_NONE, /**< first transfer */
    UCI_RUNG_GET,  /**< RDMA get from the sender's memory */
    UCI_RUNG_COPY, /**< active-message copy */
    UCI_RUNG_LAST
} uci_rung_t;

/** Chunks, and what is known of them: recv_common.c, and descent.c of digests. */
typedef struct uci_recv_chunks {
    const uci_digest_ops_t *digest;
    uint32_t size;
    uint32_t count;
    uint32_t good;
    uint32_t bad;     /**< arrived damaged, not repaired yet */
    uint32_t landed;  /**< wait for the sender's digests */
    bool have_leaves; /**< `expected` holds the sender's digests, of missing chunks too */
    bool have_root;
    uint64_t root;
    uci_merkle_t *tree;
    uint64_t *expected; /**< digest by chunk */
    uint8_t *state;     /**< uci_chunk_state_t by chunk */
} uci_recv_chunks_t;

/** How chunks come: the files of the paths. */
typedef struct uci_recv_way {
    uci_list_t link;                /**< in a list of its path's */
    const struct uci_path_ops *ops; /**< NULL: nothing has come by a path that has to finish it */
    uint64_t state[2];              /**< its path's own, see uci_path_state() */
    uint64_t offered;               /**< bytes of segments so far */
    unsigned gets;                  /**< in flight */
    uint32_t arrived;               /**< chunks, for telling a slow transfer from a stuck one */
    uint32_t arrived_seen;
    bool pushed;    /**< chunks come unasked: none that is missing is still to be sent */
    bool ask_later; /**< something was dropped meanwhile: ask when gets are done */
    bool fetching;  /**< it should come by get, since this side sends as well; every CTS says so */
    bool slotless;  /**< a slot was damaged, or is not seen: it has to come another way, and every CTS says so */
    bool reminded;  /**< CTS has been said again: the sender may have left its slots */
} uci_recv_way_t;

/** Repair: repair.c and descent.c. */
typedef struct uci_recv_repair {
    uci_rung_t rung;
    uci_rung_t healed_by; /**< the last rung that brought a right chunk */
    uint32_t healed;      /**< chunks that were damaged and are right now */
    uint32_t changed;     /**< chunks that the sender's program has changed meanwhile */
    unsigned attempts;    /**< on this rung, without any success */
    uint32_t awaiting;    /**< answers to the last request that are still to come */
    uint32_t good_before; /**< good chunks when it was sent */
    unsigned roots;       /**< that did not match, or had not come */
    bool descending;      /**< chunks that differ are being looked for (descent.h) */
    bool told_changed; /**< the sender has said of some chunk that its program has changed it, whatever came of it then */
    unsigned gets_wrong; /**< gets that ended well, and brought other bytes than the sender had just digested */
    ucp_rkey_h rkey;
    struct uci_repair_ahead *ahead; /**< where all of the message can be read, told before it was needed; or NULL */
    uint64_t start_time;
    unsigned asked;          /**< questions since something came for it */
    unsigned refused;        /**< questions whose answers were damaged, or not kept, one after the other */
    bool starved;            /**< there was no memory to keep what came since the last one */
    uint64_t intact_before;  /**< worker->intact when the last question was asked */
    uint64_t dropped_before; /**< worker->dropped when it began */
} uci_recv_repair_t;

/** Another receive under way into the same memory: recv_overlap.c. */
typedef struct uci_recv_overlap {
    bool found;
    bool user_am; /**< `tag` is what an active message is, see uci_user_am_what() */
    ucp_tag_t tag;
} uci_recv_overlap_t;

/** A receive that takes more than one frame: a rendezvous. */
typedef struct uci_recv_op {
    uci_list_t link; /**< in worker->recv_ops */
    struct uci_peer *peer;
    uint64_t seq;
    uint32_t slot;
    bool large; /**< counted in worker->large_recvs */
    struct uci_request *req;
    uci_buffer_t *buffer;    /**< where chunks go: &req->buffer, or &own_buffer */
    uci_buffer_t own_buffer; /**< of packed */
    void *packed; /**< a generic datatype's message from ordered.offset on, if it could not be unpacked in order */
    uci_ordered_t ordered; /**< unpacking of a generic datatype */
    uci_border_t border;   /**< behind the chunk that was unpacked last, as far as it is known */
    ucp_tag_t tag;
    uint64_t length;
    uci_recv_chunks_t chunk;
    uci_recv_way_t way;
    uci_recv_repair_t repair;
    uci_ask_t ask;
    uci_damages_t damages;    /**< the damaged bytes of bad chunks, for the report */
    uci_damages_t wrong_gets; /**< and what a get brought instead of right ones */
    bool get_same;            /**< one brought the same as had come first */
    uci_recv_overlap_t overlap;
} uci_recv_op_t;

#endif
