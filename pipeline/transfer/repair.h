/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Repair: only the chunks that arrived damaged are fetched again, all in one batch, up a ladder:
 *
 *     GET   the sender tells where they are (GRANT); the receiver reads them with ucp_get_nbx, by RDMA where the
 *           transport has it. Only for rendezvous: the sender's buffer is valid until FIN. Where gets are RDMA the
 *           sender tells this for the whole message before it sends the first chunk: then the first attempt takes no
 *           work of the sender's processor. If that does not help, it is asked.
 *     COPY  the sender sends them as active messages. Several attempts.
 *     then  the policy UCI_ON_ERROR, after a full report.
 *
 * The sender digests its source again for each repair and holds it against the first digest (source.h), so that what its program has
 * changed meanwhile is told apart from what was damaged in flight, and a copy of UCI's own that is damaged itself repairs nothing.
 */
#ifndef UCI_REPAIR_H_
#define UCI_REPAIR_H_

#include "base/verdict.h"
#include "base/peer.h"
#include "base/request.h"
#include "recv_op_part.h"
#include "send_op_part.h"

/** See whether all has arrived: complete, or start repairing. */
void uci_recv_op_advance(uci_recv_op_t *op);

/** Count something that is wrong and will stay so, of which it is not known which chunk it is. */
void uci_repair_count_lost(void);

/** Nothing has come for a while, or something was dropped (@a damaged): ask again for what is due. */
void uci_repair_ask_again(uci_recv_op_t *op, bool damaged);

/** Our end of the endpoint has closed: ask its peer now for what has not come, since UCX drops what came too late for it. */
void uci_repair_ask_dropped(uci_peer_t *peer);

/** Everything has been repaired (or nothing had to be): report. */
void uci_repair_healed(uci_recv_op_t *op);

/** Nothing helps: report, then do as the policy says. The operation is over afterwards. */
void uci_repair_failed(uci_recv_op_t *op, uci_reason_t reason);

/** What to tell the user of a message that can't be verified: by UCI_ON_ERROR; does not return for `abort`. */
ucs_status_t uci_repair_policy(void);

/** The same of a message of which bytes are missing: what is handed out from memory of UCI's, or is data of an active message, then ends with
 *  an error under `log` too, which is about bytes that came. */
ucs_status_t uci_repair_policy_missing(const uci_request_t *req);

/** Memory of UCI's for a message that is to come: `log` may deliver what a damaged part of it has never been written to. */
void uci_repair_blank(void *memory, size_t length);

/** A get has ended, and with the last one the key goes. The operation is to be advanced then: what is still bad is asked
 *  for again. */
void uci_repair_get_unpin(uci_recv_op_t *op);

/** Sender: the receiver, which has been given this number @a hdr->op there, lacks @a count chunks. */
void uci_repair_answer(uci_send_op_t *op, const uci_am_hdr_t *hdr, const uint32_t *indexes, uint32_t count);

/** The sender asks where we are with it. */
void uci_repair_hear_query(uci_recv_op_t *op);

#endif
