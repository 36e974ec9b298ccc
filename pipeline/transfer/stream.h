/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The path that is always possible: chunks as active messages, each with its digest; also what goes that way for a repair, and when
 * the sender closes.
 */
#ifndef UCI_STREAM_H_
#define UCI_STREAM_H_

#include "base/path.h"

/**
 * Send a chunk again, as the receiver asks. That waits for its turn, as chunks do that are sent first: a peer that comes back from a long
 * computation may have asked often. Of several questions about a chunk one is answered; and one more if any came after UCX had got the
 * answer, which may have come damaged.
 */
void uci_stream_again(uci_send_op_t *op, uint32_t index);

/** The same of all chunks. */
void uci_stream_all_again(uci_send_op_t *op);

/** Closing: send all chunks unasked, if the user takes the message for sent. The operation may be over, and gone, afterwards. */
void uci_stream_hand_over(uci_send_op_t *op);

/**
 * The user's send is over, with a copy that nobody has received, and its program may not come back for long: so what does not lie where its receiver
 * reaches it goes unasked, as plain UCX sends what it completes. @a req completes when UCX has let go of that, at once perhaps.
 */
void uci_stream_part(uci_send_op_t *op, uci_request_t *req);

/** Bytes of a message, beyond which that is not done. Tests set it. */
extern size_t uci_stream_part_max;

/** What has not been sent goes as a stream. */
void uci_stream_rest(uci_send_op_t *op);

/** Its row in path_table.c */
extern const uci_path_ops_t uci_stream_path;

#endif
