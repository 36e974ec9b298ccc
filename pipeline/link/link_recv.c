/* SPDX-License-Identifier: BSD-3-Clause */
#include "link_recv.h"

#include <stdlib.h>

#include "base/ask.h"
#include "conversation/conversation.h"
#include "base/am_handler.h"
#include "control.h"
#include "base/edge.h"
#include "base/unseen.h"
#include "util/log.h"
#include "mailbox.h"
#include "util/process.h"
#include "report/report.h"
#include "live/stats.h"
#include "base/wire_check.h"

/* When a gap is asked about: after uci_ask_delay(), then after twice as long each time, up to 2^8 times as long */
#define UCI_LINK_GAP_SHIFT 8u

/* Copies of one frame that arrive damaged, after which it is lost */
#define UCI_LINK_REFUSED 16

/* Times that it is asked what is missing, after damage, when nothing is known to be */
#define UCI_LINK_GAP_ASKS 3

/* So long after the last word of a sender that has closed what it has left should be here */
#define UCI_LINK_GONE_NS 5000000000ul

/* GONE is believed of a frame of which nothing has come so long after it was said first: by another endpoint than GONE it may be on its way.
 * Retransmission by TCP takes 200 ms at least (RFC 6298, as Linux has it); not so long, 2^4 times uci_ask_delay(), if something came damaged
 * that it may have been */
#define UCI_LINK_LATE_NS    300000000ul
#define UCI_LINK_LATE_SHIFT 4

/* Missing ranges in one acknowledgement */
#define UCI_LINK_RANGES 64

/* -------------------------------------------------------- acknowledging */

/* Below this number all frames are known to have been sent: @a upto, or those that have come damaged */
static uint64_t uci_link_known_sent(const uci_peer_t *peer, uint64_t upto)
{
    const uci_list_t *gaps = &peer->rx.gaps.list;

    return uci_list_is_empty(gaps) ? upto : uci_max(upto, uci_container_of(gaps->prev, uci_gap_t, at.link)->at.seq + 1);
}

/* After our BYE what is asked takes a new connection: not while the other side's BYE may be on its way. Who is not answered asks again */
static bool uci_link_is_crossing(const uci_peer_t *peer, uint64_t now)
{
    return uci_conversation_is_left(&peer->conversation) && !uci_conversation_is_gone(&peer->conversation) &&
           uci_list_is_empty(&peer->eps) && (now < peer->conversation.bye_time + UCI_PEER_CROSSING_NS);
}

/* State, not events: what one acknowledgement did not bring, the next one does. @param upto  frames below are known to have been sent */
static void uci_link_send_ack(uci_peer_t *peer, uint64_t upto, uint16_t flags)
{
    uint64_t next = peer->rx.next, *words;
    uci_control_t *msg;
    size_t count = 2;

    upto = uci_link_known_sent(peer, upto);
    if (uci_unlikely(uci_conversation_is_left(&peer->conversation)) &&
        uci_link_is_crossing(peer, uci_process_time_ns())) {
        return;
    }
    msg = uci_control_get(peer, UCI_AM_ACK, 0, (2 + (2 * UCI_LINK_RANGES)) * sizeof(*words));
    if (msg == NULL) {
        return;
    }
    msg->hdr.flags = flags;
    msg->hdr.value = peer->conversation.peer_life;
    words          = (uint64_t *)(void *)msg->payload;
    words[0]       = next;
    words[1]       = next;
    uci_list_for_each(held, &peer->rx.held.list, uci_held_t, at.link)
    {
        if ((held->at.seq > next) && (count < 2 + (2 * (UCI_LINK_RANGES - 1)))) {
            words[count++] = next;
            words[count++] = held->at.seq - 1;
        } else if (held->at.seq > next) {
            upto = next;
            break;
        }
        next     = held->at.seq + 1;
        words[1] = next;
    }
    if (upto > next) {
        words[count++] = next;
        words[count++] = upto - 1;
        words[1]       = upto;
    }
    msg->length     = count * sizeof(*words);
    msg->hdr.length = (uint32_t)msg->length;
    UCI_STATS_INC(acks_sent);
    uci_control_send(msg);
}

