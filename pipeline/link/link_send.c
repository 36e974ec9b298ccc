/* SPDX-License-Identifier: BSD-3-Clause */
#include "link_send.h"

#include "base/request.h"
#include "conversation/conversation.h"
#include "base/am_handler.h"
#include "control.h"
#include "base/edge.h"
#include "util/log.h"
#include "mailbox.h"
#include "util/process.h"
#include "report/report.h"
#include "sealed.h"
#include "live/stats.h"

/* Turns of progress without room in a mailbox, after which what waits goes by active message: its owner may be away for long */
#define UCI_LINK_WAIT_TURNS 1024

/* Active messages in a row to a peer that has given a box, after which the next frames wait until these have been acknowledged, and go by mailbox;
 * if the peer did not take them in time, after twice as many, up to 2^7 times as many */
#define UCI_LINK_STREAK       256u
#define UCI_LINK_STREAK_SHIFT 7u

/* When a log that is not acknowledged is asked about: after this, then after twice as long each time, up to 2^8 times as long:
 * 5 s, after which a quiet peer is asked no more often, and what was lost waits no longer */
#define UCI_LINK_SENT_NS    20000000ul
#define UCI_LINK_SENT_SHIFT 8u

/* Frames sent again in one answer */
#define UCI_LINK_AGAIN 4096

/* -------------------------------------------------------------- sending */

void uci_link_watch(uci_peer_t *peer)
{
    if (peer->tx.watched) {
        return;
    }
    peer->tx.watched = true;
    peer->log.seen   = peer->tx.acked;
    peer->log.time   = uci_process_time_ns();
    peer->log.asks   = 0;
    uci_list_add_tail(&peer->worker->link.watched, &peer->log.watched_link);
}

/* A carrier has the frame, and no longer needs it */
static void uci_link_frame_done(uci_frame_t *frame, ucs_status_t status)
{
    uci_worker_t *worker = frame->peer->worker;
    uci_request_t *req   = frame->req;

    frame->req = NULL;
    frame->flags &= (uint8_t)~UCI_FRAME_IN_FLIGHT;
    if (!(frame->flags & UCI_FRAME_LOGGED)) {
        uci_frame_put(&worker->frames, frame);
    }
    if (req != NULL) {
        uci_request_complete(req, status);
    }
}

static void uci_link_am_done(void *request, ucs_status_t status, void *user_data)
{
    uci_frame_t *frame   = user_data;
    uci_worker_t *worker = frame->peer->worker;

    uci_ucp.request_free(request);
    uci_worker_enter(worker);
    --frame->peer->log.held;
    uci_link_frame_done(frame, status);
    uci_worker_leave(worker);
}

static UCI_NOINLINE ucs_status_ptr_t uci_link_post_sealed(ucp_ep_h ep, const uci_frame_t *frame,
                                                          const ucp_request_param_t *param)
{
    uci_sealed_out_t out = {
            .peer = frame->peer, .kind = UCI_SEALED_FRAME, .body = frame->wire, .body_length = frame->total};

    return uci_sealed_send(ep, &out, param);
}

/* Give a frame that is in flight to UCX. It is one fragment, and never a rendezvous of UCX's */
UCI_INLINE ucs_status_t uci_link_post_am(ucp_ep_h ep, uci_frame_t *frame)
{
    ucp_request_param_t param; /* UCX reads what the mask names; the whole is more than a cache line */
    ucs_status_ptr_t request;

    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param.cb.send      = uci_link_am_done;
    param.user_data    = frame;
    param.flags        = UCP_AM_SEND_FLAG_EAGER;
    request            = uci_unlikely(frame->peer->seals)
                                 ? uci_link_post_sealed(ep, frame, &param)
                                 : uci_ucp.am_send_nbx(ep, UCI_FRAME_AM_ID, NULL, 0, frame->wire, frame->total, &param);
    if (uci_likely(request == NULL)) {
        return UCS_OK;
    }
    if (UCS_PTR_IS_ERR(request)) {
        return UCS_PTR_STATUS(request);
    }
    ++frame->peer->log.held;
    return UCS_INPROGRESS;
}

