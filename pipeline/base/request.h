/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a user of a hooked tag operation holds: a request from a pool of ours, or memory of the user's
 * (UCP_OP_ATTR_FIELD_REQUEST). Both look the same, and are known by a marker word:
 *
 *     | uci_request_t | marker | UCX's own request | user area (request_size), of one from the pool |
 *                                                  ^ what the user holds
 *
 * The marker lies outside the part that UCX uses, for operations that are not ours, so that whatever UCX writes there can't look like
 * one.
 */
#ifndef UCI_REQUEST_H_
#define UCI_REQUEST_H_

#include "ucp/ucp_api.h"
#include "data/buffer.h"
#include "match/match.h"
#include "util/pool.h"
#include "uci_signature.h"

struct uci_worker;

enum {
    UCI_REQUEST_COMPLETED = 1 << 0,
    UCI_REQUEST_RELEASED  = 1 << 1, /**< the user has freed it; goes when it completes */
    UCI_REQUEST_CALLBACK  = 1 << 2,
    UCI_REQUEST_RECV      = 1 << 3,
    UCI_REQUEST_USER_MEM  = 1 << 4,
    UCI_REQUEST_POSTING   = 1 << 5, /**< still inside the call that posts it */
    UCI_REQUEST_TWIN = 1 << 6, /**< a receive whose content is compared with that of this process's twins (twin.h) */
    UCI_REQUEST_NUMBERED = 1 << 7,  /**< and `twin` says which message it is */
    UCI_REQUEST_OWN      = 1 << 8,  /**< UCI's: the user's receive comes later */
    UCI_REQUEST_ESCAPED  = 1 << 9,  /**< its content has been damaged since it was verified (uci_edge.delivered) */
    UCI_REQUEST_SIGNED   = 1 << 10, /**< a receive whose `signature` has not been compared (signed.h) */
    UCI_REQUEST_USER_AM  = 1 << 11  /**< of an active message of the program's */
};

/** What twins say of a message: see twin_votes.h. */
typedef struct uci_twin_note {
    uint32_t channel;
    uint32_t number;
    uint64_t digest;
    uint32_t form;
} uci_twin_note_t;

typedef struct uci_request {
    ucs_status_t status;
    uint32_t flags;
    struct uci_worker *worker;
    void *user; /**< what the user holds */
    union {
        ucp_send_nbx_callback_t send;
        ucp_tag_recv_nbx_callback_t recv;
        ucp_am_recv_data_nbx_callback_t recv_am;
    } cb;
    void *user_data;
    ucp_tag_recv_info_t info;           /**< of a completed receive */
    uci_buffer_t buffer;                /**< the user's, for a receive or a rendezvous send */
    uci_match_recv_t match;             /**< a receive: posted until it is matched */
    struct uci_request *next_completed; /**< in worker->completed */
    ucs_status_t completed_status;
    union {
        uci_twin_note_t twin; /**< NUMBERED: of its message */
        size_t grain;         /**< a receive of a stream: it may end when it has a multiple of so many bytes */
    };
    uci_signature_t signature; /**< SIGNED */
} uci_request_t;

/** Bytes of UCX's own requests. */
extern size_t uci_request_ucx_size;

/** Learn how large UCX's own requests are. To be called with each context; sizes never differ in a process. */
void uci_request_set_ucx_size(size_t ucx_size);

/** What ucp_context_query must report, so that a user's memory has room for us and for UCX. */
size_t uci_request_user_size(void);

/** Bytes of a pool object in front of the user's area. */
size_t uci_request_head(void);

UCI_INLINE uint64_t *uci_request_marker(void *user)
{
    return (uint64_t *)(void *)((char *)user - uci_request_ucx_size - sizeof(uint64_t));
}

/* Depends on the address, so that a copy elsewhere is not one */
UCI_INLINE uint64_t uci_request_marker_value(const void *user)
{
    return (uint64_t)(uintptr_t)user ^ 0x9e3779b97f4a7c15ul;
}

/** This memory holds a request of ours. */
UCI_INLINE uci_request_t *uci_request_mark(void *user)
{
    uint64_t *marker = uci_request_marker(user);

    *marker = uci_request_marker_value(user);
    return (uci_request_t *)(void *)((char *)marker - sizeof(uci_request_t));
}

/** Forget that this memory held a request of ours: the user passes it to an operation we do not cover. */
UCI_INLINE void uci_request_clear_marker(void *user)
{
    *uci_request_marker(user) = 0;
}

/** @return our request behind what a user holds, or NULL if it is UCX's: those come from its pools, where the word in front of one is
 *  the pool's. */
UCI_INLINE uci_request_t *uci_request_from_user(void *user)
{
    uint64_t *marker = uci_request_marker(user);

    return uci_likely(*marker == uci_request_marker_value(user))
                   ? (uci_request_t *)(void *)((char *)marker - sizeof(uci_request_t))
                   : NULL;
}

/** Get a request for an operation with @a param; NULL if there is no memory. */
uci_request_t *uci_request_get(struct uci_worker *worker, const ucp_request_param_t *param);

/** Give back one that the user never got to see. */
void uci_request_put(uci_request_t *req);

/** Complete: sets the status and puts the request if the user has released it already. One that has a callback is queued: no code
 *  of the program's runs before uci_request_deliver(). (A completion queue.) */
void uci_request_complete(uci_request_t *req, ucs_status_t status);

/** The end of a turn, and of a worker: complete what is queued, in order, and call the callbacks. @return how many. */
unsigned uci_request_deliver(struct uci_worker *worker);

/** As uci_request_complete() for a receive; also sets what the user is told about the message. */
void uci_request_complete_recv(uci_request_t *req, ucs_status_t status, ucp_tag_t tag, size_t length);

/** End of the posting call: what to return to the user, by UCX's rules of immediate completion. */
ucs_status_ptr_t uci_request_posted(uci_request_t *req, const ucp_request_param_t *param);

/** As uci_request_posted() for an operation that completed with no request made (an eager send). */
ucs_status_ptr_t uci_request_immediate(struct uci_worker *worker, const ucp_request_param_t *param);

/** Whose callback this thread is in, where others may ask too: over for the callback, and for nobody else yet. */
extern __thread const uci_request_t *uci_request_ending;

/* The user's calls */
UCI_INLINE ucs_status_t uci_request_check(uci_request_t *req)
{
    ucs_status_t status = __atomic_load_n(&req->status, __ATOMIC_ACQUIRE);

    return uci_unlikely((status == UCS_INPROGRESS) && (req == uci_request_ending)) ? req->completed_status : status;
}
/** As in UCX, a request freed before it completes no longer calls its callback; a released one does. */
void uci_request_free(uci_request_t *req);
void uci_request_release(uci_request_t *req);
void uci_request_cancel(uci_request_t *req);

/** For worker->withdraw: a receive is posted no longer. @return true */
bool uci_request_withdraw(uci_request_t *req);

/** A receive that the user has cancelled some time ago, and that is posted no longer, ends. */
void uci_request_cancelled(uci_request_t *req);

#endif
