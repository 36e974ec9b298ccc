/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sleeping until there is something to do (UCP_FEATURE_WAKEUP). UCX wakes a program for what arrives. Two things UCX
 * knows nothing of: work that UCI could do at once, so the worker is busy and must not be armed; and what UCI does
 * after a time (asking again, copying a late send), for which a timer joins the worker's set of events:
 *
 *     arm: UCI can go on now ------> UCS_ERR_BUSY, as if something had arrived
 *          something is due later -> timer set, UCX armed
 *          nothing --------------->  timer off, UCX armed
 *
 * The set is an epoll descriptor: UCX's own (ucp_worker_get_efd) or the program's (UCP_WORKER_PARAM_FIELD_EVENT_FD).
 */
#ifndef UCI_WAKEUP_H_
#define UCI_WAKEUP_H_

#include "ucp_api.h"

struct uci_worker;

typedef struct uci_wakeup {
    int set;    /**< the epoll descriptor, -1: this worker can't be armed */
    int timer;  /**< in the set; -1 until the worker is armed for the first time */
    bool given; /**< the program's own set */
    void *data; /**< what epoll_wait() says of the timer */
} uci_wakeup_t;

/** @param params  what the program gave to ucp_worker_create(); @param enabled  the context has UCP_FEATURE_WAKEUP. */
void uci_wakeup_init(struct uci_worker *worker, const ucp_worker_params_t *params, bool enabled);

void uci_wakeup_cleanup(struct uci_worker *worker);

/** As ucp_worker_arm(), ucp_worker_wait(). The second one must be called without the worker's lock. */
ucs_status_t uci_wakeup_arm(struct uci_worker *worker);
ucs_status_t uci_wakeup_wait(struct uci_worker *worker);

#endif