/* By active message; UCX or nobody has the frame then. @return as uci_link_post_am() */
static ucs_status_t uci_link_send_am(ucp_ep_h ep, uci_frame_t *frame)
{
    uci_peer_t *peer = frame->peer;
    ucs_status_t status;

    peer->box.am_until = frame->seq + 1;
    peer->box.used     = false;
    frame->flags |= UCI_FRAME_IN_FLIGHT;
    status = uci_link_post_am(ep, frame);
    if (uci_likely(status == UCS_OK)) {
        uci_link_frame_done(frame, UCS_OK);
    }
    return status;
}

/* The number of a frame that could not be sent is for the next one, unless others have been sent since */
static bool uci_link_take_back(uci_frame_t *frame)
{
    uci_peer_t *peer = frame->peer;

    if (frame->seq + 1 != peer->tx.next) {
        frame->flags &= (uint8_t)~UCI_FRAME_IN_FLIGHT;
        return false; /* it stays in the log, and is asked for */
    }
    frame->flags |= UCI_FRAME_IN_FLIGHT;
    uci_txlog_remove(peer, frame);
    --peer->tx.next;
    peer->tx.posted = peer->tx.next;
    peer->tx.base   = uci_min(peer->tx.base, peer->tx.next);
    peer->tx.acked  = uci_min(peer->tx.acked, peer->tx.next);
    return true;
}

/* Nothing but what is in the mailbox is under way */
static bool uci_link_may_use_mailbox(uci_peer_t *peer)
{
    if (!peer->box.mapped || (peer->tx.posted != peer->tx.next)) {
        return false;
    }
    peer->box.used = (peer->tx.acked >= peer->box.am_until);
    if (peer->box.used) {
        peer->box.streak       = 0;
        peer->box.streak_shift = 0;
    }
    return peer->box.used;
}

static void uci_link_say_sent(uci_peer_t *peer, uint16_t flags);

/* Whose peer only listens has a log that is never empty, and would never go over to the mailbox. @return true: a frame waits until the peer has
 * answered where it is */
static bool uci_link_changes(uci_peer_t *peer, const uci_frame_t *frame)
{
    if (!peer->box.mapped || (frame->total > UCI_BOX_FRAME_MAX) ||
        (++peer->box.streak < (UCI_LINK_STREAK << peer->box.streak_shift))) {
        return false;
    }
    peer->box.streak       = 0;
    peer->box.streak_shift = (uint8_t)uci_min(peer->box.streak_shift + 1u, UCI_LINK_STREAK_SHIFT);
    uci_link_say_sent(peer, 0);
    return true;
}

/* A frame's header has to be for the place that it goes to, and to be as it was sealed until then */
static void uci_link_seal_again(uci_frame_t *frame, uint64_t seed, uint64_t mark, uint64_t new_seed)
{
    uci_frame_hdr_t *hdr = uci_frame_hdr(frame);

    if (hdr->check != uci_frame_check(hdr, seed)) {
        uci_fatal("a message of %u bytes to %s is damaged in the memory of this process", hdr->length,
                  uci_peer_name(frame->peer));
    }
    hdr->mark  = mark;
    hdr->check = uci_frame_check(hdr, new_seed);
}

static uint64_t uci_link_am_seed(const uci_peer_t *peer)
{
    return uci_frame_am_seed(peer->worker->uid, peer->uid);
}

/* A frame in the log is sealed for where it went first */
static uint64_t uci_link_seed_of(uci_frame_t *frame)
{
    const uci_frame_hdr_t *hdr = uci_frame_hdr(frame);

    return (hdr->mark == frame->peer->worker->uid) ? uci_link_am_seed(frame->peer) : hdr->mark;
}

static bool uci_link_is_question(uci_frame_t *frame)
{
    return uci_frame_kind(uci_frame_hdr(frame)->kind) == UCI_FRAME_SYNC;
}

/* Is it one too many? What has been taken may not have been heard yet */
static bool uci_link_is_paced(uci_frame_t *frame)
{
    uci_peer_t *peer = frame->peer;

    return uci_link_is_question(frame) && uci_link_is_ahead(peer) &&
           (!uci_mailbox_heard(peer) || uci_link_is_ahead(peer));
}

