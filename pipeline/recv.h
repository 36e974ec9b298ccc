/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: from the posted receive to the completed one.
 *
 *     posted --frame arrives, header checked--> EAGER: payload verified while it moves --> done
 *                                        |                        | damaged
 *                                        |                        v
 *                                        |          bound to that number, until the link brings it again (peer_link.h) --> done
 *                                        |
 *                                        +--RNDV--> CTS, DATA... ----------------------> done
 *                                                       | mismatch                        ^
 *                                                       v                                 |
 *                                                   REPAIR (repair.h) --------------------+--> or the policy
 *
 * What nobody has posted a receive for waits in unexpected.h.
 */
#ifndef UCI_RECV_H_
#define UCI_RECV_H_

#include "request.h"
#include "peer_table.h"
#include "control.h"
#include "merkle.h"
#include "ordered.h"

/** Questions without an answer, seconds apart, after which chunks are asked for although nothing was dropped */
#define UCI_RECV_PATIENCE 3

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
typedef struct uci_recv_op {
    uci_list_t link;        /**< in worker->recv_ops */
    uci_list_t direct_link; /**< in worker->direct_recvs while chunks come through slots */
    uci_peer_t *peer;
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
    uci_rung_t healed_by; /**< the last rung that brought a right chunk */
    uint32_t repaired;    /**< chunks that were damaged and are right now */
    uint32_t changed;     /**< chunks that the sender's program has changed meanwhile */
    unsigned attempts;    /**< on this rung, without any success */
    uint32_t awaiting;    /**< answers to the last request that are still to come */
    uint32_t good_before; /**< value of good when it was sent */
    unsigned gets;        /**< in flight */
    uint64_t offered;     /**< bytes of segments so far */
    bool ask_later;       /**< something was dropped meanwhile: ask when they are done */
    bool slotless;        /**< a slot was damaged: it has to come another way, and every CTS says so */
    bool direct;          /**< chunks come, or all have come, through slots */
    bool held;            /**< `slot_now` has been taken, but not acknowledged */
    uint16_t slot_now;    /**< of the chunk to take, or the one before */
    uint32_t taken;       /**< chunks, from slots */
    unsigned gets_wrong;  /**< gets that ended well, and brought other bytes than the sender had just digested */
    ucp_rkey_h rkey;
    struct uci_repair_ahead *ahead; /**< where all of the message can be read, told before it was needed; or NULL */
    uint64_t start_time;            /**< of the repair */
    uint32_t arrived;               /**< chunks, for telling a slow transfer from a stuck one */
    uint32_t arrived_seen;
    uint64_t active_time;      /**< something had arrived, or we asked */
    unsigned asked;            /**< questions since something came for it: each is asked later than the one before */
    uint64_t intact_before;    /**< worker->intact when the last question was asked */
    bool answer_damaged;       /**< something that was for it has been dropped since the last question */
    unsigned refused;          /**< questions whose answers were damaged, one after the other */
    uint64_t walk;             /**< the last one that has come to it, see uci_control_ask() */
    uint64_t dropped_before;   /**< worker->dropped when it began */
    uint64_t *expected;        /**< digest by chunk */
    uint8_t *state;            /**< uci_chunk_state_t by chunk */
    struct uci_damage *damage; /**< the damaged bytes of the first bad chunk, for the report */
} uci_recv_op_t;

/** Post a receive; @return as ucp_tag_recv_nbx(). */
ucs_status_ptr_t uci_recv(uci_worker_t *worker, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                          const ucp_request_param_t *param);

/** The next frame of a peer, for worker->arrived: match it, verify it while it moves to where it belongs, deliver it.
 *  @return false: its payload is damaged (or there is no memory for it), and the link has to bring it again. */
bool uci_recv_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** The same of one that is lost, for worker->lost. @param payload  @a length bytes that there are of it. */
void uci_recv_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length);

/** One more message has been received. */
void uci_recv_count(size_t length);

/** The descriptor of a rendezvous has been verified. */
void uci_recv_descriptor(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                         const uci_digest_ops_t *digest, const uci_rndv_desc_t *desc);

/* Operations */
uci_recv_op_t *uci_recv_op_by_slot(uci_worker_t *worker, uint32_t slot, const uci_peer_t *peer, uint32_t seq);
uci_recv_op_t *uci_recv_op_by_seq(uci_peer_t *peer, uint64_t seq);

/** A message with this header was damaged, and dropped: note whose answer it may have been, as far as what is left of the header tells. */
void uci_recv_blame(uci_worker_t *worker, const uci_am_hdr_t *hdr);
/** What a header says of the whole message, if it is flagged LAST. */
UCI_INLINE void uci_recv_op_learn_root(uci_recv_op_t *op, const uci_am_hdr_t *hdr)
{
    if (hdr->flags & UCI_AM_FLAG_LAST) {
        op->root      = hdr->extra;
        op->have_root = true;
    }
}
/** A chunk has been fetched, and stored as it is. */
void uci_recv_op_chunk_landed(uci_recv_op_t *op, uint32_t index, uint64_t value);
/** A chunk has been verified and stored: what was wrong with it before counts as healed. @param rung  what brought it.
 *  @param changed  the sender says that it is not what it was when it was sent first. */
void uci_recv_op_chunk_good(uci_recv_op_t *op, uint32_t index, uint64_t value, uci_rung_t rung, bool changed);
/**
 * The next chunk of a generic datatype, in order: verified, then unpacked.
 * @return false: it is not the next one, or damaged, or refused; uci_recv_op_collect() is what remains.
 */
bool uci_recv_op_unpack(uci_recv_op_t *op, uint32_t index, const void *data, size_t length, uint64_t expected,
                        uci_cut_t cut);
/**
 * What a peer can write to while we read (a slot; a span; an active message that UCX hands over where it lies, in shared memory) is read
 * once.
 * Copied and digested at the same time it is; into a buffer in pieces it goes after it was digested, so from a copy of our own.
 * @return @a data or that copy, good until the next call for this worker; NULL: no memory (logged).
 */
const void *uci_recv_op_own(uci_recv_op_t *op, const void *data, size_t length);
/** Chunks can be written in any order from now on: what of a generic datatype is not unpacked yet is collected, since unpacking
 *  can't be undone. @return false: no memory (logged). */
bool uci_recv_op_collect(uci_recv_op_t *op);
/** What the sender says is the digest of chunk @a index, which may have come already. */
void uci_recv_op_leaf(uci_recv_op_t *op, uint32_t index, uint64_t leaf);
/** See whether all has arrived: complete, or start repairing. */
void uci_recv_op_advance(uci_recv_op_t *op);
/** Tell the sender that its message is matched. @param flags  REPAIR: it has been told before. */
void uci_recv_op_cts(uci_recv_op_t *op, uint16_t flags);
/** All chunks are right: deliver. */
void uci_recv_op_finish(uci_recv_op_t *op);
/** End, with this status: FIN, the user's request, memory. */
void uci_recv_op_abandon(uci_recv_op_t *op, ucs_status_t status);

/** The worker goes: give keys back to UCX; then, when UCX's part is gone, forget what never ended. */
void uci_recv_shutdown(uci_worker_t *worker);
void uci_recv_cleanup(uci_worker_t *worker);

/* Called by the dispatcher */
void uci_recv_on_data(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length);
void uci_recv_on_query(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr);
void uci_recv_on_leaves(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length);

#endif
