/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The link between workers, by both carriers, over a network of the test's own: frames that are exchanged, repeated, lost, stale or
 * damaged below UCI. Whatever happens there, each message is given once, in its order, to the receive that it is for, intact or with an
 * error; and what can be asked for is asked for, without end but not without measure.
 */
#define NET_NODES 8
#include "fake_talk.h"

#include <signal.h>

#include "capture.h"
#include "base/siblings.h"
#include "conn/endpoint.h"
#include "link/blame.h"
#include "link/mailbox.h"
#include "link/txlog.h"

static void set_up_am(void)
{
    talk_begin(2, UCI_CARRIER_AM);
}

static void tear_down(void)
{
    talk_end();
}

TestSuite(link_order, .init = set_up_am, .fini = tear_down, .timeout = 60);
TestSuite(link_damage, .init = set_up_am, .fini = tear_down, .timeout = 60);
TestSuite(link_log, .init = set_up_am, .fini = tear_down, .timeout = 60);
TestSuite(link_lost, .fini = tear_down, .timeout = 60);
TestSuite(link_close, .init = set_up_am, .fini = tear_down, .timeout = 60);

#define TAG 7u

/* Receives of any message, and messages with tags 0, 1, ..., which are to be taken in this order */
static void recv_any(unsigned node, unsigned count)
{
    while (count-- > 0) {
        (void)talk_recv(node, 0, 0);
    }
}

static void send_in_order(unsigned from, unsigned first, unsigned count, size_t length)
{
    unsigned i;

    for (i = first; i < first + count; ++i) {
        talk_send(from, i, length);
    }
}

static void expect_in_order(unsigned count, size_t length)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        talk_expect(i, i, length);
    }
}

static char world[64] = "the world"; /* for people */

static void expect_quiet(unsigned node, unsigned other)
{
    uci_peer_t *peer = talk_peer(node, other);

    cr_expect(uci_txlog_is_empty(peer), "%s: %lu frames from %u are in the log", world,
              (unsigned long)(peer->tx.next - peer->tx.base), node);
    cr_expect(net_nodes[node].worker->link.log_bytes == 0);
    cr_expect(uci_seq_list_is_empty(&peer->rx.held) && uci_seq_list_is_empty(&peer->rx.gaps));
    cr_expect(!peer->rx.special && !peer->rx.damaged && (peer->rx.bound == NULL));
    cr_expect(uci_list_is_empty(&peer->rx.suspect_link) && uci_list_is_empty(&peer->log.waiting_link));
    cr_expect(net_nodes[node].worker->ops_active == 0, "%s: node %u, %u operations", world, node,
              net_nodes[node].worker->ops_active);
}

/* All is done, and nothing is left of it */
static void finish(void)
{
    cr_assert(talk_run(3000), "%s does not end", world);
    talk_turns(60, 1000 * TALK_MS); /* questions come seconds apart where many have been lost */
    cr_assert(talk_run(100));
    expect_quiet(0, 1);
    expect_quiet(1, 0);
}

/* ------------------------------------------------------------------- order */

Test(link_order, many)
{
    recv_any(1, 300);
    send_in_order(0, 0, 300, 100);
    finish();
    expect_in_order(300, 100);
    cr_expect(talk_counters(1)->frames_repeated == 0);
    cr_expect(talk_counters(0)->frames_resent == 0);
    cr_expect(talk_counters(1)->mismatched_headers + talk_counters(1)->mismatched_chunks == 0);
}

/* Acknowledged in time without being asked: after so many frames, or bytes */
Test(link_order, acknowledged_on_the_way)
{
    uci_peer_t *peer;

    recv_any(1, UCI_LINK_ACK_FRAMES);
    send_in_order(0, 0, UCI_LINK_ACK_FRAMES - 1, 10);
    peer = talk_peer(0, 1);
    talk_turns(2, 0);
    cr_expect(peer->tx.acked == 0);
    talk_send(0, UCI_LINK_ACK_FRAMES - 1, 10);
    talk_turns(2, 0);
    cr_expect(peer->tx.acked == UCI_LINK_ACK_FRAMES);
    cr_expect(peer->log.asks == 0);
    finish();
}

/* What goes the other way acknowledges, at no cost */
Test(link_order, acknowledged_by_the_answer)
{
    recv_any(1, 1);
    recv_any(0, 1);
    talk_send(0, 0, 10);
    talk_turns(1, 0);
    talk_send(1, 0, 10);
    talk_turns(1, 0);
    cr_expect(talk_peer(0, 1)->tx.acked == 1);
    cr_expect(talk_counters(1)->acks_sent == 0);
    finish();
}

/* Two frames of one tag, exchanged: each is intact */
Test(link_order, exchanged)
{
    unsigned first, second;

    recv_any(1, 1);
    talk_send(0, 0, 10);
    finish();
    first  = talk_recv_into(1, TAG, UINT64_MAX, 100);
    second = talk_recv_into(1, TAG, UINT64_MAX, 100);
    talk_send(0, TAG, 50);
    talk_send(0, TAG, 60);
    talk_exchange(talk_frame_to(1, 0), talk_frame_to(1, 1));
    finish();
    talk_expect(first, TAG, 50);
    talk_expect(second, TAG, 60);
    cr_expect(talk_counters(0)->frames_resent == 0, "both were there");
}

Test(link_order, exchanged_before_their_receives)
{
    unsigned first, second;

    talk_send(0, TAG, 50);
    talk_send(0, TAG, 60);
    talk_exchange(talk_frame_to(1, 0), talk_frame_to(1, 1));
    talk_turns(5, TALK_MS);
    first  = talk_recv_into(1, TAG, UINT64_MAX, 100);
    second = talk_recv_into(1, TAG, UINT64_MAX, 100);
    finish();
    talk_expect(first, TAG, 50);
    talk_expect(second, TAG, 60);
}

/* A copy of message n that comes once more while n, which came damaged, is being repaired, is n, and not n + 1 */
Test(link_order, a_stale_copy_while_it_is_repaired)
{
    unsigned first, second, third;
    net_message_t *stale;

    first  = talk_recv_into(1, TAG, UINT64_MAX, 100);
    second = talk_recv_into(1, TAG, UINT64_MAX, 100);
    third  = talk_recv_into(1, TAG, UINT64_MAX, 100);
    talk_send(0, TAG, 50);
    talk_send(0, TAG, 60);
    talk_send(0, TAG, 70);
    stale = talk_copy(talk_frame_to(1, 0));
    talk_frame_to(1, 0)->data[60] ^= 1;
    net_append(&net_nodes[1], stale);
    net_append(&net_nodes[1], talk_copy(stale));
    finish();
    talk_expect(first, TAG, 50);
    talk_expect(second, TAG, 60);
    talk_expect(third, TAG, 70);
    cr_expect(talk_counters(1)->repaired_chunks == 1);
}

/* Nor is one that comes long after */
Test(link_order, a_stale_copy_afterwards)
{
    net_message_t *stale;

    recv_any(1, 3);
    talk_send(0, 0, 50);
    stale = talk_copy(talk_frame_to(1, 0));
    talk_turns(5, TALK_MS);
    net_append(&net_nodes[1], stale);
    talk_turns(5, TALK_MS);
    cr_expect(talk_counters(1)->frames_repeated == 1);
    send_in_order(0, 1, 2, 50);
    finish();
    expect_in_order(3, 50);
}

Test(link_order, backwards)
{
    net_message_t *messages[64];
    unsigned i, count;

    recv_any(1, 1);
    talk_send(0, 0, 10);
    finish();
    recv_any(1, 50);
    send_in_order(0, 1, 50, 10);
    count = talk_seize(1, messages, 64);
    for (i = count; i-- > 0;) {
        net_append(&net_nodes[1], messages[i]);
    }
    finish();
    expect_in_order(51, 10);
    cr_expect(talk_counters(0)->frames_resent == 0);
}

/* A synchronous one, and one by rendezvous, among them */
Test(link_order, all_kinds)
{
    net_message_t *messages[64];
    unsigned i, count;

    recv_any(1, 6);
    talk_send(0, 0, 10);
    (void)talk_start_send(0, 1, 20, true);
    talk_send(0, 2, 20000);
    talk_send(0, 3, 0);
    (void)talk_start_send(0, 4, 20001, true);
    talk_send(0, 5, 2000);
    count = talk_seize(1, messages, 64);
    for (i = count; i-- > 0;) {
        net_append(&net_nodes[1], messages[i]);
    }
    finish();
    talk_expect(0, 0, 10);
    talk_expect(1, 1, 20);
    talk_expect(2, 2, 20000);
    talk_expect(3, 3, 0);
    talk_expect(4, 4, 20001);
    talk_expect(5, 5, 2000);
}

/* Of many that wait for FIN alone any may have been meant by what came damaged: one question is about all, and none is put to who takes
 * nothing */
Test(link_order, one_question_for_all)
{
    const unsigned count = 200;
    uci_worker_t *worker = net_nodes[0].worker;
    unsigned i;

    for (i = 0; i < count; ++i) {
        (void)talk_start_send(0, i, 20, true);
    }
    talk_turns(10, 0);
    uci_blame_anything(worker, NULL);
    talk_peer(0, 1)->talk.sending += 64;
    for (i = 0; i < 1000; ++i) {
        net_clock += TALK_MS;
        net_turn(0);
    }
    cr_expect(talk_count(1, UCI_AM_QUERY) == 0);
    talk_peer(0, 1)->talk.sending -= 64;
    for (i = 0; i < 200; ++i) {
        net_turn(0);
    }
    cr_expect(talk_count(1, UCI_AM_QUERY) == 1, "%u questions", talk_count(1, UCI_AM_QUERY));
    talk_turns(10, 0);
    recv_any(1, count);
    finish();
    for (i = 0; i < count; ++i) {
        talk_expect(i, i, 20);
    }
}

/* A box of node 1's, through which all goes from now on */
static void get_mailbox(unsigned from)
{
    uci_peer_t *peer = NULL;
    unsigned turn;

    for (turn = 0; (turn < 10) && ((peer == NULL) || !peer->box.used); ++turn) {
        recv_any(1, 1);
        talk_send(from, talk_sends_count + (10ul << 32), 10);
        talk_turns(20, 10 * TALK_MS);
        peer = talk_peer(from, 1);
    }
    cr_assert(peer->box.mapped && peer->box.used);
}

/* --------------------------------------------------- whatever can happen */

/* Only here, so that a world can be had again */
static uint64_t chaos_state;

static unsigned chaos(unsigned below)
{
    chaos_state = (chaos_state * 6364136223846793005ul) + 1442695040888963407ul;
    return (unsigned)(chaos_state >> 33) % below;
}

static void chaos_damage(net_message_t *message)
{
    size_t total = message->length + message->header_length, at = chaos((unsigned)total), i;

    switch (message->frame ? chaos(3) : 0) {
    case 0: /* one bit */
        if (at < message->length) {
            message->data[at] ^= (char)(1 << chaos(8));
        } else {
            message->header[at - message->length] ^= (char)(1 << chaos(8));
        }
        break;
    case 1: /* from somewhere on nothing came */
        for (i = at; i < message->length; ++i) {
            message->data[i] = 0;
        }
        break;
    default:
        message->length = at;
        message->have   = at;
        break;
    }
}

