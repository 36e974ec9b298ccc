/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The record layer: what UCI says by active message to a worker that seals (peer->seals) goes through here, and comes back through
 * sealed_recv.h. Above it nothing changes: frames and messages keep their headers, digests and numbers, since these bind the log, the source
 * and the user's memory to what was first sent, which a seal on the wire can't. A record that does not open is dropped and counted, as
 * what arrives damaged is, and what was in it comes again as another record.
 *
 *     link_send.c, control.c --uci_sealed_send()--> UCX ... UCX --sealed_recv.c--> link_recv.c, control.c
 *     superpipe.c, chunks in a span --uci_sealed_close_chunk()--> UCX's rendezvous --uci_sealed_open_chunk()--> superpipe.c
 *
 * Where both workers share a node and UCI_SEAL_SCOPE is net (peer->in_clear), they use what is the node's own as ever: the mailbox, slots,
 * and what UCX fetches. Their active messages are records all the same: an adapter does not tell who a message came from, so that whoever may
 * connect to a worker could speak as its neighbour. With all others, or with scope all, there is nothing but records.
 */
#ifndef UCI_SEALED_H_
#define UCI_SEALED_H_

#include "base/peer.h"
#include "base/worker_state.h"

/** What goes into a record, and beside it. */
typedef struct uci_sealed_out {
    uci_peer_t *peer;
    uci_sealed_kind_t kind;
    const void *head; /**< first of the sealed bytes, UCI_SEALED_HEAD_MAX at most */
    size_t head_length;
    const void *body; /**< all others */
    size_t body_length;
    const void *clear; /**< HELLO: goes before the record */
    size_t clear_length;
    const void *data; /**< OFFER: what is offered; stays where it is until the callback */
    size_t data_length;
} uci_sealed_out_t;

/** A record that UCX has, in memory of a frame: in front of the bytes that it sends. */
typedef struct uci_sealed {
    uci_frame_t *memory;
    uci_worker_t *worker;
    uci_sealed_kind_t kind;
    ucp_send_nbx_callback_t cb;
    void *user_data; /**< of the frame or message that it holds */
    char bytes[];
} uci_sealed_t;

#define UCI_SEALED_HEAD_MAX sizeof(uci_am_hdr_t)

/**
 * As ucp_am_send_nbx(): seal it, and send the record. What was sealed is the caller's again, but `data`; who waits for the callback waits
 * until UCX lets go of the record.
 */
ucs_status_ptr_t uci_sealed_send(ucp_ep_h ep, const uci_sealed_out_t *out, const ucp_request_param_t *param);

/** @return the first of @a count counters that follow each other and are now the caller's, for one record each. */
uint64_t uci_sealed_take(uci_peer_t *peer, unsigned count);

/** Bytes of UCX's data for a segment of so many bytes, in so many chunks. */
UCI_INLINE size_t uci_sealed_segment(const uci_peer_t *peer, size_t length, size_t chunks)
{
    return length + (peer->in_clear ? 0 : chunks * UCI_SEALED_OVERHEAD);
}

/** Make a record of a chunk where it lies: @a length bytes from record + UCI_SEALED_FRONT on. @return false: no seal, and no record. */
bool uci_sealed_close_chunk(uci_peer_t *peer, uint64_t counter, char *record, uint32_t length);

/** The other way. @return false: rejected, and counted; what is there must not be used. */
bool uci_sealed_open_chunk(uci_peer_t *peer, uint64_t counter, char *record, uint32_t length);

/** A record, opened in memory of our own. */
typedef struct uci_sealed_in {
    uci_frame_t *memory; /**< to be given to uci_frame_put() */
    uint64_t kind;       /**< uci_sealed_kind_t, if it is one */
    char *body;          /**< at a multiple of 8 */
    size_t length;
} uci_sealed_in_t;

/**
 * Open a record.
 * @param shared  others may write to where it lies meanwhile.
 * @return UCI_OK; as uci_seal_open(): UCI_ERR_CORRUPT, UCI_ERR_NO_ELEM, UCI_ERR_NO_MEMORY. Nothing is counted.
 */
uci_status_t uci_sealed_open(uci_worker_t *worker, uci_seal_pair_t *pair, bool shared, const void *record,
                             size_t length, uci_sealed_in_t *in_p);

/** What to say of a record that was rejected for @a status. */
const char *uci_sealed_why(uci_status_t status);

/** Count that something of @a who is rejected, and warn, now and then. */
void uci_sealed_reject(const char *who, const char *why);

#endif
