/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How a process talks to its twins (UCI_TWINS): the same rank of the other runs of its program. It finds them by the cards that they leave in
 * a folder (twin_folder.h), and sends them tag messages from a UCX worker of its own, which UCI covers as it covers the program's: what one
 * twin says arrives in order and intact, or not at all, and large contents go by the paths of all messages.
 *
 *     SEEKING --card is there, and fits--> TALKING --DONE said--> DONE
 *        |                                    |
 *        +-- no card within the time -> ABSENT+-- its process is gone, or too much waits for it -> LOST, BEHIND
 *
 * One whose card is seen late may be DONE before: it is looked for all the same, since it waits for what we say.
 *
 * One link for a process. Not thread safe: the caller's lock (twin.c) holds for all calls, and for the events, which come from within
 * uci_twin_link_progress().
 */
#ifndef UCI_TWIN_LINK_H_
#define UCI_TWIN_LINK_H_

#include "twin/twin_folder.h"
#include "base/worker_state.h"

typedef enum {
    UCI_TWIN_SEEKING,
    UCI_TWIN_TALKING,
    UCI_TWIN_DONE,   /**< it has said that it has no more to say */
    UCI_TWIN_LOST,   /**< its process is gone */
    UCI_TWIN_BEHIND, /**< more waits for it than UCI_TWINS_LOG */
    UCI_TWIN_ABSENT  /**< it never came */
} uci_twin_state_t;

extern const char *const uci_twin_state_names[];

#define UCI_TWIN_SAY_MAX 8192u /**< bytes of what is said at a time */

typedef struct uci_twin_link_events {
    /** Twin @a twin has said this. */
    void (*heard)(unsigned twin, const void *data, size_t length);
    /** Nothing more will come of @a twin, which is in a state behind TALKING. */
    void (*ended)(unsigned twin);
} uci_twin_link_events_t;

typedef struct uci_twin_link uci_twin_link_t;

/** The content that was given is the caller's again. */
typedef void (*uci_twin_given_cb_t)(void *arg);

/** The content that was asked for is here: @a data, within the call; NULL: it will not come, since its twin is gone. */
typedef void (*uci_twin_taken_cb_t)(void *arg, const void *data);

/**
 * Open a worker in @a context (made for it; stays the caller's), and leave a card. A card of a twin that does not fit ends the job, when it is
 * seen, with a message that says what differs.
 * @return UCS_OK, or an error (logged).
 */
ucs_status_t uci_twin_link_create(uci_context_t *context, bool is_mt, const uci_twin_link_events_t *events,
                                  uci_twin_link_t **link_p);

/** Close what is open, take the card away. What is still to be sent is forgotten. */
void uci_twin_link_destroy(uci_twin_link_t *link);

/** Say @a length bytes, UCI_TWIN_SAY_MAX at most, to all that live; those that are not there yet hear it when they come (copied). */
void uci_twin_link_say(uci_twin_link_t *link, const void *data, size_t length);

/** Take what arrives, send what waits, look for twins. @return how much was done. */
unsigned uci_twin_link_progress(uci_twin_link_t *link);

/** Give twin @a twin the content of a message that both know as @a id, or take it of that twin. What is given stays where it is until
 *  @a cb, which may be called within. */
void uci_twin_link_give(uci_twin_link_t *link, unsigned twin, uint64_t id, const void *data, size_t length,
                        uci_twin_given_cb_t cb, void *arg);
void uci_twin_link_take(uci_twin_link_t *link, unsigned twin, uint64_t id, size_t length, uci_twin_taken_cb_t cb,
                        void *arg);

/** Whoever takes of @a twin waits no more: as if it had gone. */
void uci_twin_link_take_no_more(uci_twin_link_t *link, unsigned twin);

/** The caller says that @a twin has ended, in this state. */
void uci_twin_link_end(uci_twin_link_t *link, unsigned twin, uci_twin_state_t state);

uci_twin_state_t uci_twin_link_state(const uci_twin_link_t *link, unsigned twin);

/** @return its card; NULL: it has not been seen. */
const uci_twin_card_t *uci_twin_link_card(const uci_twin_link_t *link, unsigned twin);

/** Is anything still to be sent to a twin that lives? */
bool uci_twin_link_is_busy(uci_twin_link_t *link);

/** Is it in its own progress, further up? */
bool uci_twin_link_is_inside(const uci_twin_link_t *link);

/** When something came from @a twin last, in ns; when it was begun to be looked for if nothing has. */
uint64_t uci_twin_link_heard_time(const uci_twin_link_t *link, unsigned twin);

#endif
