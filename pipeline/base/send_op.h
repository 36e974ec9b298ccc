/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A send that takes more than one frame, or waits for FIN. Each part of it belongs to the file that its comment names, or to
 * send_common.h.
 */
#ifndef UCI_SEND_OP_H_
#define UCI_SEND_OP_H_

#include "ask.h"
#include "data/buffer.h"
#include "tree/merkle.h"
#include "data/ordered.h"
#include "peer.h"
#include "request.h"
#include "worker_state.h"

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

struct uci_path_ops;

typedef struct uci_send_op {
    uci_list_t
            link; /**< in peer->streams while STREAMING, in peer->queued while QUEUED, in worker->direct_sends while DIRECT, in
                        worker->offers until all is digested if it is fetched, in worker->bounces while BOUNCING and able to fill */
    uci_list_t all; /**< in worker->send_ops */
    uci_send_state_t state;
    const struct uci_path_ops *path; /**< NULL: a stream, or not known before CTS */
    uci_peer_t *peer;
    uci_frame_t *frame;   /**< in the log */
    uci_request_t *req;   /**< NULL: the user's send has completed (buffered) */
    uci_buffer_t *buffer; /**< &req->buffer or &copy_buffer */
    uci_buffer_t copy_buffer;
    void *copy;
    uci_ordered_t ordered; /**< packing of a generic datatype that has not been copied */
    uci_border_t *borders; /**< of a generic datatype, behind each chunk that has been packed; or NULL */
    const uci_digest_ops_t *digest;
    uint64_t length;
    uint32_t chunk_size;
    uint32_t chunks;
    uint32_t next;          /**< chunk to send */
    uint64_t path_state[5]; /**< its path's own, see uci_path_state() */
    uint32_t in_flight;     /**< messages of it that UCX has not let go of */
    uint32_t held;          /**< of these, chunks that may lie in the user's memory */
    uint32_t remote_op;
    bool taken;          /**< DIRECT: its receiver has begun to take it */
    bool large;          /**< counted in worker->large_sends */
    uint8_t *changed;    /**< by chunk: the program has changed it (source.h); NULL: none */
    uint8_t injected;    /**< where faults have hit it: uci_injected_t (inject.h) */
    ucp_ep_h offered_by; /**< endpoint that segments were offered through, only compared; or NULL */
    uci_merkle_t *tree;  /**< NULL for a synchronous eager message */
    uci_list_t grants;   /**< uci_grant_t: what the receiver may be reading, until FIN */
    bool sync;           /**< a synchronous send: completes only when matched */
    ucs_status_t status; /**< how it ended, once it is DONE; or why it has failed, or is to fail: uci_send_op_fail() */
    uint64_t start_time;
    uci_ask_t ask;
    unsigned queries;
    uint8_t *again;        /**< by chunk: what is sent again (stream.h); NULL: none ever was */
    uci_list_t again_link; /**< in peer->agains while some wait to be sent again */
    uint32_t again_next;   /**< where to look for them */
    uint32_t again_wanted; /**< chunks that wait, */
    uint32_t again_held;   /**< and those that UCX holds */
    uint32_t swap_with;    /**< fault injection: the next chunk carries this one's content */
} uci_send_op_t;

/** UCX gets a message of it: it lives until UCX lets go, though FIN may come before. */
UCI_INLINE void uci_send_op_pin(uci_send_op_t *op)
{
    ++op->in_flight;
}

#endif
