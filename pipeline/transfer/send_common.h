/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What all sends that take more than one frame, or wait for FIN, have in common: their life, the bytes of their chunks, and being
 * completed from a copy.
 */
#ifndef UCI_SEND_COMMON_H_
#define UCI_SEND_COMMON_H_

#include "base/peer.h"
#include "base/worker_state.h"
#include "send_op_part.h"

/** @return an operation in state DESCRIBED; NULL: no memory (logged). */
uci_send_op_t *uci_send_op_create(uci_peer_t *peer, uint64_t length);

/** It has not been sent, or is over: release everything. */
void uci_send_op_destroy(uci_send_op_t *op);

/** @return the operation of our message @a seq to @a peer; NULL: it is over. */
uci_send_op_t *uci_send_op_find(uci_peer_t *peer, uint64_t seq);

/** @return what is known of a generic datatype behind chunk @a index, 0: nothing. */
uci_border_t uci_send_op_border(const uci_send_op_t *op, uint32_t index);

/** Copy the message, unless that has been done. @return true if the user's buffer is free now, and op->req forgotten; else its request
 *  completes with the message. */
bool uci_send_buffer(uci_send_op_t *op);

/** The bytes of the next chunk, with their digest. @param dst  where to; others may be able to write there.
 *  @param cut_p  0 but for a generic datatype.
 *  @return UCS_OK; else a generic datatype can't be packed (logged), and the operation has failed. */
ucs_status_t uci_send_op_load(uci_send_op_t *op, uint32_t index, void *dst, uint32_t length, uci_cut_t *cut_p,
                              uint64_t *value_p);

/** Chunks are to be read in any order from now on: a generic datatype is copied. @return as uci_send_op_load(). */
ucs_status_t uci_send_op_settle(uci_send_op_t *op);

/** What is left of it can't be packed, as @a status says: the user's send ends with that, and its receiver is told when it asks.
 *  The operation may be over, and gone, afterwards. */
void uci_send_op_fail(uci_send_op_t *op, ucs_status_t status);

/** The program has given up, or lost, the endpoint that it was sent by: the user's send ends with @a status, and its receiver gets it all the
 *  same, from a copy. Nothing is done to one that is being received, which ends by itself, nor to one that can't be copied. */
void uci_send_op_cancel(uci_send_op_t *op, ucs_status_t status);

/** One that has failed, which its receiver, who calls it @a remote_op, has asked about: tell. The operation is over. */
void uci_send_op_gone(uci_send_op_t *op, uint32_t remote_op);

/** For uci_control_t: UCX holds a part of the message no longer. @param span  not used. */
void uci_send_part_done(uci_send_op_t *op, void *span);

/** UCX has let go of one. The operation may be over, and gone, afterwards. */
void uci_send_op_unpin(uci_send_op_t *op);

/** The operation is over: complete the user's request, release everything. */
void uci_send_op_finish(uci_send_op_t *op, ucs_status_t status);

/** The operation has lost patience. @return the user's request, to be completed from a copy (uci_stream_part()); NULL: it can't be. */
uci_request_t *uci_send_op_buffer_early(uci_send_op_t *op);

/** @return when an operation that nobody has received is to be completed from a copy, UINT64_MAX: never. */
uint64_t uci_send_op_buffer_time(const uci_send_op_t *op);

/** Nobody has received this yet. @return likewise, if it is time, and plain UCX might have done so; else NULL. */
uci_request_t *uci_send_op_buffer_late(uci_send_op_t *op, uint64_t now);

/** The worker goes: unmap what is mapped for repairs; then, when UCX's part is gone, forget what never ended. */
void uci_send_shutdown(uci_worker_t *worker);
void uci_send_cleanup(uci_worker_t *worker);

/** Has the receiver begun to take it? Not known of what needs no answer. */
bool uci_send_op_is_matched(const uci_send_op_t *op);

/** Ask the receiver where it is with this operation. */
void uci_send_op_query(uci_send_op_t *op);

/** Ask where its receiver is with all messages of this sender: what is finished ends. Synchronous messages that are frames wait for nothing
 *  else, and there may be thousands of them. */
void uci_send_op_query_all(uci_send_op_t *op);

#endif