static net_message_t *chaos_late[NET_NODES];

static void chaos_forget(void)
{
    unsigned node;

    for (node = 0; node < NET_NODES; ++node) {
        if (chaos_late[node] != NULL) {
            net_free(chaos_late[node]);
            chaos_late[node] = NULL;
        }
    }
}

/* Of what is on its way to a node some is lost, damaged, doubled, late */
static void chaos_on_the_way(unsigned node, unsigned one_in)
{
    net_message_t *messages[TALK_MAX], *message;
    unsigned i, k, count = talk_seize(node, messages, TALK_MAX);

    for (i = 0; i < count; ++i) {
        message = messages[i];
        if (message->rndv || (chaos(one_in) != 0)) {
            net_append(&net_nodes[node], message);
            continue;
        }
        switch (chaos(5)) {
        case 0:
            talk_lose(message);
            continue;
        case 1:
            chaos_damage(message);
            break;
        case 2:
            net_append(&net_nodes[node], talk_copy(message));
            break;
        case 3: /* a stale copy, much later */
            if (chaos_late[node] != NULL) {
                net_append(&net_nodes[node], chaos_late[node]);
            }
            chaos_late[node] = talk_copy(message);
            break;
        default:
            k = i + chaos(count - i);
            if (messages[k]->frame == message->frame) {
                talk_exchange(message, messages[k]);
            }
            break;
        }
        net_append(&net_nodes[node], message);
    }
}

static uint64_t chaos_posted;

/* A bit of what lies, or will lie next, in one of a node's boxes, or of what it has told, or of the doorbells */
static void chaos_in_mailbox(unsigned node, unsigned one_in)
{
    uci_mailbox_t *mailbox = &net_nodes[node].worker->link.mailbox;
    const uci_mailbox_box_t *box;
    char *at;

    if ((mailbox->count == 0) || (chaos(one_in) != 0)) {
        return;
    }
    box = &mailbox->boxes[chaos(mailbox->count)];
    at  = (char *)box->rx.place + chaos(600);
    if (chaos(8) == 0) {
        at = (char *)box->rx.box + chaos(16);
    } else if (chaos(8) == 0) {
        at = (char *)mailbox->region + chaos(UCI_CACHE_LINE);
    }
    *at ^= (char)(1 << chaos(8));
}

static uci_stats_t chaos_sum;

static void chaos_add(const uci_stats_t *counters)
{
    chaos_sum.mismatched_headers += counters->mismatched_headers;
    chaos_sum.mismatched_chunks += counters->mismatched_chunks;
    chaos_sum.mismatched_control += counters->mismatched_control;
    chaos_sum.repaired_chunks += counters->repaired_chunks;
    chaos_sum.unrepaired_chunks += counters->unrepaired_chunks;
    chaos_sum.frames_resent += counters->frames_resent;
    chaos_sum.frames_repeated += counters->frames_repeated;
}

/* Else nothing has been shown */
static void chaos_expect(void)
{
    cr_log_info("%lu headers, %lu payloads, %lu other messages damaged; %lu frames sent again, %lu came once more",
                (unsigned long)chaos_sum.mismatched_headers, (unsigned long)chaos_sum.mismatched_chunks,
                (unsigned long)chaos_sum.mismatched_control, (unsigned long)chaos_sum.frames_resent,
                (unsigned long)chaos_sum.frames_repeated);
    cr_expect(chaos_sum.mismatched_headers > 100);
    cr_expect(chaos_sum.mismatched_chunks > 100);
    cr_expect(chaos_sum.mismatched_control > 100);
    cr_expect(chaos_sum.repaired_chunks == chaos_sum.mismatched_chunks);
    cr_expect(chaos_sum.unrepaired_chunks == 0);
    cr_expect(chaos_sum.frames_resent > 100);
    cr_expect(chaos_sum.frames_repeated > 100);
}

/* What a world is like */
typedef struct chaos_world {
    uci_carrier_t carrier;
    uci_mode_t mode;
    size_t log_limit; /* 0: that of the settings */
    bool close;       /* the sender does, in the middle of it */
} chaos_world_t;

static unsigned chaos_lost;

/* Each receive has the message of its turn, or, where that may be, an error in its place */
static void chaos_expect_order(const chaos_world_t *of, unsigned count)
{
    bool lossy = (of->log_limit > 0) || (of->mode == UCI_MODE_DETECT);
    const talk_recv_t *recv;
    unsigned i;

    for (i = 0; i < count; ++i) {
        recv = &talk_recvs[i];
        cr_assert(recv->done, "%s: message %u does not come", world, i);
        cr_assert((uint32_t)recv->tag == i, "%s: receive %u has message %u", world, i, (uint32_t)recv->tag);
        if (lossy && (recv->status == UCS_ERR_IO_ERROR)) {
            ++chaos_lost;
            continue;
        }
        cr_assert(recv->status == UCS_OK, "%s: receive %u, status %d", world, i, recv->status);
        talk_expect(i, recv->tag, recv->tag >> 32);
        cr_assert(talk_sends[i].done && (talk_sends[i].status == UCS_OK), "%s: send %u, %s, status %d", world, i,
                  talk_sends[i].done ? "done" : "pending", talk_sends[i].status);
    }
}

/* For its user: that does not mean that they are there */
static bool are_sent(void)
{
    unsigned i = 0;

    while ((i < talk_sends_count) && talk_sends[i].done) {
        ++i;
    }
    return i == talk_sends_count;
}

/* @a one_in  of how many messages one is hit */
static void chaos_talk(uint64_t seed, const chaos_world_t *of, unsigned one_in)
{
    static const size_t lengths[] = {0, 1, 16, 60, 100, 500, 2000, 2048, 2049, 9000};
    unsigned count = 60, i, turn, node, turns = 100;
    ucp_request_param_t param = {.op_attr_mask = 0};
    size_t length;

    chaos_state = seed;
    snprintf(world, sizeof(world), "seed %lu", (unsigned long)seed);
    net_read_settings();
    uci_settings.mode = of->mode;
    talk_begin(2, of->carrier);
    if (of->carrier == UCI_CARRIER_AUTO) {
        get_mailbox(0);
        count += talk_sends_count;
    }
    if (of->log_limit > 0) {
        net_nodes[0].worker->link.log_limit = of->log_limit;
    }
    for (turn = 0; (turn < turns) || (of->close && (net_nodes[0].ep != NULL)); ++turn) {
        cr_assert(turn < 5000, "%s: sends do not end", world);
        for (i = chaos(6); (i > 0) && (talk_recvs_count < count); --i) {
            recv_any(1, 1); /* some are there before their messages, some after */
        }
        for (i = chaos(4); (i > 0) && (talk_sends_count < count); --i) {
            length = lengths[chaos(uci_array_size(lengths))];
            (void)talk_start_send(0, talk_sends_count + (length << 32), length, chaos(8) == 0);
        }
        if (of->close && (net_nodes[0].ep != NULL) && (talk_sends_count == count) && are_sent()) {
            talk_keep(uci_ep_close(net_nodes[0].ep, &param));
            net_nodes[0].ep = NULL;
        }
        for (node = 0; node < 2; ++node) {
            chaos_on_the_way(node, one_in);
            chaos_in_mailbox(node, one_in);
        }
        talk_turns(1, chaos(4) * 5 * TALK_MS);
    }
    chaos_forget();
    if (!talk_run(3000)) {
        chaos_expect_order(of, count);
        cr_assert_fail("%s: they talk for ever", world);
    }
    chaos_expect_order(of, count);
    if (of->close) {
        talk_turns(100, 100 * TALK_MS);
        cr_assert(uci_list_is_empty(&net_nodes[0].worker->conn.closing), "%s: the close does not end", world);
    } else {
        finish();
    }
    if (net_nodes[1].worker->link.mailbox.count > 0) {
        chaos_posted += uci_box_rx_position(&net_nodes[1].worker->link.mailbox.boxes[0].rx);
    }
    chaos_add(talk_counters(0));
    chaos_add(talk_counters(1));
    cr_assert(uci_stats.refused_messages + talk_counters(0)->refused_messages + talk_counters(1)->refused_messages == 0,
              "%s: something was refused", world);
    talk_end();
}

static void chaos_talks(const chaos_world_t *of, uint64_t first, unsigned count)
{
    uint64_t seed;

    for (seed = first; seed < first + count; ++seed) {
        chaos_talk(seed, of, 2 + (unsigned)(seed % 20));
    }
}

Test(link_chaos, active_messages, .timeout = 300)
{
    chaos_world_t of = {UCI_CARRIER_AM, UCI_MODE_REPAIR, 0, false};

    chaos_talks(&of, 1, 1000);
    chaos_expect();
}

Test(link_chaos, with_a_mailbox, .timeout = 300)
{
    chaos_world_t of = {UCI_CARRIER_AUTO, UCI_MODE_REPAIR, 0, false};

    chaos_talks(&of, 1001, 1000);
    chaos_expect();
    cr_log_info("%lu cache lines were posted", (unsigned long)chaos_posted);
    cr_expect(chaos_posted > 20000, "this is about the mailbox");
}

/* Talks by each carrier */
static void chaos_talks_by_both(chaos_world_t of, uint64_t first, unsigned count)
{
    of.carrier = UCI_CARRIER_AM;
    chaos_talks(&of, first, count);
    of.carrier = UCI_CARRIER_AUTO;
    chaos_talks(&of, first + 1000, count);
}

static void chaos_expect_lost(void)
{
    cr_log_info("%u messages were lost", chaos_lost);
    cr_expect(chaos_lost > 100);
}

/* Messages are lost for want of copies: those, and no others */
Test(link_chaos, a_small_log, .timeout = 300)
{
    chaos_talks_by_both((chaos_world_t){.mode = UCI_MODE_REPAIR, .log_limit = 500}, 2001, 500);
    chaos_expect_lost();
}

Test(link_chaos, mode_detect, .timeout = 300)
{
    chaos_talks_by_both((chaos_world_t){.mode = UCI_MODE_DETECT}, 4001, 300);
    chaos_expect_lost();
}

/* The sender has gone when all has come */
Test(link_chaos, closes, .timeout = 300)
{
    chaos_talks_by_both((chaos_world_t){.mode = UCI_MODE_REPAIR, .close = true}, 6001, 500);
}

/* ------------------------------------------------------------------ damage */

static void flip(net_message_t *message, size_t at)
{
    cr_assert(at < message->length);
    message->data[at] ^= 0x10;
}

#define PAYLOAD sizeof(uci_frame_hdr_t)