void uci_link_ack_now(uci_peer_t *peer)
{
    peer->rx.unacked       = 0;
    peer->rx.unacked_bytes = 0;
    if (uci_list_is_empty(&peer->eps) &&
        (uci_conversation_is_leaving(&peer->conversation) || uci_conversation_is_closed(&peer->conversation))) {
        return; /* not worth a new connection */
    }
    if ((peer->box.own >= 0) && !peer->worker->link.mailbox.boxes[peer->box.own].untold) {
        uci_box_rx_tell(&peer->worker->link.mailbox.boxes[peer->box.own].rx, (uint32_t)peer->rx.next);
        return;
    }
    uci_link_send_ack(peer, 0, 0);
}

void uci_link_confirm(uci_peer_t *peer)
{
    uci_link_send_ack(peer, 0, 0);
}

/* Something is missing, and is asked for after a while */
static void uci_link_suspect(uci_peer_t *peer)
{
    if (uci_list_is_empty(&peer->rx.suspect_link)) {
        peer->rx.gap_time = uci_process_time_ns();
        peer->rx.gap_asks = 0;
        uci_list_add_tail(&peer->worker->link.suspects, &peer->rx.suspect_link);
        uci_worker_work_begins(peer->worker);
        uci_control_ask_soon(peer->worker);
    }
}

/* Something of it came damaged: what is missing is asked for at the end of this turn, when all has been looked at that came with it */
static void uci_link_suspect_now(uci_peer_t *peer)
{
    bool is_new = uci_list_is_empty(&peer->rx.suspect_link);

    uci_link_suspect(peer);
    peer->rx.damaged = true;
    if (is_new && !uci_list_is_empty(&peer->eps)) { /* else it takes a new connection, which may not be worth it */
        peer->rx.gap_time -= uci_min(peer->rx.gap_time, uci_ask_delay(peer->worker));
        peer->worker->talk.ask_now = true;
    }
}

static void uci_link_trust(uci_peer_t *peer)
{
    peer->rx.damaged = false;
    if (!uci_list_is_empty(&peer->rx.suspect_link)) {
        uci_list_del(&peer->rx.suspect_link);
        uci_worker_work_ends(peer->worker);
    }
}

/* Has all come that is known to have been sent? */
static void uci_link_settle(uci_peer_t *peer)
{
    peer->rx.special = !uci_seq_list_is_empty(&peer->rx.held) || !uci_seq_list_is_empty(&peer->rx.gaps);
    if (!peer->rx.special) {
        uci_link_trust(peer);
    }
}

static uci_gap_t *uci_link_gap(uci_peer_t *peer, uint64_t seq)
{
    uci_seq_link_t *found = uci_seq_list_find(&peer->rx.gaps, seq);

    return (found != NULL) ? uci_container_of(found, uci_gap_t, at) : NULL;
}

static void uci_link_gap_free(uci_peer_t *peer, uci_gap_t *gap)
{
    uci_seq_list_del(&peer->rx.gaps, &gap->at);
    free(gap);
}

/* Nobody needs another frame of this number */
static bool uci_link_is_here(uci_peer_t *peer, uint64_t seq)
{
    return (seq < peer->rx.next) || (uci_seq_list_find(&peer->rx.held, seq) != NULL);
}

static uci_held_t *uci_link_held_create(uint64_t seq, const uci_frame_hdr_t *hdr, size_t length)
{
    uci_held_t *held = malloc(sizeof(*held) + length);

    if (held == NULL) {
        uci_error("failed to allocate %zu bytes for a frame", length);
        return NULL;
    }
    held->at.seq     = seq;
    held->hdr        = *hdr;
    held->lost       = UCI_REASON_NONE;
    held->way        = UCI_WAY_UNKNOWN;
    held->waited     = false;
    held->start_time = 0;
    held->refused    = 0;
    held->length     = length;
    return held;
}

static void uci_link_hold(uci_peer_t *peer, uci_held_t *held)
{
    uci_seq_list_add(&peer->rx.held, &held->at);
    peer->rx.special = true;
}

static void uci_link_drain(uci_peer_t *peer);
static void uci_link_take_damaged(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length,
                                  bool waited);

