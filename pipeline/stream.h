/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The path that is always possible: chunks as active messages, each with its digest; also what goes that way for a repair, and when
 * the sender closes.
 */
#ifndef UCI_STREAM_H_
#define UCI_STREAM_H_

#include "path.h"

/** Send one chunk, with @a flags beside LAST. */
ucs_status_t uci_stream_chunk(uci_send_op_t *op, uint32_t index, uint16_t flags);

/** Closing: send all chunks unasked, if the user takes the message for sent. The operation may be over, and gone, afterwards. */
void uci_stream_hand_over(uci_send_op_t *op);

/** What has not been sent goes as a stream. */
void uci_stream_rest(uci_send_op_t *op);

/** Its row in path_table.c */
extern const uci_path_ops_t uci_stream_path;

#endif
