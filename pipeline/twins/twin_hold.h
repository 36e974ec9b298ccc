/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * UCI_TWINS_MODE=correct: a receive whose message is verified waits for the vote. Then
 *
 *     HELD --same, or not to be compared---------------------------> READY --its worker's turn--> completed
 *       |---this twin is in the minority--> TAKING: the content ---->  ^
 *       |                                   from the first healthy     |
 *       |                                   twin, compared with the    |
 *       |                                   vote                       |
 *       +---another twin is, and this one-> GIVING ------------------>-+
 *           is the first healthy one
 *
 * Content goes as a tag message by the worker of twin_link.h: by slots, RDMA or stream, verified and repaired as all messages are. Not thread
 * safe: twin.c's lock holds.
 */
#ifndef UCI_TWIN_HOLD_H_
#define UCI_TWIN_HOLD_H_

#include "base/request.h"
#include "twin_link.h"
#include "twin/twin_votes.h"

/** Of a receive that has no content to be compared: it failed. Its status stands for the digest. */
#define UCI_TWIN_FORM_NONE UINT32_MAX

typedef struct uci_twin_hold uci_twin_hold_t;

/** Keep a receive that is over with @a status. @return NULL: no memory (logged). */
uci_twin_hold_t *uci_twin_hold_create(uci_request_t *req, ucs_status_t status);

/** The digest of what is in the buffer of a receive that is over, formed as that of its sender was (@a form): for a message that is not what
 *  was verified any more. */
uint64_t uci_twin_hold_digest(uci_request_t *req, uint32_t form);

/** Its vote. */
void uci_twin_hold_decide(uci_twin_hold_t *hold, uci_twin_link_t *link, const uci_twin_verdict_t *verdict,
                          const uci_mark_t *sender);

/** It is not voted upon: complete it as it is. */
void uci_twin_hold_give_up(uci_twin_hold_t *hold);

/** It was decided within the call that made it, and needs nothing more: forget it, its receive completes as usual.
 *  @return false: it is kept. */
bool uci_twin_hold_forget(uci_twin_hold_t *hold);

/** Complete what is ready of this worker. @param all  what is not, as well, as it is. @return how many. */
unsigned uci_twin_hold_complete(uci_worker_t *worker, bool all);

/** Is any of this worker's receives kept? */
bool uci_twin_hold_has(const uci_worker_t *worker);

/** When the receive that has waited longest for its vote, or for its content, began to, in ns; UINT64_MAX: none does. */
uint64_t uci_twin_hold_oldest(void);

/** A twin whose content a receive has been waiting for since before @a time; -1: there is none. */
int uci_twin_hold_takes_from(uint64_t time);

#endif
