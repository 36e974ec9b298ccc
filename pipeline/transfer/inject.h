/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Where faults enter: what has been digested and sealed is damaged in a copy that goes on the wire in its place, or, target
 * `memory`, where it lies: a slot, a span, a frame in the log, the copy of a message whose user is done. Of one message either what
 * travels is hit or what could repair it, not both: what heals then is the question, and there is no answer to a damaged cure.
 */
#ifndef UCI_INJECT_H_
#define UCI_INJECT_H_

#include "link/slot.h"
#include "link/control.h"
#include "base/inject_frame.h"
#include "recv_op_part.h"
#include "send_op_part.h"

/** Where a message has been hit. */
typedef enum {
    UCI_INJECTED_WAY  = 1 << 0, /**< on its way, or in a slot or span */
    UCI_INJECTED_COPY = 1 << 1  /**< the copy it could be repaired from */
} uci_injected_t;

/**
 * Maybe damage a chunk about to be sent: @a msg describes it, its header is not sealed yet. The copy that is
 * damaged becomes msg->staging.
 */
void uci_inject_chunk(uci_send_op_t *op, uci_control_t *msg, uint32_t index);

/** Maybe damage a chunk in its slot, which will be marked with @a mark. */
void uci_inject_slot(uci_send_op_t *op, uci_slot_t *slot, uint64_t mark, uint32_t index);

/** Maybe damage @a length bytes that lie sealed in a slot, marked with @a mark, if nobody has begun to read them. */
void uci_inject_slot_memory(uci_send_op_t *op, uci_slot_t *slot, uint64_t mark, size_t length);

/** Maybe damage @a length bytes of a message that lie sealed in a span. */
void uci_inject_memory(uci_send_op_t *op, void *data, size_t length);

/** A message in slots has been copied, since its user is done: maybe damage one of its slots now, or the copy. */
void uci_inject_copy(uci_send_op_t *op);

/** Maybe damage what LEAVES tells of a message by segments. */
void uci_inject_leaves(const uci_send_op_t *op, uci_control_t *msg, uint32_t count);

/** Maybe let one of the words of NODES lie, or the root. */
void uci_inject_nodes(const uci_send_op_t *op, uci_control_t *msg);

/** Maybe damage chunks of a segment as it arrives: between the two users' buffers there is no place of ours. */
void uci_inject_segment(const uci_recv_op_t *op, char *data, uint32_t length);

/** Maybe damage the chunk that a repair by get has brought. */
void uci_inject_repair_get(const uci_recv_op_t *op, void *data, size_t length);

/** Is the receiver to be granted a wrong region for a get of this operation's chunks? */
bool uci_inject_region_draw(const uci_send_op_t *op);

/** Make a wrong region of memory that holds copies of chunks: no byte stays what it was. */
void uci_inject_region(void *memory, size_t length);

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
