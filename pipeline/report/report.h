/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a mismatch leaves behind: its cause (verdict.h), a record (record.h), and a line in the log, of the first ones of a process.
 */
#ifndef UCI_REPORT_H_
#define UCI_REPORT_H_

#include "base/peer.h"
#include "base/gap.h"
#include "transfer/recv_op_part.h"
#include "transfer/send_op_part.h"
#include "base/verdict.h"

struct uci_types_differ;

/** A worker is created: get ready for records. Only the first call counts. */
void uci_report_init(void);

/** The chunk is right now, in the receive's buffer: compare with what had come. */
void uci_report_chunk_healed(uci_recv_op_t *op, uint32_t index);

/** A get has ended well, and brought other bytes than the sender had just digested. @return whether the same had come first. */
bool uci_report_is_same(const uci_recv_op_t *op, uint32_t index, const void *data, size_t length);

void uci_report_healed(uci_recv_op_t *op);
void uci_report_failed(uci_recv_op_t *op, uci_reason_t reason);

/** A frame that had come damaged is here; one that is lost is given up. */
void uci_report_frame_healed(uci_peer_t *peer, const uci_gap_t *gap, const uci_held_t *held);
void uci_report_frame_lost(uci_peer_t *peer, const uci_held_t *held);

/** The program has written to the buffer of a send that is pending, as was seen when it was read again: a line of its own, and the end of the
 *  job where UCI_ON_CHANGED says so. @param kept  for a copy of ours: what was read first goes on to the receiver. Else what is there now
 *  goes to him, and he makes the record. */
void uci_report_source_changed(const uci_send_op_t *op, uint32_t index, bool kept);

/** The record of a message that the receiver has as it was, so that he knows of nothing. @param changed  the chunks that were seen to be
 *  changed when they were copied. */
void uci_report_source_kept(uci_send_op_t *op, const uci_damages_t *changed);

/** The same, found when the send completed (UCI_CHECK_SOURCES): the receiver has it as it was, and knows of nothing. @param changed  the
 *  chunks that are not as they were sent. */
void uci_report_source_changed_late(uci_send_op_t *op, const uci_damages_t *changed);

/** The only copy of a message of ours is damaged: its receiver will be told that there is none, and decides what follows. A warning, of the
 *  first ones. */
void uci_report_copy_damaged(const uci_peer_t *peer, ucp_tag_t tag, bool user_am, uint64_t length);

/** A message that had arrived intact and can't be received all the same. @param total  bytes of it. @param text  why, for people. */
void uci_report_message_lost(uci_peer_t *peer, uint64_t seq, ucp_tag_t tag, bool user_am, size_t total,
                             uci_reason_t reason, const char *text);

/** Types do not match: a line, of the first ones; a record; the end of the job where UCI_ON_SIGNATURE says so. */
void uci_report_types_differ(const struct uci_types_differ *differ);

/** The same of a collective, whose ranks call what does not match. */
void uci_report_calls_differ(const uci_signature_calls_t *calls);

/** Print a UCX tag as the MPIs use it: "0x... (Open MPI: tag 5, source 1, context 3)". */
void uci_report_tag(ucp_tag_t tag, char *text, size_t size);

/** The same of any message: "tag 0x...", or "active message 7" if @a user_am. */
void uci_report_name(ucp_tag_t tag, bool user_am, char *text, size_t size);

#endif
