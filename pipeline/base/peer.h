/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The other side of a conversation: one remote worker, whatever endpoints lead to it. Holds the log of what we
 * sent to it and where we are in what comes from it.
 */
#ifndef UCI_PEER_H_
#define UCI_PEER_H_

#include "peer.h"
#include "ucp/ucp_api.h"
#include "wire.h"
#include "frame.h"
#include "link/bounce_part.h"
#include "link/control_part.h"
#include "link/link_part.h"
#include "link/mailbox_part.h"
#include "message/message_part.h"
#include "rma/rma_part.h"
#include "conversation/conversation_part.h"
#include "transfer/transfer_part.h"
#include "util/list.h"
#include "mark.h"
#include "seal/seal.h"
#include "util/seq.h"
#include "tune/tuner.h"

struct uci_worker;

/** What is heard so soon after our BYE has crossed it, and is no sign that the BYE was lost; the other side's may be on its way. What would take a
 *  new connection waits as long: the other side's worker may be going, and UCX up to 1.13 survives that on neither side (tcp: assertions in
 *  ucp_worker_destroy(), and in ucp_request_send_state_ff() where the connection fails). Less than the time after which LEAVE is repeated. */
#define UCI_PEER_CROSSING_NS 100000000ul

#define UCI_EP_NO_PLACE UINT32_MAX

/** An endpoint that the user (or UCI itself) has to a peer. */
typedef struct uci_ep {
    ucp_ep_h ucp;
    struct uci_peer *peer;
    uci_list_t link; /**< in peer->eps */
    bool user;       /**< the user holds it */
    bool shown;      /**< UCI has made it, and has told the user of it, to answer by */
    bool lent;       /**< its number is one of the user's by now, which serves instead */
    bool half;       /**< the other side has closed its end, see uci_peer_endpoint_whole() */
    bool unpaired;   /**< the same of UCX's end, while the other side has others (pair.h) */
    bool closing;    /**< the user has closed it, UCX's end is still open */
    bool unforced;   /**< the user has made it without error handling: UCX does not close it by force */
    bool crossed; /**< to oneself, and what it sends into a stream comes by its twin, as UCP_EP_PARAMS_FLAGS_NO_LOOPBACK says */
    uint32_t place; /**< of those to this peer that UCX makes pairs of, in order; UCI_EP_NO_PLACE: it is none of them */
    uint64_t made_time;                /**< uci_process_time_ns() */
    uint32_t number;                   /**< the user's to this peer, from 1 on, in order; 0: it is none of theirs yet */
    void *user_data;                   /**< the user's, of UCP_EP_PARAM_FIELD_USER_DATA */
    ucp_err_handler_cb_t user_handler; /**< what the user wants to be called when it fails; may be NULL */
} uci_ep_t;

/** @return what the other side calls it: as we do, but those to oneself of which UCX makes pairs (UCP_EP_PARAMS_FLAGS_NO_LOOPBACK) are each
 *  other's. */
UCI_INLINE uint32_t uci_ep_number_there(const uci_ep_t *ep)
{
    return uci_unlikely(ep->crossed) ? ((ep->number - 1) ^ 1u) + 1 : ep->number;
}

/** Of its first endpoint: found when first needed. */
typedef struct uci_peer_lanes {
    char *transports; /**< NULL as long as they can't be found */
    char *device;     /**< that all of them use; NULL: there is more than one */
    size_t eager;     /**< see uci_transports_t */
    size_t eager_fast;
    bool slow_link;  /**< another host's, over tcp, and the link is not faster than UCI_TUNER_SLOW_LINK */
    bool rdma;       /**< gets take no work of its processor; known when the plan is */
    uci_list_t lost; /**< uci_ep_t: UCI's own that have failed, and of which the user has been told */
    ucp_err_handling_mode_t err_mode; /**< of the program's last endpoint: UCX makes no pairs of two modes */
    uint32_t placed;                  /**< endpoints that UCX makes pairs of, so far (pair.h) */
    bool is_lost; /**< its last one, UCI's own, has failed: until it is heard again UCI makes no other one */
    bool by_socket; /**< it has never been connected but by socket address: when it has gone UCI does not connect itself */
} uci_peer_lanes_t;