/* There is no intact copy of it. What there is, and what is known of it, takes its place in the order. */
static void uci_link_lose(uci_peer_t *peer, uint64_t seq, const uci_frame_hdr_t *hdr, uci_reason_t reason)
{
    uci_gap_t *gap = uci_link_gap(peer, seq);
    uci_held_t *held;

    if (uci_link_is_here(peer, seq)) {
        return;
    }
    held = uci_link_held_create(seq, hdr, (gap != NULL) ? gap->length : 0);
    if (held == NULL) {
        uci_fatal("no memory to say that a message is lost");
    }
    held->lost = reason;
    if (gap != NULL) {
        held->way        = gap->way;
        held->waited     = gap->waited;
        held->start_time = gap->start_time;
        held->refused    = gap->refused;
        memcpy(held->payload, gap->payload, gap->length);
        uci_link_gap_free(peer, gap);
    } else {
        UCI_STATS_INC(mismatched_chunks);
    }
    UCI_STATS_INC(unrepaired_chunks);
    uci_link_hold(peer, held);
    uci_link_drain(peer);
}

/* It came damaged, and now it is here: what was wrong with it? */
static void uci_link_healed(uci_peer_t *peer, uci_gap_t *gap, const uci_held_t *held)
{
    UCI_STATS_INC(repaired_chunks);
    UCI_STATS_INC(repaired_by_copy);
    UCI_STATS_ADD(retransmitted_bytes, held->hdr.length);
    uci_report_frame_healed(peer, gap, held);
    uci_link_gap_free(peer, gap);
}

/* Deliver what is next, as long as it is here */
static void uci_link_drain(uci_peer_t *peer)
{
    uci_held_t *held;
    bool taken = true;

    while (taken && !uci_seq_list_is_empty(&peer->rx.held)) {
        held = uci_container_of(peer->rx.held.list.next, uci_held_t, at.link);
        if (held->at.seq != peer->rx.next) {
            break;
        }
        uci_seq_list_del(&peer->rx.held, &held->at);
        if (held->lost != UCI_REASON_NONE) {
            uci_report_frame_lost(peer, held);
            uci_link_delivered(peer, 0);
            uci_link_settle(peer);
            peer->worker->calls.lost(peer, &held->hdr, held->payload, held->length);
        } else {
            uci_link_settle(peer);
            taken = peer->worker->calls.arrived(peer, &held->hdr, held->payload);
            if (!taken) {
                uci_link_take_damaged(peer, &held->hdr, held->payload, held->length, true);
            }
        }
        free(held);
    }
}

void uci_link_take_other(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload)
{
    uint64_t seq      = uci_seq_expand(hdr->seq, peer->rx.next);
    const char *wrong = uci_wire_check_seq(seq);
    uci_held_t *held;
    uci_gap_t *gap;

    if (uci_unlikely(wrong != NULL)) {
        uci_wire_refuse(peer, "a message", wrong);
        return;
    }
    uci_link_take_ack(peer, hdr->ack);
    if (uci_link_is_here(peer, seq)) {
        UCI_STATS_INC(frames_repeated);
        uci_unseen_pass(uci_digest_by_id(hdr->digest), payload, hdr->length, hdr->value);
        return;
    }
    if (uci_unlikely(uci_conversation_is_gone(&peer->conversation))) {
        uci_conversation_hear(&peer->conversation);
    }
    held = uci_link_held_create(seq, hdr, hdr->length);
    if (held == NULL) {
        uci_link_suspect(peer);
        return;
    }
    if (uci_digest_by_id(hdr->digest)->copy(held->payload, payload, hdr->length) != hdr->value) {
        uci_link_payload_damaged(peer, hdr, held->payload, hdr->length);
        free(held);
        return;
    }
    gap = uci_link_gap(peer, seq);
    if (gap != NULL) {
        uci_link_healed(peer, gap, held);
    }
    uci_link_hold(peer, held);
    if (seq != peer->rx.next) {
        uci_link_suspect(peer);
        uci_mailbox_look_back(peer);
    }
    uci_link_drain(peer);
}

