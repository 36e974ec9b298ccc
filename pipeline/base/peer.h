/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The other side of a conversation: one remote worker, whatever endpoints lead to it. Holds the log of what we
 * sent to it and where we are in what comes from it.
 */
#ifndef UCI_PEER_H_
#define UCI_PEER_H_

#include "ucp/ucp_api.h"
#include "wire.h"
#include "frame.h"
#include "box/box.h"
#include "fill.h"
#include "util/list.h"
#include "mark.h"
#include "seal/seal.h"
#include "util/seq.h"
#include "slot.h"
#include "tune/tuner.h"

struct uci_worker;

/** What is heard so soon after our BYE has crossed it, and is no sign that the BYE was lost; the other side's may be on its way. What would take a
 *  new connection waits as long: the other side's worker may be going, and UCX up to 1.13 survives that on neither side (tcp: assertions in
 *  ucp_worker_destroy(), and in ucp_request_send_state_ff() where the connection fails). Less than the time after which LEAVE is repeated. */
#define UCI_PEER_CROSSING_NS 100000000ul

/** An endpoint that the user (or UCI itself) has to a peer. */
typedef struct uci_ep {
    ucp_ep_h ucp;
    struct uci_peer *peer;
    uci_list_t link;                   /**< in peer->eps */
    bool user;                         /**< the user holds it */
    bool half;                         /**< the other side has closed its end, see uci_peer_endpoint_whole() */
    bool closing;                      /**< the user has closed it, UCX's end is still open */
    ucp_err_handler_cb_t user_handler; /**< what the user wants to be called when it fails; may be NULL */
} uci_ep_t;

