/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Closing without waiting: a side that closes sends the copies of what has not been acknowledged yet to the
 * receiver, which keeps them in case it has to repair. So nobody has to wait for a message to be matched,
 * which may never happen. What of a message is kept has been compared with its digest when it came.
 */
#ifndef UCI_HANDOVER_H_
#define UCI_HANDOVER_H_

#include "worker.h"
#include "control.h"

/** Closing side: hand over what @a peer has not acknowledged. */
void uci_handover_send(uci_peer_t *peer);

/** Is there a message that the user takes for sent, and of which @a peer has not said that it has it? @return how many. */
size_t uci_handover_lacking(const uci_peer_t *peer);

/** Receiving side: keep one chunk of message @a seq, or its frame. A damaged one is dropped: the sender will ask what we lack. */
void uci_handover_keep(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr, const void *data, size_t length);

/** Feed what was kept of message @a seq to the operation that needs it. @return false: nothing was kept. */
bool uci_handover_take(uci_peer_t *peer, uint64_t seq);

/** The messages of which there are intact copies of all: as ranges, in order; @a ranges may be NULL. @return how many. */
size_t uci_handover_list_held(const uci_peer_t *peer, uci_seq_range_t *ranges);

/** Frames of tag @a tag that were kept, as the sender would describe them in FOUND. @return how many, up to @a max. */
size_t uci_handover_find(const uci_peer_t *peer, ucp_tag_t tag, uci_am_found_t *found, size_t max);

/** The frame of message @a seq has arrived whole: its copy is not needed. */
void uci_handover_drop_frame(uci_peer_t *peer, uint64_t seq);

/** Forget all. */
void uci_handover_cleanup(uci_peer_t *peer);

#endif
