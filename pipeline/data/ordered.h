/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A generic datatype's message, packed and unpacked in order, one chunk after the other, so that the sender packs while the
 * receiver unpacks. Chunks end at fixed offsets, but packers need not be able to stop there: MPICH's stop where an element
 * ends, and refuse to unpack a part of one. UCX makes its fragments as long as the packer likes; our chunks carry the
 * beginning of an element at their end and the rest of it in front of the next one, and say so (the cut):
 *
 *     elements     |  ...  |  ...  | a element |  ...          ...  | another |
 *     chunks       |       tail of 2 bytes ->|<- head of 7 bytes      ->|
 *
 * The sender packs what surrounds the border into a carry of its own; the receiver keeps the tail in a carry until the head
 * has come. A sender that does not know (its buffer is contiguous) says 0, no part of an element: most unpackers take any bytes
 * in their order. Where one refuses, or chunks come in another order, or damaged, the rest of the message is
 * collected and unpacked at its end (uci_recv_op_collect()). So it is where a border cuts an element too large for the receiver's carry,
 * a record for instance: the sender's carry grows to what it needs, and the cut says UCI_CUT_LARGE.
 */
#ifndef UCI_ORDERED_H_
#define UCI_ORDERED_H_

#include "buffer.h"

/** Bytes of elements at a border that the receiver carries; the largest element of MPI has 32. */
#define UCI_CARRY_MAX 64

/** A head or a tail of UCI_CARRY_MAX bytes or more, or that is not all of what it is part of: to be collected. */
#define UCI_CUT_LARGE 0xff

/** Bytes of a chunk that belong to elements begun before it (head, low 8 bits) and that go on after it (tail). */
typedef uint16_t uci_cut_t;

/** The same of the border behind a chunk: its own tail (upper 8 bits), and the head of the next one (low 8 bits). */
typedef uint16_t uci_border_t;

#define UCI_BORDER_UNKNOWN ((uci_border_t)((UCI_CUT_LARGE << 8) | UCI_CUT_LARGE)) /**< to be collected */

typedef struct uci_ordered {
    uint64_t offset; /**< all before it has been packed or unpacked, in bytes of the packed form */
    size_t carry_length;
    size_t carry_at; /**< sender: where what the next chunk begins with lies in the carry */
    char *large;     /**< sender: the carry, if carry[] is too small; or NULL */
    char carry
            [UCI_CARRY_MAX]; /**< sender: bytes before `offset`, for the next chunks; receiver: bytes from `offset` on */
} uci_ordered_t;

UCI_INLINE uint32_t uci_cut_head(uci_cut_t cut)
{
    return cut & 0xff;
}

UCI_INLINE uint32_t uci_cut_tail(uci_cut_t cut)
{
    return cut >> 8;
}

/**
 * Pack the next @a length bytes of @a buf, a generic one, into @a dst.
 * @param ordered  zeroed before the first chunk; uci_ordered_cleanup() when there are no more.
 * @param cut_p    of this chunk.
 * @return UCS_OK; UCS_ERR_NO_MEMORY; or what is wrong with the packer (uci_ordered_pack_some()). All errors are logged, and final: how far
 *         it got is not known.
 */
ucs_status_t uci_ordered_pack(uci_ordered_t *ordered, uci_buffer_t *buf, void *dst, size_t length, uci_cut_t *cut_p);

/**
 * As much of @a length bytes from @a offset on, where an element begins, as the packer likes to give: it may stop where one ends.
 * @param done_p  bytes packed; 0: not even one element fits.
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM (logged): it gave more than it was asked for.
 */
ucs_status_t uci_ordered_pack_some(const uci_buffer_t *buf, size_t offset, char *dst, size_t length, size_t *done_p);

/** Release what the sender's carry needed. */
void uci_ordered_cleanup(uci_ordered_t *ordered);

/**
 * The same where others can write to @a dst (slots, spans), with the digest of what was packed. A packer writes there what would have
 * to be read again for the digest, and what somebody writes there in between would get a right one: so it packs into a copy, which is
 * digested in the pass that brings it to @a dst.
 */
ucs_status_t uci_ordered_pack_shared(uci_ordered_t *ordered, uci_buffer_t *buf, void *dst, size_t length,
                                     const uci_digest_ops_t *digest, uci_cut_t *cut_p, uint64_t *value_p);

/** @return what a cut says of a head or tail of @a length bytes. */
UCI_INLINE uci_cut_t uci_cut_part(size_t length)
{
    return (length < UCI_CARRY_MAX) ? (uci_cut_t)length : UCI_CUT_LARGE;
}

/** @return the border behind the chunk that was packed last, whose cut is @a cut. */
UCI_INLINE uci_border_t uci_ordered_border(const uci_ordered_t *ordered, uci_cut_t cut)
{
    return (uci_border_t)((cut & 0xff00) | uci_cut_part(ordered->carry_length));
}

/** @return the cut of a chunk between two borders; 0: nothing is cut there, or not known. */
UCI_INLINE uci_cut_t uci_cut_between(uci_border_t before, uci_border_t behind)
{
    return (uci_cut_t)((before & 0xff) | (behind & 0xff00));
}

/** Is the byte at @a offset of the packed form the next one to be packed? */
UCI_INLINE bool uci_ordered_is_next_out(const uci_ordered_t *ordered, uint64_t offset)
{
    return ordered->offset == offset + ordered->carry_length;
}

/** Is the byte at @a offset of the packed form the next one to be unpacked? */
UCI_INLINE bool uci_ordered_is_next(const uci_ordered_t *ordered, uint64_t offset)
{
    return ordered->offset + ordered->carry_length == offset;
}

/**
 * Unpack the next @a length bytes, verified before, into @a buf, a generic one.
 * @return false: that is refused, and @a ordered as before. Some of these bytes may be unpacked already, which does no
 *         harm when they are again, from ordered->offset on.
 */
bool uci_ordered_unpack(uci_ordered_t *ordered, uci_buffer_t *buf, const void *src, size_t length, uci_cut_t cut);

#endif
