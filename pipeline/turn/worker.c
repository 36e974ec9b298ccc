/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker.h"

#include <stdlib.h>

#include "link/bounce.h"
#include "conn/close.h"
#include "link/control.h"
#include "dispatch.h"
#include "conn/endpoint.h"
#include "gauges.h"
#include "link/link_recv.h"
#include "link/link_send.h"
#include "util/log.h"
#include "link/mailbox.h"
#include "transfer/path_table.h"
#include "base/peer_table.h"
#include "message/recv.h"
#include "transfer/recv_common.h"
#include "report/report.h"
#include "base/request.h"
#include "resync.h"
#include "link/sealed_recv.h"
#include "transfer/send_common.h"
#include "base/siblings.h"
#include "base/span.h"
#include "live/stats.h"
#include "tune/tuner.h"
#include "message/unexpected.h"
#include "wakeup.h"
#include "base/wire.h"
#include "base/worker_lock.h"

#define UCI_WORKER_REQUEST_SLAB 64
#define UCI_WORKER_MESSAGE_SLAB 32
#define UCI_WORKER_COPY_SLAB    4

/* As long as each turn finds frames in the mailbox, UCX has its part in one of so many */
#define UCI_WORKER_UCX_TURNS 8

/* Turns without UCX's part after one in which it had nothing */
#define UCI_WORKER_UCX_RESTS 3

static void uci_worker_request_init(void *arg, void *object)
{
    uci_context_t *context = arg;

    if (context->request_init != NULL) {
        context->request_init((char *)object + uci_request_head());
    }
}

static void uci_worker_request_cleanup(void *arg, void *object)
{
    uci_context_t *context = arg;

    if (context->request_cleanup != NULL) {
        context->request_cleanup((char *)object + uci_request_head());
    }
}

static ucs_status_t uci_worker_learn_address(uci_worker_t *worker)
{
    ucp_worker_address_attr_t attr = {.field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID};
    ucs_status_t status;

    status = uci_ucp.worker_get_address(worker->ucp, &worker->address, &worker->address_length);
    if (status != UCS_OK) {
        uci_error("failed to get the worker's address: %s", uci_ucp.status_string(status));
        return status;
    }
    status = uci_ucp.worker_address_query(worker->address, &attr);
    if (status != UCS_OK) {
        uci_error("failed to get the worker's uid: %s", uci_ucp.status_string(status));
        uci_ucp.worker_release_address(worker->ucp, worker->address);
        return status;
    }
    worker->uid = attr.worker_uid;
    status      = uci_mark_init(&worker->mark, worker->uid);
    if (status != UCS_OK) {
        uci_ucp.worker_release_address(worker->ucp, worker->address);
        return status;
    }
    worker->mark.eager_max = (uint32_t)worker->eager_max;
    uci_mark_finish(&worker->mark);
    return UCS_OK;
}

static void uci_worker_init_lists(uci_worker_t *worker)
{
    uci_list_init(&worker->probed);
    uci_list_init(&worker->watched);
    uci_list_init(&worker->streams);
    uci_list_init(&worker->offers);
    uci_list_init(&worker->landed);
    uci_list_init(&worker->bounces);
    uci_list_init(&worker->direct_sends);
    uci_list_init(&worker->direct_recvs);
    uci_list_init(&worker->closing);
    uci_list_init(&worker->send_ops);
    uci_list_init(&worker->recv_ops);
    uci_list_init(&worker->suspects);
    uci_list_init(&worker->waiting);
    uci_list_init(&worker->unsent);
}

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