static bool uci_link_post_mailbox(uci_frame_t *frame)
{
    uci_peer_t *peer = frame->peer;
    uint64_t mark;
    char *place = uci_link_is_paced(frame) ? NULL : uci_link_box_place(peer, frame, &mark);

    if (place == NULL) {
        return false;
    }
    peer->worker->link.questions += uci_link_is_question(frame);
    uci_link_seal_again(frame, uci_link_seed_of(frame), mark, mark);
    if (uci_unlikely(uci_edge.post != NULL)) {
        uci_edge.post(frame, place, mark);
    } else {
        uci_box_tx_post(&peer->box.tx, place, frame->wire, frame->total, mark);
    }
    uci_doorbell_ring(peer->box.doorbells, peer->box.number);
    return true;
}

static void uci_link_wait(uci_frame_t *frame)
{
    uci_peer_t *peer = frame->peer;

    frame->flags |= UCI_FRAME_IN_FLIGHT;
    peer->box.used = false;
    if (uci_list_is_empty(&peer->log.waiting_link)) {
        peer->log.wait_turns = 0;
        uci_list_add_tail(&peer->worker->link.waiting, &peer->log.waiting_link);
        uci_worker_work_begins(peer->worker);
    }
}

static uci_frame_t *uci_link_next_waiting(uci_peer_t *peer)
{
    return (peer->tx.posted < peer->tx.next) ? uci_txlog_find(peer, peer->tx.posted) : NULL;
}

/* Without those that are paced there would be room, in the box or with UCX: what waits behind them is in the log, and as good as sent, so that a program
 * whose peer is away does not wait where it does not on plain UCX */
static bool uci_link_is_early(uci_peer_t *peer)
{
    uci_frame_t *frame = uci_link_next_waiting(peer);

    return (frame != NULL) && (peer->tx.next - peer->tx.posted <= UCI_LINK_EARLY) && uci_link_is_paced(frame);
}

ucs_status_t uci_link_send_other(uci_ep_t *ep, uci_frame_t *frame, uint32_t what, ucp_tag_t tag, uint64_t value)
{
    uci_peer_t *peer = ep->peer;
    bool first       = (peer->tx.posted == peer->tx.next); /* none waits */
    bool by_mailbox  = (frame->total <= UCI_BOX_FRAME_MAX) && (peer->box.used || uci_link_may_use_mailbox(peer));
    ucs_status_t status;

    frame->req = NULL;
    uci_frame_write_hdr(frame, what, uci_link_ack(peer), tag, value, peer->worker->uid, uci_link_am_seed(peer));
    ++peer->tx.next;
    if (!first || (by_mailbox ? !uci_link_post_mailbox(frame) : uci_link_changes(peer, frame))) {
        uci_link_wait(frame);
        return uci_link_is_early(peer) ? UCS_OK : UCS_INPROGRESS;
    }
    peer->tx.posted = peer->tx.next;
    if (by_mailbox) {
        return UCS_OK;
    }
    status = uci_link_send_am(ep->ucp, frame);
    if (uci_unlikely(UCS_STATUS_IS_ERR(status))) {
        return uci_link_take_back(frame) ? status : UCS_OK;
    }
    return status;
}

static void uci_link_stop_waiting(uci_peer_t *peer)
{
    if (uci_list_is_empty(&peer->log.waiting_link)) {
        return;
    }
    uci_list_del(&peer->log.waiting_link);
    uci_worker_work_ends(peer->worker);
    (void)uci_link_may_use_mailbox(peer);
}

/* What waits is in the log until it is acknowledged, which it is not before it is sent */
static unsigned uci_link_post_waiting(uci_peer_t *peer, bool by_am)
{
    ucp_ep_h ep    = by_am ? uci_peer_endpoint(peer) : NULL;
    unsigned count = 0;
    uci_frame_t *frame;

    if (!by_am && (peer->tx.acked < peer->box.am_until)) {
        return 0;
    }
    while ((frame = uci_link_next_waiting(peer)) != NULL) {
        if (by_am ? (ep == NULL) : ((frame->total > UCI_BOX_FRAME_MAX) || !uci_link_post_mailbox(frame))) {
            return count;
        }
        ++peer->tx.posted;
        ++count;
        if (!by_am) {
            uci_link_frame_done(frame, UCS_OK);
            continue;
        }
        uci_link_seal_again(frame, uci_link_seed_of(frame), peer->worker->uid, uci_link_am_seed(peer));
        if (UCS_STATUS_IS_ERR(uci_link_send_am(ep, frame))) {
            uci_link_frame_done(frame, UCS_OK); /* it is asked for */
        }
    }
    uci_link_stop_waiting(peer);
    return count;
}

