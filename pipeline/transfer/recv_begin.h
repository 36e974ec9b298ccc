/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The first answer to a description: what is in slots is taken there, unless it should be fetched since both sides send; else CTS.
 */
#ifndef UCI_RECV_BEGIN_H_
#define UCI_RECV_BEGIN_H_

#include "recv_op_part.h"

/** @param slot  that chunk 0 is in, as the description says. The operation may be over, and gone, afterwards. */
void uci_recv_begin(uci_recv_op_t *op, uint32_t slot);

#endif
