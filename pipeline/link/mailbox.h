/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The carrier of frames between processes of one node: a mailbox, shared memory of the receiving worker, with a box (box.h) for
 * each peer that sends to it. UCX allocates it, and maps it for the peers (ucp_rkey_ptr), as it does the bounce slots.
 *
 * A box is a ring with one writer, so that a sender that dies, or writes nonsense, harms nobody else. Polling does not depend on
 * the number of peers: a few boxes are looked into each turn; where there are more, one line of doorbells tells which.
 *
 *     receiver                                        sender
 *     hears a first frame by active message: BOX
 *                                                     maps the mailbox; when all frames before have been acknowledged
 *     takes frames in their order                     it posts into the box
 *     tells how far it is in the box's first line     reads that when the box is full, and when it looks after its log
 *
 * Whatever becomes of the memory, the frames in the box are verified, numbered and in the sender's log. A header that is damaged
 * does not tell where the next frame begins, a mark that is damaged is not seen at all; then (when the header fails, or when SENT
 * says that there should be more) the box is lost: the receiver looks for the next mark that is right, now and then until one comes, and
 * goes on from there, so that damage costs the frame that is hit and no other. If the sender says that it has posted more, and there is no
 * mark all the same, the receiver takes what is right up to where the sender is, and goes on there. What is missing is
 * asked for, and comes by active message. A doorbell that is lost costs a while: boxes that are quiet are looked into now and then.
 *
 * Contexts with UCP_FEATURE_WAKEUP have none: memory that changes wakes nobody.
 */
#ifndef UCI_MAILBOX_H_
#define UCI_MAILBOX_H_

#include "base/peer.h"
#include "base/worker_state.h"

/** Receiver: give @a peer a box, once, if that is possible. To be called when it is known where to answer to. */
void uci_mailbox_offer(uci_peer_t *peer);

/** Most turns find nothing: whoever polls while he waits should not pay for more than looking. @return true: nothing lies in the boxes. */
UCI_INLINE bool uci_mailbox_is_quiet(uci_mailbox_t *mailbox)
{
    unsigned i, count = mailbox->count;

    if (count > mailbox->hot) {
        return false;
    }
    for (i = 0; i < count; ++i) {
        if (uci_box_rx_peek(&mailbox->boxes[i].rx) != NULL) {
            return false;
        }
    }
    return true;
}

/** Take what lies in the boxes. @return how many frames. */
unsigned uci_mailbox_poll(uci_worker_t *worker);

/** A frame of @a peer has come before its turn: look whether others have been passed by in its box, and take them. */
void uci_mailbox_look_back(uci_peer_t *peer);

/** Take what lies in the box of @a peer. */
void uci_mailbox_catch_up(uci_peer_t *peer);

/** @a peer says that in the box whose key ends in @a key it is at @a position: take what lies there, and go on there. */
void uci_mailbox_on_sent(uci_peer_t *peer, uint32_t key, uint64_t position);

/** Something of the peer's is asked for again: if it has not been told of its box for sure, tell it again. */
void uci_mailbox_repeat(uci_peer_t *peer);

/** It says nothing more: the box is for somebody else. */
void uci_mailbox_free(uci_peer_t *peer);

void uci_mailbox_cleanup(uci_worker_t *worker);

/** Sender: read how far the receiver is. @return true if it has gone on. */
bool uci_mailbox_heard(uci_peer_t *peer);

/** Sender: it is not to be written to any more. */
void uci_mailbox_leave(uci_peer_t *peer);
void uci_mailbox_unmap(uci_peer_t *peer);

#endif
