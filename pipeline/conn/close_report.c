/* SPDX-License-Identifier: BSD-3-Clause */
#include "close_report.h"

#include <stdlib.h>

#include "base/peer_table.h"
#include "link/link_send.h"
#include "link/txlog.h"
#include "message/unexpected.h"
#include "transfer/send_common.h"

static int uci_close_report_compare(const void *one, const void *other)
{
    uint64_t a = ((const uci_seq_range_t *)one)->first, b = ((const uci_seq_range_t *)other)->first;

    return (a > b) - (a < b);
}

/* A rendezvous that is in progress, or waits for its receive; a synchronous message that does. @param ranges  or NULL.
 * @return how many */
static size_t uci_close_report_unfinished(uci_peer_t *peer, uci_seq_range_t *ranges)
{
    size_t count = uci_unexpected_unfinished(peer, ranges);

    uci_list_for_each(op, &peer->worker->xfer.recv_ops, uci_recv_op_t, link)
    {
        if (op->peer != peer) {
            continue;
        }
        if (ranges != NULL) {
            ranges[count] = (uci_seq_range_t){.first = op->seq, .last = op->seq};
        }
        ++count;
    }
    return count;
}

uci_control_t *uci_close_report_get(uci_peer_t *peer, uci_am_type_t type, size_t max_ranges)
{
    size_t told, count = uci_close_report_unfinished(peer, NULL);
    uci_seq_range_t *ranges;
    uci_control_t *msg;
    uint64_t *words;

    msg = uci_control_get(peer, type, 0, (2 * sizeof(*words)) + (count * sizeof(*ranges)));
    if (msg == NULL) {
        return NULL;
    }
    words  = (uint64_t *)(void *)msg->payload;
    ranges = (uci_seq_range_t *)(void *)(words + 2);
    count  = uci_close_report_unfinished(peer, ranges);
    qsort(ranges, count, sizeof(*ranges), uci_close_report_compare);

    told            = uci_min(count, max_ranges);
    words[0]        = (count > 0) ? ranges[0].first : peer->rx.next;
    words[1]        = (told < count) ? ranges[told].first : peer->rx.next;
    msg->hdr.index  = (uint32_t)told;
    msg->length     = (2 * sizeof(*words)) + (told * sizeof(*ranges));
    msg->hdr.length = (uint32_t)msg->length;
    return msg;
}

static int uci_close_report_compare_seq(const void *seq, const void *range)
{
    uint64_t number = *(const uint64_t *)seq;

    return (number > ((const uci_seq_range_t *)range)->last) - (number < ((const uci_seq_range_t *)range)->first);
}

void uci_close_report_take(uci_peer_t *peer, const uint64_t *words, size_t length)
{
    const uci_seq_range_t *ranges = (const uci_seq_range_t *)(const void *)(words + 2);
    size_t count                  = (length / sizeof(*ranges)) - 1;

    uci_txlog_ack(peer, words[1]);
    uci_list_for_each_safe(op, &peer->worker->xfer.send_ops, uci_send_op_t, all)
    {
        if ((op->peer == peer) && (op->frame != NULL) && (op->frame->seq < words[1]) &&
            (bsearch(&op->frame->seq, ranges, count, sizeof(*ranges), uci_close_report_compare_seq) == NULL)) {
            uci_send_op_finish(op, UCS_OK);
        }
    }
}

const char *uci_close_report_check(const uci_am_t *am)
{
    size_t count = am->length / sizeof(uint64_t);

    return (count == 2 + (2 * (size_t)am->hdr->index)) ? uci_link_check_received(am->peer, am->data, count)
                                                       : "another number of ranges than it has";
}
