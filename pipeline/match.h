/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that arrived before their receive, as far as UCI has to know of them. As a rule they stay in UCX; a
 * probe must report the user's length, so it pulls frames out. It pulls out all of them, in the order of
 * arrival: were only the probed one taken, an older one that matches a later receive too would be overtaken.
 * So all messages here are older than all in UCX, and receives search here first.
 */
#ifndef UCI_MATCH_H_
#define UCI_MATCH_H_

#include "worker.h"

typedef struct uci_message {
    uci_list_t link; /**< in worker->unexpected or, once removed by a probe, worker->probed */
    uci_worker_t *worker;
    uci_frame_t *frame;
    uci_request_t *req; /**< a receive was matched to it while it was still arriving */
    ucp_tag_t tag;
    size_t total;  /**< bytes on the wire */
    size_t length; /**< bytes of the user's message; valid if known */
    uint64_t uid;  /**< who sent it, and its number; valid if known */
    uint32_t seq;
    bool arriving; /**< UCX is still receiving it */
    bool known;    /**< its header could be trusted */
    bool found;    /**< its header could not, and is in `hdr` since its sender was asked */
    ucs_status_t status;
    uci_frame_hdr_t hdr;
} uci_message_t;

/** @return the oldest message that matches, or NULL. */
uci_message_t *uci_match_find(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask);

/** Give a message to a receive; the message is gone afterwards, or goes when it has arrived. */
void uci_match_deliver(uci_message_t *message, uci_request_t *req);

/** As ucp_tag_probe_nb(); the handle is a uci_message_t. */
ucp_tag_message_h uci_match_probe(uci_worker_t *worker, ucp_tag_t tag, ucp_tag_t tag_mask, int remove,
                                  ucp_tag_recv_info_t *info);

/** As ucp_tag_msg_recv_nbx(). */
ucs_status_ptr_t uci_match_recv(uci_worker_t *worker, void *buffer, size_t count, ucp_tag_message_h message,
                                const ucp_request_param_t *param);

/** Is message @a seq of sender @a uid here? */
bool uci_match_has(uci_worker_t *worker, uint64_t uid, uint32_t seq);

void uci_match_cleanup(uci_worker_t *worker);

#endif
