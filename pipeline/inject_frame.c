/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_frame.h"

#include <stdlib.h>

#include "frame.h"
#include "send_op.h"

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

void uci_inject_bytes(const uci_fault_t *fault, void *data, size_t length)
{
    uci_fault_t flip = {.kind = UCI_FAULT_BITFLIP, .random = fault->random};
    uint64_t before  = XXH3_64bits(data, length);
    size_t left      = uci_fault_apply(fault, data, length, NULL);

    memset((char *)data + left, 0, length - left);
    if (XXH3_64bits(data, length) == before) {
        uci_fault_apply(&flip, data, length, NULL);
    }
}

/* Not the mark, which its carrier writes. @return bytes that are left. */
static uint32_t uci_inject_frame_header(const uci_fault_t *fault, uci_frame_t *frame)
{
    size_t mark = sizeof(uci_frame_hdr(frame)->mark);

    if (fault->kind == UCI_FAULT_TRUNCATE) {
        return (uint32_t)(fault->random % sizeof(uci_frame_hdr_t));
    }
    uci_inject_bytes(fault, frame->wire + mark, sizeof(uci_frame_hdr_t) - mark);
    return frame->total;
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

uci_frame_t *uci_inject_frame(uci_frame_t *frame)
{
    uci_worker_t *worker       = frame->peer->worker;
    const uci_frame_hdr_t *hdr = uci_frame_hdr(frame);
    uint64_t length            = (frame->op != NULL) ? frame->op->length : hdr->length;
    int rank                   = uci_peer_rank(frame->peer);
    uci_fault_t payload, header;
    bool hit_payload, hit_header;
    uci_frame_t *clone;
    size_t left;

    hit_payload = uci_inject_has_payload(hdr) && uci_fault_draw(UCI_FAULT_PAYLOAD, length, rank, &payload);
    hit_header  = uci_fault_draw(UCI_FAULT_HEADER, length, rank, &header);
    clone       = (hit_payload || hit_header) ? uci_frame_clone(&worker->frames, frame) : NULL;
    if (clone == NULL) {
        uci_inject_remember(uci_frame_payload(frame), hdr->length);
        return NULL;
    }
    if (hit_payload) {
        left = uci_fault_apply(&payload, uci_frame_payload(clone), hdr->length, uci_inject_stale(frame->total));
        clone->total -= (uint32_t)(hdr->length - left);
    }
    if (hit_header) {
        left         = uci_inject_frame_header(&header, clone); /* once: uci_min() evaluates its arguments twice */
        clone->total = uci_min(clone->total, (uint32_t)left);
    }
    uci_inject_remember(uci_frame_payload(frame), hdr->length);
    return clone;
}

uci_inject_order_t uci_inject_order(const uci_frame_t *frame)
{
    uci_fault_t fault;

    if (!uci_fault_targets(UCI_FAULT_FRAME) ||
        !uci_fault_draw(UCI_FAULT_FRAME, frame->total, uci_peer_rank(frame->peer), &fault)) {
        return UCI_INJECT_IN_ORDER;
    }
    return (uci_inject_order_t)(UCI_INJECT_DROP + (fault.random % 3));
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
