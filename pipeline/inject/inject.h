/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Where faults (UCI_FAULT) enter: between the pipeline and UCX's functions, whose places in uci_ucp this room's take, and where bytes leave for
 * memory that others share, or lie there (base/edge.h). What has been digested and sealed is damaged in a copy that goes in its place, or, target
 * `memory`, where it lies: a slot, a span, a frame in the log, the copy of a message whose user is done. Of one message either what travels is hit
 * or what could repair it, not both: what heals then is the question, and there is no answer to a damaged cure.
 *
 *     rooms above --uci_ucp--> inject_send.c (frames, messages, records) --> UCX
 *     rooms above --uci_ucp--> inject_fetch.c (rendezvous, get)          --> UCX
 *     rooms above --uci_edge-> inject_memory.c (boxes, slots, spans, copies), inject_delivery.c (the user's buffer)
 *
 * The rooms above know of none of this.
 */
#ifndef UCI_INJECT_H_
#define UCI_INJECT_H_

#include "data/buffer.h"

/**
 * Stand at the edges, or leave them, as uci_fault_enabled and uci_fault_asked say now. To be called when uci_ucp has been filled in and
 * uci_fault_init() been called, and again after either; not while others use them.
 */
void uci_inject_install(void);

/**
 * Maybe damage a message that has been verified, where it lies: @a length bytes in the user's buffer of a receive that is about to
 * complete, of any datatype. A generic one is packed from there and unpacked to there once more, by its own functions; one that has none
 * for packing is left alone.
 * @param peer_rank  who has sent it, -1 if unknown.
 * @return whether it did: then the content is another one than was verified.
 */
bool uci_inject_escape(uci_buffer_t *buffer, size_t length, int peer_rank);

/** UCI_MODE=off: @return a damaged copy of a user's message (malloc'ed, *length_p bytes), or NULL: not hit. */
void *uci_inject_user_data(uci_buffer_t *buffer, int peer_rank, size_t *length_p);

#endif
