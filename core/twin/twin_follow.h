/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Following: twin 0 (the leader) tells what its wildcard receives were matched to, and what its probes found; the other twins
 * (followers) match theirs to the same messages, so that programs with MPI_ANY_SOURCE or MPI_ANY_TAG do the same in all of them. (Record and
 * replay of nondeterministic matching, while it happens.) No network, no clock: both are the caller's.
 *
 * A receive is a wildcard if its mask is not exact (uci_mpi_mask_is_exact()). Wildcards of one (tag, mask), a *key*, are numbered in the order
 * of posting: choice n of a key is the message that wildcard n of it took, or none (cancelled). A message is named by its channel (rank of
 * the sender, tag) and its number there, in the order of matching, which is that of sending.
 *
 * In a follower
 * - a wildcard whose choice is not known stays posted, unresolved. In the search for the receive of a message, in the order of posting, it
 *   ends the search if it could take the message, which then is unexpected until the choice is known. So does an exact receive not get a
 *   message that an earlier unresolved wildcard could take;
 * - a wildcard that is resolved takes its own message, and is passed over for all others;
 * - a probe finds a message only if the leader's next find, of all keys, was of this key, and that message has come. What the leader's probes
 *   did not find depends on time, and is not told;
 * - to cancel a wildcard takes effect when its choice is known, and that is none.
 *
 * Wildcards are withheld from the matching (match.h); receives that are not, while none is posted, go the usual way, which this does not touch.
 *
 * A program that goes another way than the leader's must not wait forever: when messages have waited for a choice, or probes have been denied
 * what is there, for as long as the caller says, following is given up, once and for all, with a warning that says where, and everything is
 * matched as without twins.
 *
 * Cost: a message that comes while wildcards are posted O(those older than its exact receive); a choice, or a cancelled wildcard, O(waiting
 * messages), if any receive is posted that could take them. Memory: about 100 bytes for each key ever used, 64 for each wildcard that is
 * posted, and 48 for each choice that is known before its wildcard is posted.
 *
 * Belongs to one thread at a time.
 */
#ifndef UCI_CORE_TWIN_FOLLOW_H_
#define UCI_CORE_TWIN_FOLLOW_H_

#include "match/match.h"
#include "twin_batch.h"

typedef struct uci_twin_follow uci_twin_follow_t;

/** What the caller does. None of these may call a function of this header. */
typedef struct uci_twin_follow_ops {
    /** @return the rank of the sender of a message that is kept. */
    uint32_t (*source)(void *arg, const uci_match_msg_t *msg);

    /** @return the number of the next message of a channel to be matched: 0 until one was. */
    uint32_t (*next)(void *arg, uint32_t source, uint64_t tag);

    /** Give a message to a receive that is posted no longer. The message is taken by this function, and counted as matched. */
    void (*deliver)(void *arg, uci_match_msg_t *msg, uci_match_recv_t *recv);

    /** Follower: a receive that was to be cancelled is, and is posted no longer. */
    void (*cancelled)(void *arg, uci_match_recv_t *recv);

    /** @return the time in ns. */
    uint64_t (*now)(void *arg);

    /** Leader: tell the followers, in this order. The message is none (UCI_TWIN_SOURCE_NONE) for a receive that was cancelled. */
    void (*choice)(void *arg, uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message);
    void (*probe)(void *arg, uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message,
                  bool removed);
} uci_twin_follow_ops_t;

typedef struct uci_twin_follow_counts {
    uint64_t followed; /**< wildcards and probes that had the leader's message */
    uint64_t
            given_up; /**< wildcards that were posted when following was given up, and the probe that it was given up for */
} uci_twin_follow_counts_t;

/** @param match  nothing is posted yet. @param wait  ns, until following is given up. @return UCI_OK; UCI_ERR_NO_MEMORY (logged). */
uci_status_t uci_twin_follow_create(uci_match_t *match, bool is_leader, uint64_t wait, const uci_twin_follow_ops_t *ops,
                                    void *arg, uci_twin_follow_t **follow_p);

/** Wildcards that are posted are receives as all others from here on; nothing is delivered. NULL is allowed. */
void uci_twin_follow_destroy(uci_twin_follow_t *follow);

/** Is this a receive that nobody else may post, or look for a message for? Others may be posted as always if this is false. */
bool uci_twin_follow_wants(const uci_twin_follow_t *follow, uint64_t mask);

/** Post a receive, and give it the message that waits for it, if there is one. */
void uci_twin_follow_post(uci_twin_follow_t *follow, uci_match_recv_t *recv, uint64_t tag, uint64_t mask);

/** A message has come. @return the receive that it is for, which is posted no longer; NULL: keep it, as the youngest. The caller counts it as
 *  matched. */
uci_match_recv_t *uci_twin_follow_arrived(uci_twin_follow_t *follow, uint32_t source, uint64_t tag);

/** The user cancels a posted receive. @return UCI_OK: it is posted no longer, and cancelled; UCI_INPROGRESS: that will be decided. */
uci_status_t uci_twin_follow_cancel(uci_twin_follow_t *follow, uci_match_recv_t *recv);

/** The user probes. @return the message, which stays where it is, or NULL. If it is removed the caller takes it, and counts it as matched. */
uci_match_msg_t *uci_twin_follow_probe(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask, bool remove);

/** Follower: what the leader has told, in its order. Nothing is delivered within: uci_twin_follow_check() does that. @return UCI_OK; UCI_ERR_INVALID_PARAM: told before, or not the next probe (logged);
 *  UCI_ERR_NO_MEMORY (logged). */
uci_status_t uci_twin_follow_on_choice(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask, uint32_t number,
                                       const uci_twin_message_t *message);
uci_status_t uci_twin_follow_on_probe(uci_twin_follow_t *follow, uint64_t tag, uint64_t mask, uint32_t number,
                                      const uci_twin_message_t *message, bool removed);

/** Follower: do what has become possible by what the leader has told; and has something waited too long? To be called in each turn, or
 *  now and then. */
void uci_twin_follow_check(uci_twin_follow_t *follow);

/** No more following (a leader: no more telling): the leader has gone, or is too far ahead. What waits is matched as without twins.
 *  @param why  for the warning, a part of a sentence. Again: nothing. */
void uci_twin_follow_give_up(uci_twin_follow_t *follow, const char *why);

/** Follower: is there anything that can't go on before the leader says more? */
bool uci_twin_follow_is_waiting(const uci_twin_follow_t *follow);

/** Follower: the leader will say no more. What it has told is followed, but what it has not is not waited for any longer than it takes to
 *  see that. */
void uci_twin_follow_ended(uci_twin_follow_t *follow);

uci_twin_follow_counts_t uci_twin_follow_counts(const uci_twin_follow_t *follow);

#endif
