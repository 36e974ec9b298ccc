/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Who compares twins, in a worker: twin.c and follow.c write it.
 */
#ifndef UCI_TWINS_PART_H_
#define UCI_TWINS_PART_H_

#include "ucp/ucp_api.h"

struct uci_follow;
struct uci_peer;
struct uci_request;
struct uci_twin_note;
struct uci_worker;

/** What a worker tells whoever compares twins (twin.h); events that go up. */
typedef struct uci_twin_events {
    /** A message of @a peer's has been matched, to a receive or a probe that takes it: its number in its channel is settled.
     *  @return false: there is none. */
    bool (*matched)(struct uci_peer *peer, ucp_tag_t tag, struct uci_twin_note *note);
    /** The message is in the receive's buffer, verified. @return true: keep the receive, it is completed by uci_request_complete() later. */
    bool (*received)(struct uci_request *req, ucs_status_t status);
    unsigned (*progress)(struct uci_worker *worker);
    /** Does something in this worker wait for what twins say? Then its program must not sleep: their worker wakes nobody. */
    bool (*is_waiting)(const struct uci_worker *worker);
} uci_twin_events_t;

typedef struct uci_twins_worker {
    const uci_twin_events_t *events; /**< NULL: nobody compares */
    struct uci_follow *follow;       /**< NULL: wildcards are matched as they come (follow.h) */
} uci_twins_worker_t;

#endif
