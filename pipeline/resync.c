/* SPDX-License-Identifier: BSD-3-Clause */
#include "resync.h"

#include "close.h"
#include "control.h"
#include "link_recv.h"
#include "process.h"
#include "repair.h"
#include "send_common.h"

/* When to ask about an operation that was active at @a time and has been asked about so often */
static uint64_t uci_resync_ask_time(uint64_t time, unsigned asked)
{
    return time + (UCI_RESYNC_INTERVAL_NS << uci_min(asked, 5u));
}

static void uci_resync_ask_sender(uci_send_op_t *op, uint64_t now, bool damaged)
{
    if (damaged || (now > uci_resync_ask_time(op->asked_time, op->queries))) {
        uci_send_op_query(op);
    }
    uci_send_op_buffer_late(op, now);
}

static void uci_resync_ask(uci_worker_t *worker, uint64_t now, bool damaged)
{
    uci_list_for_each(send_op, &worker->send_ops, uci_send_op_t, all)
    {
        uci_resync_ask_sender(send_op, now, damaged);
    }
    uci_list_for_each_safe(recv_op, &worker->recv_ops, uci_recv_op_t, link)
    {
        if (damaged || (now > uci_resync_ask_time(recv_op->active_time, recv_op->asked))) {
            uci_repair_ask_again(recv_op, damaged); /* which may give it up */
        }
    }
    uci_close_ask_again(worker, now, damaged);
}

void uci_resync_progress(uci_worker_t *worker)
{
    uint64_t now;
    bool damaged;

    if (uci_likely(!uci_worker_is_turn(worker, UCI_RESYNC_POLLS))) {
        return;
    }

    now     = uci_process_time_ns();
    damaged = worker->resync && (now >= worker->resync_time);
    if (!damaged && (now < worker->check_time)) {
        return;
    }
    if (damaged) {
        worker->resync = false;
    }
    worker->check_time = now + UCI_RESYNC_CHECK_NS;
    uci_link_ask(worker, now);
    uci_resync_ask(worker, now, damaged);
}

uint64_t uci_resync_due(const uci_worker_t *worker)
{
    uint64_t due = uci_link_due(worker);

    uci_list_for_each(send_op, &worker->send_ops, uci_send_op_t, all)
    {
        due = uci_min(due, uci_resync_ask_time(send_op->asked_time, send_op->queries));
        due = uci_min(due, uci_send_op_buffer_time(send_op));
    }
    uci_list_for_each(recv_op, &worker->recv_ops, uci_recv_op_t, link)
    {
        due = uci_min(due, uci_resync_ask_time(recv_op->active_time, recv_op->asked));
    }
    due = uci_max(due, worker->check_time);
    return worker->resync ? uci_min(due, worker->resync_time) : due;
}
