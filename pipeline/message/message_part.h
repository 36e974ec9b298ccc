/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the layer of messages keeps of a worker and of a peer: recv.c and unexpected.c write it, user_am.c what is of active messages.
 */
#ifndef UCI_MESSAGE_PART_H_
#define UCI_MESSAGE_PART_H_

#include "ucp/ucp_api.h"
#include "util/list.h"
#include "util/types.h"

struct uci_message;

struct uci_worker;

/** What UCX's own handler of an id is given: it is called for peers without UCI. */
typedef struct uci_user_am_ucx {
    struct uci_worker *worker;
    uint16_t id;
} uci_user_am_ucx_t;

/** What the program has set for an id. */
typedef struct uci_user_am_handler {
    union {
        ucp_am_recv_callback_t recv; /**< ucp_worker_set_am_recv_handler(); NULL: none */
        ucp_am_callback_t old;       /**< ucp_worker_set_am_handler() */
    };
    void *arg;
    uint32_t flags; /**< as the program gave them */
    bool is_old;
    uci_user_am_ucx_t *ucx; /**< the worker's; NULL: UCX has never had a handler of this id */
} uci_user_am_handler_t;

#define UCI_USER_AM_REFUSALS 64u

/** A large active message that the program has not taken, and what its sender is told, once more if it asks. */
typedef struct uci_user_am_refusal {
    uint64_t uid;
    uint64_t seq;
    ucs_status_t status; /**< UCS_OK: none */
} uci_user_am_refusal_t;

typedef struct uci_message_worker {
    uci_list_t probed;               /**< uci_message_t that the user holds by a handle */
    bool watches_deliveries;         /**< see uci_edge.delivered */
    bool is_raw;                     /**< peers without UCI are, or were, connected: raw.h */
    uci_user_am_handler_t *handlers; /**< by id */
    unsigned handler_count;
    const uci_user_am_handler_t *own;                     /**< of UCI's own, by uci_own_am_t; `arg` is not used */
    uci_user_am_refusal_t refusals[UCI_USER_AM_REFUSALS]; /**< the last ones */
    unsigned refusal_count;
    size_t am_max_header;     /**< bytes, as the program is told */
    size_t am_alignment;      /**< of the data that a handler gets, a power of two */
    uci_list_t am_ready;      /**< peers whose first active message has not been handed out */
    uci_list_t streams_ready; /**< uci_user_stream_t that the program has not been told of (ucp_stream_worker_poll()) */
} uci_message_worker_t;

typedef struct uci_message_peer {
    uci_list_t am_queue;            /**< active messages that no handler has seen, in order */
    uci_list_t am_link;             /**< in am_ready of the worker */
    struct uci_message *am_header;  /**< of a rendezvous whose descriptor comes next; or NULL */
    struct uci_message *am_fetched; /**< the first of the queue, while its data are fetched; or NULL */
    bool am_lost;                   /**< such a header is lost */
    uci_list_t streams;             /**< uci_user_stream_t */
    uint32_t kept;                  /**< uci_message_t that there are */
    uci_list_t early;               /**< chunks that are here before their descriptor, see early.h */
    size_t early_bytes;
} uci_message_peer_t;

/** @param am_max_header  that the program is told of.  @param am_alignment  that it asks for.  @param own  a table that lives as long as the worker. */
UCI_INLINE void uci_message_worker_init(uci_message_worker_t *msgs, size_t am_max_header, size_t am_alignment,
                                        const uci_user_am_handler_t *own)
{
    msgs->own           = own;
    msgs->am_max_header = am_max_header;
    msgs->am_alignment  = am_alignment;
    uci_list_init(&msgs->probed);
    uci_list_init(&msgs->am_ready);
    uci_list_init(&msgs->streams_ready);
}

UCI_INLINE void uci_message_peer_init(uci_message_peer_t *msgs)
{
    uci_list_init(&msgs->am_queue);
    uci_list_init(&msgs->am_link);
    uci_list_init(&msgs->streams);
    uci_list_init(&msgs->early);
}

UCI_INLINE bool uci_message_part_is_idle(const uci_message_peer_t *msgs)
{
    return (msgs->kept == 0) && uci_list_is_empty(&msgs->am_link) && uci_list_is_empty(&msgs->streams) &&
           uci_list_is_empty(&msgs->early);
}

#endif
