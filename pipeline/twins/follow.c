/* SPDX-License-Identifier: BSD-3-Clause */
#include "follow.h"

#include <stdlib.h>

#include "link/link_recv.h"
#include "util/log.h"
#include "util/process.h"
#include "message/recv.h"
#include "base/request.inl"
#include "message/unexpected.h"

struct uci_follow {
    uci_worker_t *worker;
    pthread_mutex_t *lock;
    const uci_follow_events_t *events;
    uci_twin_follow_t *state;
    bool is_awake; /* the worker has work of its own in each turn */
    bool has_told; /* since the last turn */
};

uci_twin_follow_t *uci_follow_state(const uci_worker_t *worker)
{
    return worker->twins.follow->state;
}

/* Turns do more than the least while the leader's word is waited for, or ours is to be sent */
static void uci_follow_wake(struct uci_follow *follow)
{
    bool is_awake = follow->has_told || uci_twin_follow_is_waiting(follow->state);

    if (is_awake && !follow->is_awake) {
        uci_worker_work_begins(follow->worker);
    } else if (!is_awake && follow->is_awake) {
        uci_worker_work_ends(follow->worker);
    }
    follow->is_awake = is_awake;
}

bool uci_follow_is_awake(const uci_worker_t *worker)
{
    return worker->twins.follow->is_awake;
}

static void uci_follow_lock(struct uci_follow *follow)
{
    pthread_mutex_lock(follow->lock);
}

static void uci_follow_unlock(struct uci_follow *follow)
{
    uci_follow_wake(follow);
    pthread_mutex_unlock(follow->lock);
}

/* ------------------------------------------------- what the state asks */

static uint32_t uci_follow_on_source(void *arg, const uci_match_msg_t *msg)
{
    return ((struct uci_follow *)arg)->events->source(uci_container_of(msg, uci_message_t, match)->peer, msg->tag);
}

static uint32_t uci_follow_on_next(void *arg, uint32_t source, uint64_t tag)
{
    return ((struct uci_follow *)arg)->events->next(source, tag);
}

static void uci_follow_on_deliver(void *arg, uci_match_msg_t *msg, uci_match_recv_t *recv)
{
    uci_unexpected_deliver(uci_container_of(msg, uci_message_t, match), uci_container_of(recv, uci_request_t, match));
}

static void uci_follow_on_cancelled(void *arg, uci_match_recv_t *recv)
{
    uci_request_cancelled(uci_container_of(recv, uci_request_t, match));
}

static uint64_t uci_follow_on_now(void *arg)
{
    return uci_process_time_ns();
}

static void uci_follow_on_choice(void *arg, uint64_t tag, uint64_t mask, uint32_t number,
                                 const uci_twin_message_t *message)
{
    struct uci_follow *follow = arg;

    follow->events->choice(tag, mask, number, message);
    follow->has_told = true;
}

static void uci_follow_on_probe(void *arg, uint64_t tag, uint64_t mask, uint32_t number,
                                const uci_twin_message_t *message, bool removed)
{
    struct uci_follow *follow = arg;

    follow->events->probe(tag, mask, number, message, removed);
    follow->has_told = true;
}

/* -------------------------------------------------- what the program does */

