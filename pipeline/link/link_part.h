/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The link's part of a peer: any file of link writes it, others read.
 */
#ifndef UCI_LINK_PART_H_
#define UCI_LINK_PART_H_

#include "mailbox_part.h"
#include "bounce_part.h"
#include "inject/inject_part.h"
#include "ucp/ucp_api.h"
#include "util/list.h"
#include "util/seq_list.h"

struct uci_frame;
struct uci_request;

/** Sending: numbers, and the log, a ring by number of the frame. What a small message needs. */
typedef struct uci_link_tx {
    uint64_t next;           /**< number of the next frame */
    uint64_t posted;         /**< those below have been handed to a carrier; the others wait for room */
    uint64_t base;           /**< lowest number that may be in the ring */
    uint64_t acked;          /**< everything below has been acknowledged */
    uint64_t dropped;        /**< UCI_LOG_SIZE has been applied to what is below */
    struct uci_frame **ring; /**< NULL: nothing has ever been sent */
    uint64_t mask;           /**< size - 1; size 0 is mask UINT64_MAX */
    bool watched;            /**< in worker->watched */
} uci_link_tx_t;

/** The log's timer, see uci_link_look(), and what is beside its ring. */
typedef struct uci_link_log {
    uci_list_t watched_link;
    uci_list_t waiting_link; /**< in worker->waiting while frames wait for room */
    uint64_t seen;           /**< tx.acked when it was looked at */
    uint64_t time;           /**< when that had changed, or SENT was sent */
    unsigned asks;           /**< SENTs without an answer */
    unsigned wait_turns;     /**< turns of progress without room */
    uint32_t held;           /**< frames that UCX has not let go of */
    uint64_t settled;        /**< tx.next when the peer had closed: what was sent before it has, or never wants */
    uci_inject_peer_t inject;

    /* what has been acknowledged and waits for FIN, see txlog.h */
    struct uci_frame *kept_one; /**< any number of them, in no order */
    struct uci_frame **kept;    /**< instead, if they are many: by number */
    uint32_t kept_mask;         /**< size - 1 */
    uint32_t kept_count;
} uci_link_log_t;

/** Receiving. */
typedef struct uci_link_rx {
    uint64_t next;    /**< everything below has been verified and delivered */
    uint32_t unacked; /**< frames delivered since the last acknowledgement */
    uint32_t unacked_bytes;
    bool damaged;              /**< something of it may have come damaged: what it sent last may be missing */
    bool special;              /**< there are gaps, or frames that came too early */
    struct uci_request *bound; /**< matched to frame `next`, whose payload was damaged; or NULL */
    uint64_t gap_time;         /**< when what is missing is to be asked for again */
    uci_seq_list_t held;       /**< uci_held_t: frames that came too early */
    uci_seq_list_t gaps;       /**< uci_gap_t: frames that came damaged */
    uci_list_t suspect_link;   /**< in worker->suspects while something is missing */
    unsigned gap_asks;         /**< times that it has been */
    uint64_t gone_end;         /**< of frames below, some have not come and have no copy any more (GONE); 0: none */
    uint64_t gone_time;        /**< when that was said of the last of these */
} uci_link_rx_t;

UCI_INLINE void uci_link_part_init(uci_link_tx_t *tx, uci_link_log_t *log, uci_link_rx_t *rx)
{
    tx->mask = UINT64_MAX;
    uci_list_init(&log->watched_link);
    uci_list_init(&log->waiting_link);
    uci_seq_list_init(&rx->held);
    uci_seq_list_init(&rx->gaps);
    uci_list_init(&rx->suspect_link);
}

/** Nothing is under way in either direction, and UCX holds nothing. */
UCI_INLINE bool uci_link_part_is_idle(const uci_link_tx_t *tx, const uci_link_log_t *log, const uci_link_rx_t *rx)
{
    return (tx->ring == NULL) && (log->kept_count == 0) && (tx->acked == tx->next) && (tx->posted == tx->next) &&
           !tx->watched && (log->held == 0) && (log->inject.late == NULL) && uci_list_is_empty(&log->waiting_link) &&
           uci_seq_list_is_empty(&rx->held) && uci_seq_list_is_empty(&rx->gaps) &&
           uci_list_is_empty(&rx->suspect_link) && (rx->bound == NULL);
}

/** So it was when so many frames had gone, and had come. */
UCI_INLINE void uci_link_part_resume(uci_link_tx_t *tx, uci_link_log_t *log, uci_link_rx_t *rx, uint64_t sent,
                                     uint64_t received)
{
    tx->next = tx->posted = tx->base = tx->acked = tx->dropped = sent;
    log->settled                                               = sent;
    rx->next                                                   = received;
    rx->gone_end                                               = 0;
}

/** Of all peers. */
typedef struct uci_link_worker {
    uci_list_t watched;  /**< uci_peer_t that have not acknowledged all: see uci_link_look() */
    uci_list_t waiting;  /**< uci_peer_t whose mailbox is full */
    uci_list_t suspects; /**< uci_peer_t of which something is missing */
    unsigned questions;  /**< synchronous frames that went to mailboxes since UCX had nothing for us */
    size_t log_bytes;    /**< in the frames of the logs, and in what large logs take themselves */
    size_t log_limit;
    uci_mailbox_t mailbox;
    uci_bounce_t bounce;
} uci_link_worker_t;

UCI_INLINE void uci_link_worker_init(uci_link_worker_t *link, size_t log_limit)
{
    uci_list_init(&link->watched);
    uci_list_init(&link->waiting);
    uci_list_init(&link->suspects);
    link->log_limit = log_limit;
}

#endif
