/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Mailboxes: a peer's box in ours, and ours in its, and all of ours (mailbox.h): the memory that its peers write to, and what it keeps of it.
 * mailbox.c writes it, and link_send.c, which chooses the carrier.
 */
#ifndef UCI_MAILBOX_PART_H_
#define UCI_MAILBOX_PART_H_

#include "ucp/shared_memory.h"
#include "box/doorbell.h"
#include "ucp/ucp_api.h"
#include "box/box.h"

struct uci_peer;

typedef struct uci_mailbox_peer {
    bool used;            /**< frames go through its mailbox just now, see link_send.h */
    bool mapped;          /**< its mailbox */
    bool offered;         /**< it has been offered a box of ours, or can't use one */
    int8_t own;           /**< its box in our mailbox, -1: none */
    uint8_t number;       /**< of our box in its */
    uint8_t streak_shift; /**< streaks of UCI_LINK_STREAK << this, since the last ones ended in vain */
    uint16_t streak;      /**< active messages in a row, while it is mapped */
    uci_box_tx_t tx;      /**< that, if `mapped` */
    uint8_t *doorbells;   /**< of that mailbox */
    uint64_t am_until;    /**< frames below go, or have gone, by active message: the mailbox has to wait for these */
    uint64_t key;         /**< of the box */
    ucp_rkey_h rkey;      /**< of the memory */
} uci_mailbox_peer_t;

UCI_INLINE void uci_mailbox_part_init(uci_mailbox_peer_t *box)
{
    box->own = -1;
}

UCI_INLINE bool uci_mailbox_part_is_idle(const uci_mailbox_peer_t *box)
{
    return (box->own < 0) && !box->mapped && (box->rkey == NULL);
}

/** @param sent  frames that have gone to it. */
UCI_INLINE void uci_mailbox_part_resume(uci_mailbox_peer_t *box, uint64_t sent)
{
    box->am_until = sent;
}

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
    bool untold; /**< nothing has come yet that says that its sender knows the key */
    bool lost;   /**< where its next frame begins is not known: it is looked for by its mark */
} uci_mailbox_box_t;

/** Our own */
typedef struct uci_mailbox {
    bool tried;
    uint64_t keys;      /**< that have been made */
    unsigned count;     /**< of boxes that have been given away, ever: those behind are free */
    unsigned look_next; /**< box to look into although nobody has rung */
    unsigned lost;      /**< boxes that are */
    unsigned hot;       /**< up to so many boxes are looked into each turn: UCI_MAILBOX_HOT, or 0 if any is lost */
    uint8_t *region;    /**< `memory`: doorbells, then boxes; NULL: there is no shared memory */
    size_t size;        /**< of that, in bytes */
    unsigned capacity;  /**< boxes */
    uint32_t granules;  /**< of the ring of each */
    uci_mailbox_box_t *boxes;
    uci_shared_memory_t memory;
} uci_mailbox_t;

#endif
