/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What one-sided operations keep: of a context its regions, of a worker and a peer what is under way, in both directions.
 */
#ifndef UCI_RMA_PART_H_
#define UCI_RMA_PART_H_

#include <pthread.h>

#include "ucp/ucp_api.h"
#include "util/list.h"
#include "util/types.h"

/** Memory that the program has mapped, and may have given keys of. */
typedef struct uci_rma_region {
    uint32_t number; /**< never used again by this context */
    unsigned maps;   /**< of this handle, which UCX may give more than once */
    ucp_mem_h memh;
    char *base;
    size_t length; /**< bytes */
} uci_rma_region_t;

/** Of a context. Any thread's: under the lock. */
typedef struct uci_rma_regions {
    pthread_rwlock_t lock;
    uint64_t owner;           /**< random, so that no other context has it; 0: none yet */
    uci_rma_region_t *sorted; /**< by number */
    unsigned count, room;
    uint32_t last; /**< number given */
} uci_rma_regions_t;

typedef struct uci_rma_worker {
    uci_list_t owing;   /**< peers who have not been told what was executed */
    uint64_t look_time; /**< when uci_rma_look() has looked */
    bool used;          /**< an operation was none of UCX's */
    bool passed;        /**< one was */
} uci_rma_worker_t;

/** How a peer's memory is reached. */
typedef enum {
    UCI_RMA_WAY_UNKNOWN,
    UCI_RMA_WAY_OWN, /**< UCX would emulate operations, or copy itself: they are active messages of UCI's own */
    UCI_RMA_WAY_PASS /**< an adapter does them */
} uci_rma_way_t;

typedef struct uci_rma_peer {
    /* as origin */
    uci_rma_way_t way;
    uint64_t sent;      /**< operations */
    uint64_t done;      /**< of these, that the target has executed, or refused */
    uint64_t given_up;  /**< of these, that nobody waits for any more: answers to them may still come */
    uint64_t fenced;    /**< that were sent before the last fence */
    uint64_t seen_sent; /**< as uci_rma_look() has seen it, and uci_rma_settled() */
    uint64_t seen_settled;
    ucs_status_t status; /**< an error that no flush has told of yet */
    uci_list_t fetches;  /**< uci_rma_fetch_t, in order */
    uci_list_t flushes;  /**< uci_rma_flush_part_t, in order */
    /* as target */
    uint64_t arrived;
    uint64_t executed;
    uint64_t failed; /**< number of the last one that was refused since the origin was told, plus 1; or 0 */
    uint64_t failed_owner;
    uint32_t failed_region;
    ucs_status_t failed_status;
    bool goes_on;      /**< its jobs are being done */
    unsigned replying; /**< large answers that it is fetching, each a copy */
    uci_list_t jobs;   /**< uci_rma_job_t, in order: the first is a large put that is being fetched */
    uci_list_t owing;  /**< in owing of the worker */
} uci_rma_peer_t;

UCI_INLINE void uci_rma_worker_init(uci_rma_worker_t *rma)
{
    uci_list_init(&rma->owing);
}

UCI_INLINE void uci_rma_peer_init(uci_rma_peer_t *rma)
{
    uci_list_init(&rma->fetches);
    uci_list_init(&rma->flushes);
    uci_list_init(&rma->jobs);
    uci_list_init(&rma->owing);
}

/** So it was when so many operations were over, each way. */
UCI_INLINE void uci_rma_part_resume(uci_rma_peer_t *rma, uint64_t sent, uint64_t arrived)
{
    rma->sent = rma->done = rma->fenced = rma->given_up = sent;
    rma->arrived = rma->executed = arrived;
}

/** Something of this peer's memory is under way. */
UCI_INLINE bool uci_rma_is_pending(const uci_rma_peer_t *rma)
{
    return (rma->done < rma->sent) || !uci_list_is_empty(&rma->fetches);
}

UCI_INLINE bool uci_rma_part_is_idle(const uci_rma_peer_t *rma)
{
    return !uci_rma_is_pending(rma) && (rma->executed == rma->arrived) && (rma->failed == 0) && (rma->replying == 0) &&
           (rma->status == UCS_OK) && uci_list_is_empty(&rma->flushes) && uci_list_is_empty(&rma->jobs) &&
           uci_list_is_empty(&rma->owing);
}

#endif
