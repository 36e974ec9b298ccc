/* SPDX-License-Identifier: BSD-3-Clause */
#include "bounce.h"

#include "control.h"
#include "log.h"
#include "process.h"
#include "wire_check.h"

/* ------------------------------------------------------------- our pool */

/* Memory of UCX's own allocation is shared memory where a transport of this context has such */
static ucs_status_t uci_bounce_create(uci_worker_t *worker)
{
    uci_bounce_t *bounce        = &worker->bounce;
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                   .address = NULL,
                                   .length  = UCI_SLOT_COUNT * sizeof(uci_slot_t),
                                   .flags   = UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_NONBLOCK};
    ucp_mem_attr_t attr         = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    ucs_status_t status;

    status = uci_ucp.mem_map(worker->context->ucp, &params, &bounce->memh);
    if (status != UCS_OK) {
        return status;
    }
    status = uci_ucp.mem_query(bounce->memh, &attr);
    if (status != UCS_OK) {
        goto err_unmap;
    }
    status = uci_ucp.rkey_pack(worker->context->ucp, bounce->memh, &bounce->rkey, &bounce->rkey_length);
    if (status != UCS_OK) {
        goto err_unmap;
    }
    uci_bounce_init(bounce, attr.address);
    return UCS_OK;

err_unmap:
    uci_ucp.mem_unmap(worker->context->ucp, bounce->memh);
    return status;
}

static bool uci_bounce_exists(uci_worker_t *worker)
{
    ucs_status_t status;

    if (!worker->bounce.tried) {
        worker->bounce.tried = true;
        status               = uci_bounce_create(worker);
        if (status != UCS_OK) {
            uci_info("no memory for bounce slots (%s): messages on this node take other paths",
                     uci_ucp.status_string(status));
        }
    }
    return worker->bounce.slots != NULL;
}

void uci_bounce_cleanup(uci_worker_t *worker)
{
    uci_bounce_t *bounce = &worker->bounce;

    if (bounce->slots != NULL) {
        uci_ucp.rkey_buffer_release(bounce->rkey);
        uci_ucp.mem_unmap(worker->context->ucp, bounce->memh);
        bounce->slots = NULL;
    }
}

unsigned uci_bounce_reserve(uci_worker_t *worker, unsigned want, unsigned keep)
{
    uci_bounce_t *bounce = &worker->bounce;
    unsigned count       = (bounce->available > keep) ? uci_min(want, bounce->available - keep) : 0;

    bounce->available -= count;
    return count;
}

void uci_bounce_unreserve(uci_worker_t *worker, unsigned count)
{
    worker->bounce.available += count;
}

uint16_t uci_bounce_get(uci_worker_t *worker)
{
    uci_bounce_t *bounce = &worker->bounce;
    uint16_t slot        = bounce->free[bounce->first];

    bounce->first = (bounce->first + 1) % UCI_SLOT_COUNT;
    --bounce->free_count;
    return slot;
}

void uci_bounce_put(uci_worker_t *worker, uint16_t slot)
{
    uci_bounce_t *bounce = &worker->bounce;

    bounce->free[(bounce->first + bounce->free_count++) % UCI_SLOT_COUNT] = slot;
}

/* --------------------------------------------------------- between peers */

/* Among the transports that UCX lists, those whose memory can be mapped */
bool uci_bounce_is_possible(const char *transports)
{
    return (strstr(transports, "posix") != NULL) || (strstr(transports, "sysv") != NULL) ||
           (strstr(transports, "self") != NULL);
}

bool uci_bounce_reaches_slow(uci_peer_t *peer)
{
    uci_worker_t *worker = peer->worker;
    uci_bounce_t *bounce = &worker->bounce;
    uci_control_t *msg;
    uci_am_pool_t *pool;

    if (uci_peer_transports(peer)[0] == '\0') {
        return false; /* not known yet: asked again */
    }
    peer->pool_offered = true;
    /* memory that changes wakes nobody who sleeps */
    if ((uci_settings.path == UCI_PATH_STREAM) || worker->context->wakeup ||
        !uci_bounce_is_possible(uci_peer_transports(peer)) || !uci_bounce_exists(worker)) {
        return false;
    }
    if (peer->uid == worker->uid) {
        peer->map.slots = bounce->slots;
        uci_bounce_on_mapped(peer);
        return true;
    }

    msg = uci_control_get(peer, UCI_AM_POOL, 0, sizeof(*pool) + bounce->rkey_length);
    if (msg != NULL) {
        pool             = (uci_am_pool_t *)(void *)msg->payload;
        pool->address    = (uintptr_t)bounce->slots;
        pool->slot_size  = UCI_SLOT_SIZE;
        pool->slot_count = UCI_SLOT_COUNT;
        memcpy(pool + 1, bounce->rkey, bounce->rkey_length);
        uci_control_send(msg);
    }
    return false;
}

uci_slot_t *uci_bounce_slot_of(const uci_peer_t *peer, uint16_t slot)
{
    return ((peer->map.slots != NULL) && (slot < UCI_SLOT_COUNT)) ? &peer->map.slots[slot] : NULL;
}

/* UCX adds what the peer says to where its memory is mapped, and looks no further: we would write wherever it likes */
static bool uci_bounce_is_mapped(const void *slots)
{
    return ((uintptr_t)slots % UCI_CACHE_LINE == 0) &&
           uci_process_is_shared(slots, UCI_SLOT_COUNT * sizeof(uci_slot_t));
}

void uci_bounce_on_pool(uci_peer_t *peer, const void *data, size_t length)
{
    const uci_am_pool_t *pool = data;
    ucp_ep_h ep               = uci_peer_endpoint(peer);
    ucs_status_t status;
    void *address;

    if ((ep == NULL) || (peer->map.slots != NULL)) {
        return;
    }
    status = uci_wire_unpack_key(ep, pool + 1, length - sizeof(*pool), &peer->map.rkey);
    if (status != UCS_OK) {
        peer->map.rkey = NULL;
        goto out;
    }
    status = uci_ucp.rkey_ptr(peer->map.rkey, pool->address, &address);
    if ((status == UCS_OK) && !uci_bounce_is_mapped(address)) {
        uci_wire_refuse(peer, "POOL", "that slots are where its memory is not");
        status = UCS_ERR_INVALID_ADDR;
    }
    if (status != UCS_OK) {
        uci_ucp.rkey_destroy(peer->map.rkey);
        peer->map.rkey = NULL;
        goto out;
    }
    peer->map.slots = address;
    uci_control_send_simple(peer, UCI_AM_MAPPED, 0, 0, 0);

out:
    uci_debug("bounce slots of %s: %s", uci_peer_name(peer), uci_ucp.status_string(status));
}

void uci_bounce_on_mapped(uci_peer_t *peer)
{
    peer->maps_ours = peer->pool_offered && (peer->worker->bounce.slots != NULL);
    peer->plan      = NULL; /* there is one more path to choose from */
}

void uci_bounce_unmap(uci_peer_t *peer)
{
    if (peer->map.rkey != NULL) {
        uci_ucp.rkey_destroy(peer->map.rkey);
        peer->map.rkey = NULL;
    }
    peer->map.slots = NULL;
    peer->maps_ours = false;
}
