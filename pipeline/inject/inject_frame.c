/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_out.h"

#include <stdlib.h>

#include "inject_bytes.h"
#include "live/stats.h"

static const uci_frame_hdr_t *uci_inject_hdr(const uci_frame_t *frame)
{
    return (const uci_frame_hdr_t *)(const void *)frame->wire;
}

/* What is not in the log is a copy that is sent again */
static bool uci_inject_is_again(const uci_frame_t *frame)
{
    return !(frame->flags & UCI_FRAME_LOGGED);
}

/* The payload of a rendezvous frame is UCI's descriptor: that is a header to the user */
static bool uci_inject_has_payload(const uci_frame_hdr_t *hdr)
{
    return (uci_frame_kind(hdr->kind) != UCI_FRAME_RNDV) && (hdr->length > 0);
}

static bool uci_inject_draw_frame(uci_fault_target_t target, const uci_frame_t *frame, uci_fault_t *fault_p)
{
    uint64_t length = (frame->op != NULL) ? frame->op->length : uci_inject_hdr(frame)->length;

    return uci_fault_draw(target, length, uci_peer_rank(frame->peer), fault_p);
}

uci_inject_order_t uci_inject_order(const uci_frame_t *frame, bool may_wait)
{
    uci_fault_t fault;

    if (uci_inject_is_again(frame) ||
        !uci_fault_draw(UCI_FAULT_FRAME, frame->total, uci_peer_rank(frame->peer), &fault)) {
        return UCI_INJECT_IN_ORDER;
    }
    return may_wait ? (uci_inject_order_t)(UCI_INJECT_DROP + (fault.random % 3)) : UCI_INJECT_DROP;
}

/* Not the mark, which its carrier writes. @return bytes left */
static size_t uci_inject_frame_header(const uci_fault_t *fault, char *wire, size_t total, bool in_place)
{
    size_t mark = sizeof(((uci_frame_hdr_t *)NULL)->mark);

    if (!in_place && (fault->kind == UCI_FAULT_TRUNCATE)) {
        return fault->random % sizeof(uci_frame_hdr_t);
    }
    uci_inject_bytes(fault, wire + mark, sizeof(uci_frame_hdr_t) - mark);
    return total;
}

static size_t uci_inject_frame_payload(const uci_fault_t *fault, char *wire, size_t total, size_t length, bool in_place)
{
    const void *stale = uci_inject_stale(total);
    char *payload     = wire + sizeof(uci_frame_hdr_t);

    if (in_place) {
        uci_inject_in_place(fault, payload, length, stale);
        return total;
    }
    return total - (length - uci_fault_apply(fault, payload, length, stale));
}

/* A box takes whole cache lines of it */
static char *uci_inject_wire_copy(const uci_frame_t *frame)
{
    char *wire = aligned_alloc(UCI_CACHE_LINE, uci_align_up((size_t)frame->total, UCI_CACHE_LINE));

    return (wire != NULL) ? memcpy(wire, frame->wire, frame->total) : NULL;
}

/* What repairs bring */
static char *uci_inject_frame_again(const uci_frame_t *frame, size_t *length_p)
{
    const uci_frame_hdr_t *hdr = uci_inject_hdr(frame);
    uci_fault_t fault;
    char *wire;

    if (!uci_inject_draw_frame(UCI_FAULT_REPAIR, frame, &fault)) {
        return NULL;
    }
    wire = uci_inject_wire_copy(frame);
    if (wire == NULL) {
        uci_fault_undo();
    } else if (hdr->length > 0) {
        uci_inject_bytes(&fault, wire + sizeof(*hdr), hdr->length);
    } else {
        (void)uci_inject_frame_header(&fault, wire, frame->total, true);
    }
    *length_p = frame->total;
    return wire;
}

static char *uci_inject_frame_first(const uci_frame_t *frame, bool in_place, size_t *length_p)
{
    const uci_frame_hdr_t *hdr = uci_inject_hdr(frame);
    uci_fault_t payload, header;
    bool hit_payload, hit_header;
    size_t length = frame->total;
    char *wire;

    hit_payload = uci_inject_has_payload(hdr) && uci_inject_draw_frame(UCI_FAULT_PAYLOAD, frame, &payload);
    hit_header  = uci_inject_draw_frame(UCI_FAULT_HEADER, frame, &header);
    wire        = (hit_payload || hit_header) ? uci_inject_wire_copy(frame) : NULL;
    if (wire == NULL) {
        uci_inject_undo(hit_payload + hit_header);
        return NULL;
    }
    if (hit_payload) {
        length = uci_inject_frame_payload(&payload, wire, length, hdr->length, in_place);
    }
    if (hit_header) {
        length = uci_inject_frame_header(&header, wire, length, in_place);
        UCI_STATS_ADD(faults_unseen, hit_payload); /* nobody reads the payload behind it */
    }
    *length_p = length;
    return wire;
}

char *uci_inject_frame(const uci_frame_t *frame, bool in_place, size_t *length_p)
{
    char *wire;

    if (uci_inject_is_again(frame)) {
        return uci_inject_frame_again(frame, length_p);
    }
    wire = uci_inject_frame_first(frame, in_place, length_p);
    uci_inject_remember(frame->wire + sizeof(uci_frame_hdr_t), uci_inject_hdr(frame)->length);
    return wire;
}

bool uci_inject_is_frame_hit(const uci_frame_t *frame, uci_fault_t *fault_p)
{
    if (uci_inject_is_again(frame)) {
        return uci_inject_draw_frame(UCI_FAULT_REPAIR, frame, fault_p);
    }
    return (uci_inject_has_payload(uci_inject_hdr(frame)) &&
            uci_inject_draw_frame(UCI_FAULT_PAYLOAD, frame, fault_p)) ||
           uci_inject_draw_frame(UCI_FAULT_HEADER, frame, fault_p);
}

void uci_inject_log(uci_frame_t *frame)
{
    const uci_frame_hdr_t *hdr = uci_frame_hdr(frame);
    uci_fault_t fault;

    if (!uci_inject_is_again(frame) && (uci_frame_kind(hdr->kind) != UCI_FRAME_RNDV) && (hdr->length > 0) &&
        uci_fault_draw(UCI_FAULT_MEMORY, hdr->length, uci_peer_rank(frame->peer), &fault)) {
        uci_inject_bytes(&fault, uci_frame_payload(frame), hdr->length);
    }
}
