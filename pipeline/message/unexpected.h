/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that arrived before their receive: verified, and in memory of UCI's; of a large one that is its descriptor. They are
 * in worker->match in the order of their arrival until a receive takes them, or a probe does and holds them by a handle.
 *
 * There is no limit, as in UCX; each is digested once more when it is copied out, so that damage in this process's memory is not
 * delivered.
 *
 * When the sender of a large message closes, and its user takes the message for sent, UCI fetches it although nobody has asked for it
 * (*adopts* it): a receive operation moves it into memory of its own, and whoever asks for it later gets it from there.
 */
#ifndef UCI_UNEXPECTED_H_
#define UCI_UNEXPECTED_H_

#include "base/peer_table.h"
#include "base/request.h"
#include "util/seq.h"
#include "base/signed.h"

struct uci_recv_op;

/** As small as can be: there may be any number of them. */
typedef struct uci_message {
    union {
        uci_match_msg_t match;
        uci_list_t link; /**< instead, in worker->probed while the user holds it by a handle */
    };
    uci_worker_t *worker;
    uci_peer_t *peer;
    uint64_t seq;
    uint64_t length; /**< of the user's message */
    uci_frame_hdr_t hdr;
    ucs_status_t status; /**< UCS_OK, or what to tell who asks for it: it is lost */
    uint8_t cls;         /**< of the frame whose memory it lives in */
    bool lost;
    bool probed;
    bool discarded;     /**< nobody wants it, but it is being adopted */
    bool user_am;       /**< an active message of the program's */
    bool is_signed : 1; /**< `word` tells its types, with what is behind its payload if they are mixed */
    bool is_raw : 1;    /**< of a peer without UCI: UCX has it, by `raw`; its `peer` is NULL (raw.h) */
    bool numbered;      /**< `twin` says which message it is: it was taken by a probe */
    union {
        uci_twin_note_t twin;      /**< see twin.h */
        struct uci_message *other; /**< of an active message of the program's: see user_am.h */
    };
    union {
        uint64_t
                word; /**< see signed.h. (Payload lies at a multiple of 16, which an attribute would ask of list heads, too) */
        ucp_tag_message_h raw;
    };
    uci_request_t *adopted; /**< the receive that moves it here, or has; NULL: none */
    uci_request_t *req;     /**< who has asked for it while it is being adopted; or NULL */
    char *content;          /**< of one that is adopted */
    char payload[];         /**< of an eager one; of a rendezvous its uci_rndv_desc_t */
} uci_message_t;

_Static_assert(offsetof(uci_message_t, payload) % 16 == 0, "as good as malloc() makes it");
_Static_assert(offsetof(uci_message_t, payload) + 16 <= sizeof(uci_frame_t) + 128,
               "a small one fits into the smallest frame");

/**
 * Keep a message that nobody has asked for. @param payload  as many bytes as @a hdr says; others may be able to write there.
 * @return false: its payload is damaged, or there is no memory.
 */
bool uci_unexpected_keep(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** The same of a message that came in a signed frame, opened. */
bool uci_unexpected_keep_signed(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                const uci_sent_types_t *types);

/** The same of one that is lost, with what there is of it. @param status  what to tell who asks for it. */
void uci_unexpected_keep_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length,
                              ucs_status_t status);

/** Is all of a message here, so that a receive of it ends at once? @param message  or NULL. */
bool uci_unexpected_is_here(const uci_message_t *message);

/** @return the oldest message that matches, or NULL. */
UCI_INLINE uci_message_t *uci_unexpected_find(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask)
{
    uci_match_msg_t *msg = uci_match_find_msg(&worker->match, tag, tag_mask);

    return uci_likely(msg == NULL) ? NULL : uci_container_of(msg, uci_message_t, match);
}

/** The same for probes, as worker->find. */
uci_message_t *uci_unexpected_oldest(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask, bool remove);

/** Give a message to a receive; the message is gone afterwards, or goes when it has been adopted. */
void uci_unexpected_deliver(uci_message_t *message, uci_request_t *req);

/** As ucp_tag_probe_nb(); the handle is a uci_message_t. */
ucp_tag_message_h uci_unexpected_probe(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask, int remove,
                                       ucp_tag_recv_info_t *info);

/** As ucp_tag_msg_recv_nbx(). */
ucs_status_ptr_t uci_unexpected_recv(uci_worker_t *worker, void *buffer, size_t count, ucp_tag_message_h message,
                                     const ucp_request_param_t *param);

/** Messages of @a peer that are here, but not finished: a rendezvous that has not been fetched, or one whose sender waits for it to be
 *  matched. @param ranges  room for so many: a range for each, in no order; or NULL.  @return how many. */
size_t uci_unexpected_unfinished(const uci_peer_t *peer, uci_seq_range_t *ranges);

/** Is message @a seq of @a peer here, and not being fetched? */
bool uci_unexpected_has(const uci_peer_t *peer, uint64_t seq);

/** @a peer closes: fetch what it has sent. */
void uci_unexpected_adopt_all(uci_peer_t *peer);

/** The same for message @a seq. @return the operation, NULL: there is no such message. */
struct uci_recv_op *uci_unexpected_adopt(uci_peer_t *peer, uint64_t seq);

/* Active messages of the program's, which nobody matches (user_am.h) */

/** As uci_unexpected_keep(), but it is the caller's. @return NULL: damaged, or no memory. */
uci_message_t *uci_unexpected_take(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** As uci_unexpected_keep_lost(), likewise. */
uci_message_t *uci_unexpected_take_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload,
                                        size_t length, ucs_status_t status);

/** @return one of the same peer and number, with room for @a length bytes; NULL: no memory. */
uci_message_t *uci_unexpected_create_empty(const uci_message_t *like, size_t length);

/** The user holds it by a handle: it goes when the worker goes, if nothing else happens to it. */
void uci_unexpected_hold(uci_message_t *message);

/** Nobody wants it: the sender of a large one is told that its send is over, with @a status. */
void uci_unexpected_refuse(uci_message_t *message, ucs_status_t status);

/** The same with UCS_OK. */
void uci_unexpected_discard(uci_message_t *message);

/** @return what the sender of a large one was told, if it was not UCS_OK, and not long ago. */
ucs_status_t uci_unexpected_refused(const uci_peer_t *peer, uint64_t seq);

/** As ucp_am_recv_data_nbx(): a descriptor is gone afterwards, whatever is returned, and so is what is here if it @a is_over. */
ucs_status_ptr_t uci_unexpected_recv_user_am(uci_message_t *message, void *buffer, size_t count,
                                             const ucp_request_param_t *param, bool is_over);

/* Messages of peers without UCI (raw.h) */

/** One that UCX has; it is the caller's. @return NULL: no memory. */
uci_message_t *uci_unexpected_create_raw(uci_worker_t *worker, ucp_tag_message_h handle,
                                         const ucp_tag_recv_info_t *info);

/** UCX has moved it, or has it back. */
void uci_unexpected_forget(uci_message_t *message);

/** @return one that nobody has received, and that is in no list any more; NULL: there is none. */
uci_message_t *uci_unexpected_next_raw(uci_worker_t *worker);

void uci_unexpected_cleanup(uci_worker_t *worker);

#endif
