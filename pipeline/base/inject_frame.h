/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Where faults enter below the link: frames on their way and in the log, and the headers of active messages. Those of chunks and
 * trees: inject.h.
 */
#ifndef UCI_INJECT_FRAME_H_
#define UCI_INJECT_FRAME_H_

#include "fault/fault.h"
#include "peer.h"
#include "worker_state.h"

/** Damage a fixed number of bytes: the lost tail of a truncation becomes zeros. */
void uci_inject_bytes(const uci_fault_t *fault, void *data, size_t length);

/** So many drawn faults could not be applied: no memory for what was to be damaged. */
void uci_inject_undo(unsigned count);

/** @return a damaged copy of @a frame to send instead, or NULL: this one is not hit. @param in_place  of the same length: it is for a box;
 *          else it may be a shorter one. */
uci_frame_t *uci_inject_frame(uci_frame_t *frame, bool in_place);

/** To a peer that seals: is this one hit? What goes on the wire is its record, which the fault is for. */
bool uci_inject_sealed(const uci_frame_t *frame, uci_fault_t *fault_p);

/** What becomes of a frame as a whole. */
typedef enum {
    UCI_INJECT_IN_ORDER,
    UCI_INJECT_DROP,
    UCI_INJECT_LATE, /**< after the next one */
    UCI_INJECT_TWICE /**< and once more after the next one */
} uci_inject_order_t;

/** @param may_wait  it can be sent later; else it can only be dropped. */
uci_inject_order_t uci_inject_order(const uci_frame_t *frame, bool may_wait);

/** Maybe damage a frame that is sent again. @return true: not yet, @a fault_p is for its record. */
bool uci_inject_resent(uci_frame_t *clone, uci_fault_t *fault_p);

/** Maybe damage the payload of a frame in the log, which has been sent as it was. */
void uci_inject_log(uci_frame_t *frame);

/**
 * Bytes that should have digest @a value are not needed: they have come by another way before. If they are damaged, nobody else sees that, and
 * it is counted (`faults_unseen`).
 * @param digest  NULL: none is known, and nothing is.
 */
void uci_inject_pass(const uci_digest_ops_t *digest, const void *data, size_t length, uint64_t value);

/** What is known to be damaged has come damaged again: that fault is one that nobody sees. */
void uci_inject_count_again(void);

/** Keep what goes by now for later faults of kind stale. */
void uci_inject_remember(const void *data, size_t length);

/** @return what went by before, at least @a length bytes; NULL: there is none. */
const void *uci_inject_stale(size_t length);

#endif