ucs_status_t uci_worker_create(ucp_worker_h ucp, uci_context_t *context, const ucp_worker_params_t *params,
                               ucs_thread_mode_t thread_mode, uci_worker_t **worker_p)
{
    ucs_status_t status = UCS_ERR_NO_MEMORY;
    uci_worker_t *worker;

    worker = aligned_alloc(UCI_CACHE_LINE, uci_align_up(sizeof(*worker), UCI_CACHE_LINE));
    if (worker == NULL) {
        goto err;
    }
    memset(worker, 0, sizeof(*worker));
    if (uci_peer_table_init(worker) != UCS_OK) {
        goto err_free;
    }

    worker->ucp     = ucp;
    worker->context = context;
    worker->seals   = uci_seal_is_on();
    uci_tuner_init(uci_ucp.get_version_string());
    worker->eager_max  = uci_tuner_eager_max();
    worker->copies     = uci_tuner_plan("", 0);
    worker->digest     = uci_plan_choose(worker->copies, worker->eager_max)->digest;
    worker->small_xxh3 = (uci_settings.digest == &uci_digest_auto) || (worker->digest->id == UCI_DIGEST_XXH3);
    uci_stats_set_info(worker->digest->name, uci_mode_names[uci_settings.mode], uci_ucp.get_version_string());
    worker->log_limit  = uci_settings.log_size;
    worker->slots_free = UINT32_MAX;
    worker->turn       = uci_worker_turn;
    worker->message    = uci_dispatch;
    worker->handlers   = uci_am_handlers;
    worker->recv       = uci_recv;
    worker->find       = uci_unexpected_oldest;
    worker->withdraw   = uci_request_withdraw;
    worker->arrived    = uci_recv_arrived;
    worker->lost       = uci_recv_lost;
    worker->recv_flags = UCI_REQUEST_RECV;
    uci_match_init(&worker->match);
    uci_worker_init_lists(worker);
    uci_worker_lock_init(worker, thread_mode);
    uci_wakeup_init(worker, params, context->wakeup);
    uci_frame_pool_init(&worker->frames);
    worker->request_head = uci_request_head();
    uci_pool_init(&worker->requests, worker->request_head + context->request_size, UCI_WORKER_REQUEST_SLAB,
                  uci_worker_request_init, uci_worker_request_cleanup, context);
    uci_pool_init(&worker->messages, sizeof(uci_control_t) + UCI_CONTROL_POOLED, UCI_WORKER_MESSAGE_SLAB, NULL, NULL,
                  NULL);

    uci_pool_init(&worker->slot_copies, UCI_SLOT_SIZE, UCI_WORKER_COPY_SLAB, NULL, NULL, NULL);

    uci_report_init();
    status = uci_worker_learn_address(worker);
    if (status != UCS_OK) {
        goto err_free_peers;
    }
    status = worker->seals ? uci_worker_listen_sealed(worker) : uci_worker_listen_plain(worker);
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
    uci_ucp.worker_release_address(ucp, worker->address);
err_free_peers:
    free(worker->peers);
err_free:
    free(worker);
err:
    return status;
}

void uci_worker_shutdown(uci_worker_t *worker)
{
    uci_siblings_leave(worker);
    uci_ep_shutdown(worker);
    while (uci_request_deliver(worker) > 0) {
    }
    uci_send_shutdown(worker);
    uci_recv_shutdown(worker);
    uci_worker_for_each_peer(peer, worker)
    {
        uci_bounce_unmap(peer);
        uci_mailbox_unmap(peer);
    }
    uci_bounce_cleanup(worker);
    uci_mailbox_cleanup(worker);
    uci_ucp.worker_release_address(worker->ucp, worker->address);
}

void uci_worker_destroy(uci_worker_t *worker)
{
    uci_unexpected_cleanup(worker);
    uci_close_cleanup(worker);
    uci_send_cleanup(worker);
    uci_path_table_cleanup(worker);
    uci_recv_cleanup(worker);
    uci_spans_cleanup(worker);
    uci_worker_for_each_peer(peer, worker)
    {
        uci_link_cleanup(peer);
        uci_control_cleanup(peer);
    }
    uci_peer_table_cleanup(worker);
    uci_frame_pool_cleanup(&worker->frames);
    uci_pool_cleanup(&worker->messages);
    uci_pool_cleanup(&worker->slot_copies);
    uci_pool_cleanup(&worker->requests);
    uci_stats_leave(&worker->stats);
    uci_wakeup_cleanup(worker);
    uci_worker_lock_cleanup(worker);
    free(worker->slots);
    free(worker->own_copy);
    free(worker);
}

bool uci_worker_is_untouched(const uci_worker_t *worker)
{
    return (worker->peers_count == 0) && !worker->address_given && (worker->match.recvs_count == 0) &&
           uci_frame_pool_is_new(&worker->frames) && uci_pool_is_new(&worker->requests);
}