static ucs_status_ptr_t uci_follow_recv(uci_worker_t *worker, void *data, size_t count, ucp_tag_t tag,
                                        ucp_tag_t tag_mask, const ucp_request_param_t *param)
{
    struct uci_follow *follow = worker->twins.follow;
    ucs_status_t status;
    uci_request_t *req;

    if (!uci_twin_follow_wants(follow->state, tag_mask) || (param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)) {
        return uci_recv(worker, data, count, tag, tag_mask, param);
    }
    status = uci_recv_prepare(worker, data, count, param, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    uci_follow_lock(follow);
    uci_twin_follow_post(follow->state, &req->match, tag, tag_mask);
    uci_follow_unlock(follow);
    return uci_request_posted_inline(req, param);
}

static uci_message_t *uci_follow_find(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask, bool remove)
{
    struct uci_follow *follow = worker->twins.follow;
    uci_match_msg_t *msg;

    uci_follow_lock(follow);
    msg = uci_twin_follow_probe(follow->state, tag, tag_mask, remove);
    uci_follow_unlock(follow);
    return (msg != NULL) ? uci_container_of(msg, uci_message_t, match) : NULL;
}

static bool uci_follow_withdraw(uci_request_t *req)
{
    struct uci_follow *follow = req->worker->twins.follow;
    uci_status_t status;

    uci_follow_lock(follow);
    status = uci_twin_follow_cancel(follow->state, &req->match);
    uci_follow_unlock(follow);
    return status == UCI_OK;
}

/* ------------------------------------------------------- what arrives */

/* A frame that no receive has been chosen for yet, while others than the first that matches may be right */
static bool uci_follow_is_open(const uci_peer_t *peer)
{
    return (peer->worker->match.withheld.count > 0) && (peer->rx.bound == NULL);
}

/* The receive that it is for, and nothing else from now on; or NULL */
static uci_request_t *uci_follow_bind(uci_peer_t *peer, ucp_tag_t tag)
{
    struct uci_follow *follow = peer->worker->twins.follow;
    uci_match_recv_t *recv;

    uci_follow_lock(follow);
    recv = uci_twin_follow_arrived(follow->state, follow->events->source(peer, tag), tag);
    uci_follow_unlock(follow);
    uci_link_bind(peer, (recv != NULL) ? uci_container_of(recv, uci_request_t, match) : NULL);
    return peer->rx.bound;
}

bool uci_follow_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    if (uci_follow_is_open(peer) && !uci_frame_is_user_am(hdr->kind) && (uci_follow_bind(peer, hdr->tag) == NULL)) {
        return uci_recv_keep(peer, hdr, payload);
    }
    return uci_recv_arrived_way(peer->worker)(peer, hdr, payload);
}

void uci_follow_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length)
{
    if (uci_follow_is_open(peer) && !uci_frame_is_user_am(hdr->kind)) {
        uci_recv_lose(peer, uci_follow_bind(peer, hdr->tag), hdr, payload, length);
    } else {
        uci_recv_lost(peer, hdr, payload, length);
    }
}

void uci_follow_progress(uci_worker_t *worker)
{
    struct uci_follow *follow = worker->twins.follow;

    follow->has_told = false;
    uci_twin_follow_check(follow->state);
    uci_follow_wake(follow);
}

/* ------------------------------------------------------- begin and end */

uci_status_t uci_follow_begin(uci_worker_t *worker, pthread_mutex_t *lock, const uci_follow_events_t *events,
                              bool is_leader, uint64_t wait)
{
    static const uci_twin_follow_ops_t ops = {.source    = uci_follow_on_source,
                                              .next      = uci_follow_on_next,
                                              .deliver   = uci_follow_on_deliver,
                                              .cancelled = uci_follow_on_cancelled,
                                              .now       = uci_follow_on_now,
                                              .choice    = uci_follow_on_choice,
                                              .probe     = uci_follow_on_probe};
    struct uci_follow *follow              = calloc(1, sizeof(*follow));

    if (follow == NULL) {
        uci_error("failed to allocate %zu bytes", sizeof(*follow));
        return UCI_ERR_NO_MEMORY;
    }
    follow->worker = worker;
    follow->lock   = lock;
    follow->events = events;
    if (uci_twin_follow_create(uci_worker_match(worker), is_leader, wait, &ops, follow, &follow->state) != UCI_OK) {
        goto err_free;
    }
    worker->context->short_way = false;
    worker->twins.follow       = follow;
    uci_worker_match_by(worker, uci_follow_recv, uci_follow_find, uci_follow_withdraw);
    return UCI_OK;

err_free:
    free(follow);
    return UCI_ERR_NO_MEMORY;
}

void uci_follow_end(uci_worker_t *worker)
{
    struct uci_follow *follow = worker->twins.follow;

    if (follow == NULL) {
        return;
    }
    uci_worker_match_by(worker, uci_recv, uci_unexpected_oldest, uci_request_withdraw);
    worker->twins.follow = NULL;
    if (follow->is_awake) {
        uci_worker_work_ends(worker);
    }
    uci_twin_follow_destroy(follow->state);
    free(follow);
}
