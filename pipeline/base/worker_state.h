/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What UCI knows of one UCX worker: its pools, its peers, its queues of pending work. All layers keep their part here; what is in
 * a list is known to who owns the list.
 */
#ifndef UCI_WORKER_STATE_H_
#define UCI_WORKER_STATE_H_

#include <pthread.h>

#include "ucp/ucp_api.h"
#include "wire.h"
#include "frame.h"
#include "util/list.h"
#include "mailbox_state.h"
#include "match/match.h"
#include "util/pool.h"
#include "settings/settings.h"
#include "slot.h"
#include "live/stats.h"
#include "tune/tuner.h"

struct uci_follow;
struct uci_message;
struct uci_recv_op;
struct uci_stage;
struct uci_twin_note;
typedef struct uci_peer uci_peer_t;
typedef struct uci_request uci_request_t;

#define UCI_SPAN_SIZE  (512u << 10) /**< bytes */
#define UCI_SPAN_COUNT 16u          /**< spans of a worker */

/** See span.h */
typedef struct uci_spans {
    bool tried;
    ucp_mem_h memh; /**< of all of them */
    char *memory;   /**< NULL: there are none */
    unsigned free_count;
    uint8_t free[UCI_SPAN_COUNT];
} uci_spans_t;

/** See siblings.h */
typedef struct uci_sibling {
    uci_list_t link;
    unsigned turns_seen; /**< turns of the worker when it was looked at last */
    uint64_t seen_time;  /**< when these had changed, in ns */
    bool handed_over;    /**< its thread has changed once */
    bool shared;         /**< more than once */
    bool foreign;        /**< UCX may call the program from inside of it */
    bool helped;         /**< the turn that runs is not its program's */
} uci_sibling_t;

/** See wakeup.h */
typedef struct uci_wakeup {
    int set;    /**< the epoll descriptor, -1: this worker can't be armed */
    int timer;  /**< in the set; -1 until the worker is armed for the first time */
    bool given; /**< the program's own set */
    void *data; /**< what epoll_wait() says of the timer */
} uci_wakeup_t;

/** See gauges.h */
typedef struct uci_gauge {
    uint64_t time;        /**< when they were written last, in ns; 0: never */
    uint64_t oldest;      /**< number of the receive that was the oldest one then */
    uint64_t oldest_time; /**< since when it has been, in ns */
} uci_gauge_t;

/** Of one UCX context: what requests made for it must look like, and what UCX was told. */
typedef struct uci_context {
    ucp_context_h ucp;
    size_t request_size; /**< user area the application asked for */
    ucp_request_init_callback_t request_init;
    ucp_request_cleanup_callback_t request_cleanup;
    size_t buffered_max;      /**< UCX completes sends up to this size without the receiver */
    size_t buffered_fast_max; /**< the same with UCP_OP_ATTR_FLAG_FAST_CMPL */
    bool wakeup;              /**< UCP_FEATURE_WAKEUP */
    bool apart;               /**< nothing is shared with peers by memory: they may end at any moment */
    bool host_only;           /**< UCX knows of no other memory (memtype.h) */
    bool short_way;           /**< and operations are what they always are: worker->recv is uci_recv() in all workers */
    bool keeps_host;          /**< uci_memtype_keeps_host() */
} uci_context_t;

struct uci_worker;

/** What a worker tells whoever compares twins (twin.h); events that go up. */
typedef struct uci_twin_events {
    /** A message of @a peer's has been matched, to a receive or a probe that takes it: its number in its channel is settled.
     *  @return false: there is none. */
    bool (*matched)(uci_peer_t *peer, ucp_tag_t tag, struct uci_twin_note *note);
    /** The message is in the receive's buffer, verified. @return true: keep the receive, it is completed by uci_request_complete() later. */
    bool (*received)(uci_request_t *req, ucs_status_t status);
    unsigned (*progress)(struct uci_worker *worker);
    /** Does something in this worker wait for what twins say? Then its program must not sleep: their worker wakes nobody. */
    bool (*is_waiting)(const struct uci_worker *worker);
} uci_twin_events_t;

