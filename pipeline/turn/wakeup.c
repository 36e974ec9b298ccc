/* SPDX-License-Identifier: BSD-3-Clause */
#include "wakeup.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "conn/close.h"
#include "conn/lost.h"
#include "conn/sock.h"
#include "rma/rma.h"
#include "util/log.h"
#include "transfer/path_table.h"
#include "util/process.h"
#include "resync.h"
#include "base/worker_lock.h"
#include "base/worker_state.h"

#define UCI_NS 1000000000ul

void uci_wakeup_init(uci_worker_t *worker, const ucp_worker_params_t *params, bool enabled)
{
    uci_wakeup_t *wakeup = &worker->turn.wakeup;

    wakeup->set   = -1;
    wakeup->timer = -1;
    wakeup->given = (params->field_mask & UCP_WORKER_PARAM_FIELD_EVENT_FD) != 0;
    wakeup->data  = (params->field_mask & UCP_WORKER_PARAM_FIELD_USER_DATA) ? params->user_data : NULL;
    if (!enabled) {
        return;
    }
    if (wakeup->given) {
        wakeup->set = params->event_fd;
    } else if (uci_ucp.worker_get_efd(worker->ucp, &wakeup->set) != UCS_OK) {
        wakeup->set = -1;
    }
}

/* A process that was forked may have the timer too: closing it here takes it out of no set. UCX's own set has gone already */
void uci_wakeup_cleanup(uci_worker_t *worker)
{
    uci_wakeup_t *wakeup = &worker->turn.wakeup;

    if (wakeup->timer < 0) {
        return;
    }
    if (wakeup->given) {
        (void)epoll_ctl(wakeup->set, EPOLL_CTL_DEL, wakeup->timer, NULL);
    }
    close(wakeup->timer);
}

/* Said once of a worker: its program asks again as fast as it can */
static bool uci_wakeup_fail(uci_wakeup_t *wakeup, const char *what)
{
    if (!wakeup->failed) {
        uci_warn("a worker can't sleep while UCI waits for something, and its program polls instead: failed to %s: %m",
                 what);
    }
    wakeup->failed = true;
    return false;
}

static bool uci_wakeup_join(uci_wakeup_t *wakeup)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = wakeup->data};

    wakeup->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (wakeup->timer < 0) {
        return uci_wakeup_fail(wakeup, "create a timer");
    }
    if (epoll_ctl(wakeup->set, EPOLL_CTL_ADD, wakeup->timer, &event) != 0) {
        (void)uci_wakeup_fail(wakeup, "add a timer to the worker's set of events");
        close(wakeup->timer);
        wakeup->timer = -1;
        return false;
    }
    return true;
}

/* Setting a timer also forgets that it has expired. A worker that can't have one is never armed while UCI waits for
 * something: its program polls instead of sleeping too long */
static bool uci_wakeup_set_timer(uci_wakeup_t *wakeup, uint64_t due)
{
    struct itimerspec when = {.it_value = {0}};

    if (due == UINT64_MAX) {
        return (wakeup->timer < 0) || (timerfd_settime(wakeup->timer, 0, &when, NULL) == 0);
    }
    if ((wakeup->timer < 0) && !uci_wakeup_join(wakeup)) {
        return false;
    }
    when.it_value.tv_sec  = (time_t)(due / UCI_NS);
    when.it_value.tv_nsec = (long)(due % UCI_NS);
    return timerfd_settime(wakeup->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0;
}

uint64_t uci_worker_due(const uci_worker_t *worker)
{
    if (worker->requests.completed != NULL) {
        return 0;
    }
    if (worker->ops_active == 0) {
        return uci_rma_due(worker);
    }
    if (uci_path_table_are_due(worker) || !uci_list_is_empty(&worker->link.waiting) ||
        !uci_list_is_empty(&worker->talk.unsent) || !uci_list_is_empty(&worker->msgs.am_ready)) {
        return 0;
    }
    if ((worker->twins.events != NULL) && worker->twins.events->is_waiting(worker)) {
        return 0;
    }
    return uci_min(uci_min(uci_min(uci_resync_due(worker), uci_close_due(worker)),
                           uci_min(uci_sock_due(worker), uci_rma_due(worker))),
                   uci_lost_due(worker));
}

ucs_status_t uci_wakeup_arm(uci_worker_t *worker)
{
    uint64_t due;

    if (worker->turn.wakeup.set < 0) {
        return uci_ucp.worker_arm(worker->ucp); /* which says why not */
    }
    due = uci_worker_due(worker);
    if ((due <= uci_process_time_ns()) || !uci_wakeup_set_timer(&worker->turn.wakeup, due)) {
        return UCS_ERR_BUSY;
    }
    return uci_ucp.worker_arm(worker->ucp);
}

/* UCX's own would keep its lock while it calls ucp_worker_arm(), and knows nothing of our timer in a given set */
ucs_status_t uci_wakeup_wait(uci_worker_t *worker)
{
    struct pollfd event = {.fd = worker->turn.wakeup.set, .events = POLLIN};
    ucs_status_t status;

    uci_worker_enter(worker);
    status = uci_wakeup_arm(worker);
    uci_worker_leave(worker);
    if (status != UCS_OK) {
        return (status == UCS_ERR_BUSY) ? UCS_OK : status;
    }
    while (poll(&event, 1, -1) < 0) {
        if (errno != EINTR) {
            uci_error("failed to wait for events: %m");
            return UCS_ERR_IO_ERROR;
        }
    }
    return UCS_OK;
}
