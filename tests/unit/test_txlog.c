/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "txlog.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "seq.h"
#include "stats.h"

static uci_worker_t worker;
static uci_peer_t peer;

static void set_up(void)
{
    memset(&worker, 0, sizeof(worker));
    memset(&peer, 0, sizeof(peer));
    uci_frame_pool_init(&worker.frames);
    worker.log_limit  = SIZE_MAX;
    worker.peers_mask = 0;
    worker.peers      = calloc(1, sizeof(*worker.peers));
    worker.peers[0]   = &peer;
    peer.worker       = &worker;
    peer.tx_mask      = UINT64_MAX;
}

static void tear_down(void)
{
    free(peer.tx_ring);
    free(worker.peers);
    uci_frame_pool_cleanup(&worker.frames);
}

TestSuite(txlog, .init = set_up, .fini = tear_down, .timeout = 10);

/* As the sending side does: number, count, log */
static uci_frame_t *put(size_t total, bool log)
{
    uci_frame_t *frame = uci_frame_get(&worker.frames, total);

    frame->peer  = &peer;
    frame->op    = NULL;
    frame->seq   = peer.tx_next;
    frame->total = (uint32_t)total;
    frame->flags = 0;
    ++peer.tx_next;
    if (log) {
        cr_assert(uci_txlog_put(&peer, frame) == UCS_OK);
    } else {
        uci_frame_put(&worker.frames, frame);
    }
    return frame;
}

static size_t logged(void)
{
    size_t count = 0;
    uint64_t seq;

    for (seq = peer.tx_base; seq < peer.tx_next; ++seq) {
        uci_frame_t *frame = uci_txlog_find(&peer, seq);

        if (frame != NULL) {
            cr_assert(frame->seq == seq, "number %lu finds the frame of %lu", (unsigned long)seq,
                      (unsigned long)frame->seq);
            ++count;
        }
    }
    return count;
}

Test(txlog, empty)
{
    cr_expect(uci_txlog_find(&peer, 0) == NULL);
    cr_expect(uci_txlog_find(&peer, UINT64_MAX) == NULL);
    uci_txlog_ack(&peer, 0);
    uci_txlog_ack(&peer, 100);
    uci_txlog_ack_one(&peer, 3);
    cr_expect(peer.tx_base == 0);
}

Test(txlog, keeps_until_acknowledged)
{
    uci_frame_t *frames[300];
    uint64_t i;

    for (i = 0; i < 300; ++i) {
        frames[i] = put(100, true);
    }
    cr_expect(worker.log_bytes == 300 * 100);
    for (i = 0; i < 300; ++i) {
        cr_assert(uci_txlog_find(&peer, i) == frames[i]);
    }
    cr_expect(uci_txlog_find(&peer, 300) == NULL);
    uci_txlog_ack(&peer, 120);
    cr_expect(worker.log_bytes == 180 * 100);
    cr_expect(peer.tx_base == 120);
    cr_expect(uci_txlog_find(&peer, 119) == NULL);
    cr_expect(uci_txlog_find(&peer, 120) == frames[120]);
    uci_txlog_ack(&peer, UINT64_MAX);
    cr_expect(peer.tx_acked < peer.tx_next, "what was never sent is not acknowledged, nor all that was");
    uci_txlog_ack(&peer, peer.tx_next);
    cr_expect((worker.log_bytes == 0) && (logged() == 0) && (peer.tx_base == 300));
}

Test(txlog, acknowledged_out_of_order)
{
    uint64_t i;

    for (i = 0; i < 200; ++i) {
        put(100, true);
    }
    for (i = 1; i < 200; i += 2) {
        uci_txlog_ack_one(&peer, i);
    }
    cr_expect(logged() == 100);
    cr_expect(peer.tx_base == 0);
    uci_txlog_ack_one(&peer, 0);
    cr_expect(peer.tx_base == 2);
    uci_txlog_ack_one(&peer, 0);
    uci_txlog_ack_one(&peer, 1);
    uci_txlog_ack_one(&peer, 5000);
    cr_expect(logged() == 99);
    uci_txlog_ack(&peer, 200);
    cr_expect((logged() == 0) && (worker.log_bytes == 0));
}

/* One message is never received: the ring grows around it and finds all */
Test(txlog, grows_around_an_old_one)
{
    uint64_t i;

    for (i = 0; i < 5000; ++i) {
        put(100, true);
        if (i > 0) {
            uci_txlog_ack_one(&peer, i - 1 + (i == 1));
        }
        cr_assert(uci_txlog_find(&peer, i) != NULL || (i == 1));
    }
    cr_expect(uci_txlog_find(&peer, 0) != NULL);
    cr_expect(logged() == 2);
}

