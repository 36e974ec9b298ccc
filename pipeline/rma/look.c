/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A frame that can't be repaired is acknowledged all the same, if the policy is not to abort: what it was, and of what number, only its
 * sender knows, who does not know that it is lost. If an operation, or what a target says of one, is the last of them, nothing behind it
 * shows the gap:
 *
 *     origin   an operation --> lost           (or it is executed, and DONE is lost)
 *              all is acknowledged, and for a second nothing has come of it
 *              a put of no bytes --> target    its number shows what is missing: that is told as an error of I/O
 *              flushes end    <-- DONE
 */
#include "rma.h"

#include "origin.h"
#include "settings/settings.h"
#include "util/process.h"

/* Between two looks. What takes longer is asked for once: the question waits with it */
#define UCI_RMA_LOOK_NS 1000000000ul

/* Nothing has happened since the last look, and there is nobody with whom it could lie */
static bool uci_rma_is_stuck(const uci_peer_t *peer, uint64_t settled)
{
    return (peer->rma.seen_sent == peer->rma.sent) && (peer->rma.seen_settled == settled) &&
           (peer->conversation.status == UCS_OK) && (peer->tx.acked == peer->tx.next);
}

static void uci_rma_look_at(uci_peer_t *peer)
{
    uint64_t settled = uci_rma_settled(peer);

    if (uci_rma_is_pending(&peer->rma) && uci_rma_is_stuck(peer, settled)) {
        uci_rma_probe(peer);
    }
    peer->rma.seen_sent    = peer->rma.sent;
    peer->rma.seen_settled = settled;
}

void uci_rma_look(uci_worker_t *worker)
{
    uint64_t now;

    if (uci_likely(!worker->rma.used)) {
        return;
    }
    now = uci_process_time_ns();
    if (now - worker->rma.look_time < UCI_RMA_LOOK_NS) {
        return;
    }
    worker->rma.look_time = now;
    uci_worker_for_each_peer(peer, worker)
    {
        uci_rma_look_at(peer);
    }
}

uint64_t uci_rma_due(const uci_worker_t *worker)
{
    if (uci_likely(!worker->rma.used) || (uci_settings.on_error == UCI_ON_ERROR_ABORT)) {
        return UINT64_MAX; /* nothing is lost, or nothing goes on */
    }
    uci_worker_for_each_peer(peer, worker)
    {
        if (uci_rma_is_pending(&peer->rma)) {
            return worker->rma.look_time + UCI_RMA_LOOK_NS;
        }
    }
    return UINT64_MAX;
}
