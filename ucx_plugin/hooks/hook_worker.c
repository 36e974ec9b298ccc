/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include <stdlib.h>

#include "base/worker_alloc.h"
#include "message/recv.h"
#include "hook_sock.h"
#include "params.h"
#include "data/stage.h"
#include "turn/wakeup.h"
#include "base/siblings.h"
#include "twins/twin.h"

/* An endpoint of UCI's own, that a handler of active messages is told of */
static void uci_hook_ep_shown(uci_ep_t *ep)
{
    (void)uci_handles_add(&uci_eps, ep->ucp, ep);
}

static void uci_hook_ep_hidden(uci_ep_t *ep)
{
    if (uci_plugin_ep(ep->ucp) == ep) {
        uci_handles_remove(&uci_eps, ep->ucp);
    }
    if (uci_handles_find(&uci_closing, ep->ucp) == ep) {
        uci_handles_remove(&uci_closing, ep->ucp);
    }
}

static ucs_thread_mode_t uci_hook_thread_mode(ucp_worker_h worker)
{
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};

    return (uci_ucp.worker_query(worker, &attr) == UCS_OK) ? attr.thread_mode : UCS_THREAD_MODE_MULTI;
}

/* UCX carries it with each connection by socket address: the program's, with UCI's mark, as far as there is room. @return whether there is */
static bool uci_hook_mark_worker(uci_worker_params_t *params)
{
    uint64_t own = (params->ucx.field_mask & UCP_WORKER_PARAM_FIELD_CLIENT_ID) ? params->ucx.client_id : 0;

    if (own >= UCI_SOCK_ID_MAX) {
        return false;
    }
    params->ucx.field_mask |= UCP_WORKER_PARAM_FIELD_CLIENT_ID;
    params->ucx.client_id = uci_sock_id(own);
    return true;
}

UCI_EXPORT ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
                                          ucp_worker_h *worker_p)
{
    uci_worker_params_t our_params;
    uci_context_t *ours;
    uci_worker_t *worker;
    ucp_worker_h ucp; /* *worker_p is written when all is done, as *context_p */
    ucs_status_t status;
    bool is_marked;

    UCI_HOOK();
    ours = uci_handles_find(&uci_contexts, context);
    if (ours == NULL) {
        return uci_ucp.worker_create(context, params, worker_p);
    }
    uci_params_copy_worker(&our_params, params);
    is_marked = uci_hook_mark_worker(&our_params);
    status    = uci_ucp.worker_create(context, &our_params.ucx, &ucp);
    if (status != UCS_OK) {
        return status;
    }

    status = uci_worker_create(ucp, ours, params, uci_hook_thread_mode(ucp), &worker);
    if (status != UCS_OK) {
        goto err_destroy;
    }
    if (!uci_handles_add(&uci_workers, ucp, worker)) {
        status = UCS_ERR_NO_MEMORY;
        goto err_shut_down;
    }
    if (is_marked) {
        uci_sock_mark_worker(worker);
    }
    uci_worker_show_by(worker, uci_hook_ep_shown, uci_hook_ep_hidden);
    uci_recv_attach(worker);
    uci_twin_attach(worker, uci_plugin_context_open);
    *worker_p = ucp;
    return UCS_OK;

err_shut_down:
    uci_worker_shutdown(worker);
    uci_ucp.worker_destroy(ucp);
    uci_worker_destroy(worker);
    return status;
err_destroy:
    uci_ucp.worker_destroy(ucp);
    return status;
}

/* What is over is told as long as callbacks may call what they like: all is known yet */
static void uci_hook_worker_deliver(uci_worker_t *worker)
{
    uci_worker_enter(worker);
    while (uci_request_deliver(worker) > 0) {
    }
    uci_worker_leave(worker);
}

UCI_EXPORT void ucp_worker_destroy(ucp_worker_h worker)
{
    uci_worker_t *ours;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours != NULL) {
        uci_siblings_stop(ours); /* what follows takes its peers apart, which another thread might be serving */
        uci_hook_worker_deliver(ours);
        uci_hook_sock_end(ours);
        uci_worker_for_each_peer(peer, ours)
        {
            uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
            {
                uci_hook_ep_hidden(ep);
            }
            uci_list_for_each(lost, &peer->lanes.lost, uci_ep_t, link)
            {
                uci_hook_ep_hidden(lost);
            }
        }
        uci_twin_detach(ours, uci_plugin_context_close);
        uci_worker_shutdown(ours); /* calls back as well */
        uci_handles_remove(&uci_workers, worker);
        if (ours->stage != NULL) {
            uci_stage_destroy(ours->stage);
        }
    }
    uci_ucp.worker_destroy(worker);
    if (ours != NULL) {
        uci_worker_destroy(ours);
    }
}

