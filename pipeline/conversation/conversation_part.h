/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Where a conversation with a peer is: who has left, and who knows. conversation.c writes it.
 */
#ifndef UCI_CONVERSATION_PART_H_
#define UCI_CONVERSATION_PART_H_

#include "ucp/ucp_api.h"
#include "util/types.h"

/**
 * Our side, then the other one. Ours is OPEN, CLOSING since the user has closed his last endpoint, or has LEFT with BYE. The other one is
 * HERE; WAITING, since it has said LEAVE, and its BYE comes when it knows that we lack nothing; LEAVING, since it has, and nothing more is
 * to come that we would wait for: we close as well, or it has failed; or GONE, with BYE.
 */
typedef enum {
    UCI_OPEN_HERE,
    UCI_OPEN_WAITING,
    UCI_OPEN_LEAVING,
    UCI_OPEN_GONE,
    UCI_CLOSING_HERE,
    UCI_CLOSING_WAITING,
    UCI_CLOSING_LEAVING,
    UCI_CLOSING_GONE,
    UCI_LEFT_HERE,
    UCI_LEFT_WAITING,
    UCI_LEFT_LEAVING,
    UCI_LEFT_GONE,
    UCI_CONVERSATION_STATES
} uci_conversation_state_t;

#define UCI_CONVERSATION_SIDES 4u /**< states of the other side for each of ours */

typedef struct uci_conversation {
    uci_conversation_state_t state;
    ucs_status_t status; /**< UCS_OK, or why nothing more comes from it: it failed, or the user closed by force */
    uint32_t round;      /**< number of our last LEAVE */
    uint64_t fins_told;  /**< FINs that it has repeated */
    uint64_t bye_time;   /**< when we said BYE, the last time */
    uint64_t
            gone_time; /**< when it said BYE, if it can't answer any question about its messages any more; else UINT64_MAX */
    bool forced;       /**< its program has closed by force */
    uint64_t life;      /**< times that our user has come back after our BYE: HELLO, LEAVE and BYE say it */
    uint64_t confirmed; /**< the life that the other side knows of */
    uint64_t peer_life; /**< the same of the other side, as far as it is known */
} uci_conversation_t;

/** Has our user closed? */
UCI_INLINE bool uci_conversation_is_closed(const uci_conversation_t *conversation)
{
    return conversation->state >= UCI_CLOSING_HERE;
}

/** Have we said BYE? */
UCI_INLINE bool uci_conversation_is_left(const uci_conversation_t *conversation)
{
    return conversation->state >= UCI_LEFT_HERE;
}

/** The other side's user has closed, or it has failed: it receives nothing more. */
UCI_INLINE bool uci_conversation_is_leaving(const uci_conversation_t *conversation)
{
    return conversation->state % UCI_CONVERSATION_SIDES != UCI_OPEN_HERE;
}

/** It has left, and its BYE is to come. */
UCI_INLINE bool uci_conversation_is_waiting(const uci_conversation_t *conversation)
{
    return conversation->state % UCI_CONVERSATION_SIDES == UCI_OPEN_WAITING;
}

/** It has said BYE. */
UCI_INLINE bool uci_conversation_is_gone(const uci_conversation_t *conversation)
{
    return conversation->state % UCI_CONVERSATION_SIDES == UCI_OPEN_GONE;
}

/** Is there still somebody on the other side: has it neither said BYE nor failed? */
UCI_INLINE bool uci_conversation_is_heard(const uci_conversation_t *conversation)
{
    return !uci_conversation_is_gone(conversation) && (conversation->status == UCS_OK);
}

/** Have we come back, and the other side has not confirmed that it knows? */
UCI_INLINE bool uci_conversation_is_back(const uci_conversation_t *conversation)
{
    return conversation->life != conversation->confirmed;
}

/** Is it over for both sides: both have said BYE, or our user has closed, and nothing more comes? */
UCI_INLINE bool uci_conversation_is_ended(const uci_conversation_t *conversation)
{
    return uci_conversation_is_closed(conversation) && !uci_conversation_is_back(conversation) &&
           ((conversation->state == UCI_LEFT_GONE) || (conversation->status != UCS_OK));
}

/** So it was. */
UCI_INLINE void uci_conversation_resume(uci_conversation_t *conversation, const uci_conversation_t *before)
{
    *conversation = *before;
}

/** Did it say at least @a ns before @a now that it can't answer any question about its messages any more? */
UCI_INLINE bool uci_conversation_is_over(const uci_conversation_t *conversation, uint64_t now, uint64_t ns)
{
    return uci_conversation_is_gone(conversation) && (conversation->gone_time < now - ((now < ns) ? now : ns));
}

#endif