static uci_gap_t *uci_link_gap_create(uci_peer_t *peer, uint64_t seq, const uci_frame_hdr_t *hdr, const char *payload,
                                      size_t length)
{
    uci_gap_t *gap = malloc(sizeof(*gap) + length);

    if (gap == NULL) {
        uci_error("failed to allocate %zu bytes for a damaged message", length);
        return NULL;
    }
    gap->at.seq     = seq;
    gap->hdr        = *hdr;
    gap->start_time = uci_process_time_ns();
    gap->way        = (hdr->mark == peer->uid) ? UCI_WAY_FRAME : UCI_WAY_MAILBOX;
    gap->waited     = false;
    gap->refused    = 0;
    gap->length     = length;
    memcpy(gap->payload, payload, length);
    uci_seq_list_add(&peer->rx.gaps, &gap->at);
    UCI_STATS_INC(mismatched_chunks);
    return gap;
}

/* That one again, alone */
static void uci_link_ask_for(uci_peer_t *peer, uint64_t seq)
{
    uci_control_send_simple(peer, UCI_AM_REPAIR, seq, 0, UCI_AM_FLAG_FRAME);
}

/* @param waited  it had been intact, and was damaged in our memory */
static void uci_link_take_damaged(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length,
                                  bool waited)
{
    uint64_t seq   = uci_seq_expand(hdr->seq, peer->rx.next);
    uci_gap_t *gap = uci_link_gap(peer, seq);

    if (uci_link_is_here(peer, seq) || (uci_wire_check_seq(seq) != NULL)) {
        UCI_STATS_INC(mismatched_control); /* nobody needs it */
        uci_unseen_count();
        return;
    }
    uci_link_suspect(peer);
    if (gap != NULL) {
        ++gap->refused;
        uci_unseen_count();
    } else {
        gap = uci_link_gap_create(peer, seq, hdr, payload, length);
    }
    if (gap == NULL) {
        return;
    }
    gap->waited |= waited;
    peer->rx.special = true;
    if (uci_settings.mode == UCI_MODE_DETECT) {
        uci_link_lose(peer, seq, hdr, UCI_REASON_DETECT);
    } else if (gap->refused >= UCI_LINK_REFUSED) {
        uci_link_lose(peer, seq, hdr, UCI_REASON_EXHAUSTED);
    } else {
        uci_link_ask_for(peer, seq);
    }
}

void uci_link_payload_damaged(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length)
{
    uci_link_take_damaged(peer, hdr, payload, length, false);
}

void uci_link_header_damaged(uci_worker_t *worker, uci_peer_t *peer, const char *what)
{
    UCI_STATS_INC(mismatched_headers);
    ++worker->talk.dropped;
    uci_info("%s arrived damaged and was dropped; asking again", what);
    if (peer != NULL) {
        uci_link_suspect_now(peer);
        return;
    }
    /* it may have been anybody's */
    uci_worker_for_each_peer(other, worker)
    {
        if (!uci_conversation_is_gone(&other->conversation) && (other->conversation.status == UCS_OK)) {
            uci_link_suspect_now(other);
        }
    }
}

/* ----------------------------------------------------- asking for gaps */

static uint64_t uci_link_gap_time(const uci_peer_t *peer)
{
    return peer->rx.gap_time + (uci_ask_delay(peer->worker) << uci_min(peer->rx.gap_asks, UCI_LINK_GAP_SHIFT));
}

/* Its sender is gone, and it is not here: what can be said of it is what was seen of it */
static void uci_link_lose_next(uci_peer_t *peer)
{
    uci_gap_t *gap = uci_link_gap(peer, peer->rx.next);

    if (gap == NULL) {
        uci_error("message can't be delivered intact: %s has closed, and number %lu has not come", uci_peer_name(peer),
                  (unsigned long)peer->rx.next);
        uci_fatal("nobody can tell which receive it was for: the job stops here");
    }
    uci_link_lose(peer, peer->rx.next, &gap->hdr, UCI_REASON_CLOSED_DAMAGED);
}