Test(txlog, steady_traffic_does_not_grow_the_ring)
{
    uint64_t i;

    for (i = 0; i < 100000; ++i) {
        put(100, true);
        if (i >= 40) {
            uci_txlog_ack(&peer, i - 40);
        }
    }
    cr_expect(peer.tx_mask < 256, "a ring of %lu for 40 messages", (unsigned long)peer.tx_mask + 1);
    cr_expect(worker.log_bytes <= 42 * 100);
}

/* What is waited for by an operation goes with it, not with an acknowledgement */
Test(txlog, operations_hold_their_frames)
{
    uci_frame_t *frame = put(100, true);

    frame->op = (struct uci_send_op *)&worker;
    put(100, true);
    uci_txlog_ack(&peer, 2);
    cr_expect(uci_txlog_find(&peer, 0) == frame);
    cr_expect(uci_txlog_find(&peer, 1) == NULL);
    frame->op = NULL;
    uci_txlog_remove(&peer, frame);
    cr_expect(peer.tx_base == 2);
}

Test(txlog, in_flight_frames_outlive_their_acknowledgement)
{
    uci_frame_t *frame = put(100, true);

    frame->flags |= UCI_FRAME_IN_FLIGHT;
    uci_txlog_ack(&peer, 1);
    cr_expect((frame->flags & UCI_FRAME_LOGGED) == 0);
    cr_expect(uci_frame_get(&worker.frames, 100) != frame, "UCX still reads it");
}

Test(txlog, limit_drops_the_oldest)
{
    uint64_t i, before = uci_stats.log_dropped;
    uci_frame_t *held;

    worker.log_limit = 1000;
    held             = put(100, true);
    held->op         = (struct uci_send_op *)&worker;
    for (i = 1; i < 100; ++i) {
        put(100, true);
        cr_assert(worker.log_bytes <= 1000);
    }
    cr_expect(uci_stats.log_dropped - before == 90);
    cr_expect(uci_txlog_find(&peer, 0) == held);
    cr_expect(uci_txlog_find(&peer, 1) == NULL);
    cr_expect(uci_txlog_find(&peer, 99) != NULL);
    cr_expect(logged() == 10);
}

/* UCI_MODE=detect logs only what an operation waits for: most numbers are never in the ring */
Test(txlog, gaps_of_what_is_not_logged)
{
    uci_frame_t *frame;
    uint64_t i;

    put(100, true);
    uci_txlog_ack(&peer, 1);
    for (i = 0; i < 500; ++i) {
        put(100, false);
    }
    frame = put(100, true); /* the log is empty, and the number far away */
    cr_expect(uci_txlog_find(&peer, frame->seq) == frame);
    cr_expect(logged() == 1);
}

Test(txlog, an_old_one_before_a_gap_is_found_once)
{
    uci_frame_t *old, *young;
    uint64_t i;

    old = put(100, true);
    for (i = 0; i < 500; ++i) {
        put(100, false);
    }
    young = put(100, true);
    cr_expect(uci_txlog_find(&peer, old->seq) == old);
    cr_expect(uci_txlog_find(&peer, young->seq) == young);
    cr_expect(logged() == 2);
}

/* The short way for an answer to the only message is the long way's result, or does nothing */
Test(txlog, acknowledging_the_last)
{
    struct uci_send_op *waits = (struct uci_send_op *)(void *)&worker; /* never looked into */

    cr_expect(!uci_txlog_ack_last(&peer, 0), "nothing has been sent");
    put(100, true);
    cr_expect(!uci_txlog_ack_last(&peer, 0), "an old number");
    cr_expect(!uci_txlog_ack_last(&peer, 2), "a number of the future");
    cr_expect(uci_txlog_ack_last(&peer, 1));
    cr_expect((worker.log_bytes == 0) && (logged() == 0) && (peer.tx_base == 1) && (peer.tx_acked == 1));
    cr_expect(uci_txlog_is_empty(&peer));

    put(100, true);
    put(100, true);
    cr_expect(!uci_txlog_ack_last(&peer, 3), "two are waiting");
    uci_txlog_ack(&peer, 3);
    put(100, true)->op = waits;
    cr_expect(!uci_txlog_ack_last(&peer, 4), "it waits for FIN");
    cr_expect(logged() == 1);
}

Test(txlog, acknowledging_the_last_where_nothing_is_kept)
{
    put(100, false);
    cr_expect(!uci_txlog_ack_last(&peer, 1));
    uci_txlog_ack(&peer, 1);
    cr_expect(peer.tx_acked == 1);
}