/* Each layer has its part, declared in its folder (*_part.h), which it alone writes. What is beside them is of base. */
typedef struct uci_peer {
    uint64_t uid;
    struct uci_worker *worker;
    uint32_t eager_max; /**< what both sides carry in one frame */
    bool seals;         /**< as its worker: all active messages are records (sealed.h) */
    bool in_clear;      /**< mailbox, slots and what is fetched are not: always so where nothing is sealed */
    uci_link_tx_t tx;   /**< to it */
    uci_mailbox_peer_t box;
    uint64_t seed;    /**< of the check of frames from it by active message */
    uci_link_rx_t rx; /**< from it */
    uci_link_log_t log;
    uci_control_peer_t talk;
    uci_conversation_t conversation;
    uci_bounce_peer_t slots;
    uci_transfer_peer_t xfer;
    uci_message_peer_t msgs;
    uci_rma_peer_t rma;

    uci_list_t eps; /**< uci_ep_t; the first carries our active messages */
    uint32_t eps_numbered;
    bool known; /**< mark is valid */
    uci_mark_t mark;
    uci_seal_pair_t *pair; /**< keys, made with its mark, and kept as long as the worker lives; or NULL */
    void *address;         /**< UCX address, to connect back; may be NULL */
    uci_peer_lanes_t lanes;
    const uci_plan_t *plan; /**< what suits its transports, found when first needed */
    unsigned changed;       /**< messages from it that its program has changed while they were sent */
} uci_peer_t;

/** Where to begin to look for a peer, in a table of @a mask + 1 places. */
UCI_INLINE size_t uci_uid_home(uint64_t uid, size_t mask)
{
    return (size_t)((uid * UCI_UID_FACTOR) >> 32) & mask;
}

/* As uci_held_t: a loop over it takes the head for one at its end, without looking into it */
_Static_assert(offsetof(uci_peer_t, rx.held) % 16 == 0, "held lies where an uci_held_t could");

/** Number of the first message between two workers, and of the first one-sided operation. Tests set it, so that numbers pass 2^31 and 2^32. */
extern uint64_t uci_peer_first;

ucs_status_t uci_peer_create(struct uci_worker *worker, uint64_t uid, uci_peer_t **peer_p);
void uci_peer_destroy(uci_peer_t *peer);

/** The other side has closed and said all it had to say. Never true of ourselves: we answer as long as we live. */
bool uci_peer_is_gone(const uci_peer_t *peer);

/** What to call it in a log line: "rank 3 (node7:4711)". The text lives until the next 3 calls of this thread. */
const char *uci_peer_name(const uci_peer_t *peer);

/** @return the peer's rank, or -1. */
int uci_peer_rank(const uci_peer_t *peer);

/**
 * Take over what a mark says. The mark must have been checked.
 * @return UCS_OK; UCS_ERR_NO_MEMORY; UCS_ERR_UNSUPPORTED (all logged): the worker of this uid has another mark.
 */
ucs_status_t uci_peer_set_mark(uci_peer_t *peer, const uci_mark_t *mark);

/** Is this its mark, as far as keys are made of it? */
bool uci_peer_is_marked(const uci_peer_t *peer, const uci_mark_t *mark);

/** Remember how to connect to it (copied). */
ucs_status_t uci_peer_set_address(uci_peer_t *peer, const void *address, size_t length);

/** The user connects to it, by socket address or by worker address. */
void uci_peer_set_way(uci_peer_t *peer, bool by_socket);

/** How UCI's own endpoints to it handle errors: as the program's. */
void uci_peer_set_err_mode(uci_peer_t *peer, const ucp_ep_params_t *params);

