/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Large messages to a peer: stream.c, direct_send.c and send_common.c write it.
 */
#ifndef UCI_TRANSFER_PART_H_
#define UCI_TRANSFER_PART_H_

#include "util/pool.h"
#include <stdlib.h>

#include "util/list.h"

/** Chunks before the first trial, when all memory has been touched */
#define UCI_FILL_FIRST 1024

/** How its slots are filled (fill.h). Of one thread at a time. */
typedef struct uci_fill {
    uint32_t count; /**< chunks so far */
    uint32_t trial; /**< the one that the next trial begins with, or that this one began with */
    uint32_t since; /**< the one that the last trial ended with */
    bool far;       /**< around the caches is the better way */
    float ns[2];    /**< for a KiB, smoothed: through, and around; 0: not measured */
    float settled;  /**< that of the way taken, when it was chosen; 0: none has been chosen */
} uci_fill_t;

typedef struct uci_transfer_peer {
    /* chunks, see stream.h */
    uci_list_t streams;     /**< uci_send_op_t that are STREAMING, in the order they are sent */
    uci_list_t agains;      /**< uci_send_op_t that have chunks to be sent again */
    uci_list_t stream_link; /**< in worker->streams while there are some and UCX does not hold a window of chunks */
    uint32_t chunks_held;   /**< chunks that UCX holds */

    /* slots, see direct.h */
    uci_list_t queued; /**< uci_send_op_t that are QUEUED, in the order of their CTS */
    uint32_t draining; /**< messages in our slots that it is taking */
    uint32_t ops;      /**< uci_send_op_t and uci_recv_op_t that there are */
    uci_fill_t fill;
} uci_transfer_peer_t;

UCI_INLINE void uci_fill_init(uci_fill_t *fill)
{
    *fill = (uci_fill_t){.trial = UCI_FILL_FIRST};
}

UCI_INLINE void uci_transfer_part_init(uci_transfer_peer_t *xfer)
{
    uci_list_init(&xfer->streams);
    uci_list_init(&xfer->agains);
    uci_list_init(&xfer->stream_link);
    uci_list_init(&xfer->queued);
    uci_fill_init(&xfer->fill);
}

UCI_INLINE void uci_transfer_part_cleanup(uci_transfer_peer_t *xfer)
{
    uci_list_del(&xfer->stream_link);
}

UCI_INLINE bool uci_transfer_part_is_idle(const uci_transfer_peer_t *xfer)
{
    return (xfer->ops == 0) && (xfer->chunks_held == 0) && (xfer->draining == 0) &&
           uci_list_is_empty(&xfer->stream_link);
}

/** Of all peers. */
typedef struct uci_transfer_worker {
    uci_list_t streams;      /**< uci_peer_t to send chunks to */
    uci_list_t offers;       /**< uci_send_op_t whose segments are being fetched, and digested */
    uci_list_t landed;       /**< uci_segment_t that have been fetched, to be digested */
    uci_list_t bounces;      /**< uci_send_op_t that fill bounce buffers */
    uci_list_t direct_sends; /**< uci_send_op_t that go through our slots */
    uci_list_t direct_recvs; /**< uci_recv_op_t that come through a peer's slots */
    uci_list_t send_ops;     /**< uci_send_op_t: sends that wait for FIN */
    uci_list_t recv_ops;     /**< uci_recv_op_t: receives in progress */
    unsigned large_sends;    /**< see both_ways.h */
    unsigned large_recvs;
    uci_pool_t slot_copies; /**< copies of messages that fit into a slot: UCI_SLOT_SIZE bytes each */
    size_t copy_bytes;      /**< in copies of large messages, completed or packed */
    void *own_copy;         /**< of a chunk, see uci_recv_op_own() */
    size_t own_size;
} uci_transfer_worker_t;

#define UCI_TRANSFER_COPY_SLAB 4 /**< copies that are allocated at a time */

UCI_INLINE void uci_transfer_worker_init(uci_transfer_worker_t *xfer, size_t copy_size)
{
    uci_list_init(&xfer->streams);
    uci_list_init(&xfer->offers);
    uci_list_init(&xfer->landed);
    uci_list_init(&xfer->bounces);
    uci_list_init(&xfer->direct_sends);
    uci_list_init(&xfer->direct_recvs);
    uci_list_init(&xfer->send_ops);
    uci_list_init(&xfer->recv_ops);
    uci_pool_init(&xfer->slot_copies, copy_size, UCI_TRANSFER_COPY_SLAB, NULL, NULL, NULL);
}

UCI_INLINE void uci_transfer_worker_cleanup(uci_transfer_worker_t *xfer)
{
    uci_pool_cleanup(&xfer->slot_copies);
    free(xfer->own_copy);
}

#endif
