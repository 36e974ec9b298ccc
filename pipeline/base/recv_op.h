/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A receive that takes more than one frame: a rendezvous. Each part of it belongs to the file that its comment names, or to
 * recv_common.h.
 */
#ifndef UCI_RECV_OP_H_
#define UCI_RECV_OP_H_

#include "ask.h"
#include "data/buffer.h"
#include "damage.h"
#include "tree/merkle.h"
#include "data/ordered.h"
#include "peer.h"
#include "request.h"
#include "worker_state.h"

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

/** A receive that takes more than one frame: a rendezvous. */
struct uci_path_ops;

typedef struct uci_recv_op {
    uci_list_t link;      /**< in worker->recv_ops */
    uci_list_t path_link; /**< in a list of its path's */
    uci_peer_t *peer;
    const struct uci_path_ops *path; /**< NULL: nothing has come by a path that has to finish it */
    uint64_t seq;
    uint32_t slot;
    uci_request_t *req;
    uci_buffer_t *buffer;    /**< where chunks go: &req->buffer, or &own_buffer */
    uci_buffer_t own_buffer; /**< of packed */
    void *packed; /**< a generic datatype's message from ordered.offset on, if it could not be unpacked in order */
    uci_ordered_t ordered; /**< unpacking of a generic datatype */
    uci_border_t border;   /**< behind the chunk that was unpacked last, if it came in a stream */
    ucp_tag_t tag;
    const uci_digest_ops_t *digest;
    uint64_t length;
    uint32_t chunk_size;
    uint32_t chunks;
    uint32_t good;
    uint32_t bad;     /**< arrived damaged, not repaired yet */
    uint32_t landed;  /**< wait for the sender's digests */
    bool have_leaves; /**< `expected` holds the sender's digests, of missing chunks too */
    uci_merkle_t *tree;
    uint64_t root;
    bool have_root;
    unsigned roots;  /**< that did not match, or had not come */
    bool descending; /**< chunks that differ are being looked for (descent.h) */
    uci_rung_t rung;
    uci_rung_t healed_by;   /**< the last rung that brought a right chunk */
    uint32_t repaired;      /**< chunks that were damaged and are right now */
    uint32_t changed;       /**< chunks that the sender's program has changed meanwhile */
    unsigned attempts;      /**< on this rung, without any success */
    uint32_t awaiting;      /**< answers to the last request that are still to come */
    uint32_t good_before;   /**< value of good when it was sent */
    unsigned gets;          /**< in flight */
    uint64_t offered;       /**< bytes of segments so far */
    bool ask_later;         /**< something was dropped meanwhile: ask when they are done */
    bool fetching;          /**< it should come by get, since this side sends as well; every CTS says so */
    bool large;             /**< counted in worker->large_recvs */
    bool reminded;          /**< CTS has been said again: the sender may have left its slots */
    bool slotless;          /**< a slot was damaged: it has to come another way, and every CTS says so */
    uint64_t path_state[2]; /**< its path's own, see uci_path_state() */
    unsigned gets_wrong;    /**< gets that ended well, and brought other bytes than the sender had just digested */
    ucp_rkey_h rkey;
    struct uci_repair_ahead *ahead; /**< where all of the message can be read, told before it was needed; or NULL */
    uint64_t start_time;            /**< of the repair */
    uint32_t arrived;               /**< chunks, for telling a slow transfer from a stuck one */
    uint32_t arrived_seen;
    uci_ask_t ask;
    unsigned asked;           /**< questions since something came for it */
    uint64_t intact_before;   /**< worker->intact when the last question was asked */
    bool answer_damaged;      /**< something that was for it has been dropped since the last question */
    unsigned refused;         /**< questions whose answers were damaged, one after the other */
    uint64_t dropped_before;  /**< worker->dropped when it began */
    uint64_t *expected;       /**< digest by chunk */
    uint8_t *state;           /**< uci_chunk_state_t by chunk */
    uci_damages_t damages;    /**< the damaged bytes of bad chunks, for the report */
    uci_damages_t wrong_gets; /**< and what a get brought instead of right ones */
    bool get_same;            /**< one brought the same as had come first */
    bool told_changed; /**< the sender has said of some chunk that its program has changed it, whatever came of it then */
} uci_recv_op_t;

#endif
