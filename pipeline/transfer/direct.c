/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct.h"

#include "direct_recv.h"
#include "direct_send.h"

static unsigned uci_direct_progress(uci_worker_t *worker)
{
    unsigned count = 0;

    if (uci_direct_recvs_are_due(worker)) {
        count += uci_direct_recv_progress(worker);
    }
    if (uci_direct_sends_are_due(worker)) {
        count += uci_direct_send_progress(worker);
    }
    return count;
}

const uci_path_ops_t uci_direct_path = {.way           = UCI_WAY_DIRECT,
                                        .progress      = uci_direct_progress,
                                        .matched       = uci_direct_matched,
                                        .release       = uci_direct_release,
                                        .serve         = uci_direct_serve,
                                        .finish        = uci_direct_finish,
                                        .unread        = uci_direct_unread,
                                        .describe_send = uci_direct_describe_send,
                                        .describe_recv = uci_direct_describe_recv};