/* By active message one that is paced would not have its turn earlier. Who is told something by UCX in each turn has read what it was told long
 * ago all the same */
static bool uci_link_is_patient(uci_peer_t *peer)
{
    uci_frame_t *frame = uci_link_next_waiting(peer);

    if (peer->log.wait_turns < UCI_LINK_WAIT_TURNS) {
        return true;
    }
    if ((frame == NULL) || !uci_link_is_paced(frame)) {
        return false;
    }
    if (!uci_link_is_far_ahead(peer)) {
        uci_link_has_read(peer->worker);
    }
    return true;
}

unsigned uci_link_progress(uci_worker_t *worker)
{
    unsigned posted, count = 0;
    uci_list_t todo;
    uci_peer_t *peer;

    uci_list_move(&worker->link.waiting, &todo);
    while (!uci_list_is_empty(&todo)) {
        peer   = uci_container_of(uci_list_requeue(&todo, &worker->link.waiting), uci_peer_t, log.waiting_link);
        posted = uci_link_post_waiting(peer, !peer->box.mapped || !uci_link_is_patient(peer));
        peer->log.wait_turns = (posted > 0) ? 0 : peer->log.wait_turns + 1;
        count += posted;
    }
    return count;
}

void uci_link_abandon(uci_peer_t *peer, ucs_status_t status)
{
    uci_request_t *bound = peer->rx.bound;
    uci_frame_t *frame;

    while (peer->tx.posted < peer->tx.next) {
        frame = uci_link_next_waiting(peer);
        ++peer->tx.posted; /* as if it had been lost on its way: without it what comes behind it would not be taken */
        if (frame != NULL) {
            uci_link_frame_done(frame, status);
        }
    }
    uci_link_stop_waiting(peer);
    peer->rx.bound = NULL;
    if (bound != NULL) {
        uci_request_complete_recv(bound, status, 0, 0);
    }
}

/* ------------------------------------------------------- sending again */

static void uci_link_say_gone(uci_peer_t *peer, uci_frame_t *frame, uint16_t flags)
{
    uci_control_t *msg = uci_control_get(peer, UCI_AM_GONE, frame->seq, 0);
    uci_frame_hdr_t *hdr;

    if (msg == NULL) {
        return;
    }
    hdr            = uci_frame_hdr(frame);
    msg->hdr.flags = UCI_AM_FLAG_FRAME | flags;
    msg->hdr.value = hdr->tag;
    msg->hdr.extra = uci_frame_what(hdr->kind, hdr->digest, hdr->length);
    uci_control_send(msg);
}

/* It has been acknowledged, and then damaged where it was held. Its receiver knows what it was */
static void uci_link_say_unknown(uci_peer_t *peer, uint64_t seq)
{
    uci_control_t *msg = uci_control_get(peer, UCI_AM_GONE, seq, 0);

    if (msg != NULL) {
        msg->hdr.flags = UCI_AM_FLAG_FRAME;
        msg->hdr.extra = uci_frame_what(UCI_FRAME_EAGER, (uint8_t)peer->worker->choice.digest->id, 0);
        uci_control_send(msg);
    }
}

/* Nobody writes to the log: what has another digest than it was sealed with is damaged, and no repair */
static bool uci_link_is_intact(uci_frame_t *frame)
{
    const uci_frame_hdr_t *hdr     = uci_frame_hdr(frame);
    const uci_digest_ops_t *digest = uci_digest_by_id(hdr->digest);

    if ((digest != NULL) && (hdr->length + sizeof(*hdr) == frame->total) &&
        (digest->digest(uci_frame_payload(frame), hdr->length) == hdr->value)) {
        return true;
    }
    uci_report_copy_damaged(frame->peer, hdr->tag, uci_frame_is_user_am(hdr->kind), hdr->length);
    return false;
}

