/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The direct path, between processes of one node: a large message goes through a few bounce slots in turn. The sender
 * copies each chunk into a slot with its digest in the same pass, the receiver verifies while it copies out, and
 * both cores work at the same time. No system call, no message but the descriptor:
 *
 *     sender                                        receiver
 *     sends the descriptor, fills some slots
 *                                                   matches it, finds the slots full, takes one after the other
 *     fills another when one has been taken         (each names the next), acknowledging all but the last
 *     completes when the last one has been taken    acknowledges the last when the message is verified whole
 *
 * A chunk whose digest does not match goes up the ladder as on any path (repair.h). A slot whose own fields are damaged
 * ends the path for this message: the receiver says CTS, and the sender starts anew with active messages.
 *
 * A sender without slots to spare describes its message without them; if it has some when CTS comes, it tells which
 * (SLOT). If not, the message waits for those of another one that the same receiver is taking just now, else it goes by active
 * messages: it never waits for a slot that stays full until somebody else receives.
 */
#ifndef UCI_DIRECT_H_
#define UCI_DIRECT_H_

#include "base/path.h"

/** Slots that one message has at a time, at most */
#define UCI_DIRECT_WINDOW 8

/** Slots that messages leave for those that are matched already */
#define UCI_DIRECT_KEEP (UCI_SLOT_COUNT / 4)

/** Chunks filled or taken before the other operations and UCX get their turn */
#define UCI_DIRECT_TURN 16

/** Its row in path_table.c */
extern const uci_path_ops_t uci_direct_path;

#endif
