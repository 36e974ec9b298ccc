/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_frame.h"

#include <stdlib.h>

#include "frame.h"
#include "transfer/send_op_part.h"
#include "live/stats.h"

#define UCI_INJECT_STALE_SIZE (64ul << 10)

/* What went by before in this thread, for faults of kind stale; kept until the process ends */
static __thread char *uci_inject_older;

void uci_inject_remember(const void *data, size_t length)
{
    if (uci_inject_older == NULL) {
        uci_inject_older = calloc(1, UCI_INJECT_STALE_SIZE);
    }
    if (uci_inject_older != NULL) {
        memcpy(uci_inject_older, data, uci_min(length, UCI_INJECT_STALE_SIZE));
    }
}

const void *uci_inject_stale(size_t length)
{
    return (length <= UCI_INJECT_STALE_SIZE) ? uci_inject_older : NULL;
}

/* What is lost becomes zeros, and what is zero already a flipped bit */
static void uci_inject_in_place(const uci_fault_t *fault, void *data, size_t length, const void *stale)
{
    uci_fault_t flip = {.kind = UCI_FAULT_BITFLIP, .random = fault->random};
    uint64_t before  = XXH3_64bits(data, length);
    size_t left      = uci_fault_apply(fault, data, length, stale);

    memset((char *)data + left, 0, length - left);
    if (XXH3_64bits(data, length) == before) {
        uci_fault_apply(&flip, data, length, NULL);
    }
}

void uci_inject_bytes(const uci_fault_t *fault, void *data, size_t length)
{
    uci_inject_in_place(fault, data, length, NULL);
}

static void uci_inject_frame_payload(const uci_fault_t *fault, uci_frame_t *frame, size_t length, bool in_place)
{
    const void *stale = uci_inject_stale(frame->total);
    char *payload     = uci_frame_payload(frame);

    if (in_place) {
        uci_inject_in_place(fault, payload, length, stale);
    } else {
        frame->total -= (uint32_t)(length - uci_fault_apply(fault, payload, length, stale));
    }
}

/* Not the mark, which its carrier writes */
static void uci_inject_frame_header(const uci_fault_t *fault, uci_frame_t *frame, bool in_place)
{
    size_t mark = sizeof(uci_frame_hdr(frame)->mark);

    if (!in_place && (fault->kind == UCI_FAULT_TRUNCATE)) {
        frame->total = (uint32_t)(fault->random % sizeof(uci_frame_hdr_t));
    } else {
        uci_inject_bytes(fault, frame->wire + mark, sizeof(uci_frame_hdr_t) - mark);
    }
}

void uci_inject_undo(unsigned count)
{
    for (; count > 0; --count) {
        uci_fault_undo();
    }
}

/* The payload of a rendezvous frame is UCI's descriptor: that is a header to the user */
static bool uci_inject_has_payload(const uci_frame_hdr_t *hdr)
{
    return (uci_frame_kind(hdr->kind) != UCI_FRAME_RNDV) && (hdr->length > 0);
}

bool uci_inject_sealed(const uci_frame_t *frame, uci_fault_t *fault_p)
{
    const uci_frame_hdr_t *hdr = (const uci_frame_hdr_t *)(const void *)frame->wire;
    uint64_t length            = (frame->op != NULL) ? frame->op->length : hdr->length;
    int rank                   = uci_peer_rank(frame->peer);

    return (uci_inject_has_payload(hdr) && uci_fault_draw(UCI_FAULT_PAYLOAD, length, rank, fault_p)) ||
           uci_fault_draw(UCI_FAULT_HEADER, length, rank, fault_p);
}

uci_frame_t *uci_inject_frame(uci_frame_t *frame, bool in_place)
{
    uci_worker_t *worker       = frame->peer->worker;
    const uci_frame_hdr_t *hdr = uci_frame_hdr(frame);
    uint64_t length            = (frame->op != NULL) ? frame->op->length : hdr->length;
    int rank                   = uci_peer_rank(frame->peer);
    uci_fault_t payload, header;
    bool hit_payload, hit_header;
    uci_frame_t *clone;

    hit_payload = uci_inject_has_payload(hdr) && uci_fault_draw(UCI_FAULT_PAYLOAD, length, rank, &payload);
    hit_header  = uci_fault_draw(UCI_FAULT_HEADER, length, rank, &header);
    clone       = (hit_payload || hit_header) ? uci_frame_clone(&worker->frames, frame) : NULL;
    if (clone == NULL) {
        uci_inject_undo(hit_payload + hit_header);
    } else if (hit_payload) {
        uci_inject_frame_payload(&payload, clone, hdr->length, in_place);
    }
    if ((clone != NULL) && hit_header) {
        uci_inject_frame_header(&header, clone, in_place);
        UCI_STATS_ADD(faults_unseen, hit_payload); /* nobody reads the payload behind it */
    }
    uci_inject_remember(uci_frame_payload(frame), hdr->length);
    return clone;
}

uci_inject_order_t uci_inject_order(const uci_frame_t *frame, bool may_wait)
{
    uci_fault_t fault;

    if (!uci_fault_targets(UCI_FAULT_FRAME) ||
        !uci_fault_draw(UCI_FAULT_FRAME, frame->total, uci_peer_rank(frame->peer), &fault)) {
        return UCI_INJECT_IN_ORDER;
    }
    return may_wait ? (uci_inject_order_t)(UCI_INJECT_DROP + (fault.random % 3)) : UCI_INJECT_DROP;
}

bool uci_inject_resent(uci_frame_t *clone, uci_fault_t *fault_p)
{
    const uci_frame_hdr_t *hdr = uci_frame_hdr(clone);

    if (!uci_fault_targets(UCI_FAULT_REPAIR) ||
        !uci_fault_draw(UCI_FAULT_REPAIR, hdr->length, uci_peer_rank(clone->peer), fault_p)) {
        return false;
    }
    if (clone->peer->seals) {
        return true;
    }
    if (hdr->length > 0) {
        uci_inject_bytes(fault_p, uci_frame_payload(clone), hdr->length);
    } else {
        uci_inject_bytes(fault_p, clone->wire + sizeof(hdr->mark), sizeof(*hdr) - sizeof(hdr->mark));
    }
    return false;
}

void uci_inject_log(uci_frame_t *frame)
{
    const uci_frame_hdr_t *hdr = uci_frame_hdr(frame);
    uci_fault_t fault;

    if ((frame->flags & UCI_FRAME_LOGGED) && (uci_frame_kind(hdr->kind) != UCI_FRAME_RNDV) && (hdr->length > 0) &&
        uci_fault_draw(UCI_FAULT_MEMORY, hdr->length, uci_peer_rank(frame->peer), &fault)) {
        uci_inject_bytes(&fault, uci_frame_payload(frame), hdr->length);
    }
}

void uci_inject_pass(const uci_digest_ops_t *digest, const void *data, size_t length, uint64_t value)
{
    if (uci_unlikely(uci_fault_asked) && (digest != NULL) && (digest->digest(data, length) != value)) {
        UCI_STATS_INC(faults_unseen);
    }
}

void uci_inject_count_again(void)
{
    UCI_STATS_ADD(faults_unseen, uci_fault_asked);
}
