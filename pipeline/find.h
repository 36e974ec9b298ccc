/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Orphans: frames that arrived with neither header intact (or with an older frame's). Nobody knows who sent
 * what, so all known peers are asked for their unacknowledged frames of that tag:
 *
 *     ASKED --FOUND from every peer--> one candidate fits --> received with the header the sender still has
 *                                  \-> none, or more than one sender: never a guess, but the policy
 *
 * A candidate is a frame we have not received. One whose digest fits the payload is certain. Else, if all
 * candidates come from one peer, it is the oldest one, since UCX matches messages of one sender and tag in order.
 */
#ifndef UCI_FIND_H_
#define UCI_FIND_H_

#include "worker.h"
#include "match.h"

/** Find out what this frame, matched to @a req, is; takes the frame over. */
void uci_find_start(uci_request_t *req, uci_frame_t *frame, ucp_tag_t tag, size_t total);

/** A frame that did not fit the user's buffer: find out which message it was, so that its sender may let go. */
void uci_find_truncated(uci_worker_t *worker, ucp_tag_t tag, size_t total);

/** Find out the length of a probed message. @return true if it is known now. */
bool uci_find_length(uci_message_t *message);

/** The message goes: nobody wants to know its length any more. */
void uci_find_forget(uci_message_t *message);

/** Ask again those who have not answered. */
void uci_find_progress(uci_worker_t *worker, uint64_t now);

/** @return when that is due, UINT64_MAX: never. */
uint64_t uci_find_due(const uci_worker_t *worker);

void uci_find_cleanup(uci_worker_t *worker);

/* Called by the dispatcher */
void uci_find_on_find(uci_peer_t *peer, const uci_am_hdr_t *hdr);
void uci_find_on_found(uci_peer_t *peer, const uci_am_hdr_t *hdr, const void *data, size_t length);

#endif
