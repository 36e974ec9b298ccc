/* SPDX-License-Identifier: BSD-3-Clause */
#include "bounce.h"

#include "base/am_handler.h"
#include "control.h"
#include "base/edge.h"
#include "util/log.h"
#include "base/wire_check.h"

/* ------------------------------------------------------------- our pool */

static bool uci_bounce_exists(uci_worker_t *worker)
{
    uci_bounce_t *bounce = &worker->link.bounce;
    ucs_status_t status;

    if (!bounce->tried) {
        bounce->tried = true;
        status = uci_shared_memory_create(worker->context->ucp, UCI_SLOT_COUNT * sizeof(uci_slot_t), &bounce->memory);
        if (status == UCS_OK) {
            uci_bounce_init(bounce, bounce->memory.address);
        } else {
            uci_info("no memory for bounce slots (%s): messages on this node take other paths",
                     uci_ucp.status_string(status));
        }
    }
    return bounce->slots != NULL;
}

void uci_bounce_cleanup(uci_worker_t *worker)
{
    if (uci_unlikely(uci_edge.slots_end != NULL)) {
        uci_edge.slots_end(worker);
    }
    uci_shared_memory_cleanup(worker->context->ucp, &worker->link.bounce.memory);
    worker->link.bounce.slots = NULL;
}

unsigned uci_bounce_reserve(uci_worker_t *worker, unsigned want, unsigned keep)
{
    uci_bounce_t *bounce = &worker->link.bounce;
    unsigned count       = (bounce->available > keep) ? uci_min(want, bounce->available - keep) : 0;

    bounce->available -= count;
    return count;
}

void uci_bounce_unreserve(uci_worker_t *worker, unsigned count)
{
    worker->link.bounce.available += count;
}

uint16_t uci_bounce_get(uci_worker_t *worker)
{
    uci_bounce_t *bounce = &worker->link.bounce;
    uint16_t slot        = bounce->free[bounce->first];

    bounce->first = (bounce->first + 1) % UCI_SLOT_COUNT;
    --bounce->free_count;
    return slot;
}

void uci_bounce_put(uci_worker_t *worker, uint16_t slot)
{
    uci_bounce_t *bounce = &worker->link.bounce;

    bounce->free[(bounce->first + bounce->free_count++) % UCI_SLOT_COUNT] = slot;
}

/* --------------------------------------------------------- between peers */

/* The peer reads and writes our slots */
static void uci_bounce_set_mapped(uci_peer_t *peer)
{
    peer->slots.maps_ours = peer->slots.offered && (peer->worker->link.bounce.slots != NULL);
    uci_peer_forget_plan(peer); /* there is one more path to choose from */
}

bool uci_bounce_reaches_slow(uci_peer_t *peer)
{
    uci_worker_t *worker = peer->worker;
    uci_bounce_t *bounce = &worker->link.bounce;
    uci_control_t *msg;
    uci_am_pool_t *pool;

    if (uci_peer_transports(peer)[0] == '\0') {
        return false; /* not known yet: asked again */
    }
    peer->slots.offered = true;
    /* memory that changes wakes nobody who sleeps */
    if ((uci_settings.path == UCI_PATH_STREAM) || !peer->in_clear || worker->context->wakeup ||
        worker->context->apart || !uci_shared_memory_is_possible(uci_peer_transports(peer)) ||
        !uci_bounce_exists(worker)) {
        return false;
    }
    if (peer->uid == worker->uid) {
        peer->slots.map.slots = bounce->slots;
        uci_bounce_set_mapped(peer);
        return true;
    }

    msg = uci_control_get(peer, UCI_AM_POOL, 0, sizeof(*pool) + bounce->memory.rkey_length);
    if (msg != NULL) {
        pool             = (uci_am_pool_t *)(void *)msg->payload;
        pool->address    = (uintptr_t)bounce->slots;
        pool->slot_size  = UCI_SLOT_SIZE;
        pool->slot_count = UCI_SLOT_COUNT;
        memcpy(pool + 1, bounce->memory.rkey, bounce->memory.rkey_length);
        uci_control_send(msg);
    }
    return false;
}

uci_slot_t *uci_bounce_slot_of(const uci_peer_t *peer, uint16_t slot)
{
    return ((peer->slots.map.slots != NULL) && (slot < UCI_SLOT_COUNT)) ? &peer->slots.map.slots[slot] : NULL;
}

static const char *uci_bounce_check_pool(const uci_am_t *am)
{
    const uci_am_pool_t *pool = am->data;

    return ((pool->slot_size == UCI_SLOT_SIZE) && (pool->slot_count == UCI_SLOT_COUNT)) ? NULL
                                                                                        : "slots of another form";
}

static void uci_bounce_on_pool(uci_am_t *am)
{
    const uci_am_pool_t *pool = am->data;
    uci_peer_t *peer          = am->peer;
    ucp_ep_h ep               = uci_peer_endpoint(peer);
    ucs_status_t status;
    void *address;

    if ((ep == NULL) || !uci_conversation_is_heard(&peer->conversation)) {
        return;
    }
    if (peer->slots.map.slots != NULL) {
        uci_control_send_simple(peer, UCI_AM_MAPPED, 0, 0, 0); /* it had been laid to rest, and forgot that we do */
        return;
    }
    status = uci_wire_unpack_key(peer, ep, pool + 1, am->length - sizeof(*pool), &peer->slots.map.rkey);
    if (status != UCS_OK) {
        peer->slots.map.rkey = NULL;
        goto out;
    }
    status = uci_ucp.rkey_ptr(peer->slots.map.rkey, pool->address, &address);
    if ((status == UCS_OK) && !uci_shared_memory_is_mapped(address, UCI_SLOT_COUNT * sizeof(uci_slot_t))) {
        uci_wire_refuse(peer, "POOL", "that slots are where its memory is not");
        status = UCS_ERR_INVALID_ADDR;
    }
    if (status != UCS_OK) {
        uci_ucp.rkey_destroy(peer->slots.map.rkey);
        peer->slots.map.rkey = NULL;
        goto out;
    }
    peer->slots.map.slots = address;
    uci_control_send_simple(peer, UCI_AM_MAPPED, 0, 0, 0);

out:
    uci_debug("bounce slots of %s: %s", uci_peer_name(peer), uci_ucp.status_string(status));
}

UCI_AM_HANDLER(POOL, 17, "S, with the first message that could use it: where its bounce slots are",
               "`uci_am_pool_t` (8 address, 4 slot size, 4 slot count), rkey", "MAPPED if R can map them",
               "messages stream", .min = sizeof(uci_am_pool_t) + 1, .max = sizeof(uci_am_pool_t) + UCI_WIRE_KEY_MAX,
               .grain = 1, .in_clear = true, .check = uci_bounce_check_pool, .take = uci_bounce_on_pool);

static void uci_bounce_on_mapped(uci_am_t *am)
{
    uci_bounce_set_mapped(am->peer);
}

UCI_AM_HANDLER(MAPPED, 18, "R: it reads S's slots", "", "none", "messages stream", .grain = 1, .in_clear = true,
               .take = uci_bounce_on_mapped);

void uci_bounce_unmap(uci_peer_t *peer)
{
    if (peer->slots.map.rkey != NULL) {
        uci_ucp.rkey_destroy(peer->slots.map.rkey);
        peer->slots.map.rkey = NULL;
    }
    peer->slots.map.slots = NULL;
    peer->slots.maps_ours = false;
}
