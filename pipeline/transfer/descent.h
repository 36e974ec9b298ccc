/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * When all chunks match and the root of their tree does not, the receiver descends through the sender's tree to those
 * that differ, and to no others:
 *
 *     receiver                                            sender
 *     TREE: the top node -------------------------------> NODES: its children, and the root as it is now
 *     the root matches after all: done. Else
 *     TREE: the nodes that differ, of one level --------> NODES: their children
 *     ... a level deeper each time; what differs of the children of level 1 are chunks, to be repaired (repair.h)
 *
 * A question names as many nodes as have children of UCI_DESCENT_BYTES together, and there is one question at a time. A
 * tree whose leaves are no more than that is answered by LEAVES, all of them. Nodes that lie, or that were damaged in a
 * way their own check cannot see, lead to chunks that are fetched again for nothing, or nowhere: then the root does not
 * match still, and the next descent, of a few in all, begins.
 */
#ifndef UCI_DESCENT_H_
#define UCI_DESCENT_H_

#include "link/control.h"
#include "base/am_handler.h"
#include "recv_op_part.h"
#include "send_op_part.h"

/** All chunks have arrived and the root is not known, or does not match: find out what differs. */
void uci_descent_start(uci_recv_op_t *op);

/** The answer has not come: ask again. */
void uci_descent_ask(uci_recv_op_t *op);

/** All is compared: what differs is bad, and all else is good. The operation is to be advanced afterwards. */
void uci_descent_end(uci_recv_op_t *op);

/** @return a message of type LEAVES, or SEGMENT, with the digests of all chunks and the root; NULL if there is no memory. */
uci_control_t *uci_descent_get_leaves(uci_send_op_t *op, uci_am_type_t type, uint16_t flags);

/** Tell the receiver the digests of all chunks, and the root. @param flags  LAST: unasked, of a message by segments. */
void uci_descent_send_leaves(uci_send_op_t *op, uint16_t flags);

/** LEAVES, or a segment that brings them: the digests of all chunks, and the root. */
void uci_descent_on_leaves(uci_am_t *am);

#endif
