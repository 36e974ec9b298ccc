/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A whole message of a generic datatype, packed and unpacked by one call, or in pieces as UCX has it done.
 *
 * Neither is right for all: MPICH 4.0's engine (yaksa) has loops made for some datatypes, which it takes for whole messages only.
 * They pack 10 KiB of a vector of doubles in a fifth of the time, and the same of 8 blocks of bytes, byte by byte, in five
 * times the time. So of each datatype the first message that is long enough is packed both ways, some times, and the faster one is taken
 * from then on; so it is with unpacking.
 */
#ifndef UCI_PACKER_H_
#define UCI_PACKER_H_

#include "ordered.h"

/** Bytes of a piece, and what is packed by one call in any case. As UCX's fragments over shared memory and tcp. */
#define UCI_PACKER_PIECE 8192

/** Ways are compared by messages up to this, in bytes. */
#define UCI_PACKER_LEARN_MAX (64u << 10)

typedef enum {
    UCI_PACKER_UNKNOWN,
    UCI_PACKER_PIECES, /**< these are faster by a quarter or more */
    UCI_PACKER_EITHER, /**< it makes no great difference: whole messages are packed by one call */
    UCI_PACKER_WHOLE   /**< a whole message takes half of the time, or less */
} uci_packer_way_t;

/** @return how the datatype of a buffer to send is packed best; found out if need be, which takes some times as long as packing. */
uci_packer_way_t uci_packer_way(uci_buffer_t *buf);

/**
 * Pack @a length bytes of @a buf, a generic one to send, from @a offset on into @a dst; all of it by the faster way.
 * @return as uci_ordered_pack().
 */
ucs_status_t uci_packer_pack(uci_buffer_t *buf, size_t offset, void *dst, size_t length);

/** Pack the next @a length bytes in pieces. @param border_p  the one behind them. @return as uci_ordered_pack(). */
ucs_status_t uci_packer_pack_pieces(uci_ordered_t *ordered, uci_buffer_t *buf, char *dst, size_t length,
                                    uci_border_t *border_p);

/** Unpack into @a buf, a generic one to receive into, as uci_packer_pack(); but in pieces for an MPI only, whose unpackers take or refuse a
 *  part of an element: another one might leave it out, and say nothing. @return the unpacker's status. */
ucs_status_t uci_packer_unpack(uci_buffer_t *buf, size_t offset, const void *src, size_t length);

#endif
