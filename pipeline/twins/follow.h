/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Following, in a worker: its wildcard receives and its probes are matched as those of twin 0 (core/twin/twin_follow.h says how). All that the
 * program posts, probes for and cancels goes through worker->recv, find and withdraw, which this sets; a worker that nobody follows in has
 * the usual functions there.
 *
 * Not followed: whether an exact receive could be cancelled, and UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL, which no MPI uses.
 *
 * Thread safe: with the worker's lock held, which all calls need that come from the program, this takes the caller's lock.
 */
#ifndef UCI_FOLLOW_H_
#define UCI_FOLLOW_H_

#include "base/peer.h"
#include "twin/twin_follow.h"
#include "base/worker_state.h"

/** What the caller does, within its lock. */
typedef struct uci_follow_events {
    /** @return the rank of @a peer, which has sent a message with this tag. */
    uint32_t (*source)(const uci_peer_t *peer, uint64_t tag);
    /** @return the number of the next message of a channel to be matched. */
    uint32_t (*next)(uint32_t source, uint64_t tag);
    /** Leader: tell the followers. */
    void (*choice)(uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message);
    void (*probe)(uint64_t tag, uint64_t mask, uint32_t number, const uci_twin_message_t *message, bool removed);
} uci_follow_events_t;

/** @param lock  recursive. @param wait  until following is given up, in ns.
 *  @return worker->follow is set; UCI_ERR_NO_MEMORY (logged): it is not. */
uci_status_t uci_follow_begin(uci_worker_t *worker, pthread_mutex_t *lock, const uci_follow_events_t *events,
                              bool is_leader, uint64_t wait);

/** The worker is about to go. Without worker->follow: nothing. */
void uci_follow_end(uci_worker_t *worker);

/** Does somebody wait: this program for what the leader says, or others for what this one has said? Within the worker's lock. */
bool uci_follow_is_awake(const uci_worker_t *worker);

/** Part of a turn of this worker's, within the caller's lock. */
void uci_follow_progress(uci_worker_t *worker);

/** For who is worker->arrived and lost: uci_recv_arrived() and uci_recv_lost(), but for the choice of the receive. */
bool uci_follow_arrived(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload);
void uci_follow_lost(uci_peer_t *peer, const uci_frame_hdr_t *hdr, const char *payload, size_t length);

/** What is told, counted, and given up: for uci_twin_follow_on_choice() and others that deliver nothing, within the caller's lock. */
uci_twin_follow_t *uci_follow_state(const uci_worker_t *worker);

#endif
