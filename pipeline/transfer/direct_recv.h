/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiving side of the direct path (direct.h): slots are taken one after the other, verified as they are copied out.
 */
#ifndef UCI_DIRECT_RECV_H_
#define UCI_DIRECT_RECV_H_

#include "base/path.h"

/** Take what is there, beginning with chunk 0 in @a slot. The operation may be over afterwards.
 *  @return false: this path is not possible, nothing has been done. */
bool uci_direct_take(uci_recv_op_t *op, uint16_t slot);

/** What it knows of a receive, see uci_path_state(): its own, and for the fuzzer, whose slots are to be believed, or not quite. */
typedef struct uci_direct_recv {
    uint32_t taken;    /**< chunks, from slots */
    uint16_t slot_now; /**< of the chunk to take, or the one before */
    bool held;         /**< it has been taken, but not acknowledged */
} uci_direct_recv_t;

/* ------------------------------------------------- for the row, direct.c */

/** Acknowledge the last slot: the message is verified whole. @return false: its sender has to hear of it in another way. */
bool uci_direct_finish(uci_recv_op_t *op);

/** For a dump. */
void uci_direct_describe_recv(const uci_recv_op_t *op, char *text, size_t size);

/** @return whether uci_direct_recv_progress() has something to do. */
bool uci_direct_recvs_are_due(const uci_worker_t *worker);

/** Take what has been filled. @return 0 if there was nothing to do. */
unsigned uci_direct_recv_progress(uci_worker_t *worker);

#endif