/* Once more, by active message. UCX may still have the first one, so it is a copy that goes */
static void uci_link_resend(uci_peer_t *peer, uci_frame_t *frame)
{
    ucp_ep_h ep = uci_peer_endpoint(peer);
    uci_frame_t *clone;

    if (frame->seq >= peer->tx.posted) {
        return; /* it has not been sent */
    }
    if (frame->flags & UCI_FRAME_STUB) {
        uci_link_say_gone(peer, frame, 0);
        return;
    }
    if (!uci_link_is_intact(frame)) {
        uci_link_say_gone(peer, frame, UCI_AM_FLAG_DAMAGED);
        return;
    }
    clone = (ep != NULL) ? uci_frame_clone(&peer->worker->frames, frame) : NULL;
    if (clone == NULL) {
        return; /* asked for again */
    }
    uci_link_seal_again(clone, uci_link_seed_of(clone), peer->worker->uid, uci_link_am_seed(peer));
    UCI_STATS_INC(frames_resent);
    if (uci_link_post_am(ep, clone) != UCS_INPROGRESS) {
        uci_link_frame_done(clone, UCS_OK);
    }
}

/* Those of first ... last that have not been received. @param asked  they are missing for sure */
static void uci_link_resend_range(uci_peer_t *peer, uint64_t first, uint64_t last, bool asked)
{
    uint64_t seq, end = uci_min(last, first + UCI_LINK_AGAIN);
    uci_frame_t *frame;

    for (seq = uci_max(first, peer->tx.acked); (seq < end) && (seq < peer->tx.posted); ++seq) {
        frame = uci_txlog_find(peer, seq);
        if (frame != NULL) {
            uci_link_resend(peer, frame);
        } else if (asked && (seq >= peer->tx.acked)) {
            uci_link_say_unknown(peer, seq);
        }
    }
}

void uci_link_send_again(uci_peer_t *peer)
{
    if (!uci_list_is_empty(&peer->log.waiting_link)) {
        (void)uci_link_post_waiting(peer, true);
    }
    uci_link_resend_range(peer, peer->tx.acked, UINT64_MAX - UCI_LINK_AGAIN, false);
}

void uci_link_on_repair(uci_peer_t *peer, uint64_t seq)
{
    uci_link_resend_range(peer, seq, seq + 1, true);
}

static void uci_link_ack_held(uci_peer_t *peer, const uint64_t *words, size_t count)
{
    uint64_t seq = words[0], end = words[1];
    size_t i;

    for (i = 2; i < count; i += 2) {
        for (seq = uci_max(seq, peer->tx.base); seq < words[i]; ++seq) {
            uci_txlog_ack_one(peer, seq);
        }
        seq = words[i + 1] + 1;
    }
    for (seq = uci_max(seq, peer->tx.base); seq < end; ++seq) {
        uci_txlog_ack_one(peer, seq);
    }
}

/* @param flags  REPAIR: this is an answer */
static void uci_link_say_sent(uci_peer_t *peer, uint16_t flags)
{
    uci_control_t *msg;

    if (!peer->talk.heard || uci_conversation_is_back(&peer->conversation)) {
        uci_control_hello(peer); /* the first one may have been lost: then nobody can answer */
    }
    msg = uci_control_get(peer, UCI_AM_SENT, 0, 0);
    if (msg != NULL) {
        msg->hdr.flags = flags;
        msg->hdr.value = peer->tx.posted;
        if (peer->box.mapped) {
            msg->hdr.index = (uint32_t)peer->box.key;
            msg->hdr.extra = uci_box_tx_position(&peer->box.tx);
        }
        uci_control_send(msg);
    }
}

const char *uci_link_check_received(const uci_peer_t *peer, const uint64_t *words, size_t count)
{
    uint64_t next = words[0];
    size_t i;

    if ((words[0] > words[1]) || (words[1] > peer->tx.next)) {
        return "that it has received what was never sent";
    }
    for (i = 2; i < count; i += 2) {
        if ((words[i] < next) || (words[i + 1] < words[i]) || (words[i + 1] >= words[1])) {
            return "ranges of messages that are none";
        }
        next = words[i + 1] + 1;
    }
    return NULL;
}