Test(link_damage, a_payload)
{
    recv_any(1, 3);
    send_in_order(0, 0, 3, 100);
    flip(talk_frame_to(1, 1), PAYLOAD + 50);
    talk_turns(1, 0);
    cr_expect(talk_recvs[0].done && !talk_recvs[1].done && !talk_recvs[2].done);
    cr_expect(talk_count(0, UCI_AM_REPAIR) == 1, "asked for at once");
    finish();
    expect_in_order(3, 100);
    cr_expect(talk_counters(1)->mismatched_chunks == 1);
    cr_expect(talk_counters(1)->repaired_chunks == 1);
    cr_expect(talk_counters(1)->repaired_by_copy == 1);
    cr_expect(talk_counters(0)->frames_resent >= 1);
}

/* Shorter than its header says, and longer */
Test(link_damage, a_length)
{
    net_message_t *message;

    recv_any(1, 4);
    send_in_order(0, 0, 4, 100);
    talk_frame_to(1, 0)->length -= 1;
    talk_frame_to(1, 1)->length = PAYLOAD;
    talk_frame_to(1, 2)->length = PAYLOAD - 1;
    message                     = talk_frame_to(1, 3);
    message->data               = realloc(message->data, message->length + 100);
    memset(message->data + message->length, 0, 100);
    message->length += 100;
    finish();
    expect_in_order(4, 100);
    cr_expect(talk_counters(1)->mismatched_headers == 1);
}

/* What came damaged was longer than what comes instead, as no UCI sends it */
Test(link_damage, a_frame_that_was_longer)
{
    net_message_t *message;

    recv_any(1, 1);
    talk_send(0, 0, 16);
    message                   = talk_frame_to(1, 0);
    message->data             = realloc(message->data, PAYLOAD + 2000);
    message->length           = PAYLOAD + 2000;
    talk_hdr(message)->length = 2000;
    talk_hdr(message)->check  = uci_frame_check(talk_hdr(message),
                                                uci_frame_am_seed(net_nodes[0].worker->uid, net_nodes[1].worker->uid));
    memset(message->data + PAYLOAD, 0, 2000);
    finish();
    talk_expect(0, 0, 16);
}

Test(link_damage, nothing_of_a_frame)
{
    recv_any(1, 2);
    send_in_order(0, 0, 2, 100);
    talk_frame_to(1, 0)->length = 0;
    finish();
    expect_in_order(2, 100);
}

/* Every byte of a header, one after the other; the message is given as it was, and to no other receive */
Test(link_damage, a_header)
{
    unsigned at;

    for (at = 0; at < PAYLOAD; ++at) {
        (void)talk_recv(1, at, UINT64_MAX);
        talk_send(0, at, 100);
        flip(talk_frame_to(1, 0), at);
        talk_turns(1, 0);
        cr_assert(!talk_recvs[at].done, "byte %u", at);
        cr_assert(talk_run(1000), "byte %u", at);
        talk_expect(at, at, 100);
    }
    finish();
    cr_expect(talk_counters(1)->mismatched_headers == PAYLOAD);
    cr_expect(talk_counters(1)->mismatched_chunks == 0);
    cr_expect(net_nodes[1].worker->peers.count == 1, "no other peer was made of it");
}

/* It is asked for at the end of the turn, without a look at the clock: what has been sent, then what is missing of that */
Test(link_damage, a_header_is_asked_for)
{
    recv_any(1, 1);
    talk_send(0, 0, 10);
    finish();
    recv_any(1, 1);
    talk_send(0, 1, 100);
    flip(talk_frame_to(1, 0), 16);
    net_turn(1);
    cr_assert(talk_count(0, UCI_AM_ACK) == 1);
    net_turn(0);
    cr_assert(talk_count(1, UCI_AM_SENT) == 1);
    net_turn(1);
    net_turn(0);
    net_turn(1);
    talk_expect(1, 1, 100);
    finish();
}

/* Of many frames one after the other comes damaged while all are on their way: each is sent again once, and nothing else is */
Test(link_damage, headers_in_a_window)
{
    unsigned i;

    recv_any(1, 64);
    send_in_order(0, 0, 64, 100);
    for (i = 0; i < 64; i += 8) {
        flip(talk_frame_to(1, i), 16);
    }
    finish();
    expect_in_order(64, 100);
    cr_expect_eq(talk_counters(0)->frames_resent, 8);
    cr_expect_eq(talk_counters(1)->frames_repeated, 0);
    cr_expect_leq(talk_counters(0)->control_sent + talk_counters(1)->control_sent, 64 / 4 + 8 * 8);
}

/* With the uid of another one it is not his, and he is not made to wait */
Test(link_damage, a_header_that_names_another_one)
{
    net_create(2);
    net_open(2, 1);
    (void)talk_recv(1, 0, UINT64_MAX);
    (void)talk_recv(1, 1, UINT64_MAX);
    (void)talk_recv(1, 2, UINT64_MAX);
    talk_send(2, 0, 100);
    talk_turns(5, TALK_MS);
    talk_send(0, 1, 100);
    talk_send(2, 2, 100);
    talk_hdr(talk_frame_to(1, 0))->mark = net_nodes[2].worker->uid;
    talk_turns(1, TALK_MS);
    talk_expect(0, 0, 100);
    talk_expect(2, 2, 100);
    finish();
    talk_expect(1, 1, 100);
    cr_expect(talk_counters(1)->mismatched_headers == 1);
    expect_quiet(2, 1);
}

/* Frames of another pair of workers: right in all but for whom they are */
Test(link_damage, a_frame_for_another_one)
{
    net_message_t *stray;
    uint64_t seed;

    recv_any(1, 2);
    talk_send(0, 0, 100);
    stray = talk_copy(talk_frame_to(1, 0));
    seed  = uci_frame_am_seed(net_nodes[0].worker->uid, 0x123456);
    talk_turns(5, TALK_MS);

    talk_hdr(stray)->seq   = 1;
    talk_hdr(stray)->check = uci_frame_check(talk_hdr(stray), seed);
    net_append(&net_nodes[1], stray);
    talk_turns(5, TALK_MS);
    cr_expect(!talk_recvs[1].done);
    cr_expect(talk_counters(1)->mismatched_headers == 1);
    talk_send(0, 1, 100);
    finish();
    expect_in_order(2, 100);
}

/* A receive that a damaged message was matched to, and written to, is of no other message, nor to be cancelled */
Test(link_damage, a_receive_is_bound)
{
    void *request;

    net_create(2);
    net_open(2, 1);
    recv_any(1, 1);
    request = talk_requests[talk_requests_count - 1];
    recv_any(1, 1);
    talk_send(0, 0, 1000);
    flip(talk_frame_to(1, 0), PAYLOAD + 50);
    talk_turns(1, 0);
    cr_expect(talk_peer(1, 0)->rx.bound != NULL);
    talk_lose_all(0); /* the question, so that it lasts */
    talk_send(2, 1, 10);
    talk_turns(1, 0);
    cr_expect(!talk_recvs[0].done);
    talk_expect(1, 1, 10);
    uci_request_cancel(uci_request_from_user(request));
    cr_expect(!talk_recvs[0].done, "it is matched");
    finish();
    talk_expect(0, 0, 1000);
}

/* Of a synchronous message, a descriptor, and one that is too long, nothing is written before it is verified */
Test(link_damage, other_kinds)
{
    unsigned i;

    (void)talk_recv(1, 0, 0);
    (void)talk_recv(1, 0, 0);
    (void)talk_recv_into(1, 0, 0, 10);
    (void)talk_start_send(0, 0, 100, true);
    talk_send(0, 1, 20000);
    talk_send(0, 2, 100);
    for (i = 0; i < 3; ++i) {
        flip(talk_frame_to(1, i), PAYLOAD + 3);
    }
    finish();
    talk_expect(0, 0, 100);
    talk_expect(1, 1, 20000);
    cr_expect(talk_recvs[2].status == UCS_ERR_MESSAGE_TRUNCATED);
    cr_expect((uint8_t)talk_recvs[2].buffer[0] == 0xee);
    cr_expect(talk_counters(1)->mismatched_chunks == 3);
}

Test(link_damage, before_its_receive)
{
    send_in_order(0, 0, 3, 100);
    flip(talk_frame_to(1, 1), PAYLOAD + 50);
    talk_turns(1, 0);
    recv_any(1, 3);
    finish();
    expect_in_order(3, 100);
}

/* Frames that have come are acknowledged although one before them is missing, and are not sent again */
Test(link_damage, what_has_come_is_not_sent_again)
{
    uci_peer_t *peer;

    recv_any(1, 100);
    send_in_order(0, 0, 100, 100);
    peer = talk_peer(0, 1);
    talk_lose_frame(1, 3);
    talk_lose_frame(1, 50);
    talk_turns(10, 4 * TALK_MS); /* the receiver asks before the sender does */
    finish();
    expect_in_order(100, 100);
    cr_expect(talk_counters(0)->frames_resent == 2, "%lu were", (unsigned long)talk_counters(0)->frames_resent);
    cr_expect(peer->tx.acked == 100);
}

/* More gaps than one acknowledgement tells */
Test(link_damage, many_gaps)
{
    net_message_t *messages[512];
    unsigned i, count;

    recv_any(1, 1);
    talk_send(0, 0, 10);
    finish();
    recv_any(1, 400);
    send_in_order(0, 1, 400, 10);
    count = talk_seize(1, messages, 512);
    for (i = 0; i < count; ++i) {
        if (messages[i]->frame && (i % 2 == 0)) {
            talk_lose(messages[i]);
        } else {
            net_append(&net_nodes[1], messages[i]);
        }
    }
    talk_turns(100, 4 * TALK_MS);
    finish();
    expect_in_order(401, 10);
    cr_expect(talk_counters(0)->frames_resent < 250, "%lu were", (unsigned long)talk_counters(0)->frames_resent);
}

/* ------------------------------------------------------------- lost tails */

Test(link_damage, a_lost_tail)
{
    recv_any(1, 3);
    send_in_order(0, 0, 3, 100);
    talk_lose_frame(1, 2);
    talk_turns(2, 0);
    cr_expect(talk_recvs[1].done && !talk_recvs[2].done);
    net_clock += 21 * TALK_MS;
    net_turn(0);
    cr_expect(talk_count(1, UCI_AM_SENT) == 1, "nobody else can know of it");
    finish();
    expect_in_order(3, 100);
    cr_expect(talk_counters(0)->frames_resent == 1);
}

/* The very first words: who is asked does not know the sender, nor where to answer to */
Test(link_damage, first_words_lost)
{
    net_create(2);
    net_open(2, 1);
    recv_any(1, 1);
    talk_send(2, 0, 100);
    talk_lose_all(1);
    finish();
    talk_expect(0, 0, 100);
    expect_quiet(2, 1);
}

static bool losing_acks;
static unsigned lost_acks, asked_times;

static void lose_acks(net_message_t *message)
{
    if (message->frame) {
        return;
    }
    if (talk_am_hdr(message)->type == UCI_AM_SENT) {
        ++asked_times;
    } else if (losing_acks && (talk_am_hdr(message)->type == UCI_AM_ACK)) {
        message->header[5] ^= 1;
        ++lost_acks;
    }
}

