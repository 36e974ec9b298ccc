/* SPDX-License-Identifier: BSD-3-Clause */
#include "resync.h"

#include "base/ask.h"
#include "conn/close.h"
#include "link/control.h"
#include "link/link_recv.h"
#include "util/process.h"
#include "transfer/repair.h"
#include "transfer/send_common.h"
#include "transfer/stream.h"

/* Who does not take what he has been told hears no question either: more of them would only wait behind that, and be answered one day */
#define UCI_RESYNC_UNTAKEN 64u

static bool uci_resync_is_due(const uci_ask_t *ask, const uci_peer_t *peer, uint64_t now)
{
    return (now >= uci_ask_time(ask, peer)) && (peer->talk.sending < UCI_RESYNC_UNTAKEN);
}

/* Of who has gone, or failed, all that has been told may stay untaken: what is received from it is looked at all the same, and ends */
static bool uci_resync_recv_is_due(const uci_recv_op_t *op, uint64_t now)
{
    return (now >= uci_ask_time(&op->ask, op->peer)) &&
           ((op->peer->talk.sending < UCI_RESYNC_UNTAKEN) || !uci_conversation_is_heard(&op->peer->conversation));
}

/* @param told_p  the peer that has just been asked about all of its messages */
static void uci_resync_ask_sender(uci_send_op_t *op, uint64_t now, const uci_peer_t **told_p)
{
    uci_request_t *req;

    if (uci_resync_is_due(&op->ask, op->peer, now)) {
        if ((op->chunk.tree != NULL) || op->ask.named) {
            uci_send_op_query(op);
        } else if (*told_p == op->peer) {
            uci_ask_done(&op->ask, op->peer, now);
        } else {
            uci_send_op_query_all(op);
            *told_p = op->peer;
        }
    }
    req = uci_send_op_buffer_late(op, now);
    if (req != NULL) {
        uci_stream_part(op, req);
    }
}

/* What was damaged is not forgotten before those that it may have been about have been asked about, or have ended */
static void uci_resync_keep(uci_worker_t *worker, const uci_ask_t *ask, const uci_peer_t *peer)
{
    if (uci_ask_is_urgent(ask, peer)) {
        uci_control_ask_at(worker, uci_ask_time(ask, peer));
    }
}

static void uci_resync_ask(uci_worker_t *worker, uint64_t now, bool damaged)
{
    const uci_peer_t *told = NULL;

    uci_list_for_each(send_op, &worker->xfer.send_ops, uci_send_op_t, all)
    {
        uci_resync_ask_sender(send_op, now, &told);
    }
    uci_list_for_each_safe(recv_op, &worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if (uci_resync_recv_is_due(recv_op, now)) {
            uci_repair_ask_again(recv_op, uci_ask_is_damaged(&recv_op->ask, recv_op->peer)); /* which may give it up */
        }
    }
    uci_close_ask_again(worker, now, damaged);
    uci_list_for_each(waiting, &worker->xfer.send_ops, uci_send_op_t, all)
    {
        uci_resync_keep(worker, &waiting->ask, waiting->peer);
    }
    uci_list_for_each(coming, &worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        uci_resync_keep(worker, &coming->ask, coming->peer);
    }
}

void uci_resync_progress(uci_worker_t *worker)
{
    uint64_t now;
    bool damaged;

    /* with something damaged in each turn: in a program that sleeps between two they are few */
    if (uci_likely(!worker->talk.ask_now && !worker->talk.resync) &&
        uci_likely(!uci_worker_is_turn(worker, UCI_RESYNC_POLLS))) {
        return;
    }

    now     = uci_process_time_ns();
    damaged = worker->talk.resync && (now >= worker->talk.resync_time);
    if (!damaged && !worker->talk.ask_now && (now < worker->turn.check_time)) {
        return;
    }
    uci_control_asks(worker, damaged);
    uci_link_ask(worker, now);
    uci_resync_ask(worker, now, damaged);
    worker->turn.check_time = uci_min(now + UCI_RESYNC_CHECK_NS, uci_link_due(worker));
}

uint64_t uci_resync_due(const uci_worker_t *worker)
{
    uint64_t due = uci_link_due(worker);

    uci_list_for_each(send_op, &worker->xfer.send_ops, uci_send_op_t, all)
    {
        due = uci_min(due, uci_ask_time(&send_op->ask, send_op->peer));
        due = uci_min(due, uci_send_op_buffer_time(send_op));
    }
    uci_list_for_each(recv_op, &worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        due = uci_min(due, uci_ask_time(&recv_op->ask, recv_op->peer));
    }
    due = uci_max(due, worker->turn.check_time);
    return worker->talk.resync ? uci_min(due, worker->talk.resync_time) : due;
}
