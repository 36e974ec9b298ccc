/* SPDX-License-Identifier: BSD-3-Clause */
#include "flush.h"

#include <stdlib.h>

#include "base/worker_lock.h"
#include "origin.h"
#include "util/log.h"

/* One flush of the program's: over when all its parts are, UCX's among them */
typedef struct uci_rma_flush {
    uci_request_t *req;
    unsigned parts;
    ucs_status_t status;
} uci_rma_flush_t;

/* What it waits for of one peer */
typedef struct uci_rma_flush_part {
    uci_list_t link; /* in flushes of the peer */
    uci_rma_flush_t *flush;
    uint64_t number; /* that many of the first operations */
} uci_rma_flush_part_t;

static void uci_rma_flush_part_over(uci_rma_flush_t *flush, ucs_status_t status)
{
    flush->status = (flush->status == UCS_OK) ? status : flush->status;
    if (--flush->parts > 0) {
        return;
    }
    uci_request_complete(flush->req, flush->status);
    free(flush);
}

/* ------------------------------------------------------------- of a peer */

static void uci_rma_flush_part_end(uci_rma_flush_part_t *part, ucs_status_t status)
{
    uci_list_del(&part->link);
    uci_rma_flush_part_over(part->flush, status);
    free(part);
}

/* An error of an operation that has told nobody is told once */
static ucs_status_t uci_rma_flush_take_status(uci_peer_t *peer)
{
    ucs_status_t status = peer->rma.status;

    peer->rma.status = UCS_OK;
    return status;
}

void uci_rma_flush_go_on(uci_peer_t *peer)
{
    uint64_t settled = uci_rma_settled(peer);
    uci_rma_flush_part_t *part;

    while (!uci_list_is_empty(&peer->rma.flushes)) {
        part = uci_container_of(peer->rma.flushes.next, uci_rma_flush_part_t, link);
        /* what has been freed is in no list: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        if (part->number > settled) {
            break;
        }
        uci_rma_flush_part_end(part, uci_rma_flush_take_status(peer));
    }
}

void uci_rma_flush_fail(uci_peer_t *peer, ucs_status_t status)
{
    uci_list_for_each_safe(part, &peer->rma.flushes, uci_rma_flush_part_t, link)
    {
        uci_rma_flush_part_end(part, status);
    }
}

void uci_rma_flush_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(part, &peer->rma.flushes, uci_rma_flush_part_t, link)
    {
        uci_list_del(&part->link);
        if (--part->flush->parts == 0) {
            free(part->flush);
        }
        free(part);
    }
}

/* ------------------------------------------------------------ beginning */

static void uci_rma_flush_peer(uci_rma_flush_t *flush, uci_peer_t *peer)
{
    uci_rma_flush_part_t *part;

    if (!uci_rma_is_pending(&peer->rma)) {
        flush->status = (flush->status == UCS_OK) ? uci_rma_flush_take_status(peer) : flush->status;
        return;
    }
    part = malloc(sizeof(*part));
    if (part == NULL) {
        uci_error("no memory to flush");
        flush->status = UCS_ERR_NO_MEMORY;
        return;
    }
    *part = (uci_rma_flush_part_t){.flush = flush, .number = peer->rma.sent};
    ++flush->parts;
    uci_list_add_tail(&peer->rma.flushes, &part->link);
}

static void uci_rma_flush_ucx_over(void *request, ucs_status_t status, void *user_data)
{
    uci_rma_flush_t *flush = user_data;
    uci_worker_t *worker   = flush->req->worker;

    uci_ucp.request_free(request);
    uci_worker_enter(worker);
    uci_rma_flush_part_over(flush, status);
    uci_worker_leave(worker);
}

/* What has passed. Where nothing has, UCX's flush would be a question to the target, which it answers in a turn that it may never have */
static void uci_rma_flush_ucx(uci_rma_flush_t *flush, uci_worker_t *worker, uci_ep_t *ep)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = uci_rma_flush_ucx_over,
                                 .user_data    = flush};
    ucs_status_ptr_t request;

    if (!worker->rma.passed) {
        return;
    }
    request = (ep != NULL) ? uci_ucp.ep_flush_nbx(ep->ucp, &param) : uci_ucp.worker_flush_nbx(worker->ucp, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ++flush->parts;
    } else if (flush->status == UCS_OK) {
        flush->status = UCS_PTR_STATUS(request);
    }
}

bool uci_rma_flushes(const uci_worker_t *worker)
{
    return worker->rma.used;
}

ucs_status_ptr_t uci_rma_flush(uci_worker_t *worker, uci_ep_t *ep, const ucp_request_param_t *param)
{
    uci_rma_flush_t *flush = calloc(1, sizeof(*flush));
    uci_request_t *req     = uci_request_get(worker, param);

    if ((flush == NULL) || (req == NULL)) {
        uci_error("no memory to flush");
        free(flush);
        if (req != NULL) {
            uci_request_put(req);
        }
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    flush->req   = req;
    flush->parts = 1; /* this call */
    if (ep != NULL) {
        flush->status = ep->peer->conversation.status; /* as UCX says of an endpoint that has failed */
        uci_rma_flush_peer(flush, ep->peer);
    } else {
        uci_worker_for_each_peer(peer, worker)
        {
            uci_rma_flush_peer(flush, peer);
        }
    }
    uci_rma_flush_ucx(flush, worker, ep);
    uci_rma_flush_part_over(flush, UCS_OK);
    return uci_request_posted(req, param);
}
