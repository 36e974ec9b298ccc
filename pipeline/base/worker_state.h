/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What UCI knows of one UCX worker: its pools, its peers, its queues of pending work. What is in a list is
 * known to who owns the list.
 */
#ifndef UCI_WORKER_STATE_H_
#define UCI_WORKER_STATE_H_

#include <pthread.h>

#include "ucp/ucp_api.h"
#include "wire.h"
#include "frame.h"
#include "util/list.h"
#include "match/match.h"
#include "util/pool.h"
#include "settings/settings.h"
#include "conn/conn_part.h"
#include "link/control_part.h"
#include "link/link_part.h"
#include "message/message_part.h"
#include "rma/rma_part.h"
#include "transfer/transfer_part.h"
#include "turn/turn_part.h"
#include "twins/twins_part.h"
#include "mark.h"
#include "live/stats.h"
#include "tune/tuner.h"

struct uci_ep;
struct uci_message;
struct uci_recv_op;
struct uci_stage;
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
    uci_list_t living;
    unsigned turns_seen; /**< turns of the worker when it was looked at last */
    uint64_t seen_time;  /**< when these had changed, in ns */
    bool handed_over;    /**< its thread has changed once */
    bool shared;         /**< more than once */
    bool foreign;        /**< UCX may call the program from inside of it */
    bool helped;         /**< the turn that runs is not its program's */
} uci_sibling_t;

/** Of one UCX context: what requests made for it must look like, and what UCX was told. */
typedef struct uci_context {
    ucp_context_h ucp;
    size_t request_size; /**< user area the application asked for */
    ucp_request_init_callback_t request_init;
    ucp_request_cleanup_callback_t request_cleanup;
    size_t buffered_max;      /**< UCX completes sends up to this size without the receiver */
    size_t buffered_fast_max; /**< the same with UCP_OP_ATTR_FLAG_FAST_CMPL */
    bool rndv_is_set; /**< UCX_RNDV_THRESH, to `buffered_max`: active messages of so many bytes are a rendezvous */
    bool wakeup;      /**< UCP_FEATURE_WAKEUP */
    bool apart;       /**< nothing is shared with peers by memory: they may end at any moment */
    bool host_only;   /**< UCX knows of no other memory (memtype.h) */
    bool short_way;   /**< and operations are what they always are: worker->recv is uci_recv() in all workers */
    bool keeps_host;  /**< uci_memtype_keeps_host() */
    uci_rma_regions_t *rma; /**< what the program has mapped; NULL: nothing that UCI has a part in */
} uci_context_t;

struct uci_worker;

/** Who may be in it: worker_lock.h. */
typedef struct uci_worker_access {
    bool is_mt;           /**< UCS_THREAD_MODE_MULTI */
    uintptr_t owner;      /**< uci_thread_self() of the thread that uses it; 0 if is_mt */
    pthread_mutex_t lock; /**< recursive; taken only if is_mt */
} uci_worker_access_t;

/** How others know it. */
typedef struct uci_worker_self {
    ucp_address_t *address; /**< UCX's own, for hellos */
    size_t length;          /**< of that */
    uci_mark_t mark;
    bool seals; /**< UCI_SEAL: see sealed.h */
} uci_worker_self_t;

/** What suits it, whatever its peers are. */
typedef struct uci_worker_choice {
    size_t eager_max; /**< bytes of payload in one frame */
    const uci_digest_ops_t *digest;
    bool small_xxh3;          /**< the smallest messages have XXH3, in line, whatever is best for larger ones */
    const uci_plan_t *copies; /* kernels and forms of copying by size, which are the same for all transports */
} uci_worker_choice_t;

/** Peers by uid: open addressing, power of two. */
typedef struct uci_worker_peers {
    uci_peer_t **table;
    size_t mask;
    size_t count;
    uci_peer_t *last;            /**< the one found last */
    struct uci_resting *resting; /**< what is kept of those that have gone, likewise: resting.h; NULL: none has */
    size_t resting_mask;
    size_t resting_count; /**< and of those that have come back */
} uci_worker_peers_t;

typedef struct uci_worker_requests {
    uci_pool_t pool;
    size_t head; /**< uci_request_head() */
    /** Those with callbacks, in order, until the end of the program's next turn */
    uci_request_t *completed;
    uci_request_t **end;
} uci_worker_requests_t;

/** Receive operations by slot: recv_table.h. */
typedef struct uci_worker_recvs {
    struct uci_recv_op **slots;
    uint32_t count;
    uint32_t free; /**< head of the free list through the slots, UINT32_MAX: none */
} uci_worker_recvs_t;

/** uci_recv(), or who decides for it (follow.h) */
typedef ucs_status_ptr_t (*uci_worker_recv_t)(struct uci_worker *worker, void *buffer, size_t count, ucp_tag_t tag,
                                              ucp_tag_t tag_mask, const ucp_request_param_t *param);

/** What a probe finds: uci_unexpected_oldest() */
typedef struct uci_message *(*uci_worker_find_t)(struct uci_worker *worker, ucp_tag_t tag, ucp_tag_t tag_mask,
                                                 bool remove);

/** A posted receive is cancelled: uci_request_withdraw(). @return false: whether it is will be decided later. */
typedef bool (*uci_worker_withdraw_t)(uci_request_t *req);

