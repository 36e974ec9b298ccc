/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A send that takes more than one frame, or waits for FIN: what it sends, its chunks, the way they go, and what is sent again. Files of this
 * room write it, each what its comment names.
 */
#ifndef UCI_SEND_OP_PART_H_
#define UCI_SEND_OP_PART_H_

#include "base/ask_part.h"
#include "data/buffer.h"
#include "data/ordered.h"
#include "digest/digest.h"
#include "inject/inject_part.h"
#include "tree/merkle.h"
#include "ucp/ucp_api.h"
#include "util/list.h"

struct uci_frame;
struct uci_path_ops;
struct uci_peer;
struct uci_request;

/** Chunks, and what is known of them: send_common.c, and source.c. */
typedef struct uci_send_chunks {
    const uci_digest_ops_t *digest;
    uint32_t size;
    uint32_t count;
    uint32_t next;         /**< to send */
    uci_merkle_t *tree;    /**< NULL for a synchronous eager message */
    uint8_t *changed;      /**< by chunk: the program has changed it (source.h); NULL: none */
    uci_border_t *borders; /**< of a generic datatype, behind each chunk that has been packed; or NULL */
} uci_send_chunks_t;

/** How they go: the files of the paths. */
typedef struct uci_send_way {
    uci_list_t
            link; /**< in peer->xfer.streams while STREAMING, in peer->xfer.queued while QUEUED, in worker->direct_sends while DIRECT, in
                        worker->offers until all is digested if it is fetched, in worker->bounces while BOUNCING and able to fill */
    const struct uci_path_ops *ops; /**< NULL: a stream, or not known before CTS */
    uint64_t state[5];              /**< its path's own, see uci_path_state() */
    uint32_t remote_op;
    uint32_t in_flight;  /**< messages of it that UCX has not let go of */
    uint32_t held;       /**< of these, chunks that may lie in the user's memory */
    bool taken;          /**< DIRECT: its receiver has begun to take it */
    ucp_ep_h offered_by; /**< endpoint that segments were offered through, only compared; or NULL */
    uci_list_t grants;   /**< uci_grant_t: what the receiver may be reading, until FIN */
} uci_send_way_t;

/** What is sent again: stream.c. */
typedef struct uci_send_again {
    uint8_t *chunks; /**< by chunk: it is wanted; NULL: none ever was */
    uci_list_t link; /**< in peer->xfer.agains while some wait to be sent again */
    uint32_t next;   /**< where to look for them */
    uint32_t wanted; /**< chunks that wait, */
    uint32_t held;   /**< and those that UCX holds */
} uci_send_again_t;

typedef enum {
    UCI_SEND_DESCRIBED,
    UCI_SEND_QUEUED,
    UCI_SEND_DIRECT,
    UCI_SEND_MATCHED,
    UCI_SEND_OFFERED,
    UCI_SEND_BOUNCING,
    UCI_SEND_STREAMING,
    UCI_SEND_WAIT_FIN,
    UCI_SEND_DONE
} uci_send_state_t;

/** A send that takes more than one frame, or waits for FIN. */
typedef struct uci_send_op {
    uci_list_t all; /**< in worker->send_ops */
    uci_send_state_t state;
    struct uci_peer *peer;
    const struct uci_ep *ep;    /**< by which it was sent: not to be looked into, it may be gone (uci_ep_cancel()) */
    struct uci_frame *frame;    /**< in the log */
    struct uci_request *req;    /**< NULL: the user's send has completed (buffered), or does with `parted` */
    struct uci_request *parted; /**< completes when UCX has let go of all that was handed over; or NULL */
    uci_buffer_t *buffer;       /**< &req->buffer or &copy_buffer */
    uci_buffer_t copy_buffer;
    void *copy;
    uci_ordered_t ordered; /**< packing of a generic datatype that has not been copied */
    uint64_t length;
    uci_send_chunks_t chunk;
    uci_send_way_t way;
    uci_send_again_t again;
    bool large;            /**< counted in worker->large_sends */
    bool sync;             /**< a synchronous send: completes only when matched */
    bool pushed;           /**< all chunks have been sent, unasked */
    bool is_buffered_late; /**< it is completed from a copy if it is not received for long */
    uci_inject_op_t inject;
    ucs_status_t status; /**< how it ended, once it is DONE; or why it has failed, or is to fail: uci_send_op_fail() */
    uint64_t start_time;
    uci_ask_t ask;
    unsigned queries;
} uci_send_op_t;

/** UCX gets a message of it: it lives until UCX lets go, though FIN may come before. */
UCI_INLINE void uci_send_op_pin(uci_send_op_t *op)
{
    ++op->way.in_flight;
}

/** A segment of it is offered through this endpoint. */
UCI_INLINE void uci_send_op_offer(uci_send_op_t *op, ucp_ep_h ep)
{
    op->way.offered_by = ep;
}

#endif
