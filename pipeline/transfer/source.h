/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a message's bytes are read from, and what may have changed them since they were digested first. The digest from the first
 * time tells what the message was when it was sent. Bytes that are read again, for a repair or for a second way, are held
 * against it:
 *
 *     the program's buffer, of a send that is pending    the program may have written to it, which MPI forbids and nobody prevents:
 *                                                        what is read for the receiver goes to him as it is now, marked; what is read for
 *                                                        a copy is kept in case that what was read first is damaged on its way, and goes to
 *                                                        him as well if the root, which is that of the last reading, has not been told.
 *                                                        Counted and reported either way
 *     UCI's own copy, of a send that is over             nobody may have written to it: it is damaged, and there is no other one
 *
 * A bounce slot is neither. It is memory that others can write, and so is never read again.
 */
#ifndef UCI_SOURCE_H_
#define UCI_SOURCE_H_

#include "send_op_part.h"

typedef enum {
    UCI_SOURCE_SAME,
    UCI_SOURCE_CHANGED, /**< by the program, now or at an earlier reading; reported */
    UCI_SOURCE_DAMAGED /**< UCI's own copy (logged): the receiver has to be told that there is nothing to repair from */
} uci_source_t;

/**
 * Chunk @a index has been read, and its digest was @a value. Afterwards uci_merkle_leaf() is the digest that goes with it: this one,
 * or, of a damaged copy, still the first one. Ends the job where UCI_ON_CHANGED says so.
 */
uci_source_t uci_source_note(uci_send_op_t *op, uint32_t index, uint64_t value);

/** As uci_source_note(), of the program's buffer, for a copy of UCI's own: what was read first is still on its way, and most often arrives. */
void uci_source_note_copy(uci_send_op_t *op, uint32_t index, uint64_t value);

/**
 * A send is over, and some of its chunks were seen to change (op->changed). Make the record of those that the receiver has as they were, and
 * so knows nothing of; he makes that of the others.
 */
void uci_source_record(uci_send_op_t *op);

/**
 * UCI_CHECK_SOURCES: a send is complete, and its user has not been told. Digest his buffer once more, and report what is not as it was
 * sent. A generic datatype is packed once more.
 */
void uci_source_check(uci_send_op_t *op);

/** Is it UCI's own copy that is read? Then a digest that is known need not be made again to be sent. */
UCI_INLINE bool uci_source_is_own(const uci_send_op_t *op)
{
    return op->buffer == &op->copy_buffer;
}

#endif
