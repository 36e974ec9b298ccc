/* SPDX-License-Identifier: BSD-3-Clause */
#include "conversation.h"

#include "util/log.h"
#include "util/process.h"

typedef struct uci_conversation_cell {
    uint8_t next;
    uint8_t action;
} uci_conversation_cell_t;

const char *const uci_conversation_states[UCI_CONVERSATION_STATES + 1] = {
        "open, here",       "open, waiting", "open, leaving", "open, gone",    "closing, here", "closing, waiting",
        "closing, leaving", "closing, gone", "left, here",    "left, waiting", "left, leaving", "left, gone"};

const char *const uci_conversation_events[UCI_CONVERSATION_EVENTS + 1] = {"close",       "open", "say BYE", "LEAVE",
                                                                          "LEAVE again", "BYE",  "back",    "fail"};

void (*uci_conversation_watch)(uci_conversation_state_t state, uci_conversation_event_t event);

/* A state and what is to be done; a state alone; the same state; what can't be. tests/doc_tables.py reads these rows */
#define DO(_next, _action) \
    { \
        UCI_##_next, UCI_CONVERSATION_##_action \
    }
#define TO(_next)      DO(_next, NOTHING)
#define NO(_state)     DO(_state, NEVER)
#define IGNORE(_state) DO(_state, IGNORE)

/* clang-format off */
static const uci_conversation_cell_t uci_conversation_table[UCI_CONVERSATION_STATES][UCI_CONVERSATION_EVENTS] = {
    /* CLOSE                OPEN                   SAY_BYE             LEAVE                        LEAVE_AGAIN                  BYE               BACK              FAIL */
    [UCI_OPEN_HERE] =
    {TO(CLOSING_HERE),      TO(OPEN_HERE),         NO(OPEN_HERE),      DO(OPEN_WAITING, ANSWER),    DO(OPEN_WAITING, ANSWER),    TO(OPEN_GONE),    TO(OPEN_HERE),    TO(OPEN_LEAVING)},
    [UCI_OPEN_WAITING] =
    {TO(CLOSING_WAITING),   TO(OPEN_HERE),         NO(OPEN_WAITING),   DO(OPEN_WAITING, ANSWER),    DO(OPEN_WAITING, ANSWER),    TO(OPEN_GONE),    TO(OPEN_HERE),    TO(OPEN_LEAVING)},
    [UCI_OPEN_LEAVING] =
    {TO(CLOSING_LEAVING),   TO(OPEN_HERE),         NO(OPEN_LEAVING),   DO(OPEN_WAITING, ANSWER),    DO(OPEN_WAITING, ANSWER),    TO(OPEN_GONE),    TO(OPEN_HERE),    TO(OPEN_LEAVING)},
    [UCI_OPEN_GONE] =
    {TO(CLOSING_GONE),      TO(OPEN_HERE),         NO(OPEN_GONE),      IGNORE(OPEN_GONE),           IGNORE(OPEN_GONE),           TO(OPEN_GONE),    TO(OPEN_HERE),    TO(OPEN_GONE)},
    [UCI_CLOSING_HERE] =
    {NO(CLOSING_HERE),      TO(OPEN_HERE),         TO(LEFT_HERE),      DO(CLOSING_LEAVING, ANSWER), DO(CLOSING_LEAVING, ANSWER), TO(CLOSING_GONE), TO(CLOSING_HERE), TO(CLOSING_LEAVING)},
    [UCI_CLOSING_WAITING] =
    {NO(CLOSING_WAITING),   TO(OPEN_HERE),         TO(LEFT_WAITING),   DO(CLOSING_LEAVING, ANSWER), DO(CLOSING_LEAVING, ANSWER), TO(CLOSING_GONE), TO(CLOSING_HERE), TO(CLOSING_LEAVING)},
    [UCI_CLOSING_LEAVING] =
    {NO(CLOSING_LEAVING),   TO(OPEN_HERE),         TO(LEFT_LEAVING),   DO(CLOSING_LEAVING, ANSWER), DO(CLOSING_LEAVING, ANSWER), TO(CLOSING_GONE), TO(CLOSING_HERE), TO(CLOSING_LEAVING)},
    [UCI_CLOSING_GONE] =
    {NO(CLOSING_GONE),      TO(OPEN_HERE),         TO(LEFT_GONE),      IGNORE(CLOSING_GONE),        IGNORE(CLOSING_GONE),        TO(CLOSING_GONE), TO(CLOSING_HERE), TO(CLOSING_GONE)},
    [UCI_LEFT_HERE] =
    {NO(LEFT_HERE),         DO(OPEN_HERE, RETURN), NO(LEFT_HERE),      TO(LEFT_LEAVING),            DO(LEFT_WAITING, REPEAT),    TO(LEFT_GONE),    TO(LEFT_HERE),    TO(LEFT_LEAVING)},
    [UCI_LEFT_WAITING] =
    {NO(LEFT_WAITING),      DO(OPEN_HERE, RETURN), TO(LEFT_WAITING),   TO(LEFT_LEAVING),            DO(LEFT_WAITING, REPEAT),    TO(LEFT_GONE),    TO(LEFT_HERE),    TO(LEFT_LEAVING)},
    [UCI_LEFT_LEAVING] =
    {NO(LEFT_LEAVING),      DO(OPEN_HERE, RETURN), NO(LEFT_LEAVING),   TO(LEFT_LEAVING),            DO(LEFT_WAITING, REPEAT),    TO(LEFT_GONE),    TO(LEFT_HERE),    TO(LEFT_LEAVING)},
    [UCI_LEFT_GONE] =
    {NO(LEFT_GONE),         DO(OPEN_HERE, RETURN), NO(LEFT_GONE),      IGNORE(LEFT_GONE),           IGNORE(LEFT_GONE),           TO(LEFT_GONE),    TO(LEFT_HERE),    TO(LEFT_GONE)},
};
/* clang-format on */

