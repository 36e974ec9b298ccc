/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_delivery.h"

#include <stdlib.h>

#include "base/edge.h"
#include "base/peer.h"
#include "base/request.h"
#include "inject.h"
#include "inject_bytes.h"
#include "util/log.h"

static bool uci_inject_can_read_back(const uci_buffer_t *buffer)
{
    return (buffer->kind != UCI_BUFFER_GENERIC) ||
           ((buffer->generic->ops.start_pack != NULL) && (buffer->generic->ops.pack != NULL));
}

bool uci_inject_escape(uci_buffer_t *buffer, size_t length, int peer_rank)
{
    ucs_status_t status = buffer->status;
    uci_fault_t fault;
    void *packed;
    bool is_done;

    if ((length == 0) || !uci_inject_can_read_back(buffer) ||
        !uci_fault_draw(UCI_FAULT_ESCAPE, length, peer_rank, &fault)) {
        return false;
    }
    packed = malloc(length);
    if (packed == NULL) {
        uci_fault_undo();
        return false;
    }
    is_done = (uci_buffer_read_back(buffer, packed, length) == UCS_OK);
    uci_buffer_renew(buffer);
    if (is_done) {
        uci_inject_bytes(&fault, packed, length);
        uci_buffer_store(buffer, 0, packed, length);
    } else {
        uci_fault_undo();
    }
    buffer->status = status;
    free(packed);
    return is_done;
}

void *uci_inject_user_data(uci_buffer_t *buffer, int peer_rank, size_t *length_p)
{
    uci_fault_t fault;
    uint64_t value;
    void *copy;

    if ((buffer->length == 0) || !uci_fault_draw(UCI_FAULT_PAYLOAD, buffer->length, peer_rank, &fault)) {
        return NULL;
    }
    copy = malloc(buffer->length);
    if ((copy == NULL) ||
        (uci_buffer_read(buffer, 0, copy, buffer->length, &uci_digest_table[UCI_DIGEST_NONE], &value) != UCS_OK)) {
        free(copy);
        uci_fault_undo();
        return NULL;
    }
    *length_p = uci_fault_apply(&fault, copy, buffer->length, uci_inject_stale(buffer->length));
    return copy;
}

static void uci_inject_delivered(uci_request_t *req, const uci_peer_t *peer, size_t length)
{
    int rank = uci_peer_rank(peer);

    if (!(req->flags & UCI_REQUEST_OWN) && uci_inject_escape(&req->buffer, length, rank)) {
        req->flags |= UCI_REQUEST_ESCAPED;
        uci_info("a message of %zu bytes from rank %d was damaged after its verification (UCI_FAULT)", length, rank);
    }
}

void uci_inject_delivery_install(void)
{
    uci_edge.delivered = uci_fault_targets(UCI_FAULT_ESCAPE) ? uci_inject_delivered : NULL;
}