static void uci_link_ask_peer(uci_peer_t *peer, uint64_t now)
{
    if (peer->conversation.status != UCS_OK) {
        uci_link_trust(peer);
        return;
    }
    if (uci_conversation_is_over(&peer->conversation, now, UCI_LINK_GONE_NS)) {
        if (peer->rx.special) {
            uci_link_lose_next(peer);
        } else {
            uci_link_trust(peer);
        }
        return;
    }
    peer->rx.gap_time = now;
    if (uci_link_is_crossing(peer, now)) {
        return;
    }
    ++peer->rx.gap_asks;
    uci_mailbox_repeat(peer);
    uci_link_send_ack(peer, 0, UCI_AM_FLAG_REPAIR | (peer->rx.damaged ? UCI_AM_FLAG_LAST : 0));
    if (!peer->rx.special && (peer->rx.gap_asks > UCI_LINK_GAP_ASKS)) {
        uci_link_trust(peer); /* what was damaged was not from it, or it is here by now; SENT would tell */
    }
}

void uci_link_ask(uci_worker_t *worker, uint64_t now)
{
    uci_list_t todo;
    uci_peer_t *peer;

    uci_list_move(&worker->link.suspects, &todo);
    while (!uci_list_is_empty(&todo)) {
        peer = uci_container_of(uci_list_requeue(&todo, &worker->link.suspects), uci_peer_t, rx.suspect_link);
        if (now >= uci_link_gap_time(peer)) {
            uci_link_ask_peer(peer, now);
        }
    }
}

uint64_t uci_link_due(const uci_worker_t *worker)
{
    uint64_t due = UINT64_MAX;

    uci_list_for_each(suspect, &worker->link.suspects, uci_peer_t, rx.suspect_link)
    {
        due = uci_min(due, uci_link_gap_time(suspect));
    }
    return due;
}

/* Frames that have been sent: no more than a link can number */
static const char *uci_link_check_sent(const uci_am_t *am)
{
    uint64_t upto = am->hdr->value, next = am->peer->rx.next;

    return ((upto < next /* it was late */) || (upto - next < (1ul << 31)))
                   ? NULL
                   : "that it has sent more than it can number";
}

static void uci_link_on_sent(uci_am_t *am)
{
    const uci_am_hdr_t *hdr = am->hdr;
    uci_peer_t *peer        = am->peer;
    uint64_t upto           = hdr->value;

    uci_mailbox_on_sent(peer, hdr->index, hdr->extra);
    if ((upto <= peer->rx.next) && !peer->rx.special) {
        uci_link_trust(peer); /* nothing that was sent before is missing */
    }
    /* the answer to a question of ours, when nothing is missing and our endpoints are closed, is the end of it: a new connection may find
     * its worker going, and UCX 1.13 does not survive that (close.c) */
    if ((upto > peer->rx.next) || !(hdr->flags & UCI_AM_FLAG_REPAIR) || !uci_list_is_empty(&peer->eps)) {
        uci_link_send_ack(peer, upto, (upto > peer->rx.next) ? UCI_AM_FLAG_REPAIR : 0);
    }
}

UCI_AM_HANDLER(SENT, 12,
               "S: frames below `value` have been sent, and nothing has been acknowledged for 20 ms, then 40, 80 ...",
               "", "ACK, with REPAIR if something is missing", "S says it again", .flags = UCI_AM_FLAG_REPAIR,
               .grain = 1, .hit = UCI_AM_HIT(ACK), .special = UCI_AM_FLAG_REPAIR, .check = uci_link_check_sent,
               .take = uci_link_on_sent);

/* @return whether frame @a seq, of which nothing has come, may be on its way all the same. It is asked for again, and GONE comes again. */
static bool uci_link_is_late(uci_peer_t *peer, uint64_t seq)
{
    uint64_t now  = uci_process_time_ns();
    uint64_t wait = peer->rx.damaged ? uci_ask_delay(peer->worker) << UCI_LINK_LATE_SHIFT : UCI_LINK_LATE_NS;

    if (seq >= peer->rx.gone_end) {
        peer->rx.gone_end  = seq + 1;
        peer->rx.gone_time = now;
    }
    return now < peer->rx.gone_time + uci_min(wait, UCI_LINK_LATE_NS);
}