/** Note an endpoint of UCX's to @a peer. @return NULL: no memory (logged). */
uci_ep_t *uci_ep_create(uci_peer_t *peer, ucp_ep_h ucp, bool user);

/** UCX makes pairs of it and others: to be called in the order in which UCX has made them. */
void uci_ep_place(uci_ep_t *ep);

/** The user holds it from now on, or is told of it. As UCX, both sides number those that they have to each other in order. */
void uci_ep_number(uci_ep_t *ep);

/** The same of one that the user makes where it has been told of one of UCI's: in UCX that would be the same endpoint. */
void uci_ep_number_again(uci_ep_t *ep);

/** It has failed: others are better. */
void uci_ep_break(uci_ep_t *ep);

/** It has failed, and is one of UCI's own: of no use any more, but to whom has been told of it. */
void uci_ep_lose(uci_ep_t *ep);

/** Is there none that the user holds beside this one, and is not closing? */
bool uci_ep_is_last_of_user(const uci_ep_t *ep);

/** Forget it; UCX's own has been, or is about to be, closed. */
void uci_ep_destroy(uci_ep_t *ep);

/** An endpoint for our own messages: the user's, or one made for the purpose; NULL while its address is unknown. */
ucp_ep_h uci_peer_endpoint(uci_peer_t *peer);

/**
 * The same for what UCX loses in silence where the other side has closed its end of the endpoint: active messages of several
 * fragments, which are collected there (ucp_am_long_first_handler), rendezvous, and gets that UCX emulates, whose answers
 * come from there. So it is one whose other end is open, if we know where to connect to.
 */
ucp_ep_h uci_peer_endpoint_whole(uci_peer_t *peer);

/** One that will stay, as far as is known: the user's, or UCI's own; NULL as above. */
uci_ep_t *uci_peer_ep_staying(uci_peer_t *peer);

/** The same for the program, to answer an active message by, that was sent by the endpoint of uci_ep_name() @a name: the user's own that is
 *  connected with it, if there is one, else any of the user's. The worker's hooks know it. */
ucp_ep_h uci_peer_endpoint_shown(uci_peer_t *peer, uint16_t name);

/** Transports of the first endpoint, as UCX names them ("posix tcp"; "" as long as it has none), and the choices that suit
 *  them. The first call for a plan may lower eager_max. */
const char *uci_peer_transports(uci_peer_t *peer);
const uci_plan_t *uci_peer_plan(uci_peer_t *peer);

/** What was chosen from has changed: choose again when it is needed next. */
UCI_INLINE void uci_peer_forget_plan(uci_peer_t *peer)
{
    peer->plan = NULL;
}

/** Its keys, which are the peer's from now on. */
UCI_INLINE void uci_peer_set_pair(uci_peer_t *peer, uci_seal_pair_t *pair)
{
    peer->pair = pair;
}

/** Its program has changed one more message while it was sent. */
UCI_INLINE void uci_peer_count_changed(uci_peer_t *peer)
{
    ++peer->changed;
}

/** @return false if all ways between us are known, and none is memory to which it or another process could still write when its bytes are here. */
bool uci_peer_may_share_memory(const uci_peer_t *peer);

/** @return the device that all lanes to it use, as UCX names it ("mlx5_0:1"); "" if there are several, or that is not known. */
const char *uci_peer_device(uci_peer_t *peer);

/** eager_max is what both sides carry in one frame and the plan, if there is one already, finds worth it. */
void uci_peer_limit_eager(uci_peer_t *peer);

/** @return as @a chunk_size, which a plan has chosen, or less, so that a sealed chunk is no longer. */
uint32_t uci_peer_chunk_size(const uci_peer_t *peer, uint32_t chunk_size);

/** Bytes of a chunk of a stream to it that UCX carries in one fragment. */
uint32_t uci_peer_stream_chunk_size(uci_peer_t *peer, uint64_t length);

#endif
