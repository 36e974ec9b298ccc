/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the programs about active messages (am_*.c) share: messages all of whose bytes follow from their sender and number, a handler
 * that checks them, and sends and receives that check their callbacks.
 *
 * What UCX leaves open is not expected: which messages come with DATA and which with RNDV if the sender has not said, the header's
 * pointer where its length is 0, and whether a send is over when its call returns.
 *
 * What UCX 1.13.1 does, and its documents do not say, or say otherwise:
 *
 * - header and data together count: a rendezvous from 8256 bytes on over shared memory, from 8192 over tcp. PERSISTENT_DATA does not
 *   prevent it, and RNDV is one of 0 bytes too. `length` is that of the data alone
 * - DATA by itself: over posix from about 90 bytes on, over tcp only in several fragments, from 64 KiB on
 * - data lies at the worker's alignment if the handler is PERSISTENT_DATA, else anywhere (over tcp at odd addresses); a header always
 * - handlers of one endpoint's messages are called in the order of the sends, several fragments and rendezvous (their announcement) too;
 *   where a worker sends to itself, within the send
 * - the endpoint to reply to is the receiver's own one, if it has made one before
 * - the send of a rendezvous ends with what the handler returns, if that is no receive: UCS_OK or an error; with INVALID_PARAM if nobody
 *   handles it, or a handler of the old sort. A flush does not wait for it, nor does a close
 * - a receive of a rendezvous always returns a request, unless its count is 0; recv_info is not written then, and the callback is told how
 *   large the buffer is. Data that was kept is received within the call, and never released afterwards: that leaks
 * - a request that was freed early calls nobody back; none of both sides can be cancelled
 * - it dies of: a header too long (from 1.16 on INVALID_PARAM), a buffer too small for a rendezvous, an error as answer to an eager
 *   message (assertions, which Debian leaves on), a message to an id that was never set. Ids have 16 bits: more is cut off (from 1.18 on
 *   INVALID_PARAM)
 * - a receiver that has closed its endpoint gets no more than what is in one piece and asks for no reply (tcp; by posix all of it)
 */
#ifndef UCI_TESTS_UCP_AM_TEST_H_
#define UCI_TESTS_UCP_AM_TEST_H_

#include "ucp_test.h"

/** A test that runs twice: in a context with tags, and in one that has nothing but active messages. */
#define AM_TEST(_name) \
    {#_name, _name, UCP_FEATURE_TAG | UCP_FEATURE_AM}, \
    { \
#_name "_alone", _name, UCP_FEATURE_AM \
    }

enum {
    AM_IDS   = 32,         /**< ids below this have no handler at first */
    AM_LAST  = UINT16_MAX, /**< largest id */
    AM_EAGER = UCP_AM_SEND_FLAG_EAGER,
    AM_RNDV  = UCP_AM_SEND_FLAG_RNDV,
    AM_REPLY = UCP_AM_SEND_FLAG_REPLY,
    /** Not in 1.13, which keeps the pointer until the send is over. */
    AM_COPY_HEADER = 8
};

/** Of which version is UCX, at least? */
bool am_ucx_is(unsigned major, unsigned minor);

/** A pair with the features of the running test, and no handlers. */
void am_open(ut_pair_t *pair);
/** The same, of one worker that talks to itself. */
void am_open_self(ut_pair_t *pair);
/**
 * No handlers; for pairs that were opened otherwise. UCX before 1.19 leaves undefined what handles an id that was never set: the first
 * are set to none.
 */
void am_prepare(const ut_pair_t *pair);
size_t am_max_header(ucp_worker_h worker);

/* ---------------------------------------------------------- contents */

/** Whose message, and which. Stands in front of each header that has room for it. */
typedef struct am_stamp {
    uint32_t source;
    uint32_t number;
} am_stamp_t;

unsigned am_seed(am_stamp_t stamp);
void am_header_fill(void *header, size_t length, am_stamp_t stamp);
bool am_header_check(const void *header, size_t length, am_stamp_t stamp);
am_stamp_t am_header_stamp(const void *header, size_t length);

/* ------------------------------------------------------------- sends */

typedef struct am_what {
    unsigned id;
    uint32_t flags; /**< AM_EAGER and others */
    size_t header_length;
    ut_layout_t layout;
    size_t length;
    am_stamp_t stamp;
} am_what_t;

typedef struct am_send {
    ut_op_t op;
    ut_data_t data;
    void *header;
} am_send_t;

void am_send(am_send_t *send, ucp_ep_h ep, const am_what_t *what);
/** Wait, release all. @return the status */
ucs_status_t am_send_end(const ut_pair_t *pair, am_send_t *send);

/* ---------------------------------------------------------- handlers */

/** What a handler was told last, and what it expects and answers. */
typedef struct am_inbox {
    unsigned calls;
    size_t header_length;
    size_t length;
    uint64_t attr;
    ucp_ep_h reply_ep;
    void *data;          /**< to be received or released if the answer was UCS_INPROGRESS */
    am_stamp_t stamp;    /**< of the message to come; of each if its header has one */
    ucs_status_t answer; /**< if data may be kept; without DATA and RNDV it is UCS_OK */
    ucs_status_t answered;
} am_inbox_t;

/** Checks header and, if they are there, data. @a arg is an am_inbox_t. */
ucs_status_t am_on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                           const ucp_am_recv_param_t *param);
void am_listen(ucp_worker_h worker, unsigned id, ucp_am_recv_callback_t cb, void *arg, uint32_t flags);
void am_listen_old(ucp_worker_h worker, unsigned id, ucp_am_callback_t cb, void *arg, uint32_t flags);

/** Progress until @a count is @a value. */
void am_await(const ut_pair_t *pair, const unsigned *count, unsigned value, const char *what);

/* ---------------------------------------------------------- receives */

enum {
    AM_OWN_REQUEST = 1, /**< the request lies in the program's memory */
    AM_NO_IMM      = 2  /**< a request is returned in any case */
};

typedef struct am_recv {
    ut_op_t op;
    ut_data_t data;
    size_t length; /**< as UCX says when a receive is over at once, else as the callback says */
} am_recv_t;

/** Receive what @a desc, kept by a handler, stands for into @a room bytes. May be called by the handler. */
void am_recv(am_recv_t *recv, const ut_side_t *side, void *desc, ut_layout_t layout, size_t room, unsigned how);
/** Wait. @return the status. Content is to be checked before am_recv_close(). */
ucs_status_t am_recv_wait(const ut_pair_t *pair, am_recv_t *recv);
/** Wait for success, check @a length bytes, release. */
void am_recv_end(const ut_pair_t *pair, am_recv_t *recv, size_t length, am_stamp_t stamp);
void am_recv_close(am_recv_t *recv);

/** Send, await, receive if it is a rendezvous, wait for the end, check. @a inbox listens on side b. */
void am_exchange(const ut_pair_t *pair, am_inbox_t *inbox, const am_what_t *what, ut_layout_t to);

#endif
