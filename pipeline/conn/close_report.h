/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports: payload of LEAVE, MISSING and BYE. Which messages of the other side are finished, and which frames have been received: two words,
 * then hdr->index ranges of those that are not finished.
 */
#ifndef UCI_CLOSE_REPORT_H_
#define UCI_CLOSE_REPORT_H_

#include "base/am_handler.h"
#include "link/control.h"

/** A message with a report. @param max_ranges  that it has at most: then it tells of fewer messages. @return NULL: no memory. */
uci_control_t *uci_close_report_get(uci_peer_t *peer, uci_am_type_t type, size_t max_ranges);

/** One has come: all FINs that the peer has sent so far, at once, and what it has received. @param length  bytes, checked. */
void uci_close_report_take(uci_peer_t *peer, const uint64_t *words, size_t length);

/** @return what is wrong with it, or NULL. */
const char *uci_close_report_check(const uci_am_t *am);

#endif
