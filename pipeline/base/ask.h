/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * When to ask about an operation of which nothing comes. UCX loses nothing, so that what is lost was damaged and dropped, here or there:
 *
 *     named    what is left of a damaged message says that it was about this one: asked about at once
 *     doubted  it does not say whom it was about, and this one may be it: asked about if nothing comes for a while
 *     hinted   the other side asks: at once, too, but our answer may have crossed its question, so that nothing need be sent twice
 *     quiet    nothing was damaged: each second at most, since silence is not damage
 *
 * Each question that nothing has answered doubles the wait for the next one, whoever damages what: a peer that computes for long, and then
 * reads all of them, has few to read. Where something was damaged it is a second at most.
 */
#ifndef UCI_ASK_H_
#define UCI_ASK_H_

#include "ask_part.h"

struct uci_peer;
struct uci_worker;

/** How often we ask for what is due, if nothing was damaged */
#define UCI_ASK_INTERVAL_NS 1000000000ul

/** @return how long to wait, in ns, before what has not come is asked for again: twice a round trip, as measured, or half a
 *  millisecond if that is more. Asked for earlier it would come twice. */
uint64_t uci_ask_delay(const struct uci_worker *worker);

/** An operation with @a peer begins. */
void uci_ask_init(uci_ask_t *ask, const struct uci_peer *peer, uint64_t now);

/** @return when to ask about it, if nothing comes. */
uint64_t uci_ask_time(const uci_ask_t *ask, const struct uci_peer *peer);

/** It has been asked about. */
void uci_ask_done(uci_ask_t *ask, const struct uci_peer *peer, uint64_t now);

/** Something has come for it. Doubts stay: what was lost may have been something else. */
void uci_ask_heard(uci_ask_t *ask, uint64_t now);

/** Something has come for it, damaged. Who says so is there: he is asked again soon, however often it was in vain. */
void uci_ask_name(uci_ask_t *ask);

/** The other side asks about it: something has been lost, perhaps what this side had said. */
void uci_ask_hint(uci_ask_t *ask);

/** Something that was for it has come damaged: named, and the next question knows. */
void uci_ask_spoil(uci_ask_t *ask);

/** @return whether something that was for it has come damaged since this was asked last. */
bool uci_ask_was_spoilt(uci_ask_t *ask);

/** What was said of it may well be lost: asked about as who is doubted. */
void uci_ask_doubt(uci_ask_t *ask);

/** Is it named, or doubted? */
bool uci_ask_is_damaged(const uci_ask_t *ask, const struct uci_peer *peer);

/** The same, or hinted at: is it to be asked about soon? */
bool uci_ask_is_urgent(const uci_ask_t *ask, const struct uci_peer *peer);

#endif
