/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages of the program's own: frames of the link, verified and in order as messages are, which find a handler instead of a
 * receive. What the program sees is what UCX shows it, called from progress only.
 *
 *     sender    header and data fit in a frame       one frame, EAGER
 *               they do not, or the program says so  a frame with the header, then a descriptor, and its data as of any large message
 *
 *     receiver  a frame arrives --> a message in memory of UCI's, in the queue of its peer --> its handler, in the next step of progress
 *                                       |                                                      |
 *                                       +-- RNDV: with the descriptor as `other` --------------+--> FLAG_RNDV: the program receives the data,
 *                                                  |                                                or lets it be
 *                                                  +-- EAGER, or an old handler: fetched first; what the same peer has sent later waits
 *
 * Who wants to keep data keeps the message: a pointer to data, or the descriptor, is message->payload.
 */
#ifndef UCI_USER_AM_H_
#define UCI_USER_AM_H_

#include "base/peer_table.h"
#include "unexpected.h"

/**
 * The program sets, replaces or (a callback that is NULL) takes away the handler of an id.
 * @return UCS_OK; UCS_ERR_NO_MEMORY (logged).
 */
ucs_status_t uci_user_am_set_handler(uci_worker_t *worker, uint16_t id, const uci_user_am_handler_t *handler);

/** @return what UCX's handler of an id is given, for as long as the worker lives; NULL: no memory (logged). */
uci_user_am_ucx_t *uci_user_am_ucx(uci_worker_t *worker, uint16_t id);

/** Bytes that a header has at most, since it travels in one frame, whatever UCI_EAGER_MAX is. @param max  what UCX says. */
size_t uci_user_am_max_header(size_t max);

/** As ucp_am_send_nbx(). */
ucs_status_ptr_t uci_user_am_send(uci_ep_t *ep, unsigned id, const void *header, size_t header_length,
                                  const void *buffer, size_t count, const ucp_request_param_t *param);

/**
 * The same of one of UCI's own (a row of the worker's table: called as a program's handler is, with the uci_peer_t that it is from for
 * @a arg, and no reply endpoint): what does not fit in a frame its handler receives itself, as one of a rendezvous.
 * @param flags  UCP_AM_SEND_FLAG_REPLY: its handler is called when there is an endpoint to answer by (uci_peer_ep_staying()).
 *               UCP_AM_SEND_FLAG_EAGER: it goes in one frame, whatever UCI_EAGER_MAX is, and @a buffer is copied; so it has to fit, as a header.
 * @param param  its flags are not looked at.
 */
ucs_status_ptr_t uci_user_am_send_own(uci_ep_t *ep, uci_own_am_t id, uint32_t flags, const void *header,
                                      size_t header_length, const void *buffer, size_t count,
                                      const ucp_request_param_t *param);

/** As ucp_am_recv_data_nbx(). */
ucs_status_ptr_t uci_user_am_recv_data(uci_worker_t *worker, void *desc, void *buffer, size_t count,
                                       const ucp_request_param_t *param);

/** As ucp_am_data_release(). */
void uci_user_am_release(uci_worker_t *worker, void *data);

/** The next frame of a peer: as uci_recv_arrived(). */
bool uci_user_am_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** It is lost. @param hdr  its kind is plain.  @param payload  @a length bytes that there are of it.  @param status  the policy's. */
void uci_user_am_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length,
                      ucs_status_t status);

/** Call the handlers of what has arrived, in order for each peer. @return how many. */
unsigned uci_user_am_progress(uci_worker_t *worker);

/** The peer, the worker goes. */
void uci_user_am_cleanup(uci_peer_t *peer);
void uci_user_am_worker_cleanup(uci_worker_t *worker);

#endif
