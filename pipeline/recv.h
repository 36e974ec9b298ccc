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

#include "control.h"
#include "peer_table.h"
#include "recv_op.h"
#include "recv_table.h"

/** Questions without an answer, seconds apart, after which chunks are asked for although nothing was dropped */
#define UCI_RECV_PATIENCE 3

/** Post a receive; @return as ucp_tag_recv_nbx(). */
ucs_status_ptr_t uci_recv(uci_worker_t *worker, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                          const ucp_request_param_t *param);

/** The next frame of a peer, for worker->arrived: match it, verify it while it moves to where it belongs, deliver it.
 *  @return false: its payload is damaged (or there is no memory for it), and the link has to bring it again. */
bool uci_recv_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** The same of one that is lost, for worker->lost. @param payload  @a length bytes that there are of it. */
void uci_recv_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length);

/** To a receive that a lost message is for: @a status, and, for UCI_ON_ERROR=log, what there is of it, which may be too long. */
void uci_recv_deliver_lost(uci_request_t *req, const char *payload, size_t length, ucp_tag_t tag, ucs_status_t status);

/** One more message has been received. */
void uci_recv_count(size_t length);

/** The descriptor of a rendezvous has been verified. */
void uci_recv_descriptor(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                         const uci_digest_ops_t *digest, const uci_rndv_desc_t *desc);

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
