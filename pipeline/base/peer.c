/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/log.h"
#include "util/process.h"
#include "tune/netif.h"
#include "settings/settings.h"
#include "transports.h"
#include "ucp/shared_memory.h"
#include "worker_state.h"

uint64_t uci_peer_first;

ucs_status_t uci_peer_create(uci_worker_t *worker, uint64_t uid, uci_peer_t **peer_p)
{
    uci_peer_t *peer = calloc(1, sizeof(*peer));

    if (peer == NULL) {
        uci_error("failed to allocate a peer");
        return UCS_ERR_NO_MEMORY;
    }
    peer->uid       = uid;
    peer->worker    = worker;
    peer->eager_max = (uint32_t)worker->choice.eager_max;
    peer->mark.rank = -1;
    peer->seed      = uci_frame_am_seed(uid, worker->uid);
    peer->seals     = worker->self.seals;
    peer->in_clear  = !worker->self.seals;
    uci_list_init(&peer->eps);
    uci_list_init(&peer->lanes.lost);
    uci_link_part_init(&peer->tx, &peer->log, &peer->rx);
    uci_mailbox_part_init(&peer->box);
    uci_control_part_init(&peer->talk);
    uci_transfer_part_init(&peer->xfer);
    uci_message_peer_init(&peer->msgs);
    uci_rma_peer_init(&peer->rma);
    uci_link_part_resume(&peer->tx, &peer->log, &peer->rx, uci_peer_first, uci_peer_first);
    uci_mailbox_part_resume(&peer->box, uci_peer_first);
    uci_rma_part_resume(&peer->rma, uci_peer_first, uci_peer_first);
    *peer_p = peer;
    return UCS_OK;
}

static void uci_peer_free_eps(uci_list_t *eps)
{
    uci_list_for_each_safe(ep, eps, uci_ep_t, link)
    {
        uci_list_del(&ep->link);
        free(ep);
    }
}

void uci_peer_destroy(uci_peer_t *peer)
{
    uci_peer_free_eps(&peer->eps);
    uci_peer_free_eps(&peer->lanes.lost);
    uci_transfer_part_cleanup(&peer->xfer);
    uci_control_part_cleanup(&peer->talk);
    uci_seal_pair_destroy(peer->pair);
    free(peer->tx.ring);
    free(peer->log.kept);
    free(peer->address);
    free(peer->lanes.transports);
    free(peer->lanes.device);
    free(peer);
}

const char *uci_peer_name(const uci_peer_t *peer)
{
    size_t size;
    char *name;

    if (peer->known) {
        return uci_mark_name(&peer->mark);
    }
    name = uci_mark_name_buffer(&size);
    snprintf(name, size, "an unknown peer (uid 0x%lx)", (unsigned long)peer->uid);
    return name;
}

int uci_peer_rank(const uci_peer_t *peer)
{
    return peer->mark.rank;
}

void uci_peer_limit_eager(uci_peer_t *peer)
{
    peer->eager_max = (uint32_t)peer->worker->choice.eager_max;
    if (peer->known) {
        peer->eager_max = uci_min(peer->eager_max, peer->mark.eager_max);
    }
    if (peer->plan != NULL) {
        peer->eager_max = uci_min(peer->eager_max, peer->plan->eager_max);
    }
    if (peer->box.mapped) {
        peer->eager_max = uci_min(peer->eager_max, (uint32_t)(UCI_BOX_FRAME_MAX - sizeof(uci_frame_hdr_t)));
    }
    if (peer->seals && (peer->eager_max > 2 * UCI_SEALED_ROOM)) {
        peer->eager_max -= UCI_SEALED_ROOM;
    }
}

bool uci_peer_is_marked(const uci_peer_t *peer, const uci_mark_t *mark)
{
    return !peer->known || (memcmp(peer->mark.random, mark->random, sizeof(mark->random)) == 0);
}