/* Asked after 20 ms, 40, 80, ..., and still when it is heard at last; nothing is sent again meanwhile */
Test(link_damage, lost_acknowledgements)
{
    net_sent    = lose_acks;
    losing_acks = true;
    recv_any(1, 5);
    send_in_order(0, 0, 5, 100);
    talk_turns(1000, 5 * TALK_MS);
    expect_in_order(5, 100);
    cr_expect((asked_times >= 5) && (asked_times <= 9), "asked %u times in 5 s", asked_times);
    cr_expect(lost_acks == asked_times);
    cr_expect(talk_peer(0, 1)->tx.acked == 0);
    cr_expect(net_nodes[0].worker->link.log_bytes > 0);
    losing_acks = false;
    finish();
    cr_expect(talk_counters(0)->frames_resent == 0);
    cr_expect(talk_counters(1)->frames_repeated == 0);
}

static bool losing_questions;

static void lose_questions(net_message_t *message)
{
    if (!message->frame && losing_questions &&
        ((talk_am_hdr(message)->type == UCI_AM_SENT) || (talk_am_hdr(message)->type == UCI_AM_REPAIR) ||
         (talk_am_hdr(message)->type == UCI_AM_ACK))) {
        message->header[9] ^= 1;
    }
}

/* All that is asked and answered is damaged for a while: nothing fails for that */
Test(link_damage, silence_is_no_damage)
{
    net_sent         = lose_questions;
    losing_questions = true;
    recv_any(1, 5);
    send_in_order(0, 0, 5, 100);
    flip(talk_frame_to(1, 2), PAYLOAD + 5);
    talk_turns(500, 100 * TALK_MS);
    cr_expect(talk_recvs[1].done && !talk_recvs[2].done);
    losing_questions = false;
    finish();
    expect_in_order(5, 100);
}

/* ---------------------------------------------------------------- the log */

static unsigned damaged_times;

static void damage_all(net_message_t *message)
{
    if (message->frame && (message->length > PAYLOAD + 500)) {
        flip(message, PAYLOAD + 400);
        ++damaged_times;
    }
}

/* The sender has no copy any more: the receiver is told what it was, and the next ones are as they should be */
static void overflow(bool gone)
{
    unsigned i;

    recv_any(1, 20);
    talk_send(0, 0, 10);
    talk_turns(2, 0);
    net_nodes[0].worker->link.log_limit = 5000;
    send_in_order(0, 1, 19, 1000);
    cr_assert(talk_counters(0)->log_dropped >= 10);
    if (gone) {
        talk_lose_frame(1, 2);
    } else {
        flip(talk_frame_to(1, 2), PAYLOAD + 50);
    }
    finish();
    talk_expect(0, 0, 10);
    for (i = 1; i < 20; ++i) {
        if (i == 3) {
            talk_expect_lost(i);
            cr_expect(talk_recvs[i].tag == i, "the receive knows what it would have been");
        } else {
            talk_expect(i, i, 1000);
        }
    }
    cr_expect(talk_counters(1)->unrepaired_chunks == 1);
    cr_expect(talk_counters(1)->mismatched_chunks == 1);
}

Test(link_log, overflow_and_damage)
{
    overflow(false);
}

Test(link_log, overflow_and_loss)
{
    overflow(true);
}

/* It is for the receive that it matches, whenever that comes, and for no other */
Test(link_log, a_lost_one_waits_for_its_receive)
{
    talk_send(0, 0, 10);
    talk_turns(2, 0);
    net_nodes[0].worker->link.log_limit = 5000;
    send_in_order(0, 1, 19, 1000);
    talk_lose_frame(1, 2);
    talk_turns(50, 20 * TALK_MS);
    (void)talk_recv(1, 4, UINT64_MAX);
    (void)talk_recv(1, 3, UINT64_MAX);
    cr_assert(talk_run(100));
    talk_expect(0, 4, 1000);
    talk_expect_lost(1);
    cr_expect(talk_recvs[1].tag == 3);
}

/* With what there is of it, where the user wants that; more than there is room for is an error as of any message */
Test(link_log, lost_and_logged)
{
    uci_on_error_t before = uci_settings.on_error;

    uci_settings.on_error = UCI_ON_ERROR_LOG;
    (void)talk_recv_into(1, 0, 0, 2000);
    (void)talk_recv_into(1, 1, UINT64_MAX, 100);
    talk_send(0, 0, 1000);
    talk_send(0, 1, 1000);
    talk_send(0, 2, 1000);
    net_nodes[0].worker->link.log_limit = 500;
    talk_send(0, 3, 1000);
    cr_assert(talk_counters(0)->log_dropped >= 3);
    flip(talk_frame_to(1, 0), PAYLOAD + 50);
    flip(talk_frame_to(1, 1), PAYLOAD + 50);
    flip(talk_frame_to(1, 2), PAYLOAD + 50);
    talk_turns(50, 20 * TALK_MS);
    (void)talk_recv_into(1, 2, UINT64_MAX, 100);
    talk_turns(50, 20 * TALK_MS);
    uci_settings.on_error = before;

    cr_assert(talk_recvs[0].done && talk_recvs[1].done && talk_recvs[2].done);
    cr_expect((talk_recvs[0].status == UCS_OK) && (talk_recvs[0].length == 1000));
    talk_recvs[0].buffer[50] ^= 0x10;
    talk_expect(0, 0, 1000);
    cr_expect(talk_recvs[1].status == UCS_ERR_MESSAGE_TRUNCATED, "status %d", talk_recvs[1].status);
    cr_expect(talk_recvs[2].status == UCS_ERR_MESSAGE_TRUNCATED, "status %d", talk_recvs[2].status);
}

/* A sender that waits to be told that it is matched is, though with nothing */
Test(link_log, a_lost_synchronous_one)
{
    unsigned number;

    recv_any(1, 1);
    net_sent = damage_all;
    number   = talk_start_send(0, 0, 1000, true);
    finish();
    talk_expect_lost(0);
    cr_expect(talk_sends[number].done);
}

/* What the report of a lost message says of how it was to be had: copies that came, since when */
static void expect_tried(test_capture_t *capture, const char *rung, unsigned attempts, bool has_come)
{
    char *text       = test_capture_stop(capture);
    const char *line = strstr(text, "tried ");
    char name[16]    = "";
    unsigned count   = UINT_MAX;
    unsigned long us = ULONG_MAX;

    cr_assert((line != NULL) && (sscanf(line, "tried %15[^,], %u attempts, %lu us", name, &count, &us) == 3), "%s",
              text);
    cr_expect((strcmp(name, rung) == 0) && (count == attempts) && ((us > 0) == has_come), "%.*s",
              (int)strcspn(line, "\n"), line);
    free(text);
}

/* Damage that no repair survives: 16 of these, and no more */
Test(link_log, damaged_again_and_again)
{
    test_capture_t capture;

    recv_any(1, 2);
    net_sent      = damage_all;
    damaged_times = 0;
    talk_send(0, 0, 1000);
    talk_send(0, 1, 100);
    capture       = test_capture_start();
    uci_log_level = UCI_LOG_ERROR;
    finish();
    expect_tried(&capture, "copy", 16, true);
    talk_expect_lost(0);
    talk_expect(1, 1, 100);
    cr_expect((damaged_times >= 17) && (damaged_times <= 30), "%u copies", damaged_times);
    cr_expect(talk_counters(1)->unrepaired_chunks == 1);
}

/* The copy is damaged as well: it does not pass for a repair */
Test(link_log, a_damaged_copy)
{
    uci_frame_t *frame;

    recv_any(1, 2);
    talk_send(0, 0, 1000);
    talk_send(0, 1, 1000);
    flip(talk_frame_to(1, 0), PAYLOAD + 50);
    frame = uci_txlog_find(talk_peer(0, 1), 0);
    uci_frame_payload(frame)[999] ^= 1;
    finish();
    talk_expect_lost(0);
    talk_expect(1, 1, 1000);
}

static unsigned said_gone;

static void count_gone(net_message_t *message)
{
    said_gone += !message->frame && (talk_am_hdr(message)->type == UCI_AM_GONE);
}

/* By another endpoint what is asked about the first of three frames comes before it, and so does GONE */
static void overtaken(void)
{
    net_message_t *messages[8], *late = talk_frame_to(1, 0);
    unsigned i, count                 = talk_seize(1, messages, uci_array_size(messages));

    net_sent  = count_gone;
    said_gone = 0;
    for (i = 0; i < count; ++i) {
        if (messages[i] != late) {
            net_append(&net_nodes[1], messages[i]);
        }
    }
    talk_turns(200, TALK_MS);
    cr_assert(said_gone > 0);
    cr_assert(!talk_recvs[0].done, "it is given up within 200 ms");
    net_append(&net_nodes[1], late);
    finish();
    expect_in_order(3, 1000);
    cr_expect(talk_counters(1)->unrepaired_chunks == 0);
}

Test(link_log, a_damaged_copy_of_a_frame_that_is_late)
{
    recv_any(1, 3);
    send_in_order(0, 0, 3, 1000);
    uci_frame_payload(uci_txlog_find(talk_peer(0, 1), 0))[999] ^= 1;
    overtaken();
}

Test(link_log, no_copy_of_a_frame_that_is_late)
{
    net_nodes[0].worker->link.log_limit = 100;
    recv_any(1, 3);
    send_in_order(0, 0, 3, 1000);
    overtaken();
}

/* It does not come: then nobody waits for it for longer */
Test(link_log, a_damaged_copy_of_a_frame_that_is_lost)
{
    recv_any(1, 3);
    send_in_order(0, 0, 3, 1000);
    uci_frame_payload(uci_txlog_find(talk_peer(0, 1), 0))[999] ^= 1;
    talk_lose_frame(1, 0);
    talk_turns(1000, TALK_MS);
    talk_expect_lost(0);
    talk_expect(1, 1, 1000);
    talk_expect(2, 2, 1000);
}

/* UCX has it until later: it is not given back, nor its request completed, before */
Test(link_log, ucx_takes_its_time)
{
    unsigned number;

    net_busy = true;
    recv_any(1, 2);
    number = talk_start_send(0, 0, 100, false);
    cr_expect(!talk_sends[number].done);
    talk_send(0, 1, 100);
    cr_expect(uci_txlog_find(talk_peer(0, 1), 0)->flags & UCI_FRAME_IN_FLIGHT);
    talk_lose_frame(1, 1);
    net_turn(0);
    cr_expect(talk_sends[1].done, "what UCX has let go of is for the log");
    finish();
    expect_in_order(2, 100);
    cr_expect(talk_sends[number].done && (talk_sends[number].status == UCS_OK));
}

/* Others have been sent, and acknowledged, since */
static void have_sent(unsigned from, unsigned to, uint64_t count)
{
    uci_peer_t *peer = talk_peer(from, to);

    cr_assert((peer->tx.acked == peer->tx.next) && (peer->tx.base == peer->tx.next));
    peer->tx.next += count;
    peer->tx.posted = peer->tx.acked = peer->tx.base = peer->tx.next;
    talk_peer(to, from)->rx.next += count;
}

