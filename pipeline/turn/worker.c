/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker.h"

#include <stdlib.h>

#include "base/worker_alloc.h"
#include "link/bounce.h"
#include "conn/close.h"
#include "link/control.h"
#include "dispatch.h"
#include "conn/endpoint.h"
#include "conn/lost.h"
#include "conn/rest.h"
#include "conn/sock.h"
#include "gauges.h"
#include "link/link_recv.h"
#include "link/link_send.h"
#include "util/log.h"
#include "link/mailbox.h"
#include "pace.h"
#include "util/process.h"
#include "transfer/path_table.h"
#include "base/peer_table.h"
#include "message/early.h"
#include "message/raw.h"
#include "message/recv.h"
#include "transfer/recv_common.h"
#include "report/report.h"
#include "base/request.h"
#include "resync.h"
#include "rma/rma.h"
#include "link/sealed_recv.h"
#include "transfer/send_common.h"
#include "base/siblings.h"
#include "base/span.h"
#include "live/stats.h"
#include "tune/tuner.h"
#include "message/unexpected.h"
#include "message/user_stream.h"
#include "message/user_am.h"
#include "wakeup.h"
#include "base/wire.h"
#include "base/worker_lock.h"
#include "base/worker_state.h"

/* As long as each turn finds frames in the mailbox, UCX has its part in one of so many */
#define UCI_WORKER_UCX_TURNS 8

/* Turns without UCX's part after one in which it had nothing */
#define UCI_WORKER_UCX_RESTS 3

static ucs_status_t uci_worker_listen(uci_worker_t *worker, unsigned id, ucp_am_recv_callback_t recv)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                  UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                    .id  = id,
                                    .cb  = recv,
                                    .arg = worker};

    return uci_ucp.worker_set_am_recv_handler(worker->ucp, &param);
}

static ucs_status_t uci_worker_listen_plain(uci_worker_t *worker)
{
    ucs_status_t status = uci_worker_listen(worker, UCI_FRAME_AM_ID, uci_link_recv);

    return (status == UCS_OK) ? uci_worker_listen(worker, UCI_AM_ID, uci_control_recv) : status;
}

static ucs_status_t uci_worker_listen_sealed(uci_worker_t *worker)
{
    ucs_status_t status = uci_worker_listen(worker, UCI_FRAME_AM_ID, uci_sealed_recv_plain);

    if (status == UCS_OK) {
        status = uci_worker_listen(worker, UCI_AM_ID, uci_sealed_recv_hello);
    }
    return (status == UCS_OK) ? uci_worker_listen(worker, UCI_SEALED_AM_ID, uci_sealed_recv) : status;
}

static size_t uci_worker_am_alignment(const ucp_worker_params_t *params)
{
    return (params->field_mask & UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT) ? params->am_alignment : 1;
}

static size_t uci_worker_max_am_header(ucp_worker_h ucp)
{
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};

    return uci_user_am_max_header((uci_ucp.worker_query(ucp, &attr) == UCS_OK) ? attr.max_am_header : 0);
}