/* A uid names one worker, whose random bytes are as old as it is: keys are made once */
static ucs_status_t uci_peer_seal(uci_peer_t *peer, const uci_mark_t *mark)
{
    const uci_worker_t *worker = peer->worker;

    if (!uci_peer_is_marked(peer, mark)) {
        uci_error("%s refuses %s: there are two workers with its uid", uci_mark_name(&worker->self.mark),
                  uci_mark_name(mark));
        return UCS_ERR_UNSUPPORTED;
    }
    if ((peer->pair == NULL) &&
        (uci_seal_pair_create(worker->uid, worker->self.mark.random, peer->uid, mark->random, &peer->pair) != UCI_OK)) {
        peer->pair = NULL;
        return UCS_ERR_NO_MEMORY;
    }
    peer->in_clear = (mark->scope == UCI_SEAL_SCOPE_NET) && uci_mark_is_near(&worker->self.mark, mark);
    return UCS_OK;
}

ucs_status_t uci_peer_set_mark(uci_peer_t *peer, const uci_mark_t *mark)
{
    ucs_status_t status = peer->seals ? uci_peer_seal(peer, mark) : UCS_OK;

    if (status != UCS_OK) {
        return status;
    }
    peer->mark  = *mark;
    peer->known = true;
    uci_peer_limit_eager(peer);
    return UCS_OK;
}

ucs_status_t uci_peer_set_address(uci_peer_t *peer, const void *address, size_t length)
{
    if (peer->address != NULL) {
        return UCS_OK;
    }
    peer->address = malloc(length);
    if (peer->address == NULL) {
        uci_error("failed to allocate %zu bytes for an address", length);
        return UCS_ERR_NO_MEMORY;
    }
    memcpy(peer->address, address, length);
    return UCS_OK;
}

bool uci_peer_is_gone(const uci_peer_t *peer)
{
    return uci_conversation_is_leaving(&peer->conversation) && !uci_conversation_is_waiting(&peer->conversation) &&
           (peer->uid != peer->worker->uid);
}

/* ----------------------------------------------------------- endpoints */

uci_ep_t *uci_ep_create(uci_peer_t *peer, ucp_ep_h ucp, bool user)
{
    uci_ep_t *ep = calloc(1, sizeof(*ep));

    if (ep == NULL) {
        uci_error("failed to allocate an endpoint");
        return NULL;
    }
    ep->ucp       = ucp;
    ep->peer      = peer;
    ep->user      = user;
    ep->place     = UCI_EP_NO_PLACE;
    ep->made_time = uci_process_time_ns();
    uci_list_add_tail(&peer->eps, &ep->link);
    return ep;
}

void uci_ep_place(uci_ep_t *ep)
{
    ep->place = ep->peer->lanes.placed++;
}

void uci_peer_set_way(uci_peer_t *peer, bool by_socket)
{
    bool is_new = true;

    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        is_new = is_new && !ep->user;
    }
    peer->lanes.by_socket = by_socket && (peer->lanes.by_socket || is_new);
}

void uci_peer_set_err_mode(uci_peer_t *peer, const ucp_ep_params_t *params)
{
    peer->lanes.err_mode = (params->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) ? params->err_mode
                                                                                       : UCP_ERR_HANDLING_MODE_NONE;
}

void uci_ep_number(uci_ep_t *ep)
{
    if (ep->number == 0) {
        ep->number = ++ep->peer->eps_numbered;
    }
}

void uci_ep_number_again(uci_ep_t *ep)
{
    uci_list_for_each(own, &ep->peer->eps, uci_ep_t, link)
    {
        if (own->shown && !own->user && !own->lent) {
            own->lent  = true;
            ep->number = own->number;
            return;
        }
    }
    uci_ep_number(ep);
}

void uci_ep_break(uci_ep_t *ep)
{
    ep->half = true;
    uci_list_del(&ep->link);
    uci_list_add_tail(&ep->peer->eps, &ep->link); /* the first one carries what UCI says */
}

/* UCX's own goes with its worker */
void uci_ep_lose(uci_ep_t *ep)
{
    ep->peer->lanes.is_lost = true;
    if (!ep->shown) {
        uci_ep_destroy(ep);
        return;
    }
    ep->half = true;
    uci_list_del(&ep->link);
    uci_list_add_tail(&ep->peer->lanes.lost, &ep->link);
}

void uci_ep_destroy(uci_ep_t *ep)
{
    if (uci_unlikely(ep->shown)) {
        ep->peer->worker->calls.ep_hidden(ep);
    }
    uci_list_del(&ep->link);
    free(ep);
}

