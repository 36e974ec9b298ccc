/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The direct path, between processes of one node: a large message goes through a few bounce slots in turn. The sender
 * copies each chunk into a slot with its digest in the same pass, the receiver verifies while it copies out, and
 * both cores work at the same time. No system call, no message but the descriptor:
 *
 *     sender                                        receiver
 *     sends the descriptor, fills some slots
 *                                                   matches it, finds the slots full, takes one after the other
 *     fills another when one has been taken         (each names the next), acknowledging all but the last
 *     completes when the last one has been taken    acknowledges the last when the message is verified whole
 *
 * A chunk whose digest does not match goes up the ladder as on any path (repair.h). A slot whose own fields are damaged
 * ends the path for this message: the receiver says CTS, and the sender starts anew with active messages.
 *
 * A sender without slots to spare describes its message without them; if it has some when CTS comes, it tells which
 * (SLOT). If not, the message waits for those of another one that the same receiver is taking just now, else it goes by active
 * messages: it never waits for a slot that stays full until somebody else receives.
 */
#ifndef UCI_DIRECT_H_
#define UCI_DIRECT_H_

#include "base/path.h"

/** Slots that one message has at a time, at most */
#define UCI_DIRECT_WINDOW 8

/** Slots that messages leave for those that are matched already */
#define UCI_DIRECT_KEEP (UCI_SLOT_COUNT / 4)

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

/** Take what is there, beginning with chunk 0 in @a slot. The operation may be over afterwards.
 *  @return false: this path is not possible, nothing has been done. */
bool uci_direct_take(uci_recv_op_t *op, uint16_t slot);

/** What it knows of a receive, see uci_path_state(): its own, and for the fuzzer, whose slots are to be believed, or not quite. */
typedef struct uci_direct_recv {
    uint32_t taken;    /**< chunks, from slots */
    uint16_t slot_now; /**< of the chunk to take, or the one before */
    bool held;         /**< it has been taken, but not acknowledged */
} uci_direct_recv_t;

/** Its row in path_table.c */
extern const uci_path_ops_t uci_direct_path;

#endif
