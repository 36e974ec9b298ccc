/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounce slots, a peer's and ours: bounce.c writes it.
 */
#ifndef UCI_BOUNCE_PART_H_
#define UCI_BOUNCE_PART_H_

#include "inject/inject_part.h"
#include "ucp/shared_memory.h"
#include "ucp/ucp_api.h"

struct uci_slot;

/** The pool of a peer, mapped. */
typedef struct uci_bounce_map {
    ucp_rkey_h rkey;
    struct uci_slot *slots; /**< NULL: not mapped */
} uci_bounce_map_t;

typedef struct uci_bounce_peer {
    bool offered;         /**< it has been told of our slots, or can't be */
    bool maps_ours;       /**< it reads our slots */
    uci_bounce_map_t map; /**< its slots */
} uci_bounce_peer_t;

#define UCI_SLOT_SIZE  (32u << 10) /**< bytes of data in one slot */
#define UCI_SLOT_COUNT 96u         /**< slots of a worker */

/**
 * Our own pool. Slots are used in turn, first in, first out, and all of them together are larger than a core's own
 * cache: a store to a line that the reader's core still has in its cache waits for that core (measured, 2 cores of one
 * L3: 9 GB/s into 8 slots in turn, 30 GB/s into 64).
 */
typedef struct uci_bounce {
    bool tried;
    uci_shared_memory_t memory;
    struct uci_slot *slots; /**< in `memory`; NULL: there is no shared memory */
    unsigned available;     /**< slots that nobody has reserved */
    unsigned first;         /**< of the free ones, a ring */
    unsigned free_count;
    uint16_t free[UCI_SLOT_COUNT];
    uci_inject_slots_t inject;
} uci_bounce_t;

#endif