static ucs_status_t uci_ep_open_internal(uci_peer_t *peer)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address     = peer->address,
                              .err_mode    = peer->lanes.err_mode,
                              .err_handler = {.cb = peer->worker->calls.own_failed, .arg = peer->worker}};
    ucs_status_t status;
    uci_ep_t *ep;
    ucp_ep_h ucp;

    status = uci_ucp.ep_create(peer->worker->ucp, &params, &ucp);
    if (status != UCS_OK) {
        uci_error("failed to connect back to %s: %s", uci_peer_name(peer), uci_ucp.status_string(status));
        return status;
    }
    ep = uci_ep_create(peer, ucp, false);
    if (ep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    uci_ep_place(ep);
    return UCS_OK;
}

bool uci_ep_is_last_of_user(const uci_ep_t *ep)
{
    uci_list_for_each(other, &ep->peer->eps, uci_ep_t, link)
    {
        if ((other != ep) && other->user && !other->closing) {
            return false;
        }
    }
    return true;
}

/* One more endpoint, the last of the list; not if we don't know where to, if both sides are done with each other, or if it has failed. Nor to one
 * that may be dead, or has closed by force: UCX 1.13 does not survive it there to be connected to by tcp, if the endpoint that it had was in use
 * (SIGSEGV in uct_tcp_iface_progress()) */
static ucp_ep_h uci_peer_connect(uci_peer_t *peer)
{
    if ((peer->address == NULL) || (peer->lanes.is_lost && !peer->talk.heard) ||
        ((peer->conversation.status != UCS_OK) && (peer->conversation.status != UCS_ERR_CANCELED)) ||
        ((peer->lanes.by_socket || uci_conversation_is_closed(&peer->conversation)) && uci_peer_is_gone(peer)) ||
        (uci_ep_open_internal(peer) != UCS_OK)) {
        return NULL;
    }
    peer->lanes.is_lost = false;
    return uci_container_of(peer->eps.prev, uci_ep_t, link)->ucp;
}

ucp_ep_h uci_peer_endpoint(uci_peer_t *peer)
{
    if (uci_unlikely(uci_list_is_empty(&peer->eps))) {
        return uci_peer_connect(peer);
    }
    return uci_container_of(peer->eps.next, uci_ep_t, link)->ucp;
}

ucp_ep_h uci_peer_endpoint_whole(uci_peer_t *peer)
{
    ucp_ep_h ep;

    uci_list_for_each(one, &peer->eps, uci_ep_t, link)
    {
        if (uci_likely(!one->half && !one->unpaired)) {
            return one->ucp;
        }
    }
    ep = uci_peer_connect(peer);
    return ((ep != NULL) || uci_list_is_empty(&peer->eps)) ? ep : uci_peer_endpoint(peer);
}

uci_ep_t *uci_peer_ep_staying(uci_peer_t *peer)
{
    uci_ep_t *own = NULL;

    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        if (!ep->half && !ep->closing && ep->user) {
            return ep;
        }
        own = (ep->half || ep->closing) ? own : ep;
    }
    if (own != NULL) {
        return own;
    }
    return (uci_peer_connect(peer) != NULL) ? uci_container_of(peer->eps.prev, uci_ep_t, link) : NULL;
}

/* One that was accepted may be known to the program only, if what its client sends by it overtakes the client's greeting */
static ucp_ep_h uci_peer_endpoint_coming(const uci_peer_t *peer, uint16_t name)
{
    const uci_worker_t *worker = peer->worker;

    uci_list_for_each(coming, &worker->conn.coming, uci_conn_coming_t, link)
    {
        if (uci_ep_name(uci_ep_accepted(coming->count, worker->uid, peer->uid)) == name) {
            return coming->ucp;
        }
    }
    return NULL;
}

static ucp_ep_h uci_peer_endpoint_named(const uci_peer_t *peer, uint16_t name)
{
    uci_list_for_each(ep, &peer->eps, uci_ep_t, link)
    {
        if ((uci_ep_name(ep->number) == name) && (ep->user || ep->shown) && !ep->lent && !ep->half && !ep->closing) {
            return ep->ucp;
        }
    }
    return uci_peer_endpoint_coming(peer, name);
}

