/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of a peer that active messages need: any file of link writes it, others read.
 */
#ifndef UCI_CONTROL_PART_H_
#define UCI_CONTROL_PART_H_

#include "util/pool.h"
#include "util/list.h"

typedef struct uci_control_peer {
    bool hello_sent;
    bool heard;             /**< something has come from it: it knows our uid */
    uci_list_t pending;     /**< uci_control_t that wait for an endpoint */
    uci_list_t unsent_link; /**< in worker->unsent while some of these wait for UCI's part of a turn */
    uint32_t sending;       /**< uci_control_t that UCX has not let go of and a close waits for */
    uint32_t held;          /**< uci_control_t of it that there are */
    uint32_t byes;          /**< BYEs that UCX has not let go of */
    uint64_t fins_sent;     /**< number of all FINs */
    uint64_t damage;        /**< messages beside the frames that came damaged, see ask.h */
    uint64_t record_next;   /**< counter of the next record to it */
    uint64_t records_left;  /**< so many more follow it that are this pair's */
} uci_control_peer_t;

UCI_INLINE void uci_control_part_init(uci_control_peer_t *talk)
{
    uci_list_init(&talk->pending);
    uci_list_init(&talk->unsent_link);
}

UCI_INLINE void uci_control_part_cleanup(uci_control_peer_t *talk)
{
    uci_list_del(&talk->unsent_link);
}

UCI_INLINE bool uci_control_part_is_idle(const uci_control_peer_t *talk)
{
    return (talk->held == 0) && uci_list_is_empty(&talk->unsent_link);
}

/** It introduces itself anew: of who we are the other side may have kept as little. */
UCI_INLINE void uci_control_part_resume(uci_control_peer_t *talk, uint64_t fins_sent)
{
    talk->heard     = true;
    talk->fins_sent = fins_sent;
}

/** Of all peers. */
typedef struct uci_control_worker {
    uci_pool_t messages;   /**< uci_control_t with a small payload */
    uci_list_t unsent;     /**< uci_peer_t with messages for UCI's part of a turn; they count in ops_active */
    bool sends_unsent;     /**< in that: what is in `unsent` is being sent */
    bool resync;           /**< something damaged was dropped: ask again for whatever is due */
    bool ask_now;          /**< at the end of this turn */
    uint64_t resync_time;  /**< when, in ns */
    uint64_t round_trip;   /**< from CTS to what it brings, smoothed, in ns; 0: not known yet */
    uint64_t dropped;      /**< messages that arrived damaged */
    uint64_t intact;       /**< and those that did not */
    uint64_t damage;       /**< of those that arrived damaged, nobody's that is known, see ask.h */
    uint64_t sealed_pairs; /**< numbers given to pairs, see wire.h */
} uci_control_worker_t;

#define UCI_CONTROL_SLAB 32 /**< messages that are allocated at a time */

UCI_INLINE void uci_control_worker_init(uci_control_worker_t *talk, size_t message_size)
{
    uci_list_init(&talk->unsent);
    uci_pool_init(&talk->messages, message_size, UCI_CONTROL_SLAB, NULL, NULL, NULL);
}

UCI_INLINE void uci_control_worker_cleanup(uci_control_worker_t *talk)
{
    uci_pool_cleanup(&talk->messages);
}

#endif
