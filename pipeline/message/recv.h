/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: from the posted receive to the completed one.
 *
 *     posted --frame arrives, header checked--> EAGER: payload verified while it moves --> done
 *                                        |                        | damaged
 *                                        |                        v
 *                                        |          bound to that number, until the link brings it again (link_recv.h) --> done
 *                                        |
 *                                        +--RNDV--> CTS, DATA... ----------------------> done
 *                                                       | mismatch                        ^
 *                                                       v                                 |
 *                                                   REPAIR (repair.h) --------------------+--> or the policy
 *
 * What nobody has posted a receive for waits in unexpected.h.
 */
#ifndef UCI_RECV_H_
#define UCI_RECV_H_

#include "link/control.h"
#include "base/peer_table.h"
#include "transfer/recv_op_part.h"
#include "base/recv_table.h"
#include "uci_signature.h"

/** Post a receive; @return as ucp_tag_recv_nbx(). */
ucs_status_ptr_t uci_recv(uci_worker_t *worker, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                          const ucp_request_param_t *param);

/** The same with a signature (signed.h), for workers whose receives nobody else decides about. */
ucs_status_ptr_t uci_recv_with(uci_worker_t *worker, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                               const ucp_request_param_t *param, const uci_signature_t *signature);

/** A request for a receive, as uci_recv() makes it before it posts it. @return UCS_OK, or an error. */
ucs_status_t uci_recv_prepare(uci_worker_t *worker, void *buffer, size_t count, const ucp_request_param_t *param,
                              uci_request_t **req_p);

/** The next frame of a peer, for worker->arrived: match it, verify it while it moves to where it belongs, deliver it.
 *  @return false: its payload is damaged (or there is no memory for it), and the link has to bring it again. */
bool uci_recv_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** The same of one that no receive has been posted for. */
bool uci_recv_keep(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** This worker is the program's, and not one of UCI's own: watch what it delivers, if there is something to do then. */
void uci_recv_attach(uci_worker_t *worker);

typedef bool (*uci_recv_arrived_t)(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);

/** @return uci_recv_arrived(), or what does the same for a worker that watches its deliveries (uci_edge.delivered). */
uci_recv_arrived_t uci_recv_arrived_way(const uci_worker_t *worker);

/** The same of one that is lost, for worker->lost. @param payload  @a length bytes that there are of it. */
void uci_recv_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length);

/** The same. @param req  the receive that it is for; NULL: none. */
void uci_recv_lose(uci_peer_t *peer, uci_request_t *req, const uci_frame_hdr_t *hdr, const char *payload,
                   size_t length);

/** QUERY: the sender asks where this side is with its message. @param slot  of its receive, as far as the sender knows: any number. */
void uci_recv_on_query(uci_peer_t *peer, uint64_t seq, uint32_t slot);

#endif
