/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The receive operations of a worker: their peers name them by their slot in a table, or by number.
 */
#ifndef UCI_RECV_TABLE_H_
#define UCI_RECV_TABLE_H_

#include "peer.h"
#include "worker_state.h"
#include "am_handler.h"
#include "transfer/recv_op_part.h"

/** Take a slot. @return UINT32_MAX: there is no memory. */
uint32_t uci_recv_slot_get(uci_worker_t *worker, uci_recv_op_t *op);
void uci_recv_slot_put(uci_worker_t *worker, uint32_t slot);

/** @return the operation for this message, or NULL: it is over, or has not begun. */
uci_recv_op_t *uci_recv_op_by_slot(uci_worker_t *worker, uint32_t slot, const uci_peer_t *peer, uint32_t seq);
uci_recv_op_t *uci_recv_op_by_seq(uci_peer_t *peer, uint64_t seq);

/** The receive that an active message is about, or NULL: it is over. */
uci_recv_op_t *uci_recv_op_of(const uci_am_t *am);

#endif