/* A synchronous message and a rendezvous that wait for their receives while more are sent than half of the numbers on the wire, then all of
 * them: what is said of the old ones is not taken for others, nor is it when FIN is lost, and asked about by the number */
static void wait_while(uint64_t count)
{
    (void)talk_start_send(0, 0, 100, true);
    (void)talk_start_send(0, 1, TALK_LENGTH, false);
    talk_turns(50, 100 * TALK_MS);
    have_sent(0, 1, count);
    talk_send(0, 2, 100);
    talk_turns(50, 100 * TALK_MS);
    recv_any(1, 1);
    net_turn(1);
    talk_lose_all(0);
    recv_any(1, 2);
    cr_assert(talk_run(1000), "0x%lx messages: it waits for ever", (unsigned long)count);
    talk_expect(0, 0, 100);
    talk_expect(1, 1, TALK_LENGTH);
    talk_expect(2, 2, 100);
    expect_quiet(0, 1);
}

Test(link_log, an_old_one_waits_while_many_are_sent)
{
    wait_while((1ul << 31) + 10);
}

Test(link_log, an_old_one_waits_while_all_numbers_are_sent)
{
    wait_while((1ul << 32) - 10);
}

Test(link_log, an_old_one_waits_while_numbers_begin_again)
{
    wait_while((7ul << 32) + 10);
}

/* Acknowledged while UCX still holds it */
Test(link_log, acknowledged_before_ucx_lets_go)
{
    net_message_t *message, *messages[16];
    unsigned number, i, count;

    net_busy = true;
    recv_any(1, 1);
    number  = talk_start_send(0, 0, 100, false);
    count   = talk_seize(1, messages, 16);
    message = messages[count - 1];
    cr_assert(message->frame);
    for (i = 0; i < count; ++i) {
        net_append(&net_nodes[1], (i + 1 < count) ? messages[i] : talk_copy(message));
    }
    talk_turns(20, 20 * TALK_MS);
    talk_expect(0, 0, 100);
    cr_expect(talk_peer(0, 1)->tx.acked == 1);
    cr_expect(!talk_sends[number].done);
    talk_lose(message);
    net_turn(0);
    cr_expect(talk_sends[number].done);
    finish();
}

Test(link_log, ucx_refuses)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;

    recv_any(1, 2);
    talk_send(0, 0, 100);
    net_refusal = UCS_ERR_NO_RESOURCE;
    request     = uci_send(net_nodes[0].ep, "nothing", 7, 1, &param, false);
    net_refusal = UCS_OK;
    cr_expect(UCS_PTR_IS_ERR(request) && (UCS_PTR_STATUS(request) == UCS_ERR_NO_RESOURCE));
    cr_expect(talk_peer(0, 1)->tx.next == 1, "its number is for the next one");
    talk_send(0, 1, 100);
    finish();
    expect_in_order(2, 100);
    cr_expect(talk_counters(0)->frames_resent == 0);
}

/* ------------------------------------------------------------------ detect */

Test(link_lost, mode_detect)
{
    test_capture_t capture;
    uci_mode_t before;

    net_read_settings();
    before            = uci_settings.mode;
    uci_settings.mode = UCI_MODE_DETECT;
    talk_begin(2, UCI_CARRIER_AM);
    recv_any(1, 5);
    send_in_order(0, 0, 5, 100);
    flip(talk_frame_to(1, 1), PAYLOAD + 50);
    flip(talk_frame_to(1, 3), 20);
    capture       = test_capture_start();
    uci_log_level = UCI_LOG_ERROR;
    talk_turns(1, 0);
    expect_tried(&capture, "none", 0, false);
    talk_expect(0, 0, 100);
    talk_expect_lost(1);
    cr_expect(talk_recvs[1].tag == 1);
    talk_expect(2, 2, 100);
    cr_expect(talk_count(0, UCI_AM_REPAIR) == 0, "it does not repair");
    cr_assert(talk_run(1000));
    cr_expect(talk_recvs[3].done, "what is missing is asked for, or nothing behind it could be delivered");
    talk_expect(4, 4, 100);
    talk_turns(60, 1000 * TALK_MS);
    expect_quiet(0, 1);
    expect_quiet(1, 0);
    uci_settings.mode = before;
}

/* A receive that was bound when its message was lost */
Test(link_lost, what_is_bound)
{
    talk_begin(2, UCI_CARRIER_AM);
    recv_any(1, 2);
    talk_send(0, 0, 1000);
    net_nodes[0].worker->link.log_limit = 100;
    talk_send(0, 1, 1000);
    flip(talk_frame_to(1, 0), PAYLOAD + 50);
    talk_turns(1, 0);
    cr_expect(talk_peer(1, 0)->rx.bound != NULL);
    finish();
    talk_expect_lost(0);
    talk_expect(1, 1, 1000);
}

/* Verified, acknowledged, and then damaged where it waits for the one before it: there is no other copy */
Test(link_lost, damaged_while_it_is_held)
{
    uci_held_t *held;

    talk_begin(2, UCI_CARRIER_AM);
    recv_any(1, 3);
    send_in_order(0, 0, 3, 1000);
    talk_lose_frame(1, 0);
    talk_turns(1, 0);
    net_clock += 21 * TALK_MS;
    net_turn(0);
    net_turn(1);
    net_turn(0);
    cr_assert((talk_peer(0, 1)->tx.acked == 0) && (uci_txlog_find(talk_peer(0, 1), 1) == NULL));
    held = uci_container_of(talk_peer(1, 0)->rx.held.list.next, uci_held_t, at.link);
    cr_assert(held->at.seq == 1);
    held->payload[17] ^= 1;
    finish();
    talk_expect(0, 0, 1000);
    talk_expect_lost(1);
    cr_expect(talk_recvs[1].tag == 1);
    talk_expect(2, 2, 1000);
    cr_expect(talk_counters(1)->unrepaired_chunks == 1);
}

/* ----------------------------------------------------------------- mailbox */

static void set_up_mailbox(void)
{
    talk_begin(2, UCI_CARRIER_AUTO);
    get_mailbox(0);
}

TestSuite(link_mailbox, .init = set_up_mailbox, .fini = tear_down, .timeout = 60);
TestSuite(link_boxes, .fini = tear_down, .timeout = 60);

/* Does the next message go through it? */
static bool uses_mailbox(unsigned from)
{
    const uci_peer_t *peer = talk_peer(from, 1);

    return peer->box.mapped && (peer->box.used || (peer->tx.acked >= peer->box.am_until));
}

static uci_mailbox_box_t *box_of(unsigned from)
{
    uci_mailbox_t *mailbox = &net_nodes[1].worker->link.mailbox;
    uci_peer_t *peer       = talk_peer(1, from);

    cr_assert(peer->box.own >= 0);
    return &mailbox->boxes[peer->box.own];
}

/* The frame that lies next, and the one behind it, if they are of this length */
static char *in_box(unsigned from, unsigned index, size_t length)
{
    const char *first = uci_box_rx_peek(&box_of(from)->rx); /* it may begin a lap */

    cr_assert(first != NULL);
    return (char *)(uintptr_t)first + (index * uci_align_up(sizeof(uci_frame_hdr_t) + length, UCI_BOX_GRANULE));
}

/* Messages that follow those of get_mailbox(), and what they are to be received as */
static unsigned send_more(unsigned from, unsigned count, size_t length)
{
    unsigned first = talk_sends_count, i;

    for (i = 0; i < count; ++i) {
        talk_send(from, talk_sends_count + ((uint64_t)length << 32), length);
    }
    return first;
}

static void expect_more(unsigned first, unsigned count, size_t length)
{
    unsigned i;

    for (i = first; i < first + count; ++i) {
        talk_expect(i, i + ((uint64_t)length << 32), length);
    }
}

/* Node 1 has offered its mailbox to node 0, which has not heard that yet */
static void offer_mailbox(void)
{
    unsigned turn;

    talk_begin(2, UCI_CARRIER_AUTO);
    recv_any(1, 1);
    talk_send(0, 1, 10);
    for (turn = 0; (turn < 20) && (talk_count(0, UCI_AM_BOX) == 0); ++turn) {
        net_turn(1);
    }
    cr_assert(talk_count(0, UCI_AM_BOX) > 0);
    net_unpacked = 0;
}

/* UCX crashes on a key of memory that is gone: who has said since that it closes is not asked for its memory */
Test(link_boxes, of_one_that_closes)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    offer_mailbox();
    talk_keep(uci_ep_close(net_nodes[1].ep, &param));
    net_nodes[1].ep = NULL;
    talk_turns(20, TALK_MS);
    cr_expect((net_unpacked == 0) && !talk_peer(0, 1)->box.mapped);
}

/* Nor who has gone without a word: nobody makes progress in node 0 but another worker of its process */
Test(link_boxes, of_one_that_is_destroyed)
{
    const uci_peer_t *peer;

    offer_mailbox();
    peer = talk_peer(0, 1);
    net_end_operations(net_nodes[1].worker);
    talk_give_back();
    net_destroy(1);
    net_nodes[0].worker->sibling.turns_seen = net_nodes[0].worker->turn.count;
    net_nodes[0].worker->sibling.seen_time  = 0;
    uci_siblings_help(NULL);
    cr_expect((net_nodes[0].first == NULL) && (net_unpacked == 0) && !peer->box.mapped);
}

Test(link_boxes, of_one_that_has_failed)
{
    offer_mailbox();
    uci_ep_fail(net_nodes[0].ep, UCS_ERR_CONNECTION_RESET);
    talk_turns(20, TALK_MS);
    cr_expect((net_unpacked == 0) && !talk_peer(0, 1)->box.mapped);
}

/* Of what is said again while the first waits, the last counts */
Test(link_boxes, told_often)
{
    unsigned i;

    offer_mailbox();
    for (i = 0; i < 1000; ++i) {
        uci_mailbox_repeat(talk_peer(1, 0));
    }
    cr_expect(talk_count(0, UCI_AM_BOX) > 1000);
    for (i = 0; (i < 2000) && (talk_count(0, UCI_AM_BOX) > 0); ++i) {
        net_turn(0);
    }
    cr_expect(net_nodes[0].worker->turn.later.next->next == &net_nodes[0].worker->turn.later);
    talk_turns(20, TALK_MS);
    cr_expect((net_unpacked == 1) && talk_peer(0, 1)->box.mapped);
}

Test(link_boxes, of_one_that_stays)
{
    offer_mailbox();
    net_turn(0);
    net_turn(0);
    cr_expect((net_unpacked == 1) && talk_peer(0, 1)->box.mapped);
}

Test(link_mailbox, frames_go_through_it)
{
    unsigned first;

    recv_any(1, 300);
    first = send_more(0, 300, 100);
    cr_expect(talk_count_frames(1) == 0);
    finish();
    expect_more(first, 300, 100);
    cr_expect(talk_counters(0)->frames_resent == 0);
}