static const char *uci_link_check_ack(const uci_am_t *am)
{
    return uci_link_check_received(am->peer, am->data, am->length / sizeof(uint64_t));
}

static void uci_link_on_ack(uci_am_t *am)
{
    uci_peer_t *peer        = am->peer;
    const uci_am_hdr_t *hdr = am->hdr;
    const uint64_t *words   = am->data;
    size_t i, count = am->length / sizeof(*words);

    uci_txlog_ack(peer, words[0]);
    uci_link_ack_held(peer, words, count);
    peer->log.asks = 0;
    peer->log.time = uci_process_time_ns();
    uci_conversation_confirm(&peer->conversation, hdr->value);
    if (!(hdr->flags & UCI_AM_FLAG_REPAIR)) {
        return;
    }
    for (i = 2; i < count; i += 2) {
        uci_link_resend_range(peer, words[i], words[i + 1] + 1, true);
    }
    if ((hdr->flags & UCI_AM_FLAG_LAST) && (!uci_list_is_empty(&peer->eps) || (peer->tx.acked != peer->tx.next))) {
        uci_link_say_sent(peer,
                          UCI_AM_FLAG_REPAIR); /* behind all that is on its way: what is missing then has been lost */
    }
}

UCI_AM_HANDLER(ACK, 2,
               "R, after 128 frames or 512 KiB delivered since the last acknowledgement, if no frame carried `ack` "
               "meanwhile and S has no box here (its first line says it then); answer to SENT; with REPAIR: what is "
               "missing (*Link*)",
               "words, up to 64 ranges", "with REPAIR: those frames",
               "the next ACK or frame says the same and more; with REPAIR it is repeated",
               .flags = UCI_AM_FLAG_REPAIR | UCI_AM_FLAG_LAST, .min = 2 * sizeof(uint64_t), .max = UINT32_MAX,
               .grain = 2 * sizeof(uint64_t), .hit = UCI_AM_HIT(ACK), .special = UCI_AM_FLAG_REPAIR,
               .check = uci_link_check_ack, .take = uci_link_on_ack);

/* ----------------------------------------------------- the log's timer */

static uint64_t uci_link_sent_time(const uci_peer_t *peer)
{
    return peer->log.time + (UCI_LINK_SENT_NS << uci_min(peer->log.asks, UCI_LINK_SENT_SHIFT));
}

void uci_link_settle_sent(uci_peer_t *peer)
{
    peer->log.settled = peer->tx.next;
}

/* Is it over with it? Never with ourselves: we hear what we say as long as we live. Nothing that was sent before its BYE is asked about: that
 * would take a new connection. What the user sends it after that goes there all the same, and may get lost */
static bool uci_link_is_over(uci_peer_t *peer)
{
    return (peer->conversation.status != UCS_OK) ||
           (uci_conversation_is_gone(&peer->conversation) && (peer->uid != peer->worker->uid) &&
            (uci_list_is_empty(&peer->eps) || (peer->tx.next <= peer->log.settled))) ||
           (uci_conversation_is_left(&peer->conversation) && uci_txlog_is_empty(peer));
}

static void uci_link_look_at(uci_peer_t *peer, uint64_t now)
{
    if (peer->box.mapped) {
        (void)uci_mailbox_heard(peer);
    }
    if (((peer->tx.acked == peer->tx.next) && !uci_conversation_is_back(&peer->conversation)) ||
        uci_link_is_over(peer)) {
        peer->tx.watched = false;
        uci_list_del(&peer->log.watched_link);
        return;
    }
    if (peer->tx.acked != peer->log.seen) {
        peer->log.seen = peer->tx.acked;
        peer->log.time = now;
        peer->log.asks = 0;
    } else if (now >= uci_link_sent_time(peer)) {
        peer->log.time = now;
        ++peer->log.asks;
        uci_link_say_sent(peer, 0);
    }
}

void uci_link_look(uci_worker_t *worker)
{
    uint64_t now;

    if (uci_list_is_empty(&worker->link.watched)) {
        return;
    }
    now = uci_process_time_ns();
    uci_list_for_each_safe(peer, &worker->link.watched, uci_peer_t, log.watched_link)
    {
        uci_link_look_at(peer, now);
    }
}