bool uci_conversation_is_never(uci_conversation_state_t state, uci_conversation_event_t event)
{
    return uci_conversation_table[state][event].action == UCI_CONVERSATION_NEVER;
}

static uci_conversation_action_t uci_conversation_event(uci_conversation_t *conversation,
                                                        uci_conversation_event_t event)
{
    const uci_conversation_cell_t *cell = &uci_conversation_table[conversation->state][event];

    if (uci_conversation_watch != NULL) {
        uci_conversation_watch(conversation->state, event);
    }
    if (cell->action == UCI_CONVERSATION_NEVER) {
        uci_error("a conversation that is '%s' can't have the event '%s': please report this",
                  uci_conversation_states[conversation->state], uci_conversation_events[event]);
    }
    conversation->state = (uci_conversation_state_t)cell->next;
    return (uci_conversation_action_t)cell->action;
}

void uci_conversation_close(uci_conversation_t *conversation)
{
    (void)uci_conversation_event(conversation, UCI_CONVERSATION_CLOSE);
}

uci_conversation_action_t uci_conversation_open(uci_conversation_t *conversation)
{
    uci_conversation_action_t action = uci_conversation_event(conversation, UCI_CONVERSATION_OPEN);

    conversation->status = UCS_OK;
    conversation->forced = false;
    conversation->life += (action == UCI_CONVERSATION_RETURN); /* what comes after a BYE begins anew */
    return action;
}

uint32_t uci_conversation_ask(uci_conversation_t *conversation, uint64_t fins)
{
    conversation->fins_told = fins;
    return ++conversation->round;
}

void uci_conversation_say_bye(uci_conversation_t *conversation)
{
    (void)uci_conversation_event(conversation, UCI_CONVERSATION_SAY_BYE);
    conversation->bye_time = uci_process_time_ns();
}

bool uci_conversation_is_void(const uci_conversation_t *conversation, uint64_t life)
{
    return life < conversation->peer_life;
}

uci_conversation_action_t uci_conversation_hear_leave(uci_conversation_t *conversation, bool again)
{
    return uci_conversation_event(conversation, again ? UCI_CONVERSATION_LEAVE_AGAIN : UCI_CONVERSATION_LEAVE);
}

void uci_conversation_hear_bye(uci_conversation_t *conversation, bool is_over, bool forced)
{
    (void)uci_conversation_event(conversation, UCI_CONVERSATION_BYE);
    conversation->forced    = forced;
    conversation->gone_time = is_over ? uci_process_time_ns() : UINT64_MAX;
}

void uci_conversation_hear_hello(uci_conversation_t *conversation, uint64_t life)
{
    if (life > conversation->peer_life) {
        conversation->peer_life = life;
        conversation->status    = UCS_OK;
        conversation->forced    = false;
        (void)uci_conversation_event(conversation, UCI_CONVERSATION_BACK);
    }
}

void uci_conversation_confirm(uci_conversation_t *conversation, uint64_t life)
{
    if (life == conversation->life) {
        conversation->confirmed = life;
    }
}

void uci_conversation_hear(uci_conversation_t *conversation)
{
    if (uci_unlikely(uci_conversation_is_gone(conversation)) && (conversation->gone_time != UINT64_MAX)) {
        conversation->gone_time = uci_process_time_ns();
    }
}

void uci_conversation_fail(uci_conversation_t *conversation, ucs_status_t status)
{
    conversation->status = status;
    (void)uci_conversation_event(conversation, UCI_CONVERSATION_FAIL);
}
