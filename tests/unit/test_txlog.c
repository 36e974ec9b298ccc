/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "link/txlog.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "util/seq.h"
#include "live/stats.h"

#define TAG 1000

static uci_worker_t worker;
static uci_peer_t peer;

static void set_up(void)
{
    memset(&worker, 0, sizeof(worker));
    memset(&peer, 0, sizeof(peer));
    uci_frame_pool_init(&worker.frames);
    worker.link.log_limit = SIZE_MAX;
    worker.peers.mask     = 0;
    worker.peers.table    = calloc(1, sizeof(*worker.peers.table));
    worker.peers.table[0] = &peer;
    peer.worker           = &worker;
    peer.tx.mask          = UINT64_MAX;
}

static void tear_down(void)
{
    free(peer.tx.ring);
    free(peer.log.kept);
    free(worker.peers.table);
    uci_frame_pool_cleanup(&worker.frames);
}

TestSuite(txlog, .init = set_up, .fini = tear_down, .timeout = 10);

static uci_frame_t *make(uci_peer_t *to, size_t total)
{
    uci_frame_t *frame = uci_frame_get(&worker.frames, total);
    uint32_t length    = (uint32_t)(total - sizeof(uci_frame_hdr_t));

    frame->peer  = to;
    frame->op    = NULL;
    frame->req   = NULL;
    frame->seq   = to->tx.next;
    frame->total = (uint32_t)total;
    frame->flags = 0;
    memset(frame->wire, (int)frame->seq, total);
    uci_frame_write_hdr(frame, uci_frame_what(UCI_FRAME_EAGER, UCI_DIGEST_XXH3, length), 0, TAG + frame->seq,
                        ~frame->seq, 0, 0);
    return frame;
}

/* As the sending side does: number, log, send */
static uci_frame_t *put_to(uci_peer_t *to, size_t total)
{
    uci_frame_t *frame = make(to, total);

    cr_assert(uci_txlog_put(to, frame) == UCS_OK);
    to->tx.posted = ++to->tx.next;
    return frame;
}

static uci_frame_t *put(size_t total)
{
    return put_to(&peer, total);
}

/* Numbers whose frames are not in the log any more */
static void skip(uint64_t count)
{
    peer.tx.next += count;
    peer.tx.posted = peer.tx.next;
}