/* What could not be sent where it was said. What this brings from ourselves may bring more, for the next turn */
static void uci_worker_send_unsent(uci_worker_t *worker)
{
    uci_list_t todo;
    uci_peer_t *peer;

    uci_list_move(&worker->unsent, &todo);
    worker->sends_unsent = true;
    while (!uci_list_is_empty(&todo)) {
        peer = uci_container_of(todo.next, uci_peer_t, unsent_link);
        uci_list_del(&peer->unsent_link);
        --worker->ops_active;
        uci_control_send_pending(peer);
        uci_mailbox_offer(peer);
    }
    worker->sends_unsent = false;
}

/* What is not done by UCX's callbacks */
static __attribute__((noinline)) unsigned uci_worker_progress_own(uci_worker_t *worker)
{
    unsigned count = 0;

    worker->own = true;
    if (!uci_list_is_empty(&worker->unsent)) {
        uci_worker_send_unsent(worker);
        ++count;
    }
    if (!uci_list_is_empty(&worker->waiting)) {
        count += uci_link_progress(worker);
    }
    count += uci_path_table_progress(worker);
    if (worker->ops_active > 0) {
        uci_resync_progress(worker);
    }
    if (!uci_list_is_empty(&worker->closing)) {
        uci_close_progress(worker);
    }
    if (uci_unlikely(worker->twin != NULL)) {
        count += worker->twin->progress(worker);
    }
    worker->own = false;
    return count;
}

/* UCX's part of a turn that has found nothing: each, or one of four of those in which it has nothing to bring but a word now and then,
 * since all peers send by mailbox and no operation that UCX has a part in is under way. Polling is most of what some programs do (MPI_Test
 * for each update of hpcc's MPIRandomAccess), and an empty turn should not cost more than plain UCX's. */
UCI_INLINE unsigned uci_worker_progress_ucx(uci_worker_t *worker, ucp_worker_h ucp)
{
    unsigned count;

    if (worker->ucx_rests > 0) {
        --worker->ucx_rests;
        return 0;
    }
    count = uci_ucp.worker_progress(ucp);
    if ((count == 0) && (worker->mailbox.count > 0) && (worker->mailbox.count == worker->peers_count) &&
        ((worker->ops_active == 0) || uci_path_table_is_own(worker))) {
        worker->ucx_rests = UCI_WORKER_UCX_RESTS;
    }
    return count;
}

/* UCX has its part each turn, but for some of those that find frames in the mailbox: then there will be another one at once */
UCI_INLINE unsigned uci_worker_turn_of(uci_worker_t *worker, ucp_worker_h ucp)
{
    unsigned count = 0;

    ++worker->turns;
    if (!uci_mailbox_is_quiet(&worker->mailbox)) {
        count = uci_mailbox_poll(worker);
    }
    if (count == 0) {
        count = uci_worker_progress_ucx(worker, ucp);
    } else if (uci_unlikely(uci_worker_is_turn(worker, UCI_WORKER_UCX_TURNS))) {
        count += uci_ucp.worker_progress(ucp);
    }
    if (uci_unlikely(worker->ops_active > 0)) {
        count += uci_worker_progress_own(worker);
    }
    if ((worker->completed != NULL) && uci_likely(!worker->sibling.helped)) {
        worker->own = true; /* callbacks may send, and connect */
        count += uci_request_deliver(worker);
        worker->own = false;
    }
    ++worker->turns;
    return count;
}

unsigned uci_worker_turn(uci_worker_t *worker)
{
    return uci_worker_turn_of(worker, worker->ucp);
}

unsigned uci_worker_progress(uci_worker_t *worker, ucp_worker_h ucp)
{
    unsigned count = uci_worker_turn_of(worker, ucp);

    if (uci_unlikely(worker->turns % (2 * UCI_SIBLINGS_TURNS) == 0)) {
        uci_siblings_help(worker);
        uci_link_look(worker);
        uci_gauges_refresh(worker);
        if (uci_unlikely(worker->twin != NULL)) {
            worker->twin->progress(worker);
        }
    }
    return count;
}