static void start_more_sync(unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        (void)talk_start_send(0, talk_sends_count + (8ul << 32), 8, true);
    }
}

static void expect_more_sync(unsigned first, unsigned count)
{
    unsigned i;

    finish();
    expect_more(first, count, 8);
    for (i = first; i < first + count; ++i) {
        cr_expect(talk_sends[i].done && (talk_sends[i].status == UCS_OK), "send %u", i);
    }
    cr_expect(talk_counters(0)->frames_resent == 0);
}

/* UCX's queue over shared memory takes 128 answers or more. What finds no room waits for progress, which the answering side may never make again */
Test(link_mailbox, answers_find_room)
{
    unsigned first = talk_sends_count, turn, i, most = 0;

    recv_any(1, 1000);
    start_more_sync(1000);
    for (turn = 0; turn < 100; ++turn) {
        for (i = 0; i < 10; ++i) {
            net_turn(1);
        }
        most = uci_max(most, talk_count(0, UCI_AM_FIN));
        net_turn(0);
    }
    cr_expect((most > 0) && (most <= 2 * UCI_LINK_QUESTIONS), "%u answers at once", most);
    expect_more_sync(first, 1000);
    cr_expect(uses_mailbox(0));
}

/* Those whose receives have not begun hold up nobody */
Test(link_mailbox, answers_that_come_late)
{
    unsigned first = talk_sends_count;

    start_more_sync(1000);
    talk_turns(200, 0);
    cr_expect(talk_peer(0, 1)->tx.posted == talk_peer(0, 1)->tx.next, "%lu of %lu",
              (unsigned long)talk_peer(0, 1)->tx.posted, (unsigned long)talk_peer(0, 1)->tx.next);
    cr_expect(talk_count_frames(1) == 0);
    recv_any(1, 1000);
    expect_more_sync(first, 1000);
}

/* Nor does it who has something from UCX in each turn */
Test(link_mailbox, answers_among_others)
{
    unsigned first = talk_sends_count, turn;

    recv_any(1, 300);
    start_more_sync(300);
    for (turn = 0; !talk_sends[first + 299].done && (turn < 20000); ++turn) {
        uci_control_send_simple(talk_peer(1, 0), UCI_AM_ACK, 0, 0, 0);
        net_turn(0);
        net_turn(1);
    }
    cr_expect(talk_sends[first + 299].done);
    cr_expect(talk_peer(0, 1)->box.am_until <= first, "some went by active message, and all at once");
    expect_more_sync(first, 300);
    cr_expect(uses_mailbox(0));
}

/* What is no question, and comes behind one that waits, is over: its receiver may wait for something that its sender does next */
Test(link_mailbox, answers_hold_up_nobody_else)
{
    unsigned first = talk_sends_count, i;

    (void)send_more(0, UCI_LINK_QUESTIONS, 8);
    start_more_sync(1);
    (void)send_more(0, 100, 8);
    cr_expect(talk_peer(0, 1)->tx.posted < talk_peer(0, 1)->tx.next);
    for (i = 0; i < UCI_LINK_QUESTIONS + 101; ++i) {
        cr_expect(talk_sends[first + i].done == (i != UCI_LINK_QUESTIONS), "send %u", i);
    }
    for (i = 0; i < 3000; ++i) {
        net_turn(0);
    }
    cr_expect(talk_count_frames(1) == 0);
    recv_any(1, UCI_LINK_QUESTIONS + 101);
    expect_more_sync(first, UCI_LINK_QUESTIONS + 101);
}

/* But no more of them than UCX's own queue takes: a program must not run ahead of its receiver without limit */
Test(link_mailbox, answers_hold_up_many)
{
    unsigned first = talk_sends_count;

    start_more_sync(UCI_LINK_QUESTIONS + 1);
    (void)send_more(0, UCI_LINK_EARLY + 10, 8);
    cr_expect(talk_sends[first + UCI_LINK_QUESTIONS + UCI_LINK_EARLY - 1].done);
    cr_expect(!talk_sends[talk_sends_count - 1].done);
    recv_any(1, talk_sends_count - first);
    expect_more_sync(first, talk_sends_count - first);
}

Test(link_mailbox, all_sizes)
{
    static const size_t lengths[] = {0, 1, 23, 24, 25, 87, 88, 89, 472, 473, 1000, 2048};
    unsigned i, first[uci_array_size(lengths)];

    recv_any(1, uci_array_size(lengths));
    for (i = 0; i < uci_array_size(lengths); ++i) {
        first[i] = send_more(0, 1, lengths[i]);
    }
    cr_expect(talk_count_frames(1) == 0);
    finish();
    for (i = 0; i < uci_array_size(lengths); ++i) {
        expect_more(first[i], 1, lengths[i]);
    }
}

/* Messages of 2000 bytes, more than there is room for */
#define FULL ((UCI_BOX_GRANULES * UCI_BOX_GRANULE / 2048) + 20)

/* Its sends are not over until there is room; then they go on in their order, and by the same way */
Test(link_mailbox, full)
{
    uci_worker_t *worker = net_nodes[0].worker;
    unsigned first, turn;

    recv_any(1, FULL);
    first = send_more(0, FULL, 2000);
    cr_assert(!talk_sends[first + FULL - 1].done, "it has room for all of these");
    cr_expect(talk_sends[first].done);
    cr_expect(!uci_list_is_empty(&talk_peer(0, 1)->log.waiting_link));
    for (turn = 0; turn < 100; ++turn) {
        net_turn(0);
    }
    cr_expect(!talk_sends[first + FULL - 1].done, "nobody makes room");
    cr_expect(talk_count_frames(1) == 0);
    finish();
    expect_more(first, FULL, 2000);
    cr_expect(talk_sends[first + FULL - 1].done);
    cr_expect(uci_list_is_empty(&worker->link.waiting));
    cr_expect(uses_mailbox(0));
    cr_expect(talk_peer(0, 1)->box.am_until <= first, "nothing went by active message");
}

/* Sends that wait for room are given up with their endpoint: they end with an error. @return the first of all */
static unsigned fill_and_close(void)
{
    unsigned first            = send_more(0, FULL, 2000), i;
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};

    cr_assert(!talk_sends[first + FULL - 1].done);
    talk_keep(uci_ep_close(net_nodes[0].ep, &force));
    net_turn(0);
    for (i = 0; i < FULL; ++i) {
        cr_assert(talk_sends[first + i].done);
    }
    cr_expect(talk_sends[first].status == UCS_OK);
    cr_expect(talk_sends[first + FULL - 1].status == UCS_ERR_CANCELED);
    cr_expect(uci_list_is_empty(&talk_peer(0, 1)->log.waiting_link));
    return first;
}

/* They may be delivered all the same: what comes behind them can't be without them */
Test(link_mailbox, given_up_and_asked_for)
{
    unsigned first;

    recv_any(1, FULL + 1);
    first = fill_and_close();
    net_open(0, 1);
    (void)send_more(0, 1, 2000);
    cr_assert(talk_run(3000));
    expect_more(first, FULL + 1, 2000);
    cr_expect(talk_counters(0)->frames_resent > 0);
}

/* Synchronous ones end with their endpoint as well, and those behind them; what they were comes if anything comes behind them */
Test(link_mailbox, questions_given_up)
{
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    unsigned first            = talk_sends_count, i;

    start_more_sync(100);
    (void)send_more(0, 300, 8);
    cr_expect(!talk_sends[first].done && !talk_sends[first + 399].done);
    talk_keep(uci_ep_close(net_nodes[0].ep, &force));
    net_turn(0);
    for (i = first; i < first + 400; ++i) {
        cr_expect(talk_sends[i].done, "send %u", i);
    }
    cr_expect(talk_sends[first].status == UCS_ERR_CANCELED);
    cr_expect(uci_list_is_empty(&talk_peer(0, 1)->log.waiting_link));
    net_open(0, 1);
    (void)send_more(0, 1, 8);
    recv_any(1, 401);
    cr_assert(talk_run(3000));
    expect_more(first, 401, 8);
    cr_expect(talk_counters(1)->unrepaired_chunks == 0);
}

/* Or not: nobody asks for what he knows nothing of */
Test(link_mailbox, given_up_for_good)
{
    unsigned first, i, sent = 0;

    recv_any(1, FULL);
    first = fill_and_close();
    for (i = 0; i < FULL; ++i) {
        sent += talk_sends[first + i].status == UCS_OK;
    }
    talk_turns(100, 100 * TALK_MS);
    expect_more(first, sent, 2000);
    cr_expect((sent > 0) && (sent < FULL) && !talk_recvs[talk_recvs_count - FULL + sent].done);
    cr_expect(talk_counters(0)->frames_resent == 0);
}

/* Its owner is away for long: what waits goes by active message, is taken in its order, and then the mailbox is used again */
Test(link_mailbox, full_for_long)
{
    unsigned first, turn;

    first = send_more(0, FULL, 2000);
    for (turn = 0; turn < 3000; ++turn) {
        net_turn(0);
    }
    cr_expect(talk_sends[first + FULL - 1].done);
    cr_expect(talk_count_frames(1) > 0);
    recv_any(1, FULL);
    finish();
    expect_more(first, FULL, 2000);
    cr_expect(uses_mailbox(0));
    recv_any(1, 10);
    first = send_more(0, 10, 100);
    cr_expect(talk_count_frames(1) == 0);
    finish();
    expect_more(first, 10, 100);
}

/* Frames that go by active message to a peer that has given a box, enough of them for the others to wait. @return the first */
static unsigned send_a_streak(unsigned more)
{
    talk_peer(0, 1)->box.am_until = talk_peer(0, 1)->tx.next + 1; /* as if the last one had been too large for a box */
    talk_peer(0, 1)->box.used     = false;
    return send_more(0, 255 + more, 100);
}

/* Who only listens acknowledges now and then, what was sent a while ago: the sender waits for it once, then all goes by mailbox */
Test(link_mailbox, a_stream_without_answers)
{
    unsigned first, turn;

    recv_any(1, 300);
    first = send_a_streak(45);
    cr_expect(talk_count_frames(1) == 255);
    cr_expect(talk_sends[first + 254].done && !talk_sends[first + 255].done);
    for (turn = 0; turn < 100; ++turn) {
        net_turn(0);
    }
    cr_expect(!talk_sends[first + 255].done, "the others are still on their way");
    finish();
    expect_more(first, 300, 100);
    cr_expect(talk_peer(0, 1)->box.am_until == first + 255, "the others went by mailbox");
    cr_expect(uses_mailbox(0) && (talk_counters(0)->frames_resent == 0));
}

