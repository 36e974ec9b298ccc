/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What comes of comparing twins: a record for each message that differs (UCI_EVENTS, the first UCI_TWIN_RECORDS of them), a warning for the
 * first, and at the end one JSON file for each process (UCI_TWINS_REPORT), with what was compared and what differed over time and by
 * sender. A record tells when its message was received, which is before it was found to differ. docs/twins.md describes the record's
 * fields, README.md the report's. Not thread safe: twin.c's lock holds.
 */
#ifndef UCI_TWIN_REPORT_H_
#define UCI_TWIN_REPORT_H_

#include "base/mark.h"
#include "base/request.h"
#include "util/ticks.h"
#include "twin_link.h"
#include "twin/twin_receipts.h"
#include "twin/twin_votes.h"

#define UCI_TWIN_RECORDS 100u

/** Comparing begins. @param votes  are asked until the end. */
void uci_twin_report_begin(const uci_twin_votes_t *votes);

extern uci_twin_receipts_t uci_twin_receipts; /**< private to uci_twin_report_received() */

/** This message has been received now. */
UCI_INLINE void uci_twin_report_received(const uci_twin_note_t *note)
{
    uci_twin_receipts_note(&uci_twin_receipts, note->channel, note->number, uci_ticks());
}

/** A verdict. @param sender  of this twin's message; NULL: not known. */
void uci_twin_report_verdict(const uci_twin_verdict_t *verdict, const uci_mark_t *sender);

/** This twin was wrong, and has the content of the others now. */
void uci_twin_report_corrected(const uci_twin_verdict_t *verdict, const uci_mark_t *sender);

/** @a count messages can't be compared: they have no room (UCI_TWINS_LOG). */
void uci_twin_report_no_room(uint64_t count);

/** It has been so many messages that are the same in all twins, until now. */
void uci_twin_report_agreed(uint64_t agreed);

/** Do its twins differ from the beginning on, so that this program's runs are never the same? */
bool uci_twin_report_is_random(void);

/** So many wildcard receives and probes found what the leader's found; so many waited for that when following was given up. */
void uci_twin_report_followed(uint64_t followed, uint64_t given_up);

/** Write the report, and say what it comes to if that is bad. */
void uci_twin_report_end(const uci_twin_link_t *link, const uci_twin_votes_t *votes);

#endif
