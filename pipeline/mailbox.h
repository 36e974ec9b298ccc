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
 * says that there should be more) the receiver gives the box a new key, tells it by BOX, and asks for what it lacks: the sender
 * begins anew at its start, and sends again by active message. A doorbell that is lost costs a while: boxes that are quiet are
 * looked into now and then.
 *
 * Contexts with UCP_FEATURE_WAKEUP have none: memory that changes wakes nobody.
 */
#ifndef UCI_MAILBOX_H_
#define UCI_MAILBOX_H_

#include "ucp_api.h"
#include "box.h"
#include "doorbell.h"
#include "wire.h"

struct uci_worker;
struct uci_peer;

#define UCI_MAILBOX_BOXES 64u /**< peers that have a box, at most; any more send active messages */
#define UCI_MAILBOX_HOT   4u  /**< so many boxes are looked into each turn; of more the bells are */

/*
 * The shared memory: a line of doorbells, then boxes of one size. How many there are, and of what size, depends on how many processes the
 * node has, as far as the launcher tells: UCX takes all of the memory at once.
 */
#define UCI_MAILBOX_BELLS UCI_CACHE_LINE /**< bytes in front of the boxes */

typedef struct uci_mailbox_box {
    uci_box_rx_t rx;
    struct uci_peer *peer; /**< NULL: free */
    uint64_t key;
    bool renewed; /**< has a new key, under which nothing has come yet */
} uci_mailbox_box_t;

/** Our own */
typedef struct uci_mailbox {
    bool tried;
    uint64_t keys;      /**< that have been made */
    unsigned count;     /**< of boxes that have been given away, ever: those behind are free */
    unsigned look_next; /**< box to look into although nobody has rung */
    uint8_t *region;    /**< doorbells, then boxes; NULL: there is no shared memory */
    size_t size;        /**< of that, in bytes */
    unsigned capacity;  /**< boxes */
    uint32_t granules;  /**< of the ring of each */
    uci_mailbox_box_t *boxes;
    ucp_mem_h memh;
    void *rkey;
    size_t rkey_length;
} uci_mailbox_t;

/** Receiver: give @a peer a box, once, if that is possible. To be called when it is known where to answer to. */
void uci_mailbox_offer(struct uci_peer *peer);

/** Take what lies in the boxes. @return how many frames. */
unsigned uci_mailbox_poll(struct uci_worker *worker);

/** Take what lies in the box of @a peer, which says that it is at @a position. If it is not there: a new key. */
void uci_mailbox_catch_up(struct uci_peer *peer, uint64_t position);

/** Something of the peer's is asked for again: if it has not been told of the box's new key for sure, tell it again. */
void uci_mailbox_repeat(struct uci_peer *peer);

/** It says nothing more: the box is for somebody else. */
void uci_mailbox_free(struct uci_peer *peer);

void uci_mailbox_cleanup(struct uci_worker *worker);

/** Sender: called by the dispatcher */
void uci_mailbox_on_box(struct uci_peer *peer, const void *data, size_t length);

/** Sender: read how far the receiver is. @return true if it has gone on. */
bool uci_mailbox_heard(struct uci_peer *peer);

/** Sender: it is not to be written to any more. */
void uci_mailbox_leave(struct uci_peer *peer);
void uci_mailbox_unmap(struct uci_peer *peer);

#endif
