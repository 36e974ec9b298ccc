/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations, as UCX's: put, get, atomics, flush, fence. Where UCX would emulate them, or its transports copy, they are active
 * messages of UCI's own, which the target executes in its turn: verified, once, and in the order in which the origin has sent them.
 *
 *     origin     put, get, atomic --> RMA --> target     looks whether the region is there, and executes; a large put is fetched into the
 *                                                        region first, and what came behind it waits
 *     a get ends <-- REPLY, with what was there --+
 *     a flush ends <-- DONE, how many --+------ at the end of the same turn: a target that makes no further progress keeps no flush waiting
 *
 * Memory that the origin can reach itself, its own or attached (ucp_rkey_ptr()), it reads and writes itself. What an adapter does, UCX has it
 * do. So who takes part in atomics on a region is processors alone, or adapters alone.
 */
#ifndef UCI_RMA_H_
#define UCI_RMA_H_

#include "base/peer_table.h"
#include "base/request.h"

/* -------------------------------------------------------------- regions */

/** What an origin knows of a region: behind a ucp_rkey_h. */
typedef struct uci_rma_key {
    uci_rma_packed_t packed;
    char *memory; /**< where the region lies in this process; NULL: it is not attached */
    bool foreign; /**< it is of another process than the endpoint leads to */
    bool settled; /**< these two are found out */
} uci_rma_key_t;

/** Of a context, which begins, and ends. @return NULL: no memory (logged). */
uci_rma_regions_t *uci_rma_regions_create(void);
void uci_rma_regions_destroy(uci_rma_regions_t *regions);

/** The program has mapped memory of the host's, and unmaps it; any memory. Without memory for it the region has no key of UCI's, and what is done to it passes. */
void uci_rma_region_add(uci_rma_regions_t *regions, ucp_mem_h memh, void *base, size_t length);
void uci_rma_region_remove(uci_rma_regions_t *regions, ucp_mem_h memh);

/**
 * UCX's packed key with what UCI knows of the region behind.
 * @return memory to free(); NULL: UCI knows nothing of it, or has no memory (logged).
 */
void *uci_rma_key_pack(uci_rma_regions_t *regions, ucp_mem_h memh, const void *ucx, size_t *size_p);

/** No key is longer, with what is behind. */
#define UCI_RMA_KEY_ROOM 4096u

/** @return bytes within which what UCI has put behind @a key is found, if it has. */
size_t uci_rma_key_room(const void *key);

/** Find it in the first @a length bytes of a key. @return false: UCI has put nothing there. */
bool uci_rma_key_find(const char *key, size_t length, uci_rma_packed_t *packed_p);

/** Of such a key that was unpacked. @return memory to free(); NULL: damaged, or no memory (logged). */
uci_rma_key_t *uci_rma_key_unpack(const uci_rma_packed_t *packed);

/** It is used for the first time, by the endpoint that it was unpacked for: is it that peer's, and where does its region lie? */
void uci_rma_key_settle(uci_ep_t *ep, uci_rma_key_t *key, ucp_rkey_h ucx);

/**
 * The bytes of a region that an operation is about, as long as uci_rma_region_leave() has not been called.
 * @param regions  may be NULL.
 * @return UCS_OK, or UCS_ERR_INVALID_ADDR: nothing is to be left, and @a why says what is wrong.
 */
ucs_status_t uci_rma_region_enter(uci_rma_regions_t *regions, const uci_rma_header_t *what, char **data_p,
                                  const char **why);
void uci_rma_region_leave(uci_rma_regions_t *regions);

/* --------------------------------------------------------------- origin */

/** Is an operation with this key UCI's? Else UCX has it. */
bool uci_rma_is_own(uci_ep_t *ep, const uci_rma_key_t *key);

/** As ucp_put_nbx(), ucp_get_nbx(), ucp_atomic_op_nbx(), of buffers that are contiguous or an iov. */
ucs_status_ptr_t uci_rma_put(uci_ep_t *ep, const void *buffer, size_t count, uint64_t address, const uci_rma_key_t *key,
                             const ucp_request_param_t *param);
ucs_status_ptr_t uci_rma_get(uci_ep_t *ep, void *buffer, size_t count, uint64_t address, const uci_rma_key_t *key,
                             const ucp_request_param_t *param);
ucs_status_ptr_t uci_rma_atomic(uci_ep_t *ep, ucp_atomic_op_t op, const void *buffer, size_t count, uint64_t address,
                                const uci_rma_key_t *key, const ucp_request_param_t *param);

/** An operation of the program's goes to UCX. */
UCI_INLINE void uci_rma_passes(uci_worker_t *worker)
{
    worker->rma.passed = true;
}

/** Has UCI a part in what is to be flushed? */
bool uci_rma_flushes(const uci_worker_t *worker);

/** As ucp_ep_flush_nbx(), ucp_worker_flush_nbx(). @param ep  NULL: all of the worker's. */
ucs_status_ptr_t uci_rma_flush(uci_worker_t *worker, uci_ep_t *ep, const ucp_request_param_t *param);

/** @return how many of the first operations on a peer's memory are over on both sides. */
uint64_t uci_rma_settled(const uci_peer_t *peer);

/** From time to time: of what is not over, and lies with nobody any more, it is asked what became of it. */
void uci_rma_look(uci_worker_t *worker);

/** @return when uci_rma_look() has something to do, as uci_process_time_ns(); UINT64_MAX: never. */
uint64_t uci_rma_due(const uci_worker_t *worker);

/** As ucp_worker_fence(), beside UCX's. */
void uci_rma_fence(uci_worker_t *worker);

/** Of uci_own_am_t, see user_am.h: what a target says. */
ucs_status_t uci_rma_reply_arrived(void *peer, const void *header, size_t header_length, void *data, size_t length,
                                   const ucp_am_recv_param_t *param);
ucs_status_t uci_rma_done_arrived(void *peer, const void *header, size_t header_length, void *data, size_t length,
                                  const ucp_am_recv_param_t *param);

/** Nothing more comes from the peer: all ends with @a status. */
void uci_rma_fail(uci_peer_t *peer, ucs_status_t status);

/* --------------------------------------------------------------- target */

/** Of uci_own_am_t: an operation on our memory. */
ucs_status_t uci_rma_arrived(void *peer, const void *header, size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *param);

/** The end of a turn: origins are told what was executed. */
void uci_rma_tell(uci_worker_t *worker);

/** The peer goes. */
void uci_rma_cleanup(uci_peer_t *peer);

#endif
