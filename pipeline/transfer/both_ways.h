/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Does this core send and receive large messages at the same time? Then the path that takes the least processor time of both sides
 * together is the best (uci_choice_t.both), not the one by which a single message is over first. Counted are operations of more than
 * uci_tuner_both_min bytes, a send for as long as this core still has something to do for it: afterwards it only waits, as the first
 * message of a ping-pong when the answer comes.
 *
 *     sender    with a large receive under way: describes its message without slots, CTS finds it ready to be fetched
 *     receiver  with a large send under way: says CTS with flag GET, instead of taking slots
 */
#ifndef UCI_BOTH_WAYS_H_
#define UCI_BOTH_WAYS_H_

#include "base/worker_state.h"
#include "tune/tuner.h"
#include "base/peer.h"
#include "recv_op_part.h"
#include "send_op_part.h"

UCI_INLINE void uci_both_send_begins(uci_send_op_t *op)
{
    op->large = (op->length > uci_tuner_both_min);
    op->peer->worker->xfer.large_sends += op->large;
}

/** All of it has been digested, copied or given to UCX, or it is over. May be called again. */
UCI_INLINE void uci_both_send_ends(uci_send_op_t *op)
{
    op->peer->worker->xfer.large_sends -= op->large;
    op->large = false;
}

UCI_INLINE void uci_both_recv_begins(uci_recv_op_t *op)
{
    op->large = (op->length > uci_tuner_both_min);
    op->peer->worker->xfer.large_recvs += op->large;
}

UCI_INLINE void uci_both_recv_ends(uci_recv_op_t *op)
{
    op->peer->worker->xfer.large_recvs -= op->large;
    op->large = false;
}

/** Is a message between us and @a peer better fetched then? @return false: it takes its path whatever else goes on. */
UCI_INLINE bool uci_both_is_fetched(uci_peer_t *peer, uint64_t length)
{
    const uci_choice_t *choice = uci_plan_choose(uci_peer_plan(peer), length);

    return (choice->both == UCI_PATH_GET) && (choice->path != UCI_PATH_GET) && peer->in_clear;
}

#endif
