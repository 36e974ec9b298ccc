/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the programs about connections by socket address (sock_*.c) share: workers in one process that listen and connect over the
 * loopback device.
 *
 * What UCX 1.13.1 does, and its documents do not say:
 *
 * - a client that sends no id has the id 0
 * - ucp_ep_create() by connection request uses the request up, whatever it returns
 * - both sides' handlers are called with UCS_ERR_CONNECTION_RESET when the other side has closed, which is no error of the program's; a
 *   client that is rejected hears UCS_ERR_REJECTED
 */
#ifndef UCI_TESTS_UCP_SOCK_TEST_H_
#define UCI_TESTS_UCP_SOCK_TEST_H_

#include "ucp_test.h"

enum { SOCK_SIDES = 8, SOCK_REQUESTS = 16 };

/** A worker, and who has called it. */
typedef struct sock_side {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_listener_h listener;
    uint16_t port;
    ucp_conn_request_h requests[SOCK_REQUESTS];
    unsigned asked, taken; /**< requests that have come, and those that have been answered */
    ucp_ep_h accepted;     /**< by a handler of the old sort */
} sock_side_t;

/** One end of a connection. */
typedef struct sock_end {
    sock_side_t *side;
    ucp_ep_h ep;
    unsigned errors; /**< calls of its error handler */
    ucs_status_t error;
} sock_end_t;

/** The transports of UCX_TLS may be others: then there is nothing to test. */
bool sock_is_possible(void);

/** How errors of endpoints are handled that are made from now on. */
extern ucp_err_handling_mode_t sock_err_mode;

/** Add one. @param id  for its connections; 0: none is said. */
sock_side_t *sock_open(uint64_t features, uint64_t id);
/** The same of another worker's context. */
sock_side_t *sock_open_beside(sock_side_t *other);
void sock_close(sock_side_t *side);

/** All of them. */
void sock_progress(void);
void sock_settle(unsigned ms);

void sock_listen(sock_side_t *side);
/** With a handler that gets an endpoint. */
void sock_listen_old(sock_side_t *side);

/** @param flags  beside UCP_EP_PARAMS_FLAGS_CLIENT_SERVER. */
void sock_connect(sock_end_t *end, sock_side_t *side, uint16_t port, unsigned flags);
/** Wait until somebody asks: sock_close() refuses who is not accepted. */
void sock_expect(sock_side_t *listener);
ucp_conn_request_h sock_await(sock_side_t *listener);
/** @param side  whose worker gets it: of any context. */
void sock_accept(sock_end_t *end, sock_side_t *side, sock_side_t *listener);
/** Both. */
void sock_join(sock_end_t *client, sock_side_t *from, sock_end_t *server, sock_side_t *to);

/** @return the status that it ends with. */
ucs_status_t sock_wait(ucs_status_ptr_t request);
ucs_status_t sock_end_close(sock_end_t *end, bool force);

/** One message of @a length bytes by tag, both ends checked. */
void sock_exchange(const sock_end_t *from, const sock_side_t *to, size_t length, unsigned seed);

/** Resident memory of this process, KiB. */
size_t sock_memory(void);

#endif