/* A worker that is not ours: those that are may need somebody's turns, as with our own */
static unsigned uci_hook_progress_other(ucp_worker_h worker)
{
    static __thread unsigned turns;

    if (uci_unlikely(++turns % UCI_SIBLINGS_TURNS == 0)) {
        uci_siblings_help(NULL);
    }
    return uci_ucp.worker_progress(worker);
}

static UCI_NOINLINE unsigned uci_hook_progress_any(ucp_worker_h worker)
{
    uci_worker_t *ours = uci_plugin_worker(worker);
    unsigned count;

    UCI_HOOK();
    if (uci_unlikely(ours == NULL)) {
        return uci_hook_progress_other(worker);
    }
    uci_worker_enter(ours);
    count = uci_worker_progress(ours, worker);
    uci_worker_leave(ours);
    return count;
}

/* As uci_hook_send() */
UCI_EXPORT unsigned ucp_worker_progress(ucp_worker_h worker)
{
    uci_worker_t *ours = uci_plugin_worker(worker);

    return uci_likely(ours != NULL) && uci_likely(uci_worker_enter_fast(ours)) ? uci_worker_progress(ours, worker)
                                                                               : uci_hook_progress_any(worker);
}

UCI_EXPORT ucs_status_t ucp_worker_arm(ucp_worker_h worker)
{
    uci_worker_t *ours;
    ucs_status_t status;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    if (ours == NULL) {
        return uci_ucp.worker_arm(worker);
    }
    uci_worker_enter(ours);
    status = uci_wakeup_arm(ours);
    uci_worker_leave(ours);
    return status;
}

UCI_EXPORT ucs_status_t ucp_worker_wait(ucp_worker_h worker)
{
    uci_worker_t *ours;

    UCI_HOOK();
    ours = uci_plugin_worker(worker);
    return (ours == NULL) ? uci_ucp.worker_wait(worker) : uci_wakeup_wait(ours);
}

/* Put the mark in front of a worker's address */
static ucs_status_t uci_hook_mark_address(uci_worker_t *worker, ucp_address_t **address_p, size_t *length_p)
{
    size_t length = *length_p;
    void *marked  = uci_mark_address(&worker->self.mark, *address_p, &length);

    if (marked == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    if (!uci_handles_add(&uci_addresses, marked, *address_p)) {
        free(marked);
        return UCS_ERR_NO_MEMORY;
    }
    *address_p = marked;
    *length_p  = length;
    return UCS_OK;
}

UCI_EXPORT ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr)
{
    uci_worker_t *ours;
    ucs_status_t status;

    UCI_HOOK();
    status = uci_ucp.worker_query(worker, attr);
    ours   = uci_plugin_worker(worker);
    if ((status != UCS_OK) || (ours == NULL)) {
        return status;
    }
    if (attr->field_mask & UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER) {
        attr->max_am_header = ours->msgs.am_max_header;
    }
    if (!(attr->field_mask & UCP_WORKER_ATTR_FIELD_ADDRESS)) {
        return UCS_OK;
    }
    return uci_hook_mark_address(ours, &attr->address, &attr->address_length);
}

UCI_EXPORT ucs_status_t ucp_worker_get_address(ucp_worker_h worker, ucp_address_t **address_p, size_t *address_length_p)
{
    uci_worker_t *ours;
    ucs_status_t status;

    UCI_HOOK();
    status = uci_ucp.worker_get_address(worker, address_p, address_length_p);
    ours   = uci_plugin_worker(worker);
    if ((status != UCS_OK) || (ours == NULL)) {
        return status;
    }
    return uci_hook_mark_address(ours, address_p, address_length_p);
}

UCI_EXPORT void ucp_worker_release_address(ucp_worker_h worker, ucp_address_t *address)
{
    ucp_address_t *original;

    UCI_HOOK();
    original = uci_handles_remove(&uci_addresses, address);
    if (original != NULL) {
        free(address);
        address = original;
    }
    uci_ucp.worker_release_address(worker, address);
}

UCI_EXPORT ucs_status_t ucp_worker_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr)
{
    UCI_HOOK();
    if (uci_mark_is_present(address)) {
        address = (ucp_address_t *)((char *)address + sizeof(uci_mark_t));
    }
    return uci_ucp.worker_address_query(address, attr);
}
