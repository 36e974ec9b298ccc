/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages between two UCIs: sending with a sealed header, receiving and verifying. Who a verified one is for is known above,
 * to worker->calls.message (dispatch.h). A message to a peer that can't be reached yet waits until its address is known.
 *
 * UCX delivers active messages reliably, so one is lost only when its content arrives damaged: it is dropped,
 * and both sides ask again for whatever is due (resync.h): all messages may be repeated without harm.
 */
#ifndef UCI_CONTROL_H_
#define UCI_CONTROL_H_

#include "base/peer_table.h"
#include "transfer/recv_op_part.h"
#include "transfer/send_op_part.h"
#include "base/worker_lock.h"

/** Payload that fits a pooled message */
#define UCI_CONTROL_POOLED 192

/** Payload that goes in one fragment over any transport: ud's, over Ethernet, have 1024 bytes, with our header and UCX's. HELLO of a worker with
 *  several devices is longer than a pooled message, and must not take a new connection to a side that has closed: if its worker goes meanwhile, UCX
 *  1.13 aborts (tcp, a connection request that fails: an assertion in ucp_request_send_state_ff()) */
#define UCI_CONTROL_FRAGMENT 768

typedef struct uci_control {
    uci_list_t link; /**< in peer->pending; the pool's link before */
    uci_peer_t *peer;
    bool pooled;
    bool awaited;      /**< counted in peer->sending */
    bool bye;          /**< counted in peer->byes; not to be read off the header, which may be damaged on purpose */
    uci_send_op_t *op; /**< the operation it is a part of, or NULL */
    void (*done)(uci_send_op_t *op, void *span); /**< called, unless NULL, when UCX has let go of it and it is gone */
    void *staging;                               /**< freed with the message */
    void *span;                                  /**< SEGMENT of the bounce path: given back with the message */
    const void *data;                            /**< what follows the header: payload[] or a user's chunk */
    size_t length;
    size_t more; /**< bytes of payload[] that travel as a part of the header, `data` being something else */
    uci_am_hdr_t hdr;
    char payload[] __attribute__((aligned(8)));
} uci_control_t;

/** What `check` of a header has to be. @param payload  what is protected with it, or NULL: a user's bytes, which have digests of their own. */
uint32_t uci_am_check(const uci_am_hdr_t *hdr, const void *payload, size_t length);

/** @return a message about @a seq (0: about no message) with room for @a length bytes of payload; NULL if there is no memory. */
uci_control_t *uci_control_get(uci_peer_t *peer, uci_am_type_t type, uint64_t seq, size_t length);
void uci_control_put(uci_control_t *msg);

/**
 * Seal and send; takes the message over. May be called while another message is taken. It does not ask who has left: say something only while
 * uci_conversation_is_heard(). After our own BYE it goes over an endpoint of UCI's own. A message of words holds up a close until UCX has let go of it.
 */
void uci_control_send(uci_control_t *msg);

/** Send a message without payload. */
void uci_control_send_simple(uci_peer_t *peer, uci_am_type_t type, uint64_t seq, uint32_t op, uint16_t flags);

/** Tell the peer that message @a seq of its is over: verified, truncated or given up. */
void uci_control_fin(uci_peer_t *peer, uint64_t seq, uint16_t flags);

/** The same of an active message that the program has not taken. @param status  what its send ends with, UCS_OK or an error. */
void uci_control_fin_status(uci_peer_t *peer, uint64_t seq, uint16_t flags, ucs_status_t status);

/** Send what waits for an endpoint to @a peer. */
void uci_control_send_pending(uci_peer_t *peer);

/** Take the first of @a todo, which was worker->unsent, out. */
uci_peer_t *uci_control_next_unsent(uci_worker_t *worker, uci_list_t *todo);

/** Something has come from it that only it can have said: it knows us. */
UCI_INLINE void uci_control_hear(uci_peer_t *peer)
{
    peer->talk.heard = true;
}

/** Whether it still does is not known: it has to be heard again. */
UCI_INLINE void uci_control_unhear(uci_peer_t *peer)
{
    peer->talk.heard = false;
}

/** Free them, without a word to anybody: the worker goes. */
void uci_control_cleanup(uci_peer_t *peer);

/** Forget those: nobody will receive them. */
void uci_control_drop_pending(uci_peer_t *peer);

/** Introduce ourselves: our address lets the peer answer. Again when the first may have been lost, or when we are back. */
void uci_control_hello(uci_peer_t *peer);

/** Is it too early to connect to @a peer, since UCX is handing over what it has read? Then that is done after its turn. */
bool uci_control_is_too_early(uci_peer_t *peer);

/** The handler of our active messages, UCI_AM_ID: a ucp_am_recv_callback_t. @param arg  the worker. */
ucs_status_t uci_control_recv(void *arg, const void *header, size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param);

/** A message that was in a record, opened in memory of our own; @a desc: UCX's handle of a segment of @a length bytes. */
void uci_control_take(uci_worker_t *worker, const void *header, size_t header_length, const void *data, size_t length);
ucs_status_t uci_control_take_segment(uci_worker_t *worker, const uci_am_hdr_t *hdr, size_t header_length,
                                      size_t length, void *desc);

/** Something from a peer was damaged and dropped: after a short while ask again for all that is due.
 *  @param hdr  what is left of its header, or NULL. */
void uci_control_damaged(uci_worker_t *worker, const char *what, const uci_am_hdr_t *hdr);

/** Something arrives for a receive. The first time, if it was not asked for twice, this measures the round trip since CTS. */
void uci_control_heard(const uci_recv_op_t *op);

/** Look again soon (after that time) at everything that is in progress. */
void uci_control_ask_soon(uci_worker_t *worker);

/** What could not be sent where it was said is sent from now on: @a todo gets the peers. */
void uci_control_begin_unsent(uci_worker_t *worker, uci_list_t *todo);
void uci_control_end_unsent(uci_worker_t *worker);

/** A message that is right has come; one that is not, and was dropped: whatever is due is asked for again soon. */
UCI_INLINE void uci_control_count_intact(uci_worker_t *worker)
{
    ++worker->talk.intact;
}

void uci_control_count_dropped(uci_worker_t *worker);

/** Ask at @a time, ns, at the latest. */
void uci_control_ask_at(uci_worker_t *worker, uint64_t time);

/** All that is due is being asked for. @param damaged  also what may have been damaged. */
void uci_control_asks(uci_worker_t *worker, bool damaged);

#endif