ucp_ep_h uci_peer_endpoint_shown(uci_peer_t *peer, uint16_t name)
{
    ucp_ep_h named = (name != 0) ? uci_peer_endpoint_named(peer, name) : NULL;
    uci_ep_t *ep;

    if (named != NULL) {
        return named;
    }
    ep = uci_peer_ep_staying(peer);
    if (ep == NULL) {
        return NULL;
    }
    if (!ep->user && !ep->shown) {
        ep->shown = true;
        uci_ep_number(ep);
        peer->worker->calls.ep_shown(ep);
    }
    return ep->ucp;
}

/* ---------------------------------------------------------- transports */

static bool uci_peer_is_slow_link(const uci_peer_t *peer, const char *interface)
{
    unsigned speed = (interface[0] != '\0') ? uci_netif_speed(UCI_NETIF_SYSFS, interface) : 0;

    return (speed > 0) && (speed <= UCI_TUNER_SLOW_LINK) && peer->known &&
           (strcmp(peer->mark.host, peer->worker->self.mark.host) != 0);
}

/* Nothing is kept of an endpoint that can't be had yet, or names no lane yet: it is asked again the next time */
static void uci_peer_find_transports(uci_peer_t *peer)
{
    ucp_ep_h ep = uci_peer_endpoint(peer);
    uci_transports_t transports;

    if (ep == NULL) {
        return;
    }
    uci_transports_query(ep, &transports);
    if (transports.list[0] != '\0') {
        peer->lanes.transports = strdup(transports.list);
        peer->lanes.device     = strdup(transports.device);
        peer->lanes.eager      = transports.eager;
        peer->lanes.eager_fast = transports.eager_fast;
        peer->lanes.slow_link  = uci_peer_is_slow_link(peer, transports.interface);
    }
}

const char *uci_peer_transports(uci_peer_t *peer)
{
    if (peer->lanes.transports == NULL) {
        uci_peer_find_transports(peer);
    }
    return (peer->lanes.transports != NULL) ? peer->lanes.transports : "";
}

bool uci_peer_may_share_memory(const uci_peer_t *peer)
{
    return (peer->lanes.transports == NULL) || uci_shared_memory_is_possible(peer->lanes.transports);
}

const char *uci_peer_device(uci_peer_t *peer)
{
    (void)uci_peer_transports(peer);
    return (peer->lanes.device != NULL) ? peer->lanes.device : "";
}

uint32_t uci_peer_stream_chunk_size(uci_peer_t *peer, uint64_t length)
{
    const uci_plan_t *plan = uci_tuner_plan(uci_peer_transports(peer), 0);

    return uci_peer_chunk_size(peer, uci_min(uci_plan_choose(plan, length)->chunk_size, plan->fragment));
}

uint32_t uci_peer_chunk_size(const uci_peer_t *peer, uint32_t chunk_size)
{
    return (!peer->in_clear && (chunk_size >= UCI_CHUNK_SIZE_MIN + UCI_SEALED_ROOM)) ? chunk_size - UCI_SEALED_ROOM
                                                                                     : chunk_size;
}

static const uci_plan_t *uci_peer_find_plan(uci_peer_t *peer)
{
    const char *transports = uci_peer_transports(peer); /* and whether the link is slow */

    return uci_tuner_plan(transports, UCI_PATH_BIT(UCI_PATH_GET) | UCI_PATH_BIT(UCI_PATH_BOUNCE) |
                                              (peer->slots.maps_ours ? UCI_PATH_BIT(UCI_PATH_DIRECT) : 0) |
                                              (peer->lanes.slow_link ? UCI_PLAN_SLOW_LINK : 0));
}

const uci_plan_t *uci_peer_plan(uci_peer_t *peer)
{
    const uci_plan_t *plan;

    if (uci_unlikely(peer->plan == NULL)) {
        plan = uci_peer_find_plan(peer);
        if (peer->lanes.transports == NULL) {
            return plan; /* what suits any: not to be kept */
        }
        peer->plan       = plan;
        peer->lanes.rdma = uci_tuner_is_rdma(uci_peer_transports(peer));
        uci_peer_limit_eager(peer);
        uci_debug("%s: transports \"%s\", eager up to %u bytes, chunks of %u bytes (of 1 MiB); %s", uci_peer_name(peer),
                  uci_peer_transports(peer), peer->eager_max, uci_plan_choose(peer->plan, 1 << 20)->chunk_size,
                  uci_tuner_source());
    }
    return peer->plan;
}
