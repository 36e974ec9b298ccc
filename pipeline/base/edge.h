/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Where bytes that have been digested leave for memory which others share, or come from there: whoever wants to see them there, or change
 * them, stands at these places. The rooms above don't know who it is; in a process without faults it is nobody, and all members are NULL.
 * What goes through UCX is met in uci_ucp, the table of its functions. Written by pipeline/inject alone.
 */
#ifndef UCI_EDGE_H_
#define UCI_EDGE_H_

#include "util/types.h"

struct uci_frame;
struct uci_peer;
struct uci_request;
struct uci_send_op;
struct uci_slot;
struct uci_worker;

typedef struct uci_edge {
    /** Post a frame to its place in a box, with its mark: instead of uci_box_tx_post(). */
    void (*post)(struct uci_frame *frame, char *place, uint64_t mark);

    /** A slot of our own is about to be filled with what @a mark says; its last content goes. */
    void (*slot_begins)(struct uci_worker *worker, struct uci_slot *slot, uint64_t mark);

    /** Chunk @a index of @a op lies in it, described and checked, but not marked yet. */
    void (*slot_filled)(struct uci_send_op *op, struct uci_slot *slot, uint64_t mark, uint32_t index);

    /** It is marked now: its reader may be there already. */
    void (*slot_marked)(struct uci_send_op *op, struct uci_slot *slot, uint64_t mark, uint32_t index);

    /** Reader: a slot of the peer's, found marked with @a mark, is about to be read. */
    void (*slot_taken)(struct uci_slot *slot, uint64_t mark);

    /** All slots of the worker go. */
    void (*slots_end)(struct uci_worker *worker);

    /** @a length bytes of @a op lie in a span, to be offered. */
    void (*span_filled)(struct uci_send_op *op, void *span, size_t length);

    /** What is left of @a op to be read, in slots, has been copied: its user is done. */
    void (*copied)(struct uci_send_op *op);

    /**
     * A message that was received whole and verified, @a length bytes, lies in the user's buffer of @a req, which is about to complete. Asked for
     * when a worker is attached to (uci_recv_attach()). Not for those that are cut off, or could not be repaired.
     */
    void (*delivered)(struct uci_request *req, const struct uci_peer *peer, size_t length);

    /** Nothing more goes to this peer, which is about to be freed. */
    void (*peer_ends)(struct uci_peer *peer);
} uci_edge_t;

extern uci_edge_t uci_edge;

#endif