typedef struct uci_peer {
    uint64_t uid;
    struct uci_worker *worker;

    /* sending: the log, a ring by number of the frame */
    uint32_t eager_max;    /**< what both sides carry in one frame */
    bool by_mailbox;       /**< frames go through its mailbox just now, see link_send.h */
    bool watched;          /**< in worker->watched */
    uint64_t tx_next;      /**< number of the next frame */
    uint64_t tx_posted;    /**< those below have been handed to a carrier; the others wait for room */
    uint64_t tx_base;      /**< lowest number that may be in the ring */
    uint64_t tx_acked;     /**< everything below has been acknowledged */
    uint64_t tx_dropped;   /**< UCI_LOG_SIZE has been applied to what is below */
    uci_frame_t **tx_ring; /**< NULL: nothing has ever been sent */
    uint64_t tx_mask;      /**< size - 1; size 0 is mask UINT64_MAX */
    uci_box_tx_t box;      /**< our box in its mailbox, if box_mapped */
    uint8_t *doorbells;    /**< of that mailbox */
    uint64_t seed;         /**< of the check of frames from it by active message */

    /* receiving */
    uint64_t rx_next; /**< everything below has been verified and delivered */
    uint32_t unacked; /**< frames delivered since the last acknowledgement */
    uint32_t unacked_bytes;
    bool rx_damaged;           /**< something of it may have come damaged: what it sent last may be missing */
    bool rx_special;           /**< there are gaps, or frames that came too early */
    int8_t rx_box;             /**< its box in our mailbox, -1: none */
    struct uci_request *bound; /**< matched to frame rx_next, whose payload was damaged; or NULL */
    uci_list_t held;           /**< uci_held_t: frames that came too early, by number */
    uci_list_t gaps;           /**< uci_gap_t: frames that came damaged */
    uci_list_t suspect_link;   /**< in worker->suspects while something is missing */
    uint64_t gap_time;         /**< when that is to be asked for again */
    unsigned gap_asks;         /**< times that it has been */

    /* the log's timer, see uci_link_look() */
    uci_list_t watched_link;
    uci_list_t waiting_link; /**< in worker->waiting while frames wait for room */
    uint64_t tx_seen;        /**< tx_acked when it was looked at */
    uint64_t tx_time;        /**< when that had changed, or SENT was sent */
    unsigned tx_asks;        /**< SENTs without an answer */
    unsigned wait_turns;     /**< turns of progress without room */
    uint64_t am_until;       /**< frames below go, or have gone, by active message: the mailbox has to wait for these */
    ucp_rkey_h box_rkey;
    uint64_t box_key;
    uint8_t box_number;
    bool box_mapped;
    bool box_offered;  /**< it has been offered a box of ours, or can't use one */
    uci_frame_t *late; /**< fault injection: goes after the next one */

    /* beside the ring: what has been acknowledged and waits for FIN, see txlog.h */
    uci_frame_t *tx_kept_one; /**< any number of them, in no order */
    uci_frame_t **tx_kept;    /**< instead, if they are many: by number */
    uint32_t tx_kept_mask;    /**< size - 1 */
    uint32_t tx_kept_count;

    /* sealing, see sealed.h */
    bool seals;            /**< as its worker: all active messages are records */
    bool in_clear;         /**< mailbox, slots and what is fetched are not: always so where nothing is sealed */
    uci_seal_pair_t *pair; /**< keys, made with its mark, and kept as long as the worker lives; or NULL */
    uint64_t sealed_next;  /**< counter of the next record to it */
    uint64_t sealed_left;  /**< so many more follow it that are this pair's */

    /* connection */
    uci_list_t eps; /**< uci_ep_t; the first carries our active messages */
    bool hello_sent;
    bool heard;          /**< something has come from it: it knows our uid */
    bool known;          /**< mark is valid */
    bool leaving;        /**< the other side's user has closed: it receives nothing more */
    bool bye_heard;      /**< and has said BYE */
    uint64_t gone_time;  /**< when, if it can't answer any question about its messages any more; else UINT64_MAX */
    bool promised;       /**< it left, and we have not told it yet that we lack nothing */
    bool user_closed;    /**< our side's user has closed */
    bool asked;          /**< we left, and asked what the other side lacks */
    bool answered;       /**< it has told us */
    bool bye_said;       /**< we have said BYE */
    uint64_t bye_time;   /**< when, the last time */
    uint64_t life;       /**< times that our user has come back after our BYE: HELLO, LEAVE and BYE say it */
    uint64_t peer_life;  /**< the same of the other side, as far as it is known */
    bool back;           /**< we have come back, and the other side has not confirmed that it knows */
    uint32_t byes;       /**< BYEs that UCX has not let go of */
    uint32_t round;      /**< number of our last LEAVE */
    uint64_t fins_sent;  /**< number of all FINs */
    uint64_t fins_told;  /**< of those that the last LEAVE has repeated */
    ucs_status_t status; /**< UCS_OK, or why nothing more comes from it: it failed, or the user closed by force */
    uci_mark_t mark;
    void *address;    /**< UCX address, to connect back; may be NULL */
    char *transports; /**< of the first endpoint, found when first needed; NULL as long as they can't be */
    uint64_t damage;  /**< messages beside the frames that came damaged, see ask.h */
    unsigned changed; /**< messages from it that its program has changed while they were sent */
    char *device;     /**< that all its lanes use, found with them; NULL: there is more than one */
    bool slow_link; /**< another host's, over tcp, and the link is not faster than UCI_TUNER_SLOW_LINK; as transports */
    const uci_plan_t *plan; /**< what suits its transports, found when first needed */
    bool rdma;              /**< gets take no work of its processor; known when the plan is */

    /* shared memory */
    bool pool_offered;    /**< it has been told of our slots, or can't be */
    bool maps_ours;       /**< it reads our slots */
    uci_bounce_map_t map; /**< its slots */

    uci_list_t pending;     /**< uci_control_t that wait for an endpoint */
    uci_list_t unsent_link; /**< in worker->unsent while some of these wait for UCI's part of a turn */
    uint32_t sending;       /**< uci_control_t that UCX has not let go of and a close waits for */

    /* chunks, see stream.h */
    uci_list_t streams;     /**< uci_send_op_t that are STREAMING, in the order they are sent */
    uci_list_t agains;      /**< uci_send_op_t that have chunks to be sent again */
    uci_list_t stream_link; /**< in worker->streams while there are some and UCX does not hold a window of chunks */
    uint32_t chunks_held;   /**< chunks that UCX holds */

    /* slots, see direct.h */
    uci_list_t queued; /**< uci_send_op_t that are QUEUED, in the order of their CTS */
    uint32_t draining; /**< messages in our slots that it is taking */
    uci_fill_t fill;   /**< how its slots are filled */

} uci_peer_t;

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

/** Note an endpoint of UCX's to @a peer. @return NULL: no memory (logged). */
uci_ep_t *uci_ep_create(uci_peer_t *peer, ucp_ep_h ucp, bool user);

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

/** Transports of the first endpoint, as UCX names them ("posix tcp"; "" as long as it has none), and the choices that suit
 *  them. The first call for a plan may lower eager_max. */
const char *uci_peer_transports(uci_peer_t *peer);
const uci_plan_t *uci_peer_plan(uci_peer_t *peer);

/** @return the device that all lanes to it use, as UCX names it ("mlx5_0:1"); "" if there are several, or that is not known. */
const char *uci_peer_device(uci_peer_t *peer);

/** eager_max is what both sides carry in one frame and the plan, if there is one already, finds worth it. */
void uci_peer_limit_eager(uci_peer_t *peer);

/** @return as @a chunk_size, which a plan has chosen, or less, so that a sealed chunk is no longer. */
uint32_t uci_peer_chunk_size(const uci_peer_t *peer, uint32_t chunk_size);

/** Bytes of a chunk of a stream to it that UCX carries in one fragment. */
uint32_t uci_peer_stream_chunk_size(uci_peer_t *peer, uint64_t length);

#endif