/* Who is away has his frames in UCX's hands, as if there were no mailbox, and is waited for less often */
Test(link_mailbox, a_stream_to_who_is_away)
{
    unsigned first, turn;

    first = send_a_streak(1);
    for (turn = 0; turn < 3000; ++turn) {
        net_turn(0);
    }
    cr_expect(talk_sends[first + 255].done && (talk_count_frames(1) == 256));
    (void)send_more(0, 511, 100);
    cr_expect(talk_count_frames(1) == 256 + 511);
    (void)send_more(0, 1, 100);
    cr_expect(talk_count_frames(1) == 256 + 511);
    recv_any(1, 256 + 512);
    finish();
    expect_more(first, 256 + 512, 100);
    cr_expect(uses_mailbox(0));
}

/* What waits is in the log, and is not given away or asked for before it is sent */
Test(link_mailbox, closed_while_it_is_full)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    unsigned first;

    first = send_more(0, FULL, 2000);
    talk_keep(uci_ep_close(net_nodes[0].ep, &param));
    net_nodes[0].ep = NULL;
    recv_any(1, FULL);
    cr_assert(talk_run(3000));
    expect_more(first, FULL, 2000);
}

Test(link_mailbox, a_damaged_payload)
{
    unsigned first;
    uint64_t key;

    recv_any(1, 5);
    first = send_more(0, 5, 100);
    key   = box_of(0)->key;
    in_box(0, 2, 100)[PAYLOAD + 77] ^= 4;
    talk_turns(5, TALK_MS); /* the sender has no time to ask */
    finish();
    expect_more(first, 5, 100);
    cr_expect(box_of(0)->key == key, "its header tells where the next one begins");
    cr_expect(talk_counters(1)->repaired_chunks == 1);
    cr_expect(talk_counters(0)->frames_resent == 1);
}

/* Every byte of a header: it does not tell where the next frame begins, nor that it is one */
Test(link_mailbox, a_damaged_header)
{
    unsigned first, at;
    uint64_t key;

    for (at = 8; at < PAYLOAD; ++at) {
        recv_any(1, 5);
        first = send_more(0, 5, 100);
        cr_assert(talk_count_frames(1) == 0, "byte %u", at);
        key = box_of(0)->key;
        in_box(0, 1, 100)[at] ^= 4;
        finish();
        expect_more(first, 5, 100);
        cr_assert(box_of(0)->key == key, "the next mark tells where to go on");
        cr_assert(talk_peer(0, 1)->box.key == box_of(0)->key);
        cr_assert(uses_mailbox(0), "byte %u: it is used again", at);
    }
    cr_expect(talk_counters(1)->mismatched_headers == PAYLOAD - 8, "%lu",
              (unsigned long)talk_counters(1)->mismatched_headers);
}

/* A mark that is damaged is not seen; that there should be more the sender says */
Test(link_mailbox, a_damaged_mark)
{
    unsigned first, at;
    uint64_t key;

    for (at = 0; at < 8; ++at) {
        recv_any(1, 5);
        first = send_more(0, 5, 100);
        key   = box_of(0)->key;
        in_box(0, 1, 100)[at] ^= 4;
        finish();
        expect_more(first, 5, 100);
        cr_assert(box_of(0)->key == key, "the next mark tells where to go on");
        cr_assert(uses_mailbox(0));
    }
}

/* The last one: only the log's timer knows */
Test(link_mailbox, a_damaged_mark_of_the_last)
{
    unsigned first;

    recv_any(1, 1);
    first = send_more(0, 1, 100);
    in_box(0, 0, 100)[3] ^= 4;
    talk_turns(3, 0);
    cr_expect(!talk_recvs[first].done);
    net_clock += 21 * TALK_MS;
    net_turn(0);
    cr_expect(talk_count(1, UCI_AM_SENT) == 1);
    finish();
    expect_more(first, 1, 100);
}

/* None is behind it when it is seen to be damaged: what is posted later is found, and taken from the box. Its copy in the log is
 * damaged, so that there is no other */
Test(link_mailbox, a_damaged_header_of_the_last)
{
    unsigned first, later;
    uci_frame_t *logged;
    uint64_t key;

    for (later = 0; later < 3; ++later) {
        recv_any(1, 3);
        first = send_more(0, 1, 100);
        key   = box_of(0)->key;
        in_box(0, 0, 100)[20] ^= 4;
        talk_turns(1, 0);
        cr_assert(box_of(0)->lost && (net_nodes[1].worker->link.mailbox.lost == 1));
        send_more(0, 2, (later == 0) ? 2000 : 0);
        logged = uci_txlog_find(talk_peer(0, 1), talk_peer(0, 1)->tx.posted - 1);
        if (later == 0) {
            uci_frame_payload(logged)[1000] ^= 8;
        } else {
            uci_frame_hdr(logged)->value ^= 8; /* its digest: it has no payload */
        }
        cr_assert(talk_count_frames(1) == 0, "by the mailbox");
        talk_turns(later * 70, 0);
        net_clock += 21 * TALK_MS;
        finish();
        expect_more(first, 1, 100);
        expect_more(first + 1, 2, (later == 0) ? 2000 : 0);
        cr_assert(box_of(0)->key == key, "the box is kept");
        cr_assert(!box_of(0)->lost && (net_nodes[1].worker->link.mailbox.lost == 0));
        cr_assert(uses_mailbox(0));
    }
}

/* What the receiver tells is damaged: no frame is written over, and it is told again */
Test(link_mailbox, a_damaged_position)
{
    unsigned first, turn;
    uint64_t *words;

    recv_any(1, 1000);
    first = talk_sends_count;
    for (turn = 0; turn < 200; ++turn) {
        send_more(0, 5, 500);
        net_turn(1);
        words = (uint64_t *)(void *)box_of(0)->rx.box;
        words[turn % 2] ^= 1ul << (turn % 64);
        net_turn(0);
    }
    finish();
    expect_more(first, 1000, 500);
    cr_expect(talk_counters(1)->mismatched_headers == 0);
}

static unsigned boxes_told;
static bool losing_boxes;

static void lose_boxes(net_message_t *message)
{
    if (!message->frame && (talk_am_hdr(message)->type == UCI_AM_BOX)) {
        ++boxes_told;
        if (losing_boxes) {
            message->header[20] ^= 1;
        }
    }
}

/* More are hidden in a row than are looked behind: the receiver goes on where the sender says that it is. What is right in between is taken,
 * as there is no other copy of it */
Test(link_mailbox, where_the_sender_is)
{
    const unsigned count = 2 * UCI_BOX_FRAME_MAX / UCI_BOX_GRANULE;
    uint64_t key, kept;
    unsigned first, round, i;
    char *place;

    for (round = 0; round < 3; ++round) {
        recv_any(1, count + 1);
        key   = box_of(0)->key;
        first = send_more(0, count, 0);
        kept  = talk_peer(0, 1)->tx.posted - 2;
        place = in_box(0, 0, 0);
        for (i = 0; i < count; ++i) {
            place[(i * UCI_BOX_GRANULE) + 3] ^= (i == count - 2) ? 0 : 4;
        }
        uci_frame_hdr(uci_txlog_find(talk_peer(0, 1), kept))->value ^= 8;
        talk_turns(1, 0);
        net_clock += 21 * TALK_MS;
        talk_turns(8, 0); /* UCX has its part in one of four */
        cr_assert(uci_box_rx_position(&box_of(0)->rx) == uci_box_tx_position(&talk_peer(0, 1)->box.tx));
        cr_assert(box_of(0)->key == key);
        send_more(0, 1, 0);
        finish();
        expect_more(first, count + 1, 0);
        cr_assert(uses_mailbox(0));
    }
}

/* What is said of another box, or of one that had the same place, moves nothing */
Test(link_mailbox, where_the_sender_is_in_another_box)
{
    uint64_t position = uci_box_rx_position(&box_of(0)->rx);

    uci_mailbox_on_sent(talk_peer(1, 0), (uint32_t)box_of(0)->key + 1, position + 1000);
    cr_expect(uci_box_rx_position(&box_of(0)->rx) == position);
    uci_mailbox_on_sent(talk_peer(1, 0), (uint32_t)box_of(0)->key, position - 1);
    cr_expect(uci_box_rx_position(&box_of(0)->rx) == position, "an old one");
}

static void lose_a_frame(net_message_t *message)
{
    if (message->frame) {
        flip(message, 20);
        net_sent = NULL;
    }
}

/* It is told again where its box is, when something is asked for */
Test(link_boxes, told_again)
{
    net_sent     = lose_boxes;
    losing_boxes = true;
    talk_begin(2, UCI_CARRIER_AUTO);
    net_sent = lose_boxes;
    recv_any(1, 30);
    send_in_order(0, 0, 10, 100);
    talk_turns(5, TALK_MS);
    cr_assert((boxes_told == 1) && !talk_peer(0, 1)->box.mapped);
    net_sent = lose_a_frame;
    send_in_order(0, 10, 10, 100);
    talk_turns(50, TALK_MS);
    cr_assert(talk_peer(0, 1)->box.mapped);
    send_in_order(0, 20, 10, 100);
    finish();
    expect_in_order(30, 100);
    losing_boxes = false;
}

/* Never told where its box is, it sends active messages, and all is well */
Test(link_boxes, never_told)
{
    net_sent     = lose_boxes;
    losing_boxes = true;
    talk_begin(2, UCI_CARRIER_AUTO);
    net_sent = lose_boxes;
    recv_any(1, 300);
    send_in_order(0, 0, 300, 100);
    finish();
    expect_in_order(300, 100);
    cr_expect(boxes_told > 0);
    cr_expect(!talk_peer(0, 1)->box.mapped);
    losing_boxes = false;
}

Test(link_boxes, none_with_wakeup)
{
    talk_begin(2, UCI_CARRIER_AUTO);
    net_nodes[0].context.wakeup = net_nodes[1].context.wakeup = true;
    recv_any(1, 300);
    send_in_order(0, 0, 300, 100);
    finish();
    expect_in_order(300, 100);
    cr_expect((talk_peer(1, 0)->box.own < 0) && !talk_peer(0, 1)->box.mapped);
}

/* A stub of one whose frame still lies in the box does not make it a lost one */
Test(link_mailbox, gone_before_it_is_taken)
{
    unsigned first;

    recv_any(1, 60);
    first                               = send_more(0, 60, 500);
    net_nodes[0].worker->link.log_limit = 5000;
    cr_assert(talk_count_frames(1) == 0);
    send_more(0, 1, 500);
    recv_any(1, 1);
    uci_link_on_repair(talk_peer(0, 1), talk_peer(0, 1)->tx.next - 50);
    cr_assert(talk_count(1, UCI_AM_GONE) == 1);
    uci_ucp.worker_progress(net_nodes[1].worker->ucp); /* before any look into the box */
    finish();
    expect_more(first, 61, 500);
}

/* More peers than boxes that are looked into each turn */
static void begin_many(unsigned nodes)
{
    unsigned number;

    talk_begin(nodes, UCI_CARRIER_AUTO);
    for (number = 0; number < nodes; ++number) {
        if (number != 1) {
            get_mailbox(number);
        }
    }
    cr_assert(net_nodes[1].worker->link.mailbox.count == nodes - 1);
    cr_assert(nodes - 1 > UCI_MAILBOX_HOT);
}