ucs_status_t uci_worker_create(ucp_worker_h ucp, uci_context_t *context, const ucp_worker_params_t *params,
                               ucs_thread_mode_t thread_mode, uci_worker_t **worker_p)
{
    static const uci_worker_calls_t calls                       = {.turn       = uci_worker_turn,
                                                                   .message    = uci_dispatch,
                                                                   .handlers   = uci_am_handlers,
                                                                   .recv       = uci_recv,
                                                                   .find       = uci_unexpected_oldest,
                                                                   .withdraw   = uci_request_withdraw,
                                                                   .arrived    = uci_recv_arrived,
                                                                   .lost       = uci_recv_lost,
                                                                   .own_failed = uci_lost_hear,
                                                                   .recv_flags = UCI_REQUEST_RECV};
    static const uci_user_am_handler_t own_ams[UCI_OWN_AM_LAST] = {
            [UCI_OWN_AM_STREAM]    = {.recv = uci_user_stream_arrived},
            [UCI_OWN_AM_RMA]       = {.recv = uci_rma_arrived},
            [UCI_OWN_AM_RMA_REPLY] = {.recv = uci_rma_reply_arrived},
            [UCI_OWN_AM_RMA_DONE]  = {.recv = uci_rma_done_arrived}};
    ucs_status_t status;
    uci_worker_t *worker;

    uci_tuner_init(uci_ucp.get_version_string());
    worker = uci_worker_alloc(ucp, context, &calls);
    if (worker == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    uci_stats_set_info(worker->choice.digest->name, uci_mode_names[uci_settings.mode], uci_ucp.get_version_string());
    uci_worker_lock_init(worker, thread_mode);
    uci_list_init(&worker->turn.later);
    uci_wakeup_init(worker, params, context->wakeup);
    uci_link_worker_init(&worker->link, uci_settings.log_size);
    uci_control_worker_init(&worker->talk, sizeof(uci_control_t) + UCI_CONTROL_POOLED);
    uci_transfer_worker_init(&worker->xfer, UCI_SLOT_SIZE);
    uci_conn_worker_init(&worker->conn);
    uci_message_worker_init(&worker->msgs, uci_worker_max_am_header(ucp), uci_worker_am_alignment(params), own_ams);
    uci_rma_worker_init(&worker->rma);

    uci_report_init();
    status = uci_worker_learn_address(worker);
    if (status != UCS_OK) {
        goto err_free;
    }
    status = uci_worker_listen(worker, UCI_GREETING_AM_ID, uci_sock_recv);
    if (status == UCS_OK) {
        status = worker->self.seals ? uci_worker_listen_sealed(worker) : uci_worker_listen_plain(worker);
    }
    if (status != UCS_OK) {
        uci_error("failed to install the handler of active messages: %s", uci_ucp.status_string(status));
        goto err_release_address;
    }
    uci_stats_join(&worker->stats, worker->uid);
    uci_gauges_refresh(worker);
    uci_siblings_join(worker);
    *worker_p = worker;
    return UCS_OK;

err_release_address:
    uci_ucp.worker_release_address(ucp, worker->self.address);
err_free:
    uci_worker_free(worker);
    return status;
}

void uci_worker_shutdown(uci_worker_t *worker)
{
    uci_siblings_leave(worker);
    uci_ep_shutdown(worker);
    uci_close_shutdown(worker);
    while (uci_request_deliver(worker) > 0) {
    }
    uci_raw_shutdown(worker);
    uci_send_shutdown(worker);
    uci_recv_shutdown(worker);
    uci_worker_for_each_peer(peer, worker)
    {
        uci_bounce_unmap(peer);
        uci_mailbox_unmap(peer);
    }
    uci_bounce_cleanup(worker);
    uci_mailbox_cleanup(worker);
    uci_ucp.worker_release_address(worker->ucp, worker->self.address);
}

void uci_worker_destroy(uci_worker_t *worker)
{
    uci_worker_for_each_peer(peer, worker)
    {
        uci_user_am_cleanup(peer);
        uci_user_stream_cleanup(peer);
        uci_rma_cleanup(peer);
        uci_early_drop(peer, UINT64_MAX);
    }
    uci_user_am_worker_cleanup(worker);
    uci_dispatch_cleanup(worker);
    uci_unexpected_cleanup(worker);
    uci_lost_cleanup(worker);
    uci_close_cleanup(worker);
    uci_sock_cleanup(worker);
    uci_send_cleanup(worker);
    uci_path_table_cleanup(worker);
    uci_recv_cleanup(worker);
    uci_spans_cleanup(worker);
    uci_worker_for_each_peer(peer, worker)
    {
        uci_link_cleanup(peer);
        uci_control_cleanup(peer);
    }
    uci_control_worker_cleanup(&worker->talk);
    uci_transfer_worker_cleanup(&worker->xfer);
    uci_stats_leave(&worker->stats);
    uci_wakeup_cleanup(worker);
    uci_worker_lock_cleanup(worker);
    uci_worker_free(worker);
}

/* What could not be sent where it was said. What this brings from ourselves may bring more, for the next turn */
static void uci_worker_send_unsent(uci_worker_t *worker)
{
    uci_list_t todo;
    uci_peer_t *peer;

    uci_control_begin_unsent(worker, &todo);
    while (!uci_list_is_empty(&todo)) {
        peer = uci_control_next_unsent(worker, &todo);
        uci_control_send_pending(peer);
        uci_mailbox_offer(peer);
    }
    uci_control_end_unsent(worker);
}

/* What is not done by UCX's callbacks */
static __attribute__((noinline)) unsigned uci_worker_progress_own(uci_worker_t *worker)
{
    unsigned count = 0;

    worker->turn.own = true;
    if (uci_unlikely(!uci_list_is_empty(&worker->conn.socks))) {
        /* first: what is said to a peer that is new goes by the program's endpoint */
        count += uci_sock_progress(worker);
    }
    if (uci_unlikely(!uci_list_is_empty(&worker->conn.lost))) {
        uci_lost_progress(worker);
    }
    if (!uci_list_is_empty(&worker->talk.unsent)) {
        uci_worker_send_unsent(worker);
        ++count;
    }
    if (!uci_list_is_empty(&worker->link.waiting)) {
        count += uci_link_progress(worker);
    }
    count += uci_path_table_progress(worker);
    if (worker->ops_active > 0) {
        uci_resync_progress(worker);
    }
    if (!uci_list_is_empty(&worker->conn.closing)) {
        uci_close_progress(worker);
    }
    if (uci_unlikely(worker->msgs.is_raw)) {
        count += uci_raw_progress(worker);
    }
    if (uci_unlikely(!uci_list_is_empty(&worker->msgs.am_ready))) {
        count += uci_user_am_progress(worker);
    }
    if (uci_unlikely(!uci_list_is_empty(&worker->rma.owing))) {
        uci_rma_tell(worker); /* in this turn, for there may be no other one */
    }
    if (uci_unlikely(worker->twins.events != NULL)) {
        count += worker->twins.events->progress(worker);
    }
    worker->turn.own = false;
    return count;
}

UCI_INLINE unsigned uci_worker_poll_ucx(uci_worker_t *worker, ucp_worker_h ucp)
{
    unsigned count = uci_ucp.worker_progress(ucp);

    if (count == 0) {
        uci_link_has_read(worker);
        if (uci_unlikely(!uci_list_is_empty(&worker->turn.later))) {
            uci_dispatch_later(worker);
        }
    }
    return count;
}

/* UCX's part of a turn that has found nothing: each, or one of four of those in which it has nothing to bring but a word now and then,
 * since all peers send by mailbox and no operation that UCX has a part in is under way. Polling is most of what some programs do (MPI_Test
 * for each update of hpcc's MPIRandomAccess), and an empty turn should not cost more than plain UCX's. */
UCI_INLINE unsigned uci_worker_progress_ucx(uci_worker_t *worker, ucp_worker_h ucp)
{
    unsigned count;

    if (worker->turn.ucx_rests > 0) {
        --worker->turn.ucx_rests;
        return 0;
    }
    count = uci_worker_poll_ucx(worker, ucp);
    if ((count == 0) && (worker->turn.pace <= 1) && (worker->link.mailbox.count > 0) &&
        (worker->link.mailbox.count == worker->peers.count) &&
        ((worker->ops_active == 0) || uci_path_table_is_own(worker))) {
        worker->turn.ucx_rests = UCI_WORKER_UCX_RESTS;
    }
    return count;
}

/* UCX has its part each turn, but for some of those that find frames in the mailbox: then there will be another one at once */
UCI_INLINE unsigned uci_worker_turn_of(uci_worker_t *worker, ucp_worker_h ucp)
{
    unsigned count = 0;

    ++worker->turn.count;
    if (!uci_mailbox_is_quiet(&worker->link.mailbox)) {
        count = uci_mailbox_poll(worker);
    }
    if (count == 0) {
        count = uci_worker_progress_ucx(worker, ucp);
    } else if (uci_unlikely(uci_worker_is_turn(worker, UCI_WORKER_UCX_TURNS))) {
        count += uci_worker_poll_ucx(worker, ucp);
    }
    if (uci_unlikely(worker->ops_active > 0)) {
        count += uci_worker_progress_own(worker);
    }
    if ((worker->requests.completed != NULL) && uci_likely(!worker->sibling.helped)) {
        worker->turn.own = true; /* callbacks may send, and connect */
        count += uci_request_deliver(worker);
        worker->turn.own = false;
    }
    worker->turn.count = (worker->turn.count | worker->turn.pace) + 1;
    return count;
}

/* By who looks after others: also for what the log owes, which nobody else asks for as long as the program is elsewhere */
unsigned uci_worker_turn(uci_worker_t *worker)
{
    unsigned count = uci_worker_turn_of(worker, worker->ucp);

    uci_link_look(worker);
    uci_rma_look(worker);
    return count;
}

/* What is not worth a look in each turn */
static void uci_worker_look(uci_worker_t *worker)
{
    uci_siblings_help(worker);
    uci_link_look(worker);
    uci_rma_look(worker);
    uci_gauges_refresh(worker);
    uci_rest_progress(worker);
    if (uci_unlikely(worker->twins.events != NULL)) {
        worker->twins.events->progress(worker);
    }
}

unsigned uci_worker_progress(uci_worker_t *worker, ucp_worker_h ucp)
{
    unsigned count = uci_worker_turn_of(worker, ucp);

    if (uci_unlikely(worker->turn.count % (2 * UCI_PACE_TURNS) == 0)) {
        uci_pace_measure(&worker->turn, uci_process_time_ns());
        if (worker->turn.count % (2 * UCI_SIBLINGS_TURNS) == 0) {
            uci_worker_look(worker);
        }
    }
    return count;
}