/** A frame is the next one of its peer, see link_recv.h; one is lost */
typedef bool (*uci_worker_arrived_t)(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);
typedef void (*uci_worker_lost_t)(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length);

/** What goes up: functions of the rooms above, set where a worker is made, and by who compares twins. */
typedef struct uci_worker_calls {
    unsigned (*turn)(struct uci_worker *worker);  /**< uci_worker_turn(), for who looks after other workers */
    const struct uci_am_handler *const *handlers; /**< by type: uci_am_handlers */
    /** An active message whose check is right: uci_dispatch() */
    ucs_status_t (*message)(struct uci_worker *worker, const uci_am_hdr_t *hdr, const void *data, size_t length,
                            void *desc);
    uci_worker_recv_t recv;
    uci_worker_find_t find;
    uci_worker_withdraw_t withdraw;
    uci_worker_arrived_t arrived;
    uci_worker_lost_t lost;
    uint32_t recv_flags; /**< that receives of the user's begin with */
    /** The program is told of an endpoint that UCI has made, which its hooks have to know; it goes */
    void (*ep_shown)(struct uci_ep *ep);
    void (*ep_hidden)(struct uci_ep *ep);
    /** UCX says that an endpoint of UCI's own has failed: uci_lost_hear(), whose argument is the worker */
    ucp_err_handler_cb_t own_failed;
} uci_worker_calls_t;

/* Each layer has its part, declared in its folder (*_part.h), which it alone writes. What is beside them is of base. */
typedef struct uci_worker {
    ucp_worker_h ucp;
    uci_context_t *context;
    uint64_t uid;
    uci_worker_access_t access;
    unsigned
            ops_active; /**< operations, and others that have work in each turn: progress has work of its own only if any */
    uci_turn_t turn;
    uci_worker_choice_t choice;
    uci_frame_pool_t frames;
    uci_worker_requests_t requests;
    uci_worker_peers_t peers;
    uci_worker_recvs_t recvs;
    uci_match_t match; /**< posted receives, and uci_message_t that nobody has asked for */
    uci_worker_calls_t calls;
    uci_message_worker_t msgs;
    uci_rma_worker_t rma;
    uci_link_worker_t link;
    uci_control_worker_t talk;
    uci_transfer_worker_t xfer;
    uci_conn_worker_t conn;
    uci_spans_t spans;
    struct uci_stage *stage; /**< for memory that is not the host's; NULL until there is some */
    uci_worker_self_t self;
    uci_twins_worker_t twins;
    uci_sibling_t sibling;
    uci_stats_block_t stats;
} uci_worker_t;

/** Whether this turn is one of those, one in @a turns, that something rare has its turn in. */
UCI_INLINE bool uci_worker_is_turn(const uci_worker_t *worker, unsigned turns)
{
    return worker->turn.count / 2 % turns == 0;
}

UCI_INLINE bool uci_worker_is_inside(const uci_worker_t *worker)
{
    return worker->turn.count % 2 != 0;
}

/** Is this called by UCX, which hands over what it has read? */
UCI_INLINE bool uci_worker_is_inside_ucx(const uci_worker_t *worker)
{
    return uci_worker_is_inside(worker) && !worker->turn.own;
}

/** @return what tells this thread from all others that live. */
UCI_INLINE uintptr_t uci_thread_self(void)
{
    return (uintptr_t)&uci_stats_here;
}

/** Something begins that has work in each turn. */
UCI_INLINE void uci_worker_work_begins(uci_worker_t *worker)
{
    ++worker->ops_active;
}

UCI_INLINE void uci_worker_work_ends(uci_worker_t *worker)
{
    --worker->ops_active;
}

/** Who matches from now on. */
UCI_INLINE void uci_worker_match_by(uci_worker_t *worker, uci_worker_recv_t recv, uci_worker_find_t find,
                                    uci_worker_withdraw_t withdraw)
{
    worker->calls.recv     = recv;
    worker->calls.find     = find;
    worker->calls.withdraw = withdraw;
}

/** Who takes what comes from now on. @param recv_flags  UCI_REQUEST_*, that receives of the user's begin with. */
UCI_INLINE void uci_worker_take_by(uci_worker_t *worker, uci_worker_arrived_t arrived, uci_worker_lost_t lost,
                                   uint32_t recv_flags)
{
    worker->calls.arrived    = arrived;
    worker->calls.lost       = lost;
    worker->calls.recv_flags = recv_flags;
}

/** Who knows the endpoints that the program is told of. */
UCI_INLINE void uci_worker_show_by(uci_worker_t *worker, void (*shown)(struct uci_ep *ep),
                                   void (*hidden)(struct uci_ep *ep))
{
    worker->calls.ep_shown  = shown;
    worker->calls.ep_hidden = hidden;
}

/** UCX may call the program from inside of its progress (siblings.h). */
UCI_INLINE void uci_worker_set_foreign(uci_worker_t *worker)
{
    worker->sibling.foreign = true;
}

/** Who decides which receive a message is for has them all. */
UCI_INLINE uci_match_t *uci_worker_match(uci_worker_t *worker)
{
    return &worker->match;
}

#endif