void uci_link_on_gone(uci_peer_t *peer, uint64_t seq, const uci_am_hdr_t *hdr)
{
    uci_frame_hdr_t lost = {.tag = hdr->value, .seq = (uint32_t)seq};
    uci_gap_t *gap;

    uci_mailbox_catch_up(peer); /* it may be here all the same */
    gap = uci_link_gap(peer, seq);
    if (uci_link_is_here(peer, seq) || ((gap == NULL) && uci_link_is_late(peer, seq))) {
        return;
    }
    lost.kind   = (uint8_t)hdr->extra;
    lost.digest = (uint8_t)(hdr->extra >> 8);
    lost.length = (uint16_t)(hdr->extra >> 16);
    uci_link_lose(peer, seq, (gap != NULL) ? &gap->hdr : &lost,
                  (hdr->flags & UCI_AM_FLAG_DAMAGED)       ? UCI_REASON_COPY_DAMAGED
                  : (uci_settings.mode == UCI_MODE_DETECT) ? UCI_REASON_DETECT
                                                           : UCI_REASON_NO_COPY);
}

/* ------------------------------------------------------ active messages */

/* @return who sent it, or NULL; made if it is a new one and @a hdr is right */
static uci_peer_t *uci_link_sender(uci_worker_t *worker, const uci_frame_hdr_t *hdr)
{
    uci_peer_t *peer = worker->peers.last;

    if (uci_likely(peer != NULL) && uci_likely(peer->uid == hdr->mark)) {
        return (hdr->check == uci_frame_check(hdr, peer->seed)) ? peer : NULL;
    }
    if (hdr->check != uci_frame_check(hdr, uci_frame_am_seed(hdr->mark, worker->uid))) {
        return NULL;
    }
    return uci_worker_peer_slow(worker, hdr->mark);
}

UCI_INLINE void uci_link_recv_frame(uci_worker_t *worker, const char *data, size_t length)
{
    const char *wrong;
    uci_frame_hdr_t hdr;
    uci_peer_t *peer;

    if (uci_unlikely(length < sizeof(hdr))) {
        uci_link_header_damaged(worker, NULL, "a frame");
        return;
    }
    memcpy(&hdr, data, sizeof(hdr));
    __asm__ volatile("" ::: "memory"); /* read once: it may be memory that others write to */
    peer = uci_link_sender(worker, &hdr);
    if (uci_unlikely(peer == NULL)) {
        uci_link_header_damaged(worker, uci_worker_peer_find(worker, hdr.mark), "a frame");
        return;
    }
    peer->talk.heard = true;
    wrong            = uci_wire_check_frame(&hdr);
    if (uci_unlikely(wrong != NULL)) {
        uci_wire_refuse(peer, "a message", wrong);
        return;
    }
    length -= sizeof(hdr);
    if (uci_unlikely(length != hdr.length)) {
        uci_link_take_ack(peer, hdr.ack);
        uci_link_payload_damaged(peer, &hdr, data + sizeof(hdr), uci_min(length, (size_t)hdr.length));
        return;
    }
    uci_link_take(peer, &hdr, data + sizeof(hdr));
    if (uci_unlikely(!peer->box.offered)) {
        uci_mailbox_offer(peer);
    }
}

void uci_link_take_opened(uci_worker_t *worker, const char *data, size_t length)
{
    uci_link_recv_frame(worker, data, length);
}

ucs_status_t uci_link_recv(void *arg, const void *header, size_t header_length, void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    uci_worker_t *worker = arg;

    uci_worker_enter(worker);
    if (uci_likely(!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))) {
        uci_link_recv_frame(worker, data, length);
    } else {
        uci_link_header_damaged(worker, NULL, "an offer that nobody makes");
    }
    uci_worker_leave(worker);
    return UCS_OK;
}

void uci_link_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(held, &peer->rx.held.list, uci_held_t, at.link)
    {
        uci_seq_list_del(&peer->rx.held, &held->at);
        free(held);
    }
    uci_list_for_each_safe(gap, &peer->rx.gaps.list, uci_gap_t, at.link)
    {
        uci_link_gap_free(peer, gap);
    }
    if (uci_unlikely(uci_edge.peer_ends != NULL)) {
        uci_edge.peer_ends(peer);
    }
    uci_list_del(&peer->rx.suspect_link);
    uci_list_del(&peer->log.watched_link);
    uci_list_del(&peer->log.waiting_link);
}
