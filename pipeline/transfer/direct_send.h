/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The sending side of the direct path (direct.h): slots are filled, given back when they have been taken, and completed from a copy
 * where nobody takes them.
 */
#ifndef UCI_DIRECT_SEND_H_
#define UCI_DIRECT_SEND_H_

#include "base/path.h"

/** Take this path before the message is described: reserve slots. @param keep  slots to leave in the pool.  @return false: there are none to spare. */
bool uci_direct_start(uci_send_op_t *op, unsigned keep);

/** @return the slot of chunk 0, for the descriptor. */
uint16_t uci_direct_first_slot(const uci_send_op_t *op);

/** @return the bytes of chunk @a index, which is in a slot. */
void *uci_direct_data(const uci_send_op_t *op, uint32_t index);

/** Its user may be served with a copy: after a while that nobody takes it, or as soon as he waits for it. */
void uci_direct_be_patient(uci_send_op_t *op);

/** It may be fetched instead: nothing is filled within the call, and no more than its receiver needs to begin until he takes it. */
void uci_direct_be_careful(uci_send_op_t *op);

/** The receiver will not look at its slots: it gives them back, and is as when it was described without any. */
void uci_direct_withdraw(uci_send_op_t *op);

/** The receiver would rather not, but it goes through slots: tell him where it begins. */
void uci_direct_insist(uci_send_op_t *op);

/** The receiver asks where it is. @return true: for the first time. */
bool uci_direct_is_reminded(uci_send_op_t *op);

/** Fill them: the receiver need not have matched the message yet. */
void uci_direct_fill_first(uci_send_op_t *op);

/** No longer on this path, but its slots stay: the receiver may be reading them. */
void uci_direct_leave(uci_send_op_t *op);

/* ------------------------------------------------- for the row, direct.c */

/** @return true: the receiver, who has matched it, is told where it is, or will be. */
bool uci_direct_matched(uci_send_op_t *op);

/** Give its slots back. */
void uci_direct_release(uci_send_op_t *op);

/** An operation with this peer is gone: its slots are for those that wait. */
void uci_direct_serve(uci_peer_t *peer);

/** @return a chunk that is in a slot and has not been taken, drawn by @a random; UINT32_MAX: none, or not all are filled. */
uint32_t uci_direct_unread(const uci_send_op_t *op, uint64_t random, void **data_p);

/** For a dump. */
void uci_direct_describe_send(const uci_send_op_t *op, char *text, size_t size);

/** @return whether uci_direct_send_progress() has something to do: most turns it has not. */
bool uci_direct_sends_are_due(const uci_worker_t *worker);

/** Fill what has been taken, complete what is through. @return 0 if there was nothing to do: MPIs give the core away then, if there are
 *  more processes than cores. */
unsigned uci_direct_send_progress(uci_worker_t *worker);

#endif
