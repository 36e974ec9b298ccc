/* SPDX-License-Identifier: BSD-3-Clause */
#include "delivery.h"

#include "inject.h"
#include "util/log.h"

void uci_delivery_watch(uci_request_t *req, const uci_peer_t *peer, size_t length)
{
    int rank = uci_peer_rank(peer);

    if (req->flags & UCI_REQUEST_OWN) {
        return;
    }
    if (uci_inject_escape(&req->buffer, length, rank)) {
        req->flags |= UCI_REQUEST_ESCAPED;
        uci_info("a message of %zu bytes from rank %d was damaged after its verification (UCI_FAULT)", length, rank);
    }
}
