/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The conversation between two workers: what each event makes of its state, in one table (conversation.c), of which the page is made too
 * (docs/design.md). It only says what is to be done: close.c and others do it.
 *
 * Not thread safe: within the worker.
 */
#ifndef UCI_CONVERSATION_H_
#define UCI_CONVERSATION_H_

#include "conversation_part.h"

typedef enum {
    UCI_CONVERSATION_CLOSE,       /**< the user closes the last endpoint */
    UCI_CONVERSATION_OPEN,        /**< the user opens one */
    UCI_CONVERSATION_SAY_BYE,     /**< we say BYE */
    UCI_CONVERSATION_LEAVE,       /**< the other side says LEAVE */
    UCI_CONVERSATION_LEAVE_AGAIN, /**< and repeats it, so late that our BYE has not come, if it was said */
    UCI_CONVERSATION_BYE,         /**< it says BYE */
    UCI_CONVERSATION_BACK,        /**< its user has opened an endpoint after its BYE, as HELLO says */
    UCI_CONVERSATION_FAIL,        /**< nothing more comes from it: it has failed, or our user closes by force */
    UCI_CONVERSATION_EVENTS
} uci_conversation_event_t;

typedef enum {
    UCI_CONVERSATION_NOTHING,
    UCI_CONVERSATION_ANSWER, /**< with MISSING */
    UCI_CONVERSATION_REPEAT, /**< BYE: the one that was said is lost */
    UCI_CONVERSATION_RETURN, /**< say HELLO: what was over begins anew */
    UCI_CONVERSATION_IGNORE, /**< it is of an older life, or comes behind its BYE */
    UCI_CONVERSATION_NEVER   /**< can't be: logged as an error of UCI's, and the state stays */
} uci_conversation_action_t;

extern const char *const uci_conversation_states[];
extern const char *const uci_conversation_events[];

/** For tests: is told of all events, before the state changes. NULL: of none. */
extern void (*uci_conversation_watch)(uci_conversation_state_t state, uci_conversation_event_t event);

/** @return whether the table says that this can't be. */
bool uci_conversation_is_never(uci_conversation_state_t state, uci_conversation_event_t event);

/** The user closes the last endpoint. */
void uci_conversation_close(uci_conversation_t *conversation);

/** The user opens an endpoint, whatever has been. @return NOTHING, RETURN. */
uci_conversation_action_t uci_conversation_open(uci_conversation_t *conversation);

/** We say LEAVE, that repeats @a fins FINs. @return its number. */
uint32_t uci_conversation_ask(uci_conversation_t *conversation, uint64_t fins);

/** We say BYE. */
void uci_conversation_say_bye(uci_conversation_t *conversation);

/** Is what the other side says, in its life @a life, void? */
bool uci_conversation_is_void(const uci_conversation_t *conversation, uint64_t life);

/** The other side says LEAVE, @a again: our BYE has not come. @return NOTHING, ANSWER, REPEAT, IGNORE. */
uci_conversation_action_t uci_conversation_hear_leave(uci_conversation_t *conversation, bool again);

/** It says BYE. @param is_over  it can't answer any question about its messages any more. @param forced  its program has closed by force. */
void uci_conversation_hear_bye(uci_conversation_t *conversation, bool is_over, bool forced);

/** It introduces itself, in its life @a life. */
void uci_conversation_hear_hello(uci_conversation_t *conversation, uint64_t life);

/** It knows of our life @a life. */
void uci_conversation_confirm(uci_conversation_t *conversation, uint64_t life);

/** Something new is here from it: it has not been gone for as long as was thought. */
void uci_conversation_hear(uci_conversation_t *conversation);

/** It has failed, or our user closes by force: @a status. */
void uci_conversation_fail(uci_conversation_t *conversation, ucs_status_t status);

#endif
