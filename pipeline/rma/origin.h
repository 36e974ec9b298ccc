/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What an origin waits for.
 */
#ifndef UCI_RMA_ORIGIN_H_
#define UCI_RMA_ORIGIN_H_

#include "rma.h"

/** An operation that brings something back. */
typedef struct uci_rma_fetch {
    uci_list_t link;  /**< in fetches of its peer */
    uci_peer_t *peer; /**< NULL: that has gone */
    uci_rma_header_t what;
    uci_request_t *req; /**< with the buffer that it goes into */
    size_t got;         /**< bytes of it that are here, of what comes in pieces */
    char *staging;      /**< of a large one whose buffer is not contiguous; or NULL */
    bool replied;       /**< it is being fetched */
    bool over;          /**< it is here, or never will be: it ends when all before it have */
    ucs_status_t status;
} uci_rma_fetch_t;

/** Operands and what is fetched by a word have room in a frame, whatever UCI_EAGER_MAX is. */
#define UCI_RMA_FRAME_MIN 256u

/** @return bytes that go in one frame behind a header of @a header bytes. */
UCI_INLINE size_t uci_rma_frame_room(const uci_peer_t *peer, size_t header)
{
    return uci_max(peer->eager_max, UCI_RMA_FRAME_MIN) - header - UCI_USER_AM_ALIGN;
}

/**
 * What goes to, or comes from, another process that shares no memory with it, and is not much more than a frame takes, goes in frames: it is there
 * sooner than the answer to a descriptor. @param header  bytes. @return how many bytes go in each; 0: all go at once.
 */
size_t uci_rma_piece(uci_peer_t *peer, size_t length, size_t header);

/** An operation that does nothing, behind all others: its number shows whether one before it is lost. */
void uci_rma_probe(uci_peer_t *peer);

/** The peer goes: what waits for it is forgotten. */
void uci_rma_fetch_cleanup(uci_peer_t *peer);

#endif
