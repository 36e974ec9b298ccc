/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The get path, between nodes: the receiver fetches a large message from the sender's buffer, segment by segment, by
 * UCX's own rendezvous. Data go from the one user's buffer into the other's without a copy of ours, by whatever UCX
 * finds best for the transport: RDMA reads by the receiver's adapter on rc and dc, writes that bypass the receive buffer on
 * tcp. Digests are made beside the transfer:
 *
 *     sender                                         receiver
 *     sends the descriptor, digests its buffer, some
 *     chunks a turn                                  matches the descriptor: CTS
 *     offers all segments (SEGMENT)                  has UCX fetch each one, digests its chunks while they are in the
 *                                                    cache
 *     tells all digests, and the root (LEAVES)       compares: chunk by chunk, then the root
 *
 * Few digests travel in the offer itself; then the sender makes them all before.
 *
 * A chunk that differs goes up the ladder as on any path (repair.h). A segment whose header is damaged is not fetched: its
 * chunks are missing, and asked for like those.
 *
 * Why not ucp_get_nbx(): it needs the whole buffer mapped and a key sent first, which UCX's rendezvous has in its
 * registration cache; and on tcp UCX 1.13 takes 0.65 GB/s for it where its rendezvous takes 4 (measured with ucp_put_nbx()).
 */
#ifndef UCI_GET_H_
#define UCI_GET_H_

#include "base/path.h"

/** Its row in path_table.c */
extern const uci_path_ops_t uci_get_path;

#endif
