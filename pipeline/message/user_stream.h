/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams of bytes between two endpoints, as UCX's: a send is an active message of UCI's own, so that what is received is in order and
 * verified. The n-th endpoint of one side is connected to the n-th of the other, in the order in which they were made.
 *
 *     send --> active message, with the endpoint's number --> a piece, in the stream of that number --> receives, in order; or the program
 *                |                                               ^                                    takes the piece as it is
 *                +-- it does not fit in a frame: fetched first --+
 *
 * Either pieces wait, or receives do: both only while the first piece is being fetched.
 */
#ifndef UCI_USER_STREAM_H_
#define UCI_USER_STREAM_H_

#include "base/peer_table.h"

/** As ucp_stream_send_nbx(). */
ucs_status_ptr_t uci_user_stream_send(uci_ep_t *ep, const void *buffer, size_t count, const ucp_request_param_t *param);

/** As ucp_stream_recv_nbx(). */
ucs_status_ptr_t uci_user_stream_recv(uci_ep_t *ep, void *buffer, size_t count, size_t *length_p,
                                      const ucp_request_param_t *param);

/** As ucp_stream_recv_data_nb(), ucp_stream_data_release(). */
ucs_status_ptr_t uci_user_stream_recv_data(uci_ep_t *ep, size_t *length_p);
void uci_user_stream_release(uci_ep_t *ep, void *data);

/** As ucp_stream_worker_poll(), for the endpoints that are UCI's. @return how many. */
size_t uci_user_stream_poll(uci_worker_t *worker, ucp_stream_poll_ep_t *eps, size_t max);

/** Of uci_own_am_t: bytes of one of the streams from a peer. */
ucs_status_t uci_user_stream_arrived(void *peer, const void *header, size_t header_length, void *data, size_t length,
                                     const ucp_am_recv_param_t *param);

/** The user closes an endpoint: its receives are cancelled, what has arrived is dropped. */
void uci_user_stream_close(const uci_ep_t *ep);

/** Nothing more comes from the peer: receives end with @a status. */
void uci_user_stream_fail(uci_peer_t *peer, ucs_status_t status);

/** The same of this endpoint's alone, which has failed. */
void uci_user_stream_fail_one(const uci_ep_t *ep, ucs_status_t status);

/** The peer goes. */
void uci_user_stream_cleanup(uci_peer_t *peer);

#endif
