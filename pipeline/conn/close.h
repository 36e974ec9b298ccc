/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Closing: the end of a conversation. A user closes his last endpoint to a peer (or, in MPI_Finalize, all of them) when his own
 * sends and receives are over; that is not yet the end for us. What a side may still owe the other one, and what proves that
 * it is settled:
 *
 *     owed                                              settled by
 *     -----------------------------------------------   ---------------------------------------------------------
 *     a frame of a send that is over: only our log      the peer has verified it, received by its user or not (an
 *     could repair it                                    acknowledgement, or a report)
 *     a large message that was copied and completed     the peer has finished it (FIN, or a report): what its user has
 *     (buffered), matched or not                        not asked for it adopts when it hears LEAVE (unexpected.h)
 *     a segment that UCX offers, memory that the peer   the peer has finished the message; or it has said BYE. Nothing
 *     has been told it may read                         else: a fetch can't be called back, and one whose other end has
 *                                                       gone never ends
 *     FIN of what we have received                      an answer to a LEAVE that was sent after it: LEAVE, MISSING and
 *                                                       BYE report all that is finished, as all FINs together do
 *     messages that UCX has not let go of               UCX's callback
 *     what the peer (it has said LEAVE) was told that   its BYE
 *     we have not finished
 *
 *     open --close--> ASKING --nothing lacking, all reports heard--> ENDING --> BYE, FLUSHING --> closed
 *              |      |  ^ |                                         ^   ^
 *              |      |  | +-- BYE, or 10 s without an answer -------+   |
 *              |      |  +---- MISSING, and something is lacking yet:    |
 *              |      |        LEAVE again, after a while                |
 *              +------+------- nothing in the log, no FIN sent ----------+
 *
 *     ASKING     LEAVE has been sent, and is repeated until MISSING answers it; then again, as long as there is a frame that is not
 *                acknowledged, or a message that our user takes for sent and the peer has not finished
 *     ENDING     waits until nothing is fetched or read, UCX has let go of all messages, and a peer that waits for us has said BYE, which is
 *                asked for by LEAVE after a while: it may be lost
 *     FLUSHING   UCX closes its endpoint; when both sides have said BYE what it still waits for is of no use
 *
 * A side answers LEAVE as long as it has not said BYE itself, closing or not; after that, one that is repeated, by another BYE. If both leave, neither will receive anything
 * more: neither waits for what the other one lacks, but reports are exchanged, since the last FIN of each may have been lost.
 *
 * What waits, and for how long. *Silence is not damage*: a peer that computes for minutes must find all it needs when it
 * comes back. So nothing is dropped because of silence. After 10 s without an answer, all frames that are not acknowledged and the
 * chunks of what was buffered are handed to UCX without asking (uci_close_hand_over()), and the close goes on when UCX has taken
 * them (10 s more at most; then UCX's own close waits for its queue, as on plain UCX): they lie in the peer's queues, as what is in its
 * mailbox lies there. Reports alone are waited for for 2 s: FIN, LEAVE and BYE, which lie there, say the same. Only what can't be
 * left there is waited for without a limit: a segment that UCX offers and memory that is being read. The peer has matched the message,
 * and its program waits for it, as plain UCX's rendezvous would wait; or it has adopted it, and goes on with it whenever it makes
 * progress, at the latest when it closes as well. In MPI_Finalize, which is collective, all peers get there.
 *
 * BYE gives up the box in the peer's mailbox: what is left in it is taken when BYE is heard, and then it is for another peer.
 *
 * Closing one of several endpoints of a user to one peer waits only for what goes through this endpoint.
 *
 * What the other side still sends after BYE has to be received all the same: then UCI opens an endpoint of its own, here to
 * answer and there because its endpoint has lost its other end (uci_peer_endpoint_whole()).
 */
#ifndef UCI_CLOSE_H_
#define UCI_CLOSE_H_

#include "base/peer_table.h"

/** As ucp_ep_close_nbx(); @a ep is gone for the user. */
ucs_status_ptr_t uci_ep_close(uci_ep_t *ep, const ucp_request_param_t *param);

/** The user opens an endpoint to @a peer, again perhaps: no close in progress is the last one any more. */
void uci_close_revoke(uci_peer_t *peer);

/** Go on with all closes. */
void uci_close_progress(uci_worker_t *worker);

/** Repeat what has not been answered, @a damaged: since an answer may have been dropped. */
void uci_close_ask_again(uci_worker_t *worker, uint64_t now, bool damaged);

/** Is an endpoint to @a peer being closed? */
bool uci_close_is_going_on(const uci_peer_t *peer);

/** @return when a close has something to do that is not answered, UINT64_MAX: none waits. */
uint64_t uci_close_due(const uci_worker_t *worker);

/** For uci_dump(): a line for each. */
void uci_close_dump(const uci_worker_t *worker, int fd);

/** The worker goes: UCX is told that nobody waits for what it still closes, which up to 1.13 it wants to be sure of. */
void uci_close_shutdown(uci_worker_t *worker);

/** The worker is gone, and UCX's part of it: forget closes that never ended. */
void uci_close_cleanup(uci_worker_t *worker);

#endif
