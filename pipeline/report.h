/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a mismatch leaves behind: a line in the log (the first ones of a process), and a JSON record per event in
 * the file named by UCI_EVENTS, with the errors that this host's RDMA ports have counted meanwhile.
 */
#ifndef UCI_REPORT_H_
#define UCI_REPORT_H_

#include "gap.h"
#include "recv_op.h"
#include "send_op.h"

/** A worker is created: with UCI_EVENTS, note what the RDMA ports have counted so far. Only the first call counts. */
void uci_report_init(void);

/** Keep the damaged bytes of an operation's first bad chunk, to be compared with the right ones. */
void uci_report_keep_damage(uci_recv_op_t *op, uint32_t index, const void *data, size_t length);

/** The chunk has been repaired: compare, if it is the one that was kept. */
void uci_report_chunk_healed(uci_recv_op_t *op, uint32_t index);

void uci_report_healed(uci_recv_op_t *op);
void uci_report_failed(uci_recv_op_t *op, const char *reason);

/** A frame that had come damaged is here; one that is lost is given up. */
void uci_report_frame_healed(uci_peer_t *peer, const uci_gap_t *gap, const uci_held_t *held);
void uci_report_frame_lost(uci_peer_t *peer, const uci_held_t *held);

/** The program has written to the buffer of a send that is pending: a line of its own, and the end of the job where UCI_ON_CHANGED
 *  says so. */
void uci_report_source_changed(const uci_send_op_t *op, uint32_t index);

/** The only copy of a message of ours is damaged: its receiver will be told that there is none. */
void uci_report_copy_damaged(const uci_peer_t *peer, ucp_tag_t tag, uint64_t length);

/** A message that had arrived intact and can't be received all the same; who sent it is not said. @param total  bytes of it. */
void uci_report_message_lost(uci_worker_t *worker, ucp_tag_t tag, size_t total, const char *reason);

void uci_report_drop_damage(uci_recv_op_t *op);

/** Print a UCX tag as the MPIs use it: "0x... (Open MPI: tag 5, source 1, context 3)". */
void uci_report_tag(ucp_tag_t tag, char *text, size_t size);

#endif
