/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the system's log is told of damaged messages (UCI_SYSLOG).
 */
#ifndef UCI_ADMIN_LOG_H_
#define UCI_ADMIN_LOG_H_

#include "base/peer.h"

/** A message from @a peer arrived damaged. @param verdict, cause, path  as in its record (UCI_EVENTS); @a path may be NULL. Nothing
 *  happens with UCI_SYSLOG=off. */
void uci_admin_log_damaged(const uci_peer_t *peer, uint64_t length, const char *verdict, const char *cause,
                           const char *path);

#endif