Test(link_boxes, more_peers_than_hot_boxes)
{
    unsigned round, number, i, first[200];

    begin_many(NET_NODES);
    for (round = 0; round < 200; ++round) {
        number = round % NET_NODES;
        number = (number == 1) ? 0 : number;
        for (i = 0; i < 5; ++i) {
            (void)talk_recv(1, talk_recvs_count + (100ul << 32), UINT64_MAX);
        }
        first[round] = send_more(number, 5, 100);
        talk_turns((round % 3 == 0) ? 1 : 0, TALK_MS);
    }
    cr_assert(talk_run(3000));
    for (round = 0; round < 200; ++round) {
        expect_more(first[round], 5, 100);
    }
    for (number = 0; number < NET_NODES; ++number) {
        if (number != 1) {
            cr_expect(talk_counters(number)->frames_resent == 0);
            cr_expect(uses_mailbox(number));
        }
    }
}

/* One whose box is not looked into each turn */
static unsigned quiet_node(void)
{
    cr_assert(net_nodes[1].worker->link.mailbox.count > UCI_MAILBOX_HOT);
    return 0;
}

/* Turns as the program has them: quiet boxes are looked into when their bell rings, else now and then */
static unsigned turns_until(unsigned number)
{
    uci_worker_t *worker = net_nodes[1].worker;
    unsigned turns;

    worker->turn.count = 2;
    for (turns = 1; turns < 100000; ++turns) {
        (void)uci_worker_progress(worker, worker->ucp);
        if (talk_recvs[number].done) {
            return turns;
        }
    }
    cr_assert_fail("it is never looked into");
    return 0;
}

Test(link_boxes, a_bell)
{
    unsigned first;

    begin_many(NET_NODES);
    (void)talk_recv(1, 0, 0);
    first = send_more(quiet_node(), 1, 100);
    cr_expect(turns_until(first) == 1);
    expect_more(first, 1, 100);
}

/* One that was lost costs a while, and not a question of the sender's */
Test(link_boxes, a_lost_bell)
{
    unsigned first;

    begin_many(NET_NODES);
    (void)talk_recv(1, 0, 0);
    first = send_more(quiet_node(), 1, 100);
    memset(net_nodes[1].worker->link.mailbox.region, 0, UCI_CACHE_LINE);
    cr_expect(turns_until(first) > 1);
    expect_more(first, 1, 100);
}

/* Those of boxes that nobody has, too */
Test(link_boxes, all_bells)
{
    unsigned turn, first;

    begin_many(NET_NODES);
    for (turn = 0; turn < 200; ++turn) {
        memset(net_nodes[1].worker->link.mailbox.region, 0xff, UCI_CACHE_LINE);
        net_turn(1);
    }
    (void)talk_recv(1, 0, 0);
    first = send_more(quiet_node(), 1, 100);
    finish();
    expect_more(first, 1, 100);
}

/* A box whose peer has closed is for the next one, and what the old one left there, or still writes there, is not taken for his */
Test(link_boxes, a_box_for_somebody_else)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    uci_box_tx_t old;
    unsigned first;
    uint8_t number;

    talk_begin(2, UCI_CARRIER_AUTO);
    get_mailbox(0);
    old    = talk_peer(0, 1)->box.tx;
    number = talk_peer(0, 1)->box.number;
    talk_keep(uci_ep_close(net_nodes[0].ep, &param));
    net_nodes[0].ep = NULL;
    talk_turns(50, 20 * TALK_MS);
    cr_assert(talk_peer(1, 0)->box.own < 0);

    net_create(2);
    net_open(2, 1);
    get_mailbox(2);
    cr_expect(talk_peer(2, 1)->box.number == number);
    recv_any(1, 3);
    first = send_more(2, 3, 100);
    {
        char wire[256] __attribute__((aligned(UCI_CACHE_LINE))) = {0};
        uint64_t mark;
        char *place = uci_box_tx_place(&old, 100, &mark);

        if (place != NULL) {
            uci_box_tx_post(&old, place, wire, 100, mark);
        }
    }
    cr_assert(talk_run(3000));
    expect_more(first, 3, 100);
}

/* -------------------------------------------------------------------- close */

static void close_node(unsigned node, uint32_t flags)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};

    talk_keep(uci_ep_close(net_nodes[node].ep, &param));
    net_nodes[node].ep = NULL;
}

/* The sender waits until all has come, whatever becomes of it on its way */
Test(link_close, what_was_lost_comes_before)
{
    recv_any(1, 3);
    send_in_order(0, 0, 3, 100);
    talk_lose_frame(1, 0);
    talk_lose_frame(1, 1);
    close_node(0, 0);
    cr_assert(talk_run(1000));
    expect_in_order(3, 100);
    talk_turns(50, 100 * TALK_MS);
    cr_expect(uci_list_is_empty(&net_nodes[0].worker->conn.closing));
}

Test(link_close, what_was_damaged_comes_before)
{
    send_in_order(0, 0, 3, 100);
    flip(talk_frame_to(1, 0), PAYLOAD + 5);
    flip(talk_frame_to(1, 2), 20);
    close_node(0, 0);
    talk_turns(50, 100 * TALK_MS);
    cr_expect(uci_list_is_empty(&net_nodes[0].worker->conn.closing));
    recv_any(1, 3);
    cr_assert(talk_run(1000));
    expect_in_order(3, 100);
}

/* Both have closed: of the one who may come back no more stays than is needed for that */
Test(link_close, what_stays_of_who_has_gone)
{
    recv_any(1, 3);
    send_in_order(0, 0, 3, 100);
    cr_assert(talk_run(1000));
    cr_assert(talk_peer(0, 1)->tx.ring != NULL);
    close_node(0, 0);
    close_node(1, 0);
    talk_turns(50, 100 * TALK_MS);
    cr_assert(uci_conversation_is_gone(&talk_peer(0, 1)->conversation) &&
              uci_conversation_is_left(&talk_peer(0, 1)->conversation));
    cr_expect((talk_peer(0, 1)->tx.ring == NULL) && (talk_peer(0, 1)->box.rkey == NULL));
    cr_expect(talk_peer(0, 1)->tx.next == 3);
}

/* The receiver makes no turn until the sender has gone: what it has sent, and sent again, lies there in its order */
Test(link_close, a_receiver_that_is_away)
{
    unsigned turn;

    send_in_order(0, 0, 5, 100);
    talk_lose_frame(1, 1);
    close_node(0, 0);
    for (turn = 0; turn < 1000; ++turn) {
        net_clock += 100 * TALK_MS;
        net_turn(0);
    }
    cr_assert(uci_list_is_empty(&net_nodes[0].worker->conn.closing), "it waits for ever");
    recv_any(1, 5);
    cr_assert(talk_run(1000));
    expect_in_order(5, 100);
}

/* It has closed by force: what came damaged, and can't be asked for any more, is lost, and what is behind it is not */
Test(link_close, nobody_to_ask)
{
    recv_any(1, 4);
    send_in_order(0, 0, 4, 100);
    flip(talk_frame_to(1, 1), PAYLOAD + 5);
    close_node(0, UCP_EP_CLOSE_FLAG_FORCE);
    net_turn(1);
    talk_lose_all(0);
    talk_expect(0, 0, 100);
    cr_expect(!talk_recvs[1].done);
    while (!talk_recvs[3].done && (net_clock < 1100000000000ul)) {
        net_clock += 100 * TALK_MS;
        net_turn(1);
        talk_lose_all(0);
    }
    talk_expect_lost(1);
    talk_expect(2, 2, 100);
    talk_expect(3, 3, 100);
    cr_expect(net_clock >= 1005000000000ul, "it is not given up at once");
}

/* The same of one of which nothing is known: which receive it was for nobody can tell */
Test(link_close, nothing_is_known_of_it, .signal = SIGABRT)
{
    recv_any(1, 2);
    send_in_order(0, 0, 2, 100);
    talk_lose_frame(1, 0);
    close_node(0, UCP_EP_CLOSE_FLAG_FORCE);
    net_turn(1);
    talk_lose_all(0);
    while (net_clock < 1100000000000ul) {
        net_clock += 100 * TALK_MS;
        net_turn(1);
        talk_lose_all(0);
    }
    cr_expect_fail("silence");
}

/* A peer that has been gone for long is back, and what it sent last comes first: the rest is waited for */
Test(link_close, who_is_back_is_not_gone)
{
    net_message_t *messages[16];
    unsigned i, count;

    recv_any(1, 3);
    close_node(0, 0);
    net_turn(1);
    cr_assert(uci_conversation_is_gone(&talk_peer(1, 0)->conversation));
    net_clock += 10000 * TALK_MS;
    net_turn(1);
    net_open(0, 1);
    send_in_order(0, 0, 3, 100);
    count = talk_seize(1, messages, 16);
    cr_assert((count > 3) && messages[count - 1]->frame);
    net_append(&net_nodes[1], messages[count - 1]);
    for (i = 0; i < 5; ++i) {
        net_clock += 20 * TALK_MS;
        net_turn(1);
    }
    for (i = 0; i + 1 < count; ++i) {
        net_append(&net_nodes[1], messages[i]);
    }
    finish();
    expect_in_order(3, 100);
}

/* FIN and BYE are lost, and who waits for the one leaves as well: BYE comes again, by an endpoint of its own */
Test(link_close, a_bye_that_is_lost)
{
    unsigned number, turn;

    recv_any(1, 1);
    number = talk_start_send(0, 0, 100, true);
    net_turn(1);
    talk_expect(0, 0, 100);
    talk_lose_all(0);
    close_node(1, 0);
    for (turn = 0; !uci_list_is_empty(&net_nodes[1].worker->conn.closing) && (turn < 200); ++turn) {
        net_clock += 100 * TALK_MS;
        net_turn(1);
        talk_lose_all(0);
    }
    cr_assert(uci_conversation_is_left(&talk_peer(1, 0)->conversation) && !talk_sends[number].done);
    close_node(0, 0);
    talk_turns(30, 100 * TALK_MS);
    cr_expect(talk_sends[number].done && (talk_sends[number].status == UCS_OK));
    cr_expect(uci_list_is_empty(&net_nodes[0].worker->conn.closing));
}

/* One's own end is closed by force while a receive of it is matched to what came damaged */
Test(link_close, what_is_bound_ends)
{
    recv_any(1, 1);
    talk_send(0, 0, 1000);
    flip(talk_frame_to(1, 0), PAYLOAD + 5);
    net_turn(1);
    cr_assert(talk_peer(1, 0)->rx.bound != NULL);
    close_node(1, UCP_EP_CLOSE_FLAG_FORCE);
    cr_expect(!talk_recvs[0].done, "callbacks are called in a turn");
    net_turn(1);
    cr_expect(talk_recvs[0].done && (talk_recvs[0].status == UCS_ERR_CANCELED));
    cr_expect(talk_peer(1, 0)->rx.bound == NULL);
}
