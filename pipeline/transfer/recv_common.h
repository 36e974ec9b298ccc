/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What all receives that take more than one frame have in common: their life, and what becomes of a chunk. Whether all has come, and
 * what is done about what has not: repair.h.
 */
#ifndef UCI_RECV_COMMON_H_
#define UCI_RECV_COMMON_H_

#include "base/verdict.h"
#include "base/worker_state.h"
#include "base/peer.h"
#include "base/request.h"
#include "recv_op_part.h"
#include "base/recv_table.h"

/** Questions without an answer, seconds apart, after which chunks are asked for although nothing was dropped */
#define UCI_RECV_PATIENCE 2

/** One more message has been received. */
void uci_recv_count(size_t length);

/** @return UCS_OK, or UCS_ERR_NO_MEMORY (logged). */
ucs_status_t uci_recv_op_create(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag,
                                const uci_digest_ops_t *digest, uint64_t length, uint32_t chunk_size, unsigned arity,
                                uci_recv_op_t **op_p);

/** What a header says of the whole message, if it is flagged LAST. */
UCI_INLINE void uci_recv_op_learn_root(uci_recv_op_t *op, const uci_am_hdr_t *hdr)
{
    if (hdr->flags & UCI_AM_FLAG_LAST) {
        op->chunk.root      = hdr->extra;
        op->chunk.have_root = true;
    }
}

/** What would have fetched a chunk into the user's buffer has failed, and may have written there: is it still right, if it was? */
void uci_recv_op_chunk_torn(uci_recv_op_t *op, uint32_t index, const void *target, size_t length);

/** A chunk has been fetched, and stored as it is. */
void uci_recv_op_chunk_landed(uci_recv_op_t *op, uint32_t index, uint64_t value);

/** A chunk has been verified and stored: what was wrong with it before counts as healed. @param rung  what brought it.
 *  @param changed  the sender says that it is not what it was when it was sent first. */
void uci_recv_op_chunk_good(uci_recv_op_t *op, uint32_t index, uint64_t value, uci_rung_t rung, bool changed);

/** Chunks of a generic datatype that are verified are unpacked, if they are the next ones: the rest of what they cut must be to come. Of the border
 *  behind them no more is known than @a cut says. @return false: as uci_recv_op_unpack(). */
bool uci_recv_op_unpack_next(uci_recv_op_t *op, uint32_t first, const void *data, size_t length, uci_cut_t cut);

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

/** Chunk @a index arrived as @a data by @a way, and its digest is not @a expected. @param data  NULL: it was not seen. */
void uci_recv_op_chunk_bad(uci_recv_op_t *op, uint32_t index, uci_way_t way, uint64_t expected, const void *data,
                           size_t length);

/** The user's buffer holds bytes of digest @a value for a chunk that should have @a expected. */
void uci_recv_op_compare(uci_recv_op_t *op, uint32_t index, uint64_t value, uint64_t expected);

/** What the sender says is the digest of chunk @a index, which may have come already. */
void uci_recv_op_leaf(uci_recv_op_t *op, uint32_t index, uint64_t leaf);

/** Tell the sender that its message is matched. @param flags  REPAIR: it has been told before. */
void uci_recv_op_cts(uci_recv_op_t *op, uint16_t flags);

/** All of it is here, and verified. End: FIN, the user's request, memory. */
void uci_recv_op_deliver(uci_recv_op_t *op);

/** The same with this status, and with what there is. */
void uci_recv_op_abandon(uci_recv_op_t *op, ucs_status_t status);

/** The worker goes: give keys back to UCX; then, when UCX's part is gone, forget what never ended. */
void uci_recv_shutdown(uci_worker_t *worker);
void uci_recv_cleanup(uci_worker_t *worker);

#endif
