/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The bounce path, between nodes: a large message goes through registered bounce buffers on both sides, so that the user's
 * buffers need no registration, and non-contiguous ones no copy of the whole. The sender copies, or packs, a segment into a span
 * with its digests in the same pass, UCX's rendezvous moves it into a span of the receiver (by RDMA where there is any), which
 * verifies while it copies out, or unpacks. Copying and moving overlap in a super-pipeline: the first segment is filled while
 * descriptor and CTS are under way, each further one is twice as long as the one before, so that few of them pay the
 * cost of a rendezvous, and none has to wait long for its copy:
 *
 *     sender                                                receiver
 *     sends the descriptor, fills a segment of 1 chunk
 *                                                           matches the descriptor: CTS
 *     offers it (SEGMENT with flag BOUNCE, and its digests)
 *     fills and offers 2 chunks, 4, 8, ...                  fetches each into a span, verifies, copies out
 *     a span is free when UCX has let go of it              FIN
 *
 * [Denis, "A High Performance Superpipeline Protocol for InfiniBand", Euro-Par 2011: there the ratio is that of the network's
 * bandwidth to that of copying, tuned; here it is fixed, since a span bounds the length soon.]
 *
 * Between workers that seal (sealed.h) large messages take this path, too, where others would be fetched from the user's buffer: a chunk is sealed
 * in the span, just after it was copied there, and opened in the receiver's before it is copied out. So nothing is in the user's memory that
 * is not authentic.
 *
 * No message waits for spans that others hold: the rest of it goes as a stream then.
 */
#ifndef UCI_SUPERPIPE_H_
#define UCI_SUPERPIPE_H_

#include "base/path.h"

/** A segment is in the receiver's memory: verify its chunks and bring them to where they belong.
 *  @param data    @a length bytes, whole chunks from @a first on.  @param leaves  their digests as the sender made them. */
void uci_superpipe_take(uci_recv_op_t *op, uint32_t first, const char *data, uint32_t length, const uint64_t *leaves,
                        uci_cut_t cut);

/** The same of one that is sealed: a record for each chunk. @param leaves  behind them the counter of the first one. */
void uci_superpipe_open(uci_recv_op_t *op, uint32_t first, char *data, uint32_t length, const uint64_t *leaves,
                        uci_cut_t cut);

/** Its row in path_table.c */
extern const uci_path_ops_t uci_superpipe_path;

#endif
