/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The one place that every message passes which a receive of the program's gets whole: verified, in the user's buffer, and the receive
 * not completed yet. Only in a process whose messages are damaged there (UCI_FAULT, target escape); all others don't know of it, and the way of
 * a small message has no test for it: uci_recv_arrived_way(). What UCI receives for itself, on workers of its own, is left alone: uci_recv_attach().
 *
 * Not those that are cut off (UCS_ERR_MESSAGE_TRUNCATED), and not those that could not be repaired.
 */
#ifndef UCI_DELIVERY_H_
#define UCI_DELIVERY_H_

#include "base/peer.h"
#include "base/request.h"

/** A message of @a length bytes from @a peer lies in the user's buffer of @a req, which is about to complete. Called within the
 *  worker's lock. */
void uci_delivery_watch(uci_request_t *req, const uci_peer_t *peer, size_t length);

#endif
