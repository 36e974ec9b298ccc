/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of faults that have been injected: of an operation that sends, of a peer, of a worker's slots. All zeros: none.
 */
#ifndef UCI_INJECT_PART_H_
#define UCI_INJECT_PART_H_

#include <stdint.h>

struct uci_inject_late;

/** An operation that sends: inject_chunk.c and inject_memory.c write it. */
typedef struct uci_inject_op {
    uint32_t swap; /**< kind swap: number, plus 1, of the chunk whose content the next one carries */
    uint8_t hit;   /**< where: uci_injected_t (inject_out.h) */
} uci_inject_op_t;

/** inject_send.c */
typedef struct uci_inject_peer {
    struct uci_inject_late *late; /**< goes after the next frame */
} uci_inject_peer_t;

#define UCI_INJECT_SLOTS 96 /**< UCI_SLOT_COUNT, which lies above */

/** A worker's pool of slots: inject_memory.c */
typedef struct uci_inject_slots {
    uint8_t hits[UCI_INJECT_SLOTS]; /**< faults in what is there */
} uci_inject_slots_t;

#endif
