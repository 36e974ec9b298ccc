/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Chunks that come as active messages, of a stream or sent again: verified while they move to where they belong.
 */
#ifndef UCI_STREAM_RECV_H_
#define UCI_STREAM_RECV_H_

#include "base/am_handler.h"

/** @return what is wrong with a chunk of @a op, NULL: nothing. */
const char *uci_stream_check_chunk(const uci_recv_op_t *op, const uci_am_t *am);

/** A chunk of @a op has come, and passed that check. The operation may be over, and gone, afterwards. */
void uci_stream_take(uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *data, size_t length);

#endif
