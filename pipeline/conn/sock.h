/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints that are made by socket address: of a client, who names the address, and of a server, who accepts a request. No worker's address,
 * and so no mark, is exchanged before UCX connects. So the client puts a mark into the id that UCX carries to the server (its client id, which
 * has room for the program's own), and a server that finds it greets: both tell their marks, in active messages of an id of their own that go
 * by this very endpoint. Whoever has no UCI is never sent one, which UCX would not survive everywhere.
 *
 *     client                                                      server
 *     CONNECTING --UCX has connected--> LISTENING                 accepts an id without a mark --> RAW
 *         |                                |   |                  accepts one with a mark: SPOKEN, and FIRST, which is repeated
 *         |                                |   |                     |                 |
 *         +------------ FIRST -------------+   +--silence--> RAW     +--ANSWER         +--PASS: its client has not waited --> RAW
 *                         |                    UCI_CONNECT_WAIT         |
 *                         v                                             v
 *                       HEARD --its mark is checked; ANSWER-->        HEARD --its mark is checked-->
 *                         |                                             |
 *                         +----------> KNOWN, or REFUSED <--------------+
 *
 *     any --UCX says that the endpoint has failed--> FAILED              RAW --UCI_REQUIRE, UCI_SEAL, UCI_TWINS--> REFUSED
 *
 * What the program does meanwhile waits, and is done in order when it is settled (hooks/defer.h). KNOWN: the endpoint is one of the peer's, as
 * if it had been made by worker address. RAW: all that concerns it goes to UCX, and its messages come by UCX's matching (message/raw.h).
 * REFUSED: it is as good as failed.
 *
 * FIRST is answered as often as it comes: the answer may have been lost. Nothing that a greeting says is believed before its mark has been
 * checked, which is authentic where this process seals.
 */
#ifndef UCI_SOCK_H_
#define UCI_SOCK_H_

#include <sys/socket.h>

#include "base/peer_table.h"

typedef enum {
    UCI_SOCK_CONNECTING,
    UCI_SOCK_LISTENING,
    UCI_SOCK_SPOKEN,
    UCI_SOCK_HEARD,
    UCI_SOCK_KNOWN,
    UCI_SOCK_RAW,
    UCI_SOCK_REFUSED,
    UCI_SOCK_FAILED
} uci_sock_state_t;

#define UCI_SOCK_NAME_MAX 64

struct uci_sock;
typedef struct uci_sock_flush uci_sock_flush_t;

/** It is KNOWN, RAW, REFUSED or FAILED: called in UCI's part of a turn. The callee may have it destroyed. */
typedef void (*uci_sock_settled_t)(struct uci_sock *sock);

typedef struct uci_sock {
    uci_list_t link; /**< in worker->conn */
    uci_worker_t *worker;
    ucp_ep_h ucp;
    uci_sock_state_t state;
    ucs_status_t status; /**< FAILED, REFUSED: why */
    uint64_t time;       /**< CONNECTING: of hurrying; LISTENING: of giving up; SPOKEN: of saying it again; in ns */
    unsigned said;       /**< times that FIRST has been */
    uint32_t stream;     /**< as the server calls it */
    uci_conn_coming_t *coming; /**< a server's, until it is KNOWN; or NULL */
    uci_sock_flush_t *flush;   /**< tells when UCX has connected; or NULL */
    uci_mark_t *heard;         /**< its mark and address, as long as it is HEARD */
    uci_ep_t *ep;              /**< KNOWN; NULL again when the program has closed it */
    uci_sock_settled_t settled;
    void *user_data;                   /**< of UCP_EP_PARAM_FIELD_USER_DATA */
    ucp_err_handler_cb_t user_handler; /**< what the program wants to be called when it fails; may be NULL */
    void *user_arg;                    /**< and with what */
    bool is_server;
    bool unforced;                /**< see uci_ep_t */
    bool is_settled;              /**< what has waited is being done, or done */
    bool is_deaf;                 /**< the program may not use it any more: it has closed it, which waits */
    uci_list_t deferred;          /**< what waits: of hooks/defer.h */
    char name[UCI_SOCK_NAME_MAX]; /**< of the other side, as far as it is known: "127.0.0.1:4711" */
} uci_sock_t;

/** May it be that its other side has UCI, and that has not been told yet? */
UCI_INLINE bool uci_sock_is_waiting(const uci_sock_t *sock)
{
    return !sock->is_settled;
}

/** Ids from here on are the program's business: they don't fit into a mark. */
#define UCI_SOCK_ID_MAX (1ul << 40)

/** @return an id for UCX to carry, with a mark and the program's own @a id, which is less than UCI_SOCK_ID_MAX. */
uint64_t uci_sock_id(uint64_t id);

/** Is this such an id? @param own_p  the program's own. */
bool uci_sock_id_is_marked(uint64_t id, uint64_t *own_p);

/** UCX carries one for the endpoints of this worker. */
UCI_INLINE void uci_sock_mark_worker(uci_worker_t *worker)
{
    worker->conn.is_marked = true;
}

/** May nothing pass in this process that is not verified? */
bool uci_sock_is_required(void);

/** What to call a socket address. */
void uci_sock_print(const struct sockaddr *address, char *text, size_t size);

/** Count a connection that is not verified, and say so. @param why  a clause. */
void uci_sock_say_raw(const char *name, const char *why);

/** Say that one is refused, since nothing may pass. */
void uci_sock_say_refused(const char *name, const char *why);

/**
 * UCX has made an endpoint of @a worker by socket address: begin to greet.
 * @param is_marked  the client has put its mark into the id.
 * @return NULL: no memory (logged).
 */
uci_sock_t *uci_sock_create(uci_worker_t *worker, ucp_ep_h ucp, bool is_server, bool is_marked, const char *name,
                            uci_sock_settled_t settled);

/** Something of the program waits for it: a client looks when UCX has connected, so that nobody waits for a greeting that never comes. */
void uci_sock_hurry(uci_sock_t *sock);

/** The program has closed it, or the worker goes. UCX's own endpoint is the caller's to close. */
void uci_sock_destroy(uci_sock_t *sock);

/** UCX says that it has failed. */
void uci_sock_fail(uci_sock_t *sock, ucs_status_t status);

/** Greetings: a ucp_am_recv_callback_t. @param arg  the worker. */
ucs_status_t uci_sock_recv(void *arg, const void *header, size_t header_length, void *data, size_t length,
                           const ucp_am_recv_param_t *param);

/** What is wrong with a greeting of @a length bytes, for people; or NULL. */
const char *uci_sock_check(const uci_greeting_t *greeting, size_t length);

/** Go on with those that wait. @return how many have been settled. */
unsigned uci_sock_progress(uci_worker_t *worker);

/** @return when one has something to do, in ns; UINT64_MAX: none has. */
uint64_t uci_sock_due(const uci_worker_t *worker);

/** Call @a func for each. */
void uci_sock_visit(uci_worker_t *worker, void (*func)(uci_sock_t *sock));

/** For uci_dump(): a line for each that waits. */
void uci_sock_dump(const uci_worker_t *worker, int fd);

/** The worker is gone, and UCX's part of it. */
void uci_sock_cleanup(uci_worker_t *worker);

#endif
