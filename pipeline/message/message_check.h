/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What can be told of an active message from itself and from the operation it is about: part of what wire_check.h describes. A new message, or
 * flag, begins with a row of the table here.
 *
 * All of these return NULL, or what is wrong, for people.
 */
#ifndef UCI_MESSAGE_CHECK_H_
#define UCI_MESSAGE_CHECK_H_

#include "base/wire.h"
#include "base/recv_op.h"

/** An active message whose check is right. @param data  its payload, aligned unless it is DATA, in memory that nobody else can write to;
 *                                                of SEGMENT what follows its header. */
const char *uci_wire_check_message(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data, size_t length);

/** The part of this that depends on the receive it is about, for what has been kept since before that began. */
const char *uci_wire_check_for(const uci_recv_op_t *op, const uci_am_hdr_t *hdr, const void *data, size_t length);

/** Name of a type of message, for people. */
const char *uci_wire_name(const uci_am_hdr_t *hdr);

#endif
