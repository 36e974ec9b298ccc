/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sender: memory that a receiver is told it may read, by RDMA where there is any, to repair a message (repair.h): the user's buffer, or
 * copies of chunks. All of it is valid until FIN.
 */
#ifndef UCI_GRANT_H_
#define UCI_GRANT_H_

#include "send_op_part.h"

/** Tell where @a count chunks can be read, as they are now. */
void uci_grant_chunks(uci_send_op_t *op, const uint32_t *indexes, uint32_t count);

/**
 * Tell where all of a message can be read, in case the receiver needs it. Does nothing where that is not worth
 * it: no RDMA, a single chunk, a buffer in pieces, or UCI_MODE=detect.
 */
void uci_grant_ahead(uci_send_op_t *op);

/** The operation ends: nobody reads our memory any more. */
void uci_grant_revoke(uci_send_op_t *op);

#endif