static size_t logged(void)
{
    size_t count = 0;
    uint64_t seq;

    for (seq = peer.tx.base; seq < peer.tx.next; ++seq) {
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
    cr_expect(peer.tx.base == 0);
}

Test(txlog, keeps_until_acknowledged)
{
    uci_frame_t *frames[300];
    uint64_t i;

    for (i = 0; i < 300; ++i) {
        frames[i] = put(100);
    }
    cr_expect(worker.link.log_bytes == 300 * 100);
    for (i = 0; i < 300; ++i) {
        cr_assert(uci_txlog_find(&peer, i) == frames[i]);
    }
    cr_expect(uci_txlog_find(&peer, 300) == NULL);
    uci_txlog_ack(&peer, 120);
    cr_expect(worker.link.log_bytes == 180 * 100);
    cr_expect(peer.tx.base == 120);
    cr_expect(uci_txlog_find(&peer, 119) == NULL);
    cr_expect(uci_txlog_find(&peer, 120) == frames[120]);
    uci_txlog_ack(&peer, UINT64_MAX);
    cr_expect(peer.tx.acked < peer.tx.next, "what was never sent is not acknowledged, nor all that was");
    uci_txlog_ack(&peer, peer.tx.next);
    cr_expect((worker.link.log_bytes == 0) && (logged() == 0) && (peer.tx.base == 300));
}

Test(txlog, acknowledged_out_of_order)
{
    uint64_t i;

    for (i = 0; i < 200; ++i) {
        put(100);
    }
    for (i = 1; i < 200; i += 2) {
        uci_txlog_ack_one(&peer, i);
    }
    cr_expect(logged() == 100);
    cr_expect(peer.tx.base == 0);
    uci_txlog_ack_one(&peer, 0);
    cr_expect(peer.tx.base == 2);
    uci_txlog_ack_one(&peer, 0);
    uci_txlog_ack_one(&peer, 1);
    uci_txlog_ack_one(&peer, 5000);
    cr_expect(logged() == 99);
    uci_txlog_ack(&peer, 200);
    cr_expect((logged() == 0) && (worker.link.log_bytes == 0));
}

/* One message is never received: the ring grows around it and finds all */
Test(txlog, grows_around_an_old_one)
{
    uint64_t i;

    for (i = 0; i < 5000; ++i) {
        put(100);
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
        put(100);
        if (i >= 40) {
            uci_txlog_ack(&peer, i - 40);
        }
    }
    cr_expect(peer.tx.mask < 256, "a ring of %lu for 40 messages", (unsigned long)peer.tx.mask + 1);
    cr_expect(worker.link.log_bytes <= 42 * 100);
}

/* What is waited for by an operation goes with it, not with an acknowledgement */
Test(txlog, operations_hold_their_frames)
{
    uci_frame_t *frame = put(100);

    frame->op = (struct uci_send_op *)&worker;
    put(100);
    uci_txlog_ack(&peer, 2);
    cr_expect(uci_txlog_find(&peer, 0) == frame);
    cr_expect(uci_txlog_find(&peer, 1) == NULL);
    frame->op = NULL;
    uci_txlog_remove(&peer, frame);
    cr_expect(peer.tx.base == 2);
}

Test(txlog, in_flight_frames_outlive_their_acknowledgement)
{
    uci_frame_t *frame = put(100);

    frame->flags |= UCI_FRAME_IN_FLIGHT;
    uci_txlog_ack(&peer, 1);
    cr_expect((frame->flags & UCI_FRAME_LOGGED) == 0);
    cr_expect(uci_frame_get(&worker.frames, 100) != frame, "UCX still reads it");
}

/* It may wait for FIN for ever: the ring spans what is not acknowledged, not what is older */
Test(txlog, an_old_one_is_kept_beside_the_ring)
{
    uci_frame_t *old = put(100);
    uint64_t i;

    old->op = (struct uci_send_op *)&worker;
    for (i = 1; i < 1000000; ++i) {
        put(100);
        uci_txlog_ack(&peer, i);
        cr_assert(uci_txlog_find(&peer, 0) == old);
    }
    cr_expect(peer.tx.mask < 256, "a ring of %lu for one message", (unsigned long)peer.tx.mask + 1);
    uci_txlog_ack(&peer, i);
    cr_expect(!uci_txlog_is_empty(&peer) && (uci_txlog_count(&peer) == 1) && (worker.link.log_bytes == 100));
    old->op = NULL;
    uci_txlog_remove(&peer, old);
    cr_expect(uci_txlog_is_empty(&peer) && (worker.link.log_bytes == 0) && (uci_txlog_find(&peer, 0) == NULL));
}

/* Any number of them, removed in another order, beside others */
Test(txlog, many_old_ones)
{
    enum { OLD = 20000 };
    uci_frame_t *old[OLD];
    uint64_t i, j;

    for (i = 0; i < OLD; ++i) {
        old[i]     = put(100);
        old[i]->op = (struct uci_send_op *)&worker;
        put(100);
        if (i % 3 == 0) {
            uci_txlog_ack_one(&peer, old[i]->seq);
        }
    }
    uci_txlog_ack(&peer, peer.tx.next);
    cr_expect((uci_txlog_count(&peer) == OLD) && (worker.link.log_bytes == OLD * 100));
    cr_expect(peer.log.kept_mask < OLD);
    for (i = 0, j = 0; i < OLD; ++i, j = (j + 7919) % OLD) {
        cr_assert(uci_txlog_find(&peer, old[j]->seq) == old[j]);
        cr_assert(uci_txlog_expand(&peer, (uint32_t)old[j]->seq) == old[j]->seq);
        old[j]->op = NULL;
        uci_txlog_remove(&peer, old[j]);
        cr_assert(uci_txlog_find(&peer, 2 * j) == NULL);
    }
    cr_expect(uci_txlog_is_empty(&peer) && (worker.link.log_bytes == 0) && (peer.log.kept_mask < 16));
}

/* What many messages at once have taken is given back when few are under way, and counts meanwhile */
Test(txlog, a_large_ring_shrinks)
{
    uint64_t i, ring;

    for (i = 0; i < 300000; ++i) {
        put(100);
    }
    ring = (peer.tx.mask + 1) * sizeof(uci_frame_t *);
    cr_expect(worker.link.log_bytes == (300000 * 100) + ring);
    for (i = 1; i <= 299900; ++i) {
        uci_txlog_ack(&peer, i);
        cr_assert((uci_txlog_find(&peer, i) != NULL) && (uci_txlog_find(&peer, 299999) != NULL));
    }
    cr_expect(logged() == 100);
    cr_expect(peer.tx.mask < 1024, "a ring of %lu for 100 messages", (unsigned long)peer.tx.mask + 1);
    cr_expect(worker.link.log_bytes == 100 * 100);
    uci_txlog_ack(&peer, 300000);
    cr_expect(uci_txlog_is_empty(&peer) && (worker.link.log_bytes == 0));
}

/* Half of all numbers on the wire have been used since, then all of them */
Test(txlog, numbers_of_old_ones)
{
    uci_frame_t *old = put(100);

    old->op = (struct uci_send_op *)&worker;
    uci_txlog_ack(&peer, 1);
    skip((1ul << 31) + 10);
    cr_expect((uci_txlog_expand(&peer, 0) == 0) && (uci_txlog_expand(&peer, 1) == (1ul << 32) + 1));
    skip(3ul << 31);
    cr_expect(uci_txlog_expand(&peer, 0) == 0);
    cr_expect(uci_txlog_expand(&peer, (uint32_t)peer.tx.next - 1) == peer.tx.next - 1);
    old->op = NULL;
    uci_txlog_remove(&peer, old);
    cr_expect(uci_txlog_expand(&peer, 0) == 1ul << 33);
}

/* A partner that has gone: what it left is small, and it may come back */
Test(txlog, released_and_used_again)
{
    put(100);
    uci_txlog_release(&peer);
    cr_expect(uci_txlog_find(&peer, 0) != NULL, "something is there");
    uci_txlog_ack(&peer, 1);
    uci_txlog_release(&peer);
    cr_expect((peer.tx.ring == NULL) && uci_txlog_is_empty(&peer) && (uci_txlog_find(&peer, 0) == NULL));
    uci_txlog_ack(&peer, 1);
    put(100);
    cr_expect((logged() == 1) && (uci_txlog_find(&peer, 1) != NULL));
    uci_txlog_ack(&peer, 2);
    cr_expect(uci_txlog_is_empty(&peer) && (worker.link.log_bytes == 0));
}

static bool is_stub(const uci_frame_t *frame)
{
    return (frame->flags & UCI_FRAME_STUB) != 0;
}

/* What is left of a frame that is over the limit: all that its receiver has to be told of it */
static void expect_stub(uint64_t seq, size_t total)
{
    uci_frame_t *stub = uci_txlog_find(&peer, seq);
    const uci_frame_hdr_t *hdr;

    cr_assert(stub != NULL, "number %lu", (unsigned long)seq);
    hdr = uci_frame_hdr(stub);
    cr_assert(is_stub(stub) && (stub->flags & UCI_FRAME_LOGGED) && !(stub->flags & UCI_FRAME_IN_FLIGHT));
    cr_assert(stub->total == sizeof(*hdr));
    cr_assert((stub->seq == seq) && (stub->peer == &peer) && (stub->op == NULL) && (stub->req == NULL));
    cr_assert((hdr->tag == TAG + seq) && (hdr->value == ~seq) && (hdr->seq == (uint32_t)seq));
    cr_assert(hdr->length == total - sizeof(*hdr));
}

Test(txlog, limit_drops_the_oldest)
{
    uint64_t i, before = uci_stats.log_dropped;
    uci_frame_t *held;

    worker.link.log_limit = 10000;
    held                  = put(1000);
    held->op              = (struct uci_send_op *)&worker;
    for (i = 1; i < 100; ++i) {
        put(1000);
        cr_assert(worker.link.log_bytes <= 10000);
    }
    /* 1000 * (5 + held) + 40 * 94 are below the limit, and one more would not be */
    cr_expect(uci_stats.log_dropped - before == 94);
    cr_expect(worker.link.log_bytes == 6 * 1000 + 94 * sizeof(uci_frame_hdr_t));
    cr_expect(uci_txlog_find(&peer, 0) == held);
    cr_expect(!is_stub(held));
    cr_expect(logged() == 100, "of each there is something");
    for (i = 1; i <= 94; ++i) {
        expect_stub(i, 1000);
    }
    for (; i < 100; ++i) {
        cr_assert(!is_stub(uci_txlog_find(&peer, i)));
    }
}

Test(txlog, stubs_are_acknowledged_as_others)
{
    uint64_t i;

    worker.link.log_limit = 10000;
    for (i = 0; i < 100; ++i) {
        put(1000);
    }
    expect_stub(0, 1000);
    uci_txlog_ack_one(&peer, 0);
    cr_expect((uci_txlog_find(&peer, 0) == NULL) && (peer.tx.base == 1));
    uci_txlog_ack(&peer, 100);
    cr_expect((worker.link.log_bytes == 0) && (logged() == 0) && uci_txlog_is_empty(&peer));
    put(1000);
    cr_expect(!is_stub(uci_txlog_find(&peer, 100)), "there is room again");
}

/* Of what is not much more than a stub nothing is gained */
Test(txlog, what_is_small_stays)
{
    uint64_t i, before = uci_stats.log_dropped;

    worker.link.log_limit = 1000;
    for (i = 0; i < 100; ++i) {
        put(UCI_CACHE_LINE);
    }
    cr_expect(uci_stats.log_dropped == before);
    cr_expect(worker.link.log_bytes == 100 * UCI_CACHE_LINE, "the limit is a soft one");
    cr_expect(logged() == 100);
    put(UCI_CACHE_LINE + 1);
    put(UCI_CACHE_LINE);
    expect_stub(100, UCI_CACHE_LINE + 1);
}

/* It waits for room in a mailbox, and has yet to be sent */
Test(txlog, what_waits_for_its_carrier_stays)
{
    uci_frame_t *waiting;
    uint64_t i;

    put(1000);
    worker.link.log_limit = 3000;
    for (i = 0; i < 10; ++i) {
        waiting = make(&peer, 1000);
        waiting->flags |= UCI_FRAME_IN_FLIGHT;
        cr_assert(uci_txlog_put(&peer, waiting) == UCS_OK);
        ++peer.tx.next;
    }
    expect_stub(0, 1000);
    for (i = 1; i <= 10; ++i) {
        cr_assert(!is_stub(uci_txlog_find(&peer, i)), "number %lu has not been sent", (unsigned long)i);
    }
    peer.tx.posted = peer.tx.next;
    put(1000);
    expect_stub(1, 1000);
}

/* UCX still reads what a stub takes the place of */
Test(txlog, a_frame_in_flight_outlives_its_stub)
{
    uci_frame_t *frame = put(1000), *other;

    frame->flags |= UCI_FRAME_IN_FLIGHT;
    worker.link.log_limit = 1500;
    put(1000);
    expect_stub(0, 1000);
    cr_expect((frame->flags & (UCI_FRAME_LOGGED | UCI_FRAME_IN_FLIGHT)) == UCI_FRAME_IN_FLIGHT);
    other = uci_frame_get(&worker.frames, 1000);
    cr_expect(other != frame);
    cr_expect(uci_frame_payload(frame)[5] == 0, "nobody has written there");
    uci_frame_put(&worker.frames, other);
}

/* The limit is the worker's: others give way when the one that sends can't */
Test(txlog, limit_is_of_all_peers)
{
    static uci_peer_t other;
    uci_peer_t *peers[2] = {&peer, &other};
    uint64_t i;

    memset(&other, 0, sizeof(other));
    other.worker          = &worker;
    other.tx.mask         = UINT64_MAX;
    other.uid             = 1;
    worker.peers.table[0] = NULL;
    free(worker.peers.table);
    worker.peers.table = peers;
    worker.peers.mask  = 1;
    for (i = 0; i < 10; ++i) {
        put(1000);
    }
    worker.link.log_limit = 10000;
    for (i = 0; i < 5; ++i) {
        put_to(&other, 10000);
        cr_assert(worker.link.log_bytes <= 10000 + 10000, "but for the one that is being sent");
    }
    for (i = 0; i < 10; ++i) {
        expect_stub(i, 1000);
    }
    cr_expect(is_stub(uci_txlog_find(&other, 0)));
    free(other.tx.ring);
    worker.peers.table    = calloc(1, sizeof(*worker.peers.table));
    worker.peers.table[0] = &peer;
}

/* A receiver that takes nothing for long: were all that is there looked at for each that comes, this would not end in time */
Test(txlog, over_the_limit_each_is_looked_at_once)
{
    uint64_t i;

    worker.link.log_limit = 1000;
    for (i = 0; i < 300000; ++i) {
        put((i % 2 == 0) ? UCI_CACHE_LINE : 100);
    }
    cr_expect(logged() == 300000);
    expect_stub(1, 100);
    uci_txlog_ack(&peer, 300000);
    cr_expect(worker.link.log_bytes == 0);
}

Test(txlog, gaps_of_what_is_not_logged)
{
    uci_frame_t *frame;

    put(100);
    uci_txlog_ack(&peer, 1);
    skip(500);
    frame = put(100); /* the log is empty, and the number far away */
    cr_expect(uci_txlog_find(&peer, frame->seq) == frame);
    cr_expect(logged() == 1);
}

Test(txlog, an_old_one_before_a_gap_is_found_once)
{
    uci_frame_t *old, *young;

    old = put(100);
    skip(500);
    young = put(100);
    cr_expect(uci_txlog_find(&peer, old->seq) == old);
    cr_expect(uci_txlog_find(&peer, young->seq) == young);
    cr_expect(logged() == 2);
}

/* The short way for an answer to the only message is the long way's result, or does nothing */
Test(txlog, acknowledging_the_last)
{
    struct uci_send_op *waits = (struct uci_send_op *)(void *)&worker; /* never looked into */

    cr_expect(!uci_txlog_ack_last(&peer, 0), "nothing has been sent");
    put(100);
    cr_expect(!uci_txlog_ack_last(&peer, 0), "an old number");
    cr_expect(!uci_txlog_ack_last(&peer, 2), "a number of the future");
    cr_expect(uci_txlog_ack_last(&peer, 1));
    cr_expect((worker.link.log_bytes == 0) && (logged() == 0) && (peer.tx.base == 1) && (peer.tx.acked == 1));
    cr_expect(uci_txlog_is_empty(&peer));

    put(100);
    put(100);
    cr_expect(!uci_txlog_ack_last(&peer, 3), "two are waiting");
    uci_txlog_ack(&peer, 3);
    put(100)->op = waits;
    cr_expect(!uci_txlog_ack_last(&peer, 4), "it waits for FIN");
    cr_expect(logged() == 1);
}
