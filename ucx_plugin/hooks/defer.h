/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the program does by an endpoint that was made by socket address (conn/sock.h). As long as it is not told whether the other side has UCI,
 * it waits: the program has a request of UCI's, and when the endpoint is settled the operation is begun, in order, as UCI's or as UCX's,
 * with a request of its own, which ends the program's.
 */
#ifndef UCI_DEFER_H_
#define UCI_DEFER_H_

#include "conn/sock.h"

typedef enum {
    UCI_DEFER_TAG,
    UCI_DEFER_TAG_SYNC,
    UCI_DEFER_AM,
    UCI_DEFER_STREAM,
    UCI_DEFER_STREAM_RECV,
    UCI_DEFER_FLUSH,
    UCI_DEFER_CLOSE,
    UCI_DEFER_BARRIER, /**< of uci_defer_worker_flush() */
    UCI_DEFER_KINDS
} uci_defer_kind_t;

typedef struct uci_defer_what {
    uci_defer_kind_t kind;
    void *buffer;
    size_t count;
    uint64_t tag;       /**< of an active message its id */
    const void *header; /**< of an active message */
    size_t header_length;
    size_t *length_p; /**< STREAM_RECV: where to put how much it has received, if it ends at once */
} uci_defer_what_t;

/** Do it, or have it wait. @a param is the program's. @return as the function of UCX's. */
ucs_status_ptr_t uci_defer(uci_sock_t *sock, const uci_defer_what_t *what, const ucp_request_param_t *param);

/** Does anything wait by an endpoint of this worker? */
bool uci_defer_is_any(const uci_worker_t *worker);

/** As ucp_worker_flush_nbx(), when something does, within the worker's lock: behind all that. */
ucs_status_ptr_t uci_defer_worker_flush(uci_worker_t *worker, const ucp_request_param_t *param);

/** The endpoint is settled: begin what has waited. */
void uci_defer_run(uci_sock_t *sock);

/** The worker goes: forget what has waited. UCX is told to close what is still connecting, since it does not survive that UCI's flush waits
 *  there (1.13: an assertion in ucp_worker_destroy()). */
void uci_defer_drop(uci_sock_t *sock);

/** What has waited ends with @a status. */
void uci_defer_fail(uci_sock_t *sock, ucs_status_t status);

#endif
