/* SPDX-License-Identifier: BSD-3-Clause */
#include "mailbox.h"

#include <stdlib.h>

#include "base/am_handler.h"
#include "control.h"
#include "base/unseen.h"
#include "link_recv.h"
#include "util/log.h"
#include "util/process.h"
#include "live/stats.h"
#include "base/wire_check.h"

/* Frames taken from one box before the others get their turn */
#define UCI_MAILBOX_TURN 32

/* A quiet box is looked into, in turn, each so many turns of progress, a power of two */
#define UCI_MAILBOX_LOOK 64u

/* ------------------------------------------------------------- receiver */

static uint64_t uci_mailbox_new_key(uci_worker_t *worker)
{
    uint64_t words[3] = {worker->uid, uci_process_time_ns(), ++worker->link.mailbox.keys};

    return XXH3_64bits(words, sizeof(words));
}

/* A few peers have rings for windows of 64 messages of 4 KiB; many have less each, and all together no more than 3 MiB */
static void uci_mailbox_plan(uci_mailbox_t *mailbox)
{
    unsigned processes = uci_process_local_count();

    mailbox->capacity = uci_min(uci_max((processes > 0) ? processes : 16u, UCI_MAILBOX_HOT), UCI_MAILBOX_BOXES);
    mailbox->granules = (mailbox->capacity <= UCI_MAILBOX_HOT) ? UCI_BOX_GRANULES
                        : (mailbox->capacity <= 16)            ? UCI_BOX_GRANULES / 4
                                                               : UCI_BOX_GRANULES / 8;
    mailbox->size     = UCI_MAILBOX_BELLS + (mailbox->capacity * uci_box_size(mailbox->granules));
}

static size_t uci_mailbox_offset(const uci_mailbox_t *mailbox, unsigned number)
{
    return UCI_MAILBOX_BELLS + (number * uci_box_size(mailbox->granules));
}

/* Read once: others can write to it. @return false: it does not pass */
UCI_INLINE bool uci_mailbox_read_hdr(uci_frame_hdr_t *hdr, const char *place, uint64_t mark)
{
    memcpy(hdr, place, sizeof(*hdr));
    __asm__ volatile("" ::: "memory");
    return uci_likely(hdr->check == uci_frame_check(hdr, mark)) &&
           uci_likely(hdr->length <= UCI_BOX_FRAME_MAX - sizeof(*hdr));
}

static void uci_mailbox_set_lost(uci_mailbox_t *mailbox, uci_mailbox_box_t *box, bool lost)
{
    mailbox->lost += (unsigned)lost - (unsigned)box->lost;
    mailbox->hot = (mailbox->lost > 0) ? 0 : UCI_MAILBOX_HOT;
    box->lost    = lost;
}

/* What is in the box is lost: nothing that was written under its last key is a frame */
static void uci_mailbox_begin_anew(uci_worker_t *worker, unsigned number)
{
    uci_mailbox_t *mailbox = &worker->link.mailbox;
    uci_mailbox_box_t *box = &mailbox->boxes[number];

    uci_mailbox_set_lost(mailbox, box, false);
    box->key = uci_mailbox_new_key(worker);
    uci_box_rx_init(&box->rx, (uci_box_t *)(void *)(mailbox->region + uci_mailbox_offset(mailbox, number)),
                    mailbox->granules, box->key);
}

