/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The mailbox of a worker (mailbox.h): the memory that its peers write to, and what it keeps of it.
 */
#ifndef UCI_MAILBOX_STATE_H_
#define UCI_MAILBOX_STATE_H_

#include "box/box.h"
#include "box/doorbell.h"
#include "shared_memory.h"

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