typedef struct uci_worker {
    ucp_worker_h ucp;
    uci_context_t *context;
    uint64_t uid;
    bool is_mt;           /**< UCS_THREAD_MODE_MULTI */
    pthread_mutex_t lock; /**< recursive; taken only if is_mt */
    uintptr_t owner;      /**< uci_thread_self() of the thread that uses it; 0 if is_mt */
    unsigned turns;       /**< grows by one when a turn of progress begins and when it ends */

    size_t eager_max; /**< bytes of payload in one frame */
    const uci_digest_ops_t *digest;
    bool small_xxh3;          /**< the smallest messages have XXH3, in line, whatever is best for larger ones */
    const uci_plan_t *copies; /* kernels and forms of copying by size, which are the same for all transports */

    uci_frame_pool_t frames;
    uci_pool_t requests;
    size_t request_head;    /**< uci_request_head() */
    uci_pool_t slot_copies; /**< copies of messages that fit into a slot: UCI_SLOT_SIZE bytes each */
    uci_pool_t messages;    /**< uci_control_t with a small payload */

    /* peers by uid: open addressing, power of two */
    uci_peer_t **peers;
    size_t peers_mask;
    size_t peers_count;
    uci_peer_t *last_peer; /**< the one found last */

    uci_match_t match;                            /**< posted receives, and uci_message_t that nobody has asked for */
    unsigned (*turn)(struct uci_worker *worker);  /**< uci_worker_turn(), for who looks after other workers */
    const struct uci_am_handler *const *handlers; /**< by type: uci_am_handlers */
    /** An active message whose check is right: uci_dispatch() */
    ucs_status_t (*message)(struct uci_worker *worker, const uci_am_hdr_t *hdr, const void *data, size_t length,
                            void *desc);
    ucs_status_ptr_t (*recv)(struct uci_worker *worker, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                             const ucp_request_param_t *param); /**< uci_recv(), or who decides for it (follow.h) */
    /** What a probe finds: uci_unexpected_oldest() */
    struct uci_message *(*find)(struct uci_worker *worker, ucp_tag_t tag, ucp_tag_t tag_mask, bool remove);
    /** A posted receive is cancelled: uci_request_withdraw(). @return false: whether it is will be decided later. */
    bool (*withdraw)(uci_request_t *req);
    bool (*arrived)(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload); /**< see link_recv.h */
    void (*lost)(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length);
    uci_mailbox_t mailbox;
    uci_list_t probed;       /**< uci_message_t that the user holds by a handle */
    uci_list_t watched;      /**< uci_peer_t that have not acknowledged all: see uci_link_look() */
    uci_list_t streams;      /**< uci_peer_t to send chunks to */
    uci_list_t offers;       /**< uci_send_op_t whose segments are being fetched, and digested */
    uci_list_t landed;       /**< uci_segment_t that have been fetched, to be digested */
    uci_list_t bounces;      /**< uci_send_op_t that fill bounce buffers */
    uci_list_t direct_sends; /**< uci_send_op_t that go through our slots */
    uci_list_t direct_recvs; /**< uci_recv_op_t that come through a peer's slots */
    uci_list_t closing;      /**< uci_close_t: endpoints that the user closes */
    uci_list_t send_ops;     /**< uci_send_op_t: sends that wait for FIN */
    uci_list_t recv_ops;     /**< uci_recv_op_t: receives in progress */
    uci_list_t suspects;     /**< uci_peer_t of which something is missing */
    uci_list_t waiting;      /**< uci_peer_t whose mailbox is full */
    uci_list_t unsent;       /**< uci_peer_t with messages for UCI's part of a turn; they count in ops_active */
    unsigned ops_active;     /**< members of the last 6 lists: progress has work of its own only if any */
    unsigned large_sends;    /**< see both_ways.h */
    unsigned large_recvs;
    bool resync;          /**< something damaged was dropped: ask again for whatever is due */
    uint64_t resync_time; /**< when, in ns */
    bool ask_now;         /**< at the end of this turn */
    uint64_t round_trip;  /**< from CTS to what it brings, smoothed, in ns; 0: not known yet */
    uint64_t dropped;     /**< messages that arrived damaged */
    uint64_t intact;      /**< and those that did not */
    uint64_t damage;      /**< of those that arrived damaged, nobody's that is known, see ask.h */
    uint64_t check_time;  /**< of the next look at operations that take long */
    /** Those with callbacks, in order, until the end of the program's next turn */
    uci_request_t *completed;
    uci_request_t **completed_end;
    uint8_t ucx_rests; /**< so many turns that find nothing are without UCX's part */
    bool own;          /**< in a turn: UCX has had its part */
    bool sends_unsent; /**< in that: what is in `unsent` is being sent */

    struct uci_recv_op **slots; /**< receive operations by slot */
    uint32_t slots_count;
    uint32_t slots_free; /**< head of the free list through the slots, UINT32_MAX: none */

    uci_bounce_t bounce;
    uci_spans_t spans;
    void *own_copy; /**< of a chunk, see uci_recv_op_own() */
    size_t own_size;

    size_t log_bytes;  /**< in the frames of the logs, and in what large logs take themselves */
    size_t copy_bytes; /**< in copies of large messages, completed or packed */
    size_t log_limit;

    ucp_address_t *address; /**< UCX's own, for hellos */
    size_t address_length;
    uci_mark_t mark;
    bool seals;            /**< UCI_SEAL: see sealed.h */
    uint64_t sealed_pairs; /**< numbers given to pairs, see wire.h */

    struct uci_stage *stage; /**< for memory that is not the host's; NULL until there is some */

    const uci_twin_events_t *twin; /**< NULL: nobody compares */
    struct uci_follow *follow;     /**< NULL: wildcards are matched as they come (follow.h) */
    uint32_t recv_flags;           /**< that receives of the user's begin with */
    bool watches_deliveries;       /**< see delivery.h */

    bool address_given; /**< somebody may connect to it, and expects UCI */
    uci_wakeup_t wakeup;
    uci_sibling_t sibling;
    uci_stats_block_t stats;
    uci_gauge_t gauge;
} uci_worker_t;

/** Whether this turn is one of those, one in @a turns, that something rare has its turn in. */
UCI_INLINE bool uci_worker_is_turn(const uci_worker_t *worker, unsigned turns)
{
    return worker->turns / 2 % turns == 0;
}

UCI_INLINE bool uci_worker_is_inside(const uci_worker_t *worker)
{
    return worker->turns % 2 != 0;
}

/** Is this called by UCX, which hands over what it has read? */
UCI_INLINE bool uci_worker_is_inside_ucx(const uci_worker_t *worker)
{
    return uci_worker_is_inside(worker) && !worker->own;
}

/** @return what tells this thread from all others that live. */
UCI_INLINE uintptr_t uci_thread_self(void)
{
    return (uintptr_t)&uci_stats_here;
}

#endif