static ucs_status_t uci_mailbox_create(uci_worker_t *worker)
{
    uci_mailbox_t *mailbox = &worker->link.mailbox;
    ucs_status_t status;

    mailbox->boxes = calloc(mailbox->capacity, sizeof(*mailbox->boxes));
    if (mailbox->boxes == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = uci_shared_memory_create(worker->context->ucp, mailbox->size, &mailbox->memory);
    if (status != UCS_OK) {
        goto err_free;
    }
    mailbox->region = mailbox->memory.address;
    memset(mailbox->region, 0, UCI_MAILBOX_BELLS);
    return UCS_OK;

err_free:
    free(mailbox->boxes);
    mailbox->boxes = NULL;
    return status;
}

static bool uci_mailbox_exists(uci_worker_t *worker)
{
    uci_mailbox_t *mailbox = &worker->link.mailbox;
    ucs_status_t status;

    if (!mailbox->tried) {
        mailbox->tried = true;
        uci_mailbox_plan(mailbox);
        status = uci_mailbox_create(worker);
        if (status != UCS_OK) {
            uci_info("no memory for a mailbox (%s): small messages on this node are active messages",
                     uci_ucp.status_string(status));
        }
    }
    return mailbox->region != NULL;
}

/* @return its number, or -1: there is none left */
static int uci_mailbox_find_free(const uci_mailbox_t *mailbox)
{
    unsigned i;

    for (i = 0; i < mailbox->capacity; ++i) {
        if (mailbox->boxes[i].peer == NULL) {
            return (int)i;
        }
    }
    return -1;
}

static void uci_mailbox_tell(uci_peer_t *peer)
{
    uci_mailbox_t *mailbox = &peer->worker->link.mailbox;
    uci_control_t *msg     = uci_control_get(peer, UCI_AM_BOX, 0, sizeof(uci_am_box_t) + mailbox->memory.rkey_length);
    uci_am_box_t *box;

    if (msg == NULL) {
        return; /* it goes on with active messages */
    }
    box           = (uci_am_box_t *)(void *)msg->payload;
    box->address  = (uintptr_t)mailbox->region;
    box->key      = mailbox->boxes[peer->box.own].key;
    box->bell     = (uint32_t)peer->box.own;
    box->size     = (uint32_t)mailbox->size;
    box->offset   = (uint32_t)uci_mailbox_offset(mailbox, (unsigned)peer->box.own);
    box->granules = mailbox->granules;
    memcpy(box + 1, mailbox->memory.rkey, mailbox->memory.rkey_length);
    uci_control_send(msg);
}

/* @return the length of what nobody reads any more, as far as its header tells */
static size_t uci_mailbox_pass_one(const char *place, uint64_t mark)
{
    uci_frame_hdr_t hdr;

    if (!uci_mailbox_read_hdr(&hdr, place, mark)) {
        uci_unseen_count();
        return 1;
    }
    uci_unseen_pass(uci_digest_by_id(hdr.digest), place + sizeof(hdr), hdr.length, hdr.value);
    return sizeof(hdr) + hdr.length;
}

/* Nobody reads what is left in a box that is given up: it has come by another way, or will. Faults in there are accounted for. */
static void uci_mailbox_pass(uci_mailbox_box_t *box)
{
    uint64_t mark, position = box->rx.left;
    const char *place;

    while ((position != UINT64_MAX) &&
           ((place = uci_box_rx_find(&box->rx, &position, uci_box_rx_lap_end(&box->rx, box->rx.left), &mark)) !=
            NULL)) {
        (void)uci_mailbox_pass_one(place, mark);
    }
    while ((uci_box_rx_peek(&box->rx) != NULL) || uci_box_rx_skip(&box->rx)) {
        place = uci_box_rx_peek(&box->rx);
        uci_box_rx_next(&box->rx, uci_mailbox_pass_one(place, uci_box_rx_mark(&box->rx)));
    }
}

static bool uci_mailbox_is_possible(uci_peer_t *peer)
{
    uci_worker_t *worker = peer->worker;

    return (uci_settings.carrier != UCI_CARRIER_AM) && peer->in_clear && !worker->context->wakeup &&
           !worker->context->apart && (peer->uid != worker->uid) && peer->known &&
           (strcmp(peer->mark.host, worker->self.mark.host) == 0) &&
           uci_shared_memory_is_possible(uci_peer_transports(peer)) && uci_mailbox_exists(worker);
}

void uci_mailbox_offer(uci_peer_t *peer)
{
    uci_mailbox_t *mailbox = &peer->worker->link.mailbox;
    int number;

    if (peer->box.offered || !peer->known || uci_control_is_too_early(peer) || (uci_peer_endpoint(peer) == NULL)) {
        return; /* with the next frame */
    }
    peer->box.offered = true;
    number            = uci_mailbox_is_possible(peer) ? uci_mailbox_find_free(mailbox) : -1;
    if (number < 0) {
        return;
    }
    peer->box.own               = (int8_t)number;
    mailbox->boxes[number].peer = peer;
    mailbox->count              = uci_max(mailbox->count, (unsigned)number + 1);
    uci_mailbox_begin_anew(peer->worker, (unsigned)number);
    mailbox->boxes[number].untold = true;
    uci_mailbox_tell(peer);
}

void uci_mailbox_repeat(uci_peer_t *peer)
{
    if ((peer->box.own >= 0) && peer->worker->link.mailbox.boxes[peer->box.own].untold) {
        uci_mailbox_tell(peer);
    }
}

void uci_mailbox_free(uci_peer_t *peer)
{
    if (peer->box.own < 0) {
        return;
    }
    if (uci_unlikely(uci_unseen_is_counted())) {
        uci_mailbox_pass(&peer->worker->link.mailbox.boxes[peer->box.own]);
    }
    peer->worker->link.mailbox.boxes[peer->box.own].peer = NULL;
    uci_mailbox_begin_anew(peer->worker, (unsigned)peer->box.own);
    peer->box.own     = -1;
    peer->box.offered = false;
}

/* Frames whose marks are right, from this position on and below the end. They lie behind what is hidden, or can't be told the length
 * of, and have arrived as well as any. What comes twice of these is repeated, and no more. @return headers that do not pass */
static unsigned uci_mailbox_take_passed(uci_peer_t *peer, uci_mailbox_box_t *box, uint64_t position, uint64_t end)
{
    unsigned damaged = 0;
    uci_frame_hdr_t hdr;
    const char *place;
    uint64_t mark;

    while ((box->peer == peer) && ((place = uci_box_rx_find(&box->rx, &position, end, &mark)) != NULL)) {
        if (uci_mailbox_read_hdr(&hdr, place, mark) &&
            (uci_wire_is_plain(&hdr) || (uci_wire_check_frame(&hdr) == NULL))) {
            uci_link_take(peer, &hdr, place + sizeof(hdr));
        } else {
            ++damaged;
        }
    }
    return damaged;
}

void uci_mailbox_look_back(uci_peer_t *peer)
{
    uci_mailbox_box_t *box;
    uint64_t position;

    if (peer->box.own < 0) {
        return;
    }
    box          = &peer->worker->link.mailbox.boxes[peer->box.own];
    position     = box->rx.left;
    box->rx.left = UINT64_MAX; /* what is found now looks back as well */
    if (position != UINT64_MAX) {
        UCI_STATS_ADD(mismatched_headers,
                      uci_mailbox_take_passed(peer, box, position, uci_box_rx_lap_end(&box->rx, position)));
    }
}

/* Look for a frame, here or behind. Where that leaves a lap, what is hidden may have been passed by, and the next lap that is left would make
 * us forget that. @return whether there is one */
static bool uci_mailbox_find(uci_peer_t *peer, uci_mailbox_box_t *box)
{
    uci_mailbox_look_back(peer);
    if (box->peer != peer) {
        return false;
    }
    uci_mailbox_set_lost(&peer->worker->link.mailbox, box,
                         (uci_box_rx_peek(&box->rx) == NULL) && !uci_box_rx_skip(&box->rx));
    uci_mailbox_look_back(peer);
    return (box->peer == peer) && !box->lost;
}

/* A header does not tell how long its frame is: those behind it are found by their marks, now or when they come */
static void uci_mailbox_broken(uci_peer_t *peer, uci_mailbox_box_t *box)
{
    uci_link_header_damaged(peer->worker, peer, "a frame in shared memory");
    uci_box_rx_next(&box->rx, 1); /* it has one granule at least */
    (void)uci_mailbox_find(peer, box);
}

/* Take frames, each of them read once. @return how many. */
static unsigned uci_mailbox_drain(uci_worker_t *worker, uci_mailbox_box_t *box)
{
    uci_peer_t *peer = box->peer;
    unsigned count   = 0;
    uci_frame_hdr_t hdr;
    const char *place;
    uint64_t mark;

    if (uci_unlikely(peer == NULL)) {
        return 0; /* nobody has that box */
    }
    while ((count < UCI_MAILBOX_TURN) && ((place = uci_box_rx_peek(&box->rx)) != NULL)) {
        mark = uci_box_rx_mark(&box->rx);
        if (uci_unlikely(!uci_mailbox_read_hdr(&hdr, place, mark))) {
            uci_mailbox_broken(peer, box);
            return count + 1;
        }
        box->untold = false;
        uci_box_rx_next(&box->rx, sizeof(hdr) + hdr.length);
        if (!uci_wire_is_plain(&hdr) && uci_unlikely(uci_wire_check_frame(&hdr) != NULL)) {
            uci_wire_refuse(peer, "a message", uci_wire_check_frame(&hdr));
            continue;
        }
        uci_link_take(peer, &hdr, place + sizeof(hdr));
        ++count;
        if (uci_unlikely(box->peer != peer)) {
            return count;
        }
    }
    if (uci_unlikely(uci_box_rx_should_tell(&box->rx))) {
        uci_box_rx_tell(&box->rx, uci_link_ack(peer));
    }
    return count;
}

/* Of two turns in a row one polls the boxes, whichever it is */
static bool uci_mailbox_is_time_to_look(const uci_worker_t *worker)
{
    return uci_worker_is_turn(worker, UCI_MAILBOX_LOOK);
}

/* Behind the place that is next only now and then: that is a long look */
static void uci_mailbox_find_lost(uci_worker_t *worker)
{
    uci_mailbox_t *mailbox = &worker->link.mailbox;
    bool far               = uci_mailbox_is_time_to_look(worker);
    uci_mailbox_box_t *box;
    unsigned i;

    for (i = 0; i < mailbox->count; ++i) {
        box = &mailbox->boxes[i];
        if (box->lost && (far || (uci_box_rx_peek(&box->rx) != NULL)) && uci_mailbox_find(box->peer, box)) {
            uci_doorbell_ring(mailbox->region, i);
        }
    }
}

/* Many boxes: those whose bell was rung. A bell may be lost, so that one of the others is looked into all the same */
static unsigned uci_mailbox_poll_bells(uci_worker_t *worker)
{
    uci_mailbox_t *mailbox = &worker->link.mailbox;
    uint64_t rung          = uci_doorbell_rung(mailbox->region);
    unsigned number, got, count = 0;

    if (uci_unlikely(uci_mailbox_is_time_to_look(worker))) {
        mailbox->look_next = (mailbox->look_next + 1) % mailbox->count;
        rung |= 1ul << mailbox->look_next;
    }
    while (rung != 0) {
        number = (unsigned)__builtin_ctzl(rung);
        rung &= rung - 1;
        uci_doorbell_clear(mailbox->region, number);
        if (uci_unlikely(number >= mailbox->count)) {
            continue; /* nobody has that box */
        }
        got = uci_mailbox_drain(worker, &mailbox->boxes[number]);
        count += got;
        if (got >= UCI_MAILBOX_TURN) {
            uci_doorbell_ring(mailbox->region, number); /* there may be more */
        }
    }
    return count;
}

static unsigned uci_mailbox_poll_each(uci_worker_t *worker)
{
    uci_mailbox_t *mailbox = &worker->link.mailbox;
    unsigned i, boxes = mailbox->count, count = 0;

    for (i = 0; i < boxes; ++i) {
        if (uci_box_rx_peek(&mailbox->boxes[i].rx) != NULL) {
            count += uci_mailbox_drain(worker, &mailbox->boxes[i]);
        }
    }
    return count;
}

static __attribute__((noinline)) unsigned uci_mailbox_poll_other(uci_worker_t *worker)
{
    if (worker->link.mailbox.lost > 0) {
        uci_mailbox_find_lost(worker);
    }
    return (worker->link.mailbox.count > UCI_MAILBOX_HOT) ? uci_mailbox_poll_bells(worker)
                                                          : uci_mailbox_poll_each(worker);
}

unsigned uci_mailbox_poll(uci_worker_t *worker)
{
    return (worker->link.mailbox.count > worker->link.mailbox.hot) ? uci_mailbox_poll_other(worker)
                                                                   : uci_mailbox_poll_each(worker);
}

/* What its sender says meanwhile is for the next turn: no more than a ring was there before */
void uci_mailbox_catch_up(uci_peer_t *peer)
{
    uci_mailbox_box_t *box;
    uint64_t end;

    if (peer->box.own < 0) {
        return;
    }
    box = &peer->worker->link.mailbox.boxes[peer->box.own];
    end = uci_box_rx_position(&box->rx) + box->rx.ring;
    do {
        while ((uci_mailbox_drain(peer->worker, box) > 0) && (uci_box_rx_position(&box->rx) < end)) {
        }
    } while ((box->peer == peer) && box->lost && uci_mailbox_find(peer, box));
}

/* Its sender may have begun laps that were not seen: what is there is in the last two of them */
static void uci_mailbox_resume(uci_peer_t *peer, uci_mailbox_box_t *box, uint64_t position)
{
    uint64_t last = uci_box_rx_lap_end(&box->rx, position) - box->rx.ring;
    uint64_t from = uci_max(uci_box_rx_position(&box->rx), (last > 0) ? last - box->rx.ring : 0);

    UCI_STATS_ADD(mismatched_headers, uci_mailbox_take_passed(peer, box, from, position));
    if (box->peer == peer) {
        uci_box_rx_resume(&box->rx, position);
        uci_mailbox_set_lost(&peer->worker->link.mailbox, box, false);
    }
}

void uci_mailbox_on_sent(uci_peer_t *peer, uint32_t key, uint64_t position)
{
    uci_mailbox_box_t *box;

    uci_mailbox_catch_up(peer);
    if (peer->box.own < 0) {
        return;
    }
    box = &peer->worker->link.mailbox.boxes[peer->box.own];
    if ((uint32_t)box->key != key) {
        return; /* it does not know of this box, or not yet */
    }
    box->untold = false;
    if (position > uci_box_rx_position(&box->rx)) {
        uci_mailbox_resume(peer, box, position);
    }
}

void uci_mailbox_cleanup(uci_worker_t *worker)
{
    uci_mailbox_t *mailbox = &worker->link.mailbox;
    unsigned i;

    for (i = 0; uci_unseen_is_counted() && (i < mailbox->count); ++i) {
        if (mailbox->boxes[i].peer != NULL) {
            uci_mailbox_pass(&mailbox->boxes[i]);
        }
    }
    uci_shared_memory_cleanup(worker->context->ucp, &mailbox->memory);
    mailbox->region = NULL;
    mailbox->count  = 0;
    free(mailbox->boxes);
    mailbox->boxes = NULL;
}

/* --------------------------------------------------------------- sender */

static uint8_t *uci_mailbox_map(uci_peer_t *peer, const uci_am_box_t *box, size_t rkey_length)
{
    ucp_ep_h ep = uci_peer_endpoint(peer);
    void *address;

    if (peer->box.rkey == NULL) {
        if ((ep == NULL) || (uci_wire_unpack_key(peer, ep, box + 1, rkey_length, &peer->box.rkey) != UCS_OK)) {
            peer->box.rkey = NULL;
            return NULL;
        }
    }
    if (uci_ucp.rkey_ptr(peer->box.rkey, box->address, &address) != UCS_OK) {
        return NULL;
    }
    if (!uci_shared_memory_is_mapped(address, box->size)) {
        uci_wire_refuse(peer, "BOX", "that its mailbox is where its memory is not");
        return NULL;
    }
    return address;
}

static const char *uci_mailbox_check_box(const uci_am_t *am)
{
    const uci_am_box_t *box = am->data;
    uint32_t granules       = box->granules;

    return ((box->bell < UCI_MAILBOX_BOXES) && (granules >= UCI_BOX_GRANULES_MIN) && (granules <= UCI_BOX_GRANULES) &&
            ((granules & (granules - 1)) == 0) && (box->offset >= UCI_MAILBOX_BELLS) &&
            (box->offset % UCI_CACHE_LINE == 0) && (box->size >= uci_box_size(granules)) &&
            (box->offset <= box->size - uci_box_size(granules)))
                   ? NULL
                   : "a mailbox of another form";
}

static void uci_mailbox_on_box(uci_am_t *am)
{
    const uci_am_box_t *box = am->data;
    uci_peer_t *peer        = am->peer;
    uint8_t *region;

    if (peer->worker->context->wakeup || (peer->box.mapped && (peer->box.key == box->key))) {
        return; /* repeated */
    }
    if (uci_conversation_is_closed(&peer->conversation) || !uci_conversation_is_heard(&peer->conversation)) {
        return; /* nothing will go through it. And its owner may be gone, with its memory: UCX 1.18 ends the process that asks for that */
    }
    region = uci_mailbox_map(peer, box, am->length - sizeof(*box));
    uci_debug("mailbox of %s: %s", uci_peer_name(peer), (region != NULL) ? "mapped" : "can't be mapped");
    if (region == NULL) {
        return;
    }
    peer->box.mapped    = true;
    peer->box.number    = (uint8_t)box->bell;
    peer->box.key       = box->key;
    peer->box.doorbells = region;
    peer->box.used      = false;
    peer->box.am_until  = peer->tx.posted; /* what went before has to be there first */
    uci_box_tx_init(&peer->box.tx, (uci_box_t *)(void *)(region + box->offset), box->granules, box->key);
    uci_peer_limit_eager(peer);
}

UCI_AM_HANDLER(BOX, 13, "R, when it has heard S by active message and S can map its memory", "`uci_am_box_t`, rkey",
               "a frame in the box, SENT that names its key",
               "S goes on with active messages; it is told again whenever R asks for something missing",
               .min = sizeof(uci_am_box_t) + 1, .max = sizeof(uci_am_box_t) + UCI_WIRE_KEY_MAX, .grain = 1,
               .later = true, .in_clear = true, .hit = UCI_AM_HIT(ACK), .check = uci_mailbox_check_box,
               .take = uci_mailbox_on_box);

bool uci_mailbox_heard(uci_peer_t *peer)
{
    uint32_t acked;

    if (!uci_box_tx_heard(&peer->box.tx, &acked)) {
        return false;
    }
    uci_link_take_ack(peer, acked);
    return true;
}

void uci_mailbox_leave(uci_peer_t *peer)
{
    peer->box.mapped = false;
    peer->box.used   = false;
}

void uci_mailbox_unmap(uci_peer_t *peer)
{
    uci_mailbox_leave(peer);
    if (peer->box.rkey != NULL) {
        uci_ucp.rkey_destroy(peer->box.rkey);
        peer->box.rkey = NULL;
    }
}
